#!/usr/bin/env bash
# What the engine reaches of its targets, from generated data, host memory and files, case by case; the table goes to
# docs/measurements/gpu_engine.md, where rows of cases that are not run this time stay.
# Usage: tests/bench/gpu_engine.sh RANKS [CASE[=SIZE]]...
# RANKS: as many as the machine has GPUs. CASE: a name or a pattern such as 'device-*'; all unless given; gpu_engine.py
# lists them. SIZE: N or MxNxK.
# TSR_DISK: a folder on the local disk (/var/tmp). TSR_SHM: one in memory (/dev/shm). TSR_DEVICE: cpu for a trial run.
# TSR_PAGE: the page to write, made from docs/measurements/gpu_engine.md where it is not there.
# TSR_TOUCH: GiB of memory to touch first (0), on machines whose memory grows as it is used.
#
# The whole table in sessions of a few minutes, each on all GPUs. Seconds are estimates for 4 H200 from the kernels'
# rates and 1 GB/s a rank for making, touching and pinning host memory; each case prints what it took, and one process
# of it may take 120 s (files, disk: 300 s):
#   'device-*'                  120  (one-simt 30, one-tf32 10, simt 50, split3 15, tf32 15)
#   'memory-*'                  200  (simt 70, dmma 70, 4G 60)
#   tall k-heavy flat startup   100  (15, 40, 25, 20)
#   files                       200  (host memory for A, B, C or P: 29 GB, and as much again in h5py)
#   disk                        200  (disk for A, B, C or P: 29 GB)
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
cd "$TSR_HOME"
tsr_need_program
ranks=${1:?usage: gpu_engine.sh RANKS [CASE[=SIZE]]...}
shift
launcher=(mpirun) # as README has it
[ "$(id -u)" != 0 ] || launcher+=(--allow-run-as-root)

# As many GPUs as ranks, also for what sees all of them: cublasXt and torch.
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    CUDA_VISIBLE_DEVICES=$(cut -d, -f"1-$ranks" <<<"$CUDA_VISIBLE_DEVICES")
else
    CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((ranks - 1)))
fi
export CUDA_VISIBLE_DEVICES

python=$(tsr_python) || python=python3 # for the table any will do

# The Python of the h5py + torch script; without one the rows beside it are left out.
torch=
for candidate in ${TSR_PYTHON:-} python3 /usr/bin/python3; do
    if "$candidate" -c 'import h5py, torch' >/dev/null 2>&1; then
        torch=$candidate
        break
    fi
done

touchers=()
for ((i = 0; i < ${TSR_TOUCH:-0}; i += 8)); do
    "$python" -c 'b"1" * (8 << 30)' &
    touchers+=($!)
done
for pid in "${touchers[@]}"; do
    wait "$pid" || printf 'gpu_engine.sh: touching memory: process %s ended with %s: %s\n' "$pid" "$?" \
        "there is less memory than TSR_TOUCH=$TSR_TOUCH GiB" >&2
done

[ -z "${TSR_PAGE:-}" ] || [ -e "$TSR_PAGE" ] || cp docs/measurements/gpu_engine.md "$TSR_PAGE"

command=("$python" tests/bench/gpu_engine.py --program "$TSR_BIN" --launcher "${launcher[*]}" --torch "$torch" \
    --ranks "$ranks" --device "${TSR_DEVICE:-cuda}" \
    --disk "${TSR_DISK:-/var/tmp}" --shm "${TSR_SHM:-/dev/shm}" ${TSR_PAGE:+--page "$TSR_PAGE"} "$@")
tsr_show "${command[@]}"
exec "${command[@]}" # which then gets the signals
