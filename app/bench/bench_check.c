/* The check of `tessera bench multiply` (bench_check.h): rows of A and columns of B are made anew, so that it costs
 * k, not m·n·k. */
#include "app/bench/bench_check.h"

#include <math.h>
#include <stdlib.h>

/* k elements of a generated matrix from (row, col) on, down a column or along a row, as `input` holds them; of complex
 * ones the parts side by side. */
static tsr_status generate(const tsr_bench_expected *e, uint64_t seed, int64_t row, int64_t col, bool column,
                           double *to) {
    const tsr_element part = {tsr_dtype_part(e->input), false};
    const int64_t reals = e->k * tsr_dtype_parts(e->input);
    const size_t bytes = tsr_dtype_bytes(part.dtype);
    /* at the end of the same memory: widened from its beginning on */
    unsigned char *stored = (unsigned char *)to + (size_t)reals * (sizeof *to - bytes);
    const tsr_view view = {stored, {e->input, false}, column ? e->k : 1, column ? 1 : e->k, column ? 1 : e->k};
    TSR_TRY(tsr_fill_host(e->fill, seed, row, col, view));
    for (int64_t l = 0; l < reals; l++) to[l] = tsr_element_to_double(part, stored + (size_t)l * bytes);
    return TSR_OK;
}

/* What an element of C, or a part of it, is the sum of. */
typedef struct {
    long double sum, size;
} sums;

static void add_product(sums *s, double a, double b, int sign) {
    const long double product = (long double)a * (long double)b;
    s->sum += sign * product;
    s->size += fabsl(product);
}

static sums sums_of(const tsr_bench_expected *e, const double *a, const double *b, int part) {
    sums s = {0, 0};
    const bool complex = tsr_dtype_is_complex(e->input);
    for (int64_t l = 0; l < e->k; l++) {
        if (!complex) {
            add_product(&s, a[l], b[l], 1);
            continue;
        }
        add_product(&s, a[2 * l], b[2 * l + part], 1);
        add_product(&s, a[2 * l + 1], b[2 * l + 1 - part], part ? 1 : -1);
    }
    return s;
}

/* The element at (row, col) of C; what is said of a wrong one is its first wrong part. */
static void judge(const tsr_bench_expected *e, int64_t row, int64_t col, const double *a, const double *b,
                  const unsigned char *at, tsr_bench_verdict *v) {
    const tsr_element type = {tsr_dtype_part(e->type), false};
    bool wrong = false;
    for (int part = 0; part < tsr_dtype_parts(e->type); part++, at += tsr_dtype_bytes(type.dtype)) {
        const sums s = sums_of(e, a, b, part);
        const double got = tsr_element_to_double(type, at);
        const double difference = (double)fabsl((long double)got - s.sum);
        const double relative = s.size > 0 ? difference / (double)s.size : difference;
        if (isnan(relative) || relative > v->worst) v->worst = relative;
        if (relative <= e->bound || wrong) continue;
        wrong = true;
        if (v->wrong > 0) continue;
        v->row = row;
        v->col = col;
        v->got = got;
        v->wanted = (double)s.sum;
    }
    v->elements++;
    v->wrong += wrong;
}

tsr_status tsr_bench_check_part(const tsr_bench_expected *e, tsr_rect rect, int64_t side,
                                tsr_status (*fetch)(void *context, tsr_rect row, void *to), void *context,
                                tsr_bench_verdict *verdict) {
    if (tsr_rect_empty(rect)) return TSR_OK;
    const int64_t rows = tsr_min(rect.rows, side), cols = tsr_min(rect.cols, side);
    const size_t element = tsr_dtype_bytes(e->type), line = (size_t)(tsr_max(1, e->k) * tsr_dtype_parts(e->input));
    double *a = malloc(line * sizeof *a), *b = malloc((size_t)cols * line * sizeof *b);
    unsigned char *row = malloc((size_t)rect.cols * element);
    tsr_status status = TSR_OK;
    if (!a || !b || !row) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory to check the product: use --no-check"));
    for (int64_t t = 0; t < cols; t++) {
        const int64_t j = rect.col + tsr_bench_lattice(rect.cols, cols, t);
        TSR_TRY_DONE(e->gram ? generate(e, e->seed_a, j, 0, false, b + (size_t)t * line)
                             : generate(e, e->seed_b, 0, j, true, b + (size_t)t * line));
    }
    for (int64_t s = 0; s < rows; s++) {
        const int64_t i = rect.row + tsr_bench_lattice(rect.rows, rows, s);
        const int64_t there = e->lower ? tsr_min(rect.cols, i + 1 - rect.col) : rect.cols;
        if (there <= 0) continue;
        TSR_TRY_DONE(generate(e, e->seed_a, i, 0, false, a));
        TSR_TRY_DONE(fetch(context, (tsr_rect){i, rect.col, 1, there}, row));
        for (int64_t t = 0; t < cols; t++) {
            const int64_t j = tsr_bench_lattice(rect.cols, cols, t);
            if (j >= there) break;
            judge(e, i, rect.col + j, a, b + (size_t)t * line, row + (size_t)j * element, verdict);
        }
    }
done:
    free(a);
    free(b);
    free(row);
    return status;
}
