/* CUDA on the host, for tests: one fiber a thread, one block at a time, in the calling thread. The parts of CUDA C++
 * and of its runtime that the kernels of this folder use. Barriers that not all threads of a block reach are errors
 * of the launch; dynamic shared memory is heap memory of exactly the size asked for, full of NaN when a block
 * starts, so that sanitizers and results show reads past it and before it is written. */
#ifndef TSR_KERNELS_DEVICE_CUDA_EMULATION_H
#define TSR_KERNELS_DEVICE_CUDA_EMULATION_H

#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The limits of the emulated device; launches beyond them fail as on a GPU. A test may change them between launches. */
typedef struct {
    int threads_block;
    int grid_max[3];
    size_t shared_block_bytes, shared_block_optin_bytes;
    int registers_block;
    int multiprocessors;
    int threads_multiprocessor;
    size_t shared_multiprocessor_bytes;
    int arch;
} tsr_cuda_emulation_limits;

tsr_cuda_emulation_limits *tsr_cuda_emulation(void); /* the calling process's, not owned */

/* Models of instructions by which threads wait for one another, or which go on beside them: tests bring them. */
typedef struct {
    void (*begin)(int blocks, int threads); /* before the blocks of a cluster start, with so many threads each */
    /* Carries out a piece of work that goes on beside the threads, or, unless it `must`, maybe none; whether it did. */
    bool (*step)(bool must);
    void (*end)(void); /* all threads have ended */
} tsr_emulation_model;
/* For the launches to come. seed: threads run in a random order that it decides; 0: in the order of their numbers. */
void tsr_emulation_set_model(const tsr_emulation_model *model, uint64_t seed);
uint64_t tsr_emulation_random(void); /* the next number that follows from the seed */
/* Of the running thread: its place in its block, and its block's in the cluster. */
int tsr_emulation_thread(void);
int tsr_emulation_rank(void);
/* The running thread goes on after tsr_emulation_wake(on). what: of what it waits for, a literal, for messages. */
void tsr_emulation_wait(const void *on, const char *what);
void tsr_emulation_wake(const void *on);
void tsr_emulation_pause(void);      /* others may run here; with a seed alone */
int tsr_emulation_running(int rank); /* threads of that block of the cluster that have not ended */
/* Dynamic shared memory of that block, and its size. */
unsigned char *tsr_emulation_shared_of(int rank, size_t *bytes);
/* Asked before each call of the runtime and each launch: the error that it is to fail with; 0: none. `fails` NULL: no
 * call fails. For tests of what becomes of such an error. */
void tsr_emulation_set_faults(int (*fails)(const char *call));
int tsr_emulation_fault(const char *call);
/* The first kernel of this process that was launched and whose code had not been asked for before; NULL: there is none.
 * `forget`: those are all loaded now. */
const char *tsr_emulation_cold(bool forget);
/* Notes the first complaint of a model; the launch fails with it when its threads cannot go on or have ended. */
void tsr_emulation_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}

#include <fenv.h>
#include <math.h>
#include <string.h>

/* ---- words of the language ------------------------------------------------------------------- */

#define __global__
#define __grid_constant__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __trap() __builtin_trap()

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }

extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

/* Every thread of the block waits here; reaching two different lines is an error, as is a thread that has ended. */
void tsr_emulation_block_barrier(int line);
/* Every thread of the warp waits here; full masks only. */
void tsr_emulation_warp_barrier(void);
#define __syncthreads() tsr_emulation_block_barrier(__LINE__)
#define __syncwarp(...) tsr_emulation_warp_barrier()
/* Hands 8 bytes to the warp, and returns those of the thread `lane` of it (its own where there is none); all threads
 * of the warp call it. */
unsigned long long tsr_emulation_exchange(unsigned long long bits, int lane);
int tsr_emulation_lane(void);
template <typename T> static inline T tsr_emulation_shuffle(T value, int lane) {
    static_assert(sizeof(T) <= sizeof(unsigned long long), "shuffles move up to 8 bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = tsr_emulation_exchange(bits, lane);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T> static inline T __shfl_down_sync(unsigned, T value, unsigned delta) {
    return tsr_emulation_shuffle(value, tsr_emulation_lane() + (int)delta);
}
template <typename T> static inline T __shfl_up_sync(unsigned, T value, unsigned delta) {
    return tsr_emulation_shuffle(value, tsr_emulation_lane() - (int)delta);
}
template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int mask) {
    return tsr_emulation_shuffle(value, tsr_emulation_lane() ^ mask);
}
template <typename T> static inline T __shfl_sync(unsigned, T value, int lane) {
    return tsr_emulation_shuffle(value, lane % 32);
}
/* A bit for each thread of the warp; all of them call it. */
static inline unsigned __ballot_sync(unsigned, int is) {
    unsigned bits = (unsigned)(is != 0) << tsr_emulation_lane();
    for (int apart = 16; apart > 0; apart /= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, apart);
    return bits;
}
static inline int __any_sync(unsigned mask, int is) { return __ballot_sync(mask, is) != 0; }
static inline int __all_sync(unsigned mask, int is) { return !__any_sync(mask, !is); }
static inline void __threadfence(void) {}

