/* The columns' scales D of the check (verify_private.h): powers of two that bring the columns of C to one size, so
 * that no large column hides errors of the others.
 *
 * Rows l of op(B) may be as much smaller as columns l of op(A) are larger: such rows must not count less. So rows are
 * levelled first, by the mean exponent of their elements (zeros do not count); then a column's size is its largest
 * element's, with its row's level taken away. Where rows meet few columns, as in sparse matrices, levels of rows
 * follow from those of columns and the other way round: both are found again, from another reading of B, until
 * exponents less both levels spread by no more than SETTLED, or two readings gained nothing, or READINGS of it.
 * Levels of rows that explain no more than columns alone are not used.
 * With beta, the columns of C0 count, too, each row of it relative to the size of op(A)'s row. A column that
 * underflow in C's type blurs more than rounding is not raised further.
 *
 * Any D keeps a right product within its bound: only how small an error is noticed hangs on it. So D = 1 is kept, and
 * B is read once, where its levels are within EVEN of each other. */
#include <stdlib.h>

#include "app/verify/verify_private.h"

#define EVEN 4      /* a factor of 16 */
#define SETTLED 1.8 /* standard deviation; that of normal numbers is 1.6 */
#define READINGS 8
#define WIDTH 256 /* columns counted before the lock is taken */

tsr_status tsr_levels_open(int64_t rows, int64_t cols, levels *l) {
    *l = (levels){.rows = rows, .cols = cols};
    TSR_TRY(tsr_verify_allocate(rows, 1, sizeof *l->row_sum, &l->row_sum));
    TSR_TRY(tsr_verify_allocate(rows, 1, sizeof *l->row_count, &l->row_count));
    TSR_TRY(tsr_verify_allocate(cols, 1, sizeof *l->col_sum, &l->col_sum));
    TSR_TRY(tsr_verify_allocate(cols, 1, sizeof *l->col_count, &l->col_count));
    TSR_TRY(tsr_verify_allocate(cols, 1, sizeof *l->col_top, &l->col_top));
    for (int64_t j = 0; j < cols; j++) l->col_top[j] = TSR_EXPONENT_NONE;
    return TSR_OK;
}

void tsr_levels_close(levels *l) {
    free(l->col_top);
    free(l->col_count);
    free(l->col_sum);
    free(l->row_top);
    free(l->row_count);
    free(l->row_sum);
}

static void clear(levels *l) {
    l->squares = 0;
    if (l->row_sum) memset(l->row_sum, 0, (size_t)l->rows * sizeof *l->row_sum);
    if (l->row_count) memset(l->row_count, 0, (size_t)l->rows * sizeof *l->row_count);
    if (l->col_sum) memset(l->col_sum, 0, (size_t)l->cols * sizeof *l->col_sum);
    if (l->col_count) memset(l->col_count, 0, (size_t)l->cols * sizeof *l->col_count);
    for (int64_t i = 0; i < l->rows && l->row_top; i++) l->row_top[i] = TSR_EXPONENT_NONE;
    for (int64_t j = 0; j < l->cols && l->col_top; j++) l->col_top[j] = TSR_EXPONENT_NONE;
}

/* ---- counting -------------------------------------------------------------------------------- */

typedef struct {
    int64_t sum, squares, count;
    int32_t top;
} column;

static inline void take_element(levels *l, column *c, int64_t row, int64_t col, double value) {
    const int32_t down = l->row_shift ? l->row_shift[row] : 0;
    if (value == 0 || !isfinite(value) || down == TSR_EXPONENT_NONE) return;
    const int32_t exponent = tsr_exponent(value), of_row = exponent - (l->col_shift ? l->col_shift[col] : 0);
    if (l->row_sum) {
        l->row_sum[row] += of_row;
        l->row_count[row]++;
    }
    if (l->row_top && of_row > l->row_top[row]) l->row_top[row] = of_row;
    const int32_t of_col = exponent - down;
    c->sum += of_col;
    c->squares += (int64_t)of_col * of_col;
    c->count++;
    if (of_col > c->top) c->top = of_col;
}

