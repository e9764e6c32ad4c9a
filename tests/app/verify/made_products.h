/* Products for tests of the check: ill-scaled in rows, columns and along k, of several types, some with NaN, Inf and
 * overflow; and what an entry of C may be, worked out by itself in long double from the definition. Nothing here uses
 * the check's own code. */
#ifndef TSR_TESTS_APP_VERIFY_MADE_PRODUCTS_H
#define TSR_TESTS_APP_VERIFY_MADE_PRODUCTS_H

#include <math.h>
#include <stdlib.h>

#include "io/store.h"
#include "kernels/gemm/gemm.h"
#include "tests/app/verify/made_numbers.h"

enum { MOST = 40, ELEMENTS = MOST * MOST }; /* m, n, k ≤ MOST */

typedef enum { DENSE, SPARSE, BANDED, INTEGERS, NON_FINITE, OVERFLOWING, PATTERNS } pattern;

typedef struct {
    int m, n, k;
    pattern pattern;
    tsr_dtype operands, type, out; /* of A, B and C0; of the sums; of C */
    tsr_accuracy accuracy;
    bool transpose_a, transpose_b;
    double alpha, beta;
    double a[ELEMENTS], b[ELEMENTS], c0[ELEMENTS]; /* op(A) m × k, op(B) k × n, m × n: values that `operands` holds */
    double c[ELEMENTS];                            /* right, rounded as a kernel would */
    double rows[MOST], cols[MOST], along[MOST], of_c0[MOST]; /* the scales; C0's columns have their own besides */
} product;

/* An operand as the kernel takes it. */
static double taken(const product *p, double value) {
    if (p->accuracy == TSR_ACCURACY_IEEE || !isfinite(value)) return value;
    const double cut = ldexp(1, ilogb(value == 0 ? 1 : value) - (p->accuracy == TSR_ACCURACY_TF32 ? 10 : 7));
    return rint(value / cut) * cut;
}

/* Row i and column j as a kernel adds them up, in its type; k from `from` on. */
static double add_up(const product *p, int i, int j, int from) {
    double sum = 0;
    float single = 0;
    for (int l = from; l < p->k; l++) {
        const double a = taken(p, p->a[i * p->k + l]), b = taken(p, p->b[l * p->n + j]);
        if (p->type == TSR_F32) single += (float)a * (float)b;
        else sum += a * b;
    }
    return p->type == TSR_F32 ? (double)single : sum;
}

static double finished(const product *p, int i, int j, double sum) {
    double value = p->alpha * sum;
    if (p->beta != 0) value += p->beta * p->c0[i * p->n + j];
    return held(value, p->out);
}

static void multiply(product *p) {
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) p->c[i * p->n + j] = finished(p, i, j, add_up(p, i, j, 0));
}

/* ---- products -------------------------------------------------------------------------------- */

/* 10^-decades … 10^decades */
static void scales(double *to, int count, double decades) {
    const double some = below(3) == 0 ? 1 : 0.5; /* all of them, or about half */
    for (int i = 0; i < count; i++) to[i] = uniform() < some ? pow(10, decades * (2 * uniform() - 1)) : 1;
}

static double element(pattern kind, int i, int j) {
    if (kind == INTEGERS) return below(9) - 4;
    if (kind == SPARSE && below(8)) return 0;
    if (kind == BANDED && abs(i - j) > 4) return 0;
    return normal();
}

static void make_scales(product *p) {
    const double most = p->pattern == INTEGERS ? 0 : p->operands == TSR_F16 ? 1.3 : p->operands == TSR_F32 ? 30 : 150;
    double rows = 0;
    double cols = 0;
    double along = 0;
    for (int i = 0; i < MOST; i++) p->rows[i] = p->cols[i] = p->along[i] = 1;
    if (p->out == TSR_F16 && p->operands != TSR_F16) {
        rows = 0.5;
        cols = 0.5;
        along = 8;
    } else switch (below(6)) {
        case 0: break;
        case 1: rows = most; break;
        case 2: cols = most; break;
        case 3: along = most; break;
        case 4: rows = cols = most / 3; break;
        default:
            rows = cols = along = most / 3;
            /* where elements are few, levels of rows and of columns cannot be told apart */
            if (p->pattern == SPARSE || p->pattern == BANDED) *(below(2) ? &cols : &along) = 0;
            break;
        }
    scales(p->rows, p->m, rows);
    scales(p->cols, p->n, cols);
    scales(p->along, p->k, along);
    if (below(6) == 0) p->cols[below(p->n)] *= most >= 30 ? 1e6 : 1;
}

