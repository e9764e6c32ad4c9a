/* Contexts, versions and statuses of tessera.h. */
#include "app/library/api/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/options/sized.h"
#include "io/stores.h"
#include "mpi/ranks/shared_memory.h"
#include "mpi/watch/watch.h"

#define X(code, exit_code, text) _Static_assert((int)TESSERA_##code == (int)TSR_##code, "statuses keep their numbers");
TSR_STATUS_LIST(X)
#undef X

const char *tessera_version(void) { return TSR_VERSION; }

const char *tessera_status_text(int status) { return tsr_status_text((tsr_status)status); }

const char *tessera_message(void) { return tsr_message(); }

tessera_context tsr_context_over(const tsr_world *world, const tsr_caller *caller) {
    return (tessera_context){.world = *world, .caller = caller};
}

static tsr_status take_options(tessera_context *t, const tessera_open_options *given) {
    tessera_open_options o = {.size = sizeof o};
    if (given) TSR_TRY(tsr_sized_take("tessera_open_options", given, &o, sizeof o));
    t->abort_job = o.abort_job;
    t->abort_context = o.abort_context;
    if (o.describe && snprintf(t->describe, sizeof t->describe, "%s", o.describe) >= (int)sizeof t->describe)
        return tsr_fail(TSR_ERR_USAGE, "the name of tessera-describe is too long: '%.100s...'", o.describe);
    if (o.plugins) tsr_stores_plugins(o.plugins);
    return TSR_OK;
}

/* Where a rank cannot even have memory for it, no other rank opens one. */
static tsr_status open_context(MPI_Comm comm, const tessera_open_options *options, tessera_context **context) {
    tsr_world world;
    TSR_TRY(tsr_world_open_on(comm, &world));
    tessera_context *t = calloc(1, sizeof *t);
    tsr_status status = t ? take_options(t, options) : tsr_fail(TSR_ERR_MEMORY, "no memory for a context: free some");
    if (status == TSR_OK) status = tsr_kept_open(&t->kept);
    status = tsr_agree(world.comm, status);
    if (status != TSR_OK) {
        status = tsr_share_message(world.comm, status);
        if (!tsr_ends_job(&world, status)) (void)tsr_world_leave(&world); /* else it goes with the process */
        if (t) tsr_kept_close(t->kept);
        free(t);
        return status;
    }
    t->world = world;
    t->world.kept = t->kept;
    t->world.kept_grid = &t->grid;
    t->world.kept_watch = &t->watch;
    t->describer.program = *t->describe ? t->describe : NULL;
    *context = t;
    return TSR_OK;
}

int tessera_open(MPI_Comm comm, const tessera_open_options *options, tessera_context **context) {
    tsr_message_set("");
    if (!context) return tsr_fail(TSR_ERR_USAGE, "tessera_open: there is no place for the context: hand one");
    *context = NULL;
    return open_context(comm, options, context);
}

int tessera_open_fortran(int comm, const tessera_open_options *options, tessera_context **context) {
    return tessera_open(MPI_Comm_f2c((MPI_Fint)comm), options, context);
}

void tsr_context_end_job(const tessera_context *t, tsr_status status) {
    if (t->caller) return;
    if (t->abort_job) t->abort_job(t->abort_context, tsr_status_exit_code(status), tsr_message());
    tsr_abort(&t->world, status);
}

void tessera_close(tessera_context *t) {
    if (!t) return;
    tsr_describer_close(&t->describer);
    int ended = 0;
    tsr_status status = TSR_MPI(MPI_Finalized(&ended));
    if (status == TSR_OK && !ended) status = tsr_watch_end(t->watch);
    if (status == TSR_OK && !ended) status = tsr_grid_end(&t->grid);
    if (status == TSR_OK && !t->caller) status = tsr_world_leave(&t->world);
    for (void *memory; t->kept && (memory = tsr_kept_any(t->kept));) tessera_release(t, memory);
    tsr_kept_close(t->kept);
    if (tsr_ends_job(&t->world, status)) tsr_context_end_job(t, status);
    free(t);
}

void tessera_trim(tessera_context *t) {
    if (t) tsr_kept_trim(t->kept);
}

int tessera_allocate(tessera_context *t, size_t bytes, void **data) {
    void *memory = NULL;
    tsr_message_set("");
    if (data) *data = NULL;
    if (!t || !data) return tsr_fail(TSR_ERR_USAGE, "tessera_allocate: a context and a place are needed");
    if (bytes == 0) bytes = 1;
    tsr_status status =
        tsr_shared_memory_open(&t->world, bytes, "matrices that ranks share", "free some, or use less", &memory);
    if (status == TSR_OK) {
        status = tsr_agree(t->world.comm, tsr_kept_add(t->kept, memory, bytes));
        if (status == TSR_OK) *data = memory;
        else {
            (void)tsr_kept_remove(t->kept, memory, &bytes);
            tsr_shared_memory_close(memory, bytes);
        }
    }
    status = tsr_share_message(t->world.comm, status);
    if (tsr_ends_job(&t->world, status)) tsr_context_end_job(t, status);
    return status;
}

void tessera_release(tessera_context *t, void *data) {
    size_t bytes;
    if (t && data && tsr_kept_remove(t->kept, data, &bytes)) tsr_shared_memory_close(data, bytes);
}

void tessera_cancel(tessera_context *t) {
    if (t && atomic_load(&t->running)) atomic_store(&t->cancelled, true);
}
