/* What the writers of JSON share: strings that are valid JSON whatever bytes a name or a command line holds. */
#ifndef TSR_IO_JSON_H
#define TSR_IO_JSON_H

#include <stdio.h>

/* The text in quotes, escaped; bytes that are no UTF-8 become U+FFFD. Errors stay in the stream. */
void tsr_json_string(FILE *to, const char *text);

#endif
