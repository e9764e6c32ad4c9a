/* Operation: the sum of the squares of n × n floats, from one thread to the whole grid; a double in the first 8
 * bytes of `out`.
 * Mapping: one thread; one block of 1024 threads whose sums meet in a tree; blocks of 1024 threads a chunk of 1024
 * or 2048 elements each, a tree a chunk; or as many blocks of 256 threads as run at once, 16 loads of 16 bytes a
 * thread and step, sums meeting by warp shuffles. Every block leaves a partial sum from float 32 of `out` on; one
 * more block adds them up.
 * A block uses: 1024 threads and 4 kB of shared memory (trees), 256 threads and 64 B (grid); the last block 8 kB.
 * Requirements: n a multiple of 32, 16-byte aligned memory. Sums of a thread and of a chunk are floats, all others
 * doubles, so that squares of integers up to 4 add up exactly (one thread and one block: 2^20 of them).
 * Arithmetic intensity: 0.5 flop/byte.
 * Reference: Hwu, Kirk, El Hajj, Programming Massively Parallel Processors, 4th ed., chapter 10. */
#include "kernels/device/cuda_compat.h"
#include "kernels/memory/patterns.h"

namespace {

constexpr int BLOCK = 1024;  /* threads of a tree */
constexpr int THREADS = 256; /* of a block of the grid-wide sum */
constexpr int WORDS = 16;    /* loads of 16 bytes a thread and step */
constexpr int WARP = 32;
constexpr int PARTIALS = 32; /* floats before the first partial sum */

/* ---- trees in shared memory: sums (BLOCK) to sums[0]; every thread of the block calls them ---- */

struct interleaved { /* pairs 1, 2, 4, … apart: threads that work lie scattered over all warps */
    template <typename T> __device__ static void add(T *sums) {
        const int t = (int)threadIdx.x;
        for (int apart = 1; apart < BLOCK; apart *= 2) {
            __syncthreads();
            if (t % (2 * apart) == 0) sums[t] += sums[t + apart];
        }
        __syncthreads();
    }
};

struct sequential { /* pairs 512, 256, … apart: whole warps work, or rest */
    template <typename T> __device__ static void add(T *sums) {
        const int t = (int)threadIdx.x;
        for (int apart = BLOCK / 2; apart > 0; apart /= 2) {
            __syncthreads();
            if (t < apart) sums[t] += sums[t + apart];
        }
        __syncthreads();
    }
};

/* ---- sums ------------------------------------------------------------------------------------ */

__global__ void sum_thread(const float *in, int64_t count, double *out) {
    float sum = 0;
    for (int64_t i = 0; i < count; i++) sum += in[i] * in[i];
    *out = (double)sum;
}

__global__ void __launch_bounds__(BLOCK) sum_block(const float *in, int64_t count, double *out) {
    __shared__ float sums[BLOCK];
    float sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) sum += in[i] * in[i];
    sums[threadIdx.x] = sum;
    interleaved::add(sums);
    if (threadIdx.x == 0) *out = (double)sums[0];
}

/* A chunk of EACH · BLOCK elements a step, whose sum goes to partial[chunk]; count is a multiple of BLOCK. */
template <typename Tree, int EACH>
__global__ void __launch_bounds__(BLOCK) sum_chunks(const float *in, int64_t count, float *partial) {
    __shared__ float sums[BLOCK];
    for (int64_t chunk = blockIdx.x; chunk * EACH * BLOCK < count; chunk += gridDim.x) {
        const int64_t first = chunk * EACH * BLOCK + threadIdx.x;
        float sum = in[first] * in[first];
#pragma unroll
        for (int each = 1; each < EACH; each++)
            if (first + each * BLOCK < count) sum += in[first + each * BLOCK] * in[first + each * BLOCK];
        sums[threadIdx.x] = sum;
        Tree::add(sums);
        if (threadIdx.x == 0) partial[chunk] = sums[0];
        __syncthreads();
    }
}

