/* The readers of tables (options.h). */
#include <stdio.h>

#include "app/options.h"

#define CALLED_CHARS 48

/* "--alpha" */
static const char *called(const tsr_option *option, char text[CALLED_CHARS]) {
    snprintf(text, CALLED_CHARS, "--%s", option->name);
    return text;
}

tsr_status tsr_read_flag(const tsr_option *option, const char *text, void *field) {
    (void)option;
    (void)text;
    *(bool *)field = true;
    return TSR_OK;
}

tsr_status tsr_read_text(const tsr_option *option, const char *text, void *field) {
    (void)option;
    *(const char **)field = text;
    return TSR_OK;
}

tsr_status tsr_read_number(const tsr_option *option, const char *text, void *field) {
    char name[CALLED_CHARS];
    return tsr_parse_double(called(option, name), text, field);
}

tsr_status tsr_read_complex(const tsr_option *option, const char *text, void *field) {
    char name[CALLED_CHARS];
    return tsr_parse_complex(called(option, name), text, field);
}

tsr_status tsr_read_whole(const tsr_option *option, const char *text, void *field) {
    char name[CALLED_CHARS];
    return tsr_parse_int(called(option, name), text, option->low, option->high, field);
}

tsr_status tsr_read_count(const tsr_option *option, const char *text, void *field) {
    int64_t number = 0;
    TSR_TRY(tsr_read_whole(option, text, &number));
    *(int *)field = (int)number;
    return TSR_OK;
}
