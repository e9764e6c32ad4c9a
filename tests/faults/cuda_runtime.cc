/* CUDA's runtime over the emulation, with calls that fail (cuda_runtime.h). */
#include "tests/faults/cuda_runtime.h"

#include <atomic>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "kernels/base/base.h"
#include "tests/faults/faults.h"

#define GPUS 4

struct tsr_emulation_stream {
    std::atomic<bool> held;
};
struct tsr_runtime_event {
    double seconds;
    cudaStream_t after; /* of work that does not end; else NULL */
};

static std::atomic<int> sticky; /* what every call says once work has failed */
static std::atomic<bool> released;

/* Work that fails later is a call that succeeds: what it was to do is not done. */
enum outcome { DO, LEAVE, FAIL };

static outcome begin(const char *call, bool is_work, bool allocates, cudaError_t *code) {
    if (const int failed = sticky) {
        *code = static_cast<cudaError_t>(failed);
        return FAIL;
    }
    const fault_kind kind = tsr_fault_of(of_cuda, call);
    if (kind == FAULT_NONE) return DO;
    if (kind == FAULT_LATER) sticky = cudaErrorIllegalAddress;
    *code = kind == FAULT_LATER ? (is_work ? cudaSuccess : cudaErrorIllegalAddress)
            : allocates         ? cudaErrorMemoryAllocation
                                : cudaErrorECCUncorrectable;
    return *code == cudaSuccess ? LEAVE : FAIL;
}

/* Of kernels and what is around them: a launch that fails later is one whose work was done wrong. */
static int kernels_fail(const char *call) {
    cudaError_t code = cudaSuccess;
    return begin(call, true, false, &code) == FAIL ? code : 0;
}

/* Before the first call of the program. */
__attribute__((constructor)) static void watch_kernels(void) { tsr_emulation_set_faults(kernels_fail); }

#define CALL(name, is_work, allocates)                                                                                 \
    cudaError_t code = cudaSuccess;                                                                                    \
    if (begin(#name, is_work, allocates, &code) != DO) return code
#define QUESTION(name) CALL(name, false, false)
#define WORK(name) CALL(name, true, false)
#define ALLOCATION(name) CALL(name, false, true)

const char *tsr_runtime_error_string(cudaError_t code) { return cudaGetErrorString(code); }

/* ---- devices --------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) {
    QUESTION(cudaGetDeviceCount);
    *count = GPUS;
    return code;
}
cudaError_t cudaInitDevice(int, unsigned, unsigned) {
    QUESTION(cudaInitDevice);
    return code;
}
cudaError_t cudaSetDevice(int) {
    QUESTION(cudaSetDevice);
    return code;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int chars, int device) {
    QUESTION(cudaDeviceGetPCIBusId);
    snprintf(text, (size_t)chars, "0000:%02x:00.0", device + 1);
    return code;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
    QUESTION(cudaGetDeviceProperties);
    snprintf(properties->name, sizeof properties->name, "emulated CUDA device");
    return code;
}
cudaError_t cudaDriverGetVersion(int *version) {
    QUESTION(cudaDriverGetVersion);
    *version = 13000;
    return code;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    QUESTION(cudaRuntimeGetVersion);
    *version = 13000;
    return code;
}

/* ---- memory ---------------------------------------------------------------------------------- */

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    QUESTION(cudaMemGetInfo);
    *available = *total = (size_t)1 << 30;
    return code;
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
    ALLOCATION(cudaMalloc);
    *memory = nullptr;
    return posix_memalign(memory, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *memory) {
    QUESTION(cudaFree);
    free(memory);
    return code;
}
cudaError_t cudaHostRegister(void *, size_t, unsigned) {
    ALLOCATION(cudaHostRegister);
    return code;
}
cudaError_t cudaHostUnregister(void *) {
    QUESTION(cudaHostUnregister);
    return code;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *) {
    QUESTION(cudaPointerGetAttributes);
    attributes->type = cudaMemoryTypeUnregistered;
    return code;
}

/* ---- streams and events ---------------------------------------------------------------------- */

void tsr_runtime_hold(void *stream) { static_cast<cudaStream_t>(stream)->held = true; }
void tsr_runtime_release(void) { released = true; }

/* Returns when the stream's work has ended. */
static cudaError_t wait_for(cudaStream_t stream) {
    while (stream && stream->held && !released) usleep(1000);
    return static_cast<cudaError_t>(sticky.load());
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    ALLOCATION(cudaStreamCreateWithFlags);
    *stream = new tsr_emulation_stream();
    return code;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    QUESTION(cudaStreamDestroy);
    delete stream;
    return code;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    QUESTION(cudaStreamSynchronize);
    return wait_for(stream);
}
/* Asked again and again: it does not count, so that the same call is the Nth in every run. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (const int failed = sticky) return static_cast<cudaError_t>(failed);
    return stream->held && !released ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    ALLOCATION(cudaEventCreateWithFlags);
    *event = new tsr_runtime_event();
    return code;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    QUESTION(cudaEventDestroy);
    delete event;
    return code;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    WORK(cudaEventRecord);
    event->seconds = tsr_now_seconds();
    event->after = stream->held ? stream : nullptr;
    return code;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    QUESTION(cudaEventSynchronize);
    return wait_for(event->after);
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    QUESTION(cudaEventElapsedTime);
    *milliseconds = (float)(1e3 * (to->seconds - from->seconds));
    return code;
}

/* ---- copies ---------------------------------------------------------------------------------- */

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    WORK(cudaMemcpyAsync);
    memcpy(to, from, bytes);
    return code;
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_step, const void *from, size_t from_step, size_t row_bytes,
                              size_t rows, cudaMemcpyKind, cudaStream_t) {
    WORK(cudaMemcpy2DAsync);
    for (size_t row = 0; row < rows; row++)
        memcpy(static_cast<char *>(to) + row * to_step, static_cast<const char *>(from) + row * from_step, row_bytes);
    return code;
}