/* The sum over the block's threads, in thread 0. */
__device__ __forceinline__ double sum_of_block(double sum) {
    __shared__ double warps[THREADS / WARP];
    for (int apart = WARP / 2; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = sum;
    __syncthreads();
    double whole = 0;
    if (threadIdx.x == 0)
        for (int warp = 0; warp < THREADS / WARP; warp++) whole += warps[warp];
    return whole;
}

/* count: of 16 bytes. Where WORDS × THREADS are all there, the loads of a step wait for nothing. */
__global__ void __launch_bounds__(THREADS) sum_grid(const float4 *in, int64_t count, double *partial) {
    const int64_t step = (int64_t)gridDim.x * THREADS * WORDS;
    int64_t first = (int64_t)blockIdx.x * THREADS * WORDS + threadIdx.x;
    float x = 0;
    float y = 0;
    float z = 0;
    float w = 0;
    auto add = [&](float4 word) {
        x += word.x * word.x;
        y += word.y * word.y;
        z += word.z * word.z;
        w += word.w * word.w;
    };
    for (; first + (WORDS - 1) * THREADS < count; first += step) {
        float4 word[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; i++) word[i] = in[first + i * THREADS];
#pragma unroll
        for (int i = 0; i < WORDS; i++) add(word[i]);
    }
    for (; first < count; first += THREADS) add(in[first]);
    const double sum = sum_of_block(((double)x + (double)y) + ((double)z + (double)w));
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/* One block: out = the sum of the partial sums */
template <typename T>
__global__ void __launch_bounds__(BLOCK) sum_partials(const T *partial, int64_t count, double *out) {
    __shared__ double sums[BLOCK];
    double sum = 0;
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < count; i += BLOCK) sum += (double)partial[i];
    sums[threadIdx.x] = sum;
    sequential::add(sums);
    if (threadIdx.x == 0) *out = sums[0];
}

/* ---- launches -------------------------------------------------------------------------------- */

double *result_of(const tsr_memory_args *args) { return reinterpret_cast<double *>(args->out); }
int64_t few_of(const tsr_memory_args *args) { return tsr_min(args->n * args->n, TSR_MEMORY_FEW); }

tsr_status launch_thread(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    return TSR_LAUNCH(sum_thread, dim3(1), dim3(1), 0, stream, args->in, few_of(args), result_of(args));
}

tsr_status launch_block(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    return TSR_LAUNCH(sum_block, dim3(1), dim3(BLOCK), 0, stream, args->in, few_of(args), result_of(args));
}

template <typename Tree, int EACH>
tsr_status launch_chunks(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    int most = 0;
    float *partial = args->out + PARTIALS;
    const int64_t count = args->n * args->n, chunks = tsr_ceil_div(count, EACH * BLOCK);
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    TSR_TRY(TSR_LAUNCH((sum_chunks<Tree, EACH>), dim3((unsigned)tsr_min(chunks, most)), dim3(BLOCK), 0, stream,
                       args->in, count, partial));
    return TSR_LAUNCH(sum_partials<float>, dim3(1), dim3(BLOCK), 0, stream, static_cast<const float *>(partial), chunks,
                      result_of(args));
}

/* As many blocks as run at the same time. */
tsr_status launch_grid(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    int blocks = 0;
    int multiprocessors = 0;
    int most = 0;
    double *partial = reinterpret_cast<double *>(args->out + PARTIALS);
    const int64_t count = args->n * args->n / 4;
    TSR_TRY(TSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum_grid, THREADS, 0)));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    const int64_t useful = tsr_min(tsr_ceil_div(count, THREADS * WORDS), most);
    const int64_t grid = tsr_min(useful, tsr_max(1, (int64_t)blocks * multiprocessors));
    TSR_TRY(TSR_LAUNCH(sum_grid, dim3((unsigned)grid), dim3(THREADS), 0, stream,
                       reinterpret_cast<const float4 *>(args->in), count, partial));
    return TSR_LAUNCH(sum_partials<double>, dim3(1), dim3(BLOCK), 0, stream, static_cast<const double *>(partial), grid,
                      result_of(args));
}

} // namespace

#define TSR_SUM(symbol, symbol_name, text, most, launches)                                                             \
    const tsr_memory_kernel symbol = {.name = symbol_name,                                                             \
                                      .what = text,                                                                    \
                                      .device = TSR_DEVICE_CUDA,                                                       \
                                      .result = TSR_MEMORY_SUM,                                                        \
                                      .most_elements = most,                                                           \
                                      .effective_bytes = 4,                                                            \
                                      .asked_bytes = 4,                                                                \
                                      .flops = 2,                                                                      \
                                      .launch = launches}

TSR_SUM(tsr_memory_sum_thread, "sum-thread", "one thread, 2^20 floats", TSR_MEMORY_FEW, launch_thread);
TSR_SUM(tsr_memory_sum_block, "sum-block", "one block and an interleaved tree, 2^20 floats", TSR_MEMORY_FEW,
        launch_block);
TSR_SUM(tsr_memory_sum_interleaved, "sum-interleaved", "a block and an interleaved tree for every 1024", 0,
        (launch_chunks<interleaved, 1>));
TSR_SUM(tsr_memory_sum_sequential, "sum-sequential", "the same with a sequential tree: no warp diverges", 0,
        (launch_chunks<sequential, 1>));
TSR_SUM(tsr_memory_sum_first_add, "sum-first-add", "the same, every thread adding two as it loads", 0,
        (launch_chunks<sequential, 2>));
TSR_SUM(tsr_memory_sum_grid, "sum-grid", "16 bytes a load, 16 loads a step, warp shuffles", 0, launch_grid);
