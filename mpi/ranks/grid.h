/* The process grid p × q × r over m, n, k and its communicators. */
#ifndef TSR_MPI_RANKS_GRID_H
#define TSR_MPI_RANKS_GRID_H

#include "mpi/ranks/world.h"

/* What a transport leaves for the next run on a grid; its own fields follow. */
typedef struct tsr_connection {
    void (*end)(struct tsr_connection *connection); /* Collective over the grid's ranks */
} tsr_connection;

/* Coordinates of rank = (row·q + col)·r + depth. Idle ranks (rank ≥ p·q·r) have active = false and no communicators. */
typedef struct tsr_grid {
    int p, q, r;
    int row, col, depth;
    bool active;
    MPI_Comm ranks;             /* active ranks */
    MPI_Comm across_cols;       /* same row and depth, all cols (q ranks): shares A */
    MPI_Comm across_rows;       /* same col and depth, all rows (p ranks): shares B */
    MPI_Comm across_depth;      /* same row and col, all depths (r ranks): sums C */
    tsr_connection *connection; /* owned; NULL: none, or a transport uses it */
    struct tsr_grid *kept;      /* where it stays when it is closed; NULL: nowhere; not owned */
} tsr_grid;

/* The number of an active rank among its grid's. */
static inline int tsr_grid_rank(const tsr_grid *grid) {
    return (grid->row * grid->q + grid->col) * grid->r + grid->depth;
}

/* Collective over world. p·q·r ≤ world->ranks. Takes the grid that stayed from an earlier run (world->kept_grid) where
 * it has these sides: each communicator takes several waits to be made, and GPUs take a second to connect. */
tsr_status tsr_grid_open(const tsr_world *world, int p, int q, int r, tsr_grid *grid);
/* Collective; not on failure paths. It stays where world->kept_grid was, and no other does. */
tsr_status tsr_grid_close(tsr_grid *grid);
tsr_status tsr_grid_end(tsr_grid *kept); /* Collective. One that stayed; fine where none did */

#endif
