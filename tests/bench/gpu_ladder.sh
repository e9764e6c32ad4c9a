#!/usr/bin/env bash
# Every kernel of the GPU beside the vendor library, at a round and at an odd size, of every type; the table goes to
# docs/measurements/gpu_ladder.md. Usage: tests/bench/gpu_ladder.sh [SIZE...]     4096 and 4095 unless given.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
[ $# -gt 0 ] || set -- 4096 4095
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for size; do
    for type in f16 bf16 f32 f64; do
        tsr_run "$TSR_BIN" bench gemm --all --device "${TSR_DEVICE:-cuda}" --shape "$size" --type $type \
            --json "$folder/$size-$type.json"
    done
done
tsr_run python3 tests/bench/gpu_ladder.py "$folder"/*.json
