#!/usr/bin/env bash
# The fast kernels beside those of another build, such as one of the commit before a change, in turns; the table goes to
# docs/measurements/gpu_beside.md. Usage: tests/bench/gpu_beside.sh OTHER_TESSERA [KERNEL...]
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
[ $# -ge 1 ] || tsr_die "usage: tests/bench/gpu_beside.sh OTHER_TESSERA [KERNEL...]"
other=$1
shift
file=$(mktemp)
trap 'rm -f "$file"' EXIT
tsr_run python3 tests/bench/gpu_beside.py "$TSR_BIN" "$other" "$file" "$@"
tsr_run python3 tests/bench/gpu_beside.py --write "$file"
