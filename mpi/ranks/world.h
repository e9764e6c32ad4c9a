/* The job that the ranks form, and how they agree on errors. */
#ifndef TSR_MPI_RANKS_WORLD_H
#define TSR_MPI_RANKS_WORLD_H

#include <mpi.h>

#include "io/text/warnings.h"
#include "kernels/base/base.h"
#include "mpi/ranks/abort.h"
#include "mpi/ranks/launcher.h"

/* All ranks of the job. */
typedef struct tsr_world {
    MPI_Comm comm;
    int rank, ranks;
    MPI_Comm node; /* the ranks that share this host */
    int local_rank, local_ranks;
    tsr_launcher launcher; /* what started it */
    tsr_cores started_on;  /* the cores it was bound to then */
    tsr_cores home;        /* where the rank's threads run, until its GPU is open; only where launcher.bound is false */
    bool guest;            /* in another program's process, of which only threads of ours are moved */
    int cores;             /* this rank's share of the node's, ≥ 1 (cores.h) */
    bool threads;          /* MPI_THREAD_MULTIPLE was granted */
    char host[64];
    double started_seconds; /* tsr_now_seconds() when main began */
    tsr_once *once;         /* the last words of the node's ranks */
    MPI_Win once_window;
    tsr_warnings *warnings;          /* tsr_warn(world->warnings, ...) speaks on rank 0, and nowhere else */
    struct tsr_describer *describer; /* rank 0's, to look into files (io/describe/describe.h); not owned */
    struct tsr_kept *kept;      /* memory that stays from run to run (execute/memory/kept.h); NULL: none; not owned */
    struct tsr_grid *kept_grid; /* where one stays from run to run (mpi/ranks/grid.h); NULL: none does; not owned */
    struct tsr_watch **kept_watch; /* where one is kept from run to run (mpi/watch/watch.h); NULL: none is; not owned */
} tsr_world;

/* Collective. Starts MPI (asking for MPI_THREAD_MULTIPLE) unless it runs; TSR_ERR_MPI when not even SERIALIZED is
 * there. */
tsr_status tsr_world_open(tsr_world *world);
/* Collective over comm, a caller's, of which nothing changes: threads stay on the cores where they are, those of ours
 * too until tsr_world_go_home, MPI keeps its error handlers, and `warnings` and `describer` are NULL. MPI has been
 * started, or TSR_ERR_MPI. */
tsr_status tsr_world_open_on(MPI_Comm comm, tsr_world *world);
/* Collective. Ends what tsr_world_open_on opened; MPI goes on. */
tsr_status tsr_world_leave(tsr_world *world);
/* Local. TSR_ERR_USAGE where another MPI's launcher started this job (tsr_launcher_check). */
tsr_status tsr_world_check_launcher(const tsr_world *world);
/* Collective, and only after agreement: never on a path one rank takes alone. */
tsr_status tsr_world_close(tsr_world *world);

/* Collective over comm. The worst status any rank brings, on every rank; its message moves to rank 0 (with "rank R
 * on HOST: " before it when R is not 0) and is cleared elsewhere, so that exactly one rank prints it. A rank whose
 * MPI failed (TSR_ERR_MPI) agrees on nothing: it gets its own status back at once, and passes it on to whoever ends the
 * job for all (tsr_ends_job). */
tsr_status tsr_agree(MPI_Comm comm, tsr_status status);
/* Whether this rank alone knows of the failure, and others may wait for it for ever: then it can only tsr_abort. */
static inline bool tsr_ends_job(const tsr_world *world, tsr_status status) {
    return status == TSR_ERR_MPI && world->ranks > 1;
}
/* Collective, with what tsr_agree returned. Of a failure rank 0's message goes to every rank. Returns the status, or
 * TSR_ERR_MPI on a rank where MPI failed at this: others may wait for it then, see tsr_ends_job. */
tsr_status tsr_share_message(MPI_Comm comm, tsr_status status);
/* Waits for a request, and leaves the core to others meanwhile. MPI's own waits keep it: where ranks have no cores of
 * their own, often from a thread of the rank that is waited for. */
tsr_status tsr_wait(MPI_Request *request);
/* Collective. MPI_Barrier, and MPI_Allreduce in place, that wait so. */
tsr_status tsr_meet(MPI_Comm comm);
tsr_status tsr_reduce_all(MPI_Comm comm, void *values, int count, MPI_Datatype type, MPI_Op op);
/* Collective. rank 0's plain memory to every rank; any size. */
tsr_status tsr_broadcast(MPI_Comm comm, void *data, size_t bytes);
/* Rank 0 did something the others wait for: agreement on its status, then its result to all. Collective. */
tsr_status tsr_share(MPI_Comm comm, tsr_status status, void *data, size_t bytes);
/* Collective, after MPI refused `what` here. TSR_OK where it refused that to all ranks of comm; TSR_ERR_MPI where it
 * refused it to some alone, of which the others, inside the call, do not learn. */
tsr_status tsr_refused_together(MPI_Comm comm, const char *what);
/* An MPI call's return code as a status with MPI's own text. */
tsr_status tsr_mpi_check(int code, const char *call);
#define TSR_MPI(expr) tsr_mpi_check((expr), #expr)

#endif
