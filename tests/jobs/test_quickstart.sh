#!/usr/bin/env bash
# jobs/quickstart.sh with a program that is built already: the first run makes a product that numpy agrees with, the
# second starts nothing, and a newer input makes the product again. Usage: test_quickstart.sh REPOSITORY PROGRAM
set -u
export TSR_HOME=$1 TSR_BIN=$2
. "$TSR_HOME/jobs/common.sh"
set +e
python=$(tsr_python) || tsr_die "$(tsr_no_python)"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tessera-quickstart.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

quickstart() { "$TSR_HOME/jobs/quickstart.sh" "$scratch" >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }; }
started() { grep -c '^+ ' "$scratch/out"; } # commands run

quickstart
[ "$(started)" = 4 ] || { cat "$scratch/out"; tsr_die "the first run started $(started) commands, not 4"; }
grep -q '^+ mpirun -n 2 .*tessera multiply' "$scratch/out" || tsr_die "no multiplication on 2 ranks"
for name in C.h5 log.json; do
    [ -s "$scratch/$name" ] || tsr_die "no $name"
    grep -qF "$scratch/$name" "$scratch/out" || tsr_die "does not say where $name is"
done
"$python" - "$scratch" <<'END' || tsr_die "numpy does not agree with C"
import sys, h5py, numpy as np
read = lambda name: h5py.File(f"{sys.argv[1]}/{name}.h5")[name][:].astype(np.float64)
a, b, c = read("A"), read("B"), read("C")
assert a.shape == (2000, 3000) and b.shape == (3000, 1500) and c.shape == (2000, 1500)
worst = np.max(np.abs(a @ b - c) / (np.abs(a) @ np.abs(b)))
assert worst < 3000 * 2.0**-24, worst
END

quickstart
[ "$(started)" = 0 ] || { cat "$scratch/out"; tsr_die "the second run started $(started) commands"; }
touch "$scratch/A.h5"
quickstart
[ "$(started)" = 2 ] ||
    { cat "$scratch/out"; tsr_die "with a newer A, $(started) commands ran, not multiply and verify"; }
