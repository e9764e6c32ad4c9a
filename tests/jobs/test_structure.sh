#!/usr/bin/env bash
# The rules that keep the folders apart, checked on the sources (docs/architecture.md says why), and first a check of
# the check: each rule must find the violation planted for it in a scratch tree.
# Usage: test_structure.sh REPOSITORY [tree|types]
#   tree: without the check of the check, as the hook of .githooks does
#   types: only prints the places that name an element type, and how many they are
set -u
root=$1

# code FILE: without comments and strings, so that only what runs is searched.
code() { gcc -fpreprocessed -dD -E -P -x c "$1" 2>/dev/null | sed -E 's/"([^"\\]|\\.)*"/""/g'; }
# sources FOLDER...: every file of C, C++ or CUDA there.
sources() {
    find "$@" -type f -regextype egrep -regex '.*\.(c|cc|h|cu|cuh)' 2>/dev/null | sort
}

# The rooms: each folder of sources, and what its files may include beside their own room: folders, or single headers.
# What a room needs is written here first; a line that names single headers is an exception that waits to be undone.
gemm='kernels/base kernels/device kernels/pack kernels/gemm'
hdf5='io/hdf5 io/hdf5/access io/hdf5/carried io/hdf5/external io/hdf5/output'
file='kernels/base/base.h io io/text io/files'
disk="kernels/base/base.h io io/text io/files io/filters io/chunks io/pieces io/describe $hdf5"
kernels='kernels/base kernels/device kernels/health kernels/check kernels/fill kernels/pack kernels/memory kernels/gemm'
kernels="$kernels kernels/gemm/cpu"
io='io io/digest io/text io/files io/filters io/pieces io/describe io/output io/output/resume io/record'
called='app/library app/library/options'
library='app/library app/library/api app/library/options app/library/planning'
# Of it what commands use: tessera.h multiplies, with what api/context.h adds for the program, and run.h is behind it.
verify='app/verify app/verify/digest'
offered='app/library/tessera.h app/library/api app/library/options app/library/inputs.h app/library/listener.h'
offered="$offered app/library/place_chunks.h app/library/planning/reproducible.h"
plans='mpi/ranks mpi/plan mpi/schedule'
mpi="$plans mpi/transport mpi/distribute mpi/execute mpi/execute/memory mpi/execute/trace mpi/watch"
rooms="
kernels/base
kernels/device        kernels/base
kernels/health        kernels/base
kernels/fill          kernels/base kernels/device
kernels/check         kernels/base kernels/device kernels/gemm kernels/pack
kernels/pack          kernels/base kernels/device
kernels/memory        kernels/base kernels/device
kernels/gemm          $gemm kernels/fill
kernels/gemm/cpu      $gemm
kernels/gemm/textbook $gemm
kernels/gemm/vendor   $gemm
kernels/gemm/hopper   $gemm
kernels/gemm/simt     $gemm kernels/gemm/hopper
kernels/gemm/batched  $gemm kernels/gemm/hopper
kernels/gemm/exact    $gemm kernels/gemm/hopper kernels/gemm/auto kernels/gemm/residues
kernels/gemm/residues $gemm kernels/gemm/hopper kernels/gemm/exact/exact_rules.h
kernels/gemm/auto     $gemm kernels/gemm/exact kernels/gemm/residues
io                    kernels/base/base.h kernels/fill/fill.h io/text io/files io/signature io/chunks $hdf5 io/raw
io/text               kernels/base/base.h io/files io/signature
io/files              kernels/base/base.h io/text io/store.h
io/hdf5               $disk
io/hdf5/access        $disk io/signature
io/hdf5/carried       $disk
io/hdf5/external      $disk
io/hdf5/output        $disk io/output io/record
io/digest             kernels/base/base.h io io/files
io/filters            kernels/base/base.h
io/chunks             $disk
io/pieces             kernels/base/base.h io
io/describe           $disk io/output io/record
io/output             $file io/filters io/chunks io/pieces io/describe io/record io/output/resume
io/output/resume      $file io/chunks io/output
io/raw                kernels/base/base.h io io/text io/files io/signature io/output
io/record             kernels/base/base.h io/text io/files
io/signature          io/files
mpi/ranks             kernels/base kernels/device kernels/health io/text io/files mpi/execute/task.h
mpi/plan              kernels/base io/files io/record mpi/ranks mpi/schedule
mpi/schedule          kernels/base io/text io/nearest.h mpi/ranks mpi/plan
mpi/transport         kernels/base kernels/device io/text io/store.h mpi/ranks
mpi/distribute        kernels/base kernels/device/host_pages.h io/text io/store.h $plans mpi/execute/task.h
mpi/execute           kernels/base kernels/check kernels/device kernels/gemm kernels/pack io io/files io/record $mpi
mpi/execute/memory    kernels/base kernels/device $plans
mpi/execute/trace     kernels/base kernels/gemm io/record $plans
mpi/watch             kernels/base io/text mpi/ranks mpi/schedule
app                   $kernels $io $mpi $offered app/products app/commands
app/library           $kernels $io $mpi app/library/planning/reproducible.h app/verify app/products
app/library/api       $kernels $io $mpi $called app/products app/report app/bench/bench_product.h
app/library/check     $kernels $io $mpi app/library app/products app/verify
app/library/options   $kernels $io $mpi app/library app/library/planning/reproducible.h app/products
app/library/pblas     $kernels $io $mpi app/library
app/library/planning  $kernels kernels/gemm/exact/exact.h $io $mpi app/library app/verify app/products
app/library/resume    $kernels $io $mpi app/library
app/products          kernels/base io io/text
app/verify            $kernels $io $mpi app/products app/library/listener.h
app/verify/digest     kernels/base $io mpi/ranks
app/info              $kernels $io
app/bench             $kernels kernels/gemm/vendor $io $mpi app $library app/products app/commands/command.h
app/report            kernels/base io io/text io/record io/describe mpi/plan
app/commands          $kernels $io $mpi app $offered app/products $verify app/bench app/info app/report
"

