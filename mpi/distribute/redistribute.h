/* One step that moves a distributed matrix: from the arrays that its ranks have to what a plan makes each rank read,
 * or what each wrote to those arrays. Messages are pieces of bounded size, two under way in each direction. */
#ifndef TSR_MPI_DISTRIBUTE_REDISTRIBUTE_H
#define TSR_MPI_DISTRIBUTE_REDISTRIBUTE_H

#include "mpi/distribute/holdings.h"
#include "mpi/ranks/world.h"

/* Memory for messages under limits of a rank's host memory, and what one message is at most; the same on every rank
 * for the same limit. */
#define TSR_MESSAGES 4 /* two are sent, two received */
size_t tsr_message_bytes(size_t host_limit);

/* The rectangles of all ranks, one rank's after another's. */
typedef struct {
    tsr_rect *rect;
    int64_t *first; /* ranks + 1 */
} tsr_rects_of_ranks;

/* Collective; the caller frees it. */
tsr_status tsr_rects_gather(const tsr_world *world, const tsr_holdings *mine, tsr_rects_of_ranks *all);
void tsr_rects_of_ranks_free(tsr_rects_of_ranks *all);

typedef struct {
    const tsr_distributed *matrix;
    const tsr_holdings *mine; /* with their memory */
    const tsr_rects_of_ranks *all;
    bool back;            /* from the holdings to the ranks' arrays; else to the holdings */
    int threads;          /* that copy at once */
    size_t message_bytes; /* of one message at most, ≥ an element; the same on every rank */
} tsr_redistribution;

/* What a rank sends, receives and copies at home. */
typedef struct {
    double sent, received, copied; /* bytes */
} tsr_moved;

/* Local, pure: what `rank` of `ranks` will move, by the lists alone. */
tsr_moved tsr_redistribute_forecast(const tsr_redistribution *r, int rank, int ranks);
/* Collective, the same status everywhere. */
tsr_status tsr_redistribute(const tsr_world *world, const tsr_redistribution *r, tsr_moved *moved);

#endif
