/* Multiplications of fp64 that keep less than they should, each in its own way, to prove the grader with. */
#ifndef TSR_TESTS_KERNELS_GEMM_GRADE_WRONG_PRODUCTS_H
#define TSR_TESTS_KERNELS_GEMM_GRADE_WRONG_PRODUCTS_H

#include "tests/kernels/gemm/grade/inputs.h"

/* What is no mistake: sums in the order of k. */
static inline void make_by_sums(void *context, known_product *p) {
    (void)context;
    for (int64_t at = 0; at < p->m * p->n; at++) {
        double sum = 0;
        for (int64_t l = 0; l < p->k; l++) sum += p->a[at / p->n * p->k + l] * p->b[l * p->n + at % p->n];
        p->c[at] = sum;
    }
}

/* One element is off by *context times k·u of its |A||B|, u = 2^-53. */
static inline void make_with_one_off(void *context, known_product *p) {
    make_by_sums(NULL, p);
    const int64_t i = p->m / 2, j = p->n / 2;
    p->c[i * p->n + j] += (double)(*(double *)context * (double)p->k * 0x1p-53L * known_size(p, i, j));
}

/* Sums of fp32. */
static inline void make_by_floats(void *context, known_product *p) {
    (void)context;
    for (int64_t at = 0; at < p->m * p->n; at++) {
        float sum = 0;
        for (int64_t l = 0; l < p->k; l++) sum += (float)p->a[at / p->n * p->k + l] * (float)p->b[l * p->n + at % p->n];
        p->c[at] = (double)sum;
    }
}

/* Pairs with a zero are passed over. */
static inline void make_without_zeros(void *context, known_product *p) {
    (void)context;
    for (int64_t at = 0; at < p->m * p->n; at++) {
        double sum = 0;
        for (int64_t l = 0; l < p->k; l++) {
            const double a = p->a[at / p->n * p->k + l], b = p->b[l * p->n + at % p->n];
            if (a != 0 && b != 0) sum += a * b;
        }
        p->c[at] = sum;
    }
}

/* Subnormal operands count as 0. */
static inline double flushed(double x) { return fabs(x) < 0x1p-1022 ? 0 : x; }
static inline void make_flushed(void *context, known_product *p) {
    (void)context;
    for (int64_t at = 0; at < p->m * p->n; at++) {
        double sum = 0;
        for (int64_t l = 0; l < p->k; l++)
            sum += flushed(p->a[at / p->n * p->k + l]) * flushed(p->b[l * p->n + at % p->n]);
        p->c[at] = sum;
    }
}

/* Rows that are not 0 are brought to a norm of 1 first; squares overflow and underflow. */
static inline void make_by_norms(void *context, known_product *p) {
    make_by_sums(context, p);
    for (int64_t i = 0; i < p->m; i++) {
        double norm = 0;
        for (int64_t l = 0; l < p->k; l++) norm += p->a[i * p->k + l] * p->a[i * p->k + l];
        norm = sqrt(norm);
        for (int64_t j = 0; i != GRADE_ZERO_ROW && j < p->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < p->k; l++) sum += p->a[i * p->k + l] / norm * p->b[l * p->n + j];
            p->c[i * p->n + j] = sum * norm;
        }
    }
}

/* Integers of so many bits. */
typedef struct {
    int bits;
    bool one_scale; /* of all rows, and one of all columns; else one a line */
} fixed_point;

/* E of the numbers at x, step apart: all are below 2^E. */
static inline int exponent_of(const double *x, int64_t count, int64_t step, int most) {
    for (int64_t l = 0; l < count; l++)
        if (x[l * step] != 0 && isfinite(x[l * step])) most = tsr_max(most, ilogb(x[l * step]) + 1);
    return most;
}
static inline int64_t fixed(const fixed_point *how, double x, int exponent) {
    return isfinite(x) ? llrint(ldexp(x, how->bits - exponent)) : 0;
}
static inline void make_fixed(void *context, known_product *p) {
    const fixed_point *how = (const fixed_point *)context;
    const int all_a = exponent_of(p->a, how->one_scale ? p->m * p->k : 0, 1, -1074);
    const int all_b = exponent_of(p->b, how->one_scale ? p->k * p->n : 0, 1, -1074);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const double *a = p->a + i * p->k, *b = p->b + j;
            const int of_a = exponent_of(a, p->k, 1, all_a), of_b = exponent_of(b, p->k, p->n, all_b);
            __int128 sum = 0;
            for (int64_t l = 0; l < p->k; l++) sum += (__int128)fixed(how, a[l], of_a) * fixed(how, b[l * p->n], of_b);
            p->c[i * p->n + j] = ldexp((double)sum, of_a + of_b - 2 * how->bits);
        }
}

/* ---- Strassen's, one step; all sides are even ------------------------------------------------ */

/* A quarter, 11, 12, 21 or 22, and another one with a sign; 0: none. */
typedef struct {
    int one, other, sign;
} quarters;

/* x: of rows of ld elements, 2·rows × 2·cols. Returns rows × cols, owned. */
static inline double *sum_of_quarters(const double *x, quarters of, int64_t rows, int64_t cols, int64_t ld) {
    double *to = (double *)known_room(rows * cols, sizeof *to);
    const double *one = x + of.one / 2 * rows * ld + of.one % 2 * cols;
    const double *other = x + of.other / 2 * rows * ld + of.other % 2 * cols;
    for (int64_t at = 0; at < rows * cols; at++) {
        const int64_t from = at / cols * ld + at % cols;
        to[at] = of.sign == 0 ? one[from] : one[from] + of.sign * other[from];
    }
    return to;
}
static inline void make_strassen(void *context, known_product *p) {
    static const struct {
        quarters a, b;
        int to[4]; /* with which sign it is added to each quarter of C */
    } products[] = {{{0, 3, 1}, {0, 3, 1}, {1, 0, 0, 1}},  {{2, 3, 1}, {0, 0, 0}, {0, 0, 1, -1}},
                    {{0, 0, 0}, {1, 3, -1}, {0, 1, 0, 1}}, {{3, 3, 0}, {2, 0, -1}, {1, 0, 1, 0}},
                    {{0, 1, 1}, {3, 3, 0}, {-1, 1, 0, 0}}, {{2, 0, -1}, {0, 1, 1}, {0, 0, 0, 1}},
                    {{1, 3, -1}, {2, 3, 1}, {1, 0, 0, 0}}};
    const int64_t m = p->m / 2;
    const int64_t n = p->n / 2;
    memset(p->c, 0, (size_t)(p->m * p->n) * sizeof *p->c);
    for (int i = 0; i < 7; i++) {
        known_product part = {.input = p->input, .type = p->type, .m = m, .n = n, .k = p->k / 2, .a = NULL};
        part.a = sum_of_quarters(p->a, products[i].a, m, part.k, p->k);
        part.b = sum_of_quarters(p->b, products[i].b, part.k, n, p->n);
        part.c = (double *)known_room(m * n, sizeof(double));
        make_by_sums(context, &part);
        for (int quarter = 0; quarter < 4; quarter++)
            for (int64_t at = 0; products[i].to[quarter] != 0 && at < m * n; at++)
                p->c[(quarter / 2 * m + at / n) * p->n + quarter % 2 * n + at % n] +=
                    products[i].to[quarter] * part.c[at];
        known_close(&part);
    }
}

#endif