/* Other workers have elements of the same columns. */
static void add_columns(levels *l, pthread_mutex_t *lock, int64_t first, const column *c, int64_t count) {
    if (!l->col_top) return;
    pthread_mutex_lock(lock);
    for (int64_t j = 0; j < count; j++) {
        if (l->col_sum) {
            l->col_sum[first + j] += c[j].sum;
            l->col_count[first + j] += c[j].count;
        }
        l->squares += (double)c[j].squares;
        if (c[j].top > l->col_top[first + j]) l->col_top[first + j] = c[j].top;
    }
    pthread_mutex_unlock(lock);
}

void tsr_levels_take(levels *l, pthread_mutex_t *lock, const double *values, tsr_rect rect, bool transpose) {
    const column none = {0, 0, 0, TSR_EXPONENT_NONE};
    column found[WIDTH];
    if (transpose) {
        for (int64_t i = 0; i < rect.rows; i++) {
            found[0] = none;
            for (int64_t j = 0; j < rect.cols; j++)
                take_element(l, found, rect.col + j, rect.row + i, values[i * rect.cols + j]);
            add_columns(l, lock, rect.row + i, found, 1);
        }
        return;
    }
    for (int64_t start = 0; start < rect.cols; start += WIDTH) {
        const int64_t width = tsr_min(WIDTH, rect.cols - start);
        for (int64_t j = 0; j < width; j++) found[j] = none;
        for (int64_t i = 0; i < rect.rows; i++)
            for (int64_t j = 0; j < width; j++)
                take_element(l, &found[j], rect.row + i, rect.col + start + j, values[i * rect.cols + start + j]);
        add_columns(l, lock, rect.col + start, found, width);
    }
}

tsr_status tsr_levels_share(const tsr_world *world, levels *l) {
    if (l->row_sum) TSR_TRY(tsr_verify_reduce(world, l->row_sum, l->rows, MPI_INT64_T, MPI_SUM));
    if (l->row_count) TSR_TRY(tsr_verify_reduce(world, l->row_count, l->rows, MPI_INT64_T, MPI_SUM));
    if (l->row_top) TSR_TRY(tsr_verify_reduce(world, l->row_top, l->rows, MPI_INT32_T, MPI_MAX));
    TSR_TRY(tsr_verify_reduce(world, &l->squares, 1, MPI_DOUBLE, MPI_SUM));
    if (l->col_sum) TSR_TRY(tsr_verify_reduce(world, l->col_sum, l->cols, MPI_INT64_T, MPI_SUM));
    if (l->col_count) TSR_TRY(tsr_verify_reduce(world, l->col_count, l->cols, MPI_INT64_T, MPI_SUM));
    if (l->col_top) TSR_TRY(tsr_verify_reduce(world, l->col_top, l->cols, MPI_INT32_T, MPI_MAX));
    return TSR_OK;
}

/* A matrix to be measured. */
typedef struct {
    levels *found;
    tsr_store *store;
    bool transpose;
} measuring;

/* Local. A worker's part. */
static tsr_status pass(void *context) {
    const verify_share *s = context;
    const measuring *m = s->context;
    verifier *v = s->v;
    tsr_tiles t = {0};
    tsr_rect rect, all = {0, 0, m->store->desc.rows, m->store->desc.cols};
    tsr_status status = tsr_tiles_open(v, m->store, all, m->transpose, s->index, tsr_verify_tile_budget(v), &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        tsr_levels_take(m->found, &v->lock, t.values, rect, m->transpose);
    }
done:
    tsr_tiles_close(&t);
    return status;
}

/* Collective. Reads the matrix once more. */
static tsr_status measure(verifier *v, tsr_store *store, bool transpose, levels *l) {
    measuring m = {l, store, transpose};
    clear(l);
    tsr_verify_again(v, store);
    TSR_TRY(tsr_verify_together(v, pass, &m));
    return tsr_levels_share(v->world, l);
}

