/* The job's ranks and how they agree, the p × q × r process grid, and which device a rank opens (grid.h). Communicators
 * return error codes instead of aborting, so that every failure travels as a tsr_status. */
#define _GNU_SOURCE /* gethostname */
#include "mpi/grid.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/host_cores.h"
#include "mpi/cores.h"

#define MESSAGE_TAG 32101
#define MESSAGE_CHARS 2048
#define PIECE_BYTES ((size_t)1 << 30)

/* ---- the world ---------------------------------------------------------------------------------------------- */

static tsr_status world_describe(tsr_world *world) {
    TSR_TRY(TSR_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)));
    TSR_TRY(TSR_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &world->comm)));
    TSR_TRY(TSR_MPI(MPI_Comm_set_errhandler(world->comm, MPI_ERRORS_RETURN)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(world->comm, &world->rank)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(world->comm, &world->ranks)));
    TSR_TRY(TSR_MPI(MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &world->node)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(world->node, &world->local_rank)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(world->node, &world->local_ranks)));
    if (gethostname(world->host, sizeof world->host) != 0) snprintf(world->host, sizeof world->host, "unknown-host");
    world->host[sizeof world->host - 1] = '\0';
    TSR_TRY(tsr_once_open(world->node, world->rank, &world->once_window, &world->once));
    return tsr_world_share_cores(world);
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
    if (provided < MPI_THREAD_SERIALIZED)
        return tsr_fail(TSR_ERR_MPI, "MPI grants thread level %d, less than MPI_THREAD_SERIALIZED (%d): use an MPI library built with threads",
                        provided, MPI_THREAD_SERIALIZED);
    opened.threads = provided == MPI_THREAD_MULTIPLE;
    opened.warnings = calloc(1, sizeof *opened.warnings); /* without memory for them there are none */
    TSR_TRY(world_describe(&opened));
    if (opened.warnings && opened.rank == 0) opened.warnings->to = stderr;
    *world = opened;
    return TSR_OK;
}

tsr_status tsr_world_check_launcher(const tsr_world *world) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    TSR_TRY(TSR_MPI(MPI_Get_library_version(library, &length)));
    return tsr_launcher_check(&world->launcher, world->ranks, library);
}

void tsr_world_close(tsr_world *world) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    tsr_once_close(&world->once_window);
    if (world->node != MPI_COMM_NULL) MPI_Comm_free(&world->node);
    if (world->comm != MPI_COMM_NULL) MPI_Comm_free(&world->comm);
    free(world->warnings);
    world->warnings = NULL;
    MPI_Finalize();
}

tsr_status tsr_mpi_check(int code, const char *call) {
    if (code == MPI_SUCCESS) return TSR_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", code);
    return tsr_fail(TSR_ERR_MPI, "%.120s failed: %s", call, text);
}

/* ---- agreement ---------------------------------------------------------------------------------------------- */

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

tsr_status tsr_agree(MPI_Comm comm, tsr_status status) {
    struct {
        int severity, rank;
    } mine = {severity(status), 0}, worst = {0, 0};
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &mine.rank)));
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, comm)));
    if (worst.severity == 0) return TSR_OK;
    if (worst.rank != 0 && mine.rank == worst.rank) TSR_TRY(message_send(comm));
    if (worst.rank != 0 && mine.rank == 0) TSR_TRY(message_receive(comm, worst.rank));
    if (mine.rank != 0) tsr_message_set("");
    return (tsr_status)(worst.severity % TSR_STATUS_COUNT);
}

tsr_status tsr_broadcast(MPI_Comm comm, void *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        TSR_TRY(TSR_MPI(MPI_Bcast((char *)data + at, (int)piece, MPI_BYTE, 0, comm)));
    }
    return TSR_OK;
}

tsr_status tsr_share(MPI_Comm comm, tsr_status status, void *data, size_t bytes) {
    TSR_TRY(tsr_agree(comm, status));
    return tsr_broadcast(comm, data, bytes);
}

