/* One step of a plan on its device, transport or store. */
#include "mpi/execute/execute_step.h"

#include "io/files/crc32c.h"

#define IO_BYTES_A_THREAD ((size_t)4 << 20)     /* fewer are not worth a thread */
#define MEMORY_BYTES_A_THREAD ((size_t)1 << 20) /* the same where memory is copied */
#define DECODED_BYTES_A_THREAD ((size_t)256 << 10)
#define MEMORY_BLOCKS_A_THREAD 8 /* with one each, all waited for the slowest thread */
#define CHECK_SEED UINT64_C(0x5851f42d4c957f2d)

/* ---- reading and writing with several threads ------------------------------------------------ */

/* A transfer cut into blocks, of which each thread takes the next until none is left or one has failed. */
typedef struct {
    tsr_store *store;
    tsr_rect rect;
    char *memory; /* rect.rows × rect.cols, ld = rect.cols */
    bool write;
    bool sums_up;
    _Atomic uint32_t sum;         /* of the parts that were written (crc32c.h), each as it stands in the rectangle */
    int64_t unit_rows, unit_cols; /* of a block */
    int64_t row0, col0;           /* of the rectangle within the first block */
    int64_t down, across;         /* blocks */
    _Atomic int64_t next;
    _Atomic bool stop;
} transfer;

typedef struct {
    transfer *shared;
    tsr_status status;
    char message[512];
} worker;

/* The part [*first, *first + *count) of a side of `length`, `skipped` into block 0, that lies in block `index`. */
static void block_span(int64_t index, int64_t unit, int64_t skipped, int64_t length, int64_t *first, int64_t *count) {
    *first = tsr_max(0, index * unit - skipped);
    *count = tsr_min(length, (index + 1) * unit - skipped) - *first;
}

/* Rows from `row` of the rectangle on. Their thread does it when they are written, while others still write: one thread
 * at the end took a tenth of a run. */
static void add_rows(transfer *t, int64_t row, int64_t rows, const char *memory) {
    const uint64_t row_bytes = (uint64_t)t->rect.cols * tsr_dtype_bytes(t->store->desc.element.dtype);
    const uint64_t behind = (uint64_t)(t->rect.rows - row - rows) * row_bytes;
    const uint32_t sum = tsr_crc32c_part(memory, (size_t)((uint64_t)rows * row_bytes));
    atomic_fetch_xor(&t->sum, tsr_crc32c_move(sum, tsr_crc32c_factor(behind)));
}

static tsr_status transfer_block(transfer *t, int64_t index) {
    tsr_rect part;
    block_span(index / t->across, t->unit_rows, t->row0, t->rect.rows, &part.row, &part.rows);
    block_span(index % t->across, t->unit_cols, t->col0, t->rect.cols, &part.col, &part.cols);
    const int64_t row = part.row;
    char *memory =
        t->memory + (size_t)(part.row * t->rect.cols + part.col) * tsr_dtype_bytes(t->store->desc.element.dtype);
    part.row += t->rect.row;
    part.col += t->rect.col;
    if (!t->write) return t->store->ops->read(t->store, part, memory, t->rect.cols);
    TSR_TRY(t->store->ops->write(t->store, part, memory, t->rect.cols));
    if (t->sums_up) add_rows(t, row, part.rows, memory);
    return TSR_OK;
}

static void transfer_blocks(void *context, int number) {
    worker *w = (worker *)context + number;
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): a rectangle with elements has a part */
    transfer *t = w->shared;
    for (int64_t index; !t->stop && (index = t->next++) < t->down * t->across;) {
        w->status = transfer_block(t, index);
        if (w->status == TSR_OK) continue;
        snprintf(w->message, sizeof w->message, "%s", tsr_message());
        t->stop = true;
    }
}

/* Along the store's chunks where it has such, so that no two threads decode or encode the same one; else whole rows. */
static void cut_blocks(transfer *t, int threads) {
    const tsr_store *store = t->store;
    const bool chunks = store->unit_rows > 0;
    const int64_t blocks = threads > 1 && store->copies_memory ? threads * MEMORY_BLOCKS_A_THREAD : threads;
    t->unit_rows = chunks ? store->unit_rows : tsr_ceil_div(t->rect.rows, blocks);
    t->unit_cols = chunks ? store->unit_cols : t->rect.cols;
    t->row0 = chunks ? (store->desc.row0 + t->rect.row) % t->unit_rows : 0;
    t->col0 = chunks ? (store->desc.col0 + t->rect.col) % t->unit_cols : 0;
    t->down = tsr_ceil_div(t->row0 + t->rect.rows, t->unit_rows);
    t->across = tsr_ceil_div(t->col0 + t->rect.cols, t->unit_cols);
}

