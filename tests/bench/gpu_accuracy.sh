#!/usr/bin/env bash
# The error of every kernel of the GPU, of every type, on inputs that are hard in different ways; the tables go to
# docs/measurements/gpu_accuracy.md.
# Usage: tests/bench/gpu_accuracy.sh [K,...]     64,1024,8192,65536 unless given.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# They measure errors, not speed, and most of the time goes into exact sums on the CPU: all at once.
pids=()
measure() { # NAME OPTION...
    tsr_run "$TSR_BIN" bench accuracy --device "${TSR_DEVICE:-cuda}" --json "$folder/$1.json" "${@:2}" \
        >"$folder/$1.log" 2>&1 &
    pids+=($!)
}
for type in f16 bf16 f32 f64 c64 c128; do
    measure "$type" --type "$type" --k "${1:-64,1024,8192,65536}"
done
# Small products of the vendor's are sums of several shorter ones, which err less: large ones, too.
measure f32-large --type f32 --size 4096 --k 4096
failed=0
for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
done
cat "$folder"/*.log
[ "$failed" = 0 ] || tsr_die "a kernel could not be measured, or errs more than it states: see above"
tsr_run python3 tests/bench/gpu_accuracy.py "$folder"/*.json
