/* C from the accumulators to its file, strip by strip (panel_drain.h). A strip of a Gram matrix is written twice: as it
 * is and, transposed, to its mirrored place. Where rows of a strip lie on the diagonal it ends there, and the half of
 * that tile which is above is made of the other. So both halves are the same bits, and every element, and every chunk
 * of a file, is written once. A stack's products with their own transposes are made whole, and mirrored. */
#include "mpi/schedule/panel_drain.h"

#include "mpi/plan/gram.h"

/* Rows of C where they are to be finished or written from: `ld` elements of C apart. */
typedef struct {
    tsr_rect rect;
    tsr_slot_use from;
    int64_t ld;
} rows_of_c;

static size_t bytes_of(const tsr_emitter *e, tsr_rect rect) {
    return (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(e->plan->problem.out);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static tsr_status emit_c0(tsr_emitter *e, tsr_rect rect, tsr_slot_use *use) {
    const tsr_problem *problem = &e->plan->problem;
    *use = tsr_unused;
    if (!problem->add_c0) return TSR_OK;
    size_t bytes = (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(problem->c0.dtype);
    tsr_chain c0 = tsr_chain_begin(e, TSR_SLOT_C0);
    if (e->plan->resources.host_memory) {
        TSR_TRY(tsr_emit_read(e, TSR_OPERAND_C0, rect, bytes, tsr_chain_touch(&c0)));
    } else {
        tsr_chain host = tsr_chain_begin(e, TSR_SLOT_C0_HOST);
        TSR_TRY(tsr_emit_read(e, TSR_OPERAND_C0, rect, bytes, tsr_chain_touch(&host)));
        TSR_TRY(tsr_emit_upload(e, TSR_OPERAND_C0, bytes, tsr_chain_end(&host), tsr_chain_touch(&c0)));
    }
    *use = tsr_chain_end(&c0);
    return TSR_OK;
}

/* Accumulators, scaled and in C's type, in a buffer of their own. */
static tsr_status emit_finish(tsr_emitter *e, const rows_of_c *rows, tsr_chain *out) {
    tsr_slot_use c0;
    TSR_TRY(emit_c0(e, rows->rect, &c0));
    *out = tsr_chain_begin(e, TSR_SLOT_OUT);
    tsr_step finish = tsr_step_new(TSR_STEP_FINISH, TSR_LANE_DOWNLOAD, rows->from, tsr_chain_touch(out), c0);
    finish.rect = rows->rect;
    finish.ld = rows->ld * tsr_problem_reals(&e->plan->problem).n;
    finish.m = rows->rect.rows;
    finish.n = rows->rect.cols;
    finish.bytes = bytes_of(e, rows->rect);
    finish.lane_bytes = e->plan->resources.host_memory ? (double)finish.bytes : 0;
    return tsr_emit(e, &finish);
}

/* Rows of C in its type, to the store. */
static tsr_status emit_write(tsr_emitter *e, const rows_of_c *rows) {
    const tsr_plan *plan = e->plan;
    const size_t bytes = bytes_of(e, rows->rect);
    tsr_slot_use from = rows->from;
    if (!plan->resources.host_memory) {
        bool mapped = plan->problem.c_path == TSR_DATA_PATH_MAPPED;
        tsr_chain host = mapped ? (tsr_chain){-1, 0} : tsr_chain_begin(e, TSR_SLOT_OUT_HOST);
        tsr_step copy = tsr_step_new(mapped ? TSR_STEP_COPY_OUT : TSR_STEP_DOWNLOAD, TSR_LANE_DOWNLOAD, from,
                                     mapped ? tsr_unused : tsr_chain_touch(&host), tsr_unused);
        copy.operand = TSR_OPERAND_C;
        copy.rect = rows->rect;
        copy.ld = rows->ld;
        copy.bytes = bytes;
        copy.lane_bytes = (double)bytes;
        TSR_TRY(tsr_emit(e, &copy));
        if (mapped) return TSR_OK;
        from = tsr_chain_end(&host);
    }
    tsr_step write = tsr_step_new(TSR_STEP_WRITE, TSR_LANE_WRITE, from, tsr_unused, tsr_unused);
    write.operand = TSR_OPERAND_C;
    write.rect = rows->rect;
    write.bytes = bytes;
    write.lane_bytes = (double)bytes;
    return tsr_emit(e, &write);
}

/* ---- one strip ------------------------------------------------------------------------------- */

/* A use of rows that are used again: by lanes that follow each other, or through the buffer's chain. */
static tsr_slot_use use_again(const rows_of_c *rows, tsr_chain *out) {
    if (out->buffer >= 0) return tsr_chain_touch(out);
    tsr_slot_use use = rows->from;
    use.set = -1;
    return use;
}

/* The first `left` columns of the rows, transposed, or zeros in their place. */
static tsr_status emit_transposed(tsr_emitter *e, const rows_of_c *rows, int64_t left, tsr_chain *out,
                                  rows_of_c *mirrored, tsr_chain *chain) {
    const tsr_problem *problem = &e->plan->problem;
    const tsr_rect *rect = &rows->rect;
    const bool zero = problem->triangle == TSR_TRIANGLE_LOWER;
    *mirrored = (rows_of_c){.rect = {rect->col, rect->row, left, rect->rows}, .ld = rect->rows};
    *chain = tsr_chain_begin(e, TSR_SLOT_OUT);
    tsr_step step = tsr_step_new(TSR_STEP_ZERO, TSR_LANE_DOWNLOAD, tsr_chain_touch(chain), tsr_unused, tsr_unused);
    if (!zero)
        step = tsr_step_new(TSR_STEP_TRANSPOSE, TSR_LANE_DOWNLOAD, use_again(rows, out), step.slots[0], tsr_unused);
    step.rect = mirrored->rect;
    step.m = rect->rows;
    step.n = left;
    step.ld = rows->ld;
    step.bytes = bytes_of(e, mirrored->rect);
    step.lane_bytes = e->plan->resources.host_memory ? (double)step.bytes : 0;
    return tsr_emit(e, &step);
}

/* Of the rows, or of a stack's products among them each. */
static tsr_status emit_mirror(tsr_emitter *e, const rows_of_c *rows, int64_t left, tsr_chain *out) {
    const tsr_problem *problem = &e->plan->problem;
    tsr_step step = tsr_step_new(TSR_STEP_MIRROR, TSR_LANE_DOWNLOAD, use_again(rows, out), tsr_unused, tsr_unused);
    step.batch = problem->batch > 1 ? rows->rect.rows / tsr_problem_product_rows(problem) : 1;
    step.m = rows->rect.rows / step.batch;
    step.n = left;
    step.count = rows->rect.cols - left;
    step.ld = rows->ld;
    return tsr_emit(e, &step);
}

/* Rows of the C that was written come the way that they left, and are judged; `first` of them in their block. */
static tsr_status emit_judged(tsr_emitter *e, const rows_of_c *rows, int64_t first) {
    const size_t bytes = bytes_of(e, rows->rect);
    tsr_chain strip = tsr_chain_begin(e, TSR_SLOT_OUT);
    if (e->plan->resources.host_memory) {
        TSR_TRY(tsr_emit_read(e, TSR_OPERAND_C, rows->rect, bytes, tsr_chain_touch(&strip)));
    } else {
        tsr_chain host = tsr_chain_begin(e, TSR_SLOT_OUT_HOST);
        TSR_TRY(tsr_emit_read(e, TSR_OPERAND_C, rows->rect, bytes, tsr_chain_touch(&host)));
        TSR_TRY(tsr_emit_upload(e, TSR_OPERAND_C, bytes, tsr_chain_end(&host), tsr_chain_touch(&strip)));
    }
    tsr_step step = tsr_step_new(TSR_STEP_JUDGE, TSR_LANE_MULTIPLY, tsr_chain_end(&strip), rows->from, tsr_unused);
    step.operand = TSR_OPERAND_C;
    step.rect = rows->rect;
    step.m = e->product.m;
    step.n = e->product.n;
    step.k = e->product.k;
    step.batch = e->product.batch;
    step.ld = e->product.ld;
    step.count = first;
    step.bytes = bytes;
    step.lane_bytes = (double)bytes;
    return tsr_emit(e, &step);
}

static tsr_status emit_strip(tsr_emitter *e, rows_of_c rows) {
    tsr_chain out = {-1, 0};
    if (tsr_plan_finishes(e->plan)) {
        TSR_TRY(emit_finish(e, &rows, &out));
        rows.ld = rows.rect.cols;
    }
    if (e->plan->problem.mirrored) TSR_TRY(emit_mirror(e, &rows, 0, &out));
    if (out.buffer >= 0) rows.from = tsr_chain_end(&out);
    return emit_write(e, &rows);
}

/* Rows of a Gram matrix that end with the diagonal, or lie below it (`tile` false), and their mirror. */
static tsr_status emit_symmetric(tsr_emitter *e, rows_of_c rows, bool tile) {
    const int64_t left = rows.rect.cols - (tile ? rows.rect.rows : 0);
    tsr_chain out = {-1, 0}, chain = {-1, 0};
    rows_of_c mirrored = {.ld = 0};
    if (tsr_plan_finishes(e->plan)) {
        TSR_TRY(emit_finish(e, &rows, &out));
        rows.ld = rows.rect.cols;
    }
    if (left > 0) TSR_TRY(emit_transposed(e, &rows, left, &out, &mirrored, &chain));
    if (tile || e->plan->problem.triangle == TSR_TRIANGLE_UPPER) TSR_TRY(emit_mirror(e, &rows, left, &out));
    if (out.buffer >= 0) rows.from = tsr_chain_end(&out);
    TSR_TRY(emit_write(e, &rows));
    if (left == 0) return TSR_OK;
    mirrored.from = tsr_chain_end(&chain);
    return emit_write(e, &mirrored);
}

static tsr_status emit_reduce(tsr_emitter *e, tsr_slot_use sum, int64_t count, tsr_slot_use part) {
    const tsr_plan *plan = e->plan;
    tsr_slot_use staging = tsr_unused;
    if (plan->slots[TSR_SLOT_PART_HOST].count > 0) {
        tsr_chain host = tsr_chain_begin(e, TSR_SLOT_PART_HOST);
        staging = tsr_chain_end(&host);
    }
    tsr_step step = tsr_step_new(TSR_STEP_REDUCE, TSR_LANE_EXCHANGE, sum, part, staging);
    step.count = count * (int64_t)(tsr_problem_sum_bytes(&plan->problem) / tsr_dtype_bytes(plan->problem.type));
    step.bytes = (size_t)count * tsr_problem_sum_bytes(&plan->problem);
    step.lane_bytes = (double)step.bytes * (plan->r - 1);
    return tsr_emit(e, &step);
}

/* The sums of `rows` that stay apart on this rank, added to those of the ranks before it. */
static tsr_status emit_pass(tsr_emitter *e, tsr_slot_use sums, int64_t elements, tsr_slot_use part) {
    const tsr_plan *plan = e->plan;
    const size_t real = tsr_dtype_bytes(plan->problem.type);
    tsr_slot_use staging = tsr_unused;
    if (plan->slots[TSR_SLOT_PART_HOST].count > 0) {
        tsr_chain host = tsr_chain_begin(e, TSR_SLOT_PART_HOST);
        staging = tsr_chain_end(&host);
    }
    tsr_step step = tsr_step_new(TSR_STEP_PASS, TSR_LANE_EXCHANGE, sums, part, staging);
    step.batch = tsr_ceil_div(tsr_plan_ks(plan, e->depth).count, plan->problem.blocks.k);
    step.stride_c = (int64_t)(tsr_plan_sums_bytes(plan) / real);
    step.bytes = (size_t)elements * tsr_problem_sum_bytes(&plan->problem);
    step.count = (int64_t)(step.bytes / real);
    step.lane_bytes = e->depth > 0 ? (double)step.bytes : 0;
    return tsr_emit(e, &step);
}

/* ---- one super-block ------------------------------------------------------------------------- */

/* Rows of a super-block on this rank that leave alike. */
typedef struct {
    tsr_span rows, all, cols; /* of all that the rank has, and its columns */
    bool tile;                /* they end with the diagonal */
    bool last;                /* rows of this super-block */
} stretch;

/* Of every r·strip rows this rank finishes the `strip` rows of its depth; where sums are handed on the last rank
 * finishes all. */
static tsr_status drain_stretch(tsr_emitter *e, const stretch *s, tsr_chain *sum) {
    const tsr_plan *plan = e->plan;
    const int64_t ld = tsr_round_up(s->cols.count, plan->resources.multiple),
                  stride = plan->strip * tsr_plan_writers(plan);
    const size_t row_bytes = (size_t)ld * tsr_problem_sum_bytes(&plan->problem);
    const bool chains = tsr_plan_chains(plan);
    for (int64_t start = 0; start < s->rows.count; start += stride) {
        bool last = s->last && start + stride >= s->rows.count;
        size_t offset = (size_t)(s->rows.start + start - s->all.start) * row_bytes;
        tsr_slot_use from = tsr_use_at(last ? tsr_chain_end(sum) : tsr_chain_hold(sum), offset);
        int64_t first = tsr_min(s->rows.count, start + (chains ? 0 : e->depth * plan->strip));
        tsr_span strip = {s->rows.start + first, tsr_min(plan->strip, s->rows.count - first)};
        if (plan->r > 1) {
            tsr_chain part = tsr_chain_begin(e, TSR_SLOT_PART);
            const bool mine = chains ? e->depth == plan->r - 1 : strip.count > 0;
            const tsr_slot_use to = tsr_chain_next(&part, !mine);
            TSR_TRY(chains ? emit_pass(e, from, strip.count * ld, to) : emit_reduce(e, from, plan->strip * ld, to));
            if (!mine) continue;
            from = tsr_chain_end(&part);
        }
        const int64_t cols = s->tile ? strip.start + strip.count - s->cols.start : s->cols.count;
        const rows_of_c rows = {{strip.start, s->cols.start, strip.count, cols}, from, ld};
        if (plan->compares) {
            TSR_TRY(emit_judged(e, &rows, strip.start - s->all.start));
            continue;
        }
        TSR_TRY(plan->problem.gram ? emit_symmetric(e, rows, s->tile) : emit_strip(e, rows));
    }
    return TSR_OK;
}

tsr_status tsr_drain_block(tsr_emitter *e, tsr_span rows, tsr_span cols, bool diagonal, tsr_chain *sum) {
    if (!diagonal) {
        const stretch all = {rows, rows, cols, false, true};
        return drain_stretch(e, &all, sum);
    }
    const tsr_span square = tsr_gram_square(rows, cols);
    const int64_t end = rows.start + rows.count, below = square.start + square.count;
    const stretch tiles = {square, rows, cols, true, below >= end};
    const stretch rest = {{below, tsr_max(0, end - below)}, rows, cols, false, true};
    TSR_TRY(drain_stretch(e, &tiles, sum));
    return drain_stretch(e, &rest, sum);
}
