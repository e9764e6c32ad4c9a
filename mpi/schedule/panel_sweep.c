/* For each super-block of C: sweep k in panels, share A along grid rows and B along grid columns, accumulate; then sum
 * over the ranks that split k, finish and write C in strips of rows. */
#include "mpi/schedule/panel_sweep.h"

typedef struct {
    const tsr_plan *plan;
    int row, col, depth;
    tsr_sweep_multiply multiply;
    tsr_step_sink sink;
    void *context;
    int64_t contents[TSR_SLOT_COUNT]; /* how many each class has held so far */
} emitter;

/* One content on its way through one buffer, and the clock value its last step leaves behind. */
typedef struct {
    int buffer;
    int64_t clock;
} chain;

/* The buffer that content `v` of a class lives in, when its use begins. */
static chain chain_at(const emitter *e, tsr_slot_class slot, int64_t v) {
    const tsr_slots *s = &e->plan->slots[slot];
    return (chain){s->first + (int)(v % s->count), v / s->count * TSR_SLOT_STAGES};
}
static chain chain_begin(emitter *e, tsr_slot_class slot) { return chain_at(e, slot, e->contents[slot]++); }
static tsr_slot_use chain_hold(const chain *c) {
    return (tsr_slot_use){.buffer = c->buffer, .wait = c->clock, .set = -1};
}
static tsr_slot_use chain_touch(chain *c) {
    c->clock++;
    return (tsr_slot_use){.buffer = c->buffer, .wait = c->clock - 1, .set = c->clock};
}
static tsr_slot_use chain_end(chain *c) {
    int64_t wait = c->clock;
    c->clock = (wait / TSR_SLOT_STAGES + 1) * TSR_SLOT_STAGES;
    return (tsr_slot_use){.buffer = c->buffer, .wait = wait, .set = c->clock};
}

/* The same, from `offset` bytes on. */
static tsr_slot_use use_at(tsr_slot_use use, size_t offset) {
    use.offset = offset;
    return use;
}

static const tsr_slot_use unused = {.buffer = -1, .set = -1};

static tsr_step step_new(tsr_step_kind kind, tsr_lane lane, tsr_slot_use s0, tsr_slot_use s1, tsr_slot_use s2) {
    return (tsr_step){.kind = kind, .lane = lane, .slots = {s0, s1, s2}};
}

static tsr_status emit(emitter *e, const tsr_step *step) { return e->sink(e->context, step); }

/* ---- A and B: one panel to where the kernel reads it ----------------------------------------- */

/* One operand, as this rank sees it. */
typedef struct {
    tsr_operand_name name;
    const tsr_operand *operand;
    tsr_data_path path;
    tsr_slot_class host, panel, packed;
    int parts, part; /* ranks that share the panel, and which of them this one is */
    bool pack, keep, keep_host;
} side;

static side side_of(const emitter *e, tsr_operand_name name) {
    const tsr_plan *plan = e->plan;
    const tsr_operand *operand = &plan->problem.operand[name];
    return (side){.name = name,
                  .operand = operand,
                  .path = tsr_plan_path(plan, operand->path),
                  .host = tsr_slot_of(TSR_SLOT_HOST_A, name),
                  .panel = tsr_slot_of(TSR_SLOT_PANEL_A, name),
                  .packed = tsr_slot_of(TSR_SLOT_PACKED_A, name),
                  .parts = tsr_plan_side(plan, name).sharing,
                  .part = name == TSR_OPERAND_A ? e->col : e->row,
                  .pack = plan->operand[name].pack,
                  .keep = plan->operand[name].keep != TSR_KEEP_NONE,
                  .keep_host = plan->operand[name].keep_host};
}

/* One panel in one super-block: its number when each is counted once, whether an earlier super-block had it, whether
 * this is the last that this rank multiplies with it, and the last of all. */
typedef struct {
    int64_t number;
    bool again, last, final;
} visit;

/* What of a panel this rank fetches. Rows are shared out in pieces of equal height, so that the pieces one after
 * another are the panel. */
typedef struct {
    tsr_rect stored, mine;        /* of the file */
    size_t piece, own, whole, at; /* bytes of a piece, of mine, of the panel; where mine begins */
    bool gather;
} cut;

