/* The fields of the records, listed once: JSON and HDF5 are two sinks that get every field with its name in the same
 * order. */
#ifndef TSR_IO_RECORD_RECORD_FIELDS_H
#define TSR_IO_RECORD_RECORD_FIELDS_H

#include "io/record/run_record.h"

typedef struct {
    void (*integer)(void *to, const char *name, int64_t value);
    void (*real)(void *to, const char *name, double value);
    /* chars: room of the field, TSR_RANK_TEXT_CHARS at most; 0 for free length */
    void (*text)(void *to, const char *name, const char *value, size_t chars);
} tsr_field_sink;

void tsr_rank_record_fields(const tsr_rank_record *record, const tsr_field_sink *sink, void *to);
/* Everything but the ranks' records. */
void tsr_run_record_fields(const tsr_run_record *record, const tsr_field_sink *sink, void *to);

#endif
