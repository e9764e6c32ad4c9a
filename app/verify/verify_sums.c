/* The sums of the check (verify_private.h): Y = op(B)·D·X of T sign vectors X (n × T) at once, and R = op(A)·Y, row
 * by row, with what their bounds are made of. D is diagonal, of powers of two (verify_scale.c).
 *
 * Nothing overflows, and what underflows does not count: a row's sums have an exponent of their own, that of the
 * largest term they have met, and terms are brought to it exactly. When a larger one comes the sums are brought to
 * that. A row of op(B) that is as much smaller as its column of op(A) is larger gives the same R, and so do larger
 * rows and columns. */
#include <stdlib.h>

#include "app/verify/verify_private.h"

tsr_status tsr_sums_allocate(int64_t rows, int trials, row_sums *s) {
    TSR_TRY(tsr_verify_allocate(rows, trials, sizeof *s->sums, &s->sums));
    TSR_TRY(tsr_verify_allocate(rows, 1, sizeof *s->norm, &s->norm));
    TSR_TRY(tsr_verify_allocate(rows, 1, sizeof *s->largest, &s->largest));
    TSR_TRY(tsr_verify_allocate(rows, 1, sizeof *s->exponent, &s->exponent));
    return tsr_verify_allocate(rows, 1, sizeof *s->kind, &s->kind);
}

static void sums_clear(row_sums *s, int64_t rows, int trials) {
    memset(s->sums, 0, (size_t)(rows * trials) * sizeof *s->sums);
    memset(s->norm, 0, (size_t)rows * sizeof *s->norm);
    memset(s->largest, 0, (size_t)rows * sizeof *s->largest);
    memset(s->kind, 0, (size_t)rows * sizeof *s->kind);
    for (int64_t i = 0; i < rows; i++) s->exponent[i] = TSR_EXPONENT_NONE;
}

void tsr_sums_free(row_sums *s) {
    free(s->kind);
    free(s->exponent);
    free(s->largest);
    free(s->norm);
    free(s->sums);
}

void tsr_sums_raise(row_sums *s, int64_t row, int trials, int32_t exponent) {
    const int64_t by = (int64_t)s->exponent[row] - exponent;
    for (int t = 0; t < trials; t++) s->sums[row * trials + t] = tsr_times_power(s->sums[row * trials + t], by);
    s->norm[row] = tsr_times_power(s->norm[row], by);
    s->exponent[row] = exponent;
}

/* What a pass multiplies: rows of op(X) with `in`, whose row l is · 2^shift[l]. norm and largest: of Y; NULL in the
 * pass that makes Y. */
typedef struct {
    row_sums *out;
    const double *in, *norm, *largest;
    const int32_t *shift;
    int trials;
} product;

static inline void add_element(const product *p, int64_t row, int64_t col, double value) {
    row_sums *s = p->out;
    if (value == 0) return;
    s->largest[row] = p->largest ? s->largest[row] + fabs(value) * p->largest[col] : fmax(s->largest[row], fabs(value));
    if (p->shift[col] == TSR_EXPONENT_NONE) return;
    const int32_t exponent = tsr_exponent(value) + p->shift[col];
    if (exponent > s->exponent[row]) {
        if (!p->norm) s->norm[row] = tsr_times_power(s->norm[row], (int64_t)s->exponent[row] - exponent); /* squares */
        tsr_sums_raise(s, row, p->trials, exponent);
    }
    const double scaled = tsr_times_power(value, p->shift[col] - s->exponent[row]);
    tsr_verify_add_scaled(s->sums + row * p->trials, scaled, p->in + col * p->trials, p->trials);
    s->norm[row] += p->norm ? fabs(scaled) * p->norm[col] : scaled * scaled;
}

static void add_tile(const product *p, const double *values, tsr_rect rect, bool transpose) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            const int64_t row = transpose ? rect.col + j : rect.row + i, col = transpose ? rect.row + i : rect.col + j;
            add_element(p, row, col, values[i * rect.cols + j]);
        }
}

