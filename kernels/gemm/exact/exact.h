/* `exact` as measurements want it. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_H

#include "kernels/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All blocks at level 0, whatever their error, Inf and NaN: no kernel of the registry. */
extern const tsr_gemm_kernel tsr_gemm_unproved_f32;
extern const tsr_gemm_kernel tsr_gemm_unproved_f64;

#ifdef __cplusplus
}
#endif
#endif
