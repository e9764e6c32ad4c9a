/* How one rank ends the job, and its last words. All ranks of a node may fail, or be asked to stop, at the same moment:
 * who speaks first speaks for all, by a flag in memory that they share. Nodes do not know of each other. */
#ifndef TSR_MPI_RANKS_ABORT_H
#define TSR_MPI_RANKS_ABORT_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernels/base/base.h"

struct tsr_world;
/* Local. One rank fails while others may be inside communication: prints the message, unless another rank of
 * the node has spoken, and ends the job with the status's exit code. */
_Noreturn void tsr_abort(const struct tsr_world *world, tsr_status status);

/* Local. Where the file system or MPI does not answer, ending the job in order does not come to an end, either: after
 * so many seconds this process ends, with the status's exit code, whatever it does. */
void tsr_abort_after(int seconds, tsr_status status);

typedef struct {
    atomic_int state;
    atomic_int failed;   /* the status of a rank that ends the job; TSR_OK: none does */
    bool has_first_rank; /* rank 0 of the job is on this node */
    int ranks;           /* of the node */
    struct {
        uint64_t numbering; /* tsr_pid_namespace(): containers number processes apart */
        pid_t process;
        atomic_bool leaves; /* by itself: what ends without this was killed */
        atomic_bool left;   /* it has nothing more to remove or to say */
        atomic_int files;   /* that it makes, or has made and not finished */
    } rank[];
} tsr_once;

/* Collective over node, whose rank 0 is `world_rank` of the job. *once is NULL where MPI shares no memory: then every
 * rank speaks. */
tsr_status tsr_once_open(MPI_Comm node, int world_rank, MPI_Win *window, tsr_once **once);
tsr_status tsr_once_close(MPI_Win *window); /* Collective */

/* Local, and safe in a signal handler. True: the caller speaks, and calls tsr_once_end when it has. False: another did;
 * one that is about to is waited for, for half a second, lest the job end before it has spoken. NULL: true. */
bool tsr_once_begin(tsr_once *once);
void tsr_once_end(tsr_once *once);

/* Local, and safe in a signal handler. This process ends by itself; and whether one of the node's ranks ended without
 * saying that. NULL: nobody knows, as of ranks in other containers. */
void tsr_once_leave(tsr_once *once);
bool tsr_once_lost(const tsr_once *once);

/* Local. Where this process counts its unfinished files (io/files/unfinished.h). NULL: nobody looks. */
atomic_int *tsr_once_files(tsr_once *once);
/* Local, and safe in a signal handler that ends this process: it has removed its files. Waits, for most of a second,
 * until the node's other ranks that leave or have such files are through: mpirun of Open MPI kills all those that it
 * stopped when the first of them has ended. */
void tsr_once_await_others(tsr_once *once);

#endif
