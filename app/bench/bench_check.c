/* The check of `tessera bench multiply` (bench_check.h): rows of A and columns of B are made anew, so that it costs
 * k, not m·n·k. */
#include "app/bench/bench_check.h"

#include <math.h>
#include <stdlib.h>

/* `length` elements of a generated matrix from (row, col) on, down a column or along a row, as `input` holds them. */
static tsr_status generate(const tsr_bench_expected *e, uint64_t seed, int64_t row, int64_t col, bool column,
                           double *to) {
    const size_t bytes = tsr_dtype_bytes(e->input);
    /* at the end of the same memory: widened from its beginning on */
    unsigned char *stored = (unsigned char *)to + (size_t)e->k * (sizeof *to - bytes);
    const tsr_view view = {stored, {e->input, false}, column ? e->k : 1, column ? 1 : e->k, column ? 1 : e->k};
    TSR_TRY(tsr_fill_host(e->fill, seed, row, col, view));
    for (int64_t l = 0; l < e->k; l++) to[l] = tsr_element_to_double(view.element, stored + (size_t)l * bytes);
    return TSR_OK;
}

static void judge(const tsr_bench_expected *e, int64_t row, int64_t col, const double *a, const double *b,
                  const void *at, tsr_bench_verdict *v) {
    long double sum = 0, size = 0;
    for (int64_t l = 0; l < e->k; l++) {
        const long double product = (long double)a[l] * (long double)b[l];
        sum += product;
        size += fabsl(product);
    }
    const double got = tsr_element_to_double((tsr_element){e->type, false}, at);
    const double difference = (double)fabsl((long double)got - sum),
                 relative = size > 0 ? difference / (double)size : difference;
    v->elements++;
    if (isnan(relative) || relative > v->worst) v->worst = relative;
    if (relative <= e->bound) return;
    if (v->wrong++ == 0) {
        v->row = row;
        v->col = col;
        v->got = got;
        v->wanted = (double)sum;
    }
}

tsr_status tsr_bench_check_part(const tsr_bench_expected *e, tsr_rect rect, int64_t side,
                                tsr_status (*fetch)(void *context, tsr_rect row, void *to), void *context,
                                tsr_bench_verdict *verdict) {
    if (tsr_rect_empty(rect)) return TSR_OK;
    const int64_t rows = tsr_min(rect.rows, side), cols = tsr_min(rect.cols, side);
    const size_t element = tsr_dtype_bytes(e->type), line = (size_t)tsr_max(1, e->k);
    double *a = malloc(line * sizeof *a), *b = malloc((size_t)cols * line * sizeof *b);
    unsigned char *row = malloc((size_t)rect.cols * element);
    tsr_status status = TSR_OK;
    if (!a || !b || !row) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory to check the product: use --no-check"));
    for (int64_t t = 0; t < cols; t++)
        TSR_TRY_DONE(
            generate(e, e->seed_b, 0, rect.col + tsr_bench_lattice(rect.cols, cols, t), true, b + (size_t)t * line));
    for (int64_t s = 0; s < rows; s++) {
        const int64_t i = rect.row + tsr_bench_lattice(rect.rows, rows, s);
        TSR_TRY_DONE(generate(e, e->seed_a, i, 0, false, a));
        TSR_TRY_DONE(fetch(context, (tsr_rect){i, rect.col, 1, rect.cols}, row));
        for (int64_t t = 0; t < cols; t++) {
            const int64_t j = tsr_bench_lattice(rect.cols, cols, t);
            judge(e, i, rect.col + j, a, b + (size_t)t * line, row + (size_t)j * element, verdict);
        }
    }
done:
    free(a);
    free(b);
    free(row);
    return status;
}
