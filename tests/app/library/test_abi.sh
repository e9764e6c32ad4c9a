#!/usr/bin/env bash
# What programs that were linked with libtessera rely on: the symbols that it shows, and where the fields of its public
# structs lie. Both may only grow at their ends; symbols.txt and layout.txt beside this script have what was there.
# Usage: test_abi.sh FOLDER TESSERA_H LIBTESSERA_SO
set -u
folder=$1 header=$2 library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$work/symbols.txt"

# Fields of a struct, from its comments-free text in the header.
gcc -fpreprocessed -dD -E -P "$header" >"$work/plain.h" 2>/dev/null
{
    printf '#include <stdio.h>\n#include "%s"\nint main(void) {\n' "$header"
    for struct in tessera_open_options tessera_multiply_options tessera_progress tessera_matrix; do
        awk -v name="$struct" '
            /^typedef struct ([a-z_]+ )?\{/ { text = ""; inside = 1; next }
            inside && /^\}/ { inside = 0; if ($0 ~ "^} *" name ";") print text; next }
            inside { text = text $0 "\n" }' "$work/plain.h" | tr '\n' ' ' | tr ';' '\n' |
            sed -E 's/\(\*([a-z_]+)\)\(.*\)/\1/; s/^ *(const )?(struct )?[A-Za-z0-9_]+ //' |
            sed -E 's/\[[0-9]+\]//g; s/\*//g; s/ //g' |
            tr ',' '\n' | sed '/^$/d' |
            while read -r field; do
                printf '    printf("%s.%s %%zu\\n", offsetof(%s, %s));\n' "$struct" "$field" "$struct" \
                    "$field"
            done
        printf '    printf("%s %%zu\\n", sizeof(%s));\n' "$struct" "$struct"
    done
    printf '    return 0;\n}\n'
} >"$work/layout.c"
mpicc -o "$work/layout" "$work/layout.c" || exit 1
"$work/layout" >"$work/layout.txt"
printf '#include "%s"\nint main() { return tessera_multiply_defaults().size == 0; }\n' "$header" >"$work/plus.cc"
failed=0
if ! mpicxx -DOMPI_SKIP_MPICXX -fsyntax-only -Wall -Wextra -Werror "$work/plus.cc"; then
    echo "C++ does not take tessera.h"
    failed=1
fi
for file in symbols.txt layout.txt; do
    [ "$(wc -l <"$work/$file")" -gt 20 ] || { echo "$file: only $(wc -l <"$work/$file") lines"; failed=1; }
    if ! diff "$folder/$file" "$work/$file"; then
        echo "$file differs from what is kept: append, never change; then keep the new one"
        failed=1
    fi
done
exit $failed
