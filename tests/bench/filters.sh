#!/usr/bin/env bash
# Every filter of HDF5 decoded and encoded on two CPU cores: tessera multiply beside h5py, on the same matrix.
# Usage: tests/bench/filters.sh [--rows 8192] [--cols 4096] [--runs 5] [--folder /dev/shm]; the table goes to
# docs/measurements/filters.md. TSR_PYTHON names a Python with h5py, numpy and hdf5plugin: filters that it lacks have no
# figure of h5py.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
python=$(tsr_python) || tsr_die "needs a Python with h5py and numpy (jobs/setup.sh --tests)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1
tsr_run "$python" tests/bench/filters.py --program "$TSR_BIN" "$@"
