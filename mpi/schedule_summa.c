/* SUMMA: for each super-block of C, sweep k in panels, share A along grid rows and B along grid columns, accumulate; then sum
 * over the ranks that split k, finish and write C in strips of rows. r = 1 is plain SUMMA; p = q = 1 is split-k; p = 1 or
 * q = 1 is the one-dimensional layout. */
#include "mpi/schedule.h"

typedef struct {
    const tsr_plan *plan;
    int row, col, depth;
    tsr_step_sink sink;
    void *context;
    int64_t contents[TSR_SLOT_COUNT]; /* how many each class has held so far */
} emitter;

/* One content on its way through one buffer, and the clock value its last step leaves behind. */
typedef struct {
    int buffer;
    int64_t clock;
} chain;

static chain chain_begin(emitter *e, tsr_slot_class slot) {
    const tsr_slots *s = &e->plan->slots[slot];
    int64_t v = e->contents[slot]++;
    return (chain){s->first + (int)(v % s->count), v / s->count * TSR_SLOT_STAGES};
}
static tsr_slot_use chain_hold(const chain *c) { return (tsr_slot_use){c->buffer, c->clock, -1}; }
static tsr_slot_use chain_touch(chain *c) {
    c->clock++;
    return (tsr_slot_use){c->buffer, c->clock - 1, c->clock};
}
static tsr_slot_use chain_end(chain *c) {
    int64_t wait = c->clock;
    c->clock = (wait / TSR_SLOT_STAGES + 1) * TSR_SLOT_STAGES;
    return (tsr_slot_use){c->buffer, wait, c->clock};
}

static const tsr_slot_use unused = {-1, 0, -1};

static tsr_step step_new(tsr_step_kind kind, tsr_lane lane, tsr_slot_use s0, tsr_slot_use s1, tsr_slot_use s2) {
    return (tsr_step){.kind = kind, .lane = lane, .slots = {s0, s1, s2}};
}

static tsr_status emit(emitter *e, const tsr_step *step) { return e->sink(e->context, step); }

/* ---- A and B: one panel to where the kernel reads it ---------------------------------------------------------- */

typedef struct {
    tsr_operand_name name;
    const tsr_operand *operand;
    tsr_slot_class host, panel, packed;
    int parts, part; /* ranks that share the panel, and which of them this one is */
    bool pack;
} side;

static tsr_status emit_read(emitter *e, tsr_operand_name name, tsr_rect rect, size_t offset, size_t bytes, tsr_slot_use to) {
    tsr_step step = step_new(TSR_STEP_READ, TSR_LANE_READ, to, unused, unused);
    step.operand = name, step.rect = rect, step.offset = offset, step.bytes = bytes, step.lane_bytes = (double)bytes;
    return emit(e, &step);
}

static tsr_status emit_upload(emitter *e, tsr_operand_name name, size_t offset, size_t bytes, tsr_slot_use from, tsr_slot_use to) {
    tsr_step step = step_new(TSR_STEP_UPLOAD, TSR_LANE_UPLOAD, from, to, unused);
    step.operand = name, step.offset = offset, step.bytes = bytes, step.lane_bytes = (double)bytes;
    return emit(e, &step);
}

static tsr_status emit_gather(emitter *e, const side *s, size_t piece, size_t received, tsr_slot_use in) {
    tsr_step step = step_new(TSR_STEP_GATHER, TSR_LANE_EXCHANGE, in, unused, unused);
    step.operand = s->name, step.bytes = piece, step.lane_bytes = (double)received;
    return emit(e, &step);
}

/* `stored`: the panel as rows and columns of the file. Rows are shared out in pieces of equal height, so that the pieces one
 * after another are the panel. `wanted`: this rank multiplies it (false: it only helps to read). */
