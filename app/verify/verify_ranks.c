/* How the check of a product shares work between the threads of a rank and adds up over ranks (verify_private.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "app/verify/verify_private.h"
#include "mpi/execute/task.h"

#define PIECE_ELEMENTS ((int64_t)1 << 27) /* 1 GiB of doubles in one MPI call */

tsr_status tsr_verify_allocate(int64_t rows, int64_t cols, size_t element_bytes, void *memory) {
    size_t bytes = 0;
    TSR_TRY(tsr_bytes_checked(rows, cols, element_bytes, &bytes));
    void *got = calloc(bytes + 1, 1);
    if (!got)
        return tsr_fail(TSR_ERR_MEMORY,
                        "no memory for %" PRId64 " x %" PRId64 " sums of the check: use fewer --trials, or free some",
                        rows, cols);
    memcpy(memory, &got, sizeof got);
    return TSR_OK;
}

tsr_status tsr_verify_reduce(const tsr_world *world, void *data, int64_t count, MPI_Datatype type, MPI_Op op) {
    int bytes = 0;
    TSR_TRY(TSR_MPI(MPI_Type_size(type, &bytes)));
    for (int64_t at = 0; at < count; at += PIECE_ELEMENTS)
        TSR_TRY(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, (char *)data + at * bytes, (int)tsr_min(PIECE_ELEMENTS, count - at),
                                      type, op, world->comm)));
    return TSR_OK;
}

/* Collective. counts: of each rank, in entries; all: room for them, *pieces for 2 numbers a rank. */
static tsr_status gather_counted(const tsr_world *world, const void *mine, const int64_t *counts, size_t entry_bytes,
                                 int *pieces, void *all) {
    MPI_Datatype entry;
    for (int i = 0, at = 0; i < world->ranks; at += (int)counts[i], i++) {
        pieces[i] = (int)counts[i];
        pieces[world->ranks + i] = at;
    }
    TSR_TRY(TSR_MPI(MPI_Type_contiguous((int)entry_bytes, MPI_BYTE, &entry)));
    TSR_TRY(TSR_MPI(MPI_Type_commit(&entry)));
    tsr_status status = TSR_MPI(
        MPI_Allgatherv(mine, pieces[world->rank], entry, all, pieces, pieces + world->ranks, entry, world->comm));
    tsr_status freed = TSR_MPI(MPI_Type_free(&entry));
    return status != TSR_OK ? status : freed;
}

tsr_status tsr_verify_gather(const tsr_world *world, const void *mine, size_t entry_bytes, int64_t most, int64_t *count,
                             void *all, int64_t *total) {
    int64_t *counts = NULL;
    int *pieces = NULL;
    void *entries = NULL;
    *total = 0;
    tsr_status status = tsr_verify_allocate(world->ranks, 1, sizeof *counts, &counts);
    if (status == TSR_OK) status = tsr_verify_allocate(world->ranks, 2, sizeof *pieces, &pieces);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(count, 1, MPI_INT64_T, counts, 1, MPI_INT64_T, world->comm)));
    for (int i = 0; i < world->ranks; i++) {
        counts[i] = tsr_min(counts[i], most - *total);
        *total += counts[i];
    }
    *count = counts[world->rank];
    if (*total == 0) goto done;
    TSR_TRY_DONE(tsr_agree(world->comm, tsr_verify_allocate(*total, 1, entry_bytes, &entries)));
    TSR_TRY_DONE(gather_counted(world, mine, counts, entry_bytes, pieces, entries));
    memcpy(all, &entries, sizeof entries);
    entries = NULL;
done:
    free(entries);
    free(pieces);
    free(counts);
    return status;
}

static tsr_status work_together(verifier *v, tsr_status (*pass)(void *share), void *context) {
    verify_share shares[TSR_VERIFY_THREADS_MAX];
    tsr_task tasks[TSR_VERIFY_THREADS_MAX];
    for (int i = 0; i < v->workers; i++) shares[i] = (verify_share){v, i, context};
    for (int i = 1; i < v->workers; i++) tsr_task_start(&tasks[i], pass, &shares[i]);
    tsr_status status = pass(&shares[0]);
    for (int i = 1; i < v->workers; i++) {
        tsr_task_wait(&tasks[i]);
        if (status == TSR_OK) status = tsr_task_status(&tasks[i]);
    }
    return status;
}

tsr_status tsr_verify_together(verifier *v, tsr_status (*pass)(void *share), void *context) {
    return tsr_agree(v->world->comm, work_together(v, pass, context));
}

void tsr_verify_again(verifier *v, const tsr_store *store) {
    const tsr_store_desc *desc = &store->desc;
    tsr_listener_extend(v->progress->listener,
                        (double)desc->rows * (double)desc->cols * (double)tsr_dtype_bytes(desc->element.dtype));
}
