#!/usr/bin/env bash
# What the check of products (--check device) costs each kernel: `bench multiply --check` beside the run without, in
# turns, on one GPU or several. The table goes to docs/measurements/gpu_check.md.
# Usage: tests/bench/gpu_check.sh [--gpus 1] [--sizes 8192,16384,32768] [--rounds 3] [--repeat 5]
#     [--kernels simt:f32,...] [-o FILE.md]      another page with the section gpu-check
# Exit code 1 where it takes more than is wanted at n = 16384 on one.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PYTHONDONTWRITEBYTECODE=1
tsr_run python3 "$TSR_HOME/tests/bench/gpu_option.py" --program "$TSR_BIN" --option check "$@"
