#!/usr/bin/env bash
# What the same bytes (--reproducible) cost each kernel in floating point: `bench multiply --reproducible --kernel NAME`
# beside the run without, in turns, on one GPU. The table goes to docs/measurements/gpu_reproducible.md.
# Usage: tests/bench/gpu_reproducible.sh [--sizes 1024,2048,4096,8192,16384] [--rounds 3] [--repeat 5]
#     [--kernels simt:f32,...] [-o FILE.md]      another page with the section gpu-reproducible
# Exit code 1 where it takes more than 3 %.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
export PYTHONDONTWRITEBYTECODE=1
tsr_run python3 "$TSR_HOME/tests/bench/gpu_option.py" --program "$TSR_BIN" --option reproducible "$@"
