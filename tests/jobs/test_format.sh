#!/usr/bin/env bash
# The form of what git tracks: C, C++ and CUDA as clang-format 14 writes them, one thing a statement there, and no line
# over 120 columns there, in Python, shell and CMake. First a check of the check: planted faults have to be found.
# Usage: test_format.sh REPOSITORY [FILE...]     only these files, as the hook of .githooks does. Exit code 77: skipped.
set -u
root=$1
shift
version=14
clang_format=$(command -v clang-format-$version || command -v clang-format)

# too_long FILE...: a line for each line of more than 120 characters. awk of Debian counts bytes, so Perl does it.
too_long() {
    perl -CSD -ne 'chomp; print "$ARGV:$.: ", length, " columns, 120 at most\n" if length > 120; close ARGV if eof' "$@"
}

# unformatted FILE...: what clang-format would change.
unformatted() { "$clang_format" --style=file --dry-run -Werror "$@" 2>&1 | grep -E 'error:'; }

# crowded FILE...: commas between statements, and declarations of too much.
crowded() { "${TSR_PYTHON:-python3}" "$root/tests/jobs/statements.py" "$@"; }

# Without git, as in a tarball, the files that are there.
cd "$root" || exit 1
files=("$@")
if [ $# = 0 ]; then
    mapfile -t files < <({ git ls-files -co --exclude-standard 2>/dev/null ||
        find . -name 'build*' -prune -o -type f -print; } | sort -u)
fi
code=() text=()
for file in "${files[@]}"; do
    [ -f "$file" ] || continue # deleted, not committed yet
    case "$file" in
        *.c | *.h | *.cu | *.cc) code+=("$file") text+=("$file") ;;
        *.py | *.sh | *.sbatch | *.cmake | */CMakeLists.txt | CMakeLists.txt | .githooks/*) text+=("$file") ;;
    esac
done
[ $# != 0 ] || [ ${#code[@]} -gt 100 ] || { echo "only ${#code[@]} sources under $root"; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp .clang-format "$scratch"
umlauts=$(printf 'ü%.0s' {1..118})
printf '# %s\n' "$umlauts" >"$scratch/fits.py"
printf '# %sü\n' "$umlauts" >"$scratch/long.py"
[ -z "$(too_long "$scratch/fits.py")" ] || { echo "a line of 120 characters is called too long"; exit 1; }
[ -n "$(too_long "$scratch/long.py")" ] || { echo "a line of 121 characters was not noticed"; exit 1; }
found=()
[ ${#text[@]} = 0 ] || mapfile -t -O ${#found[@]} found < <(too_long "${text[@]}")

without=()
if command -v "${TSR_PYTHON:-python3}" >/dev/null; then
    # A line that is wrong ends in a comment with the word.
    cat >"$scratch/crowded.cu" <<'END'
#define PAIR(a, b) (a = 1, b = 2)
enum { RED = 1, GREEN = 2, BLUE = 3 };
typedef struct { int m, n, k, ld; } shape;
static int five, names, in, one, line; // WRONG
extern int tables, of, another, file, here;
struct { int a, b; } mine = {1, 2}, other = {3, 4};
template <typename T, int N> struct Walk {
    explicit Walk(int block) : tile(block), share(block) {}
    static constexpr int M = 1, K = 2, L = 3; // WRONG
    int tile, share;
};
int f(int a, int b, shape *s) {
    int c[3] = {a = 1, b = 2, 3}, d = ',', e; /* x = 1, y = 2; */
    int i = a, j = b < 3 ? 1 : 2, k = f(a, b, s); // WRONG
    const char *text = "a = 1, b = 2;", *more;
    for (i = 0, j = 9; i < j; i++, j--) c[i] = Walk<int, 3>(i).tile;
    a = 1, b = 2; // WRONG
    if (a) s->m = 1, s->n = 2; // WRONG
    else f(a, b, s), c[0]++; // WRONG
    switch (a) {
    case 1: (void)a, (void)b; break; // WRONG
    case 2: *s = (shape){.m = 1, .n = 2}; break;
    }
    auto add = [&](int x, int y) { a += x, b += y; }; // WRONG
    kernel<<<dim3(1, 2), 256, 0, stream>>>(a, b);
    while (a = f(a, b, s), a > 3) b--; // WRONG
    if (b) return a = 1, 0; // WRONG
    return (b = 2, a); // WRONG
}
END
    planted=$(grep -n WRONG "$scratch/crowded.cu" | cut -d: -f1)
    noticed=$(crowded "$scratch/crowded.cu" | cut -d: -f2)
    [ "$planted" = "$noticed" ] ||
        { echo "crowded statements are in lines" $planted "and were found in" $noticed; exit 1; }
    [ ${#code[@]} = 0 ] || mapfile -t -O ${#found[@]} found < <(crowded "${code[@]}")
else
    without+=("python3")
fi

said=$("${clang_format:-false}" --version 2>/dev/null)
if [[ "$said" == *"version $version."* ]]; then
    printf 'int f(int a) { return a; }\n' >"$scratch/good.c"
    printf 'int  f( int a ){return a ;}\n' >"$scratch/bad.c"
    [ -z "$(unformatted "$scratch/good.c")" ] || { echo "a formatted file is called unformatted"; exit 1; }
    [ -n "$(unformatted "$scratch/bad.c")" ] || { echo "an unformatted file was not noticed"; exit 1; }
    [ ${#code[@]} = 0 ] || mapfile -t -O ${#found[@]} found < <(unformatted "${code[@]}")
else
    without+=("clang-format $version")
fi
[ ${#found[@]} = 0 ] || { printf '%s\n' "${found[@]}"; exit 1; }
[ ${#without[@]} = 0 ] || { echo "skipped: no ${without[*]}"; exit 77; }
