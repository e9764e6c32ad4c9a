/* A product in the host's memory whose exact elements are known: operands as fp64 that hold what the kernel's input
 * type holds, what a kernel made of them, and what that is worth element by element. From C and C++. */
#ifndef TSR_TESTS_KERNELS_GEMM_GRADE_KNOWN_PRODUCT_H
#define TSR_TESTS_KERNELS_GEMM_GRADE_KNOWN_PRODUCT_H

#include <stdlib.h>

#include "kernels/base/element.h"
#include "kernels/gemm/gemm.h"
#include "tests/check.h"
#include "tests/kernels/gemm/grade/exact_sum.h"

typedef struct {
    tsr_dtype input, type; /* of A and B, of C */
    int64_t m, n, k;
    double *a, *b, *c; /* m × k, k × n, m × n, row-major */
} known_product;

static inline void *known_room(int64_t count, size_t bytes) {
    void *at = calloc((size_t)count, bytes);
    CHECK(at != NULL, "no memory for %ld elements", (long)count);
    return at;
}
static inline known_product known_open(tsr_dtype input, tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    known_product p;
    p.input = input;
    p.type = type;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = (double *)known_room(m * k, sizeof(double));
    p.b = (double *)known_room(k * n, sizeof(double));
    p.c = (double *)known_room(m * n, sizeof(double));
    return p;
}
static inline void known_close(known_product *p) {
    free(p->a);
    free(p->b);
    free(p->c);
}

/* Numbers in [0, below), the same in every run. */
static uint64_t known_state = 20261124;
static inline uint64_t known_drawn(uint64_t below) {
    known_state = known_state * 6364136223846793005u + 1442695040888963407u;
    return (known_state >> 32) % below;
}
/* In (0, 1), of 53 bits. */
static inline double known_uniform(void) {
    const double high = (double)known_drawn(1u << 26), low = (double)known_drawn(1u << 26);
    return (high * 0x1p26 + low + 0.5) * 0x1p-52;
}
static inline double known_normal(void) {
    return sqrt(-2 * log(known_uniform())) * cos(6.283185307179586 * known_uniform());
}

static inline double known_get(tsr_dtype type, const void *from, int64_t at) {
    switch (type) {
    case TSR_F16: return tsr_half_decode(((const uint16_t *)from)[at]);
    case TSR_BF16: return tsr_bf16_decode(((const uint16_t *)from)[at]);
    case TSR_F32: return (double)((const float *)from)[at];
    default: return ((const double *)from)[at];
    }
}
/* What a type holds of a number. */
static inline double known_held(tsr_dtype type, double value) {
    double element = 0;
    tsr_element_store(type, &element, 0, value);
    return known_get(type, &element, 0);
}

/* Elements of `type` in memory of their own; each number becomes what that type holds. */
static inline void *known_elements(tsr_dtype type, double *numbers, int64_t count) {
    void *elements = known_room(count, tsr_dtype_bytes(type));
    for (int64_t at = 0; at < count; at++) {
        tsr_element_store(type, elements, at, numbers[at]);
        numbers[at] = known_get(type, elements, at);
    }
    return elements;
}

/* ---- what it is worth ------------------------------------------------------------------------ */

static inline exact_sum known_sum(const known_product *p, int64_t i, int64_t j) {
    exact_sum sum;
    memset(&sum, 0, sizeof sum);
    for (int64_t l = 0; l < p->k; l++) exact_add(&sum, p->a[i * p->k + l], p->b[l * p->n + j]);
    return sum;
}
/* Element (i, j) of |A||B|. */
static inline long double known_size(const known_product *p, int64_t i, int64_t j) {
    long double size = 0;
    for (int64_t l = 0; l < p->k; l++)
        size += fabsl((long double)p->a[i * p->k + l]) * fabsl((long double)p->b[l * p->n + j]);
    return size;
}
/* How far C is from A·B there; Inf where C is no number. */
static inline long double known_error(const known_product *p, int64_t i, int64_t j) {
    const double got = p->c[i * p->n + j];
    return isfinite(got) ? fabsl(exact_rest(known_sum(p, i, j), got)) : (long double)INFINITY;
}

/* The largest error in units of |A||B|; Inf where there is one and nothing meets. */
static inline double known_worst(const known_product *p) {
    long double worst = 0;
    for (int64_t at = 0; at < p->m * p->n; at++) {
        const long double error = known_error(p, at / p->n, at % p->n);
        const long double of = error > 0 ? error / known_size(p, at / p->n, at % p->n) : 0;
        if (of > worst) worst = of;
    }
    return (double)worst;
}

#endif
