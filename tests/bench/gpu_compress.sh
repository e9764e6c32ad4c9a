#!/usr/bin/env bash
# A large product on one GPU into chunks of every kind: what encoding and writing C takes on all cores of the rank. An
# earlier build (--before) takes turns with this one. Usage: tests/bench/gpu_compress.sh [--size 24000] [--inner 2000]
#     [--turns 3] [--folder /dev/shm] [--before TESSERA] [--device cuda]
# The table goes to docs/measurements/gpu_compress.md.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
python=$(tsr_python) || tsr_die "no Python with h5py and numpy: install them, or name one with TSR_PYTHON"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tsr_run "$python" tests/bench/gpu_compress.py --program "$TSR_BIN" "$@"
