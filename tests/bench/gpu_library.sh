#!/usr/bin/env bash
# What a product of matrices in memory takes by the library, from C (matrices that ranks share, and such that are dealt
# out to them in blocks) and from Python (arrays of NumPy, and of tessera.empty), beside `bench multiply --data memory`,
# in turns, on one GPU and on two where there are. The table goes to docs/measurements/gpu_library.md.
# Usage: tests/bench/gpu_library.sh [--sizes 8192,16384] [--gpus 1,2] [--rounds 3] [--repeat 6] [--kernel simt]
#     [--device cuda] [-o FILE.md]      another page with the section gpu-library
# About a minute for each size and number of GPUs. Exit code 1 where C's calls take more than 1.05 of the bench.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
python=$(tsr_python) || python=python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$(dirname "$TSR_BIN")/libtessera.so.0
[ -e "$library" ] || tsr_die "no $library: build all of it"
tsr_run mpicc -O2 -I"$TSR_HOME/app/library" "$TSR_HOME/tests/bench/library_calls.c" "$library" \
    -Wl,-rpath,"$(dirname "$library")" -o "$work/library_calls"
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || gpus=1
export TESSERA_LIBRARY=$library PYTHONPATH=$TSR_HOME/app/python${PYTHONPATH:+:$PYTHONPATH}
tsr_run "$python" "$TSR_HOME/tests/bench/gpu_library.py" --program "$TSR_BIN" --calls "$work/library_calls" \
    --there "$gpus" "$@"
