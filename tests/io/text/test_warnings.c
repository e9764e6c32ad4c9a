/* Warnings: said once, one line each, kept for the record, and silent on ranks that do not speak. */
#define _GNU_SOURCE
#include "io/text/warnings.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static tsr_warnings warnings;

static size_t lines(const char *text) {
    size_t count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

int main(void) {
    char *said = NULL, longest[600];
    size_t bytes;
    warnings.to = open_memstream(&said, &bytes);
    CHECK(warnings.to != NULL, "no memory");
    tsr_warn(&warnings, "%d ranks share a GPU", 2);
    tsr_warn(&warnings, "%d ranks share a GPU", 2);
    tsr_warn(&warnings, "2 ranks"); /* the beginning of another one is not that one */
    tsr_warn(&warnings, "2 ranks share a GPU and more");
    tsr_warn(&warnings, "of a file named %s", "a\nb\rc\x1b[2J");
    CHECK(strcmp(said, "tessera: warning: 2 ranks share a GPU\ntessera: warning: 2 ranks\ntessera: warning: 2 ranks "
                       "share a GPU and more\n"
                       "tessera: warning: of a file named a b c\\x1b[2J\n") == 0,
          "said: %s", said);
    CHECK(strcmp(warnings.text,
                 "2 ranks share a GPU\n2 ranks\n2 ranks share a GPU and more\nof a file named a b c\\x1b[2J") == 0,
          "kept: %s", warnings.text);
    /* More than the text holds: all are said, those that fit are kept whole. */
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int i = 0; i < 100; i++) tsr_warn(&warnings, "%d%s", i, longest);
    CHECK(lines(said) == 104, "%zu lines were said", lines(said));
    CHECK(strlen(warnings.text) < sizeof warnings.text && warnings.text[strlen(warnings.text) - 1] == 'x',
          "%zu characters kept", strlen(warnings.text));
    CHECK(strlen(strrchr(warnings.text, '\n') + 1) == 2 + strlen(longest), "the last one kept is cut");
    fclose(warnings.to);
    free(said);
    tsr_warnings silent = {0};
    tsr_warn(&silent, "another rank's");
    tsr_warn(NULL, "nobody's");
    CHECK(!silent.text[0], "a rank that does not speak kept '%s'", silent.text);
    return 0;
}
