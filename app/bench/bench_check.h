/* Whether the product of two generated matrices is right: elements of C on a lattice, its corners among them,
 * against sums in long double. */
#ifndef TSR_APP_BENCH_BENCH_CHECK_H
#define TSR_APP_BENCH_BENCH_CHECK_H

#include "kernels/fill/fill.h"

#define TSR_BENCH_LATTICE 12 /* rows and columns of a part of C that are looked at, at most */

/* What C (m × n) is made of: A (m × k) and B (k × n). */
typedef struct {
    tsr_fill_kind fill;
    uint64_t seed_a, seed_b;
    tsr_dtype input; /* that holds A and B */
    tsr_dtype type;  /* that holds C: one of sums, or complex where `input` is */
    int64_t k;
    double bound; /* |ΔC| ≤ bound·(|A||B|), elementwise; 0: C is exact */
    bool gram;    /* B is A transposed, of seed_a */
    bool lower;   /* nothing of C is above its diagonal */
} tsr_bench_expected;

typedef struct {
    int64_t elements; /* that were looked at */
    int64_t wrong;
    double worst;     /* largest |ΔC| / (|A||B|); NaN when an element is none */
    int64_t row, col; /* of the first wrong one, in C */
    double got, wanted;
} tsr_bench_verdict;

/* Index `s` of `count` spread over [0, length), both ends among them. */
static inline int64_t tsr_bench_lattice(int64_t length, int64_t count, int64_t s) {
    return count > 1 ? (int64_t)((long double)(length - 1) * s / (count - 1)) : 0;
}

/* Local. Adds to *verdict (all zeros at first) what the part `rect` of C holds on a lattice of at most `side` ×
 * `side` elements; fetch brings a row of it, 1 × rect.cols, to host memory. */
tsr_status tsr_bench_check_part(const tsr_bench_expected *expected, tsr_rect rect, int64_t side,
                                tsr_status (*fetch)(void *context, tsr_rect row, void *to), void *context,
                                tsr_bench_verdict *verdict);

#endif