static size_t bytes_a_thread(const tsr_store *store) {
    if (store->unit_rows > 0) return DECODED_BYTES_A_THREAD;
    return store->copies_memory ? MEMORY_BYTES_A_THREAD : IO_BYTES_A_THREAD;
}

/* Shares a transfer out among threads; what a thread cannot be started for, the others do. */
static tsr_status transfer_rect(transfer *t, tsr_crew *crew, int threads) {
    const tsr_store *store = t->store;
    if (tsr_rect_empty(t->rect)) return TSR_OK;
    worker workers[TSR_CREW_MOST];
    const size_t bytes = (size_t)tsr_rect_elements(t->rect) * tsr_dtype_bytes(store->desc.element.dtype);
    const int64_t most = tsr_min(tsr_min(threads, TSR_CREW_MOST), (int64_t)(bytes / bytes_a_thread(store)));
    int parts = (int)tsr_max(1, most);
    cut_blocks(t, parts);
    parts = (int)tsr_min(parts, t->down * t->across);
    for (int i = 0; i < parts; i++) workers[i] = (worker){.shared = t};
    if (parts > 1) tsr_crew_work(crew, parts, transfer_blocks, workers);
    else transfer_blocks(workers, 0);
    for (int i = 0; i < parts; i++) {
        if (workers[i].status == TSR_OK) continue;
        tsr_message_set(workers[i].message);
        return workers[i].status;
    }
    return TSR_OK;
}

static tsr_status run_read(const tsr_execution *x, const tsr_step *step, tsr_store *store, void *to) {
    transfer t = {.store = store, .rect = step->rect, .memory = to};
    return transfer_rect(&t, x->readers, x->io_threads);
}

/* This rank's products, or those that others added to its sums. */
static bool is_doubted(const tsr_execution *x) { return *x->doubtful > 0 || atomic_load(&x->others_doubt); }

static tsr_status run_write(const tsr_execution *x, const tsr_step *step, void *from) {
    transfer t = {.store = x->c, .rect = step->rect, .memory = from, .write = true};
    t.sums_up = x->written && x->c->unit_rows == 0;
    TSR_TRY(transfer_rect(&t, x->writers, x->write_threads));
    if (!x->written || is_doubted(x)) return TSR_OK;
    return x->written(x->progress_context, step->rect, t.sums_up ? tsr_crc32c_whole(t.sum, step->bytes) : 0);
}

static tsr_store *store_of(const tsr_execution *x, tsr_operand_name name) {
    switch (name) {
    case TSR_OPERAND_A: return x->a;
    case TSR_OPERAND_B: return x->b;
    case TSR_OPERAND_C0: return x->c0;
    default: return x->c;
    }
}

/* ---- steps on the device and between ranks --------------------------------------------------- */

/* Between the device, where rows follow each other or lie step->ld apart, and a store's own memory. */
static tsr_status run_copy(const tsr_execution *x, const tsr_step *step, char *device_memory, bool in,
                           tsr_stream *stream) {
    tsr_store *store = store_of(x, step->operand);
    const tsr_device_ops *ops = x->device->ops;
    size_t element = tsr_dtype_bytes(store->desc.element.dtype), row_bytes = (size_t)step->rect.cols * element;
    int64_t ld;
    if (tsr_rect_empty(step->rect)) return TSR_OK;
    char *memory = store->ops->map ? store->ops->map(store, step->rect, &ld) : NULL;
    if (!memory)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "a %s store has no memory that a device could copy: plan it for TSR_DATA_PATH_HOST",
                        store->ops->name);
    if (in)
        return ops->copy_rows(x->device, device_memory, row_bytes, memory, (size_t)ld * element, row_bytes,
                              step->rect.rows, stream);
    return ops->copy_rows(x->device, memory, (size_t)ld * element, device_memory, (size_t)step->ld * element, row_bytes,
                          step->rect.rows, stream);
}

