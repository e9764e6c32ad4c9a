/* The check of a block of C that `exact` makes on the CPU: sums along its columns and its rows, which the sums of its
 * integers tell beforehand, modulo 2^128. No rounding, and so no threshold: what changes one element of the block after
 * its integers were added up is found, whichever it was, of A, of B, or of C. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_CPU_CHECK_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_CPU_CHECK_H

#include <string.h>

#include "kernels/gemm/exact/exact_rules.h"

enum { TSR_EXACT_STEP = 128 }; /* elements of k whose integers are there at once */

typedef int64_t tsr_exact_step[TSR_EXACT_BLOCK][TSR_EXACT_STEP];            /* [line][element of k] */
typedef tsr_exact_integer tsr_exact_sums[TSR_EXACT_BLOCK][TSR_EXACT_BLOCK]; /* of a block: A·B */

/* What the sums of a block's columns and rows must be. */
typedef struct {
    tsr_exact_natural columns[TSR_EXACT_BLOCK], rows[TSR_EXACT_BLOCK];
    tsr_exact_natural of_a[TSR_EXACT_STEP], of_b[TSR_EXACT_STEP]; /* of a step: over all rows, and all columns */
} tsr_exact_checksums;

static inline void tsr_exact_add_lines(const tsr_exact_step lines, int count, int depth, tsr_exact_natural *sums) {
    memset(sums, 0, TSR_EXACT_STEP * sizeof *sums);
    for (int i = 0; i < count; i++)
        for (int l = 0; l < depth; l++) sums[l] += (tsr_exact_natural)(tsr_exact_integer)lines[i][l];
}

/* Before a step is multiplied: its integers are added up. */
static inline void tsr_exact_check_open(tsr_exact_checksums *s, const tsr_exact_step a, int rows,
                                        const tsr_exact_step b, int columns, int depth) {
    tsr_exact_add_lines(a, rows, depth, s->of_a);
    tsr_exact_add_lines(b, columns, depth, s->of_b);
}

/* After it: what it adds to the sums of columns and rows. */
static inline void tsr_exact_check_add(tsr_exact_checksums *s, const tsr_exact_step a, int rows, const tsr_exact_step b,
                                       int columns, int depth) {
    for (int j = 0; j < columns; j++)
        for (int l = 0; l < depth; l++) s->columns[j] += s->of_a[l] * (tsr_exact_natural)(tsr_exact_integer)b[j][l];
    for (int i = 0; i < rows; i++)
        for (int l = 0; l < depth; l++) s->rows[i] += (tsr_exact_natural)(tsr_exact_integer)a[i][l] * s->of_b[l];
}

/* How many rows are not what they must be; 1 where only columns are not. */
static inline int tsr_exact_check_close(const tsr_exact_checksums *s, const tsr_exact_sums sums, int rows,
                                        int columns) {
    tsr_exact_natural of_columns[TSR_EXACT_BLOCK] = {0};
    int wrong_rows = 0, wrong_columns = 0;
    for (int i = 0; i < rows; i++) {
        tsr_exact_natural of_row = 0;
        for (int j = 0; j < columns; j++) {
            of_row += (tsr_exact_natural)sums[i][j];
            of_columns[j] += (tsr_exact_natural)sums[i][j];
        }
        wrong_rows += of_row != s->rows[i];
    }
    for (int j = 0; j < columns; j++) wrong_columns += of_columns[j] != s->columns[j];
    return wrong_rows > 0 ? wrong_rows : wrong_columns > 0;
}

#endif
