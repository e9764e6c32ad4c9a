#!/usr/bin/env bash
# What the GPU's memory gives: copies, transposes, access patterns, sums, pack and transfers; the table goes to
# docs/measurements/gpu_memory.md.
# Usage: tests/bench/gpu_memory.sh [SIZE]     8192 unless given: 0.27 GB a matrix, far more than the caches hold; 20 s
# on an H200.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tsr_run "$TSR_BIN" bench memory --device "${TSR_DEVICE:-cuda}" --size "${1:-8192}" --json "$folder/memory.json"
tsr_run python3 tests/bench/gpu_memory.py "$folder/memory.json"
