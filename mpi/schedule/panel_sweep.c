/* For each super-block of C: sweep k in panels, share A along grid rows and B along grid columns, accumulate. What was
 * summed leaves as panel_drain.c says. */
#include "mpi/schedule/panel_sweep.h"

#include <string.h>

#include "mpi/plan/gram.h"
#include "mpi/schedule/done.h"
#include "mpi/schedule/panel_drain.h"

/* ---- A and B: one panel to where the kernel reads it ----------------------------------------- */

/* One operand, as this rank sees it. */
typedef struct {
    tsr_operand_name name, source; /* source: whose elements are loaded */
    const tsr_operand *operand;
    tsr_data_path path;
    tsr_slot_class host, panel, packed;
    int parts, part; /* ranks that share the panel, and which of them this one is */
    bool pack, keep, keep_host;
} side;

static side side_of(const tsr_emitter *e, tsr_operand_name name) {
    const tsr_plan *plan = e->plan;
    const tsr_operand *operand = &plan->problem.operand[name];
    const tsr_operand_name source = tsr_plan_shares(plan) ? TSR_OPERAND_A : name;
    return (side){.name = name,
                  .source = source,
                  .operand = operand,
                  .path = tsr_plan_path(plan, operand->path),
                  .host = tsr_slot_of(TSR_SLOT_HOST_A, source),
                  .panel = tsr_slot_of(TSR_SLOT_PANEL_A, source),
                  .packed = tsr_slot_of(TSR_SLOT_PACKED_A, name),
                  .parts = tsr_plan_side(plan, name).sharing,
                  .part = name == TSR_OPERAND_A ? e->col : e->row,
                  .pack = plan->operand[name].pack,
                  .keep = plan->operand[name].keep != TSR_KEEP_NONE,
                  .keep_host = plan->operand[source].keep_host};
}

/* One panel in one super-block: its number when each is counted once, of all and of those that this rank multiplies;
 * whether an earlier super-block had it, whether this is the last that this rank multiplies with it, and the last of
 * all. */
typedef struct {
    int64_t number, own;
    bool again, last, final;
} visit;

/* What of a panel this rank fetches. Rows are shared out in pieces of equal height, so that the pieces one after
 * another are the panel. */
typedef struct {
    tsr_rect stored, mine;        /* of the file */
    size_t piece, own, whole, at; /* bytes of a piece, of mine, of the panel; where mine begins */
    bool gather;
} cut;