static tsr_status run_download(const tsr_execution *x, const tsr_step *step, const char *from, char *to,
                               tsr_stream *stream) {
    const size_t element = tsr_dtype_bytes(x->plan->problem.out), row_bytes = (size_t)step->rect.cols * element;
    return x->device->ops->copy_rows(x->device, to, row_bytes, from, (size_t)step->ld * element, row_bytes,
                                     step->rect.rows, stream);
}

static tsr_status run_generate(const tsr_execution *x, const tsr_step *step, char *to, tsr_stream *stream) {
    const tsr_store_desc *desc = &store_of(x, step->operand)->desc;
    const tsr_fill_ops *ops = tsr_fill_find(x->device->ops->kind);
    if (!desc->generated || !ops)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "elements of '%s' cannot be made on a %s device: plan it for TSR_DATA_PATH_HOST",
                        desc->name.file, x->device->ops->name);
    return ops->fill(x->device, stream, desc->fill, desc->seed, step->rect.row, step->rect.col,
                     (tsr_view){to, desc->element, step->rect.rows, step->rect.cols, step->rect.cols});
}

static tsr_status run_pack(const tsr_execution *x, void *from, void *to, tsr_stream *stream, const tsr_step *step) {
    const tsr_operand *operand = &x->plan->problem.operand[step->operand];
    tsr_pack_args args = {
        .from = {from, operand->element, step->rect.rows, step->rect.cols, step->rect.cols},
        .transpose = operand->transpose,
        .form = tsr_problem_form(&x->plan->problem, step->operand),
        .conjugate = operand->conjugate,
        .to = to,
        .type = x->plan->problem.input,
        .ld = step->ld,
        .padded_rows = step->m,
        .padded_cols = step->n,
    };
    return tsr_pack_find(x->device->ops->kind)->pack(x->device, stream, &args);
}

/* Of a step that multiplies, adds up or judges. */
static tsr_check_args check_args(const tsr_execution *x, void **buffers, const tsr_step *step) {
    const tsr_plan *plan = x->plan;
    const tsr_check_room room = tsr_plan_check_room(plan);
    return (tsr_check_args){
        .kernel = tsr_gemm_making(x->kernel, step->batch, step->m, step->n, step->k),
        .width = step->ld,
        .rows = room.rows,
        .depth = room.depth,
        .k = plan->problem.k * tsr_problem_reals(&plan->problem).k,
        .seed = (CHECK_SEED + x->check_seed) ^ (uint64_t)step->rect.row << 32 ^ (uint64_t)step->rect.col,
        .place_row = step->rect.row,
        .place_col = step->rect.col,
        .workspace = buffers[plan->slots[TSR_SLOT_CHECK].first],
        .counts = &x->counters->check,
    };
}

/* What the product was, checked behind it on its stream; of a plan that compares, its sums alone. */
static tsr_status check_product(const tsr_execution *x, void **buffers, tsr_stream *stream, const tsr_step *step,
                                const tsr_gemm_args *gemm) {
    const tsr_plan *plan = x->plan;
    const bool closes = step->closes && !plan->compares;
    if (!x->kernel_checks && plan->slots[TSR_SLOT_CHECK].count == 0) return TSR_OK;
    if (!x->kernel_checks) {
        tsr_check_args args = check_args(x, buffers, step);
        args.gemm = gemm;
        args.opens = step->opens;
        args.closes = closes;
        args.row = step->count;
        if (tsr_plan_chains(plan)) args.k = step->k; /* its sums stay apart */
        TSR_TRY(tsr_check_find(x->device->ops->kind)->follow(x->device, stream, &args));
    }
    if (!closes) return TSR_OK;
    return x->device->ops->download(x->device, x->doubtful, &x->counters->check.doubtful, sizeof *x->doubtful, stream);
}

static tsr_status run_judge(const tsr_execution *x, void **buffers, const void *strip, tsr_stream *stream,
                            const tsr_step *step) {
    const tsr_problem *problem = &x->plan->problem;
    const tsr_check_args args = check_args(x, buffers, step);
    const tsr_check_strip rows = {.data = strip,
                                  .type = problem->out,
                                  .rows = step->rect.rows,
                                  .cols = step->rect.cols,
                                  .ld = step->rect.cols,
                                  .row = step->count,
                                  .alpha = problem->alpha};
    return tsr_check_find(x->device->ops->kind)->judge(x->device, stream, &args, &rows);
}

