#!/usr/bin/env bash
# The rules that keep the folders apart, checked on the sources (docs/architecture.md says why), and first a check of the
# check: each rule must find the violation planted for it in a scratch tree. Usage: test_structure.sh REPOSITORY
set -u
root=$1

# code FILE: without comments and strings, so that only what runs is searched.
code() { gcc -fpreprocessed -dD -E -P -x c "$1" 2>/dev/null | sed -E 's/"([^"\\]|\\.)*"/""/g'; }
# includes FILE: the names it includes, as written between <> or "".
includes() { sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]*)[>"].*/\1/p' "$1"; }
sources() { find "$@" -type f \( -name '*.c' -o -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort; }

# forbid_includes TREE FOLDER PATTERN WHY
forbid_includes() {
    local file
    for file in $(sources "$1/$2"); do
        includes "$file" | grep -E "$3" | sed "s|^|${file#"$1"/} includes |; s|\$|: $4|"
    done
}

# forbid_calls TREE PATTERN WHY FILE...
forbid_calls() {
    local tree=$1 pattern=$2 why=$3 file
    shift 3
    for file; do
        [ -e "$file" ] || continue
        code "$file" | grep -oE "(^|[^A-Za-z0-9_])($pattern)[[:space:]]*\(" | sort -u | sed "s|^|${file#"$tree"/} calls |; s|\$|: $why|"
    done
}

cuda='^(cuda|cublas|nccl|driver_types|device_launch)'
# Prints one line a violation in the tree.
check_tree() {
    local tree=$1 script
    forbid_includes "$tree" kernels '^(mpi|hdf5)\.h$|^(io|mpi|app|tests)/' "kernels know one device: no MPI, no files"
    forbid_includes "$tree" io "$cuda" "stores know no GPU"
    forbid_includes "$tree" io '^(mpi|app|tests)/' "stores know no ranks or commands"
    forbid_includes "$tree" io '^kernels/' "stores use kernels/base.h and kernels/fill.h alone" | grep -vE 'kernels/(base|fill)\.h:'
    forbid_includes "$tree" mpi '^hdf5\.h$|^(app|tests)/' "ranks move bytes through stores"
    forbid_includes "$tree" app "^hdf5\\.h\$|^tests/|$cuda" "commands use what the folders below offer"
    forbid_calls "$tree" 'H5[A-Z]{1,2}[a-z][A-Za-z0-9_]*' "HDF5 is called in io alone" $(sources "$tree"/{kernels,mpi,app})
    # app/main.c ends the program, tsr_abort in mpi/grid.c the job, the handler in app/interrupt.c a process asked to stop;
    # kernels/cuda_emulation.cc stands in for a GPU in tests only.
    forbid_calls "$tree" '_?exit|_Exit|quick_exit|abort|MPI_Abort' "functions return a status; app/main.c exits" \
        $(sources "$tree"/{kernels,io,mpi,app} | grep -vE '/(app/(main|interrupt)\.c|mpi/grid\.c|kernels/cuda_emulation\.cc)$')
    forbid_calls "$tree" 'exit|_exit|quick_exit|abort' "only tsr_abort ends a job, with MPI_Abort" "$tree"/mpi/grid.c
    forbid_calls "$tree" 'exit|_Exit|quick_exit|abort|MPI_Abort' "only the handler of stop signals ends the process" "$tree"/app/interrupt.c
    find "$tree" \( -name 'build*' -o -name .git \) -prune -o -type f \( -name mpi.h -o -name hdf5.h -o -name cuda.h -o -name nccl.h \) -print |
        sed 's|$|: hides a system header of that name|'
    grep -rn --include=CMakeLists.txt CMAKE_INCLUDE_CURRENT_DIR "$tree" | sed 's|$|: makes mpi/ an include folder|'
    for script in "$tree"/jobs/*.sbatch; do
        [ -e "$script" ] || continue
        [ "$(wc -l <"$script")" -lt 40 ] || echo "$script: 40 lines or more"
        grep -n '^#SBATCH.*--gpus-per-task' "$script" | sed "s|^|$script:|; s|\$|: hides the GPUs of a node from each other|"
    done
}

# plant FILE LINE PATTERN: a tree with that line must give a violation that matches, and be clean without it.
plant() {
    local tree found
    tree=$(mktemp -d)
    mkdir -p "$tree/$(dirname "$1")"
    printf '/* exit(1); H5Fopen(); <hdf5.h> */\nconst char *text = "exit(1)";\n' >"$tree/$1"
    found=$(check_tree "$tree")
    if [ "${1##*/}" != mpi.h ] && [ -n "$found" ]; then
        printf 'false alarm on %s: %s\n' "$1" "$found"
        exit 1
    fi
    printf '%b\n' "$2" >>"$tree/$1"
    found=$(check_tree "$tree")
    rm -rf "$tree"
    if ! grep -qE "$3" <<<"$found"; then
        printf 'not detected: %s in %s\n' "$2" "$1"
        exit 1
    fi
}

plant kernels/a.cu '#include <mpi.h>' 'kernels/a.cu includes mpi.h'
plant kernels/a.h '# include "io/store.h"' 'includes io/store.h'
plant io/a.c '#include <cuda_runtime.h>' 'includes cuda_runtime.h'
plant io/a.c '#include "mpi/grid.h"' 'includes mpi/grid.h'
plant io/a.c '#include "kernels/device.h"' 'includes kernels/device.h'
plant mpi/a.c '#include <hdf5.h>' 'includes hdf5.h'
plant mpi/a.c 'int f(void) { return H5Fclose(1); }' 'calls.*H5Fclose'
plant app/a.c '#include <nccl.h>' 'includes nccl.h'
plant app/a.c 'void f(void) { exit(2); }' 'app/a.c calls.*exit'
plant io/a.c 'void f(void) { abort (); }' 'io/a.c calls.*abort'
plant app/a.c 'void f(void) { MPI_Abort(0, 1); }' 'calls.*MPI_Abort'
plant mpi/grid.c 'void f(void) { exit(1); }' 'calls.*exit'
plant app/interrupt.c 'void f(void) { exit(1); }' 'calls.*exit'
plant mpi/mpi.h '' 'hides a system header'
plant tests/CMakeLists.txt 'set(CMAKE_INCLUDE_CURRENT_DIR ON)' 'include folder'
plant jobs/a.sbatch '#SBATCH --gpus-per-task=1' 'GPUs of a node'
plant jobs/a.sbatch "$(printf '#\\n%.0s' {1..40})" '40 lines or more'

[ -n "$(sources "$root"/{kernels,io,mpi,app})" ] || { echo "no sources under $root"; exit 1; }
found=$(check_tree "$root")
[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
