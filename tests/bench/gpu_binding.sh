#!/usr/bin/env bash
# What mpirun's own binding costs: `mpirun -n RANKS tessera multiply`, as README has it, and the same with
# --bind-to none, in turns on the same files, three matrices of SIZE² floats in the folder.
# Usage: tests/bench/gpu_binding.sh [--ranks 2] [--size 40000] [--turns 9] [--folder /dev/shm] [--device cuda]
#     [-o FILE.json|FILE.md]   FILE.md: a new one, or its section gpu-binding (docs/measurements/gpu_binding.md has one)
# Exit code 1 where the documented form takes over 10 % longer, or 0.2 s more to start.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
python=$(tsr_python) || tsr_die "no Python with h5py and numpy: install them, or name one with TSR_PYTHON"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
tsr_run "$python" "$TSR_HOME/tests/bench/gpu_binding.py" --program "$TSR_BIN" "$@"
