#!/usr/bin/env bash
# What starting costs: whole processes that multiply SIZE² matrices from file to file on one device, fp32 and fp64,
# beside h5py + numpy, in turns. Then what `auto` takes, of the fastest kernel (bench speeds), for this build's code.
# Usage: tests/bench/gpu_small.sh [--size 1000] [--turns 9] [--folder /dev/shm] [--device cuda] [--no-speeds]
#     [-o FILE.md]      a page with the sections gpu-small and gpu-auto, such as docs/measurements/gpu_small.md
# Exit code 1 where a median is over 0.6 s or the two types are more than 0.05 s apart, or `auto` below 0.97.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
python=$(tsr_python) || tsr_die "no Python with h5py and numpy: install them, or name one with TSR_PYTHON"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
tsr_run "$python" "$TSR_HOME/tests/bench/gpu_small.py" --program "$TSR_BIN" "$@"
