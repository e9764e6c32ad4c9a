/* Several products in one launch: what test_gemm_contract.c asks of batches. */
#ifndef TSR_TESTS_KERNELS_GEMM_CONTRACT_BATCHES_H
#define TSR_TESTS_KERNELS_GEMM_CONTRACT_BATCHES_H

#include "tests/kernels/gemm/contract_products.h"

/* The first `rows` rows of x as `batch` matrices of `each` rows, `apart` elements from one to the next in memory of
 * their own; one alone, for all, where `apart` is 0. */
static matrix stack_open(const setup *s, const matrix *x, int64_t batch, int64_t each, int64_t apart) {
    matrix y = *x;
    y.before = 0;
    y.elements = (batch - 1) * apart + each * x->ld;
    y.host = malloc(tsr_max(y.elements, 1) * y.bytes);
    CHECK(y.host != NULL, "no memory");
    for (int64_t e = 0; e < y.elements; e++) put(&y, e, NAN);
    for (int64_t p = 0; p < (apart > 0 ? batch : 1); p++)
        for (int64_t e = 0; e < each * x->ld; e++)
            put(&y, p * apart + e, e % x->ld < x->cols ? get(x, at(x, p * each + e / x->ld, e % x->ld)) : NAN);
    CHECK_OK(s->ops->allocate(s->device, y.elements * y.bytes, &y.memory));
    y.data = y.memory;
    upload(s, &y);
    return y;
}

/* Several products in a launch, `gap` elements between their matrices: each must be what it is alone, bit for bit as
 * sums of integers are exact, and what lies between must stay. common: of A (1), of B (2), one matrix for all. */
static void check_stack(const setup *s, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t gap, int common,
                        bool accumulate) {
    const int64_t edge = s->kernel->multiple;
    const layout rows = gap % 2 ? LAYOUTS[1] : LAYOUTS[0];
    m = tsr_round_up(m, edge);
    n = tsr_round_up(n, edge);
    k = tsr_round_up(k, edge);
    product p = product_open(s, batch * m, n, k, rows);
    matrix b_rows = matrix_open(s, s->kernel->input, batch * k, n, rows, false);
    matrix_fill(&p.a, TSR_FILL_INTEGER, 21);
    matrix_fill(&b_rows, TSR_FILL_INTEGER, 22);
    matrix_fill(&p.c, TSR_FILL_INTEGER, 23);
    const int64_t apart_a = common == 1 ? 0 : m * p.a.ld + gap;
    const int64_t apart_b = common == 2 ? 0 : k * b_rows.ld + gap;
    const int64_t apart_c = m * p.c.ld + gap;
    matrix a = stack_open(s, &p.a, batch, m, apart_a);
    matrix b = stack_open(s, &b_rows, batch, k, apart_b);
    matrix c = stack_open(s, &p.c, batch, m, apart_c);
    const tsr_gemm_args args = {.m = m,
                                .n = n,
                                .k = k,
                                .a = a.data,
                                .lda = a.ld,
                                .b = b.data,
                                .ldb = b.ld,
                                .c = c.data,
                                .ldc = c.ld,
                                .accumulate = accumulate,
                                .batch = batch,
                                .stride_a = apart_a,
                                .stride_b = apart_b,
                                .stride_c = apart_c,
                                .workspace = p.workspace,
                                .fallbacks = p.fallbacks};
    CHECK_OK(tsr_gemm_launch(s->kernel, s->device, s->stream, &args));
    matrix result = download(s, &c);
    for (int64_t e = 0; e < c.elements; e++) {
        const int64_t which = e / apart_c;
        const int64_t row = e % apart_c / c.ld;
        const int64_t col = e % apart_c % c.ld;
        const double before = get(&c, e), got = get(&result, e);
        if (row >= m || col >= n) {
            CHECK(memcmp(c.host + e * c.bytes, result.host + e * c.bytes, c.bytes) == 0,
                  "%s %s: wrote between the products of a batch, at element %ld", s->kernel->name,
                  tsr_dtype_name(s->kernel->input), (long)e);
            continue;
        }
        double sum = accumulate ? before : 0;
        for (int64_t q = 0; q < k; q++)
            sum += get(&a, which * apart_a + row * a.ld + q) * get(&b, which * apart_b + q * b.ld + col);
        CHECK(got == sum, "%s %s batch of %ldx%ldx%ld gap %ld common %d accumulate %d: C%ld[%ld][%ld] = %g, not %g",
              s->kernel->name, tsr_dtype_name(s->kernel->input), (long)m, (long)n, (long)k, (long)gap, common,
              accumulate, (long)which, (long)row, (long)col, got, sum);
    }
    free(result.host);
    matrix_close(s, &a);
    matrix_close(s, &b);
    matrix_close(s, &c);
    matrix_close(s, &b_rows);
    product_close(s, &p);
}

static void check_batch(const setup *s, int64_t m, int64_t n, int64_t k, int64_t gap, int common, bool accumulate) {
    check_stack(s, 3, m, n, k, gap, common, accumulate);
}

/* Small, odd and empty ones, tiles that are whole and not, aligned and not. */
static void check_batches(const setup *s) {
    check_batch(s, 17, 13, 19, 0, 0, false);
    check_batch(s, 17, 13, 19, 7, 1, true);
    check_batch(s, 5, 33, 8, 1, 2, false);
    check_batch(s, 65, 70, 40, 64, 0, true);
    check_batch(s, 32, 64, 48, 16, 2, true);
    check_batch(s, 3, 4, 0, 3, 0, false);
    check_batch(s, 0, 4, 3, 1, 0, false);
}

/* Batches that tsr_gemm_launch must refuse. */
static void check_batch_refusals(const setup *s) {
    const int64_t edge = 2 * s->kernel->multiple;
    product p = product_open(s, 2 * edge, edge, edge, (layout){.pad = 1});
    const unsigned always = 1;
    for (int which = 0; which < 4; which++) {
        tsr_gemm_args args = arguments(&p, false);
        args.m = edge;
        args.batch = 2;
        args.stride_c = edge * args.ldc;
        const char *text = "negative";
        if (which == 0) args.batch = -1;
        if (which == 1) args.stride_a = -1;
        if (which == 2) {
            args.stride_c = (edge - 1) * args.ldc + edge - 1;
            text = "stride_c";
        }
        if (which == 3) {
            args.predicate = &always;
            text = "predicate";
        }
        CHECK_FAILS(tsr_gemm_launch(s->kernel, s->device, s->stream, &args),
                    which == 3 ? TSR_ERR_UNSUPPORTED : TSR_ERR_SHAPE, text);
    }
    product_close(s, &p);
}

#endif