/* ---- the scales ------------------------------------------------------------------------------ */

/* Whether those there are lie within `most` of each other. */
static bool within(const int32_t *at, int64_t count, int most) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int64_t i = 0; i < count; i++)
        if (at[i] > TSR_EXPONENT_NONE / 2) {
            low = tsr_min(low, at[i]);
            high = tsr_max(high, at[i]);
        }
    return low > high || high - low <= most;
}

static void means(const int64_t *sum, const int64_t *count, int64_t n, int32_t *mean) {
    for (int64_t i = 0; i < n; i++)
        mean[i] = count[i] ? (int32_t)lround((double)sum[i] / (double)count[i]) : TSR_EXPONENT_NONE;
}

/* Standard deviation of exponents from their columns' means, levels of rows taken away. */
static double spread(const levels *l) {
    double squares = l->squares, count = 0;
    for (int64_t j = 0; j < l->cols; j++)
        if (l->col_count[j]) {
            squares -= (double)l->col_sum[j] * (double)l->col_sum[j] / (double)l->col_count[j];
            count += (double)l->col_count[j];
        }
    return count > 0 ? sqrt(fmax(0, squares) / count) : 0;
}

/* The levels that balance() looks for, and those it tries. */
typedef struct {
    int32_t *rows, *tops;             /* k, n: found; tops of columns with rows taken away */
    int32_t *rows_tried, *cols_tried; /* k, n */
} search;

/* Collective. l holds the first reading. */
static tsr_status balance(verifier *v, levels *l, search *s) {
    double best = spread(l);
    memset(s->rows, 0, (size_t)l->rows * sizeof *s->rows);
    memcpy(s->tops, l->col_top, (size_t)l->cols * sizeof *s->tops);
    means(l->row_sum, l->row_count, l->rows, s->rows_tried);
    if (within(s->rows_tried, l->rows, EVEN)) return TSR_OK;
    means(l->col_sum, l->col_count, l->cols, s->cols_tried);
    for (int reading = 1, idle = 0; reading < READINGS && best > SETTLED && idle < 2; reading++) {
        l->row_shift = s->rows_tried;
        l->col_shift = s->cols_tried;
        TSR_TRY(measure(v, v->args->b, v->args->transpose_b, l));
        v->found.readings++;
        const double now = spread(l);
        idle = now > 0.95 * best ? idle + 1 : 0;
        if (now < best) {
            best = now;
            memcpy(s->rows, s->rows_tried, (size_t)l->rows * sizeof *s->rows);
            memcpy(s->tops, l->col_top, (size_t)l->cols * sizeof *s->tops);
        }
        means(l->row_sum, l->row_count, l->rows, s->rows_tried); /* of what the columns tried leave */
        means(l->col_sum, l->col_count, l->cols, s->cols_tried);
    }
    return TSR_OK;
}

/* Collective. Exponents of op(A)'s rows, with the levels of op(B)'s rows added. tops: m */
static tsr_status tops_of_a(verifier *v, int32_t *levels_of_b, int32_t *tops) {
    for (int64_t i = 0; i < v->k; i++) levels_of_b[i] = levels_of_b[i] == TSR_EXPONENT_NONE ? 0 : -levels_of_b[i];
    levels of_a = {.rows = v->m, .cols = v->k, .row_top = tops, .col_shift = levels_of_b};
    return measure(v, v->args->a, v->args->transpose_a, &of_a);
}

/* Collective. Exponents of C0's columns, each row's own taken away where `rows` (m) gives them. row_tops, tops: m, n */
static tsr_status tops_of_c0(verifier *v, const int32_t *rows, int32_t *row_tops, int32_t *tops) {
    levels of_c0 = {.rows = v->m, .cols = v->n, .row_top = row_tops, .col_top = tops, .row_shift = rows};
    return measure(v, v->args->c0, false, &of_c0);
}

