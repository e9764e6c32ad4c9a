/* cublasXt, NVIDIA's library for products of matrices in host memory over several GPUs of one node: what `tessera
 * bench multiply` is measured against.
 * Built with cuBLAS (TSR_HAVE_CUBLAS). */
#ifndef TSR_KERNELS_GEMM_VENDOR_GEMM_CUBLASXT_H
#define TSR_KERNELS_GEMM_VENDOR_GEMM_CUBLASXT_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tsr_cublasxt tsr_cublasxt;

/* Local. Over all GPUs this process sees, *devices of them. Close it, also on failure (NULL is fine). */
tsr_status tsr_cublasxt_open(tsr_cublasxt **library, int *devices);
/* Local. Edge of the tiles it cuts matrices into. */
tsr_status tsr_cublasxt_set_block(tsr_cublasxt *library, int64_t block);
/* Local. C (m × n) = A (m × k) · B (k × n), row-major in host memory without gaps (pinned by the caller), all of
 * `type`: TSR_F32 or TSR_F64. Done when it returns. */
tsr_status tsr_cublasxt_multiply(tsr_cublasxt *library, tsr_dtype type, int64_t m, int64_t n, int64_t k, const void *a,
                                 const void *b, void *c);
void tsr_cublasxt_close(tsr_cublasxt *library);

#ifdef __cplusplus
}
#endif
#endif
