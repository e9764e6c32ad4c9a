#include "mpi/distribute/holdings.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/device/host_pages.h"
#include "mpi/schedule/schedule.h"

#define ALIGNMENT 256 /* of each rectangle's memory */

/* ---- rectangles of a plan -------------------------------------------------------------------- */

typedef struct {
    tsr_operand_name name;
    tsr_rects rects;
    int64_t room;
} collecting;

static bool touches(const tsr_step *step, tsr_operand_name name) {
    if (name == TSR_OPERAND_C) return step->kind == TSR_STEP_WRITE || step->kind == TSR_STEP_COPY_OUT;
    return (step->kind == TSR_STEP_READ || step->kind == TSR_STEP_COPY_IN) && step->operand == name;
}

static tsr_status collect(void *context, const tsr_step *step) {
    collecting *c = context;
    if (!touches(step, c->name) || tsr_rect_empty(step->rect)) return TSR_OK;
    if (c->rects.count == c->room) {
        c->room = tsr_max(64, 2 * c->room);
        tsr_rect *more = realloc(c->rects.rect, (size_t)c->room * sizeof *more);
        if (!more)
            return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of %lld rectangles: use larger panels",
                            (long long)c->room);
        c->rects.rect = more;
    }
    c->rects.rect[c->rects.count++] = step->rect;
    return TSR_OK;
}

static int order(int64_t a, int64_t b) { return (a > b) - (a < b); }

/* By one side, and along it. */
static int by_sides(tsr_span a, tsr_span b, tsr_span along_a, tsr_span along_b) {
    int by = order(a.start, b.start);
    if (!by) by = order(a.count, b.count);
    if (!by) by = order(along_a.start, along_b.start);
    return by ? by : order(along_a.count, along_b.count);
}

static tsr_span rows_of(const tsr_rect *x) { return (tsr_span){x->row, x->rows}; }
static tsr_span cols_of(const tsr_rect *x) { return (tsr_span){x->col, x->cols}; }

static int by_rows(const void *x, const void *y) { return by_sides(rows_of(x), rows_of(y), cols_of(x), cols_of(y)); }
static int by_cols(const void *x, const void *y) { return by_sides(cols_of(x), cols_of(y), rows_of(x), rows_of(y)); }

static void sort(tsr_rects *rects, int (*compare)(const void *, const void *)) {
    if (rects->count > 1) qsort(rects->rect, (size_t)rects->count, sizeof *rects->rect, compare);
}

static void drop_equal(tsr_rects *rects) {
    int64_t kept = 0;
    for (int64_t i = 0; i < rects->count; i++)
        if (kept == 0 || by_rows(&rects->rect[kept - 1], &rects->rect[i]) != 0) rects->rect[kept++] = rects->rect[i];
    rects->count = kept;
}

/* Those that follow each other along rows, or along columns, become one. */
static void join(tsr_rects *rects, bool along_rows) {
    int64_t kept = 0;
    for (int64_t i = 0; i < rects->count; i++) {
        const tsr_rect next = rects->rect[i];
        tsr_rect *last = &rects->rect[tsr_max(1, kept) - 1];
        const bool beside = last->row == next.row && last->rows == next.rows && last->col + last->cols == next.col;
        const bool below = last->col == next.col && last->cols == next.cols && last->row + last->rows == next.row;
        if (kept > 0 && along_rows && beside) last->cols += next.cols;
        else if (kept > 0 && !along_rows && below) last->rows += next.rows;
        else rects->rect[kept++] = next;
    }
    rects->count = kept;
}

/* As the steps have them, sorted. */
static tsr_status collect_rank(const tsr_plan *plan, int rank, tsr_operand_name name, tsr_rects *rects) {
    collecting c = {.name = name};
    tsr_status status = TSR_OK;
    if (rank < plan->p * plan->q * plan->r) status = plan->schedule->emit(plan, rank, collect, &c);
    sort(&c.rects, by_rows);
    *rects = c.rects;
    return status;
}

