/* Watches over a job while it runs, so that it ends when a rank is frozen, a step does not end, or a file system is
 * gone, instead of waiting for ever. Each rank has a thread that beats and looks: at all ranks of its node by memory
 * that they share, and the first rank of each node also at other nodes, by messages (where MPI grants
 * MPI_THREAD_MULTIPLE). judge.h says what counts as a stall. */
#ifndef TSR_MPI_WATCH_WATCH_H
#define TSR_MPI_WATCH_WATCH_H

#include "mpi/ranks/world.h"
#include "mpi/watch/judge.h"

typedef struct {
    tsr_watch_limits limits;
    /* The job stands still: called once, in the watch's thread, to end the job with TSR_ERR_STALLED and this message.
     * Ten seconds later the process ends by itself, with that status's exit code. */
    void (*stalled)(void *context, const char *message);
    void *context; /* not owned */
} tsr_watch_options;

typedef struct tsr_watch tsr_watch;

/* Collective over world, the same status on every rank; `world` outlives the watch. Its shared memory and communicator
 * are made anew, unless the world keeps a watch from run to run (kept_watch): then once. */
tsr_status tsr_watch_open(const tsr_world *world, const tsr_watch_options *options, tsr_watch **watch);
/* Local. Where this rank's lanes and phases sign; NULL without a watch. */
tsr_signs *tsr_watch_signs(tsr_watch *watch);
/* Collective. NULL is fine. A world that keeps one has it from now on. */
tsr_status tsr_watch_close(tsr_watch *watch);
/* Local, after a failure that all ranks agreed on. NULL is fine. What was opened collectively stays until MPI ends. */
void tsr_watch_leave(tsr_watch *watch);
/* Collective, before the world is left. Ends one that it kept, while nothing runs. NULL is fine. */
tsr_status tsr_watch_end(tsr_watch *watch);

#endif
