/* Outputs that a later run goes on with (--resume). Beside the temporary file .NAME.tessera-….tmp lies its journal,
 * ….parts (journal.h). From the moment that it is there both stay, whatever happens to the run, until C has its name;
 * then the journal says so, and stays with C, so that the same command ends at once. What describes C in an HDF5 file
 * is written last, and a run may die of that, too: what the file held before is kept in ….head meanwhile. Encoded
 * chunks wait in files of their own (spill.h), and the temporary file of a chunked output is made anew by each run.
 *
 * Whoever holds the lock of the temporary file goes on with it. Local, rank 0, unless said otherwise. */
#ifndef TSR_IO_OUTPUT_RESUME_RESUME_H
#define TSR_IO_OUTPUT_RESUME_RESUME_H

#include "io/output/resume/journal.h"

typedef enum {
    TSR_LEFT_NOTHING,
    TSR_LEFT_UNFINISHED, /* an output to go on with */
    TSR_LEFT_COMPLETE    /* C is in place, made with these settings */
} tsr_left;

typedef struct {
    tsr_left left;
    tsr_journal_head head; /* of the run before; of what is unfinished, with the lock in head.output.lock_fd */
    tsr_part *parts;       /* that it says are whole; the caller frees them */
    int64_t count;
    bool on_disk; /* the output's folder */
} tsr_resumed;

/* What an earlier run left of this output. TSR_ERR_EXISTS where another job goes on with it now; or where it was made
 * with other settings, or the file that it goes into was changed: the message says what, and nothing is touched. With
 * spec->force such a thing is removed. */
tsr_status tsr_resume_find(const tsr_output_spec *spec, const char *settings, tsr_resumed *found);
/* The output may be left unfinished from here on. It was begun and allocated; or found, and `parts` of it are whole. */
tsr_status tsr_resume_keep(tsr_output *output, const tsr_journal_head *head, const tsr_part *parts, int64_t count);
/* Removes the temporary file and all that lies beside it. */
void tsr_resume_forget(const tsr_output *output);
/* Any rank. Which parts hold what their sums say: sets whole[i] for i = first, first + step, ... */
tsr_status tsr_resume_check(const tsr_output *output, const tsr_part *parts, int64_t count, int64_t first, int64_t step,
                            bool *whole);

/* For publication (output.c): all of C is on stable storage, and what describes it is written next; C has its name. */
tsr_status tsr_resume_publishing(const tsr_output *output);
void tsr_resume_published(const tsr_output *output);

/* What lies beside an output's file: how many parts and bytes of `of_bytes` are whole. */
typedef struct {
    char file[TSR_FILE_CHARS]; /* the temporary one */
    char path[TSR_PATH_CHARS];
    int64_t parts, bytes, of_bytes;
    bool busy; /* a job goes on with it now */
} tsr_leftover;
/* Any rank. Calls `see` for each that is unfinished. */
tsr_status tsr_resume_list(const char *file, void (*see)(void *context, const tsr_leftover *left), void *context);

#endif
