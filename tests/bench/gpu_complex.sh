#!/usr/bin/env bash
# Complex products beside cuBLAS' cublasCgemm and cublasZgemm in the same run, packing included; the table goes to
# docs/measurements/gpu_complex.md. Usage: tests/bench/gpu_complex.sh [N...]
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
tsr_run python3 tests/bench/gpu_complex.py "$(dirname "$TSR_BIN")/tests/complex_beside" "$@"
