/* Reads back what a run left behind (run_record.h): the group <C>.run of an HDF5 file, or a JSON log. Of any
 * version: fields that are not there stay 0 or "", and fields that are not known here are passed over. Local,
 * without MPI. */
#ifndef TSR_IO_RECORD_RECORD_READ_H
#define TSR_IO_RECORD_RECORD_READ_H

#include "io/record/run_record.h"

typedef struct {
    tsr_run_record run; /* what it points to is owned here */
    char *command, *warnings;
    tsr_rank_record *ranks;
} tsr_kept_record;

/* The record in group `path` of an HDF5 file. TSR_ERR_NOT_FOUND when that group is no record. Free it with
 * tsr_record_free. */
tsr_status tsr_record_read_hdf5(const char *file, const char *path, tsr_kept_record *record);
/* Calls `each` with the path of every record of an HDF5 file, in name order; it must not call HDF5's users here (the
 * lock is taken). */
tsr_status tsr_record_list_hdf5(const char *file, void (*each)(void *context, const char *path), void *context);
/* A JSON log of multiply. TSR_ERR_NOT_FOUND when the JSON is something else, TSR_ERR_FORMAT when it is no JSON. */
tsr_status tsr_record_read_json(const char *file, tsr_kept_record *record);
/* The same of text in memory. */
tsr_status tsr_record_read_json_text(const char *text, const char *name, tsr_kept_record *record);
/* And of the record that a member of the outermost object is, as in the JSON of bench multiply; NULL: the text is the
 * record. */
tsr_status tsr_record_read_json_member(const char *text, const char *name, const char *member, tsr_kept_record *record);
void tsr_record_free(tsr_kept_record *record); /* one that is all zeros is fine */

/* ---- for record_hdf5_read.c and record_json_read.c ------------------------------------------- */

/* The fields of one record, run or rank, as they were found: numbers, or text. */
typedef struct {
    char name[48];
    double real;
    int64_t integer;
    char *text; /* NULL for a number; owned */
} tsr_found_field;

typedef struct {
    tsr_found_field *fields; /* owned */
    int count, room;
    bool failed; /* no memory */
} tsr_found_fields;

void tsr_found_number(tsr_found_fields *found, const char *name, int64_t integer, double real);
void tsr_found_text(tsr_found_fields *found, const char *name, const char *text); /* copied */
void tsr_found_clear(tsr_found_fields *found);                                    /* frees; empty afterwards */
/* Moves what was found into the record. `ranks`: `rank_count` of them. TSR_ERR_MEMORY. */
tsr_status tsr_record_take(const tsr_found_fields *run, const tsr_found_fields *ranks, int rank_count,
                           tsr_kept_record *record);

#endif