tsr_status tsr_rects_of_plan(const tsr_plan *plan, int rank, tsr_operand_name name, tsr_rects *rects) {
    const tsr_status status = collect_rank(plan, rank, name, rects);
    drop_equal(rects);
    join(rects, true);
    sort(rects, by_cols);
    join(rects, false);
    if (status != TSR_OK) tsr_rects_free(rects);
    return status;
}

void tsr_rects_free(tsr_rects *rects) {
    free(rects->rect);
    *rects = (tsr_rects){0};
}

tsr_status tsr_plan_replaces_c0(const tsr_plan *plan, int rank, bool *replaces) {
    tsr_rects read, written = {0};
    tsr_status status = collect_rank(plan, rank, TSR_OPERAND_C0, &read);
    if (status == TSR_OK) status = collect_rank(plan, rank, TSR_OPERAND_C, &written);
    *replaces = read.count == written.count;
    for (int64_t i = 0; *replaces && i < read.count; i++)
        *replaces =
            by_rows(&read.rect[i], &written.rect[i]) == 0 && (i == 0 || by_rows(&read.rect[i - 1], &read.rect[i]) != 0);
    tsr_rects_free(&read);
    tsr_rects_free(&written);
    return status;
}

/* ---- rectangles in memory -------------------------------------------------------------------- */

/* Where a rectangle lies in a rank's own array, if all of it does: then its elements follow each other there. */
static bool find_in_place(const tsr_distributed *matrix, int rank, tsr_holding *h) {
    const tsr_deal *x = &matrix->deal;
    const tsr_span rows = {x->part.row + h->rect.row, h->rect.rows}, cols = {x->part.col + h->rect.col, h->rect.cols};
    int row, col;
    if (!tsr_deal_place(x, rank, &row, &col) || tsr_dealt_within(&x->rows, rows, row) < rows.count ||
        tsr_dealt_within(&x->cols, cols, col) < cols.count)
        return false;
    const int64_t first =
        tsr_dealt_before(&x->rows, rows.start, row) * matrix->ld + tsr_dealt_before(&x->cols, cols.start, col);
    h->data = (char *)matrix->data + (size_t)first * tsr_dtype_bytes(matrix->dtype);
    h->ld = matrix->ld;
    h->in_place = true;
    return true;
}

static size_t holding_bytes(const tsr_holding *h, size_t element_bytes) {
    return (size_t)tsr_round_up(tsr_rect_elements(h->rect) * (int64_t)element_bytes, ALIGNMENT);
}

tsr_status tsr_holdings_make(const tsr_rects *rects, const tsr_stacked *of, const tsr_distributed *matrix, int rank,
                             bool copies, tsr_holdings *holdings) {
    const int64_t matrices = of ? of->count : 1, each = rects->count;
    int64_t count = 0;
    *holdings = (tsr_holdings){0};
    if (each == 0 || matrices == 0) return TSR_OK;
    if (!__builtin_mul_overflow(each, matrices, &count))
        holdings->holding = calloc((size_t)count, sizeof *holdings->holding);
    if (!holdings->holding)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of %lld rectangles in each of %lld matrices",
                        (long long)each, (long long)matrices);
    holdings->count = count;
    holdings->each = each;
    for (int64_t i = 0; i < count; i++) {
        tsr_holding *h = &holdings->holding[i];
        *h = (tsr_holding){.rect = rects->rect[i % each], .ld = rects->rect[i % each].cols};
        if (of) h->matrix = of->number[i / each];
        if (of) h->rect.row += h->matrix * of->rows;
        if (copies || !find_in_place(matrix, rank, h))
            holdings->bytes += holding_bytes(h, tsr_dtype_bytes(matrix->dtype));
    }
    return TSR_OK;
}

tsr_status tsr_holdings_allocate(tsr_holdings *holdings, size_t element_bytes) {
    char text[32];
    size_t at = 0;
    if (holdings->bytes > 0 && !(holdings->memory = tsr_allocate_pages(holdings->bytes, ALIGNMENT)))
        return tsr_fail(TSR_ERR_MEMORY, "no memory for %s of a distributed matrix",
                        tsr_format_bytes((double)holdings->bytes, text));
    for (int64_t i = 0; i < holdings->count; i++) {
        tsr_holding *h = &holdings->holding[i];
        if (h->in_place) continue;
        h->data = (char *)holdings->memory + at;
        at += holding_bytes(h, element_bytes);
    }
    return TSR_OK;
}