# includes TREE FOLDER...: a line `FILE NAME` for each include of the files there, NAME as written between <> or "".
includes() {
    local tree=$1
    shift
    sources "${@/#/$tree/}" | xargs -r awk -v skip=$((${#tree} + 2)) '
        /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
            gsub(/^[^<"]*[<"]|[>"].*$/, "")
            print substr(FILENAME, skip), $0
        }'
}

# check_rooms TREE: a line for each include of ours that the table does not allow.
check_rooms() {
    includes "$1" kernels io mpi app | awk -v table="$rooms" '
        function folder(name) { sub("/[^/]*$", "", name); return name }
        BEGIN {
            for (i = split(table, lines, "\n"); i > 0; i--) {
                count = split(lines[i], words, " ")
                for (j = 1; j <= count; j++) may[words[1], words[j]] = 1
            }
        }
        $2 ~ /^(kernels|io|mpi|app|tests)\// {
            room = folder($1)
            if ((room, room) in may) why = "the table of rooms in test_structure.sh does not allow that in " room
            else why = room " is not in the table of rooms in test_structure.sh"
            if (!((room, folder($2)) in may) && !((room, $2) in may)) print $1 " includes " $2 ": " why
        }'
}

# check_sizes TREE: a line for each folder with more files than one looks through.
check_sizes() {
    local folder count
    while read -r count folder; do
        [ "$count" -le 16 ] || echo "${folder#"$1"/}: $count files: a room has 16 at most"
    done < <(sources "$1"/{kernels,io,mpi,app} | sed 's|/[^/]*$||' | sort | uniq -c)
}

# forbid_includes TREE FOLDER PATTERN WHY
forbid_includes() {
    includes "$1" "$2" | grep -E "^[^ ]+ ($3)" | sed "s| | includes |; s|\$|: $4|"
}

# forbid_calls TREE PATTERN WHY FILE...
forbid_calls() {
    local tree=$1 pattern=$2 why=$3 file
    shift 3
    for file in $(grep -lwsE "$pattern" /dev/null "$@"); do
        code "$file" | grep -oE "(^|[^A-Za-z0-9_])($pattern)[[:space:]]*\(" | sort -u |
            sed "s|^|${file#"$tree"/} calls |; s|\$|: $why|"
    done
}

# forbid_words TREE PATTERN WHY FILE...
forbid_words() {
    local tree=$1 pattern=$2 why=$3 file
    shift 3
    for file in $(grep -lwsE "$pattern" /dev/null "$@"); do
        code "$file" | grep -owE "$pattern" | sort -u | sed "s|^|${file#"$tree"/} uses |; s|\$|: $why|"
    done
}

cuda='(cuda|cublas|nccl|driver_types|device_launch)'
# Prints one line a violation in the tree.
check_tree() {
    local tree=$1 script room why file
    check_rooms "$tree"
    check_sizes "$tree"
    forbid_includes "$tree" kernels '(mpi|hdf5)\.h$' "kernels know one device: no MPI, no files"
    forbid_includes "$tree" io "$cuda" "stores know no GPU"
    forbid_includes "$tree" io 'hdf5\.h$' "stores of other kinds know no HDF5" | grep -vE '^io/(hdf5|chunks|describe)/'
    why="what descriptions say of HDF5 alone is read in its rooms"
    for file in $(sources "$tree"/{io,mpi,app} | grep -vE '/io/(hdf5|chunks|describe)/' |
        xargs -r grep -lE '(\.|->)hdf5\.'); do
        code "$file" | grep -oE '(\.|->)hdf5\.' | sort -u | sed "s|^|${file#"$tree"/} reads |; s|\$|: $why|"
    done
    forbid_calls "$tree" 'tsr_(hdf5|h5)_[a-z0-9_]*' "stores are opened by kind (io/stores.h)" \
        $(sources "$tree"/{mpi,app})
    forbid_includes "$tree" mpi 'hdf5\.h$' "ranks move bytes through stores"
    forbid_includes "$tree" app "hdf5\\.h\$|$cuda" "commands use what the folders below offer"
    # One run as a library, and the check that it calls, leave the command line, signals and output to their caller.
    why="a run tells its caller, and prints nothing"
    for room in library verify; do # rooms inside them, too
        forbid_includes "$tree" app/$room '(argp|signal)\.h$' "a run knows no command line and no signals"
        forbid_calls "$tree" 'v?printf|puts|putchar|perror|signal|sigaction|raise|kill' "$why" \
            $(sources "$tree/app/$room")
        forbid_words "$tree" 'stdout|stderr' "$why" $(sources "$tree/app/$room")
    done
    forbid_calls "$tree" 'tsr_run_(multiply|plan)' "tessera_multiply and tessera_plan are the program's way, too" \
        $(sources "$tree/app" | grep -v '/app/library/')
    forbid_calls "$tree" 'H5[A-Z]{1,2}[a-z][A-Za-z0-9_]*' "HDF5 is called in io alone" \
        $(sources "$tree"/{kernels,mpi,app})
    # app/main.c ends the program, tsr_abort in mpi/ranks/abort.c the job, the handler in app/interrupt.c a process that
    # is asked to stop; kernels/device/cuda_emulation.cc stands in for a GPU in tests only.
    local ends='/(app/(main|interrupt)\.c|mpi/ranks/abort\.c|kernels/device/cuda_emulation\.cc)$'
    forbid_calls "$tree" '_?exit|_Exit|quick_exit|abort|MPI_Abort' "functions return a status; app/main.c exits" \
        $(sources "$tree"/{kernels,io,mpi,app} | grep -vE "$ends")
    forbid_calls "$tree" 'exit|_exit|quick_exit|abort' "only tsr_abort ends a job, with MPI_Abort" \
        "$tree"/mpi/ranks/abort.c
    forbid_calls "$tree" 'exit|_Exit|quick_exit|abort|MPI_Abort' "only the handler of stop signals ends the process" \
        "$tree"/app/interrupt.c
    find "$tree" \( -name 'build*' -o -name .git \) -prune -o \
        -type f \( -name mpi.h -o -name hdf5.h -o -name cuda.h -o -name nccl.h \) -print |
        sed 's|$|: hides a system header of that name|'
    grep -rn --include=CMakeLists.txt CMAKE_INCLUDE_CURRENT_DIR "$tree" | sed 's|$|: makes mpi/ an include folder|'
    for script in "$tree"/jobs/*.sbatch; do
        [ -e "$script" ] || continue
        [ "$(wc -l <"$script")" -lt 40 ] || echo "$script: 40 lines or more"
        grep -n '^#SBATCH.*--gpus-per-task' "$script" |
            sed "s|^|$script:|; s|\$|: hides the GPUs of a node from each other|"
    done
}

most_type_places=16
in_kernels='^kernels/gemm/[a-z0-9_]+/'
# type_places TREE: a line `FILE: DEFINITION` for each place that names an element type of the table in kernels/base:
# a function, a table, a macro. Whoever adds a type reads them. The folders of kernels come last: a kernel says in its
# descriptor what it multiplies, and a new type changes none of them.
type_places() {
    local names file room
    names=$(sed -nE 's/^ +X\(([A-Z0-9]+), [a-z][a-z0-9]*, [0-9].*/\1/p' "$1"/kernels/base/*.h 2>/dev/null |
        sort -u | paste -sd '|')
    [ -n "$names" ] || return 0
    for file in $(grep -lwsE "TSR_($names)" /dev/null $(sources "$1"/{kernels,io,mpi,app})); do
        room=${file#"$1"/}
        [[ $room != kernels/base/* ]] || continue
        code "$file" | awk -v file="$room" -v named="(^|[^A-Za-z0-9_])TSR_($names)([^A-Za-z0-9_]|\$)" '
            /^[A-Za-z_#]/ { head = $0; counted = 0 }
            $0 ~ named && !counted { print file ": " substr(head, 1, 100); counted = 1 }'
    done | awk -v kernels="$in_kernels" '$0 ~ kernels { last[++n] = $0; next } { print }
        END { for (i = 1; i <= n; i++) print last[i] }'
}

# check_types TREE MOST: a line where more places than that name a type, or where no table of types was found.
check_types() {
    local places count
    places=$(type_places "$1")
    [ -n "$places" ] || echo "no place names an element type: is the list in kernels/base/dtype.h read?"
    count=$(grep -vcE "$in_kernels" <<<"$places")
    [ "$count" -le "$2" ] || echo "$count places outside kernels/base name an element type, and $2 are allowed: ask" \
        "the table there (kernels/base/dtype.h); \`test_structure.sh . types\` lists them"
}

# check_root: the repository itself.
check_root() {
    [ -n "$(sources "$root"/{kernels,io,mpi,app})" ] || { echo "no sources under $root"; exit 1; }
    found=$(check_tree "$root"; check_types "$root" $most_type_places)
    [ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
}
[ "${2:-}" != tree ] || { check_root; exit; }
if [ "${2:-}" = types ]; then
    type_places "$root"
    type_places "$root" | awk -v kernels="$in_kernels" '{ sum[$0 ~ kernels]++; split($0, name, ":"); }
        !((name[1]) in seen) { seen[name[1]] = 1; files[$0 ~ kernels]++ }
        END { printf "%d places in %d files, and in kernels %d in %d\n", sum[0], files[0], sum[1], files[1] }'
    exit
fi

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
plant io/a.c '#include "mpi/ranks/grid.h"' 'includes mpi/ranks/grid.h'
plant io/a.c '#include "kernels/device/device.h"' 'includes kernels/device/device.h'
plant mpi/a.c '#include <hdf5.h>' 'includes hdf5.h'
plant io/files/a.c '#include <hdf5.h>' 'io/files/a.c includes hdf5.h'
plant io/output/a.c '#include <hdf5.h>' 'io/output/a.c includes hdf5.h'
plant io/a.c 'int f(const tsr_store_desc *d) { return d->hdf5.octave; }' 'io/a.c reads ->hdf5.'
plant app/a.c 'void f(void) { tsr_hdf5_open(); }' 'app/a.c calls.*tsr_hdf5_open'
plant mpi/a.c 'int f(void) { return H5Fclose(1); }' 'calls.*H5Fclose'
plant app/a.c '#include <nccl.h>' 'includes nccl.h'
plant app/a.c 'void f(void) { exit(2); }' 'app/a.c calls.*exit'
plant app/library/a.c '#include <argp.h>' 'app/library/a.c includes argp.h'
plant app/library/a.c '#include <signal.h>' 'includes signal.h'
plant app/library/a.c '#include "app/progress.h"' 'includes app/progress.h'
plant app/library/a.h '#include "app/options.h"' 'includes app/options.h'
plant app/commands/a.c '#include "app/library/run.h"' 'app/commands/a.c includes app/library/run.h'
plant app/commands/a.c 'void f(void) { tsr_run_multiply(0, 0, 0); }' 'app/commands/a.c calls.*tsr_run_multiply'
plant app/verify/a.c '#include "app/progress.h"' 'app/verify/a.c includes app/progress.h'
plant app/library/a.c 'void f(void) { printf("%d", 1); }' 'calls.*printf'
plant app/library/a.c 'void f(FILE *to) { to = stdout; }' 'app/library/a.c uses stdout'
plant app/library/a.c 'void f(void) { fprintf(stderr, "%d", 1); }' 'uses stderr'
plant app/library/a.c 'void f(void) { signal(2, 0); }' 'calls.*signal'
plant io/a.c 'void f(void) { abort (); }' 'io/a.c calls.*abort'
plant app/a.c 'void f(void) { MPI_Abort(0, 1); }' 'calls.*MPI_Abort'
plant mpi/ranks/abort.c 'void f(void) { exit(1); }' 'calls.*exit'
plant app/interrupt.c 'void f(void) { exit(1); }' 'calls.*exit'
plant mpi/mpi.h '' 'hides a system header'
plant tests/CMakeLists.txt 'set(CMAKE_INCLUDE_CURRENT_DIR ON)' 'include folder'
plant jobs/a.sbatch '#SBATCH --gpus-per-task=1' 'GPUs of a node'
plant jobs/a.sbatch "$(printf '#\\n%.0s' {1..40})" '40 lines or more'
plant kernels/new/a.c '#include "kernels/base/base.h"' 'kernels/new is not in the table of rooms'
# Types are named in three places, one of them twice, of which one is a kernel's; comments, texts, longer names and
# the table itself do not count.
tree=$(mktemp -d)
mkdir -p "$tree"/kernels/{base,gemm/cpu} "$tree/io"
printf '#define LIST(X) \\\n    X(F32, f32, 4) \\\n    X(U8, u8, 1)\nint one = TSR_F32;\n' >"$tree/kernels/base/a.h"
printf 'const int c = TSR_U8;\n' >"$tree/kernels/gemm/cpu/a.c"
printf '/* TSR_F32 */\nint a(void) {\n    f(TSR_F32);\n    return TSR_U8;\n}\n' >"$tree/io/a.c"
printf 'int b[] = {\n    TSR_U8,\n};\n' >>"$tree/io/a.c"
printf 'const char *t = "TSR_F32";\nint d = TSR_F32_LIKE;\n' >>"$tree/io/a.c"
found=$(type_places "$tree"; check_types "$tree" 2; check_types "$tree" 1)
rm "$tree/kernels/base/a.h"
without=$(check_types "$tree" 1)
rm -rf "$tree"
[[ $without = 'no place names an element type'* ]] || { echo "types without a table: '$without'"; exit 1; }
[[ $found = $'io/a.c: int a(void) {\nio/a.c: int b[] = {\nkernels/gemm/cpu/a.c: const int c = TSR_U8;\n2 places '* ]] ||
    { echo "places that name types: '$found'"; exit 1; }

# What each room must never include, whatever its line in the table comes to say: ROOM FORBIDDEN...
never='
kernels/base kernels/device kernels/gemm io mpi app tests
kernels/device kernels/fill kernels/gemm mpi/ranks
kernels/health kernels/device kernels/gemm io mpi
kernels/fill kernels/pack kernels/gemm
kernels/pack kernels/memory kernels/gemm
kernels/memory kernels/pack kernels/gemm
kernels/gemm kernels/gemm/hopper kernels/gemm/simt
kernels/gemm/cpu kernels/gemm/vendor
kernels/gemm/textbook kernels/gemm/cpu
kernels/gemm/vendor kernels/gemm/hopper
kernels/gemm/hopper kernels/gemm/simt kernels/gemm/vendor
kernels/gemm/simt kernels/gemm/textbook
kernels/gemm/residues kernels/gemm/exact kernels/gemm/auto
io kernels/device mpi/ranks app/commands
io/text io/hdf5 io/record io/output
io/files io/hdf5 io/describe io/output io/record
io/hdf5 io/output io/record
io/chunks io/output io/record
io/describe mpi/plan
io/record io/output
mpi/ranks mpi/plan mpi/transport
mpi/plan mpi/transport mpi/execute
mpi/schedule mpi/execute mpi/transport io
mpi/transport mpi/plan mpi/execute io
mpi/distribute mpi/execute mpi/transport kernels/device io
mpi/execute app kernels/gemm/hopper
app kernels/gemm/hopper app/library tests
app/library app app/commands app/bench app/library/api app/library/options app/library/pblas
app/library/api app app/commands app/library/pblas
app/library/options app app/commands app/bench app/library/api app/library/pblas
app/library/planning app app/commands app/bench app/library/api app/library/options
app/library/pblas app app/commands app/bench
app/verify app app/commands
app/report app app/commands
app/bench app/verify
app/commands kernels/gemm/simt app/library
'
tree=$(mktemp -d)
while read -r room forbidden; do
    [ -n "$room" ] || continue
    mkdir -p "$tree/$room"
    for other in $forbidden; do printf '#include "%s/a.h"\n' "$other"; done >"$tree/$room/a.c"
done <<<"$never"
found=$(check_rooms "$tree")
while read -r room forbidden; do
    for other in $forbidden; do
        grep -qF "$room/a.c includes $other/a.h: the table of rooms" <<<"$found" ||
            { echo "not detected: $room includes $other"; exit 1; }
    done
    [ -z "$room" ] || printf '#include "%s/a.h"\n#include <stdio.h>\n' "$room" >"$tree/$room/a.c"
done <<<"$never"
found=$(check_rooms "$tree")
[ -z "$found" ] || { echo "false alarm: $found"; exit 1; }
rm -rf "$tree"
for count in 16 17; do
    tree=$(mktemp -d)
    mkdir -p "$tree/io/text"
    for ((i = 0; i < count; i++)); do : >"$tree/io/text/$i.c"; done
    found=$(check_tree "$tree")
    rm -rf "$tree"
    [ "$found" = "$([ $count = 16 ] || echo 'io/text: 17 files: a room has 16 at most')" ] ||
        { echo "$count files in a room: '$found'"; exit 1; }
done

check_root