static tsr_status emit_panel(emitter *e, const side *s, tsr_rect stored, bool wanted, chain *ready) {
    const tsr_resources *res = &e->plan->resources;
    size_t row_bytes = (size_t)stored.cols * tsr_dtype_bytes(s->operand->element.dtype);
    int64_t height = tsr_ceil_div(stored.rows, s->parts);
    int64_t start = tsr_min(stored.rows, s->part * height);
    tsr_rect mine = {stored.row + start, stored.col, tsr_min(height, stored.rows - start), stored.cols};
    size_t piece = (size_t)height * row_bytes, own = (size_t)mine.rows * row_bytes;
    size_t whole = (size_t)stored.rows * row_bytes, at = (size_t)s->part * piece;
    bool gather = s->parts > 1;

    chain panel = {-1, 0};
    if (res->host_memory) {
        panel = chain_begin(e, s->panel);
        TSR_TRY(emit_read(e, s->name, mine, at, own, gather || wanted ? chain_touch(&panel) : chain_end(&panel)));
        if (gather) TSR_TRY(emit_gather(e, s, piece, whole - own, wanted ? chain_touch(&panel) : chain_end(&panel)));
    } else if (res->device_exchange) {
        chain host = chain_begin(e, s->host);
        panel = chain_begin(e, s->panel);
        TSR_TRY(emit_read(e, s->name, mine, 0, own, chain_touch(&host)));
        TSR_TRY(emit_upload(e, s->name, at, own, chain_end(&host), gather || wanted ? chain_touch(&panel) : chain_end(&panel)));
        if (gather) TSR_TRY(emit_gather(e, s, piece, whole - own, wanted ? chain_touch(&panel) : chain_end(&panel)));
    } else {
        chain host = chain_begin(e, s->host);
        TSR_TRY(emit_read(e, s->name, mine, at, own, gather || wanted ? chain_touch(&host) : chain_end(&host)));
        if (gather) TSR_TRY(emit_gather(e, s, piece, whole - own, wanted ? chain_touch(&host) : chain_end(&host)));
        if (wanted) {
            panel = chain_begin(e, s->panel);
            TSR_TRY(emit_upload(e, s->name, 0, whole, chain_end(&host), chain_touch(&panel)));
        }
    }
    if (wanted && s->pack) {
        chain packed = chain_begin(e, s->packed);
        tsr_step step = step_new(TSR_STEP_PACK, TSR_LANE_PACK, chain_end(&panel), chain_touch(&packed), unused);
        step.operand = s->name, step.rect = (tsr_rect){0, 0, stored.rows, stored.cols};
        int64_t multiple = res->multiple;
        step.m = tsr_round_up(s->operand->transpose ? stored.cols : stored.rows, multiple);
        step.n = tsr_round_up(s->operand->transpose ? stored.rows : stored.cols, multiple);
        step.ld = tsr_plan_packed_ld(e->plan, step.n);
        step.lane_bytes = (double)whole + (double)step.m * (double)step.n * (double)tsr_dtype_bytes(e->plan->problem.input);
        TSR_TRY(emit(e, &step));
        panel = packed;
    }
    *ready = panel;
    return TSR_OK;
}

/* The part of a stored operand that covers `outer` (of m or n) and `inner` (of k); `k_is_cols`: stored with k along columns. */
static tsr_rect stored_rect(bool k_is_cols, tsr_span outer, tsr_span inner) {
    return k_is_cols ? (tsr_rect){outer.start, inner.start, outer.count, inner.count}
                     : (tsr_rect){inner.start, outer.start, inner.count, outer.count};
}

/* ---- one super-block ------------------------------------------------------------------------------------------- */

static tsr_status emit_multiply(emitter *e, chain *a, chain *b, tsr_slot_use sum, tsr_span rows, tsr_span cols, tsr_span ks, bool first) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    int64_t multiple = plan->resources.multiple;
    tsr_step step = step_new(TSR_STEP_MULTIPLY, TSR_LANE_MULTIPLY, chain_end(a), chain_end(b), sum);
    step.m = tsr_round_up(rows.count, multiple), step.n = tsr_round_up(cols.count, multiple), step.k = tsr_round_up(ks.count, multiple);
    step.ld = step.n;
    step.lda = plan->pack_a ? tsr_plan_packed_ld(plan, step.k) : step.k;
    step.ldb = plan->pack_b ? tsr_plan_packed_ld(plan, step.n) : step.n;
    step.accumulate = !first;
    step.flops = 2.0 * (double)rows.count * (double)cols.count * (double)ks.count;
    step.lane_bytes = ((double)step.m * (double)step.k + (double)step.k * (double)step.n) * (double)tsr_dtype_bytes(problem->input) +
                      (first ? 1.0 : 2.0) * (double)step.m * (double)step.n * (double)tsr_dtype_bytes(problem->type);
    return emit(e, &step);
}

