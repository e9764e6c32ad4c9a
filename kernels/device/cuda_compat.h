/* What every .cu file includes instead of <cuda_runtime.h>: the real thing under nvcc, or, with TSR_EMULATE_CUDA and
 * a host C++ compiler, an emulation that runs the same kernels on the host (cuda_emulation.h), so that they are
 * tested without a GPU.
 * Kernels are launched with TSR_LAUNCH and name dynamic shared memory with TSR_SHARED_DYNAMIC; both mean the same in
 * both. */
#ifndef TSR_KERNELS_DEVICE_CUDA_COMPAT_H
#define TSR_KERNELS_DEVICE_CUDA_COMPAT_H

#include "kernels/device/device.h"

#ifdef TSR_EMULATE_CUDA
#include "kernels/device/cuda_emulation.h"
#else
#include <cuda_runtime.h>
#endif

/* A CUDA call's code as a status with CUDA's own text; clears CUDA's sticky "last error". */
static inline tsr_status tsr_cuda_check(cudaError_t code, const char *call) {
    if (code == cudaSuccess) return TSR_OK;
    (void)cudaGetLastError();
    return tsr_fail(code == cudaErrorMemoryAllocation ? TSR_ERR_MEMORY : TSR_ERR_DEVICE,
                    "%s failed: %s (CUDA error %d)", call, cudaGetErrorString(code), (int)code);
}
#define TSR_CUDA(expr) tsr_cuda_check((expr), #expr)

/* Of the device that is current. */
static inline tsr_status tsr_cuda_attribute(enum cudaDeviceAttr attribute, int *value) {
    int device = 0;
    TSR_TRY(TSR_CUDA(cudaGetDevice(&device)));
    return TSR_CUDA(cudaDeviceGetAttribute(value, attribute, device));
}

/* Enough blocks of height × width for rows × cols, never more than the device takes: for kernels that stride over
 * the rest. */
static inline tsr_status tsr_cuda_grid(int64_t rows, int64_t cols, int64_t height, int64_t width, dim3 *grid) {
    int most_x = 0, most_y = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most_x));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimY, &most_y));
    grid->x = (unsigned)tsr_min(tsr_ceil_div(cols, width), most_x);
    grid->y = (unsigned)tsr_min(tsr_ceil_div(rows, height), most_y);
    return TSR_OK;
}

/* A stream of the CUDA device is a cudaStream_t under another name; NULL is the default stream. */
static inline cudaStream_t tsr_cuda_stream(tsr_stream *stream) { return (cudaStream_t)stream; }

/* Whether the launch just made was accepted. Errors while the kernel runs are reported by the next wait. */
static inline tsr_status tsr_cuda_launched(const char *kernel) {
    cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess) return TSR_OK;
    return tsr_fail(TSR_ERR_DEVICE, "launch of kernel %s failed: %s (CUDA error %d)", kernel, cudaGetErrorString(code),
                    (int)code);
}

#ifdef __cplusplus
/* Brings the kernel's code to the device. */
template <typename Function> static inline tsr_status tsr_cuda_load(Function *kernel, const char *name) {
    cudaFuncAttributes attributes;
    const cudaError_t code = cudaFuncGetAttributes(&attributes, kernel);
    if (code == cudaSuccess) return TSR_OK;
    (void)cudaGetLastError();
    return tsr_fail(TSR_ERR_DEVICE, "loading of kernel %s failed: %s (CUDA error %d)", name, cudaGetErrorString(code),
                    (int)code);
}
#endif

#ifdef __cplusplus
/* Whether this file's kernels wait for the launch in front, on the current device: what their code there is compiled
 * for decides, not the device. */
namespace {
template <int> __global__ void tsr_cuda_probe() {}
} // namespace
static inline tsr_status tsr_cuda_waits(bool *so) {
    static thread_local int asked = -1; /* of this device */
    static thread_local bool waits;
    int device = 0;
    TSR_TRY(TSR_CUDA(cudaGetDevice(&device)));
    if (device != asked) {
        cudaFuncAttributes attributes;
        TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, tsr_cuda_probe<0>)));
        waits = attributes.ptxVersion >= 90;
        asked = device;
    }
    *so = waits;
    return TSR_OK;
}
/* Says that the kernel's blocks may come before the launch in front of it has ended, where they wait for that. */
static inline tsr_status tsr_cuda_allow_early(cudaLaunchConfig_t *config, cudaLaunchAttribute *attribute) {
    bool waits = false;
    TSR_TRY(tsr_cuda_waits(&waits));
    if (!waits) return TSR_OK;
    attribute->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute->val.programmaticStreamSerializationAllowed = 1;
    config->numAttrs++;
    return TSR_OK;
}
#ifndef TSR_EMULATE_CUDA
template <typename... Parameters, typename... Arguments>
static inline tsr_status tsr_cuda_run_next(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                                           tsr_stream *stream, void (*kernel)(Parameters...),
                                           const Arguments &...arguments) {
    cudaLaunchAttribute early;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = tsr_cuda_stream(stream);
    config.attrs = &early;
    TSR_TRY(tsr_cuda_allow_early(&config, &early));
    (void)cudaLaunchKernelEx(&config, kernel, arguments...);
    return tsr_cuda_launched(name);
}
/* The first that each thread of such a kernel does: it waits for the launch in front. */
static __device__ __forceinline__ void tsr_cuda_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif
#endif

/* TSR_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments…): a tsr_status; of a thread that loads only, that of
 * loading. A template with commas stands in parentheses.
 * TSR_LAUNCH_NEXT: the same, of kernels that do nothing before tsr_cuda_begin(). What a launch takes is hidden then
 * behind the one in front.
 * TSR_SHARED_DYNAMIC(type, name): `type *name` is the block's dynamic shared memory, 16-byte aligned. */
#define TSR_LAUNCH(kernel, ...)                                                                                        \
    (tsr_device_loads_only() ? tsr_cuda_load(kernel, #kernel) : TSR_RUN(kernel, __VA_ARGS__))
#define TSR_LAUNCH_NEXT(kernel, ...)                                                                                   \
    (tsr_device_loads_only() ? tsr_cuda_load(kernel, #kernel) : TSR_RUN_NEXT(kernel, __VA_ARGS__))
#ifndef TSR_EMULATE_CUDA
/* In a header clang-format takes <<< for operators. */
/* clang-format off */
#define TSR_RUN(kernel, grid, block, shared_bytes, stream, ...) \
    ((kernel)<<<(grid), (block), (shared_bytes), tsr_cuda_stream(stream)>>>(__VA_ARGS__), tsr_cuda_launched(#kernel))
/* clang-format on */
#define TSR_RUN_NEXT(kernel, grid, block, shared_bytes, stream, ...)                                                   \
    tsr_cuda_run_next(#kernel, (grid), (block), (shared_bytes), (stream), (kernel), __VA_ARGS__)
#define TSR_SHARED_DYNAMIC(type, name)                                                                                 \
    extern __shared__ __align__(16) unsigned char tsr_shared_dynamic[];                                                \
    type *name = reinterpret_cast<type *>(tsr_shared_dynamic)
#endif

#endif
