/* What the writers of JSON share: strings that are valid JSON whatever bytes a name or a command line holds. */
#ifndef TSR_IO_TEXT_JSON_H
#define TSR_IO_TEXT_JSON_H

#include <stdio.h>

/* The number `format` of what Tessera leaves behind: the attributes of C.run, the files of --log, the JSON files of
 * bench and plan, and the metadata of traces. It grows when a field changes its meaning, which is to be avoided:
 * fields are added, never renamed or removed. docs/record.md lists them.
 *   1: 0.1.0, which wrote no number
 *   2: `format` itself; `status`, `exit_code`, `message`, `stage` and `progress` in logs; `started` is when the run
 *      began */
#define TSR_RECORD_FORMAT 2

/* The text in quotes, escaped; bytes that are no UTF-8 become U+FFFD. Errors stay in the stream. */
void tsr_json_string(FILE *to, const char *text);

#endif