static cut cut_panel(const tsr_emitter *e, const side *s, tsr_rect stored) {
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
static tsr_chain chain_kept(tsr_emitter *e, tsr_slot_class slot, bool keep, int64_t number) {
    return keep ? tsr_chain_at(e, slot, number) : tsr_chain_begin(e, slot);
}

static tsr_status emit_gather(tsr_emitter *e, const side *s, const cut *c, tsr_slot_use in) {
    tsr_step step = tsr_step_new(TSR_STEP_GATHER, TSR_LANE_EXCHANGE, in, tsr_unused, tsr_unused);
    step.operand = s->name;
    step.rect = c->stored;
    step.bytes = c->piece;
    step.lane_bytes = (double)(c->whole - c->own);
    return tsr_emit(e, &step);
}

/* What was read, in a host buffer: this rank's piece, or the whole panel where ranks exchange host memory. */
static tsr_status emit_host(tsr_emitter *e, const side *s, const cut *c, const visit *v, bool wanted, tsr_chain *host) {
    const bool exchange = c->gather && !e->plan->resources.device_exchange;
    *host = chain_kept(e, s->host, s->keep_host, v->number);
    if (s->keep_host && v->again) {
        host->clock += 1 + exchange;
        return TSR_OK;
    }
    tsr_slot_use to = tsr_chain_next(host, !exchange && !wanted);
    TSR_TRY(tsr_emit_read(e, s->source, c->mine, c->own, tsr_use_at(to, exchange ? c->at : 0)));
    return exchange ? emit_gather(e, s, c, tsr_chain_next(host, !wanted)) : TSR_OK;
}

/* Whether ranks gather the panel where the kernel, or packing, reads it. */
static bool gathers(const tsr_emitter *e, const side *s) {
    const tsr_resources *res = &e->plan->resources;
    return s->parts > 1 && tsr_plan_exchanges(e->plan, s->path) && (res->host_memory || res->device_exchange);
}

/* The number of a panel that is kept as the kernel reads it. What ranks gather there goes by all of them. */
static int64_t number_kept(const tsr_emitter *e, const side *s, const visit *v) {
    return !s->pack && gathers(e, s) ? v->number : v->own;
}

/* Reads this rank's piece of a panel, which is not empty, and uploads it, portion by portion; `at`: where it begins on
 * the device. */
static tsr_status emit_portions(tsr_emitter *e, const side *s, const cut *c, size_t at, tsr_chain *panel) {
    const size_t row_bytes = c->own / (size_t)c->mine.rows;
    const int64_t most = (int64_t)(tsr_plan_portion_bytes(e->plan) / row_bytes);
    for (int64_t row = 0; row < c->mine.rows; row += most) {
        const bool ends = row + most >= c->mine.rows;
        const tsr_rect portion = {c->mine.row + row, c->mine.col, tsr_min(most, c->mine.rows - row), c->mine.cols};
        const size_t bytes = (size_t)portion.rows * row_bytes;
        tsr_chain host = tsr_chain_begin(e, s->host);
        TSR_TRY(tsr_emit_read(e, s->source, portion, bytes, tsr_chain_touch(&host)));
        const tsr_slot_use to = ends ? tsr_chain_touch(panel) : tsr_chain_hold(panel);
        TSR_TRY(
            tsr_emit_upload(e, s->source, bytes, tsr_chain_end(&host), tsr_use_at(to, at + (size_t)row * row_bytes)));
    }
    return TSR_OK;
}

/* The panel where the device can read it, as it is stored. */
static tsr_status emit_load(tsr_emitter *e, const side *s, const cut *c, const visit *v, bool wanted,
                            tsr_chain *panel) {
    const tsr_resources *res = &e->plan->resources;
    const bool gather = gathers(e, s), keep = s->keep && !s->pack;
    const int64_t number = number_kept(e, s, v);
    if (!gather && !wanted) { /* ranks that share host memory need this one's piece all the same */
        tsr_chain host;
        return c->gather ? emit_host(e, s, c, v, false, &host) : TSR_OK;
    }
    if (res->host_memory) {
        *panel = chain_kept(e, s->panel, keep, number);
        TSR_TRY(tsr_emit_read(e, s->source, c->mine, c->own, tsr_use_at(tsr_chain_touch(panel), c->at)));
    } else if (tsr_plan_reads_portions(e->plan, s->source) && c->own > 0) {
        *panel = chain_kept(e, s->panel, keep, number);
        TSR_TRY(emit_portions(e, s, c, gather ? c->at : 0, panel));
    } else if (s->path == TSR_DATA_PATH_HOST) {
        tsr_chain host;
        TSR_TRY(emit_host(e, s, c, v, true, &host));
        *panel = chain_kept(e, s->panel, keep, number);
        bool later = !(gather ? v->final : v->last); /* the piece is for others, too */
        tsr_slot_use from = s->keep_host && later ? tsr_chain_hold(&host) : tsr_chain_end(&host);
        tsr_slot_use to = tsr_use_at(tsr_chain_touch(panel), gather ? c->at : 0);
        TSR_TRY(tsr_emit_upload(e, s->source, gather ? c->own : c->whole, from, to));
    } else {
        *panel = chain_kept(e, s->panel, keep, number);
        bool mapped = s->path == TSR_DATA_PATH_MAPPED;
        tsr_step step = tsr_step_new(mapped ? TSR_STEP_COPY_IN : TSR_STEP_GENERATE, TSR_LANE_UPLOAD,
                                     tsr_use_at(tsr_chain_touch(panel), c->at), tsr_unused, tsr_unused);
        step.operand = s->source;
        step.rect = c->mine;
        step.bytes = c->own;
        step.lane_bytes = (double)c->own;
        TSR_TRY(tsr_emit(e, &step));
    }
    return gather ? emit_gather(e, s, c, tsr_chain_next(panel, !wanted)) : TSR_OK;
}

static tsr_status emit_pack(tsr_emitter *e, const side *s, const cut *c, const visit *v, tsr_slot_use panel,
                            tsr_chain *ready) {
    const int64_t multiple = e->plan->resources.multiple;
    *ready = chain_kept(e, s->packed, s->keep, number_kept(e, s, v));
    tsr_step step = tsr_step_new(TSR_STEP_PACK, TSR_LANE_PACK, panel, tsr_chain_touch(ready), tsr_unused);
    step.operand = s->name;
    step.rect = c->stored;
    const tsr_form form = tsr_problem_form(&e->plan->problem, s->name);
    step.m = tsr_round_up(s->operand->transpose ? c->stored.cols : c->stored.rows, multiple) * tsr_form_rows(form);
    step.n = tsr_round_up(s->operand->transpose ? c->stored.rows : c->stored.cols, multiple) * tsr_form_cols(form);
    step.ld = tsr_plan_packed_ld(e->plan, step.n);
    step.lane_bytes =
        (double)c->whole + (double)step.m * (double)step.n * (double)tsr_dtype_bytes(e->plan->problem.input);
    return tsr_emit(e, &step);
}

/* `stored`: the panel as rows and columns of the file. `wanted`: this rank multiplies it (false: it only helps to
 * read). */
static tsr_status emit_panel(tsr_emitter *e, const side *s, tsr_rect stored, const visit *v, bool wanted,
                             tsr_chain *ready) {
    const cut c = cut_panel(e, s, stored);
    if (s->keep && v->again) {
        *ready = tsr_chain_at(e, s->pack ? s->packed : s->panel, number_kept(e, s, v));
        ready->clock += 1 + (!s->pack && gathers(e, s));
        return TSR_OK;
    }
    TSR_TRY(emit_load(e, s, &c, v, wanted, ready));
    if (!wanted || !s->pack) return TSR_OK;
    tsr_slot_use panel = tsr_chain_end(ready);
    return emit_pack(e, s, &c, v, panel, ready);
}

/* A panel of A that is also one of B, loaded once. The kernel reads one of them as it is stored at most: the other is
 * its transpose. */
static tsr_status emit_shared(tsr_emitter *e, const side *a, const side *b, tsr_rect stored, const visit *v,
                              tsr_chain *ready_a, tsr_chain *ready_b) {
    const cut c = cut_panel(e, a, stored);
    const bool as_stored = !a->pack || !b->pack;
    side loaded = a->pack ? *b : *a;
    tsr_chain panel;
    TSR_TRY(emit_load(e, &loaded, &c, v, true, &panel));
    *ready_a = *ready_b = panel;
    if (a->pack) TSR_TRY(emit_pack(e, a, &c, v, tsr_chain_hold(&panel), ready_a));
    if (!b->pack) return TSR_OK;
    return emit_pack(e, b, &c, v, as_stored ? tsr_chain_hold(&panel) : tsr_chain_end(&panel), ready_b);
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
    bool diagonal; /* of a Gram matrix */
    bool mine;     /* something of it is multiplied here */
} block;

static tsr_span block_rows(const tsr_emitter *e, int64_t i) { return tsr_plan_span(e->plan, TSR_OPERAND_A, i, e->row); }
static tsr_span block_cols(const tsr_emitter *e, int64_t j) { return tsr_plan_span(e->plan, TSR_OPERAND_B, j, e->col); }

static tsr_rect rect_of(const block *at) {
    return (tsr_rect){at->rows.start, at->cols.start, at->rows.count, at->cols.count};
}

/* Whether the kernel reads the panel where this super-block gathers it. */
static bool gathered_now(const tsr_emitter *e, const side *s, const visit *v) {
    return !s->pack && !(s->keep && v->again) && gathers(e, s);
}

/* The pieces of a panel that a kernel reads as it is stored, where ranks gather it. */
static void set_pieces(const side *s, tsr_rect stored, bool gathered, tsr_sweep_product *product) {
    product->operand[s->name].pieces = gathered ? s->parts : 1;
    product->operand[s->name].mine = gathered ? s->part : 0;
    product->operand[s->name].height = gathered ? tsr_ceil_div(stored.rows, s->parts) : stored.rows;
}

/* What a super-block reads of an operand. */
static tsr_rect panel_rect(const tsr_emitter *e, tsr_operand_name name, const block *at, tsr_span ks) {
    const tsr_problem *problem = &e->plan->problem;
    const int64_t rows = tsr_problem_product_rows(problem);
    if (problem->batch > 1) return tsr_problem_stack_rect(problem, name, at->rows.start / rows, at->rows.count / rows);
    return stored_rect(tsr_problem_k_is_cols(problem, name), name == TSR_OPERAND_A ? at->rows : at->cols, ks);
}

/* Elements from one product's part of an operand to the next one's, which is read as it is stored, or packed; and *ld
 * from row to row. */
static int64_t stack_stride(const tsr_plan *plan, tsr_operand_name name, int64_t products, int64_t *ld) {
    const tsr_operand *x = &plan->problem.operand[name];
    const tsr_rect one = tsr_problem_stack_rect(&plan->problem, name, 0, 1);
    const int64_t cols = !x->transpose ? one.cols : x->common ? one.rows : products * one.rows;
    *ld = plan->operand[name].pack ? tsr_plan_packed_ld(plan, cols) : cols;
    return x->common ? 0 : x->transpose ? one.rows : one.rows * *ld;
}

/* The products of a super-block of a stack. */
static void set_stack(const tsr_plan *plan, tsr_rect part, tsr_step *step) {
    const tsr_problem *problem = &plan->problem;
    const int64_t rows = tsr_problem_product_rows(problem);
    step->batch = part.rows / rows;
    step->m = rows;
    step->stride_a = stack_stride(plan, TSR_OPERAND_A, step->batch, &step->lda);
    step->stride_b = stack_stride(plan, TSR_OPERAND_B, step->batch, &step->ldb);
    step->stride_c = rows * step->ld;
    step->lane_bytes = (double)step->batch * ((double)rows + (double)step->n) * (double)step->k *
                           (double)tsr_dtype_bytes(problem->input) +
                       (double)part.rows * (double)step->n * (double)tsr_dtype_bytes(problem->type);
}

static void set_product(const tsr_plan *plan, tsr_rect part, tsr_span ks, bool first, tsr_step *step) {
    const tsr_problem *problem = &plan->problem;
    const int64_t multiple = plan->resources.multiple;
    const double element = (double)tsr_dtype_bytes(problem->input), sum = (double)tsr_dtype_bytes(problem->type);
    const tsr_extents reals = tsr_problem_reals(problem);
    step->m = tsr_round_up(part.rows, multiple) * reals.m;
    step->n = tsr_round_up(part.cols, multiple) * reals.n;
    step->k = tsr_round_up(ks.count, multiple) * reals.k;
    step->rect = part;
    step->lda = plan->operand[TSR_OPERAND_A].pack ? tsr_plan_packed_ld(plan, step->k) : step->k;
    step->accumulate = !first;
    step->flops = 2.0 * (double)(part.rows * reals.m) * (double)(part.cols * reals.n) * (double)(ks.count * reals.k);
    if (plan->compares) step->flops = 0;
    step->lane_bytes = ((double)step->m * (double)step->k + (double)step->k * (double)step->n) * element +
                       (first ? 1.0 : 2.0) * (double)step->m * (double)step->n * sum;
    step->batch = 1;
    if (problem->batch > 1) set_stack(plan, part, step);
}

/* The next rows of a super-block that are multiplied at once, from `row` of this rank's on: all of them, or of one on
 * the diagonal a strip, with the columns that it needs. */
static tsr_rect next_strip(const tsr_plan *plan, const block *at, int64_t row) {
    const int64_t height = at->diagonal ? tsr_gram_strip(plan, at->rows.count) : at->rows.count;
    int64_t rows = tsr_min(height, at->rows.count - row), cols = at->cols.count;
    if (at->diagonal) {
        cols = tsr_min(cols, at->rows.start + row + rows - at->cols.start);
        if (cols == at->cols.count) rows = at->rows.count - row; /* all that is left is as wide */
    }
    return (tsr_rect){at->rows.start + row, at->cols.start, rows, cols};
}

/* The first row that has something on or below the diagonal, at the kernel's tiles. */
static int64_t first_row(const tsr_plan *plan, const block *at) {
    const int64_t above = at->diagonal ? tsr_max(0, at->cols.start - at->rows.start) : 0;
    return above / tsr_gram_step(plan) * tsr_gram_step(plan);
}

/* The products of one panel of A and one of B; with the last of them the buffers are used as `product` says. */
static tsr_status emit_products(tsr_emitter *e, const block *at, tsr_span ks, bool first, bool closes,
                                tsr_sweep_product *product) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    tsr_slot_use last[TSR_STEP_SLOTS];
    memcpy(last, product->step.slots, sizeof last);
    const tsr_extents reals = tsr_problem_reals(problem);
    product->step.ld = tsr_round_up(at->cols.count, plan->resources.multiple) * reals.n;
    product->step.ldb =
        plan->operand[TSR_OPERAND_B].pack ? tsr_plan_packed_ld(plan, product->step.ld) : product->step.ld;
    for (int64_t row = first_row(plan, at); row < at->rows.count;) {
        const tsr_rect part = next_strip(plan, at, row);
        const bool ends = row + part.rows == at->rows.count;
        if (!tsr_problem_keeps_blocks(problem, part, ks.start, ks.start + ks.count))
            return tsr_fail(TSR_FAILURE,
                            "a step begins or ends within a block of C, at row %lld, column %lld, k = %lld",
                            (long long)part.row, (long long)part.col, (long long)ks.start);
        set_product(plan, part, ks, first, &product->step);
        product->step.count = row * reals.m;
        product->step.opens = first && row == first_row(plan, at);
        product->step.closes = closes;
        for (int i = 0; i < TSR_STEP_SLOTS; i++) {
            product->step.slots[i] = last[i];
            if (!ends) product->step.slots[i].set = -1;
        }
        product->step.slots[0].offset = (size_t)(row * reals.m * product->step.lda) * tsr_dtype_bytes(problem->input);
        product->step.slots[2].offset += (size_t)(row * reals.m * product->step.ld) * tsr_dtype_bytes(problem->type);
        e->product = product->step;
        TSR_TRY(e->multiply(product, e->sink, e->context));
        row += part.rows;
    }
    return TSR_OK;
}

