#!/usr/bin/env bash
# Runs a Python program of the tests with a Python that has h5py and numpy. It is looked for now, not when CMake ran:
# packages may have come since, and the first python3 in PATH need not be the one that has them.
# Usage: tests/python.sh PROGRAM ARGUMENT...     TSR_PYTHON names the Python to take.
. "$(dirname "${BASH_SOURCE[0]}")/../jobs/common.sh"
python=$(tsr_python) || tsr_die "$(tsr_no_python)"
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$TSR_HOME/tests/app${PYTHONPATH:+:$PYTHONPATH} # lib.py
exec "$python" "$@"
