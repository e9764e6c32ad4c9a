/* One step of a plan on its device, transport or store. */
#include "mpi/execute_step.h"

#include <pthread.h>

#define IO_THREADS_MAX 32
#define IO_BYTES_A_THREAD ((size_t)4 << 20) /* fewer are not worth a thread */

/* ---- reading and writing with several threads ------------------------------------------------------------------ */

typedef struct {
    tsr_store *store;
    tsr_rect rect;
    char *memory; /* rect.rows × rect.cols, ld = rect.cols */
    bool write;
    tsr_status status;
    char message[512];
} transfer;

static tsr_status transfer_run(const transfer *t) {
    if (tsr_rect_empty(t->rect)) return TSR_OK;
    return t->write ? t->store->ops->write(t->store, t->rect, t->memory, t->rect.cols)
                    : t->store->ops->read(t->store, t->rect, t->memory, t->rect.cols);
}

static void *transfer_thread(void *context) {
    transfer *t = context;
    t->status = transfer_run(t);
    if (t->status != TSR_OK) snprintf(t->message, sizeof t->message, "%s", tsr_message());
    return NULL;
}

/* Rows are shared out among threads; what a thread cannot be started for, the caller does. */
static tsr_status transfer_rows(tsr_store *store, tsr_rect rect, void *memory, int threads, bool write) {
    size_t row_bytes = (size_t)rect.cols * tsr_dtype_bytes(store->desc.element.dtype);
    int64_t worth = (int64_t)((size_t)rect.rows * row_bytes / IO_BYTES_A_THREAD);
    int parts = (int)tsr_max(1, tsr_min(tsr_min(threads, IO_THREADS_MAX), tsr_min(worth, rect.rows)));
    transfer transfers[IO_THREADS_MAX];
    pthread_t ids[IO_THREADS_MAX];
    bool started[IO_THREADS_MAX] = {false};
    for (int i = parts - 1; i >= 0; i--) {
        tsr_span span = tsr_partition(rect.rows, parts, i);
        transfers[i] = (transfer){store, {rect.row + span.start, rect.col, span.count, rect.cols}, (char *)memory + (size_t)span.start * row_bytes, write, TSR_OK, ""};
        started[i] = i > 0 && pthread_create(&ids[i], NULL, transfer_thread, &transfers[i]) == 0;
        if (!started[i]) transfer_thread(&transfers[i]);
    }
    tsr_status status = TSR_OK;
    for (int i = 0; i < parts; i++) {
        if (started[i]) pthread_join(ids[i], NULL);
        if (status == TSR_OK && transfers[i].status != TSR_OK) {
            status = transfers[i].status;
            tsr_message_set(transfers[i].message);
        }
    }
    return status;
}

static tsr_store *store_of(const tsr_execution *x, tsr_operand_name name) {
    switch (name) {
    case TSR_OPERAND_A: return x->a;
    case TSR_OPERAND_B: return x->b;
    case TSR_OPERAND_C0: return x->c0;
    default: return x->c;
    }
}

/* ---- steps on the device and between ranks ---------------------------------------------------------------------- */

static tsr_status run_pack(const tsr_execution *x, void *from, void *to, tsr_stream *stream, const tsr_step *step) {
    const tsr_operand *operand = step->operand == TSR_OPERAND_A ? &x->plan->problem.a : &x->plan->problem.b;
    tsr_pack_args args = {
        .from = {from, operand->element, step->rect.rows, step->rect.cols, step->rect.cols},
        .transpose = operand->transpose,
        .to = to,
        .type = x->plan->problem.input,
        .ld = step->ld,
        .padded_rows = step->m,
        .padded_cols = step->n,
    };
    return tsr_pack_find(x->device->ops->kind)->pack(x->device, stream, &args);
}

