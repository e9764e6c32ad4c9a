/* The operands of `tessera bench multiply` (bench_operands.h). */
#include "app/bench/bench_operands.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/device.h"
#include "mpi/ranks/partition.h"
#include "mpi/ranks/shared_memory.h"

#define MOST_THREADS 64
#define ALIGNMENT ((int64_t)2 << 20) /* of each matrix: a huge page */

/* ---- filling with all cores ------------------------------------------------------------------ */

typedef struct {
    tsr_view view; /* this thread's rows */
    tsr_fill_kind fill;
    uint64_t seed; /* 0: every byte 0xff */
    int64_t row;   /* of its first in the matrix */
    tsr_status status;
    char message[256];
} filling;

static void *fill_rows(void *context) {
    filling *f = context;
    if (f->seed == 0)
        memset(f->view.data, 0xff, (size_t)(f->view.rows * f->view.ld) * tsr_dtype_bytes(f->view.element.dtype));
    else f->status = tsr_fill_host(f->fill, f->seed, f->row, 0, f->view);
    if (f->status != TSR_OK) snprintf(f->message, sizeof f->message, "%s", tsr_message());
    return NULL;
}

static tsr_view rows_of(tsr_view view, tsr_span rows) {
    view.data = (char *)view.data + (size_t)(rows.start * view.ld) * tsr_dtype_bytes(view.element.dtype);
    view.rows = rows.count;
    return view;
}

/* This rank's rows, in as many threads as it has cores; what a thread cannot be started for, the caller does. */
static tsr_status fill_mine(const tsr_world *world, tsr_view matrix, tsr_fill_kind fill, uint64_t seed) {
    const tsr_span mine = tsr_partition(matrix.rows, world->ranks, world->rank);
    const int threads = (int)tsr_min(MOST_THREADS, world->cores);
    filling parts[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    bool started[MOST_THREADS] = {false};
    tsr_status status = TSR_OK;
    for (int t = 0; t < threads; t++) {
        const tsr_span rows = tsr_span_within(mine, tsr_partition(mine.count, threads, t));
        parts[t] = (filling){.view = rows_of(matrix, rows), .fill = fill, .seed = seed, .row = rows.start};
        started[t] = t > 0 && pthread_create(&ids[t], NULL, fill_rows, &parts[t]) == 0;
    }
    for (int t = 0; t < threads; t++) {
        if (started[t]) pthread_join(ids[t], NULL);
        else fill_rows(&parts[t]);
        if (parts[t].status != TSR_OK && status == TSR_OK) {
            tsr_message_set(parts[t].message);
            status = parts[t].status;
        }
    }
    return status;
}

/* ---- the operands ---------------------------------------------------------------------------- */

static tsr_view matrix_at(void *at, int64_t rows, int64_t cols, tsr_dtype dtype) {
    return (tsr_view){at, {dtype, false}, rows, cols, cols};
}

/* Where the three stand in one mapping. */
static tsr_status lay_out(const tsr_bench_operands *o, size_t starts[3], size_t *bytes) {
    size_t sizes[3], at = 0;
    TSR_TRY(tsr_bytes_checked(o->m, o->k, tsr_dtype_bytes(o->input), &sizes[0]));
    TSR_TRY(tsr_bytes_checked(o->k, o->n, tsr_dtype_bytes(o->input), &sizes[1]));
    TSR_TRY(tsr_bytes_checked(o->m, o->n, tsr_dtype_bytes(o->type), &sizes[2]));
    for (int i = 0; i < 3; i++) {
        starts[i] = at;
        at += (size_t)tsr_round_up((int64_t)sizes[i], ALIGNMENT);
    }
    *bytes = at;
    return TSR_OK;
}

static tsr_status open_memory(const tsr_world *world, tsr_bench_operands *o) {
    size_t starts[3];
    TSR_TRY(lay_out(o, starts, &o->bytes));
    TSR_TRY(tsr_shared_memory_open(world, o->bytes, "A, B and C", "use a smaller --shape, or --data device", &o->base));
    o->a = matrix_at((char *)o->base + starts[0], o->m, o->k, o->input);
    o->b = matrix_at((char *)o->base + starts[1], o->k, o->n, o->input);
    o->c = matrix_at((char *)o->base + starts[2], o->m, o->n, o->type);
    tsr_status status = fill_mine(world, o->a, o->fill, TSR_BENCH_SEED_A);
    if (status == TSR_OK) status = fill_mine(world, o->b, o->fill, TSR_BENCH_SEED_B);
    if (status == TSR_OK) status = fill_mine(world, o->c, o->fill, 0);
    if (status == TSR_OK) status = tsr_memory_open(o->a, &o->store_a);
    if (status == TSR_OK) status = tsr_memory_open(o->b, &o->store_b);
    if (status == TSR_OK) status = tsr_memory_open(o->c, &o->store_c);
    return tsr_agree(world->comm, status);
}

tsr_status tsr_bench_operands_open(const tsr_world *world, tsr_bench_operands *o) {
    if (o->memory) return open_memory(world, o);
    tsr_status status = tsr_generated_open(o->fill, TSR_BENCH_SEED_A, o->m, o->k, o->input, &o->store_a);
    if (status == TSR_OK) status = tsr_generated_open(o->fill, TSR_BENCH_SEED_B, o->k, o->n, o->input, &o->store_b);
    return tsr_agree(world->comm, status);
}

tsr_status tsr_bench_operands_pin(tsr_bench_operands *o, tsr_device *device) {
    if (!o->memory) return TSR_OK;
    TSR_TRY(device->ops->pin(device, o->base, o->bytes));
    o->pinned = device;
    return TSR_OK;
}

void tsr_bench_operands_close(tsr_bench_operands *o) {
    tsr_store_close(o->store_a);
    tsr_store_close(o->store_b);
    tsr_store_close(o->store_c);
    if (o->pinned) o->pinned->ops->unpin(o->pinned, o->base);
    tsr_shared_memory_close(o->base, o->bytes);
    *o = (tsr_bench_operands){0};
}
