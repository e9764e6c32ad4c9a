#!/usr/bin/env bash
# Gram matrices beside general products and beside cublasSsyrk and cublasDsyrk, in one run; the table goes to
# docs/measurements/gpu_gram.md. Usage: tests/bench/gpu_gram.sh [N [GPUS [FOLDER]]]      32768, on 1 GPU. What other
# calls left in FOLDER for other numbers of GPUs goes to the table, too.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
size=${1:-32768}
ranks=${2:-1}
folder=${3:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# measure NAME OPTION...: leaves NAME.json
measure() {
    local name=$1
    shift
    tsr_mpirun "$ranks" "$TSR_BIN" bench multiply --shape "$size" --repeat 3 --quiet --device cuda \
        --json "$folder/$name.json" "$@"
}

for one in f32:simt f64:dmma; do
    type=${one%:*}
    for data in device memory; do
        measure "$ranks-$type-$data-general" --type "$type" --kernel "${one#*:}" --data "$data"
        measure "$ranks-$type-$data-gram" --type "$type" --kernel "${one#*:}" --data "$data" --gram
    done
done
[ -s "$folder/syrk.jsonl" ] || "$(dirname "$TSR_BIN")/tests/gram_beside" "$size" 5 >"$folder/syrk.jsonl"
tsr_run python3 tests/bench/gpu_gram.py "$folder"