static tsr_status emit_sweep(emitter *e, tsr_span rows, tsr_span cols, chain *sum) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    const side a = {TSR_OPERAND_A, &problem->a, TSR_SLOT_HOST_A, TSR_SLOT_PANEL_A, TSR_SLOT_PACKED_A, plan->q, e->col, plan->pack_a};
    const side b = {TSR_OPERAND_B, &problem->b, TSR_SLOT_HOST_B, TSR_SLOT_PANEL_B, TSR_SLOT_PACKED_B, plan->p, e->row, plan->pack_b};
    tsr_span range = tsr_partition(problem->k, plan->r, e->depth);
    int64_t panels = tsr_ceil_div(range.count, plan->panel);
    bool mine = rows.count > 0 && cols.count > 0;

    for (int64_t t = 0; t < panels; t++) {
        tsr_span ks = tsr_span_within(range, tsr_block(range.count, plan->panel, t));
        chain ready_a = {-1, 0}, ready_b = {-1, 0};
        if (rows.count > 0) TSR_TRY(emit_panel(e, &a, stored_rect(!problem->a.transpose, rows, ks), mine, &ready_a));
        if (cols.count > 0) TSR_TRY(emit_panel(e, &b, stored_rect(problem->b.transpose, cols, ks), mine, &ready_b));
        if (!mine) continue;
        tsr_slot_use use = t + 1 == panels ? chain_touch(sum) : chain_hold(sum);
        TSR_TRY(emit_multiply(e, &ready_a, &ready_b, use, rows, cols, ks, t == 0));
    }
    if (mine && panels == 0) {
        tsr_step step = step_new(TSR_STEP_ZERO, TSR_LANE_MULTIPLY, chain_touch(sum), unused, unused);
        int64_t multiple = plan->resources.multiple;
        step.bytes = (size_t)tsr_round_up(rows.count, multiple) * (size_t)tsr_round_up(cols.count, multiple) * tsr_dtype_bytes(problem->type);
        TSR_TRY(emit(e, &step));
    }
    return TSR_OK;
}

