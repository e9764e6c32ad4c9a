#!/usr/bin/env bash
# Gram matrices beside general products and beside cublasSsyrk and cublasDsyrk, in one run, on one GPU and on as many
# as are named; the table goes to docs/measurements/gpu_gram.md. Usage: tests/bench/gpu_gram.sh [N [GPUS]]
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
size=${1:-32768}
most=${2:-1}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# measure RANKS NAME OPTION...: leaves NAME.json
measure() {
    local ranks=$1 name=$2
    shift 2
    tsr_mpirun "$ranks" "$TSR_BIN" bench multiply --shape "$size" --repeat 3 --quiet --device cuda \
        --json "$folder/$name.json" "$@"
}

for ranks in $(printf '1\n%s\n' "$most" | sort -nu); do
    for one in f32:simt f64:dmma; do
        type=${one%:*}
        for data in device memory; do
            measure "$ranks" "$ranks-$type-$data-general" --type "$type" --kernel "${one#*:}" --data "$data"
            measure "$ranks" "$ranks-$type-$data-gram" --type "$type" --kernel "${one#*:}" --data "$data" --gram
        done
    done
done
"$(dirname "$TSR_BIN")/tests/gram_beside" "$size" 5 >"$folder/syrk.jsonl"
tsr_run python3 tests/bench/gpu_gram.py "$folder"