static cut cut_panel(const emitter *e, const side *s, tsr_rect stored) {
    int parts = tsr_plan_exchanges(e->plan, s->path) ? s->parts : 1, part = parts > 1 ? s->part : 0;
    size_t row_bytes = (size_t)stored.cols * tsr_dtype_bytes(s->operand->element.dtype);
    int64_t height = tsr_ceil_div(stored.rows, parts), start = tsr_min(stored.rows, part * height);
    tsr_rect mine = {stored.row + start, stored.col, tsr_min(height, stored.rows - start), stored.cols};
    return (cut){.stored = stored,
                 .mine = mine,
                 .piece = (size_t)height * row_bytes,
                 .own = (size_t)mine.rows * row_bytes,
                 .whole = (size_t)stored.rows * row_bytes,
                 .at = (size_t)(part * height) * row_bytes,
                 .gather = parts > 1};
}

/* What is kept has a content number of its own, the rest is counted as it comes. */
static chain chain_kept(emitter *e, tsr_slot_class slot, bool keep, const visit *v) {
    return keep ? chain_at(e, slot, v->number) : chain_begin(e, slot);
}
static tsr_slot_use chain_next(chain *c, bool end) { return end ? chain_end(c) : chain_touch(c); }

static tsr_status emit_read(emitter *e, tsr_operand_name name, tsr_rect rect, size_t bytes, tsr_slot_use to) {
    tsr_step step = step_new(TSR_STEP_READ, TSR_LANE_READ, to, unused, unused);
    step.operand = name;
    step.rect = rect;
    step.bytes = bytes;
    step.lane_bytes = (double)bytes;
    return emit(e, &step);
}

static tsr_status emit_upload(emitter *e, tsr_operand_name name, size_t bytes, tsr_slot_use from, tsr_slot_use to) {
    tsr_step step = step_new(TSR_STEP_UPLOAD, TSR_LANE_UPLOAD, from, to, unused);
    step.operand = name;
    step.bytes = bytes;
    step.lane_bytes = (double)bytes;
    return emit(e, &step);
}

static tsr_status emit_gather(emitter *e, const side *s, const cut *c, tsr_slot_use in) {
    tsr_step step = step_new(TSR_STEP_GATHER, TSR_LANE_EXCHANGE, in, unused, unused);
    step.operand = s->name;
    step.bytes = c->piece;
    step.lane_bytes = (double)(c->whole - c->own);
    return emit(e, &step);
}

/* What was read, in a host buffer: this rank's piece, or the whole panel where ranks exchange host memory. */
static tsr_status emit_host(emitter *e, const side *s, const cut *c, const visit *v, bool wanted, chain *host) {
    const bool exchange = c->gather && !e->plan->resources.device_exchange;
    *host = chain_kept(e, s->host, s->keep_host, v);
    if (s->keep_host && v->again) {
        host->clock += 1 + exchange;
        return TSR_OK;
    }
    tsr_slot_use to = chain_next(host, !exchange && !wanted);
    TSR_TRY(emit_read(e, s->name, c->mine, c->own, use_at(to, exchange ? c->at : 0)));
    return exchange ? emit_gather(e, s, c, chain_next(host, !wanted)) : TSR_OK;
}

/* Whether ranks gather the panel where the kernel, or packing, reads it. */
static bool gathers(const emitter *e, const side *s) {
    const tsr_resources *res = &e->plan->resources;
    return s->parts > 1 && tsr_plan_exchanges(e->plan, s->path) && (res->host_memory || res->device_exchange);
}

