/* Small pieces of work on text (text.h). */
#include "io/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tsr_text_append(char *text, size_t chars, const char *format, ...) {
    const size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, chars - used, format, values);
    va_end(values);
}

const char *tsr_text_skip_blanks(const char *text) { return text + strspn(text, " "); }
