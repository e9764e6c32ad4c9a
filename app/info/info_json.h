/* The JSON of `tessera info` (docs/record.md): lists that are filled while the text is printed, and written together.
 * Functions with `json` NULL do nothing. */
#ifndef TSR_APP_INFO_INFO_JSON_H
#define TSR_APP_INFO_INFO_JSON_H

#include <stdio.h>

#include "io/pieces/pieces.h"
#include "io/record/record_read.h"

typedef enum {
    TSR_INFO_MATRICES,
    TSR_INFO_OTHERS,
    TSR_INFO_READS,
    TSR_INFO_RUNS,
    TSR_INFO_LANES,
    TSR_INFO_DEVICES,
    TSR_INFO_UNFINISHED,
    TSR_INFO_LISTS
} tsr_info_list;

typedef struct {
    FILE *list[TSR_INFO_LISTS]; /* in memory */
    char *text[TSR_INFO_LISTS];
    size_t chars[TSR_INFO_LISTS];
    FILE *more; /* members behind the lists, each with a comma before it */
    char *more_text;
    size_t more_chars;
} tsr_info_json;

/* TSR_ERR_MEMORY. Free it in any case. */
tsr_status tsr_info_json_begin(tsr_info_json *json);
/* The stream of a list, with the comma that the next entry needs. Not for NULL. */
FILE *tsr_info_json_entry(tsr_info_json *json, tsr_info_list list);
void tsr_info_json_matrix(tsr_info_json *json, const tsr_store_desc *desc, const char *path);
void tsr_info_json_other(tsr_info_json *json, const char *path, const char *why);
void tsr_info_json_piece(tsr_info_json *json, const tsr_piece *piece);
/* `path`: of the group in the file, or the log's name. */
void tsr_info_json_run(tsr_info_json *json, const char *path, const tsr_run_record *run);
/* `file`: what was asked about; NULL: nothing. */
tsr_status tsr_info_json_write(tsr_info_json *json, const char *file, FILE *to);
void tsr_info_json_free(tsr_info_json *json);

#endif