static tsr_status run_multiply(const tsr_execution *x, void **buffers, void *a, void *b, void *c, tsr_stream *stream,
                               const tsr_step *step) {
    const tsr_slots *workspace = &x->plan->slots[TSR_SLOT_WORKSPACE];
    tsr_gemm_args args = {
        .m = step->m,
        .n = step->n,
        .k = step->k,
        .a = a,
        .lda = step->lda,
        .b = b,
        .ldb = step->ldb,
        .c = c,
        .ldc = step->ld,
        .accumulate = step->accumulate,
        .batch = step->batch,
        .stride_a = step->stride_a,
        .stride_b = step->stride_b,
        .stride_c = step->stride_c,
        .workspace =
            workspace->count > 0 ? buffers[workspace->first] : NULL, /* products follow each other on one stream */
        .fallbacks = &x->counters->fallbacks,
        .fallback_workspace = x->fallback_workspace,
    };
    if (x->kernel_checks) args.check = (tsr_gemm_check){&x->counters->check, step->rect.row, step->rect.col};
    if (step->kind == TSR_STEP_MULTIPLY) TSR_TRY(tsr_gemm_launch(x->kernel, x->device, stream, &args));
    return check_product(x, buffers, stream, step, &args);
}

/* The transport works where the buffers are, or over staging memory on the host: r pieces to send, then the piece
 * received. */
static tsr_status run_reduce(const tsr_execution *x, const char *from, void *to, char *staging, tsr_stream *stream,
                             const tsr_step *step) {
    tsr_device *device = x->device;
    tsr_transport *transport = x->transport;
    tsr_dtype type = x->plan->problem.type;
    if (!staging) return transport->ops->reduce_scatter(transport, TSR_AXIS_DEPTH, from, to, step->count, type, stream);
    size_t all = step->bytes * (size_t)x->plan->r;
    TSR_TRY(device->ops->download(device, staging, from, all, stream));
    TSR_TRY(device->ops->stream_wait(device, stream));
    TSR_TRY(
        transport->ops->reduce_scatter(transport, TSR_AXIS_DEPTH, staging, staging + all, step->count, type, stream));
    TSR_TRY(device->ops->upload(device, to, staging + all, step->bytes, stream));
    return device->ops->stream_wait(device, stream);
}

/* Sums that stay apart on this rank are added to what the rank before hands over, in `part`, and the next one gets
 * that. Over staging memory where the transport works on the host. Without a transport they are only added (load.c). */
static tsr_status run_pass(const tsr_execution *x, const char *sums, char *part, char *staging, tsr_stream *stream,
                           const tsr_step *step) {
    tsr_device *device = x->device;
    tsr_transport *transport = x->transport;
    const int depth = transport ? x->grid->depth : 0;
    char *moved = staging ? staging : part;
    const tsr_add_args args = {.to = part,
                               .from = sums,
                               .stride = step->stride_c,
                               .parts = (int)step->batch,
                               .count = step->count,
                               .accumulate = depth > 0,
                               .type = x->plan->problem.type};
    if (!transport) return tsr_pack_find(device->ops->kind)->add(device, stream, &args);
    if (depth > 0 && !x->before_stopped) {
        TSR_TRY(transport->ops->receive(transport, TSR_AXIS_DEPTH, depth - 1, moved, step->bytes, stream));
        if (staging) TSR_TRY(device->ops->upload(device, part, staging, step->bytes, stream));
    }
    if (!x->has_stopped) TSR_TRY(tsr_pack_find(device->ops->kind)->add(device, stream, &args));
    if (depth + 1 < x->plan->r && !x->has_stopped) {
        if (staging) TSR_TRY(device->ops->download(device, staging, part, step->bytes, stream));
        if (staging) TSR_TRY(device->ops->stream_wait(device, stream));
        TSR_TRY(transport->ops->send(transport, TSR_AXIS_DEPTH, depth + 1, moved, step->bytes, stream));
    }
    return transport->ops->asynchronous ? TSR_OK : device->ops->stream_wait(device, stream);
}

