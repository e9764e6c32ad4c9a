/* Every multiplication kernel of the build, one line a kernel; X(name) stands for the table tsr_gemm_name. In ladder
 * order: each rung is an idea more than the one before. The files that define the tables include this: C++ gives a
 * bare const internal linkage, and these declarations take that away. */
#ifndef TSR_KERNELS_GEMM_REGISTRY_H
#define TSR_KERNELS_GEMM_REGISTRY_H

#include "kernels/gemm/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Always there. */
#define TSR_GEMM_CPU_LIST(X)                                                                                           \
    X(reference_f16)                                                                                                   \
    X(reference_bf16)                                                                                                  \
    X(reference_f32)                                                                                                   \
    X(reference_f64)                                                                                                   \
    X(blas_f32)                                                                                                        \
    X(blas_f64)                                                                                                        \
    X(exact_cpu_f32)                                                                                                   \
    X(exact_cpu_f64)

/* With CUDA (TSR_HAVE_CUDA) or its host emulation (TSR_EMULATE_CUDA). */
#define TSR_GEMM_CUDA_LIST(X)                                                                                          \
    X(naive_f32)                                                                                                       \
    X(naive_f64)                                                                                                       \
    X(tiled_f32)                                                                                                       \
    X(tiled_f64)                                                                                                       \
    X(checked_f32)                                                                                                     \
    X(checked_f64)                                                                                                     \
    X(coarse_f32)                                                                                                      \
    X(coarse_f64)                                                                                                      \
    X(simt_f32)                                                                                                        \
    X(simt_f64)                                                                                                        \
    X(batched_f32)                                                                                                     \
    X(compensated_f32)                                                                                                 \
    X(compensated_f64)                                                                                                 \
    X(exact_f32)                                                                                                       \
    X(exact_f64)

/* With CUDA code for sm_90a (TSR_HAVE_HOPPER). */
#define TSR_GEMM_HOPPER_LIST(X)                                                                                        \
    X(split3_f32)                                                                                                      \
    X(dmma_f64)                                                                                                        \
    X(tf32_f32)                                                                                                        \
    X(wgmma_f16)                                                                                                       \
    X(wgmma_bf16)                                                                                                      \
    X(batched_f64)                                                                                                     \
    X(batched_f16)                                                                                                     \
    X(batched_bf16)

/* With cuBLAS (TSR_HAVE_CUBLAS). */
#define TSR_GEMM_CUBLAS_LIST(X)                                                                                        \
    X(cublas_f16)                                                                                                      \
    X(cublas_bf16)                                                                                                     \
    X(cublas_f32)                                                                                                      \
    X(cublas_f64)                                                                                                      \
    X(cublas_tf32)

#define X(name) extern const tsr_gemm_kernel tsr_gemm_##name;
TSR_GEMM_CPU_LIST(X)
TSR_GEMM_CUDA_LIST(X)
TSR_GEMM_HOPPER_LIST(X)
TSR_GEMM_CUBLAS_LIST(X)
#undef X

/* `exact` as `auto` takes it, behind `split3`: predicated, and in tsr_gemm_fallbacks it counts what it passes on. In no
 * list. */
extern const tsr_gemm_kernel tsr_gemm_exact_behind_f32;

#ifdef __cplusplus
}
#endif
#endif
