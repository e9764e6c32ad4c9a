/* The check of a block of C that `exact` makes on the CPU. Each plane of residues has one line more, the sum of all its
 * lines, taken from their integers. So products of planes have the sums of C's columns and rows beside C. No rounding,
 * and so no threshold: what changes one element of the block after its integers were added up is found, whichever it
 * was, an integer, a residue, a sum, or an integer of C. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_CPU_CHECK_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_CPU_CHECK_H

#include "kernels/gemm/exact/exact_cpu_residues.h"

/* A sum of integers of C, of up to 2^24 of them: without what lies above 128 bits, which the sum of their upper 32
 * bits, as numbers with a sign, tells. */
typedef struct {
    tsr_exact_natural lower;
    int64_t upper;
} tsr_exact_total;

static inline void tsr_exact_total_add(tsr_exact_total *total, tsr_exact_integer x) {
    total->lower += (tsr_exact_natural)x;
    total->upper += (int64_t)(x >> 64) >> 32;
}

/* Its digits in base 2^32, from the last one; the first has the sign, and more bits. */
static inline void tsr_exact_total_digits(const tsr_exact_total *total, double digits[TSR_EXACT_DIGITS]) {
    tsr_exact_natural rest = total->lower - ((tsr_exact_natural)total->upper << 96); /* the sum of what is below 2^96 */
    for (int d = 0; d < TSR_EXACT_DIGITS - 1; d++, rest >>= 32) digits[d] = (uint32_t)rest;
    digits[TSR_EXACT_DIGITS - 1] = (double)(total->upper + (int64_t)rest);
}

/* Whether it is what products of planes say, modulo each of the moduli. */
static inline bool tsr_exact_total_is(const tsr_exact_total *total, const tsr_exact_remainders *remainders,
                                      const tsr_exact_products *sums, int row, int column) {
    double digits[TSR_EXACT_DIGITS];
    tsr_exact_total_digits(total, digits);
    for (int i = 0; i < remainders->count; i++) {
        const double p = remainders->of[i].p;
        double off = -(double)sums[i][row][column];
        for (int d = 0; d < TSR_EXACT_DIGITS; d++) off += digits[d] * remainders->of[i].powers[d];
        if (rint(off / p) * p != off) return false;
    }
    return true;
}

typedef struct {
    tsr_exact_total columns[TSR_EXACT_BLOCK];
    int wrong; /* rows up to now */
} tsr_exact_checksums;

/* A row of a block, of which the sums say what it is, with `columns` elements. */
static inline void tsr_exact_check_row(tsr_exact_checksums *s, const tsr_exact_remainders *remainders,
                                       const tsr_exact_products *sums, int row, int columns,
                                       const tsr_exact_integer x[TSR_EXACT_BLOCK]) {
    tsr_exact_total total = {.upper = 0};
    for (int j = 0; j < columns; j++) {
        tsr_exact_total_add(&total, x[j]);
        tsr_exact_total_add(&s->columns[j], x[j]);
    }
    s->wrong += !tsr_exact_total_is(&total, remainders, sums, row, columns);
}

/* After all rows: how many are not what they must be; 1 where only columns are not. */
static inline int tsr_exact_check_close(const tsr_exact_checksums *s, const tsr_exact_remainders *remainders,
                                        const tsr_exact_products *sums, int rows, int columns) {
    int wrong = 0;
    for (int j = 0; j < columns; j++) wrong += !tsr_exact_total_is(&s->columns[j], remainders, sums, rows, j);
    return s->wrong > 0 ? s->wrong : wrong > 0;
}

#endif