/* Which panels of A and of B a super-block needs. Blocks come in an order in which j grows along every row of them and
 * i along every column: a band of A is there from j = 0 on, one of B from i = 0 on. Blocks at the end may hold nothing
 * of this rank: the last that does ends the use. */
static void find_visits(const tsr_emitter *e, const block *at, int64_t number_a, int64_t number_b, visit *a, visit *b) {
    const tsr_plan *plan = e->plan;
    const int64_t end_i = plan->blocks_m - (block_rows(e, plan->blocks_m - 1).count > 0 ? 1 : 2);
    const int64_t end_j = plan->blocks_n - (block_cols(e, plan->blocks_n - 1).count > 0 ? 1 : 2);
    *a = (visit){number_a, number_a, at->j > 0, at->j == end_j, at->j + 1 == plan->blocks_n};
    *b = (visit){number_b, number_b, at->i > 0, at->i == end_i, at->i + 1 == plan->blocks_m};
}

/* The same where super-blocks are left out: those that are left come in the same order. */
static void find_left_visits(const tsr_emitter *e, const block *at, int64_t panels, int64_t t, visit *a, visit *b) {
    const tsr_plan *plan = e->plan;
    const struct tsr_done *done = plan->done;
    const tsr_left_line *row = &done->row[at->i], *col = &done->col[at->j];
    const int64_t end_i = plan->blocks_m - (block_rows(e, plan->blocks_m - 1).count > 0 ? 1 : 2);
    const int64_t end_j = plan->blocks_n - (block_cols(e, plan->blocks_n - 1).count > 0 ? 1 : 2);
    const int64_t own_a = end_j + 1 == plan->blocks_n ? row->number : row->inner;
    const int64_t own_b = end_i + 1 == plan->blocks_m ? col->number : col->inner;
    *a = (visit){row->number * panels + t, own_a * panels + t, at->j > row->first,
                 at->j == tsr_done_last_in_row(done, at->i, end_j), at->j == row->last};
    *b = (visit){col->number * panels + t, own_b * panels + t, at->i > col->first,
                 at->i == tsr_done_last_in_col(done, at->j, end_i), at->i == col->last};
}

