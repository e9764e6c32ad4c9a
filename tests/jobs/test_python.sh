#!/usr/bin/env bash
# Tests find their Python when they run: also where the first python3 in PATH is of no use, and however early CMake ran.
# Usage: test_python.sh REPOSITORY BUILD CTEST
set -u
root=$1 build=$2 ctest=$3
unset TSR_PYTHON TSR_HOME
die() {
    printf 'test_python.sh: %s\n' "$*"
    exit 1
}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tessera-python.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# decoy NAME CODE: a folder whose python3 and python run CODE.
decoy() {
    mkdir "$scratch/$1"
    printf '#!/bin/sh\n%s\n' "$2" >"$scratch/$1/python3"
    chmod +x "$scratch/$1/python3"
    cp "$scratch/$1/python3" "$scratch/$1/python"
}
decoy broken 'exit 1'
decoy bare 'case "$*" in *h5py*|*numpy*) exit 1 ;; esac; exit 0'
decoy half 'case "$*" in *numpy*) exit 1 ;; esac; exit 0' # as a Python that has h5py and not numpy

for name in broken bare half; do
    found=$(PATH=$scratch/$name:$PATH "$root/tests/python.sh" -c 'import h5py, numpy, sys; print(sys.executable)') ||
        die "with a $name python3 first in PATH no Python is found"
    [ -x "$found" ] || die "with a $name python3 first in PATH: '$found'"
    # One that was named is taken, or refused by name: never another.
    said=$(TSR_PYTHON=$scratch/$name/python3 "$root/tests/python.sh" -c '' 2>&1) && die "TSR_PYTHON=$name was taken"
    case $said in *"TSR_PYTHON=$scratch/$name/python3 has no h5py"*) ;; *) die "TSR_PYTHON=$name: '$said'" ;; esac
    # A set-up that cannot give the tests their Python fails before it does anything.
    said=$(TSR_PYTHON=$scratch/$name/python3 "$root/jobs/setup.sh" --tests 2>&1) && die "setup.sh passed with $name"
    case $said in *"TSR_PYTHON="*) ;; *) die "jobs/setup.sh --tests: '$said'" ;; esac
done
ln -s "$found" "$scratch/my python" # a name with a blank in it, too
said=$(TSR_PYTHON="$scratch/my python" "$root/tests/python.sh" -c 'print("taken")')
[ "$said" = taken ] || die "the Python named by TSR_PYTHON is not taken: '$said'"
"$root/tests/python.sh" -c 'raise SystemExit(9)'
[ $? = 9 ] || die "the exit code is not the program's"

# What is registered, and how it starts.
# Not from the build itself, whose log ctest would empty.
printf 'subdirs("%s")\n' "$build" >"$scratch/CTestTestfile.cmake"
(cd "$scratch" && "$ctest" --show-only=json-v1) >"$scratch/tests.json" || die "ctest lists nothing in $build"
"$root/tests/python.sh" - "$scratch/tests.json" <<'END' || exit 1
import json, os, sys

with open(sys.argv[1]) as file:
    tests = {test["name"]: test.get("command", []) for test in json.load(file)["tests"]}
for name in ("io_hdf5_files", "io_hdf5_output", "cli_multiply", "report", "slurm", "cli_gpu", "test_gemm_contract_gpu"):
    assert name in tests, f"{name} is not registered"
for name, command in tests.items():
    words = [os.path.basename(word) for word in command]
    if any(word.endswith(".py") for word in words) or words[:1] and words[0].startswith("python"):
        assert words[0] == "python.sh", f"{name} does not look for its Python when it runs: {command}"
END

found=$(grep -rnE 'python3|find_package\(Python' \
    --include=CMakeLists.txt --include='*.cmake' "$root"/{CMakeLists.txt,tests})
[ -z "$found" ] || die "CMake chooses a Python: $found"