/* Collective. Sums of all ranks, at the largest exponent that any of them has. */
static tsr_status share_sums(const verifier *v, row_sums *s, int64_t rows, bool squares, int32_t *exponents) {
    memcpy(exponents, s->exponent, (size_t)rows * sizeof *exponents);
    TSR_TRY(tsr_verify_reduce(v->world, exponents, rows, MPI_INT32_T, MPI_MAX));
    for (int64_t i = 0; i < rows; i++) {
        if (exponents[i] == s->exponent[i]) continue;
        if (squares) s->norm[i] = tsr_times_power(s->norm[i], (int64_t)s->exponent[i] - exponents[i]);
        tsr_sums_raise(s, i, v->trials, exponents[i]);
    }
    TSR_TRY(tsr_verify_reduce(v->world, s->sums, rows * v->trials, MPI_DOUBLE, MPI_SUM));
    TSR_TRY(tsr_verify_reduce(v->world, s->norm, rows, MPI_DOUBLE, MPI_SUM));
    return tsr_verify_reduce(v->world, s->largest, rows, MPI_DOUBLE, squares ? MPI_MAX : MPI_SUM);
}

static tsr_status share_all(const verifier *v, row_sums *s, int64_t rows, bool squares) {
    int32_t *exponents = NULL;
    tsr_status status = tsr_agree(v->world->comm, tsr_verify_allocate(rows, 1, sizeof *exponents, &exponents));
    if (status == TSR_OK) status = share_sums(v, s, rows, squares, exponents);
    free(exponents);
    return status;
}

/* C·X of the signs X is alpha's magnitude times sums·turned: alpha turns parts, and so the other way round. */
void tsr_sums_turn(verifier *v) {
    if (!v->turned) return;
    for (int64_t j = 0; j < v->n; j++)
        for (int t = 0; t < v->trials; t++) {
            double sum = 0;
            for (int64_t part = 0; part < 2; part++)
                sum += tsr_verify_factor(v->unit, part, j % 2) * v->signs[(j - j % 2 + part) * v->trials + t];
            v->turned[j * v->trials + t] = sum;
        }
}

/* ---- B --------------------------------------------------------------------------------------- */

/* Local. A worker's part of Y; context: levels to be found, or NULL. */
static tsr_status pass_b(void *context) {
    const verify_share *s = context;
    verifier *v = s->v;
    const tsr_verify_args *a = v->args;
    const product p = {.out = &v->y, .in = v->turned ? v->turned : v->signs, .shift = v->shift, .trials = v->trials};
    tsr_tiles t = {0};
    tsr_rect rect, all = {0, 0, a->transpose_b ? v->n : v->k, a->transpose_b ? v->k : v->n};
    tsr_status status = tsr_tiles_open(v, a->b, all, a->transpose_b, s->index, tsr_verify_tile_budget(v), &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        tsr_infinite_take(v, false, t.values, rect, a->transpose_b);
        add_tile(&p, t.values, rect, a->transpose_b);
        if (s->context) tsr_levels_take(s->context, &v->lock, t.values, rect, a->transpose_b);
    }
done:
    tsr_tiles_close(&t);
    return status;
}

/* Columns that are not finite leave the sums, and ‖D‖₂ of the others is found. Returns whether there are such
 * columns. */
static bool leave_out(verifier *v) {
    bool left_out = false;
    v->shift_exponent = TSR_EXPONENT_NONE;
    v->shift_least = INT32_MAX;
    v->shift_norm = 0;
    for (int64_t j = 0; j < v->n; j++) {
        if (tsr_verify_column_kind(v, j)) {
            left_out = true;
            v->shift[j] = TSR_EXPONENT_NONE;
            memset(v->signs + j * v->trials, 0, (size_t)v->trials * sizeof *v->signs);
        } else if (v->column_top[j] != TSR_EXPONENT_NONE) {
            v->shift_exponent = (int32_t)tsr_max(v->shift_exponent, v->shift[j]);
            v->shift_least = (int32_t)tsr_min(v->shift_least, v->shift[j]);
        }
    }
    for (int64_t j = 0; j < v->n; j++)
        if (!tsr_verify_column_kind(v, j) && v->column_top[j] != TSR_EXPONENT_NONE)
            v->shift_norm += tsr_times_power(1, 2 * ((int64_t)v->shift[j] - v->shift_exponent));
    v->shift_norm = sqrt(v->shift_norm);
    if (left_out) tsr_sums_turn(v);
    return left_out;
}