void tsr_holdings_free(tsr_holdings *holdings) {
    free(holdings->memory);
    free(holdings->holding);
    *holdings = (tsr_holdings){0};
}

/* ---- their store ----------------------------------------------------------------------------- */

typedef struct {
    tsr_store base;
    const tsr_holdings *holdings;
} holdings_store;

/* The first holding of a matrix, if it has any. */
static int64_t first_holding(const tsr_holdings *all, int64_t matrix) {
    int64_t low = 0;
    int64_t high = all->each > 0 ? all->count / all->each : 0;
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;
        if (all->holding[middle * all->each].matrix <= matrix) low = middle;
        else high = middle;
    }
    return low * all->each;
}

static void *holdings_map(tsr_store *store, tsr_rect rect, int64_t *ld) {
    const tsr_holdings *all = ((const holdings_store *)store)->holdings;
    const int64_t first = first_holding(all, store->desc.matrix), end = first + all->each;
    rect.row += store->desc.matrix * store->desc.rows;
    for (int64_t i = first; i < end; i++) {
        const tsr_holding *h = &all->holding[i];
        const int64_t row = rect.row - h->rect.row, col = rect.col - h->rect.col;
        if (row < 0 || col < 0 || row + rect.rows > h->rect.rows || col + rect.cols > h->rect.cols) continue;
        *ld = h->ld;
        return (char *)h->data + (size_t)(row * h->ld + col) * tsr_dtype_bytes(store->desc.element.dtype);
    }
    return NULL;
}

static tsr_status holdings_find(tsr_store *store, tsr_rect rect, char **at, int64_t *ld) {
    *at = holdings_map(store, rect, ld);
    if (*at) return TSR_OK;
    return tsr_fail(TSR_FAILURE, "rows %lld to %lld, columns %lld to %lld of %s are not this rank's by the plan",
                    (long long)rect.row, (long long)(rect.row + rect.rows), (long long)rect.col,
                    (long long)(rect.col + rect.cols), store->desc.name.file);
}

static tsr_status holdings_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    const size_t element = tsr_dtype_bytes(store->desc.element.dtype);
    char *at;
    int64_t step = 0;
    if (tsr_rect_empty(rect)) return TSR_OK;
    TSR_TRY(holdings_find(store, rect, &at, &step));
    for (int64_t r = 0; r < rect.rows; r++)
        memcpy((char *)to + (size_t)(r * ld) * element, at + (size_t)(r * step) * element, (size_t)rect.cols * element);
    return TSR_OK;
}

static tsr_status holdings_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    const size_t element = tsr_dtype_bytes(store->desc.element.dtype);
    char *at;
    int64_t step = 0;
    if (tsr_rect_empty(rect)) return TSR_OK;
    TSR_TRY(holdings_find(store, rect, &at, &step));
    for (int64_t r = 0; r < rect.rows; r++)
        memcpy(at + (size_t)(r * step) * element, (const char *)from + (size_t)(r * ld) * element,
               (size_t)rect.cols * element);
    return TSR_OK;
}

static tsr_status holdings_sync(tsr_store *store) {
    (void)store;
    return TSR_OK;
}

static void holdings_close(tsr_store *store) { free(store); }

static const tsr_store_ops holdings_ops = {
    .name = "distributed memory",
    .read = holdings_read,
    .write = holdings_write,
    .sync = holdings_sync,
    .close = holdings_close,
    .map = holdings_map,
};

tsr_status tsr_holdings_open(const tsr_holdings *holdings, const tsr_store_desc *desc, tsr_store **store) {
    holdings_store *s = calloc(1, sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open a distributed matrix");
    s->base.ops = &holdings_ops;
    s->base.copies_memory = true;
    s->base.desc = *desc;
    s->holdings = holdings;
    *store = &s->base;
    return TSR_OK;
}