/* The same of a Gram matrix: a band comes with the super-block on the diagonal, which is the first of its row. A's
 * is needed to the end of the row, and where it stays in host memory, to be loaded as B's, to the last row of all. */
static void find_gram_visits(const tsr_plan *plan, const block *at, int64_t number_a, int64_t number_b, visit *a,
                             visit *b) {
    const bool ends_row = at->i == 0 || at->j + 1 == at->i, last_row = at->i + 1 == plan->blocks_m;
    const bool last_a = ends_row && (last_row || !plan->operand[TSR_OPERAND_A].keep_host);
    *a = (visit){number_a, number_a, !at->diagonal, last_a, last_a};
    *b = (visit){number_b, number_b, !at->diagonal, last_row, last_row};
}

static tsr_status emit_sweep(tsr_emitter *e, const block *at, tsr_chain *sum) {
    const tsr_plan *plan = e->plan;
    const tsr_problem *problem = &plan->problem;
    const side a = side_of(e, TSR_OPERAND_A), b = side_of(e, TSR_OPERAND_B);
    const tsr_span range = tsr_plan_ks(plan, e->depth);
    const bool apart = tsr_plan_chains(plan);
    int64_t panels = tsr_ceil_div(range.count, plan->panel);

    for (int64_t t = 0; t < panels; t++) {
        tsr_span ks = tsr_span_within(range, tsr_block(range.count, plan->panel, t));
        visit va, vb;
        if (problem->gram) find_gram_visits(plan, at, at->i * panels + t, at->j * panels + t, &va, &vb);
        else if (plan->done) find_left_visits(e, at, panels, t, &va, &vb);
        else find_visits(e, at, at->i * panels + t, at->j * panels + t, &va, &vb);
        if (problem->operand[TSR_OPERAND_A].common) va = vb; /* of a stack: needed by all super-blocks, as B's is */
        const tsr_rect stored_a = panel_rect(e, TSR_OPERAND_A, at, ks), stored_b = panel_rect(e, TSR_OPERAND_B, at, ks);
        tsr_chain ready_a = {-1, 0}, ready_b = {-1, 0};
        if (at->diagonal && tsr_plan_shares(plan)) {
            TSR_TRY(emit_shared(e, &a, &b, stored_a, &va, &ready_a, &ready_b));
        } else {
            if (at->rows.count > 0) TSR_TRY(emit_panel(e, &a, stored_a, &va, at->mine, &ready_a));
            if (at->cols.count > 0) TSR_TRY(emit_panel(e, &b, stored_b, &vb, at->mine, &ready_b));
        }
        if (!at->mine) continue;
        bool end = t + 1 == panels;
        tsr_slot_use use = !end ? tsr_chain_hold(sum) : tsr_chain_next(sum, tsr_plan_keeps_c(plan));
        if (apart) use.offset = (size_t)t * tsr_plan_sums_bytes(plan);
        tsr_slot_use use_a = a.keep && !va.last ? tsr_chain_hold(&ready_a) : tsr_chain_end(&ready_a);
        tsr_slot_use use_b = b.keep && !vb.last ? tsr_chain_hold(&ready_b) : tsr_chain_end(&ready_b);
        tsr_sweep_product product = {.plan = plan,
                                     .step = tsr_step_new(plan->compares ? TSR_STEP_ADD_UP : TSR_STEP_MULTIPLY,
                                                          TSR_LANE_MULTIPLY, use_a, use_b, use)};
        set_pieces(&a, stored_a, !at->diagonal && gathered_now(e, &a, &va), &product);
        set_pieces(&b, stored_b, !at->diagonal && gathered_now(e, &b, &vb), &product);
        TSR_TRY(emit_products(e, at, ks, apart || t == 0, apart || end, &product));
    }
    if (at->mine && panels == 0) {
        tsr_step step = tsr_step_new(TSR_STEP_ZERO, TSR_LANE_MULTIPLY, tsr_chain_next(sum, tsr_plan_keeps_c(plan)),
                                     tsr_unused, tsr_unused);
        int64_t multiple = plan->resources.multiple;
        const int64_t ld = tsr_round_up(at->cols.count, multiple);
        step.ld = ld * tsr_problem_reals(problem).n;
        step.rect = rect_of(at);
        step.bytes = (size_t)tsr_round_up(at->rows.count, multiple) * (size_t)ld * tsr_problem_sum_bytes(problem);
        TSR_TRY(tsr_emit(e, &step));
    }
    return TSR_OK;
}