/* Collective. The first reading, which adds columns up as they are and finds their levels. */
static tsr_status read_first(verifier *v, levels *l) {
    sums_clear(&v->y, v->k, v->trials);
    v->listing = true;
    TSR_TRY(tsr_verify_together(v, pass_b, l));
    v->listing = false;
    v->found.readings = 1;
    TSR_TRY(tsr_infinite_share(v, false, v->n));
    TSR_TRY(tsr_levels_share(v->world, l));
    tsr_scale_pairs(v, l->col_top);
    memcpy(v->column_top, l->col_top, (size_t)v->n * sizeof *v->column_top);
    return tsr_scale_columns(v, l);
}

tsr_status tsr_sums_of_b(verifier *v) {
    levels l = {0};
    tsr_status status = tsr_agree(v->world->comm, tsr_levels_open(v->k, v->n, &l));
    if (status == TSR_OK) status = read_first(v, &l);
    tsr_levels_close(&l);
    TSR_TRY(status);
    bool again = leave_out(v);
    for (int64_t j = 0; j < v->n && !again; j++) again = v->shift[j] != 0;
    if (again) {
        sums_clear(&v->y, v->k, v->trials);
        tsr_verify_again(v, v->args->b);
        v->found.readings++;
        TSR_TRY(tsr_verify_together(v, pass_b, NULL));
    }
    TSR_TRY(share_all(v, &v->y, v->k, true));
    for (int64_t l_row = 0; l_row < v->k; l_row++) v->y.norm[l_row] = sqrt(v->y.norm[l_row]);
    return TSR_OK;
}

/* ---- A --------------------------------------------------------------------------------------- */

/* Local. A worker's part of the block's rows of R. */
static tsr_status pass_a(void *context) {
    const verify_share *s = context;
    verifier *v = s->v;
    const tsr_verify_args *a = v->args;
    const int64_t rows = *(const int64_t *)s->context;
    const product p = {.out = &v->r,
                       .in = v->y.sums,
                       .norm = v->y.norm,
                       .largest = v->y.largest,
                       .shift = v->y.exponent,
                       .trials = v->trials};
    tsr_tiles t = {0};
    tsr_rect rect, part = {v->first, 0, rows, v->k};
    if (a->transpose_a) part = (tsr_rect){0, v->first, v->k, rows};
    tsr_status status = tsr_tiles_open(v, a->a, part, a->transpose_a, s->index, tsr_verify_tile_budget(v), &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        if (v->slots_b > 0) tsr_infinite_code_a(v, t.values, rect, a->transpose_a);
        tsr_infinite_take(v, true, t.values, rect, a->transpose_a);
        add_tile(&p, t.values, rect, a->transpose_a);
    }
done:
    tsr_tiles_close(&t);
    return status;
}

tsr_status tsr_sums_of_a(verifier *v, int64_t rows) {
    sums_clear(&v->r, rows, v->trials);
    if (v->k == 0) return TSR_OK;
    v->listing = true;
    TSR_TRY(tsr_verify_together(v, pass_a, &rows));
    v->listing = false;
    TSR_TRY(share_all(v, &v->r, rows, false));
    TSR_TRY(tsr_infinite_share(v, true, rows));
    for (int64_t i = 0; i < rows; i++) {
        if (v->r.exponent[i] == TSR_EXPONENT_NONE) continue;
        v->r.exponent[i] += v->alpha_exponent;
        v->r.norm[i] *= fabs(v->alpha);
        for (int t = 0; t < v->trials; t++) v->r.sums[i * v->trials + t] *= v->alpha;
    }
    return TSR_OK;
}
