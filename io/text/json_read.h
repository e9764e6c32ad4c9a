/* Reads JSON as it comes, without keeping it: every value is handed on with its name and depth. Strict, as RFC 8259
 * has it. */
#ifndef TSR_IO_TEXT_JSON_READ_H
#define TSR_IO_TEXT_JSON_READ_H

#include <stdio.h>

#include "kernels/base/base.h"

typedef enum {
    TSR_JSON_OBJECT,
    TSR_JSON_ARRAY,
    TSR_JSON_END,
    TSR_JSON_TEXT,
    TSR_JSON_NUMBER,
    TSR_JSON_WORD
} tsr_json_kind;

typedef struct {
    tsr_json_kind kind;
    int depth;        /* objects and arrays around it */
    const char *name; /* of a member of an object; "" in an array, at the top and for END */
    const char *text; /* TEXT: without quotes and escapes; NUMBER and WORD (true, false, null): as written; else "" */
} tsr_json_value;

/* Calls `each` for every value, and with END for the end of every object and array; what it points to lives until
 * `each` returns. TSR_ERR_FORMAT with the line of the first error, TSR_ERR_IO when the stream fails. */
tsr_status tsr_json_read(FILE *from, const char *file_name, void (*each)(void *context, const tsr_json_value *value),
                         void *context);
/* The same of the file of that name; TSR_ERR_IO where it cannot be opened. */
tsr_status tsr_json_read_file(const char *file, void (*each)(void *context, const tsr_json_value *value),
                              void *context);

/* Whether the file begins as JSON objects and arrays do. False where it cannot be read. */
bool tsr_json_is(const char *file);

#endif
