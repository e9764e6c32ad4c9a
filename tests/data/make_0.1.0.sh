#!/usr/bin/env bash
# Makes tests/data/0.1.0 for tests/app/program/test_compatibility.py: files that tessera 0.1.0 (commit f7ed9c1) wrote.
# Checks that options_0.1.0.txt holds the options it had. Usage: TSR_BIN=PROGRAM_OF_0.1.0 tests/data/make_0.1.0.sh
# [FOLDER] Needs mpirun, gdb, and git with that commit. Builds nothing.
. "$(dirname "${BASH_SOURCE[0]}")/../../jobs/common.sh"
tsr_need_program
TSR_BIN=$(realpath "$TSR_BIN")
folder=$(realpath "${1:-$TSR_HOME/tests/data/0.1.0}")
options=$(realpath "$(dirname "${BASH_SOURCE[0]}")/options_0.1.0.txt")
case "$("$TSR_BIN" --version | head -n 1)" in *" 0.1.0"*) ;; *) tsr_die "$TSR_BIN is not tessera 0.1.0" ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
ln -s "$TSR_BIN" tessera # the command lines that records hold name no folder
PATH=$scratch:$PATH

# ---- every option of every command's help is in options_0.1.0.txt, and 0.1.0 accepts them all ----------------------
# offered: `COMMAND --option`, or `COMMAND --option=` for one that takes a value. The help of bench holds five commands.
offered() {
    local command
    for command in multiply generate verify compare info plan bench; do tessera $command --help; done |
        sed -nE 's/^Usage: tessera (bench [a-z]+|[a-z]+) .*/\1/p; s/^ {2,6}(-[a-z], )?(--[a-z-]+)(=?).*/\2\3/p' |
        awk '/^--/ { print command, $0; next } { command = $0 }' | sort -u
}
listed() { awk '!/^#/ && NF { command = $1 == "bench" ? $1 " " $2 : $1
                              for (i = 2; i <= NF; i++) if ($i ~ /^--/) { sub(/=.*/, "=", $i); print command, $i } }' \
    "$options" | sort -u; }
diff <(offered) <(listed) >&2 || tsr_die "options_0.1.0.txt does not hold the options that $TSR_BIN shows"
mkdir options
while read -r line; do
    case "$line" in "" | "#"*) continue ;; esac
    ! (cd options && CUDA_VISIBLE_DEVICES= tessera $line) 2>said >/dev/null || continue
    grep -qE 'missing|measures a GPU' said || tsr_die "0.1.0 refuses '$line': $(cat said)"
done <"$options"

# ---- files ---------------------------------------------------------------------------------------------------------
mpi() { OMPI_MCA_rmaps_base_oversubscribe=1 tsr_mpirun "$@"; }
git -C "$TSR_HOME" show f7ed9c1:jobs/h200_example.machine >h200_example.machine
tessera generate -o a.h5:/A --shape 24x16 --distribution integer --seed 1
tessera generate -o b.h5:/B --shape 16x20 --distribution integer --seed 2
mpi 2 tessera multiply a.h5 b.h5 -o c.h5 --verify --log log.json --trace trace.json
tessera multiply a.h5 b.h5 -o c_gzip.h5 --chunk 8x8 --compress gzip:1 --shuffle
tessera bench multiply --shape 64 --repeat 2 --json bench_multiply.json
tessera bench gemm --shape 64 --repeat 2 --json bench_gemm.json
tessera plan --shape 1000 --ranks 4 --machine h200_example.machine --json plan.json
# What a run leaves that is killed before it publishes its output.
gdb -q -batch -ex 'break tsr_output_publish' -ex run -ex kill \
    --args "$TSR_BIN" multiply a.h5 b.h5 -o d.h5 >gdb.log 2>&1 || true
mv .d.h5.tessera-*.tmp unfinished.h5 || tsr_die "the killed run left nothing: $(cat gdb.log)"

mkdir -p "$folder"
cp ./*.h5 ./*.json h200_example.machine "$folder"
du -sb "$folder"
