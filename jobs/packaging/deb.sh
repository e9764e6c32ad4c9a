#!/usr/bin/env bash
# Makes a Debian package of this Tessera. Where something is missing to build it, jobs/setup.sh installs that.
# Usage: jobs/packaging/deb.sh FOLDER [CMAKE_OPTION...]      FOLDER gets tessera_VERSION_ARCHITECTURE.deb
# TSR_BUILD: where it is built, build-deb by default.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
[ $# -ge 1 ] || { printf 'usage: jobs/packaging/deb.sh FOLDER [CMAKE_OPTION...]\n' >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1")
shift
cd "$TSR_HOME"
build=${TSR_BUILD:-build-deb}
tsr_have dpkg-shlibdeps file || tsr_die "dpkg-shlibdeps or file is missing: apt-get install dpkg-dev file"
tsr_build "$build" -DCMAKE_INSTALL_PREFIX=/usr -DBUILD_TESTING=OFF "$@"
tsr_logged "$build/cpack.log" cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder" ||
    tsr_die "no package (all of it: $build/cpack.log)"
rm -rf "$folder/_CPack_Packages"
realpath "$folder"/tessera_*.deb
