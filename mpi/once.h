/* The last words of a job. All ranks of a node may fail, or be asked to stop, at the same moment: who speaks first
 * speaks for all, by a flag in memory that they share. Nodes do not know of each other. */
#ifndef TSR_MPI_ONCE_H
#define TSR_MPI_ONCE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kernels/base.h"

typedef struct {
    atomic_int state;
    bool has_first_rank; /* rank 0 of the job is on this node */
} tsr_once;

/* Collective over node, whose rank 0 is `world_rank` of the job. *once is NULL where MPI shares no memory: then every
 * rank speaks. */
tsr_status tsr_once_open(MPI_Comm node, int world_rank, MPI_Win *window, tsr_once **once);
void tsr_once_close(MPI_Win *window); /* Collective */

/* Local, and safe in a signal handler. True: the caller speaks, and calls tsr_once_end when it has. False: another did;
 * one that is about to is waited for, for half a second, lest the job end before it has spoken. NULL: true. */
bool tsr_once_begin(tsr_once *once);
void tsr_once_end(tsr_once *once);

#endif
