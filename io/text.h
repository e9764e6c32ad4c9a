/* Small pieces of work on text. Local, pure. */
#ifndef TSR_IO_TEXT_H
#define TSR_IO_TEXT_H

#include <stddef.h>

/* Adds to the text that is there, in room for `chars` with the zero at its end; what does not fit is cut. */
void tsr_text_append(char *text, size_t chars, const char *format, ...) __attribute__((format(printf, 3, 4)));

const char *tsr_text_skip_blanks(const char *text); /* the first character that is no space */

#endif