/* The panel where the device can read it, as it is stored. */
static tsr_status emit_load(emitter *e, const side *s, const cut *c, const visit *v, bool wanted, chain *panel) {
    const tsr_resources *res = &e->plan->resources;
    const bool gather = gathers(e, s), keep = s->keep && !s->pack;
    if (!gather && !wanted) { /* ranks that share host memory need this one's piece all the same */
        chain host;
        return c->gather ? emit_host(e, s, c, v, false, &host) : TSR_OK;
    }
    if (res->host_memory) {
        *panel = chain_kept(e, s->panel, keep, v);
        TSR_TRY(emit_read(e, s->name, c->mine, c->own, use_at(chain_touch(panel), c->at)));
    } else if (s->path == TSR_DATA_PATH_HOST) {
        chain host;
        TSR_TRY(emit_host(e, s, c, v, true, &host));
        *panel = chain_kept(e, s->panel, keep, v);
        bool later = !(gather ? v->final : v->last); /* the piece is for others, too */
        tsr_slot_use from = s->keep_host && later ? chain_hold(&host) : chain_end(&host);
        tsr_slot_use to = use_at(chain_touch(panel), gather ? c->at : 0);
        TSR_TRY(emit_upload(e, s->name, gather ? c->own : c->whole, from, to));
    } else {
        *panel = chain_kept(e, s->panel, keep, v);
        bool mapped = s->path == TSR_DATA_PATH_MAPPED;
        tsr_step step = step_new(mapped ? TSR_STEP_COPY_IN : TSR_STEP_GENERATE, TSR_LANE_UPLOAD,
                                 use_at(chain_touch(panel), c->at), unused, unused);
        step.operand = s->name;
        step.rect = c->mine;
        step.bytes = c->own;
        step.lane_bytes = (double)c->own;
        TSR_TRY(emit(e, &step));
    }
    return gather ? emit_gather(e, s, c, chain_next(panel, !wanted)) : TSR_OK;
}

static tsr_status emit_pack(emitter *e, const side *s, const cut *c, const visit *v, chain *panel) {
    const int64_t multiple = e->plan->resources.multiple;
    chain packed = chain_kept(e, s->packed, s->keep, v);
    tsr_step step = step_new(TSR_STEP_PACK, TSR_LANE_PACK, chain_end(panel), chain_touch(&packed), unused);
    step.operand = s->name;
    step.rect = (tsr_rect){0, 0, c->stored.rows, c->stored.cols};
    const tsr_form form = tsr_problem_form(&e->plan->problem, s->name);
    step.m = tsr_round_up(s->operand->transpose ? c->stored.cols : c->stored.rows, multiple) * tsr_form_rows(form);
    step.n = tsr_round_up(s->operand->transpose ? c->stored.rows : c->stored.cols, multiple) * tsr_form_cols(form);
    step.ld = tsr_plan_packed_ld(e->plan, step.n);
    step.lane_bytes =
        (double)c->whole + (double)step.m * (double)step.n * (double)tsr_dtype_bytes(e->plan->problem.input);
    *panel = packed;
    return emit(e, &step);
}

/* `stored`: the panel as rows and columns of the file. `wanted`: this rank multiplies it (false: it only helps to
 * read). */
static tsr_status emit_panel(emitter *e, const side *s, tsr_rect stored, const visit *v, bool wanted, chain *ready) {
    const cut c = cut_panel(e, s, stored);
    if (s->keep && v->again) {
        *ready = chain_at(e, s->pack ? s->packed : s->panel, v->number);
        ready->clock += 1 + (!s->pack && gathers(e, s));
        return TSR_OK;
    }
    TSR_TRY(emit_load(e, s, &c, v, wanted, ready));
    return wanted && s->pack ? emit_pack(e, s, &c, v, ready) : TSR_OK;
}

/* The part of a stored operand that covers `outer` (of m or n) and `inner` (of k); `k_is_cols`: stored with k along
 * columns. */
static tsr_rect stored_rect(bool k_is_cols, tsr_span outer, tsr_span inner) {
    return k_is_cols ? (tsr_rect){outer.start, inner.start, outer.count, inner.count}
                     : (tsr_rect){inner.start, outer.start, inner.count, outer.count};
}

/* ---- one super-block ------------------------------------------------------------------------- */

/* One super-block on this rank: which one, and its rows and columns of C. */
typedef struct {
    int64_t i, j;
    tsr_span rows, cols;
    bool mine; /* neither is empty */
} block;

static tsr_span block_rows(const emitter *e, int64_t i) { return tsr_plan_span(e->plan, TSR_OPERAND_A, i, e->row); }
static tsr_span block_cols(const emitter *e, int64_t j) { return tsr_plan_span(e->plan, TSR_OPERAND_B, j, e->col); }

static tsr_rect rect_of(const block *at) {
    return (tsr_rect){at->rows.start, at->cols.start, at->rows.count, at->cols.count};
}