static int32_t mean_of(const int32_t *at, int64_t count) {
    double sum = 0;
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        if (at[i] > TSR_EXPONENT_NONE / 2) {
            sum += at[i];
            found++;
        }
    return found ? (int32_t)lround(sum / (double)found) : 0;
}

void tsr_scale_pairs(const verifier *v, int32_t *tops) {
    for (int64_t j = 0; j < v->n && v->parts->turned; j += 2)
        tops[j] = tops[j + 1] = (int32_t)tsr_max(tops[j], tops[j + 1]);
}

/* Shifts from the columns' tops, those of C0 in the units of op(A)·op(B) (NULL: none), and the floor. */
static void set_shifts(verifier *v, int32_t *tops, const int32_t *tops_of_c0, int32_t floor) {
    for (int64_t j = 0; j < v->n; j++) {
        if (tops[j] == TSR_EXPONENT_NONE) continue; /* a column of zeros is judged entry by entry */
        if (tops_of_c0 && tops_of_c0[j] != TSR_EXPONENT_NONE) tops[j] = (int32_t)tsr_max(tops[j], tops_of_c0[j]);
        tops[j] = (int32_t)tsr_max(tops[j], floor);
    }
    tsr_scale_pairs(v, tops);
    if (within(tops, v->n, EVEN)) return;
    for (int64_t j = 0; j < v->n; j++) v->shift[j] = tops[j] == TSR_EXPONENT_NONE ? 0 : -tops[j];
}

/* tops0: n; row_tops: m */
static tsr_status scale_columns(verifier *v, levels *l, search *s, int32_t *row_tops, int32_t *tops0) {
    const double beta = v->args->beta;
    int beta_exponent = 0;
    if (!isfinite(v->args->alpha) || !isfinite(beta) || v->n < 2) return TSR_OK;
    frexp(beta, &beta_exponent);
    TSR_TRY(balance(v, l, s));
    bool even = within(s->tops, v->n, EVEN);
    if (beta != 0) {
        TSR_TRY(tops_of_c0(v, NULL, row_tops, tops0));
        even = even && within(tops0, v->n, EVEN) && within(row_tops, v->m, EVEN);
    }
    if (even) return TSR_OK;
    TSR_TRY(tops_of_a(v, s->rows, row_tops));
    const int32_t floor = tsr_verify_floor(v) - v->alpha_exponent - mean_of(row_tops, v->m);
    if (beta != 0) TSR_TRY(tops_of_c0(v, row_tops, NULL, tops0));
    for (int64_t j = 0; beta != 0 && j < v->n; j++)
        if (tops0[j] != TSR_EXPONENT_NONE) tops0[j] += beta_exponent - v->alpha_exponent + tsr_verify_weight_of_c0(v);
    set_shifts(v, s->tops, beta != 0 ? tops0 : NULL, floor);
    return TSR_OK;
}

tsr_status tsr_scale_columns(verifier *v, levels *of_b) {
    search s = {0};
    int32_t *row_tops = NULL, *tops0 = NULL;
    tsr_status status = tsr_verify_allocate(v->k, 1, sizeof *s.rows, &s.rows);
    if (status == TSR_OK) status = tsr_verify_allocate(v->k, 1, sizeof *s.rows_tried, &s.rows_tried);
    if (status == TSR_OK) status = tsr_verify_allocate(v->n, 1, sizeof *s.cols_tried, &s.cols_tried);
    if (status == TSR_OK) status = tsr_verify_allocate(v->n, 1, sizeof *s.tops, &s.tops);
    if (status == TSR_OK) status = tsr_verify_allocate(v->m, 1, sizeof *row_tops, &row_tops);
    if (status == TSR_OK) status = tsr_verify_allocate(v->n, 1, sizeof *tops0, &tops0);
    status = tsr_agree(v->world->comm, status);
    if (status == TSR_OK) status = scale_columns(v, of_b, &s, row_tops, tops0);
    free(tops0);
    free(row_tops);
    free(s.tops);
    free(s.cols_tried);
    free(s.rows_tried);
    free(s.rows);
    return status;
}
