/* Plans of Gram matrices (problem.gram): both sides of C are cut alike. Super-blocks above the diagonal are left out;
 * those on it are multiplied in strips of rows, each as far as the diagonal goes in it. Super-blocks come row by row,
 * in each the one on the diagonal first. Ranks have the parts of every other row and column of super-blocks in reverse
 * order (tsr_plan_span): a part and the one that takes its place in the next have all of a part below the diagonal. */
#ifndef TSR_MPI_PLAN_GRAM_H
#define TSR_MPI_PLAN_GRAM_H

#include "mpi/plan/plan.h"

#define TSR_GRAM_STRIPS 32      /* of a super-block on the diagonal: (1 + 1/32) / 2 of its flops */
#define TSR_GRAM_STRIP_HOST 128 /* rows at least: kernels lose speed on thinner ones */
#define TSR_GRAM_STRIP_DEVICE 1024

/* Super-blocks that are multiplied. */
static inline int64_t tsr_plan_blocks(const tsr_plan *plan) {
    return plan->problem.gram ? plan->blocks_m * (plan->blocks_m + 1) / 2 : plan->blocks_m * plan->blocks_n;
}

/* Where strips of a super-block on the diagonal may begin: at the kernel's tiles, or its blocks. */
static inline int64_t tsr_gram_step(const tsr_plan *plan) {
    return tsr_max(plan->resources.multiple, plan->problem.blocks.m);
}

/* Rows of such a strip, of `rows` on this rank. */
static inline int64_t tsr_gram_strip(const tsr_plan *plan, int64_t rows) {
    const int64_t usual = plan->resources.host_memory ? TSR_GRAM_STRIP_HOST : TSR_GRAM_STRIP_DEVICE,
                  least = plan->resources.edge > 0 ? tsr_min(usual, plan->resources.edge) : usual;
    return tsr_round_up(tsr_round_up(tsr_max(least, tsr_ceil_div(rows, TSR_GRAM_STRIPS)), least), tsr_gram_step(plan));
}

/* The rows of a rank's part of a super-block on the diagonal that are also columns of it. */
static inline tsr_span tsr_gram_square(tsr_span rows, tsr_span cols) {
    const int64_t start = tsr_max(rows.start, cols.start);
    return (tsr_span){start, tsr_max(0, tsr_min(rows.start + rows.count, cols.start + cols.count) - start)};
}

#endif
