/* Products of integers for `exact` on the CPU, by residues: 16-bit numbers, whose products are added in 32 bits, many
 * in an instruction. Their sums over k, one for each modulus, tell the integers of C (Chinese remainder theorem). Each
 * function runs as processors of several kinds are quickest, and has the same integers on all of them. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_CPU_RESIDUES_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_CPU_RESIDUES_H

#include "kernels/gemm/exact/exact_rules.h"

enum {
    TSR_EXACT_STEP = 256,                  /* elements of k whose integers are there at once */
    TSR_EXACT_LINES = TSR_EXACT_BLOCK + 1, /* of a block, and one that is their sum */
    TSR_EXACT_DIGITS = 4                   /* of an integer of C, in base 2^32 */
};

typedef int64_t tsr_exact_integers[TSR_EXACT_BLOCK][TSR_EXACT_STEP];  /* [line][element of k] */
typedef int16_t tsr_exact_plane[TSR_EXACT_LINES][TSR_EXACT_STEP];     /* the same of residues, -128 to 128 */
typedef int32_t tsr_exact_products[TSR_EXACT_LINES][TSR_EXACT_LINES]; /* [row][column], over a range of k at most */

/* Integers and magnitudes of a line's elements, by the scales that exact_rules.h gives them. */
void tsr_exact_round_line(const double *line, int depth, double scale, int64_t *x);
void tsr_exact_take_magnitudes(const double *line, int depth, double scale, int16_t *magnitudes);

/* What a step's lines add up to, for each element of k: their lower 32 bits, and what is above those, which has the
 * sign. */
typedef struct {
    double low[TSR_EXACT_STEP], high[TSR_EXACT_STEP];
} tsr_exact_line_sum;
void tsr_exact_add_lines(const tsr_exact_integers x, int lines, int depth, tsr_exact_line_sum *sum);

/* Residues modulo p, 256 at most; of the lines' sum, behind them, too, where `sum` is not NULL. */
void tsr_exact_take_residues(const tsr_exact_integers x, int lines, const tsr_exact_line_sum *sum, int depth, int p,
                             tsr_exact_plane residues);

/* sums += a·bᵀ. */
void tsr_exact_multiply_planes(const tsr_exact_plane a, int rows, const tsr_exact_plane b, int columns, int depth,
                               tsr_exact_products sums);

/* How integers are made of residues at a level. */
typedef struct {
    int count;                        /* of moduli */
    int digits;                       /* that their product takes */
    double product[TSR_EXACT_DIGITS]; /* its digits, from the last one */
    struct {
        int p;
        double inverse;                  /* of product / p modulo p */
        double others[TSR_EXACT_DIGITS]; /* digits of product / p */
        double powers[TSR_EXACT_DIGITS]; /* 2^(32 d) modulo p */
    } of[TSR_EXACT_MODULI_MOST];
} tsr_exact_remainders;
void tsr_exact_start_remainders(tsr_dtype type, int level, tsr_exact_remainders *remainders);

/* x: the integers of a row of C, by its sums, a matrix for each modulus. */
void tsr_exact_integers_of_row(const tsr_exact_remainders *remainders, const tsr_exact_products *sums, int row,
                               int columns, tsr_exact_integer x[TSR_EXACT_BLOCK]);

#endif
