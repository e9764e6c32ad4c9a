#!/usr/bin/env bash
# What NVIDIA's ncu counts in the kernels that missed their target, and in the vendor's beside them; the table goes to
# docs/measurements/gpu_profile.md.
# Usage: tests/bench/gpu_profile.sh [KERNEL:TYPE:SHAPE...]     what gpu_targets.sh last found short of its target unless
# given.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
command -v ncu >/dev/null || tsr_die "no ncu: it comes with the CUDA toolkit; put the toolkit's bin folder on PATH"
tsr_run python3 tests/bench/gpu_profile.py "$TSR_BIN" "$@"
