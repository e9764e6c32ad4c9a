/* What a terminal may be shown: letters stay, all else becomes \xNN, and nothing is cut in its middle. */
#include "tests/check.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"/group/A b", "/group/A b"},
    {"größe 矩阵 𝔸", "größe 矩阵 𝔸"},
    {"\x1b[31m\a\t\n\r", "\\x1b[31m\\x07\\x09\\x0a\\x0d"},
    {"\x7f\x01", "\\x7f\\x01"},
    {"\xc2\x9b"
     "31m",
     "\\xc2\\x9b31m"}, /* C1: the same as ESC [ */
    {"\xc2\xa0", "\xc2\xa0"},
    {"\xe2\x80\xae"
     "a\xe2\x81\xa6\xe2\x80\xa8",
     "\\xe2\\x80\\xaea\\xe2\\x81\\xa6\\xe2\\x80\\xa8"},
    {"\x9b"
     "31m\xff",
     "\\x9b31m\\xff"},                                     /* no UTF-8 */
    {"\xc3(\xe2\x82", "\\xc3(\\xe2\\x82"},                 /* cut short */
    {"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80"}, /* too long a code, half of a pair */
};

static void check_cases(void) {
    char shown[100], again[100];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_printable(cases[i].text, shown, sizeof shown);
        CHECK(strcmp(shown, cases[i].shown) == 0, "case %zu: %s", i, shown);
        CHECK(strcmp(tsr_printable(shown, again, sizeof again), shown) == 0, "case %zu twice: %s", i, again);
    }
}

/* Every byte, in any room. */
static void check_rooms(void) {
    char text[3] = "", shown[16];
    for (int byte = 1; byte < 256; byte++) {
        text[0] = (char)byte;
        text[1] = 'x';
        for (size_t room = 1; room < 8; room++) {
            memset(shown, 'U', sizeof shown);
            tsr_printable(text, shown, room);
            CHECK(strlen(shown) < room && shown[room] == 'U', "byte %d in %zu: %s", byte, room, shown);
            for (const char *c = shown; *c; c++)
                CHECK((unsigned char)*c >= 0x20 && *c != 0x7f, "byte %d in %zu: %d", byte, room, *c);
        }
    }
    CHECK(strcmp(tsr_printable("矩x", shown, 3), "") == 0, "half a letter");
    tsr_printable("abc", shown, 0); /* no room at all */
}

static void check_messages(void) {
    char longest[3000];
    tsr_fail(TSR_ERR_IO, "'%s': %s", "a\x1b[2J", "ß");
    CHECK(strcmp(tsr_message(), "'a\\x1b[2J': ß") == 0, "%s", tsr_message());
    memset(longest, '\x1b', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    tsr_message_set(longest);
    const size_t chars = strlen(tsr_message());
    CHECK(chars > 1900 && strcmp(tsr_message() + chars - 4, "\\x1b") == 0, "%zu: %s", chars, tsr_message());
}

int main(void) {
    check_cases();
    check_rooms();
    check_messages();
    return 0;
}
