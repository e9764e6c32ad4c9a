/* C = A·B by cuBLAS, the yardstick the other kernels are measured against. cuBLAS counts columns first, so the
 * row-major product is asked for as Cᵀ = Bᵀ·Aᵀ. f32 and f64 keep IEEE precision; the rest is made by the tensor
 * cores. One handle a stream, made at its first launch and kept with the stream; the workspace is the caller's, so a
 * warm launch allocates nothing. */
#include <stdlib.h>

#include "kernels/device/cuda_compat.h"
#include "kernels/device/device_cuda.h"
#include "kernels/gemm/registry.h"
#include "kernels/gemm/vendor/cublas.h"

/* Opening the library, a handle, loading the first kernel: 0.10 to 0.34 on machines with H200 GPUs. */
#define LOAD_SECONDS 0.2

static const size_t workspace_size = (size_t)32 << 20; /* what NVIDIA recommends for Hopper, the most of any */

typedef struct {
    tsr_cuda_attachment base; /* first */
    cublasHandle_t handle;
} cublas_attachment;

static void destroy(tsr_cuda_attachment *attachment) {
    cublas_attachment *own = (cublas_attachment *)attachment;
    if (own->handle) tsr_cublas.cublasDestroy(own->handle);
    free(own);
}

static tsr_status create(tsr_stream *stream, cublas_attachment **attachment) {
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_cublas_load());
    cublas_attachment *own = calloc(1, sizeof *own);
    if (!own)
        return tsr_fail(TSR_ERR_MEMORY, "cuBLAS handle: no host memory (%zu bytes): close other programs", sizeof *own);
    own->base.stream = stream;
    own->base.destroy = destroy;
    TSR_TRY_DONE(TSR_CUBLAS(cublasCreate(&own->handle)));
    TSR_TRY_DONE(TSR_CUBLAS(cublasSetStream(own->handle, tsr_cuda_stream(stream))));
    *attachment = own;
    own = NULL;
done:
    if (own) destroy(&own->base);
    return status;
}

/* The stream's handle, which uses the caller's workspace from here on. One thread a stream, as everywhere. */
static tsr_status handle_of(tsr_device *device, tsr_stream *stream, void *workspace, cublasHandle_t *handle) {
    cublas_attachment *own = (cublas_attachment *)tsr_cuda_attached(device, stream, destroy);
    if (!own) {
        TSR_TRY(create(stream, &own));
        tsr_cuda_attach(device, &own->base);
    }
    TSR_TRY(TSR_CUBLAS(cublasSetWorkspace(own->handle, workspace, workspace_size)));
    *handle = own->handle;
    return TSR_OK;
}

static size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    (void)m;
    (void)n;
    (void)k;
    return workspace_size;
}

/* What k = 0 asks for. */
static tsr_status clear(tsr_stream *stream, const tsr_gemm_args *args, size_t bytes) {
    char *c = args->c;
    if (args->accumulate) return TSR_OK;
    for (int64_t i = 0; i < tsr_max(1, args->batch); i++, c += (size_t)args->stride_c * bytes)
        TSR_TRY(TSR_CUDA(cudaMemset2DAsync(c, (size_t)args->ldc * bytes, 0, (size_t)args->n * bytes, (size_t)args->m,
                                           tsr_cuda_stream(stream))));
    return TSR_OK;
}

#define DEFINE_LAUNCH(suffix, type, gemm, batched)                                                                     \
    static tsr_status launch_##suffix(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {             \
        const type one = 1, beta = args->accumulate ? 1 : 0;                                                           \
        cublasHandle_t handle;                                                                                         \
        if (args->k == 0) return clear(stream, args, sizeof(type));                                                    \
        if (tsr_device_loads_only()) return tsr_cublas_load();                                                         \
        TSR_TRY(handle_of(device, stream, args->workspace, &handle));                                                  \
        if (args->batch > 1)                                                                                           \
            return TSR_CUBLAS(batched(handle, CUBLAS_OP_N, CUBLAS_OP_N, args->n, args->m, args->k, &one, args->b,      \
                                      args->ldb, args->stride_b, args->a, args->lda, args->stride_a, &beta, args->c,   \
                                      args->ldc, args->stride_c, args->batch));                                        \
        return TSR_CUBLAS(gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, args->n, args->m, args->k, &one, args->b, args->ldb,  \
                               args->a, args->lda, &beta, args->c, args->ldc));                                        \
    }

