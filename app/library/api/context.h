/* A context of tessera.h, and what the program adds to a call on one: it shows and guards what every caller gets. */
#ifndef TSR_APP_LIBRARY_API_CONTEXT_H
#define TSR_APP_LIBRARY_API_CONTEXT_H

#include <stdatomic.h>

#include "app/library/api/job_log.h"
#include "app/library/run.h"
#include "app/library/tessera.h"
#include "io/describe/describe.h"
#include "mpi/execute/memory/kept.h"
#include "mpi/ranks/grid.h"

/* The program's functions, any of which may be NULL. They are called as those of tsr_run_calls are; the run is in the
 * thread that calls. */
typedef struct {
    void *context; /* handed to each; not owned */
    const tsr_guard *guard;
    tsr_listener progress;
    void (*note)(void *context, const char *text);
    /* The options were refused, with the same status on every rank; `log` NULL: it is what was refused, or none. */
    void (*refused)(void *context, const char *log, tsr_status status);
    /* Rank 0: C has its name, and the log says so, or not where `log` says why. */
    tsr_status (*published)(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output, const tsr_run_log *log, bool logged);
} tsr_caller;

struct tessera_context {
    tsr_world world;
    tsr_describer describer;
    char describe[TSR_FILE_CHARS]; /* "": looked for */
    void (*abort_job)(void *context, int exit_code, const char *message);
    void *abort_context;          /* not owned */
    const tsr_caller *caller;     /* the program, whose the world is, too; NULL: another one; not owned */
    tsr_kept *kept;               /* memory that stays from call to call; NULL: the program's, which makes one */
    tsr_grid grid;                /* of the last call, for the next */
    struct tsr_watch *watch;      /* kept from call to call; NULL: none was wanted */
    atomic_bool running;          /* a call is under way */
    atomic_bool cancelled;        /* on this rank */
    int64_t stack[TSR_LEADS_MAX]; /* of the last tessera_describe_product */
};

/* A context over the program's world, which is not owned, as its caller; nothing to close. */
tessera_context tsr_context_over(const tsr_world *world, const tsr_caller *caller);

/* Local. This rank alone failed, and others may wait for it (tsr_ends_job): ends the job. The program does that by
 * itself: then it returns. */
void tsr_context_end_job(const tessera_context *t, tsr_status status);

/* record_handle.c: the record that tessera.h hands out. */
/* Collective. A record on every rank of rank 0's `json`; TSR_ERR_MEMORY where there is no room, or no `json`. */
tsr_status tsr_record_handle_make(const tsr_world *world, const char *json, tessera_record **record);

/* spread.c: a cancellation goes from rank to rank along a tree, each of whose ranks tells its neighbours once. */
typedef struct {
    const tsr_world *world;
    int neighbours[3], count;
    bool told;
    bool heard[3];
    MPI_Request requests[3];
} tsr_spread;

void tsr_spread_open(const tsr_world *world, tsr_spread *spread);
/* Local, while the call runs, with MPI_THREAD_MULTIPLE. Tells the neighbours where `*cancelled`, and sets it where one
 * of them says so. */
tsr_status tsr_spread_step(tsr_spread *spread, atomic_bool *cancelled);
/* Collective, after the call: what was sent is received. */
tsr_status tsr_spread_close(tsr_spread *spread);

#endif
