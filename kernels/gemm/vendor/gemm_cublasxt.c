/* The peer of gemm_cublasxt.h. cublasXt counts columns first, so the row-major product is asked for as Cᵀ = Bᵀ·Aᵀ. */
#include "kernels/gemm/vendor/gemm_cublasxt.h"

#include <stdlib.h>

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/vendor/cublas.h"

#define MOST_DEVICES 64

struct tsr_cublasxt {
    cublasXtHandle_t handle;
};

tsr_status tsr_cublasxt_open(tsr_cublasxt **library, int *devices) {
    int ids[MOST_DEVICES], count = 0;
    TSR_TRY(tsr_cublas_load());
    tsr_cublasxt *opened = calloc(1, sizeof *opened);
    if (!opened) return tsr_fail(TSR_ERR_MEMORY, "cublasXt: no host memory: close other programs");
    *library = opened;
    TSR_TRY(TSR_CUDA(cudaGetDeviceCount(&count)));
    if (count > MOST_DEVICES) count = MOST_DEVICES;
    for (int i = 0; i < count; i++) ids[i] = i;
    TSR_TRY(TSR_CUBLAS(cublasXtCreate(&opened->handle)));
    TSR_TRY(TSR_CUBLAS(cublasXtDeviceSelect(opened->handle, count, ids)));
    *devices = count;
    return TSR_OK;
}

tsr_status tsr_cublasxt_set_block(tsr_cublasxt *library, int64_t block) {
    return TSR_CUBLAS(cublasXtSetBlockDim(library->handle, (int)block));
}

tsr_status tsr_cublasxt_multiply(tsr_cublasxt *library, tsr_dtype type, int64_t m, int64_t n, int64_t k, const void *a,
                                 const void *b, void *c) {
    const size_t rows = (size_t)m;
    const size_t cols = (size_t)n;
    const size_t inner = (size_t)k;
    if (type == TSR_F32) {
        const float one = 1, zero = 0;
        TSR_TRY(TSR_CUBLAS(cublasXtSgemm(library->handle, CUBLAS_OP_N, CUBLAS_OP_N, cols, rows, inner, &one, b, cols, a,
                                         inner, &zero, c, cols)));
    } else if (type == TSR_F64) {
        const double one = 1, zero = 0;
        TSR_TRY(TSR_CUBLAS(cublasXtDgemm(library->handle, CUBLAS_OP_N, CUBLAS_OP_N, cols, rows, inner, &one, b, cols, a,
                                         inner, &zero, c, cols)));
    } else {
        return tsr_fail(TSR_ERR_UNSUPPORTED, "cublasXt is asked for f32 and f64 here, not %s", tsr_dtype_name(type));
    }
    return TSR_CUDA(cudaDeviceSynchronize());
}

void tsr_cublasxt_close(tsr_cublasxt *library) {
    if (!library) return;
    if (library->handle) tsr_cublas.cublasXtDestroy(library->handle);
    free(library);
}