DEFINE_LAUNCH(f32, float, cublasSgemm_64, cublasSgemmStridedBatched_64)
DEFINE_LAUNCH(f64, double, cublasDgemm_64, cublasDgemmStridedBatched_64)

/* C in fp32 by the tensor cores. */
static tsr_status launch_tensor(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, cudaDataType_t input,
                                cublasComputeType_t compute) {
    const float one = 1, beta = args->accumulate ? 1 : 0;
    cublasHandle_t handle;
    if (args->k == 0) return clear(stream, args, sizeof(float));
    if (tsr_device_loads_only()) return tsr_cublas_load();
    TSR_TRY(handle_of(device, stream, args->workspace, &handle));
    if (args->batch > 1)
        return TSR_CUBLAS(cublasGemmStridedBatchedEx_64(
            handle, CUBLAS_OP_N, CUBLAS_OP_N, args->n, args->m, args->k, &one, args->b, input, args->ldb,
            args->stride_b, args->a, input, args->lda, args->stride_a, &beta, args->c, CUDA_R_32F, args->ldc,
            args->stride_c, args->batch, compute, CUBLAS_GEMM_DEFAULT));
    return TSR_CUBLAS(cublasGemmEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, args->n, args->m, args->k, &one, args->b, input,
                                      args->ldb, args->a, input, args->lda, &beta, args->c, CUDA_R_32F, args->ldc,
                                      compute, CUBLAS_GEMM_DEFAULT));
}
static tsr_status launch_f16(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_tensor(device, stream, args, CUDA_R_16F, CUBLAS_COMPUTE_32F);
}
static tsr_status launch_bf16(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_tensor(device, stream, args, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
}
static tsr_status launch_tf32(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_tensor(device, stream, args, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
}

#define CUBLAS(suffix, input_code, code, least_arch, class)                                                            \
    const tsr_gemm_kernel tsr_gemm_cublas_##suffix = {.name = "cublas",                                                \
                                                      .what = "NVIDIA's cuBLAS, the yardstick",                        \
                                                      .device = TSR_DEVICE_CUDA,                                       \
                                                      .input = input_code,                                             \
                                                      .type = code,                                                    \
                                                      .min_arch = least_arch,                                          \
                                                      .accuracy = class,                                               \
                                                      .error_factor = 2.0,                                             \
                                                      .error_grows = true,                                             \
                                                      .multiple = 1,                                                   \
                                                      .speed_rank = 60,                                                \
                                                      .batched = &tsr_gemm_cublas_##suffix,                            \
                                                      .load_seconds = LOAD_SECONDS,                                    \
                                                      .workspace_bytes = workspace_bytes,                              \
                                                      .launch = launch_##suffix}

CUBLAS(f16, TSR_F16, TSR_F32, 53, TSR_ACCURACY_FAST);
CUBLAS(bf16, TSR_BF16, TSR_F32, 80, TSR_ACCURACY_FAST);
CUBLAS(f32, TSR_F32, TSR_F32, 50, TSR_ACCURACY_IEEE);
CUBLAS(f64, TSR_F64, TSR_F64, 50, TSR_ACCURACY_IEEE);

/* As the kernel `tf32`, for want of a statement by NVIDIA. */
const tsr_gemm_kernel tsr_gemm_cublas_tf32 = {.name = "cublas-tf32",
                                              .what = "NVIDIA's cuBLAS in tf32",
                                              .device = TSR_DEVICE_CUDA,
                                              .input = TSR_F32,
                                              .type = TSR_F32,
                                              .min_arch = 80,
                                              .accuracy = TSR_ACCURACY_TF32,
                                              .error_factor = 43000,
                                              .error_grows = false,
                                              .multiple = 1,
                                              .speed_rank = 65,
                                              .batched = &tsr_gemm_cublas_tf32,
                                              .load_seconds = LOAD_SECONDS,
                                              .workspace_bytes = workspace_bytes,
                                              .launch = launch_tf32};