/* Whether the kernel reads the panel where this super-block gathers it. */
static bool gathered_now(const emitter *e, const side *s, const visit *v) {
    return !s->pack && !(s->keep && v->again) && gathers(e, s);
}

/* The pieces of a panel that a kernel reads as it is stored, where ranks gather it. */
static void set_pieces(const side *s, tsr_rect stored, bool gathered, tsr_sweep_product *product) {
    product->operand[s->name].pieces = gathered ? s->parts : 1;
    product->operand[s->name].mine = gathered ? s->part : 0;
    product->operand[s->name].height = gathered ? tsr_ceil_div(stored.rows, s->parts) : stored.rows;
}

static void set_product(const tsr_plan *plan, const block *at, tsr_span ks, bool first, tsr_step *step) {
    const tsr_problem *problem = &plan->problem;
    const int64_t multiple = plan->resources.multiple;
    const double element = (double)tsr_dtype_bytes(problem->input), sum = (double)tsr_dtype_bytes(problem->type);
    const tsr_extents reals = tsr_problem_reals(problem);
    step->m = tsr_round_up(at->rows.count, multiple) * reals.m;
    step->n = tsr_round_up(at->cols.count, multiple) * reals.n;
    step->k = tsr_round_up(ks.count, multiple) * reals.k;
    step->ld = step->n;
    step->rect = rect_of(at);
    step->lda = plan->operand[TSR_OPERAND_A].pack ? tsr_plan_packed_ld(plan, step->k) : step->k;
    step->ldb = plan->operand[TSR_OPERAND_B].pack ? tsr_plan_packed_ld(plan, step->n) : step->n;
    step->accumulate = !first;
    step->flops =
        2.0 * (double)(at->rows.count * reals.m) * (double)(at->cols.count * reals.n) * (double)(ks.count * reals.k);
    step->lane_bytes = ((double)step->m * (double)step->k + (double)step->k * (double)step->n) * element +
                       (first ? 1.0 : 2.0) * (double)step->m * (double)step->n * sum;
}

/* Blocks come in an order in which j grows along every row of them and i along every column: a band of A is there
 * from j = 0 on, one of B from i = 0 on. Blocks at the end may hold nothing of this rank: the last that does ends
 * the use. */
static tsr_status emit_sweep(emitter *e, const block *at, chain *sum) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    const side a = side_of(e, TSR_OPERAND_A), b = side_of(e, TSR_OPERAND_B);
    const int64_t end_i = plan->blocks_m - (block_rows(e, plan->blocks_m - 1).count > 0 ? 1 : 2);
    const int64_t end_j = plan->blocks_n - (block_cols(e, plan->blocks_n - 1).count > 0 ? 1 : 2);
    tsr_span range = tsr_partition(problem->k, plan->r, e->depth);
    int64_t panels = tsr_ceil_div(range.count, plan->panel);

    for (int64_t t = 0; t < panels; t++) {
        tsr_span ks = tsr_span_within(range, tsr_block(range.count, plan->panel, t));
        const visit va = {at->i * panels + t, at->j > 0, at->j == end_j, at->j + 1 == plan->blocks_n};
        const visit vb = {at->j * panels + t, at->i > 0, at->i == end_i, at->i + 1 == plan->blocks_m};
        const tsr_rect stored_a = stored_rect(tsr_problem_k_is_cols(problem, TSR_OPERAND_A), at->rows, ks),
                       stored_b = stored_rect(tsr_problem_k_is_cols(problem, TSR_OPERAND_B), at->cols, ks);
        chain ready_a = {-1, 0}, ready_b = {-1, 0};
        if (at->rows.count > 0) TSR_TRY(emit_panel(e, &a, stored_a, &va, at->mine, &ready_a));
        if (at->cols.count > 0) TSR_TRY(emit_panel(e, &b, stored_b, &vb, at->mine, &ready_b));
        if (!at->mine) continue;
        bool end = t + 1 == panels;
        tsr_slot_use use = !end ? chain_hold(sum) : chain_next(sum, tsr_plan_keeps_c(plan));
        tsr_slot_use use_a = a.keep && !va.last ? chain_hold(&ready_a) : chain_end(&ready_a);
        tsr_slot_use use_b = b.keep && !vb.last ? chain_hold(&ready_b) : chain_end(&ready_b);
        tsr_sweep_product product = {.plan = plan,
                                     .step = step_new(TSR_STEP_MULTIPLY, TSR_LANE_MULTIPLY, use_a, use_b, use)};
        set_product(plan, at, ks, t == 0, &product.step);
        set_pieces(&a, stored_a, gathered_now(e, &a, &va), &product);
        set_pieces(&b, stored_b, gathered_now(e, &b, &vb), &product);
        TSR_TRY(e->multiply(&product, e->sink, e->context));
    }
    if (at->mine && panels == 0) {
        tsr_step step =
            step_new(TSR_STEP_ZERO, TSR_LANE_MULTIPLY, chain_next(sum, tsr_plan_keeps_c(plan)), unused, unused);
        int64_t multiple = plan->resources.multiple;
        const int64_t ld = tsr_round_up(at->cols.count, multiple);
        step.ld = ld * tsr_problem_reals(problem).n;
        step.rect = rect_of(at);
        step.bytes = (size_t)tsr_round_up(at->rows.count, multiple) * (size_t)ld * tsr_problem_sum_bytes(problem);
        TSR_TRY(emit(e, &step));
    }
    return TSR_OK;
}