static tsr_status run_finish(const tsr_execution *x, void *from, void *out, void *c0, tsr_stream *stream,
                             const tsr_step *step) {
    const tsr_problem *problem = &x->plan->problem;
    tsr_finish_args args = {
        .accumulated = {from, {problem->type, false}, step->m, step->n, step->ld},
        .form = tsr_problem_sums(problem),
        .alpha = problem->alpha,
        .alpha_imag = problem->alpha_imag,
        .beta = problem->add_c0 ? problem->beta : 0,
        .beta_imag = problem->add_c0 ? problem->beta_imag : 0,
        .c0 = {c0, problem->c0, step->m, step->n, step->n},
        .out = {out, {problem->out, false}, step->m, step->n, step->n},
        .overflows = &x->counters->overflows,
        .one_nan = problem->one_nan,
    };
    return tsr_pack_find(x->device->ops->kind)->finish(x->device, stream, &args);
}

static tsr_status run_transpose(const tsr_execution *x, void *from, void *to, tsr_stream *stream,
                                const tsr_step *step) {
    const tsr_dtype type = x->plan->problem.out;
    const tsr_pack_args args = {.from = {from, {type, false}, step->m, step->n, step->ld},
                                .transpose = true,
                                .to = to,
                                .type = type,
                                .ld = step->m,
                                .padded_rows = step->n,
                                .padded_cols = step->m};
    return tsr_pack_find(x->device->ops->kind)->pack(x->device, stream, &args);
}

static tsr_status run_mirror(const tsr_execution *x, void *strip, tsr_stream *stream, const tsr_step *step) {
    const tsr_mirror_args args = {.data = strip,
                                  .type = x->plan->problem.out,
                                  .rows = step->m,
                                  .left = step->n,
                                  .tile = step->count,
                                  .ld = step->ld,
                                  .batch = step->batch,
                                  .triangle = x->plan->problem.triangle};
    return tsr_pack_find(x->device->ops->kind)->mirror(x->device, stream, &args);
}

static char *buffer_of(void **buffers, const tsr_step *step, int slot) {
    const tsr_slot_use *use = &step->slots[slot];
    return use->buffer < 0 ? NULL : (char *)buffers[use->buffer] + use->offset;
}

tsr_status tsr_step_run(const tsr_execution *x, void **buffers, tsr_stream *stream, const tsr_step *step) {
    tsr_device *device = x->device;
    char *b0 = buffer_of(buffers, step, 0);
    char *b1 = buffer_of(buffers, step, 1);
    char *b2 = buffer_of(buffers, step, 2);
    switch (step->kind) {
    case TSR_STEP_READ: return run_read(x, step, store_of(x, step->operand), b0);
    case TSR_STEP_WRITE: return run_write(x, step, b0);
    case TSR_STEP_UPLOAD: return step->bytes ? device->ops->upload(device, b1, b0, step->bytes, stream) : TSR_OK;
    case TSR_STEP_COPY_IN: return run_copy(x, step, b0, true, stream);
    case TSR_STEP_COPY_OUT: return run_copy(x, step, b0, false, stream);
    case TSR_STEP_GENERATE: return run_generate(x, step, b0, stream);
    case TSR_STEP_GATHER:
        return x->transport->ops->all_gather(
            x->transport, step->operand == TSR_OPERAND_A ? TSR_AXIS_COLS : TSR_AXIS_ROWS, b0, step->bytes, stream);
    case TSR_STEP_PACK: return run_pack(x, b0, b1, stream, step);
    case TSR_STEP_ZERO: return device->ops->fill_bytes(device, b0, 0, step->bytes, stream);
    case TSR_STEP_MULTIPLY:
    case TSR_STEP_ADD_UP: return run_multiply(x, buffers, b0, b1, b2, stream, step);
    case TSR_STEP_JUDGE: return run_judge(x, buffers, b0, stream, step);
    case TSR_STEP_REDUCE: return run_reduce(x, b0, b1, b2, stream, step);
    case TSR_STEP_PASS: return run_pass(x, b0, b1, b2, stream, step);
    case TSR_STEP_FINISH: return run_finish(x, b0, b1, b2, stream, step);
    case TSR_STEP_TRANSPOSE: return run_transpose(x, b0, b1, stream, step);
    case TSR_STEP_MIRROR: return run_mirror(x, b0, stream, step);
    case TSR_STEP_DOWNLOAD: return run_download(x, step, b0, b1, stream);
    }
    return tsr_fail(TSR_ERR_USAGE, "step of unknown kind %d", (int)step->kind);
}
