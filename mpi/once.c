/* A flag that the ranks of a node share (once.h). */
#include "mpi/once.h"

#include <poll.h>

#include "mpi/grid.h"

enum { SILENT, SPEAKING, SAID };

tsr_status tsr_once_open(MPI_Comm node, int world_rank, MPI_Win *window, tsr_once **once) {
    int local = 0, unit = 0;
    MPI_Aint bytes = 0;
    *window = MPI_WIN_NULL, *once = NULL;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(node, &local)));
    const MPI_Aint mine = local == 0 ? (MPI_Aint)sizeof **once : 0;
    /* Asked for together, refused together. */
    if (MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, node, once, window) != MPI_SUCCESS) {
        *window = MPI_WIN_NULL, *once = NULL;
        return TSR_OK;
    }
    TSR_TRY(TSR_MPI(MPI_Win_shared_query(*window, 0, &bytes, &unit, once)));
    if (local == 0) {
        (*once)->has_first_rank = world_rank == 0;
        atomic_store(&(*once)->state, SILENT);
    }
    return TSR_MPI(MPI_Barrier(node));
}

void tsr_once_close(MPI_Win *window) {
    if (*window != MPI_WIN_NULL) MPI_Win_free(window);
}

bool tsr_once_begin(tsr_once *once) {
    int silent = SILENT;
    if (!once || atomic_compare_exchange_strong(&once->state, &silent, SPEAKING)) return true;
    for (int i = 0; i < 50 && atomic_load(&once->state) == SPEAKING; i++) poll(NULL, 0, 10);
    return false;
}

void tsr_once_end(tsr_once *once) {
    if (once) atomic_store(&once->state, SAID);
}
