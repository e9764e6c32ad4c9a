#!/usr/bin/env bash
# Makes build/tessera: installs what is missing (Debian, Ubuntu), configures, compiles. Run again, it compiles what changed.
# Usage: jobs/setup.sh [--tests]      --tests: also what the tests need (Python with h5py and numpy, Slurm, munge)
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$TSR_HOME"
build=build
with_tests=no
case "${1:-}" in
    "") ;;
    --tests) with_tests=yes ;;
    *) printf 'usage: jobs/setup.sh [--tests]\n' >&2; exit 2 ;;
esac

build_packages=(g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libhdf5-openmpi-dev zlib1g-dev libopenblas-dev)
test_packages=(python3-h5py python3-numpy hdf5-tools slurm-wlm munge)

# apt-get install, as root or through sudo; fails with a message that names the packages.
install_packages() {
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        printf 'setup: this is not a Debian or Ubuntu: install what these packages hold: %s\n' "$*" >&2
        return 1
    fi
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            printf 'setup: neither root nor sudo: ask an administrator to run: apt-get install %s\n' "$*" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    tsr_run "${as_root[@]}" apt-get -q -o Acquire::http::Timeout=20 update &&
        tsr_run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
}

have() { # every command named
    local name
    for name in "$@"; do command -v "$name" >/dev/null || return 1; done
}

have_slurm() { PATH=$PATH:/usr/sbin have slurmctld slurmd munged sbatch; }

configure() {
    local generator=()
    if have ninja; then generator=(-G Ninja); fi
    mkdir -p "$build"
    tsr_logged "$build/configure.log" cmake -S . -B "$build" "${generator[@]}"
}

# A machine that can configure has what it needs, however it got it; only else packages are installed.
if [ ! -f "$build/build.ninja" ] && [ ! -f "$build/Makefile" ]; then
    if ! have cmake c++ mpicc mpirun || ! configure; then
        rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles" # what was not found is remembered there
        install_packages "${build_packages[@]}" || tsr_die "something Tessera needs is missing on this machine"
        configure || tsr_die "CMake found no way to build (all of it: $build/configure.log)"
    fi
    grep '^-- tessera:' "$build/configure.log"
fi

if [ $with_tests = yes ] && ! { tsr_python && have_slurm; } >/dev/null; then
    install_packages "${test_packages[@]}" || printf 'setup: going on without; tests that need Slurm are skipped\n' >&2
fi

tsr_logged "$build/build.log" cmake --build "$build" || tsr_die "the build failed (all of it: $build/build.log)"
printf '%s is ready\n' "$("$TSR_BIN" --version | head -n 1)"
