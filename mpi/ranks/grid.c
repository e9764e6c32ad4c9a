/* The p × q × r process grid and its communicators (grid.h). */
#include "mpi/ranks/grid.h"

#include <string.h>

static tsr_status end(tsr_grid *grid) {
    if (grid->connection) grid->connection->end(grid->connection);
    grid->connection = NULL;
    MPI_Comm *comms[] = {&grid->across_depth, &grid->across_rows, &grid->across_cols, &grid->ranks};
    for (size_t i = 0; i < sizeof comms / sizeof *comms; i++)
        if (*comms[i] != MPI_COMM_NULL) TSR_TRY(TSR_MPI(MPI_Comm_free(comms[i])));
    return TSR_OK;
}

tsr_status tsr_grid_open(const tsr_world *world, int p, int q, int r, tsr_grid *grid) {
    if (p < 1 || q < 1 || r < 1 || (double)p * q * r > world->ranks)
        return tsr_fail(TSR_ERR_USAGE,
                        "a grid of %dx%dx%d does not fit %d ranks: start more ranks or choose a smaller --grid", p, q,
                        r, world->ranks);
    tsr_grid *kept = world->kept_grid;
    if (kept && kept->p == p && kept->q == q && kept->r == r) {
        *grid = *kept;
        *kept = (tsr_grid){.p = 0};
        return TSR_OK;
    }
    if (kept) TSR_TRY(tsr_grid_end(kept));
    tsr_grid made = {.p = p,
                     .q = q,
                     .r = r,
                     .row = -1,
                     .col = -1,
                     .depth = -1,
                     .ranks = MPI_COMM_NULL,
                     .across_cols = MPI_COMM_NULL,
                     .across_rows = MPI_COMM_NULL,
                     .across_depth = MPI_COMM_NULL,
                     .kept = kept};
    made.active = world->rank < p * q * r;
    TSR_TRY(TSR_MPI(MPI_Comm_split(world->comm, made.active ? 0 : MPI_UNDEFINED, world->rank, &made.ranks)));
    if (made.active) {
        made.depth = world->rank % r;
        made.col = world->rank / r % q;
        made.row = world->rank / r / q;
        TSR_TRY(TSR_MPI(MPI_Comm_split(made.ranks, made.row * r + made.depth, made.col, &made.across_cols)));
        TSR_TRY(TSR_MPI(MPI_Comm_split(made.ranks, made.col * r + made.depth, made.row, &made.across_rows)));
        TSR_TRY(TSR_MPI(MPI_Comm_split(made.ranks, made.row * q + made.col, made.depth, &made.across_depth)));
    }
    *grid = made;
    return TSR_OK;
}

tsr_status tsr_grid_close(tsr_grid *grid) {
    if (!grid->kept || grid->kept->p > 0) return end(grid);
    *grid->kept = *grid;
    return TSR_OK;
}

tsr_status tsr_grid_end(tsr_grid *kept) {
    const tsr_status status = kept->p > 0 ? end(kept) : TSR_OK;
    *kept = (tsr_grid){.p = 0};
    return status;
}
