#!/usr/bin/env bash
# The error of every kernel of the GPU, of every type, on inputs that are hard in different ways; the tables go to docs/accuracy.md.
# Usage: tests/bench/gpu_accuracy.sh [K,...]     64,1024,8192,65536 unless given.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for type in f16 bf16 f32 f64; do
    tsr_run "$TSR_BIN" bench accuracy --device "${TSR_DEVICE:-cuda}" --type $type --k "${1:-64,1024,8192,65536}" --json "$folder/$type.json"
done
# Small products of the vendor's are sums of several shorter ones, which err less: large ones, too.
tsr_run "$TSR_BIN" bench accuracy --device "${TSR_DEVICE:-cuda}" --type f32 --size 4096 --k 4096 --json "$folder/f32-large.json"
tsr_run python3 tests/bench/gpu_accuracy.py "$folder"/*.json
