/* Products with the same bytes everywhere (--reproducible): by kernels whose sums allow it, and cut where they do.
 * `exact` has them on any device; another one on those of a kind (docs/exact.md). */
#ifndef TSR_APP_LIBRARY_PLANNING_REPRODUCIBLE_H
#define TSR_APP_LIBRARY_PLANNING_REPRODUCIBLE_H

#include <stdio.h>
#include <string.h>

#include "kernels/gemm/exact/exact.h"
#include "mpi/plan/plan.h"

#define TSR_REPRODUCIBLE_KERNEL "exact"

_Static_assert(TSR_EXACT_RANGE == TSR_GEMM_RANGE, "ranges of k are said to be the same for all kernels");

/* The kernel that was asked for by name; "auto" becomes `exact`. */
static inline const char *tsr_reproducible_kernel(const char *kernel) {
    return strcmp(kernel, "auto") == 0 ? TSR_REPRODUCIBLE_KERNEL : kernel;
}

static inline bool tsr_reproducible_is_exact(const char *kernel) {
    return strcmp(kernel, TSR_REPRODUCIBLE_KERNEL) == 0;
}

/* What multiplies in the place of *kernel: `exact` itself, another one as *own makes it. TSR_ERR_USAGE where it cannot.
 */
static inline tsr_status tsr_reproducible_take(const tsr_gemm_kernel **kernel, tsr_gemm_kernel *own) {
    if (tsr_reproducible_is_exact((*kernel)->name)) return TSR_OK;
    TSR_TRY(tsr_gemm_reproducible(*kernel, own));
    *kernel = own;
    return TSR_OK;
}

/* Launches are cut at the kernel's blocks. Units of C are set, and a Gram matrix is one; a stack comes later. */
static inline void tsr_reproducible_cut(tsr_problem *problem, const char *kernel) {
    tsr_problem_fix_blocks(problem, tsr_reproducible_is_exact(kernel) ? TSR_EXACT_BLOCK : 1, TSR_GEMM_RANGE);
    problem->one_nan = !tsr_reproducible_is_exact(kernel); /* that one makes one already */
}

/* For plans where there is no GPU to ask: what `exact` wants there beside A, B and C, and how its time grows. */
static inline void tsr_reproducible_room(const tsr_problem *problem, tsr_resources *resources) {
    const bool f64 = tsr_dtype_bytes(problem->input) == sizeof(double);
    resources->workspace_bytes = f64 ? tsr_exact_room_f64 : tsr_exact_room_f32;
    resources->shape_cost = f64 ? tsr_exact_cost_f64 : tsr_exact_cost_f32;
}

/* How the sums are defined, for the record. */
static inline void tsr_reproducible_text(const tsr_gemm_kernel *kernel, char *text, size_t chars) {
    if (tsr_reproducible_is_exact(kernel->name))
        snprintf(text, chars, "%s, blocks of %d x %d of C, ranges of %d of k", kernel->name, TSR_EXACT_BLOCK,
                 TSR_EXACT_BLOCK, TSR_GEMM_RANGE);
    else
        snprintf(text, chars, "%s on device %s, ranges of %d of k", kernel->name, tsr_device_kind_name(kernel->device),
                 TSR_GEMM_RANGE);
}

#endif
