#!/usr/bin/env bash
# Sets up what is missing and runs every test: the unit tests and broken files under AddressSanitizer and UBSan
# (build-asan/), then all of them in the ordinary build (build/). What takes a minute or so runs in one of them: files
# as HDF5 has them and plans with sanitizers; the choice of grids and the levels of `exact`, arithmetic that takes them
# three times as long, without. What runs in the emulation of CUDA has sanitizers in the ordinary build, too: it is
# built and runs there alone, beside programs that wait.
# The last line counts the tests that ran, and those left out by reason, such as no GPU.
# With --long: also what is left out of tests that would take minutes: cases alike, and how far clang-tidy looks.
# With --all-faults instead: every failure that tests/faults can inject, and 3000 broken files, for hours; the tables go
# to docs/reliability.md. And a read that takes three minutes. What follows goes to tests/faults/test_injection.py and
# test_device.py, such as --ranks 1.
. "$(dirname "${BASH_SOURCE[0]}")/../jobs/common.sh"
cd "$TSR_HOME"
all_faults=no
case "${1:-}" in
    "") ;;
    --long) export TSR_LONG=1 ;;
    --all-faults) all_faults=yes && shift ;;
    *) printf 'usage: tests/run.sh [--long | --all-faults [OPTION...]]\n' >&2; exit 2 ;;
esac
jobs/setup.sh --tests
TSR_PYTHON=$(tsr_python) || tsr_die "$(tsr_no_python)"
export TSR_PYTHON
if grep -qiE '^BUILD_TESTING:[A-Z]+=(OFF|NO|FALSE|0)$' build/CMakeCache.txt; then # configured by hand, without tests
    tsr_logged build/configure.log cmake -DBUILD_TESTING=ON build || tsr_die "cannot configure: see build/configure.log"
    tsr_build build
fi

# Several small MPI jobs share the cores: let ranks that wait yield, and bind none of them.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
# Looking for networks takes MPI longer than most of them run.
export OMPI_MCA_pml=ob1
export LSAN_OPTIONS=suppressions=$TSR_HOME/tests/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:halt_on_error=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}

# run_tests FOLDER OPTION...: fails when a test failed. What ctest prints is kept for the summary.
run_tests() {
    local folder=$1
    shift
    rm -f "$folder/tests.log" "$folder/Testing/Temporary/LastTest.log"
    tsr_show ctest --output-on-failure --no-tests=error "$@"
    (cd "$folder" && ctest --output-on-failure --no-tests=error "$@" 2>&1 | tee tests.log)
}

tsr_build_target sanitized_tests build-asan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DCMAKE_CXX_FLAGS=-O1 \
    -DCMAKE_C_FLAGS_DEBUG=-g1 -DCMAKE_CXX_FLAGS_DEBUG=-g1 -DTSR_CUDA=OFF -DTSR_SANITIZE=address,undefined
failed=0
if [ $all_faults = yes ]; then
    tsr_run tests/python.sh tests/faults/test_injection.py "$PWD/build/tessera" mpirun \
        "$PWD/build/tests/libfault_injector.so" --all --report "$@" || failed=1
    tsr_run tests/python.sh tests/faults/test_device.py "$PWD/build/tests/tessera_faults" mpirun \
        "$PWD/build/tessera-describe" "$PWD/build/tests/fakes" --all --report "$@" || failed=1
    tsr_run tests/python.sh tests/faults/test_corpus.py "$PWD/build-asan/tessera" mpirun --count 3000 --report ||
        failed=1
    TSR_THREE_MINUTES=1 ctest --test-dir build -R '^cli_stalls$' --output-on-failure --timeout 600 || failed=1
    exit $failed
fi
run_tests build-asan -j3 -L '^(unit|sanitized)$' -E '^test_(grid_choice|exact_levels)$' || failed=1
# Programs are tested while others wait: for processes that start and end, and for the disk.
run_tests build -j5 -E '^(io_hdf5_files|test_plan)$' || failed=1
tests/python.sh tests/summary.py build-asan build || failed=1
exit $failed