template <typename T> static inline T __ldg(const T *at) { return *at; }
template <typename T> static inline void __stcs(T *at, T value) { *at = value; }
template <typename T> static inline void __stwb(T *at, T value) { *at = value; }
template <typename T> static inline T __ldcs(const T *at) { return *at; }
template <typename T> static inline T __ldcg(const T *at) { return *at; }
template <typename T> static inline T min(T a, T b) { return b < a ? b : a; }
template <typename T> static inline T max(T a, T b) { return a < b ? b : a; }
/* One rounding each, never contracted or reassociated: needs a compiler that keeps IEEE arithmetic. */
#ifdef __FAST_MATH__
#error "the emulation needs IEEE arithmetic: compile without -ffast-math"
#endif
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
/* Rounded up, of numbers that the compiler does not know. */
template <typename T, typename Fma> static inline T tsr_emulation_rounded_up(T a, T b, T c, Fma fma) {
    const int mode = fegetround();
    volatile T x = a;
    fesetround(FE_UPWARD);
    const volatile T sum = fma(x, b, c);
    fesetround(mode);
    return sum;
}
static inline float __fmaf_ru(float a, float b, float c) { return tsr_emulation_rounded_up(a, b, c, fmaf); }
static inline double __fma_ru(double a, double b, double c) {
    return tsr_emulation_rounded_up(a, b, c, (double (*)(double, double, double))fma);
}
static inline float __fmaf_rd(float a, float b, float c) { return -__fmaf_ru(-a, b, -c); }
static inline double __fma_rd(double a, double b, double c) { return -__fma_ru(-a, b, -c); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <typename To, typename From> static inline To tsr_emulation_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline long long __double2ll_rn(double a) { return llrint(a); }
static inline int __float2int_rn(float a) { return (int)lrintf(a); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __mulhi(int a, int b) { return (int)((int64_t)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
/* Four products of bytes of two words, added to `sum`. */
static inline int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 4; i++) sum += (int8_t)((unsigned)a >> 8 * i) * (int8_t)((unsigned)b >> 8 * i);
    return sum;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    for (int i = 0; i < 4; i++) sum += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return sum;
}
/* Bytes of a (0 to 3) and b (4 to 7), one for each hexadecimal digit. */
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned digits) {
    const uint64_t both = (uint64_t)b << 32 | a;
    unsigned word = 0;
    for (int i = 0; i < 4; i++) word |= (unsigned)(both >> 8 * (digits >> 4 * i & 7) & 0xff) << 8 * i;
    return word;
}
/* The larger of each signed half. */
static inline unsigned __vmaxs2(unsigned a, unsigned b) {
    const int16_t low = max((int16_t)a, (int16_t)b), high = max((int16_t)(a >> 16), (int16_t)(b >> 16));
    return (unsigned)(uint16_t)high << 16 | (uint16_t)low;
}
static inline unsigned __float_as_uint(float a) { return tsr_emulation_bits<unsigned>(a); }
static inline float __uint_as_float(unsigned a) { return tsr_emulation_bits<float>(a); }
static inline long long __double_as_longlong(double a) { return tsr_emulation_bits<long long>(a); }
static inline double __longlong_as_double(long long a) { return tsr_emulation_bits<double>(a); }
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); /* threads of the host may run kernels at once */
}
static inline unsigned atomicAdd(unsigned *at, unsigned value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicOr(unsigned *at, unsigned value) { return __atomic_fetch_or(at, value, __ATOMIC_RELAXED); }
static inline unsigned atomicAnd(unsigned *at, unsigned value) {
    return __atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicMax(unsigned *at, unsigned value) { /* fibers of one thread of the host alone */
    const unsigned before = *at;
    *at = max(before, value);
    return before;
}
static inline unsigned long long atomicMax(unsigned long long *at, unsigned long long value) {
    const unsigned long long before = *at;
    *at = max(before, value);
    return before;
}

/* ---- the runtime's calls --------------------------------------------------------------------- */

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719
} cudaError_t;
typedef struct tsr_emulation_stream *cudaStream_t;
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 } cudaFuncAttribute;
typedef struct {
    size_t sharedSizeBytes, localSizeBytes;
    int numRegs, maxThreadsPerBlock;
    int ptxVersion; /* 0: no device code */
} cudaFuncAttributes;

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t tsr_emulation_func_attributes(cudaFuncAttributes *attributes, const void *kernel);
cudaError_t tsr_emulation_func_set(cudaFuncAttribute attribute, int value);
cudaError_t tsr_emulation_occupancy(int *blocks, int threads, size_t shared_bytes);
template <typename F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, F kernel) {
    const cudaError_t code = tsr_emulation_func_attributes(attributes, (const void *)kernel);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* tests compile kernels so, with a model of its instructions */
    attributes->ptxVersion = 90;
#endif
    return code;
}
template <typename F> static inline cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute attribute, int value) {
    return tsr_emulation_func_set(attribute, value);
}
template <typename F>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int threads,
                                                                        size_t shared_bytes) {
    return tsr_emulation_occupancy(blocks, threads, shared_bytes);
}

