#!/usr/bin/env bash
# cmake/commit.cmake, which runs at every build: the header says the commit as it is now, is written only when that
# changed, and what is no checkout of ours (a tarball, unpacked inside another project or not) says so. Usage:
# test_commit.sh REPOSITORY
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_CEILING_DIRECTORIES=$work
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# expect SOURCE TEXT: the header of SOURCE after a build's step
expect() {
    cmake -DSOURCE="$1" -DOUTPUT="$work/commit.h" -P "$root/cmake/commit.cmake"
    [ "$(cat "$work/commit.h")" = "#define TSR_COMMIT \"$2\"" ] ||
        { echo "expected '$2', got: $(cat "$work/commit.h")"; exit 1; }
}

project=$work/outer/project
mkdir -p "$project/cmake"
cp "$root/cmake/commit.txt" "$project/cmake"
expect "$project" unknown
touch -d '2001-01-01' "$work/commit.h"
expect "$project" unknown
[ "$(stat -c %Y "$work/commit.h")" = "$(date -d 2001-01-01 +%s)" ] ||
    { echo "the header was written again, though nothing changed"; exit 1; }

if command -v git >/dev/null; then
    git -C "$work/outer" init -q
    git -C "$work/outer" commit -q --allow-empty -m outer
    expect "$project" unknown # not of our own
    git -C "$project" init -q
    echo 'cmake/commit.txt export-subst' >"$project/.gitattributes"
    git -C "$project" add .
    git -C "$project" commit -q -m one
    expect "$project" "$(git -C "$project" rev-parse --short=12 HEAD)"
    ln -s "$project" "$work/link"
    expect "$work/link" "$(git -C "$project" rev-parse --short=12 HEAD)"
    git -C "$project" commit -q --allow-empty -m two
    expect "$project" "$(git -C "$project" rev-parse --short=12 HEAD)"
    touch "$project/new"
    expect "$project" "$(git -C "$project" rev-parse --short=12 HEAD)" # a file that git was not told of
    echo more >>"$project/.gitattributes"
    expect "$project" "$(git -C "$project" rev-parse --short=12 HEAD) and changes to it"
    mkdir "$work/archive"
    git -C "$project" archive HEAD | tar -x -C "$work/archive"
    expect "$work/archive" "$(git -C "$project" rev-parse --short=12 HEAD)"
    git -C "$work/archive" init -q # a packager's own history
    git -C "$work/archive" add .
    git -C "$work/archive" commit -q -m packaged
    expect "$work/archive" "$(git -C "$project" rev-parse --short=12 HEAD)"
    echo 0123456789 >"$work/archive/cmake/commit.txt" # written by hand
    expect "$work/archive" 0123456789
fi