/* Rows `strip` (of the local tile) from the accumulator at `from` to the file. `ld`: elements of C. */
static tsr_status emit_strip(emitter *e, tsr_span rows, tsr_span cols, tsr_slot_use from, int64_t ld) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    bool host_memory = plan->resources.host_memory;
    tsr_rect rect = {rows.start, cols.start, rows.count, cols.count};
    tsr_slot_use c0_use = unused;
    if (problem->add_c0) {
        size_t bytes = (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(problem->c0.dtype);
        chain c0 = chain_begin(e, TSR_SLOT_C0);
        if (host_memory) {
            TSR_TRY(emit_read(e, TSR_OPERAND_C0, rect, bytes, chain_touch(&c0)));
        } else {
            chain host = chain_begin(e, TSR_SLOT_C0_HOST);
            TSR_TRY(emit_read(e, TSR_OPERAND_C0, rect, bytes, chain_touch(&host)));
            TSR_TRY(emit_upload(e, TSR_OPERAND_C0, bytes, chain_end(&host), chain_touch(&c0)));
        }
        c0_use = chain_end(&c0);
    }
    size_t bytes = (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(problem->out);
    if (tsr_plan_finishes(plan)) {
        chain out = chain_begin(e, TSR_SLOT_OUT);
        tsr_step finish = step_new(TSR_STEP_FINISH, TSR_LANE_DOWNLOAD, from, chain_touch(&out), c0_use);
        finish.ld = ld * tsr_problem_reals(problem).n;
        finish.m = rows.count;
        finish.n = cols.count;
        finish.bytes = bytes;
        finish.lane_bytes = host_memory ? (double)bytes : 0;
        TSR_TRY(emit(e, &finish));
        from = chain_end(&out);
        ld = cols.count;
    }
    if (!host_memory) {
        bool mapped = problem->c_path == TSR_DATA_PATH_MAPPED;
        chain host = mapped ? (chain){-1, 0} : chain_begin(e, TSR_SLOT_OUT_HOST);
        tsr_step copy = step_new(mapped ? TSR_STEP_COPY_OUT : TSR_STEP_DOWNLOAD, TSR_LANE_DOWNLOAD, from,
                                 mapped ? unused : chain_touch(&host), unused);
        copy.operand = TSR_OPERAND_C;
        copy.rect = rect;
        copy.ld = ld;
        copy.bytes = bytes;
        copy.lane_bytes = (double)bytes;
        TSR_TRY(emit(e, &copy));
        if (mapped) return TSR_OK;
        from = chain_end(&host);
    }
    tsr_step write = step_new(TSR_STEP_WRITE, TSR_LANE_WRITE, from, unused, unused);
    write.operand = TSR_OPERAND_C;
    write.rect = rect;
    write.bytes = bytes;
    write.lane_bytes = (double)bytes;
    return emit(e, &write);
}

static tsr_status emit_reduce(emitter *e, tsr_slot_use sum, int64_t count, tsr_slot_use part) {
    const tsr_plan *plan = e->plan;
    tsr_slot_use staging = unused;
    if (plan->slots[TSR_SLOT_PART_HOST].count > 0) {
        chain host = chain_begin(e, TSR_SLOT_PART_HOST);
        staging = chain_end(&host);
    }
    tsr_step step = step_new(TSR_STEP_REDUCE, TSR_LANE_EXCHANGE, sum, part, staging);
    step.count = count * (int64_t)(tsr_problem_sum_bytes(&plan->problem) / tsr_dtype_bytes(plan->problem.type));
    step.bytes = (size_t)count * tsr_problem_sum_bytes(&plan->problem);
    step.lane_bytes = (double)step.bytes * (plan->r - 1);
    return emit(e, &step);
}

/* C of one super-block, strip by strip: of every r·strip rows this rank finishes the `strip` rows of its depth. */
static tsr_status emit_finish(emitter *e, tsr_span rows, tsr_span cols, chain *sum) {
    const tsr_plan *plan = e->plan;
    int64_t ld = tsr_round_up(cols.count, plan->resources.multiple), stride = plan->strip * plan->r;
    size_t row_bytes = (size_t)ld * tsr_problem_sum_bytes(&plan->problem);
    for (int64_t start = 0; start < rows.count; start += stride) {
        bool last = start + stride >= rows.count;
        size_t offset = (size_t)start * row_bytes;
        tsr_slot_use from = use_at(last ? chain_end(sum) : chain_hold(sum), offset);
        int64_t first = tsr_min(rows.count, start + e->depth * plan->strip);
        tsr_span strip = {rows.start + first, tsr_min(plan->strip, rows.count - first)};
        if (plan->r > 1) {
            chain part = chain_begin(e, TSR_SLOT_PART);
            tsr_slot_use to = strip.count > 0 ? chain_touch(&part) : chain_end(&part);
            TSR_TRY(emit_reduce(e, from, plan->strip * ld, to));
            if (strip.count == 0) continue;
            from = chain_end(&part);
        }
        TSR_TRY(emit_strip(e, strip, cols, from, ld));
    }
    return TSR_OK;
}

static tsr_status emit_block(emitter *e, int64_t i, int64_t j) {
    block at = {i, j, block_rows(e, i), block_cols(e, j), false};
    at.mine = at.rows.count > 0 && at.cols.count > 0;
    chain sum = {-1, 0};
    if (at.mine) sum = chain_begin(e, TSR_SLOT_SUM);
    TSR_TRY(emit_sweep(e, &at, &sum));
    return at.mine && !tsr_plan_keeps_c(e->plan) ? emit_finish(e, at.rows, at.cols, &sum) : TSR_OK;
}

/* In growing squares: with each new band of A or B, all super-blocks that it makes possible. */
static tsr_status emit_growing(emitter *e) {
    const int64_t down = e->plan->blocks_m, across = e->plan->blocks_n;
    for (int64_t edge = 0; edge < tsr_max(down, across); edge++) {
        for (int64_t j = 0; edge < down && j < tsr_min(edge, across); j++) TSR_TRY(emit_block(e, edge, j));
        for (int64_t i = 0; edge < across && i < tsr_min(edge, down); i++) TSR_TRY(emit_block(e, i, edge));
        if (edge < down && edge < across) TSR_TRY(emit_block(e, edge, edge));
    }
    return TSR_OK;
}

tsr_status tsr_sweep_emit(const tsr_plan *plan, int rank, tsr_sweep_multiply multiply, tsr_step_sink sink,
                          void *context) {
    emitter e = {.plan = plan,
                 .row = rank / (plan->q * plan->r),
                 .col = rank / plan->r % plan->q,
                 .depth = rank % plan->r,
                 .multiply = multiply,
                 .sink = sink,
                 .context = context};
    if (tsr_plan_grows(plan)) return emit_growing(&e);
    for (int64_t i = 0; i < plan->blocks_m; i++)
        for (int64_t j = 0; j < plan->blocks_n; j++) TSR_TRY(emit_block(&e, i, j));
    return TSR_OK;
}
