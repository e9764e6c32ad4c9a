#!/usr/bin/env bash
# From nothing to a verified product: sets up, generates A (2000 x 3000) and B (3000 x 1500), multiplies them on two MPI
# ranks (GPUs where there are some, else the CPU), verifies C. Run again, it only does what is left.
# Usage: jobs/quickstart.sh [FOLDER]     FOLDER for the files: build/quickstart. With TSR_BIN set, nothing is built.
program_given=${TSR_BIN:-}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$TSR_HOME"
data=${1:-build/quickstart}
tessera=${program_given:-build/tessera}
[ -n "$program_given" ] || jobs/setup.sh
mkdir -p "$data"

# left OUTPUT INPUT...: OUTPUT is missing or older than an input.
left() {
    local output=$1 input
    shift
    if [ ! -e "$output" ]; then return 0; fi
    for input in "$@"; do
        if [ "$input" -nt "$output" ]; then return 0; fi
    done
    printf '%s is there already\n' "$output"
    return 1
}

if left "$data/A.h5"; then
    tsr_mpirun 2 "$tessera" generate -o "$data/A.h5:/A" --shape 2000x3000 --type f32 --distribution normal --seed 1
fi
if left "$data/B.h5"; then
    tsr_mpirun 2 "$tessera" generate -o "$data/B.h5:/B" --shape 3000x1500 --type f32 --distribution normal --seed 2
fi
if left "$data/C.h5" "$data/A.h5" "$data/B.h5"; then
    tsr_mpirun 2 "$tessera" multiply "$data/A.h5" "$data/B.h5" -o "$data/C.h5:/C" --log "$data/log.json" --force
fi
if left "$data/verified.txt" "$data/C.h5"; then
    tsr_run "$tessera" verify "$data/A.h5" "$data/B.h5" "$data/C.h5:/C" | tee "$data/verified.tmp"
    mv "$data/verified.tmp" "$data/verified.txt"
else
    cat "$data/verified.txt"
fi

cat <<END

Result  $data/C.h5, dataset /C: the product of $data/A.h5 and $data/B.h5
Log     $data/log.json, and the same in $data/C.h5 under /C.run
Next    $tessera info $data/C.h5
        $tessera --help
END
