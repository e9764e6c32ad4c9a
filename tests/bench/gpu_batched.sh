#!/usr/bin/env bash
# Batches of small products beside cuBLAS's strided batches, in turns, on one GPU: `bench gemm --batch`.
# Usage: tests/bench/gpu_batched.sh [--batch 1024] [--shapes 64,128,256,512] [--rounds 5] [--device cuda]
#     [-o FILE.md]      a page with the section gpu-batched, such as docs/measurements/gpu_batched.md
# Exit code 1 where a rate is below 0.8 of the vendor's.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
tsr_run python3 "$TSR_HOME/tests/bench/gpu_batched.py" --program "$TSR_BIN" "$@"
