/* Small pieces of work on text. Local. */
#ifndef TSR_IO_TEXT_TEXT_H
#define TSR_IO_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Adds to the text that is there, in room for `chars` with the zero at its end; what does not fit is cut. */
void tsr_text_append(char *text, size_t chars, const char *format, ...) __attribute__((format(printf, 3, 4)));

bool tsr_text_ends(const char *text, const char *ending); /* and has more in front of it */

const char *tsr_text_skip_blanks(const char *text); /* the first character that is no space */

int tsr_text_columns(const char *text); /* characters of UTF-8 text */

/* Writes text of others, such as names in files, without its control characters (tsr_printable). */
void tsr_text_put(FILE *to, const char *text);

#define TSR_TEXT_COLUMNS 80
/* `first` (a label with its blanks, or "") and the words of `text`, in lines of at most TSR_TEXT_COLUMNS columns that
 * are broken between words, as far as words fit; lines after the first are indented. Control characters of the words
 * are written as tsr_text_put does. */
void tsr_text_print(FILE *to, const char *first, int indent, const char *text);

#endif
