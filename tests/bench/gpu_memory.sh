#!/usr/bin/env bash
# What the GPU's memory gives: copies, transposes, access patterns, sums, pack and transfers; the table goes to docs/performance.md.
# Usage: tests/bench/gpu_memory.sh [SIZE]     16384 unless given: 1.07 GB a matrix, far more than the caches hold.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tsr_run "$TSR_BIN" bench memory --device "${TSR_DEVICE:-cuda}" --size "${1:-16384}" --json "$folder/memory.json"
tsr_run python3 tests/bench/gpu_memory.py "$folder/memory.json"
