/* CUDA's runtime for host programs, as far as kernels/device/device_cuda.cu and the transports call it, over the
 * emulation of kernels: device memory is the host's, and work is done when it is asked for. Each call may be made to
 * fail (faults.h). Several GPUs are seen. */
#ifndef TSR_TESTS_FAULTS_CUDA_RUNTIME_H
#define TSR_TESTS_FAULTS_CUDA_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
#include "kernels/device/cuda_emulation.h"
extern "C" {
#else
typedef int cudaError_t;
typedef struct tsr_emulation_stream *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorNotReady = 600 };
#define cudaGetErrorString tsr_runtime_error_string /* the emulation's is of C++ */
#endif

typedef struct tsr_runtime_event *cudaEvent_t;
typedef struct {
    char name[256];
} cudaDeviceProp;
typedef enum {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
} cudaMemcpyKind;
enum {
    cudaDeviceScheduleBlockingSync = 4,
    cudaInitDeviceFlagsAreValid = 1,
    cudaHostRegisterPortable = 1,
    cudaStreamNonBlocking = 1,
    cudaEventBlockingSync = 1
};

const char *tsr_runtime_error_string(cudaError_t code);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetPCIBusId(char *text, int chars, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
typedef enum { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1 } cudaMemoryType;
typedef struct {
    cudaMemoryType type;
} cudaPointerAttributes;
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_step, const void *from, size_t from_step, size_t row_bytes,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
