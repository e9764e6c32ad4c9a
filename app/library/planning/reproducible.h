/* Products with the same bytes everywhere (--reproducible): by one kernel, and cut where that allows it. */
#ifndef TSR_APP_LIBRARY_PLANNING_REPRODUCIBLE_H
#define TSR_APP_LIBRARY_PLANNING_REPRODUCIBLE_H

#include <stdio.h>
#include <string.h>

#include "kernels/gemm/exact/exact.h"
#include "mpi/plan/plan.h"

#define TSR_REPRODUCIBLE_KERNEL "exact"

/* The kernel that was asked for by name, or "auto", becomes that one; TSR_ERR_USAGE where it is another. */
static inline tsr_status tsr_reproducible_take(const char **kernel) {
    if (strcmp(*kernel, "auto") != 0 && strcmp(*kernel, TSR_REPRODUCIBLE_KERNEL) != 0)
        return tsr_fail(TSR_ERR_USAGE,
                        "--reproducible multiplies by the kernel %s, and --kernel %s is another: leave out one of them",
                        TSR_REPRODUCIBLE_KERNEL, *kernel);
    *kernel = TSR_REPRODUCIBLE_KERNEL;
    return TSR_OK;
}

/* Launches are cut at the kernel's blocks. Units of C are set, and a Gram matrix is one; a stack comes later. */
static inline void tsr_reproducible_cut(tsr_problem *problem) {
    tsr_problem_fix_blocks(problem, TSR_EXACT_BLOCK, TSR_EXACT_RANGE);
}

/* For plans where there is no GPU to ask: what the kernel wants there beside A, B and C. */
static inline void tsr_reproducible_room(const tsr_problem *problem, tsr_resources *resources) {
    const bool f64 = tsr_dtype_bytes(problem->input) == sizeof(double);
    resources->workspace_bytes = f64 ? tsr_exact_room_f64 : tsr_exact_room_f32;
}

/* How the sums are defined, for the record. */
static inline void tsr_reproducible_text(char *text, size_t chars) {
    snprintf(text, chars, "%s, blocks of %d x %d of C, ranges of %d of k", TSR_REPRODUCIBLE_KERNEL, TSR_EXACT_BLOCK,
             TSR_EXACT_BLOCK, TSR_EXACT_RANGE);
}

#endif