static inline cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t) {
    const int fault = tsr_emulation_fault("cudaMemsetAsync");
    if (fault != 0) return static_cast<cudaError_t>(fault);
    memset(at, value, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t height,
                                            cudaStream_t) {
    const int fault = tsr_emulation_fault("cudaMemset2DAsync");
    if (fault != 0) return static_cast<cudaError_t>(fault);
    for (size_t row = 0; row < height; row++) memset((unsigned char *)at + row * pitch, value, width);
    return cudaSuccess;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* Runs body(context) once for every thread of the grid; TSR_ERR_DEVICE for a launch a GPU would refuse and for
 * barriers that not every thread reaches. `cluster` neighbours along x run at the same time; __shared__ variables,
 * as opposed to dynamic shared memory, are then one for all of them. */
void tsr_emulation_note_launch(const void *kernel, const char *name);
tsr_status tsr_emulation_run(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, unsigned cluster,
                             void (*body)(void *), void *context);
void *tsr_emulation_shared(void); /* the block's dynamic shared memory */

template <typename... P, typename... A>
static inline tsr_status tsr_emulation_launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                                              tsr_stream *, void (*kernel)(P...), A... arguments) {
    auto call = [&] { kernel(arguments...); };
    tsr_emulation_note_launch((const void *)kernel, name);
    return tsr_emulation_run(
        name, grid, block, shared_bytes, 1, [](void *c) { (*static_cast<decltype(call) *>(c))(); }, &call);
}
#define TSR_RUN(kernel, grid, block, shared_bytes, stream, ...)                                                        \
    tsr_emulation_launch(#kernel, grid, block, shared_bytes, stream, kernel, __VA_ARGS__)

/* Launches that come before the one in front has ended, of kernels all of whose threads must begin (TSR_LAUNCH_NEXT).
 * What they do before that is not seen here. */
extern __thread unsigned long long tsr_emulation_begun; /* threads, of the launch that runs */
static inline void tsr_cuda_begin() { tsr_emulation_begun++; }
static inline tsr_status tsr_emulation_all_begun(const char *name, dim3 grid, dim3 block) {
    const unsigned long long threads = (unsigned long long)grid.x * grid.y * grid.z * block.x * block.y * block.z,
                             begun = tsr_emulation_begun;
    if (begun == threads) return TSR_OK;
    return tsr_fail(TSR_ERR_DEVICE, "kernel %s: %llu of %llu threads wait for the launch in front", name, begun,
                    threads);
}
template <typename... P, typename... A>
static inline tsr_status tsr_emulation_launch_next(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                                                   tsr_stream *stream, void (*kernel)(P...), A... arguments) {
    tsr_emulation_begun = 0;
    TSR_TRY(tsr_emulation_launch(name, grid, block, shared_bytes, stream, kernel, arguments...));
    return tsr_emulation_all_begun(name, grid, block);
}
#define TSR_RUN_NEXT(kernel, grid, block, shared_bytes, stream, ...)                                                   \
    tsr_emulation_launch_next(#kernel, grid, block, shared_bytes, stream, kernel, __VA_ARGS__)
#define TSR_SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(tsr_emulation_shared())

/* Launches with attributes: clusters, and such that come early. */
enum { cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
typedef struct {
    int id;
    struct {
        dim3 clusterDim;
        int programmaticStreamSerializationAllowed;
    } val;
} cudaLaunchAttribute;
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;
template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A... arguments) {
    auto call = [&] { kernel(arguments...); };
    unsigned cluster = 1;
    bool early = false;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) cluster = config->attrs[i].val.clusterDim.x;
        else early = config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
    }
    tsr_emulation_begun = 0;
    tsr_status status = tsr_emulation_run(
        "of clusters", config->gridDim, config->blockDim, config->dynamicSmemBytes, cluster,
        [](void *c) { (*static_cast<decltype(call) *>(c))(); }, &call);
    if (status == TSR_OK && early) status = tsr_emulation_all_begun("of clusters", config->gridDim, config->blockDim);
    return status == TSR_OK ? cudaSuccess : cudaErrorLaunchFailure;
}

#endif
#endif
