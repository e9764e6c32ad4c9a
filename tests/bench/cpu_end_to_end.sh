#!/usr/bin/env bash
# Files to file on two CPU cores: tessera multiply on 2 ranks beside OpenBLAS in one process with 2 threads and h5py.
# Usage: tests/bench/cpu_end_to_end.sh [--size 8192] [--runs 5] [--folder DIR]; the table goes to
# docs/measurements/cpu_end_to_end.md.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
python=$(tsr_python) || tsr_die "needs a Python with h5py and numpy (jobs/setup.sh --tests)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tsr_run "$python" tests/bench/cpu_end_to_end.py --program "$TSR_BIN" "$@"