static tsr_status run_multiply(const tsr_execution *x, void **buffers, void *a, void *b, void *c, tsr_stream *stream, const tsr_step *step) {
    const tsr_slots *workspace = &x->plan->slots[TSR_SLOT_WORKSPACE];
    tsr_gemm_args args = {
        .m = step->m, .n = step->n, .k = step->k,
        .a = a, .lda = step->lda,
        .b = b, .ldb = step->ldb,
        .c = c, .ldc = step->ld,
        .accumulate = step->accumulate,
        .workspace = workspace->count > 0 ? buffers[workspace->first] : NULL, /* products follow each other on one stream */
        .fallbacks = x->fallbacks,
    };
    return tsr_gemm_launch(x->kernel, x->device, stream, &args);
}

/* The transport works where the buffers are, or over staging memory on the host: r pieces to send, then the piece received. */
static tsr_status run_reduce(const tsr_execution *x, const char *from, void *to, char *staging, tsr_stream *stream, const tsr_step *step) {
    tsr_device *device = x->device;
    tsr_transport *transport = x->transport;
    tsr_dtype type = x->plan->problem.type;
    if (!staging) return transport->ops->reduce_scatter(transport, TSR_AXIS_DEPTH, from, to, step->count, type, stream);
    size_t all = step->bytes * (size_t)x->plan->r;
    TSR_TRY(device->ops->download(device, staging, from, all, stream));
    TSR_TRY(device->ops->stream_wait(device, stream));
    TSR_TRY(transport->ops->reduce_scatter(transport, TSR_AXIS_DEPTH, staging, staging + all, step->count, type, stream));
    TSR_TRY(device->ops->upload(device, to, staging + all, step->bytes, stream));
    return device->ops->stream_wait(device, stream);
}

static tsr_status run_finish(const tsr_execution *x, void *from, void *out, void *c0, tsr_stream *stream, const tsr_step *step) {
    const tsr_problem *problem = &x->plan->problem;
    tsr_finish_args args = {
        .accumulated = {from, {problem->type, false}, step->m, step->n, step->ld},
        .alpha = problem->alpha,
        .beta = problem->add_c0 ? problem->beta : 0,
        .c0 = {c0, problem->c0, step->m, step->n, step->n},
        .out = {out, {problem->out, false}, step->m, step->n, step->n},
    };
    return tsr_pack_find(x->device->ops->kind)->finish(x->device, stream, &args);
}

static char *buffer_of(void **buffers, const tsr_step *step, int slot) {
    int number = step->slots[slot].buffer;
    return number < 0 ? NULL : buffers[number];
}

tsr_status tsr_step_run(const tsr_execution *x, void **buffers, tsr_stream *stream, const tsr_step *step) {
    tsr_device *device = x->device;
    char *b0 = buffer_of(buffers, step, 0), *b1 = buffer_of(buffers, step, 1), *b2 = buffer_of(buffers, step, 2);
    switch (step->kind) {
    case TSR_STEP_READ: return transfer_rows(store_of(x, step->operand), step->rect, b0 + step->offset, x->io_threads, false);
    case TSR_STEP_WRITE: return transfer_rows(x->c, step->rect, b0, x->io_threads, true);
    case TSR_STEP_UPLOAD: return step->bytes ? device->ops->upload(device, b1 + step->offset, b0, step->bytes, stream) : TSR_OK;
    case TSR_STEP_GATHER:
        return x->transport->ops->all_gather(x->transport, step->operand == TSR_OPERAND_A ? TSR_AXIS_COLS : TSR_AXIS_ROWS, b0, step->bytes, stream);
    case TSR_STEP_PACK: return run_pack(x, b0, b1, stream, step);
    case TSR_STEP_ZERO: return device->ops->fill_bytes(device, b0, 0, step->bytes, stream);
    case TSR_STEP_MULTIPLY: return run_multiply(x, buffers, b0, b1, b2, stream, step);
    case TSR_STEP_REDUCE: return run_reduce(x, b0 + step->offset, b1, b2, stream, step);
    case TSR_STEP_FINISH: return run_finish(x, b0 + step->offset, b1, b2, stream, step);
    case TSR_STEP_DOWNLOAD: return device->ops->download(device, b1, b0, step->bytes, stream);
    }
    return tsr_fail(TSR_ERR_USAGE, "step of unknown kind %d", (int)step->kind);
}