_Noreturn void tsr_abort(const tsr_world *world, tsr_status status) {
    const char *message = *tsr_message() ? tsr_message() : tsr_status_text(status);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* a handler in this thread would wait for what it interrupted */
    if (tsr_once_begin(world->once)) {
        if (world->ranks > 1) fprintf(stderr, "tessera: error: rank %d on %s: %s\n", world->rank, world->host, message);
        else fprintf(stderr, "tessera: error: %s\n", message);
        fflush(stderr);
        tsr_once_end(world->once);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    MPI_Abort(world->comm, tsr_status_exit_code(status));
    _Exit(tsr_status_exit_code(status));
}

/* ---- the device of a rank ----------------------------------------------------------------------------------- */

/* How many GPUs this rank sees; 0 with the reason in why. */
static void gpus_visible(tsr_device_opening *o) {
    snprintf(o->why, sizeof o->why, "no CUDA driver answered");
    tsr_status status = tsr_device_find("cuda", &o->cuda);
    if (status == TSR_OK) status = o->cuda->count(&o->devices, o->why);
    if (status != TSR_OK) {
        snprintf(o->why, sizeof o->why, "%s", tsr_message());
        o->devices = 0;
    }
    tsr_message_set("");
}

static tsr_status open_gpu(void *context) {
    tsr_device_opening *o = context;
    gpus_visible(o);
    return o->devices > 0 ? o->cuda->open(o->local_rank % o->devices, &o->device) : TSR_OK;
}

void tsr_device_begin(const tsr_world *world, const char *kind, tsr_device_opening *opening) {
    *opening = (tsr_device_opening){.kind = kind, .local_rank = world->local_rank};
    if (strcmp(kind, "cuda") == 0 || strcmp(kind, "auto") == 0) tsr_task_start(&opening->task, open_gpu, opening);
}

void tsr_device_give_up(tsr_device_opening *opening) {
    tsr_task_wait(&opening->task);
    if (opening->device) opening->device->ops->close(opening->device);
    opening->device = NULL;
}

/* "cuda" or "cpu" for this rank; "auto" must come out the same everywhere, because one plan holds for all ranks. */
static tsr_status device_kind(const tsr_world *world, const tsr_device_opening *o, const tsr_device_ops **ops) {
    tsr_status status = TSR_OK;
    bool automatic = strcmp(o->kind, "auto") == 0;
    if (!automatic && strcmp(o->kind, "cuda") != 0 && strcmp(o->kind, "cpu") != 0)
        status = tsr_fail(TSR_ERR_USAGE, "unknown device '%s': use auto, cpu or cuda", o->kind);
    TSR_TRY(tsr_agree(world->comm, status));
    int sees = o->devices > 0, any = 0;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&sees, &any, 1, MPI_INT, MPI_MAX, world->comm)));
    if (!sees && strcmp(o->kind, "cuda") == 0)
        status = tsr_fail(TSR_ERR_DEVICE, "no GPU to run on (%.200s): make one visible, or use --device cpu", o->why);
    else if (!sees && any)
        status = tsr_fail(TSR_ERR_DEVICE, "no GPU visible here (%.200s) while other ranks see one: give every rank a GPU, or use --device cpu", o->why);
    TSR_TRY(tsr_agree(world->comm, status));
    if (any) return *ops = o->cuda, TSR_OK;
    return tsr_device_find("cpu", ops);
}

/* How many ranks of this node opened the GPU this rank opened. */
static tsr_status device_shared(const tsr_world *world, const tsr_device_facts *facts, int *shared) {
    tsr_status status = TSR_OK;
    char mine[sizeof facts->bus_id] = "";
    memcpy(mine, facts->bus_id, sizeof mine);
    if (!*mine) snprintf(mine, sizeof mine, "#%d", facts->ordinal);
    char *all = malloc((size_t)world->local_ranks * sizeof mine);
    if (!all) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the names of %d devices: run fewer ranks on a node", world->local_ranks);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(mine, sizeof mine, MPI_CHAR, all, sizeof mine, MPI_CHAR, world->node)));
    *shared = 0;
    for (int i = 0; i < world->local_ranks; i++) *shared += strcmp(all + (size_t)i * sizeof mine, mine) == 0;
done:
    free(all);
    return status;
}

/* The device of the opening, or the CPU. */
static tsr_status take_device(tsr_device_opening *o, const tsr_device_ops *ops, tsr_device_facts *facts) {
    TSR_TRY(tsr_task_status(&o->task));
    if (!o->device) TSR_TRY(ops->open(0, &o->device));
    TSR_TRY(ops->use(o->device)); /* another thread opened it */
    return ops->facts(o->device, facts);
}

tsr_status tsr_device_end(const tsr_world *world, tsr_device_opening *opening, tsr_device **device, int *shared) {
    const tsr_device_ops *ops = NULL;
    tsr_device_facts facts = {0};
    int same = 1;
    tsr_status status;
    tsr_task_wait(&opening->task);
    TSR_TRY_DONE(tsr_agree(world->comm, device_kind(world, opening, &ops)));
    TSR_TRY_DONE(tsr_agree(world->comm, take_device(opening, ops, &facts)));
    opening->threads = opening->threads > 0 ? (int)tsr_min(opening->threads, world->cores) : world->cores;
    if (ops->kind == TSR_DEVICE_CPU) opening->threads = tsr_cpu_set_threads(opening->threads);
    else TSR_TRY_DONE(device_shared(world, &facts, &same));
    if (ops->kind == TSR_DEVICE_CUDA) TSR_TRY_DONE(tsr_world_near_gpu(world, tsr_pci_node("/sys", facts.bus_id)));
    *device = opening->device;
    *shared = same;
    opening->device = NULL;
done:
    tsr_device_give_up(opening);
    return status;
}

tsr_status tsr_device_choose(const tsr_world *world, const char *kind, tsr_device **device, int *shared) {
    tsr_device_opening opening;
    tsr_device_begin(world, kind, &opening);
    return tsr_device_end(world, &opening, device, shared);
}

/* ---- the process grid --------------------------------------------------------------------------------------- */

tsr_status tsr_grid_open(const tsr_world *world, int p, int q, int r, tsr_grid *grid) {
    if (p < 1 || q < 1 || r < 1 || (double)p * q * r > world->ranks)
        return tsr_fail(TSR_ERR_USAGE, "a grid of %dx%dx%d does not fit %d ranks: start more ranks or choose a smaller --grid", p, q, r, world->ranks);
    tsr_grid made = {.p = p, .q = q, .r = r, .row = -1, .col = -1, .depth = -1, .ranks = MPI_COMM_NULL,
                     .across_cols = MPI_COMM_NULL, .across_rows = MPI_COMM_NULL, .across_depth = MPI_COMM_NULL};
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

void tsr_grid_close(tsr_grid *grid) {
    MPI_Comm *comms[] = {&grid->across_depth, &grid->across_rows, &grid->across_cols, &grid->ranks};
    for (size_t i = 0; i < sizeof comms / sizeof *comms; i++)
        if (*comms[i] != MPI_COMM_NULL) MPI_Comm_free(comms[i]);
}