static void put_infinities(product *p) {
    static const double values[] = {NAN, INFINITY, -INFINITY, INFINITY, -INFINITY};
    const int kind = below(5), col = below(p->k);
    for (int i = 0; i < p->m && kind == 0; i++) p->a[i * p->k + col] = NAN; /* a column of missing values */
    for (int i = 0; i < p->m && kind == 1; i++) p->a[i * p->k + col] = values[below(5)];
    for (int some = kind < 2 ? 0 : 1 + below(5); some > 0; some--) {
        const int l = below(p->k), which = below(3);
        if (which == 0) p->a[below(p->m) * p->k + l] = values[below(5)];
        else if (which == 1) p->b[l * p->n + below(p->n)] = values[below(5)];
        else p->c0[below(p->m) * p->n + below(p->n)] = values[below(5)];
        if (below(2)) p->b[l * p->n + below(p->n)] = 0;
        if (below(2)) p->a[below(p->m) * p->k + l] = 0;
    }
}

/* Rows of A near the end of the range of their sums, or of C. */
static void put_overflow(product *p) {
    const double end = fmin(range(p->operands), fmin(range(p->type), range(p->out))) / 8;
    const bool one_sign = below(2);
    for (int i = 0; i < p->m; i++)
        for (int l = 0; l < p->k && i % 3 == 0; l++)
            p->a[i * p->k + l] = held(end * (one_sign ? uniform() : normal() / 4), p->operands);
    for (int e = 0; e < p->k * p->n; e++) p->b[e] = below(3) ? held(p->b[e], p->operands) : 0;
}

/* A product of any kind, with its right C. */
static void make_product(product *p, uint64_t seed) {
    random_state = seed;
    *p = (product){.m = 1 + below(MOST),
                   .n = 2 + below(MOST - 1),
                   .k = 2 + below(MOST - 1),
                   .pattern = (pattern)below(PATTERNS),
                   .alpha = 1,
                   .transpose_a = below(2),
                   .transpose_b = below(2)};
    if (p->pattern >= INTEGERS ? below(2) : below(4)) {
        p->m = 8 + below(MOST - 7);
        p->n = 8 + below(MOST - 7);
        p->k = 8 + below(MOST - 7);
    }
    static const tsr_dtype types[][3] = {{TSR_F32, TSR_F32, TSR_F32}, {TSR_F64, TSR_F64, TSR_F64},
                                         {TSR_F32, TSR_F32, TSR_F16}, {TSR_F64, TSR_F64, TSR_F64},
                                         {TSR_F16, TSR_F32, TSR_F32}, {TSR_F32, TSR_F32, TSR_F32}};
    const tsr_dtype *type = types[below(6)];
    p->operands = type[0];
    p->type = type[1];
    p->out = type[2];
    if (p->type == TSR_F32 && p->operands == TSR_F32 && p->pattern < INTEGERS && below(4) == 0)
        p->accuracy = below(2) ? TSR_ACCURACY_TF32 : TSR_ACCURACY_BF16;
    if (below(3) == 0) {
        p->alpha = below(2) ? -2.5 : 0.125;
        p->beta = below(2) ? 1 : -0.75;
    }
    make_scales(p);
    const pattern of = p->pattern == NON_FINITE || p->pattern == OVERFLOWING ? DENSE : p->pattern;
    if (p->pattern == OVERFLOWING)
        for (int i = 0; i < MOST; i++) p->rows[i] = p->cols[i] = p->along[i] = 1;
    for (int i = 0; i < p->m; i++)
        for (int l = 0; l < p->k; l++)
            p->a[i * p->k + l] = held(element(of, i, l) * p->rows[i] * p->along[l], p->operands);
    for (int l = 0; l < p->k; l++)
        for (int j = 0; j < p->n; j++)
            p->b[l * p->n + j] = held(element(of, l, j) / p->along[l] * p->cols[j], p->operands);
    scales(p->of_c0, p->n, p->operands == TSR_F16 || p->out == TSR_F16 || below(2) ? 0 : 6);
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++)
            p->c0[i * p->n + j] = held(element(DENSE, i, j) * p->rows[i] * p->cols[j] * p->of_c0[j], p->operands);
    if (p->pattern == NON_FINITE) put_infinities(p);
    if (p->pattern == OVERFLOWING) put_overflow(p);
    multiply(p);
}

