/* Every kernel table of the build by name. The files that define the tables include this: C++ gives a bare const internal
 * linkage, and these declarations take that away. */
#ifndef TSR_KERNELS_REGISTRY_H
#define TSR_KERNELS_REGISTRY_H

#include "kernels/fill.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Always there. */
extern const tsr_gemm_kernel tsr_gemm_reference_f16, tsr_gemm_reference_bf16, tsr_gemm_reference_f32, tsr_gemm_reference_f64; /* gemm_reference.c */
extern const tsr_gemm_kernel tsr_gemm_blas_f32, tsr_gemm_blas_f64; /* gemm_blas.c */

/* With CUDA (TSR_HAVE_CUDA) or its host emulation (TSR_EMULATE_CUDA). */
extern const tsr_gemm_kernel tsr_gemm_naive_f32, tsr_gemm_naive_f64;             /* gemm_naive.cu */
extern const tsr_gemm_kernel tsr_gemm_tiled_f32, tsr_gemm_tiled_f64;             /* gemm_tiled.cu */
extern const tsr_gemm_kernel tsr_gemm_checked_f32, tsr_gemm_checked_f64;         /* gemm_checked.cu */
extern const tsr_gemm_kernel tsr_gemm_coarse_f32, tsr_gemm_coarse_f64;           /* gemm_coarse.cu */
extern const tsr_gemm_kernel tsr_gemm_compensated_f32, tsr_gemm_compensated_f64; /* gemm_compensated.cu */
extern const tsr_gemm_kernel tsr_gemm_simt_f32, tsr_gemm_simt_f64;               /* gemm_simt.cu */

/* With CUDA code for sm_90a (TSR_HAVE_HOPPER). */
extern const tsr_gemm_kernel tsr_gemm_split3_f32;                     /* gemm_split3.cu */
extern const tsr_gemm_kernel tsr_gemm_dmma_f64;                       /* gemm_dmma.cu */
extern const tsr_gemm_kernel tsr_gemm_tf32_f32;                       /* gemm_tf32.cu */
extern const tsr_gemm_kernel tsr_gemm_wgmma_f16, tsr_gemm_wgmma_bf16; /* gemm_wgmma.cu */

/* With cuBLAS (TSR_HAVE_CUBLAS): gemm_cublas.c */
extern const tsr_gemm_kernel tsr_gemm_cublas_f16, tsr_gemm_cublas_bf16, tsr_gemm_cublas_f32, tsr_gemm_cublas_f64, tsr_gemm_cublas_tf32;

/* registry.c: `shape` of a library's kernel, whose tiles are its own affair: bytes count each operand once. half: operands of 16 bits. */
tsr_status tsr_gemm_shape_once_half(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape);
tsr_status tsr_gemm_shape_once_f32(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape);
tsr_status tsr_gemm_shape_once_f64(tsr_device *device, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape);

/* registry.c: every pack table checks its arguments against the contract in pack.h with these before anything is read. */
tsr_status tsr_pack_check(const tsr_pack_args *args);
tsr_status tsr_finish_check(const tsr_finish_args *args);

#ifdef __cplusplus
}
#endif
#endif
