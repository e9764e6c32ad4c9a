/* `exact` as measurements and tests want it. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_H

#include "kernels/gemm/exact/exact_rules.h"
#include "kernels/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All blocks at level 0, whatever their error, Inf and NaN: no kernel of the registry. */
extern const tsr_gemm_kernel tsr_gemm_unproved_f32;
extern const tsr_gemm_kernel tsr_gemm_unproved_f64;

/* Under `auto`: blocks of C go to another kernel where the device finds that it makes them quicker. */
extern const tsr_gemm_kernel tsr_gemm_exact_auto_f32;
extern const tsr_gemm_kernel tsr_gemm_exact_auto_f64;

/* exact with products of quarters (residues/winograd.h), whatever the size: no kernels of the registry. */
extern const tsr_gemm_kernel tsr_gemm_quartered_f32;
extern const tsr_gemm_kernel tsr_gemm_quartered_f64;
/* And without them, whatever the size. */
extern const tsr_gemm_kernel tsr_gemm_whole_f32;
extern const tsr_gemm_kernel tsr_gemm_whole_f64;

/* Rows and columns of the blocks of C that a GPU makes one after another, at most. */
#define TSR_EXACT_EDGE 16384

/* Whether it has the room for products of quarters of such a block. It makes them where they pay. */
#define TSR_EXACT_QUARTERED_FROM 14336
static inline bool tsr_exact_is_quartered(int64_t m, int64_t n, int64_t k) {
    return tsr_min(m, tsr_min(n, k)) >= TSR_EXACT_QUARTERED_FROM;
}

/* No less than the workspace that `exact` wants on a GPU, bytes, for plans where there is none. */
size_t tsr_exact_room_f32(int64_t m, int64_t n, int64_t k);
size_t tsr_exact_room_f64(int64_t m, int64_t n, int64_t k);
/* Its shape_cost there (tsr_gemm_kernel): lines are converted, a range of k has a last step, and launches take their
 * time, whatever they make. */
double tsr_exact_cost_f32(int64_t m, int64_t n, int64_t k);
double tsr_exact_cost_f64(int64_t m, int64_t n, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
