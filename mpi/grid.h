/* Ranks: the job they form, agreement on errors, the process grid p × q × r over m, n, k and its communicators, and which
 * GPU a rank uses. */
#ifndef TSR_MPI_GRID_H
#define TSR_MPI_GRID_H

#include <mpi.h>

#include "io/warnings.h"
#include "kernels/base.h"
#include "kernels/device.h"
#include "mpi/launcher.h"
#include "mpi/once.h"
#include "mpi/task.h"

/* All ranks of the job. */
typedef struct {
    MPI_Comm comm;
    int rank, ranks;
    MPI_Comm node;            /* the ranks that share this host */
    int local_rank, local_ranks;
    tsr_launcher launcher;    /* what started it */
    tsr_cores started_on;     /* the cores it was bound to then */
    int cores;                /* this rank's share of the node's, ≥ 1 (cores.h) */
    bool threads;             /* MPI_THREAD_MULTIPLE was granted */
    char host[64];
    double started_seconds;   /* tsr_now_seconds() when main began */
    tsr_once *once;           /* the last words of the node's ranks */
    MPI_Win once_window;
    tsr_warnings *warnings;   /* tsr_warn(world->warnings, ...) speaks on rank 0, and nowhere else */
} tsr_world;

/* Collective. Starts MPI (asking for MPI_THREAD_MULTIPLE) unless it runs; TSR_ERR_MPI when not even SERIALIZED is there. */
tsr_status tsr_world_open(tsr_world *world);
/* Local. TSR_ERR_USAGE where another MPI's launcher started this job (tsr_launcher_check). */
tsr_status tsr_world_check_launcher(const tsr_world *world);
/* Collective, and only after agreement: never on a path one rank takes alone. */
void tsr_world_close(tsr_world *world);

/* Collective over comm. The worst status any rank brings, on every rank; its message moves to rank 0 (with "rank R on HOST: "
 * before it when R is not 0) and is cleared elsewhere, so that exactly one rank prints it. */
tsr_status tsr_agree(MPI_Comm comm, tsr_status status);
/* Collective. rank 0's plain memory to every rank; any size. */
tsr_status tsr_broadcast(MPI_Comm comm, void *data, size_t bytes);
/* Rank 0 did something the others wait for: agreement on its status, then its result to all. Collective. */
tsr_status tsr_share(MPI_Comm comm, tsr_status status, void *data, size_t bytes);
/* Local. One rank fails while others may be inside communication: prints the message, unless another rank of
 * the node has spoken, and ends the job with the status's exit code. */
_Noreturn void tsr_abort(const tsr_world *world, tsr_status status);
/* An MPI call's return code as a status with MPI's own text. */
tsr_status tsr_mpi_check(int code, const char *call);
#define TSR_MPI(expr) tsr_mpi_check((expr), #expr)

/* Opens the device for this rank: `kind` "auto" (CUDA when a GPU is visible, else CPU), "cpu" or "cuda". GPUs by node-local rank over what is
 * visible; *shared is how many ranks of this node use the same GPU. Collective over world. */
tsr_status tsr_device_choose(const tsr_world *world, const char *kind, tsr_device **device, int *shared);

/* tsr_device_choose in two parts: a GPU takes most of a second to open, in a thread of its own while this one does something else (of MPI, too). It begins
 * after MPI has started: MPI libraries patch the functions that allocate memory then, under the feet of threads that call them. */
typedef struct {
    tsr_task task;
    const char *kind; /* not owned */
    int local_rank;
    const tsr_device_ops *cuda;
    int devices;      /* GPUs this rank sees */
    char why[256];    /* it sees none */
    tsr_device *device;
    int threads;      /* before the end the most this rank may use, 0: as many as it has cores; then those it uses */
} tsr_device_opening;
void tsr_device_begin(const tsr_world *world, const char *kind, tsr_device_opening *opening); /* Local. No call of CUDA for "cpu" */
tsr_status tsr_device_end(const tsr_world *world, tsr_device_opening *opening, tsr_device **device, int *shared); /* Collective over world */
void tsr_device_give_up(tsr_device_opening *opening); /* Local, in place of the end */

/* Coordinates of rank = (row·q + col)·r + depth. Idle ranks (rank ≥ p·q·r) have active = false and no communicators. */
typedef struct {
    int p, q, r;
    int row, col, depth;
    bool active;
    MPI_Comm ranks;  /* active ranks */
    MPI_Comm across_cols; /* same row and depth, all cols (q ranks): shares A */
    MPI_Comm across_rows; /* same col and depth, all rows (p ranks): shares B */
    MPI_Comm across_depth; /* same row and col, all depths (r ranks): sums C */
} tsr_grid;

/* The number of an active rank among its grid's. */
static inline int tsr_grid_rank(const tsr_grid *grid) { return (grid->row * grid->q + grid->col) * grid->r + grid->depth; }

/* Collective over world. p·q·r ≤ world->ranks. */
tsr_status tsr_grid_open(const tsr_world *world, int p, int q, int r, tsr_grid *grid);
void tsr_grid_close(tsr_grid *grid); /* Collective; not on failure paths */

#endif
