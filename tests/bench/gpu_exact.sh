#!/usr/bin/env bash
# `exact` and its products of residues beside cuBLAS, also of wide data, in turns on one GPU, sustained, and sizes that
# are one off a whole tile. The tables go to docs/measurements/gpu_exact.md.
# Usage: tests/bench/gpu_exact.sh [--seconds 2] [--sizes 4096,8192,16384,8191,8193] [--odd 8192] [-o FILE.md]
#     tests/bench/gpu_exact.sh --ranks 2 [--large 65536]     one product on several GPUs, beside `dmma`
# Exit code 1 where a ratio is below what is wanted.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
export PYTHONDONTWRITEBYTECODE=1
tsr_run python3 "$TSR_HOME/tests/bench/gpu_exact.py" --programs "$(dirname "$TSR_BIN")/tests" "$@"
