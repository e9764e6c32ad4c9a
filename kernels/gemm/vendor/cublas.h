/* cuBLAS, loaded when it is first wanted: a process that has it is 150 MB larger and 80 ms later to start, and only
 * benchmarks and `--kernel cublas` want it.
 * Built where cuBLAS is (TSR_HAVE_CUBLAS). */
#ifndef TSR_KERNELS_GEMM_VENDOR_CUBLAS_H
#define TSR_KERNELS_GEMM_VENDOR_CUBLAS_H

#include <cublasXt.h>
#include <cublas_v2.h>

#include "kernels/base/base.h"

#define TSR_CUBLAS_FUNCTIONS(X)                                                                                        \
    X(cublasGetStatusString)                                                                                           \
    X(cublasCreate)                                                                                                    \
    X(cublasDestroy)                                                                                                   \
    X(cublasSetStream)                                                                                                 \
    X(cublasSetWorkspace)                                                                                              \
    X(cublasSgemmStridedBatched_64)                                                                                    \
    X(cublasDgemmStridedBatched_64)                                                                                    \
    X(cublasGemmStridedBatchedEx_64)                                                                                   \
    X(cublasSgemm_64)                                                                                                  \
    X(cublasDgemm_64)                                                                                                  \
    X(cublasCgemm_64)                                                                                                  \
    X(cublasZgemm_64)                                                                                                  \
    X(cublasGemmEx_64)                                                                                                 \
    X(cublasSsyrk_64)                                                                                                  \
    X(cublasDsyrk_64)                                                                                                  \
    X(cublasXtCreate)                                                                                                  \
    X(cublasXtDestroy)                                                                                                 \
    X(cublasXtDeviceSelect)                                                                                            \
    X(cublasXtSetBlockDim)                                                                                             \
    X(cublasXtSgemm)                                                                                                   \
    X(cublasXtDgemm)

/* Named as the headers' macros have it, cublasCreate_v2 for cublasCreate. */
typedef struct {
#define X(name) __typeof__(&name) name;
    TSR_CUBLAS_FUNCTIONS(X)
#undef X
} tsr_cublas_functions;

extern tsr_cublas_functions tsr_cublas; /* all there after tsr_cublas_load */

/* Local, from any thread. TSR_ERR_UNSUPPORTED when the library cannot be loaded or lacks a function. */
tsr_status tsr_cublas_load(void);
/* A call's code as a status with cuBLAS's own text. */
tsr_status tsr_cublas_check(cublasStatus_t code, const char *call);
#define TSR_CUBLAS(call) tsr_cublas_check(tsr_cublas.call, #call)

#endif
