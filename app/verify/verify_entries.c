/* Entries of C that the check works out by themselves (verify_private.h): those that overflowed, and the products
 * behind a C0 that is not finite. They are products of a row of op(A) and a column of op(B), both scaled by powers of
 * two so that no sum overflows. All ranks know them; each reads the rows of op(A) that fit its memory, and adds up
 * its band of op(B). They are at most a hundredth of C, and so of the product's work; small products are worked out
 * whole. */
#include <stdlib.h>

#include "app/verify/verify_private.h"

/* Entries of all ranks, sorted, and those of them whose rows of op(A) are in memory. */
typedef struct {
    open_entry *entries;
    double *sums; /* of count entries' terms above zero, then of those below */
    int64_t count;
    int64_t first, end; /* in memory */
    int64_t *start;     /* rows in memory + 1: where each one's entries begin */
    int64_t rows, most_rows;
    double *a; /* rows × k, · 2^exponent */
    int32_t *exponent;
} work;

static void add(verifier *v, open_entry entry) {
    if (v->open_count < v->open_most) v->open[v->open_count++] = entry;
}

void tsr_entries_add(verifier *v, int64_t row, int64_t j, double c, double c0) {
    const bool turned = v->parts->turned;
    pthread_mutex_lock(&v->lock);
    if (!v->open && v->open_most == 0) {
        v->open_most = (int64_t)(2 * tsr_verify_list_budget(v) / sizeof *v->open);
        v->open = malloc((size_t)v->open_most * sizeof *v->open + 1);
    }
    const int64_t count = v->open_count + 1 + turned;
    if (v->open && count <= v->open_most && count <= v->open_left) {
        if (turned) add(v, (open_entry){v->first + row, tsr_verify_partner(j), 0, 0, true});
        add(v, (open_entry){v->first + row, j, c, c0, false});
    } else {
        v->facts[row].unjudged = v->facts[row].no_sums = true;
    }
    pthread_mutex_unlock(&v->lock);
}

static int by_place(const void *a, const void *b) {
    const open_entry *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->col < y->col ? -1 : x->col > y->col;
}

/* Collective. As far as the check's share of the work left; rows of the rest are not judged. */
static tsr_status share_entries(verifier *v, work *w) {
    const int64_t most =
        tsr_min(tsr_min((int64_t)(2 * tsr_verify_list_budget(v) / sizeof(open_entry)), INT32_MAX / 2), v->open_left);
    int64_t kept = v->open_count;
    TSR_TRY(tsr_verify_gather(v->world, v->open, sizeof *v->open, most, &kept, &w->entries, &w->count));
    for (int64_t e = kept; e < v->open_count; e++) {
        row_facts *f = &v->facts[v->open[e].row - v->first];
        f->unjudged = f->no_sums = true;
    }
    v->open_left -= w->count;
    if (w->count > 0) qsort(w->entries, (size_t)w->count, sizeof *w->entries, by_place);
    return TSR_OK;
}

/* ---- a part of them -------------------------------------------------------------------------- */

/* Local. Row i of op(A), at its own exponent. raw: k elements of the store */
static tsr_status read_row(verifier *v, int64_t i, void *raw, double *to, int32_t *exponent) {
    const tsr_rect rect = v->args->transpose_a ? (tsr_rect){0, i, v->k, 1} : (tsr_rect){i, 0, 1, v->k};
    TSR_TRY(tsr_tiles_read(v->args->a, rect, raw, to));
    *exponent = TSR_EXPONENT_NONE;
    for (int64_t l = 0; l < v->k; l++)
        if (to[l] != 0 && fabs(to[l]) < v->operand_limit) *exponent = (int32_t)tsr_max(*exponent, tsr_exponent(to[l]));
    for (int64_t l = 0; l < v->k; l++)
        to[l] = fabs(to[l]) < v->operand_limit ? tsr_times_power(to[l], -(int64_t)*exponent) : 0;
    return TSR_OK;
}

/* Local. The next rows that fit. */
static tsr_status read_rows(verifier *v, work *w) {
    void *raw = malloc((size_t)v->k * tsr_dtype_bytes(v->args->a->desc.element.dtype) + 1);
    tsr_status status = raw ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for a row of A to check: free some");
    w->first = w->end;
    for (w->rows = 0; status == TSR_OK && w->rows < w->most_rows && w->end < w->count; w->rows++) {
        const int64_t row = w->entries[w->end].row;
        w->start[w->rows] = w->end;
        status = read_row(v, row, raw, w->a + w->rows * v->k, &w->exponent[w->rows]);
        while (w->end < w->count && w->entries[w->end].row == row) w->end++;
    }
    w->start[w->rows] = w->end;
    free(raw);
    return status;
}

static int64_t first_at(const work *w, int64_t row, int64_t col) {
    int64_t low = w->start[row], high = w->start[row + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (w->entries[middle].col < col) low = middle + 1;
        else high = middle;
    }
    return low;
}