/* ---- what an entry may be -------------------------------------------------------------------- */

typedef struct {
    bool finite, plus, minus, nan; /* what it may be */
    long double value;             /* where it may be finite */
    double bound; /* what rounding may cost there, entry by entry; of an entry of usual size for its terms */
} allowed;

static allowed entry_of(const product *p, int i, int j) {
    long double plus = 0;
    long double minus = 0;
    long double squares = 0;
    bool up = false;
    bool down = false;
    bool nan = false;
    for (int l = 0; l < p->k; l++) {
        const double a = p->a[i * p->k + l];
        const double b = p->b[l * p->n + j];
        const double term = a * b;
        if (isfinite(a) && isfinite(b)) squares += (long double)a * b * ((long double)a * b);
        if (isfinite(a) && isfinite(b)) *(((long double)a * b > 0) ? &plus : &minus) += fabsl((long double)a * b);
        else if (isnan(term)) nan = true;
        else *(term > 0 ? &up : &down) = true;
    }
    const bool reaches_up = plus > 0.98 * range(p->type), reaches_down = minus > 0.98 * range(p->type);
    if (p->alpha < 0) {
        bool other = up;
        up = down;
        down = other;
    }
    bool may_up = p->alpha < 0 ? reaches_down : reaches_up, may_down = p->alpha < 0 ? reaches_up : reaches_down;
    const double added = p->beta != 0 ? p->beta * p->c0[i * p->n + j] : 0;
    if (isnan(added)) nan = true;
    else if (isinf(added)) *(added > 0 ? &up : &down) = true;
    const bool must = nan || up || down;
    allowed x = {.value = p->alpha * (plus - minus) + (must ? 0 : added)};
    may_up |= x.value > 0.98 * range(p->out);
    may_down |= x.value < -0.98 * range(p->out);
    x.finite = !must;
    x.nan = nan || ((up || may_up) && (down || may_down));
    x.plus = !nan && !down && (up || (may_up && !must));
    x.minus = !nan && !up && (down || (may_down && !must));
    const double size = must ? 0 : fmax(fabs(added), fabs(p->beta) * p->rows[i] * p->cols[j] * p->of_c0[j]);
    const double u = unit(p->type), lost = p->accuracy == TSR_ACCURACY_IEEE
                                               ? 0
                                               : u * p->k / 4 + (p->accuracy == TSR_ACCURACY_TF32 ? 0x1p-10 : 0x1p-7);
    x.bound = (double)((u * (2 + 4 * sqrt(p->k)) + lost) * fabs(p->alpha) * (plus + minus) + 2 * u * size +
                       unit(p->out) * (fabs(p->alpha) * sqrtl(squares) + size)) +
              tiny(p->out) + p->k * fabs(p->alpha) * tiny(p->type);
    return x;
}

/* Whether c may stand there; *error: how far it is off where it is finite. */
static bool may_be(const allowed *x, double c, double *error) {
    *error = 0;
    if (isnan(c)) return x->nan;
    if (isinf(c)) return c > 0 ? x->plus : x->minus;
    if (!x->finite) return false;
    *error = (double)fabsl((long double)c - x->value);
    return true;
}

#endif
