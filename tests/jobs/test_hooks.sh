#!/usr/bin/env bash
# .githooks/pre-commit in a scratch repository with the files of this one: it refuses a badly formatted file, a
# forbidden include and, where there is a build, what clang-tidy finds. It looks at what is staged, and lets a good
# commit pass. Usage: test_hooks.sh REPOSITORY. Exit code 77: skipped.
set -u
root=$1
command -v git >/dev/null || { echo "skipped: no git"; exit 77; }
said=$("$(command -v clang-format-14 || command -v clang-format || echo false)" --version)
[[ "$said" == *"version 14."* ]] || { echo "skipped: no clang-format 14"; exit 77; }
git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "skipped: no git checkout"; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
folders=(.clang-format .clang-tidy .githooks CMakeLists.txt app io jobs kernels mpi tests/jobs tests/CMakeLists.txt)
(cd "$root" && tar --exclude=__pycache__ -cf - "${folders[@]}") | tar -xf - -C "$scratch" || exit 1
cd "$scratch" || exit 1
git init -q && git add -A && git commit -qm "the tree" && git config core.hooksPath .githooks || exit 1

# refused WHAT PATTERN: a commit of what is staged fails and says PATTERN.
refused() {
    git commit -qm "$1" >out 2>&1 && { echo "committed: $1"; exit 1; }
    grep -qE "$2" out || { echo "$1: refused, but without '$2':"; cat out; exit 1; }
}
printf 'int  f( int a ){return a ;}\n' >app/bad.c
git add app/bad.c
refused "a badly formatted file" '^app/bad\.c:1:.*clang-format'
printf 'int f(int a) { return a; }\n' >app/bad.c
refused "a badly formatted file, mended in the working tree alone" '^app/bad\.c:1:.*clang-format'
printf '#include "mpi/execute/execute.h"\n' >io/text/bad.c
git add app/bad.c io/text/bad.c
refused "a forbidden include" 'io/text/bad\.c includes mpi/execute/execute\.h'
git rm -qf io/text/bad.c
printf 'int  f( int a ){return a ;}\n' >app/bad.c # not staged, so that it does not count
git commit -qm "a good file" >out 2>&1 || { echo "a good commit is refused:"; cat out; exit 1; }
[ "$(git show HEAD:app/bad.c)" = 'int f(int a) { return a; }' ] || { echo "another file was committed"; exit 1; }

clang-tidy-14 --version >/dev/null 2>&1 || exit 0
printf 'double f(int a);\ndouble f(int a) { return (double)(a / 2); }\n' >app/bad.c
git add app/bad.c
mkdir build
find "$PWD" -name '*.c' | sed "s|.*|{\"directory\": \"$PWD\", \"file\": \"&\", \"command\": \"cc -c &\"}|; 2,\$s|^|,|" |
    { echo '['; cat; echo ']'; } >build/compile_commands.json
refused "what clang-tidy finds" '^app/bad\.c:2:.*bugprone-integer-division'
