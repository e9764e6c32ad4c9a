/* The end of a job that fails, and the flag that the ranks of a node share (abort.h). */
#include "mpi/ranks/abort.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/files/namespaces.h"
#include "mpi/ranks/world.h"

#define AWAIT_MILLISECONDS 900 /* mpirun kills a second after it stopped */

enum { SILENT, SPEAKING, SAID };

tsr_status tsr_once_open(MPI_Comm node, int world_rank, MPI_Win *window, tsr_once **once) {
    int local = 0;
    int ranks = 0;
    int unit = 0;
    MPI_Aint bytes = 0;
    *window = MPI_WIN_NULL;
    *once = NULL;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(node, &local)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(node, &ranks)));
    const size_t whole = sizeof **once + (size_t)ranks * sizeof(*once)->rank[0];
    const MPI_Aint mine = local == 0 ? (MPI_Aint)whole : 0;
    if (MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, node, once, window) != MPI_SUCCESS) {
        *window = MPI_WIN_NULL;
        *once = NULL;
        return tsr_refused_together(node, "shared memory (MPI_Win_allocate_shared)");
    }
    TSR_TRY(TSR_MPI(MPI_Win_shared_query(*window, 0, &bytes, &unit, once)));
    if (local == 0) {
        (*once)->has_first_rank = world_rank == 0;
        (*once)->ranks = ranks;
        atomic_store(&(*once)->state, SILENT);
        atomic_store(&(*once)->failed, TSR_OK);
    }
    (*once)->rank[local].numbering = tsr_pid_namespace();
    (*once)->rank[local].process = getpid();
    atomic_store(&(*once)->rank[local].leaves, false);
    atomic_store(&(*once)->rank[local].left, false);
    atomic_store(&(*once)->rank[local].files, 0);
    return TSR_MPI(MPI_Barrier(node));
}

tsr_status tsr_once_close(MPI_Win *window) { return *window != MPI_WIN_NULL ? TSR_MPI(MPI_Win_free(window)) : TSR_OK; }

bool tsr_once_begin(tsr_once *once) {
    int silent = SILENT;
    if (!once || atomic_compare_exchange_strong(&once->state, &silent, SPEAKING)) return true;
    for (int i = 0; i < 50 && atomic_load(&once->state) == SPEAKING; i++) poll(NULL, 0, 10);
    return false;
}

void tsr_once_end(tsr_once *once) {
    if (once) atomic_store(&once->state, SAID);
}

/* This process's number among the node's ranks; -1: none. */
static int own_number(const tsr_once *once) {
    const uint64_t numbering = tsr_pid_namespace();
    for (int i = 0; once && i < once->ranks; i++)
        if (once->rank[i].process == getpid() && once->rank[i].numbering == numbering) return i;
    return -1;
}

void tsr_once_leave(tsr_once *once) {
    const int own = own_number(once);
    if (own >= 0) atomic_store(&once->rank[own].leaves, true);
}

/* Nobody knows of other containers. */
static bool is_dead(const tsr_once *once, int rank) {
    if (once->rank[rank].numbering != tsr_pid_namespace()) return false;
    return kill(once->rank[rank].process, 0) != 0 && errno == ESRCH;
}

bool tsr_once_lost(const tsr_once *once) {
    for (int i = 0; once && i < once->ranks; i++)
        if (!atomic_load(&once->rank[i].leaves) && is_dead(once, i)) return true;
    return false;
}

atomic_int *tsr_once_files(tsr_once *once) {
    const int own = own_number(once);
    return own >= 0 ? &once->rank[own].files : NULL;
}

static bool is_at_it(const tsr_once *once, int rank) {
    if (atomic_load(&once->rank[rank].left) || is_dead(once, rank)) return false;
    return atomic_load(&once->rank[rank].leaves) || atomic_load(&once->rank[rank].files) > 0;
}

void tsr_once_await_others(tsr_once *once) {
    const int own = own_number(once);
    if (own < 0) return;
    atomic_store(&once->rank[own].left, true);
    for (int i = 0, waited = 0; i < once->ranks && waited < AWAIT_MILLISECONDS;) {
        if (i == own || !is_at_it(once, i)) {
            i++;
        } else {
            poll(NULL, 0, 5);
            waited += 5;
        }
    }
}

_Noreturn void tsr_abort(const tsr_world *world, tsr_status status) {
    const char *message = *tsr_message() ? tsr_message() : tsr_status_text(status);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* a handler in this thread would wait for what it interrupted */
    tsr_once_leave(world->once);
    if (world->once) atomic_store(&world->once->failed, (int)status);
    if (tsr_once_begin(world->once)) {
        if (world->ranks > 1) fprintf(stderr, "tessera: error: rank %d on %s: %s\n", world->rank, world->host, message);
        else fprintf(stderr, "tessera: error: %s\n", message);
        fflush(stderr);
        tsr_once_end(world->once);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    MPI_Abort(world->comm != MPI_COMM_NULL ? world->comm : MPI_COMM_WORLD, tsr_status_exit_code(status));
    _Exit(tsr_status_exit_code(status));
}

typedef struct {
    int seconds, exit_code;
} last_resort;

static void *end_after(void *context) {
    const last_resort *last = context;
    for (unsigned int left = (unsigned int)last->seconds; left > 0;) left = sleep(left);
    _Exit(last->exit_code);
}

void tsr_abort_after(int seconds, tsr_status status) {
    static last_resort last; /* the first call counts: the process does not outlive it */
    pthread_t thread;
    last = (last_resort){seconds, tsr_status_exit_code(status)};
    if (pthread_create(&thread, NULL, end_after, &last) == 0) pthread_detach(thread);
}
