/* The job's ranks and how they agree on errors (world.h). Communicators return error codes instead of aborting, so that
 * every failure travels as a tsr_status. */
#define _GNU_SOURCE /* gethostname */
#include "mpi/ranks/world.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/ranks/cores.h"

#define MESSAGE_TAG 32101
#define MESSAGE_CHARS 2048
#define REFUSED_TENTHS 50 /* ranks come to the same call within 5 s */
#define PIECE_BYTES ((size_t)1 << 30)

/* ---- the world ------------------------------------------------------------------------------- */

/* Its ranks, by a communicator of our own, on which nobody else communicates. */
static tsr_status find_ranks(MPI_Comm parent, tsr_world *world) {
    TSR_TRY(TSR_MPI(MPI_Comm_dup(parent, &world->comm)));
    TSR_TRY(TSR_MPI(MPI_Comm_set_errhandler(world->comm, MPI_ERRORS_RETURN)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(world->comm, &world->rank)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(world->comm, &world->ranks)));
    TSR_TRY(TSR_MPI(MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &world->node)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(world->node, &world->local_rank)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(world->node, &world->local_ranks)));
    if (gethostname(world->host, sizeof world->host) != 0) snprintf(world->host, sizeof world->host, "unknown-host");
    world->host[sizeof world->host - 1] = '\0';
    return TSR_OK;
}

static tsr_status world_describe(tsr_world *world) {
    TSR_TRY(TSR_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)));
    TSR_TRY(find_ranks(MPI_COMM_WORLD, world));
    TSR_TRY(tsr_once_open(world->node, world->rank, &world->once_window, &world->once));
    return tsr_world_share_cores(world);
}

static tsr_status check_threads(int provided, const char *advice) {
    if (provided >= MPI_THREAD_SERIALIZED) return TSR_OK;
    return tsr_fail(TSR_ERR_MPI, "MPI grants thread level %d, less than MPI_THREAD_SERIALIZED (%d): %s", provided,
                    MPI_THREAD_SERIALIZED, advice);
}

tsr_status tsr_world_open(tsr_world *world) {
    tsr_world opened = {.comm = MPI_COMM_NULL,
                        .node = MPI_COMM_NULL,
                        .once_window = MPI_WIN_NULL,
                        .started_seconds = tsr_now_seconds()};
    int running = 0, provided = MPI_THREAD_SINGLE;
    TSR_TRY(TSR_MPI(MPI_Initialized(&running)));
    tsr_world_widen(&opened); /* first: threads that MPI starts run where this one may */
    tsr_launcher_alone(&opened.launcher);
    if (running) TSR_TRY(TSR_MPI(MPI_Query_thread(&provided)));
    else TSR_TRY(TSR_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided)));
    TSR_TRY(check_threads(provided, "use an MPI library built with threads"));
    opened.threads = provided == MPI_THREAD_MULTIPLE;
    opened.warnings = calloc(1, sizeof *opened.warnings); /* without memory for them there are none */
    const tsr_status status = world_describe(&opened);
    if (status != TSR_OK) {
        free(opened.warnings);
        return status;
    }
    if (opened.warnings && opened.rank == 0) opened.warnings->to = stderr;
    *world = opened;
    return TSR_OK;
}

tsr_status tsr_world_open_on(MPI_Comm comm, tsr_world *world) {
    tsr_world opened = {.comm = MPI_COMM_NULL,
                        .node = MPI_COMM_NULL,
                        .once_window = MPI_WIN_NULL,
                        .guest = true,
                        .started_seconds = tsr_now_seconds()};
    int running = 0;
    int ended = 0;
    int provided = MPI_THREAD_SINGLE;
    TSR_TRY(TSR_MPI(MPI_Initialized(&running)));
    TSR_TRY(TSR_MPI(MPI_Finalized(&ended)));
    if (!running || ended)
        return tsr_fail(TSR_ERR_MPI, "MPI %s: call MPI_Init_thread with MPI_THREAD_MULTIPLE before this",
                        ended ? "has ended" : "has not started");
    if (comm == MPI_COMM_NULL) return tsr_fail(TSR_ERR_USAGE, "MPI_COMM_NULL has no ranks: hand a communicator");
    TSR_TRY(TSR_MPI(MPI_Query_thread(&provided)));
    TSR_TRY(check_threads(provided, "start it by MPI_Init_thread with MPI_THREAD_MULTIPLE"));
    opened.threads = provided == MPI_THREAD_MULTIPLE;
    tsr_world_widen(&opened);
    TSR_TRY(find_ranks(comm, &opened));
    TSR_TRY(tsr_world_share_cores(&opened));
    *world = opened;
    return TSR_OK;
}

tsr_status tsr_world_leave(tsr_world *world) {
    int ended = 0;
    TSR_TRY(TSR_MPI(MPI_Finalized(&ended)));
    if (ended) return TSR_OK;
    if (world->node != MPI_COMM_NULL) TSR_TRY(TSR_MPI(MPI_Comm_free(&world->node)));
    return world->comm != MPI_COMM_NULL ? TSR_MPI(MPI_Comm_free(&world->comm)) : TSR_OK;
}

tsr_status tsr_world_check_launcher(const tsr_world *world) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    TSR_TRY(TSR_MPI(MPI_Get_library_version(library, &length)));
    return tsr_launcher_check(&world->launcher, world->ranks, library);
}

