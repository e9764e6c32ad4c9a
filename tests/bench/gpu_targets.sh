#!/usr/bin/env bash
# The fast kernels beside the vendor library, and below size 2048 beside the best rung of the textbook, with clock and
# power during each measurement; the tables go to docs/measurements/gpu_targets.md. Usage: tests/bench/gpu_targets.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
tsr_run python3 tests/bench/gpu_targets.py "$TSR_BIN"