/* Rows `strip` (of the local tile) from the accumulator at `from` to the file. */
static tsr_status emit_strip(emitter *e, tsr_span rows, tsr_span cols, tsr_slot_use from, size_t offset, int64_t ld) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    bool host_memory = plan->resources.host_memory;
    tsr_rect rect = {rows.start, cols.start, rows.count, cols.count};
    tsr_slot_use c0_use = unused;
    if (problem->add_c0) {
        size_t bytes = (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(problem->c0.dtype);
        chain c0 = chain_begin(e, TSR_SLOT_C0);
        if (host_memory) {
            TSR_TRY(emit_read(e, TSR_OPERAND_C0, rect, 0, bytes, chain_touch(&c0)));
        } else {
            chain host = chain_begin(e, TSR_SLOT_C0_HOST);
            TSR_TRY(emit_read(e, TSR_OPERAND_C0, rect, 0, bytes, chain_touch(&host)));
            TSR_TRY(emit_upload(e, TSR_OPERAND_C0, 0, bytes, chain_end(&host), chain_touch(&c0)));
        }
        c0_use = chain_end(&c0);
    }
    size_t bytes = (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(problem->out);
    chain out = chain_begin(e, TSR_SLOT_OUT);
    tsr_step finish = step_new(TSR_STEP_FINISH, TSR_LANE_DOWNLOAD, from, chain_touch(&out), c0_use);
    finish.offset = offset, finish.ld = ld, finish.m = rows.count, finish.n = cols.count;
    finish.bytes = bytes, finish.lane_bytes = host_memory ? (double)bytes : 0;
    TSR_TRY(emit(e, &finish));
    if (!host_memory) {
        chain host = chain_begin(e, TSR_SLOT_OUT_HOST);
        tsr_step download = step_new(TSR_STEP_DOWNLOAD, TSR_LANE_DOWNLOAD, chain_end(&out), chain_touch(&host), unused);
        download.bytes = bytes, download.lane_bytes = (double)bytes;
        TSR_TRY(emit(e, &download));
        out = host;
    }
    tsr_step write = step_new(TSR_STEP_WRITE, TSR_LANE_WRITE, chain_end(&out), unused, unused);
    write.operand = TSR_OPERAND_C, write.rect = rect, write.bytes = bytes, write.lane_bytes = (double)bytes;
    return emit(e, &write);
}

static tsr_status emit_reduce(emitter *e, tsr_slot_use sum, size_t offset, int64_t count, tsr_slot_use part) {
    const tsr_plan *plan = e->plan;
    tsr_slot_use staging = unused;
    if (plan->slots[TSR_SLOT_PART_HOST].count > 0) {
        chain host = chain_begin(e, TSR_SLOT_PART_HOST);
        staging = chain_end(&host);
    }
    tsr_step step = step_new(TSR_STEP_REDUCE, TSR_LANE_EXCHANGE, sum, part, staging);
    step.offset = offset, step.count = count;
    step.bytes = (size_t)count * tsr_dtype_bytes(plan->problem.type);
    step.lane_bytes = (double)step.bytes * (plan->r - 1);
    return emit(e, &step);
}

/* C of one super-block, strip by strip: of every r·strip rows this rank finishes the `strip` rows of its depth. */
static tsr_status emit_finish(emitter *e, tsr_span rows, tsr_span cols, chain *sum) {
    const tsr_plan *plan = e->plan;
    int64_t ld = tsr_round_up(cols.count, plan->resources.multiple), stride = plan->strip * plan->r;
    size_t row_bytes = (size_t)ld * tsr_dtype_bytes(plan->problem.type);
    for (int64_t start = 0; start < rows.count; start += stride) {
        bool last = start + stride >= rows.count;
        size_t offset = (size_t)start * row_bytes;
        tsr_slot_use from = last ? chain_end(sum) : chain_hold(sum);
        int64_t first = tsr_min(rows.count, start + e->depth * plan->strip);
        tsr_span strip = {rows.start + first, tsr_min(plan->strip, rows.count - first)};
        if (plan->r > 1) {
            chain part = chain_begin(e, TSR_SLOT_PART);
            TSR_TRY(emit_reduce(e, from, offset, plan->strip * ld, strip.count > 0 ? chain_touch(&part) : chain_end(&part)));
            if (strip.count == 0) continue;
            from = chain_end(&part), offset = 0;
        }
        TSR_TRY(emit_strip(e, strip, cols, from, offset, ld));
    }
    return TSR_OK;
}

tsr_status tsr_schedule_summa(const tsr_plan *plan, int rank, tsr_step_sink sink, void *context) {
    emitter e = {.plan = plan, .sink = sink, .context = context};
    e.row = rank / (plan->q * plan->r), e.col = rank / plan->r % plan->q, e.depth = rank % plan->r;
    for (int64_t i = 0; i < plan->blocks_m; i++) {
        tsr_span block_rows = tsr_block(plan->problem.m, plan->block_m, i);
        tsr_span rows = tsr_span_within(block_rows, tsr_partition(block_rows.count, plan->p, e.row));
        for (int64_t j = 0; j < plan->blocks_n; j++) {
            tsr_span block_cols = tsr_block(plan->problem.n, plan->block_n, j);
            tsr_span cols = tsr_span_within(block_cols, tsr_partition(block_cols.count, plan->q, e.col));
            bool mine = rows.count > 0 && cols.count > 0;
            chain sum = {-1, 0};
            if (mine) sum = chain_begin(&e, TSR_SLOT_SUM);
            TSR_TRY(emit_sweep(&e, rows, cols, &sum));
            if (mine) TSR_TRY(emit_finish(&e, rows, cols, &sum));
        }
    }
    return TSR_OK;
}
