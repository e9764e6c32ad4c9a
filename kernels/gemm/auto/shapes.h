/* Which products `exact` leaves to another kernel, the fallback, under `auto`: short and thin ones, by shape. Included
 * by exact.cu alone. */
#ifndef TSR_KERNELS_GEMM_AUTO_SHAPES_H
#define TSR_KERNELS_GEMM_AUTO_SHAPES_H

#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/exact/exact_convert.h"
#include "kernels/gemm/registry.h"

namespace exact {

#ifdef TSR_HAVE_HOPPER
constexpr const tsr_gemm_kernel *FALLBACK_F64 = &tsr_gemm_dmma_f64;
constexpr int FALLBACK_ARCH = 90; /* the only one it runs on */
#else
constexpr const tsr_gemm_kernel *FALLBACK_F64 = &tsr_gemm_simt_f64;
constexpr int FALLBACK_ARCH = 0;
#endif
template <typename T>
constexpr const tsr_gemm_kernel *FALLBACK = TYPE<T> == TSR_F64 ? FALLBACK_F64 : &tsr_gemm_simt_f32;

/* What `exact` takes, and its fallback, of what `exact` takes in an endless product. */
template <typename T> constexpr auto COST = TYPE<T> == TSR_F64 ? tsr_exact_cost_f64 : tsr_exact_cost_f32;
template <typename T> constexpr double FALLBACK_COST = TYPE<T> == TSR_F64 ? 1.53 : 3.5;

/* Under `auto`: a little more than the fallback takes, at most. */
template <typename T> double cost_for_auto(int64_t m, int64_t n, int64_t k) {
    const double own = COST<T>(m, n, k), most = 1.05 * FALLBACK_COST<T>;
    return own < most ? own : most;
}
/* Shapes of which the fallback makes normal data quicker. */
template <typename T> tsr_gemm_substitute leave_short(int64_t m, int64_t n, int64_t k) {
    if (COST<T>(m, n, k) <= FALLBACK_COST<T>) return {};
    return {.kernel = FALLBACK<T>,
            .why = TYPE<T> == TSR_F64 ? "350/m + 350/n + 500/k + 1600^3/(m*n*k) > 0.53"
                                      : "470/m + 470/n + 570/k + 2120^3/(m*n*k) > 2.5"};
}

} // namespace exact

#endif