static tsr_status emit_block(tsr_emitter *e, int64_t i, int64_t j) {
    if (tsr_done_has(e->plan, i, j)) return TSR_OK;
    block at = {i, j, block_rows(e, i), block_cols(e, j), e->plan->problem.gram && i == j, false};
    at.mine = at.rows.count > 0 && at.cols.count > 0 && (!at.diagonal || at.rows.start + at.rows.count > at.cols.start);
    tsr_chain sum = {-1, 0};
    if (at.mine) sum = tsr_chain_begin(e, TSR_SLOT_SUM);
    TSR_TRY(emit_sweep(e, &at, &sum));
    return at.mine && !tsr_plan_keeps_c(e->plan) ? tsr_drain_block(e, at.rows, at.cols, at.diagonal, &sum) : TSR_OK;
}

/* Of each row the super-block on the diagonal, then those left of it. */
static tsr_status emit_lower(tsr_emitter *e) {
    for (int64_t i = 0; i < e->plan->blocks_m; i++) {
        TSR_TRY(emit_block(e, i, i));
        for (int64_t j = 0; j < i; j++) TSR_TRY(emit_block(e, i, j));
    }
    return TSR_OK;
}

/* In growing squares: with each new band of A or B, all super-blocks that it makes possible. */
static tsr_status emit_growing(tsr_emitter *e) {
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
    tsr_emitter e = {.plan = plan,
                     .row = rank / (plan->q * plan->r),
                     .col = rank / plan->r % plan->q,
                     .depth = rank % plan->r,
                     .multiply = multiply,
                     .sink = sink,
                     .context = context};
    if (plan->problem.gram) return emit_lower(&e);
    if (tsr_plan_grows(plan)) return emit_growing(&e);
    for (int64_t i = 0; i < plan->blocks_m; i++)
        for (int64_t j = 0; j < plan->blocks_n; j++) TSR_TRY(emit_block(&e, i, j));
    return TSR_OK;
}