static inline void add_term(const verifier *v, work *w, int64_t e, double a, double b) {
    if (!(fabs(b) < v->operand_limit)) return; /* of a column that is judged otherwise */
    const double x = a * tsr_times_power(b, -(int64_t)v->column_top[w->entries[e].col]);
    if (x > 0) w->sums[e] += x;
    else w->sums[w->count + e] -= x;
}

/* The tile's part of the entries in memory, those of its columns of op(B). */
static void add_tile(const verifier *v, work *w, const double *values, tsr_rect rect, bool transpose) {
    const int64_t col0 = transpose ? rect.row : rect.col, cols = transpose ? rect.rows : rect.cols;
    const int64_t l0 = transpose ? rect.col : rect.row, ls = transpose ? rect.cols : rect.rows;
    for (int64_t i = 0; i < w->rows; i++) {
        const int64_t first = first_at(w, i, col0), end = first_at(w, i, col0 + cols);
        const double *a = w->a + i * v->k + l0;
        if (transpose) {
            for (int64_t e = first; e < end; e++)
                for (int64_t l = 0; l < ls; l++)
                    add_term(v, w, e, a[l], values[(w->entries[e].col - col0) * rect.cols + l]);
        } else {
            for (int64_t l = 0; l < ls; l++)
                for (int64_t e = first; e < end; e++)
                    add_term(v, w, e, a[l], values[l * rect.cols + w->entries[e].col - col0]);
        }
    }
}

/* Local. A worker's columns of op(B): no other of this rank adds to their entries. */
static tsr_status pass(void *context) {
    const verify_share *s = context;
    verifier *v = s->v;
    const bool transpose = v->args->transpose_b;
    tsr_tiles t = {0};
    tsr_rect rect, all = {0, 0, transpose ? v->n : v->k, transpose ? v->k : v->n};
    tsr_status status = tsr_tiles_open(v, v->args->b, all, !transpose, s->index, tsr_verify_tile_budget(v) / 2, &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        add_tile(v, s->context, t.values, rect, transpose);
    }
done:
    tsr_tiles_close(&t);
    return status;
}

static entry_terms terms_at(const work *w, int64_t e) { return (entry_terms){w->sums[e], w->sums[w->count + e]}; }

/* Those of the other part; the entry that helps stands near, as one of at most four of both parts. Where it is not
 * among the entries its row is not judged. */
static bool find_other(const work *w, int64_t e, entry_terms *other) {
    const open_entry *own = &w->entries[e];
    for (int64_t at = tsr_max(w->first, e - 3); at < tsr_min(w->end, e + 4); at++)
        if (w->entries[at].row == own->row && w->entries[at].col == tsr_verify_partner(own->col)) {
            *other = terms_at(w, at);
            return true;
        }
    return false;
}

static void close_entry(verifier *v, const work *w, int64_t e, int32_t exponent) {
    const open_entry *own = &w->entries[e];
    entry_terms other = {0, 0};
    if (own->helps || !v->facts[own->row - v->first].taken || exponent == TSR_EXPONENT_NONE) return;
    if (v->parts->turned && !find_other(w, e, &other)) return;
    tsr_verify_close_entry(v, own, terms_at(w, e), other, exponent + v->column_top[own->col]);
}

/* Collective. */
static tsr_status work_out_rows(verifier *v, work *w) {
    const int64_t first = w->first, count = w->end - w->first;
    tsr_verify_again(v, v->args->b);
    TSR_TRY(tsr_verify_together(v, pass, w));
    TSR_TRY(tsr_verify_reduce(v->world, w->sums + first, count, MPI_DOUBLE, MPI_SUM));
    TSR_TRY(tsr_verify_reduce(v->world, w->sums + w->count + first, count, MPI_DOUBLE, MPI_SUM));
    for (int64_t i = 0; i < w->rows; i++)
        for (int64_t e = w->start[i]; e < w->start[i + 1]; e++) close_entry(v, w, e, w->exponent[i]);
    return TSR_OK;
}

static tsr_status work_open(const verifier *v, work *w) {
    w->most_rows = tsr_max(1, (int64_t)(v->args->buffer_bytes / 8 / sizeof(double)) / tsr_max(1, v->k));
    w->most_rows = tsr_min(w->most_rows, w->count);
    TSR_TRY(tsr_verify_allocate(w->count, 2, sizeof *w->sums, &w->sums));
    TSR_TRY(tsr_verify_allocate(w->most_rows, v->k, sizeof *w->a, &w->a));
    TSR_TRY(tsr_verify_allocate(w->most_rows, 1, sizeof *w->exponent, &w->exponent));
    return tsr_verify_allocate(w->most_rows + 1, 1, sizeof *w->start, &w->start);
}

tsr_status tsr_entries_work_out(verifier *v) {
    work w = {0};
    tsr_status status = share_entries(v, &w);
    if (status == TSR_OK && w.count > 0) status = tsr_agree(v->world->comm, work_open(v, &w));
    while (status == TSR_OK && w.end < w.count) {
        status = tsr_agree(v->world->comm, read_rows(v, &w));
        if (status == TSR_OK) status = work_out_rows(v, &w);
    }
    v->open_count = 0;
    free(w.start);
    free(w.exponent);
    free(w.a);
    free(w.sums);
    free(w.entries);
    return status;
}
