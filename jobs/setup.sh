#!/usr/bin/env bash
# Makes build/tessera: installs what is missing (Debian, Ubuntu), configures, compiles. Run again, it compiles what
# changed.
# Usage: jobs/setup.sh [--tests]      --tests: also what the tests need (Python with h5py and numpy, xarray, PyTables,
# Octave, Chromium, Slurm, munge, clang, clang-format, clang-tidy, zsh, fish, help2man, man)
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$TSR_HOME"
build=build
with_tests=no
found_more=no
case "${1:-}" in
    "") ;;
    --tests) with_tests=yes ;;
    *) printf 'usage: jobs/setup.sh [--tests]\n' >&2; exit 2 ;;
esac
[ $with_tests = no ] || [ -z "${TSR_PYTHON:-}" ] || tsr_python >/dev/null || tsr_die "$(tsr_no_python)"

build_packages=(g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libopenblas-dev
    zlib1g-dev libdeflate-dev liblzf-dev libzstd-dev liblz4-dev libbz2-dev libblosc-dev)
python_packages=(python3-h5py python3-numpy hdf5-tools)
library_packages=(libscalapack-openmpi-dev gfortran python3-mpi4py python3-pip python3-setuptools)
other_packages=(python3-xarray python3-netcdf4 python3-h5netcdf python3-tables octave)
browser_packages=(chromium chromium-driver python3-selenium)
slurm_packages=(slurm-wlm munge)
format_packages=(clang-format clang-tidy git)
fuzz_packages=(clang libclang-rt-14-dev)
shell_packages=(zsh fish help2man man-db dpkg-dev file)

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

# A machine that can configure has what it needs, however it got it; only else packages are installed.
if ! tsr_configured "$build"; then
    if ! tsr_have cmake c++ mpicc mpirun || ! tsr_configure "$build"; then
        install_packages "${build_packages[@]}" || tsr_die "something Tessera needs is missing on this machine"
        tsr_configure "$build" || tsr_die "CMake found no way to build (all of it: $build/configure.log)"
    fi
    grep '^-- tessera:' "$build/configure.log"
fi

# Python is needed by most tests, Slurm, clang-tidy and other programs that read C by one, clang-format by two: these
# may be left out.
if [ $with_tests = yes ]; then
    tsr_python >/dev/null || install_packages "${python_packages[@]}" || true
    tsr_python >/dev/null || tsr_die "$(tsr_no_python)"
    # Debian's packages are for Debian's Python alone.
    if [ "$(tsr_python)" = /usr/bin/python3 ] &&
        ! { tsr_have octave-cli && /usr/bin/python3 -c 'import xarray, netCDF4, h5netcdf, tables' 2>/dev/null; }; then
        install_packages "${other_packages[@]}" ||
            printf 'setup: going on without; C is not opened with xarray, PyTables or Octave\n' >&2
    fi
    if [ "$(tsr_python)" = /usr/bin/python3 ] &&
        ! { tsr_have chromium chromedriver && /usr/bin/python3 -c 'import selenium' 2>/dev/null; }; then
        install_packages "${browser_packages[@]}" ||
            printf 'setup: going on without; no report is opened in a browser\n' >&2
    fi
    if ! tsr_have_slurm; then
        if ! install_packages "${slurm_packages[@]}"; then
            printf 'setup: going on without; the test that needs Slurm is left out\n' >&2
        else
            tsr_have_slurm || tsr_die "Slurm is not found, although ${slurm_packages[*]} are installed"
        fi
    fi
    if ! { [ -n "$(find /usr/lib -name 'libscalapack*.so' -print -quit)" ] && tsr_have mpif90 gfortran &&
        /usr/bin/python3 -c 'import mpi4py, pip, setuptools' 2>/dev/null; }; then
        found_more=yes
        install_packages "${library_packages[@]}" ||
            printf 'setup: going on without; p?gemm is not compared with ScaLAPACK, the Python package not tried\n' >&2
    fi
    if ! tsr_have zsh fish help2man man dpkg-shlibdeps file; then
        found_more=yes
        install_packages "${shell_packages[@]}" ||
            printf 'setup: going on without; completion in zsh and fish, man pages and the package are not tried\n' >&2
    fi
    tsr_have clang-format clang-tidy git || install_packages "${format_packages[@]}" ||
        printf 'setup: going on without; tests of the form of the sources are left out\n' >&2
    { tsr_have clang clang++ && [ -n "$(find /usr/lib -name 'libclang_rt.fuzzer*.a' -print -quit)" ]; } ||
        install_packages "${fuzz_packages[@]}" ||
        printf 'setup: going on without; files of others are not made by libFuzzer\n' >&2
    # CMake looks for these, too: again, now that they are there.
    [ $found_more = no ] || tsr_logged "$build/configure.log" cmake "$build" || tsr_die "see $build/configure.log"
fi

tsr_build "$build"
printf '%s is ready\n' "$("$TSR_BIN" --version | head -n 1)"