tsr_status tsr_world_close(tsr_world *world) {
    int finalized = 0;
    TSR_TRY(TSR_MPI(MPI_Finalized(&finalized)));
    if (finalized) return TSR_OK;
    TSR_TRY(tsr_once_close(&world->once_window));
    world->once = NULL;
    if (world->node != MPI_COMM_NULL) TSR_TRY(TSR_MPI(MPI_Comm_free(&world->node)));
    if (world->comm != MPI_COMM_NULL) TSR_TRY(TSR_MPI(MPI_Comm_free(&world->comm)));
    free(world->warnings);
    world->warnings = NULL;
    return TSR_MPI(MPI_Finalize());
}

tsr_status tsr_mpi_check(int code, const char *call) {
    if (code == MPI_SUCCESS) return TSR_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    int running = 0; /* Open MPI 4 ends a process that asks too early what an error means */
    if (MPI_Initialized(&running) != MPI_SUCCESS || !running || MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    return tsr_fail(TSR_ERR_MPI, "%.120s failed: %s", call, text);
}

/* Others that were refused come to the barrier; those that were not never do. */
tsr_status tsr_refused_together(MPI_Comm comm, const char *what) {
    MPI_Request request;
    int all = 0;
    TSR_TRY(TSR_MPI(MPI_Ibarrier(comm, &request)));
    for (int i = 0; i < REFUSED_TENTHS && !all; i++) {
        TSR_TRY(TSR_MPI(MPI_Test(&request, &all, MPI_STATUS_IGNORE)));
        if (!all) usleep(100 * 1000);
    }
    return all ? TSR_OK
               : tsr_fail(TSR_ERR_MPI, "MPI refused %s to this rank, but not to all: start the job again", what);
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* Larger is worse: a failure hides a wrong usage, that a failed check, that a stop on request. */
static int severity(tsr_status status) {
    if (status == TSR_OK) return 0;
    int code = tsr_status_exit_code(status);
    int class = code == 1 ? 4 : code == 2 ? 3 : code == 3 ? 2 : 1;
    return class * TSR_STATUS_COUNT + (int)status;
}

static tsr_status message_send(MPI_Comm comm) {
    char host[64] = "", text[MESSAGE_CHARS];
    int rank = 0;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank)));
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "unknown-host");
    snprintf(text, sizeof text, "rank %d on %s: %s", rank, host, tsr_message());
    return TSR_MPI(MPI_Send(text, (int)strlen(text) + 1, MPI_CHAR, 0, MESSAGE_TAG, comm));
}

static tsr_status message_receive(MPI_Comm comm, int from) {
    char text[MESSAGE_CHARS] = "";
    TSR_TRY(TSR_MPI(MPI_Recv(text, sizeof text, MPI_CHAR, from, MESSAGE_TAG, comm, MPI_STATUS_IGNORE)));
    tsr_message_set(text);
    return TSR_OK;
}

tsr_status tsr_wait(MPI_Request *request) {
    int done = 0;
    TSR_TRY(TSR_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE)));
    while (!done) {
        sched_yield();
        TSR_TRY(TSR_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE)));
    }
    return TSR_OK;
}

tsr_status tsr_meet(MPI_Comm comm) {
    MPI_Request request;
    TSR_TRY(TSR_MPI(MPI_Ibarrier(comm, &request)));
    return tsr_wait(&request);
}

tsr_status tsr_reduce_all(MPI_Comm comm, void *values, int count, MPI_Datatype type, MPI_Op op) {
    MPI_Request request;
    TSR_TRY(TSR_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, count, type, op, comm, &request)));
    return tsr_wait(&request);
}

tsr_status tsr_agree(MPI_Comm comm, tsr_status status) {
    if (status == TSR_ERR_MPI) return status;
    int rank;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &rank)));
    struct {
        int severity, rank;
    } worst = {severity(status), rank};
    TSR_TRY(tsr_reduce_all(comm, &worst, 1, MPI_2INT, MPI_MAXLOC));
    if (worst.severity == 0) return TSR_OK;
    if (worst.rank != 0 && rank == worst.rank) TSR_TRY(message_send(comm));
    if (worst.rank != 0 && rank == 0) TSR_TRY(message_receive(comm, worst.rank));
    if (rank != 0) tsr_message_set("");
    return (tsr_status)(worst.severity % TSR_STATUS_COUNT);
}

tsr_status tsr_share_message(MPI_Comm comm, tsr_status status) {
    char text[MESSAGE_CHARS];
    if (status == TSR_OK || status == TSR_ERR_MPI) return status;
    snprintf(text, sizeof text, "%s", tsr_message());
    TSR_TRY(tsr_broadcast(comm, text, sizeof text));
    tsr_message_set(text);
    return status;
}

tsr_status tsr_broadcast(MPI_Comm comm, void *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        MPI_Request request;
        TSR_TRY(TSR_MPI(MPI_Ibcast((char *)data + at, (int)piece, MPI_BYTE, 0, comm, &request)));
        TSR_TRY(tsr_wait(&request));
    }
    return TSR_OK;
}

tsr_status tsr_share(MPI_Comm comm, tsr_status status, void *data, size_t bytes) {
    TSR_TRY(tsr_agree(comm, status));
    return tsr_broadcast(comm, data, bytes);
}
