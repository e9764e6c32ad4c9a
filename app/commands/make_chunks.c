/* Chunks by threads (make_chunks.h): each takes the next one that is not made. */
#include "app/commands/make_chunks.h"

#include <stdlib.h>
#include <time.h>

static size_t element_bytes(const tsr_chunk_maker *m) { return tsr_dtype_bytes(m->store->desc.element.dtype); }

double tsr_chunk_maker_plan(tsr_chunk_maker *m, int ranks, int rank) {
    const tsr_store_desc *desc = &m->store->desc;
    m->rows = tsr_partition_units(desc->rows, desc->chunk_rows, ranks, rank);
    m->across = tsr_ceil_div(desc->cols, desc->chunk_cols);
    m->count = tsr_ceil_div(m->rows.count, desc->chunk_rows) * m->across;
    return (double)m->rows.count * (double)desc->cols * (double)element_bytes(m);
}

double tsr_chunk_maker_done(const tsr_chunk_maker *m) { return (double)m->elements * (double)element_bytes(m); }

static tsr_rect chunk_rect(const tsr_chunk_maker *m, int64_t number) {
    const tsr_store_desc *desc = &m->store->desc;
    const int64_t row = number / m->across * desc->chunk_rows, col = number % m->across * desc->chunk_cols;
    return (tsr_rect){m->rows.start + row, col, tsr_min(desc->chunk_rows, m->rows.count - row),
                      tsr_min(desc->chunk_cols, desc->cols - col)};
}

static tsr_status make(tsr_chunk_maker *m, void *data, void *spare) {
    while (!m->failed) {
        const int64_t number = atomic_fetch_add(&m->next, 1);
        if (number >= m->count) break;
        const tsr_rect rect = chunk_rect(m, number);
        TSR_TRY(m->fill(m->options, rect, data, spare));
        TSR_TRY(m->store->ops->write(m->store, rect, data, rect.cols));
        atomic_fetch_add(&m->elements, tsr_rect_elements(rect));
    }
    return TSR_OK;
}

/* One thread. */
static tsr_status make_some(void *context) {
    tsr_chunk_maker *m = context;
    const size_t bytes = (size_t)m->store->desc.chunk_rows * (size_t)m->store->desc.chunk_cols * element_bytes(m);
    char *data = malloc(bytes), *spare = malloc(bytes);
    const tsr_status status =
        data && spare
            ? make(m, data, spare)
            : tsr_fail(TSR_ERR_MEMORY, "no memory for two chunks of %zu bytes: free some, or use smaller ones: --chunk",
                       bytes);
    if (status != TSR_OK) m->failed = true;
    free(spare);
    free(data);
    return status;
}

void tsr_chunk_maker_start(tsr_chunk_maker *m, int threads) {
    m->threads = (int)tsr_min(tsr_max(1, threads), TSR_ENCODERS_MAX);
    for (int i = 0; i < m->threads; i++) tsr_task_start(&m->tasks[i], make_some, m);
}

bool tsr_chunk_maker_wait(tsr_chunk_maker *m) {
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int turn = 0; turn < 10; turn++) {
        bool done = true;
        for (int i = 0; i < m->threads; i++) done &= tsr_task_done(&m->tasks[i]);
        if (done) return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

tsr_status tsr_chunk_maker_status(tsr_chunk_maker *m) {
    tsr_status status = TSR_OK;
    for (int i = 0; i < m->threads; i++) tsr_task_wait(&m->tasks[i]);
    for (int i = 0; i < m->threads && status == TSR_OK; i++) status = tsr_task_status(&m->tasks[i]);
    return status;
}
