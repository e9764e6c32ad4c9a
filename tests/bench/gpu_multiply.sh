#!/usr/bin/env bash
# A large product on RANKS GPUs, files to file, with every transport that can run; the tables go to
# docs/measurements/gpu_multiply.md.
# Usage: tests/bench/gpu_multiply.sh RANKS [SIZE [FOLDER]]     20000 and /dev/shm unless given. One warm-up run each.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
ranks=${1:?usage: gpu_multiply.sh RANKS [SIZE [FOLDER]]}
size=${2:-20000}
parent=${3:-/dev/shm}
folder=$(mktemp -d "$parent/tessera-bench.XXXXXX")
trap 'rm -rf "$folder"' EXIT

for matrix in A B; do
    tsr_mpirun "$ranks" "$TSR_BIN" generate -o "$folder/$matrix.h5:/$matrix" --shape "${size}x$size" --type f32 \
        --distribution uniform --seed "$([ $matrix = A ] && echo 1 || echo 2)"
done

# multiply TRANSPORT LOG OPTION...
multiply() {
    local transport=$1 log=$2
    shift 2
    tsr_mpirun "$ranks" "$TSR_BIN" multiply "$folder/A.h5" "$folder/B.h5" -o "$folder/C.h5:/C" --force \
        --device "${TSR_DEVICE:-cuda}" \
        --transport "$transport" --log "$log" --progress off "$@"
}

# One rank exchanges nothing, so one transport says it all. The first run of each touches memory and files for the first
# time and is not recorded; a transport that cannot run here says why, and the others go on.
transports=(nccl cuda-aware host)
[ "$ranks" -gt 1 ] || transports=(host)
logs=()
for transport in "${transports[@]}"; do
    if multiply "$transport" "$folder/warm.json"; then
        multiply "$transport" "$folder/$transport.json" --verify
        logs+=("$folder/$transport.json")
    fi
done
[ ${#logs[@]} -gt 0 ] || tsr_die "no transport ran"
tsr_run python3 tests/bench/gpu_multiply.py "$parent" "${logs[@]}"
