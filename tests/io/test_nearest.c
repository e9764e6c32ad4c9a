/* Which name a person may have meant, and when none is near enough to say so. */
#include "io/nearest.h"

#include "tests/check.h"

static void test_distance(void) {
    static const struct {
        const char *a, *b;
        int distance;
    } cases[] = {{"", "", 0},
                 {"", "abc", 3},
                 {"abc", "", 3},
                 {"verify", "verify", 0},
                 {"Verify", "vERIFY", 0},
                 {"verfiy", "verify", 1},
                 {"vrify", "verify", 1},
                 {"veriffy", "verify", 1},
                 {"werify", "verify", 1},
                 {"kitten", "sitting", 3},
                 {"ab", "ba", 1},
                 {"abcd", "badc", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int there = tsr_edit_distance(cases[i].a, cases[i].b), back = tsr_edit_distance(cases[i].b, cases[i].a);
        CHECK(there == cases[i].distance && back == there, "'%s' '%s': %d and %d", cases[i].a, cases[i].b, there, back);
    }
}

/* What is said about `wanted` when a, b and c are there. */
static const char *said(const char *wanted, const char *a, const char *b, const char *c) {
    static char text[200];
    tsr_nearest nearest = {.wanted = wanted};
    tsr_nearest_offer(&nearest, a);
    tsr_nearest_offer(&nearest, b);
    tsr_nearest_offer(&nearest, c);
    return tsr_did_you_mean(&nearest, "--", text, sizeof text);
}

static void test_suggestions(void) {
    static const struct {
        const char *wanted, *said;
    } cases[] = {{"multiplly", "; did you mean '--multiply'?"},
                 {"mult", "; did you mean '--multiply'?"},
                 {"verfy", "; did you mean '--verify'?"},
                 {"INFO", "; did you mean '--info'?"},
                 {"inof", "; did you mean '--info'?"},
                 {"in", ""},
                 {"", ""},
                 {"tiles", ""},
                 {"infect", ""},
                 {"divide", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = said(cases[i].wanted, "multiply", "verify", "info");
        CHECK(strcmp(got, cases[i].said) == 0, "'%s': \"%s\"", cases[i].wanted, got);
    }
    CHECK(strcmp(said("format", "formats", "forma", "format2"), "; did you mean '--formats'?") == 0,
          "the first of equals: %s", said("format", "formats", "forma", "format2"));
    CHECK(strcmp(said("/a", "/A", "/B", "/C"), "; did you mean '--/A'?") == 0, "letters' case");
    char lengthy[4 * TSR_NEAREST_CHARS];
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    CHECK(strcmp(said(lengthy, lengthy, "a", "b"), "") == 0, "too long to compare");
    CHECK(strcmp(said("xxxxx", lengthy, "a", "b"), "") == 0, "too long to offer");
}

int main(void) {
    test_distance();
    test_suggestions();
    return 0;
}
