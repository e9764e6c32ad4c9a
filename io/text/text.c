/* Small pieces of work on text (text.h). */
#include "io/text/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/base.h"

void tsr_text_append(char *text, size_t chars, const char *format, ...) {
    const size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, chars - used, format, values);
    va_end(values);
}

bool tsr_text_ends(const char *text, const char *ending) {
    const size_t chars = strlen(text), last = strlen(ending);
    return chars > last && strcmp(text + chars - last, ending) == 0;
}

const char *tsr_text_skip_blanks(const char *text) { return text + strspn(text, " "); }

/* Of the first `bytes` of the text. */
static int columns_of(const char *text, size_t bytes) {
    int columns = 0;
    for (size_t i = 0; i < bytes; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

int tsr_text_columns(const char *text) { return columns_of(text, strlen(text)); }

/* Room for the text with its control characters escaped; NULL without memory. The caller frees it. */
static char *printable_copy(const char *text) {
    const size_t chars = 4 * strlen(text) + 1;
    char *copy = malloc(chars);
    return copy ? tsr_printable(text, copy, chars) : NULL;
}

/* In pieces that end with a whole character, so that it takes no memory. */
void tsr_text_put(FILE *to, const char *text) {
    char piece[256], shown[4 * sizeof piece];
    while (*text) {
        size_t bytes = strnlen(text, sizeof piece - 1);
        while (bytes > 1 && ((unsigned char)text[bytes] & 0xc0) == 0x80) bytes--;
        memcpy(piece, text, bytes);
        piece[bytes] = '\0';
        fputs(tsr_printable(piece, shown, sizeof shown), to);
        text += bytes;
    }
}

static void print_words(FILE *to, const char *first, int indent, const char *text) {
    int at = tsr_text_columns(first), gap = 0; /* blanks before the word */
    bool begun = false;                        /* the line has a word */
    fputs(first, to);
    for (const char *word = tsr_text_skip_blanks(text); *word;) {
        const size_t bytes = strcspn(word, " "), blanks = strspn(word + bytes, " ");
        const int columns = columns_of(word, bytes);
        if (begun && at + gap + columns > TSR_TEXT_COLUMNS) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
            begun = false;
        }
        if (begun) at += fprintf(to, "%*s", gap, "");
        fprintf(to, "%.*s", (int)bytes, word);
        at += columns;
        gap = (int)blanks;
        begun = true;
        word += bytes + blanks;
    }
    fputc('\n', to);
}

void tsr_text_print(FILE *to, const char *first, int indent, const char *text) {
    char *copy = printable_copy(text);
    if (copy) print_words(to, first, indent, copy);
    else { /* not wrapped, but said */ fputs(first, to);
        tsr_text_put(to, text);
        fputc('\n', to);
    }
    free(copy);
}
