#!/usr/bin/env bash
# Sets up what is missing and runs every test: the unit tests under AddressSanitizer and UBSan (build-asan/), then all of
# them in the ordinary build (build/). GPU tests run where nvidia-smi shows a GPU, the Slurm test where Slurm is.
. "$(dirname "${BASH_SOURCE[0]}")/../jobs/common.sh"
cd "$TSR_HOME"
jobs/setup.sh --tests
if python=$(tsr_python); then export TSR_PYTHON=$python; fi

# Several small MPI jobs share the cores: let ranks that wait yield, and bind none of them.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
# Looking for networks takes MPI longer than most of them run.
export OMPI_MCA_pml=ob1
export LSAN_OPTIONS=suppressions=$TSR_HOME/tests/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:halt_on_error=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}

generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
if [ ! -f build-asan/build.ninja ] && [ ! -f build-asan/Makefile ]; then
    mkdir -p build-asan
    tsr_logged build-asan/configure.log cmake -S . -B build-asan "${generator[@]}" -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS=-O1 -DCMAKE_CXX_FLAGS=-O1 -DTSR_CUDA=OFF -DTSR_SANITIZE=address,undefined
fi
tsr_logged build-asan/build.log cmake --build build-asan || tsr_die "the sanitizer build failed (all of it: build-asan/build.log)"

tsr_ctest() { tsr_run ctest --test-dir "$1" --output-on-failure -j2 --no-tests=error "${@:2}"; }
tsr_ctest build-asan -L '^unit$'
if nvidia-smi >/dev/null 2>&1; then
    tsr_ctest build
else
    printf 'tests: no GPU here, tests labelled gpu are left out\n'
    tsr_ctest build -LE '^gpu$'
fi
