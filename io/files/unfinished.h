/* The files that this process has made and not finished: a signal handler removes them before it ends the process, from
 * the moment on that they exist. Local. */
#ifndef TSR_IO_FILES_UNFINISHED_H
#define TSR_IO_FILES_UNFINISHED_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "kernels/base/base.h"

/* From here on *count, not owned, is how many there are, for other processes to see. NULL: nobody looks. */
void tsr_unfinished_count_in(atomic_int *count);

/* Around a call that makes a file: signals of this thread come after it, and the handler in another thread waits for
 * it. A process that is ending makes no more files: neither returns then. */
void tsr_unfinished_enter(sigset_t *before);
void tsr_unfinished_leave(const sigset_t *before);
/* Makes a file to read and write that is not there yet, and notes it. -1 and errno on failure. */
int tsr_unfinished_make(const char *name, mode_t mode);
/* The file has its final name, or was removed by the caller. Names that were never noted are no mistake. */
void tsr_unfinished_done(const char *name);
/* The file `name`, made by this process or by another rank, is to be renamed to `target`: also noted, until
 * tsr_unfinished_forget. `kept`: a later run goes on with it, so that it is not removed. */
void tsr_unfinished_output(const char *name, const char *target, bool kept);
void tsr_unfinished_forget(void);

typedef enum {
    TSR_NO_OUTPUT, /* none was noted, or it is kept */
    TSR_REMOVED,   /* by this call */
    TSR_GONE,      /* removed by somebody else */
    TSR_IN_PLACE   /* renamed to its target, whole */
} tsr_unfinished_end;

/* Removes all that are noted, of which the output may be in place by now, and lets no others be made. Safe in a signal
 * handler, in a process that ends then. */
tsr_unfinished_end tsr_unfinished_remove(void);

#endif
