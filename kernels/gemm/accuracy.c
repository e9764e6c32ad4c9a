/* Hard inputs from counter-based random numbers, and inner products in twice double's precision. */
#include "kernels/gemm/accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/element.h"
#include "kernels/fill/fill.h"

#define SEED_A 11
#define SEED_B 12
#define SEED_SPREAD 100     /* added: the exponents of wide, and what cancelling leaves */
#define SEED_IMAGINARY 1000 /* added: imaginary parts */

static const char *const names[TSR_INPUT_COUNT] = {"uniform", "normal", "wide",  "cancelling",
                                                   "graded",  "sparse", "banded"};

const char *tsr_input_name(tsr_input input) { return names[input]; }

tsr_status tsr_input_parse(const char *name, tsr_input *input) {
    for (int i = 0; i < TSR_INPUT_COUNT; i++)
        if (strcmp(name, names[i]) == 0) {
            *input = (tsr_input)i;
            return TSR_OK;
        }
    return tsr_fail(TSR_ERR_USAGE,
                    "unknown input '%s': use uniform, normal, wide, cancelling, graded, sparse or banded", name);
}

static double normal(uint64_t seed, int64_t i, int64_t j) { return tsr_fill_element(TSR_FILL_NORMAL, seed, i, j); }

static double wide(double phi, uint64_t seed, int64_t i, int64_t j) {
    return normal(seed, i, j) * exp(phi * normal(seed + SEED_SPREAD, i, j));
}

static double sparse(uint64_t seed, int64_t i, int64_t j) {
    return tsr_fill_element(TSR_FILL_UNIFORM, seed + SEED_SPREAD, i, j) < 0.01 ? normal(seed, i, j) : 0;
}

/* Row or column `at` of `steps`, whose band lies around its share of the `length` elements along k; `along` of them
 * is asked for. */
static double banded(uint64_t seed, int64_t i, int64_t j, int64_t at, int64_t steps, int64_t along, int64_t length) {
    const int64_t diagonal = (int64_t)((double)at / (double)steps * (double)length);
    return llabs(diagonal - along) <= 24 ? normal(seed, i, j) : 0;
}

/* Element (i, p) of A (m × k). */
static double element_a(tsr_input input, double phi, uint64_t seed, int64_t m, int64_t k, int64_t i, int64_t p) {
    switch (input) {
    case TSR_INPUT_UNIFORM: return tsr_fill_element(TSR_FILL_UNIFORM, seed, i, p);
    case TSR_INPUT_WIDE: return wide(phi, seed, i, p);
    case TSR_INPUT_CANCELLING: return normal(seed, i, k > 1 ? p % (k / 2) : p);
    case TSR_INPUT_GRADED: return normal(seed, i, p) * exp2(-16 * ((double)i / (double)m + (double)p / (double)k));
    case TSR_INPUT_SPARSE: return sparse(seed, i, p);
    case TSR_INPUT_BANDED: return banded(seed, i, p, i, m, p, k);
    default: return normal(seed, i, p);
    }
}

/* Element (p, j) of B (k × n). */
static double element_b(tsr_input input, double phi, uint64_t seed, int64_t k, int64_t n, int64_t p, int64_t j) {
    const int64_t half = k / 2;
    switch (input) {
    case TSR_INPUT_UNIFORM: return tsr_fill_element(TSR_FILL_UNIFORM, seed, p, j);
    case TSR_INPUT_WIDE: return wide(phi, seed, p, j);
    case TSR_INPUT_CANCELLING:
        if (p < half || k == 1) return normal(seed, p, j);
        if (p == 2 * half) return 0; /* odd k: the last one has no partner */
        return -normal(seed, p - half, j) * (1 + 0x1p-12 * normal(seed + SEED_SPREAD, p, j));
    case TSR_INPUT_GRADED: return normal(seed, p, j) * exp2(16 * ((double)p / (double)k - (double)j / (double)n));
    case TSR_INPUT_SPARSE: return sparse(seed, p, j);
    case TSR_INPUT_BANDED: return banded(seed, p, j, j, n, p, k);
    default: return normal(seed, p, j);
    }
}

static tsr_status check_view(tsr_view to) {
    if (to.element.swapped || !tsr_dtype_serves(to.element.dtype, TSR_USE_PRODUCT))
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "input: cannot be %s%s: use f16, bf16, f32, f64, c64 or c128 in this machine's byte order",
                        tsr_dtype_name(to.element.dtype), to.element.swapped ? " byte-swapped" : "");
    return TSR_OK;
}

/* One part of element (i, j). */
static void store(tsr_view to, int part, int64_t i, int64_t j, double value) {
    const tsr_dtype type = to.element.dtype;
    tsr_element_store(tsr_dtype_part(type), to.data, tsr_dtype_parts(type) * (i * to.ld + j) + part, value);
}

tsr_status tsr_input_fill_a(tsr_input input, double phi, tsr_view a) {
    TSR_TRY(check_view(a));
    for (int part = 0; part < tsr_dtype_parts(a.element.dtype); part++)
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t p = 0; p < a.cols; p++)
                store(a, part, i, p, element_a(input, phi, SEED_A + part * SEED_IMAGINARY, a.rows, a.cols, i, p));
    return TSR_OK;
}

tsr_status tsr_input_fill_b(tsr_input input, double phi, tsr_view b) {
    TSR_TRY(check_view(b));
    for (int part = 0; part < tsr_dtype_parts(b.element.dtype); part++)
        for (int64_t p = 0; p < b.rows; p++)
            for (int64_t j = 0; j < b.cols; j++)
                store(b, part, p, j, element_b(input, phi, SEED_B + part * SEED_IMAGINARY, b.rows, b.cols, p, j));
    return TSR_OK;
}

/* ---- twice double's precision ---------------------------------------------------------------- */

tsr_double_double tsr_oracle_dot(int64_t k, const double *a, const double *b, double *absolute) {
    double high = 0;
    double low = 0;
    double magnitude = 0;
    for (int64_t p = 0; p < k; p++) {
        const double product = a[p] * b[p], product_lost = fma(a[p], b[p], -product);
        const double sum = high + product, back = sum - high;
        const double sum_lost = (high - (sum - back)) + (product - back);
        high = sum;
        low += product_lost + sum_lost;
        magnitude += fabs(product);
    }
    *absolute = magnitude;
    /* either may be the larger: all of the sum may have cancelled */
    const double whole = high + low, back = whole - high;
    return (tsr_double_double){whole, (high - (whole - back)) + (low - back)};
}
