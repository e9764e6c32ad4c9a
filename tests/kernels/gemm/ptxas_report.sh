#!/usr/bin/env bash
# What ptxas makes of the fast kernels: registers, shared memory and spills of each, as a table. Fails when one spills
# or keeps a stack frame. What the log of the build (build.log, jobs/common.sh) has of an object is taken from there;
# else the kernel is compiled for this.
# Usage: ptxas_report.sh REPOSITORY [NVCC [BUILD]]
# Exit codes: 0 none spills, 1 one does or does not compile, 77 there is no nvcc.
set -u
root=$1 nvcc=${2:-nvcc} build=${3:-} arch=90a
# In kernels/:
fast=(gemm/simt/simt gemm/hopper/split3 gemm/hopper/dmma gemm/hopper/wgmma gemm/hopper/tf32
    gemm/batched/batched_simt gemm/batched/batched_tensor gemm/residues/products_hopper pack/pack_cuda)

# table FAMILY: reads ptxas' report; prints a line a kernel; fails when one spills, and when there is none.
table() {
    awk -v family="$1" '
        /Compiling entry function/ { split($0, quoted, "\047"); name = quoted[2] }
        /bytes stack frame/ { match($0, /[0-9]+ bytes stack/); stack = substr($0, RSTART) + 0
                              match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART) + 0
                              match($0, /[0-9]+ bytes spill loads/); loads = substr($0, RSTART) + 0 }
        /Used [0-9]+ registers/ {
            match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5) + 0
            shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
            spills = stack > 0 || stores > 0 || loads > 0
            printf "%-12s %9d %7d %6d %6d %s %s\n", family, registers, shared, stores, stack, name,
                spills ? "SPILLS" : ""
            kernels++; failed += spills; stack = stores = loads = 0
        }
        END { exit kernels == 0 || failed > 0 }' | c++filt |
        sed -E 's/\(anonymous namespace\):://g; s/^(.{44}[^(]*(\(tsr_dtype\)[^(]*)?)\(.*\)/\1/'
    return "${PIPESTATUS[0]}"
}

# The check of the check: a report with a spill has to fail, one without has to pass, and none at all has to fail.
report() {
    printf "%s 'k' for 'sm_90a'\n%s\n%s\n" "ptxas info    : Compiling entry function" \
        "    $1 bytes stack frame, $2 bytes spill stores, $2 bytes spill loads" \
        "ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem"
}
report 0 0 | table test >/dev/null || { echo "a kernel that does not spill is reported as one that does"; exit 1; }
report 8 8 | table test >/dev/null && { echo "a spill was not noticed"; exit 1; }
report 96 0 | table test >/dev/null && { echo "a stack frame was not noticed"; exit 1; }
table test </dev/null && { echo "a report without kernels passes"; exit 1; }

# said FILE: what ptxas said of it in the build, if its log is the object's. ninja alone keeps a file's lines together.
# kernels/CMakeLists.txt compiles what needs no newer instructions from compute_80, to the same machine code.
said() {
    local object=kernels/CMakeFiles/tsr_kernels.dir/$1.cu.o arch=$arch
    [ -e "$build/$object" ] || object=kernels/CMakeFiles/tsr_kernels_80.dir/$1.cu.o arch=90
    [ -n "$build" ] && [ -e "$build/build.ninja" ] && [ "$build/build.log" -nt "$build/$object" ] || return 1
    awk -v built=" CUDA object $object" -v arch="'sm_$arch'" '
        /^\[/ { mine = index($0, built) }
        mine && /Compiling entry function/ { fits = index($0, arch); found += fits > 0 }
        mine && fits
        END { exit !found }' "$build/build.log"
}

command -v "$nvcc" >/dev/null || { echo "skipped: no nvcc"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compile() {
    local name=${1##*/}
    said "$1" >"$folder/$name.log" && return
    "$nvcc" -O3 -std=c++17 -I"$root" -gencode="arch=compute_$arch,code=sm_$arch" -Xptxas=-v -cubin \
        -o "$folder/$name.cubin" "$root/kernels/$1.cu" >"$folder/$name.log" 2>&1 || : >"$folder/$name.failed"
}
export -f compile said
export nvcc root build arch folder
printf '%s\n' "${fast[@]}" | xargs -P 2 -I{} bash -c 'compile {}'

failed=0
printf '%-12s %9s %7s %6s %6s %s\n' file registers shared spills stack kernel
for log in "$folder"/*.log; do
    family=$(basename "$log" .log)
    [ ! -e "$folder/$family.failed" ] || { cat "$log"; failed=1; continue; }
    table "$family" <"$log" || failed=1
done
exit $failed
