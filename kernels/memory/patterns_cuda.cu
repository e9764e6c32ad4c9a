/* Operation: on n × n floats: copy, read, transposes, the five access patterns, and the mean of 3 × 3 neighbours
 * (image blur).
 * Mapping: blocks of 256 threads striding over the data, so that no grid limit matters; transposes and the blur take
 * 32 × 8 elements a step, the tiled transposes 32 × 32, the wide copy 4 × 16 bytes a thread, the read 16 × 16 bytes
 * a thread.
 * A block uses: 256 threads; the tiled transposes 4.1 or 4.2 kB of shared memory (32 × 32, or 32 × 33: the odd row
 * length keeps a column in different banks).
 * Requirements: n a multiple of 32, 16-byte aligned memory.
 * Arithmetic intensity: none; the blur 10 flops for 40 bytes asked for, 0.25 flop/byte, of which the caches serve
 * 32.
 * Reference: Hwu, Kirk, El Hajj, Programming Massively Parallel Processors, 4th ed., sections 3.3, 5.1, 6.1. */
#include "kernels/device/cuda_compat.h"
#include "kernels/memory/patterns.h"

namespace {

constexpr int TILE = 32;
constexpr int LINES = 8;
constexpr int THREADS = TILE * LINES;

/* ---- copy and read --------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS) copy(const float *in, float *out, int64_t count) {
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) out[i] = in[i];
}

/* Calls full(first) for the thread's first unit in every WORDS × THREADS units that are all there, then one(i) for
 * those left over. */
template <int WORDS, typename Full, typename One>
__device__ __forceinline__ void for_units(int64_t count, Full full, One one) {
    const int64_t step = (int64_t)gridDim.x * THREADS * WORDS;
    int64_t first = (int64_t)blockIdx.x * THREADS * WORDS + threadIdx.x;
    for (; first + (WORDS - 1) * THREADS < count; first += step) full(first);
    for (; first < count; first += THREADS) one(first);
}

/* Units of 16 bytes; the loads of a step wait for nothing. */
template <int WORDS> __global__ void __launch_bounds__(THREADS) copy_wide(const uint4 *in, uint4 *out, int64_t count) {
    for_units<WORDS>(
        count,
        [=](int64_t first) {
            uint4 word[WORDS];
#pragma unroll
            for (int w = 0; w < WORDS; w++) word[w] = in[first + w * THREADS];
#pragma unroll
            for (int w = 0; w < WORDS; w++) out[first + w * THREADS] = word[w];
        },
        [=](int64_t i) { out[i] = in[i]; });
}

__device__ __forceinline__ uint32_t fold(uint4 word) { return word.x ^ word.y ^ word.z ^ word.w; }

/* Every thread leaves the exclusive or of what it read in a word of its own: nothing is read in vain, and hardly
 * anything written. */
template <int WORDS>
__global__ void __launch_bounds__(THREADS) read_wide(const uint4 *in, uint32_t *out, int64_t count) {
    uint32_t folded = 0;
    for_units<WORDS>(
        count,
        [&](int64_t first) {
            uint4 word[WORDS];
#pragma unroll
            for (int w = 0; w < WORDS; w++) word[w] = in[first + w * THREADS];
#pragma unroll
            for (int w = 0; w < WORDS; w++) folded ^= fold(word[w]);
        },
        [&](int64_t i) { folded ^= fold(in[i]); });
    out[(int64_t)blockIdx.x * THREADS + threadIdx.x] = folded;
}

constexpr int COPY_WORDS = 4, READ_WORDS = 16;

tsr_status launch_copy(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, args->n * args->n, 1, THREADS, &grid));
    return TSR_LAUNCH(copy, grid, dim3(THREADS), 0, stream, args->in, args->out, args->n * args->n);
}

tsr_status launch_copy_wide(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    const int64_t count = args->n * args->n / 4;
    TSR_TRY(tsr_cuda_grid(1, count, 1, THREADS * COPY_WORDS, &grid));
    return TSR_LAUNCH(copy_wide<COPY_WORDS>, grid, dim3(THREADS), 0, stream, reinterpret_cast<const uint4 *>(args->in),
                      reinterpret_cast<uint4 *>(args->out), count);
}

/* As many blocks as run at the same time. */
tsr_status launch_read(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    int blocks = 0, multiprocessors = 0;
    const int64_t count = args->n * args->n / 4;
    TSR_TRY(TSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, read_wide<READ_WORDS>, THREADS, 0)));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    TSR_TRY(tsr_cuda_grid(1, count, 1, THREADS * READ_WORDS, &grid));
    grid.x = (unsigned)tsr_min(grid.x, tsr_max(1, (int64_t)blocks * multiprocessors));
    return TSR_LAUNCH(read_wide<READ_WORDS>, grid, dim3(THREADS), 0, stream, reinterpret_cast<const uint4 *>(args->in),
                      reinterpret_cast<uint32_t *>(args->out), count);
}

/* ---- transposes ------------------------------------------------------------------------------ */

/* body(x, y) for every element of n × n, neighbouring lanes at neighbouring x */
template <typename Body> __device__ __forceinline__ void for_square(int64_t n, Body body) {
    for (int64_t y = (int64_t)blockIdx.y * LINES + threadIdx.y; y < n; y += (int64_t)gridDim.y * LINES)
        for (int64_t x = (int64_t)blockIdx.x * TILE + threadIdx.x; x < n; x += (int64_t)gridDim.x * TILE) body(x, y);
}

struct read_rows { /* neighbouring lanes load neighbours and store a column */
    __device__ static void move(const float *in, float *out, int64_t n, int64_t x, int64_t y) {
        out[x * n + y] = in[y * n + x];
    }
};
struct write_rows { /* neighbouring lanes load a column and store neighbours */
    __device__ static void move(const float *in, float *out, int64_t n, int64_t x, int64_t y) {
        out[y * n + x] = in[x * n + y];
    }
};
struct write_rows_ldg { /* the same with loads through the read-only cache */
    __device__ static void move(const float *in, float *out, int64_t n, int64_t x, int64_t y) {
        out[y * n + x] = __ldg(in + x * n + y);
    }
};

template <typename How> __global__ void __launch_bounds__(THREADS) transpose(const float *in, float *out, int64_t n) {
    for_square(n, [=](int64_t x, int64_t y) { How::move(in, out, n, x, y); });
}

/* Rows on both sides: a tile is turned in shared memory. PADDING 0: its columns lie in one bank; 1: in 32. */
template <int PADDING>
__global__ void __launch_bounds__(THREADS) transpose_tile(const float *in, float *out, int64_t n) {
    __shared__ float tile[TILE][TILE + PADDING];
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    for (int64_t i0 = (int64_t)blockIdx.y * TILE; i0 < n; i0 += (int64_t)gridDim.y * TILE)
        for (int64_t j0 = (int64_t)blockIdx.x * TILE; j0 < n; j0 += (int64_t)gridDim.x * TILE) {
            for (int line = y; line < TILE; line += LINES) tile[line][x] = in[(i0 + line) * n + j0 + x];
            __syncthreads();
            for (int line = y; line < TILE; line += LINES) out[(j0 + line) * n + i0 + x] = tile[x][line];
            __syncthreads();
        }
}

template <typename How> tsr_status launch_transpose(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(args->n, args->n, LINES, TILE, &grid));
    return TSR_LAUNCH(transpose<How>, grid, dim3(TILE, LINES), 0, stream, args->in, args->out, args->n);
}

template <int PADDING> tsr_status launch_transpose_tile(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(args->n, args->n, TILE, TILE, &grid));
    return TSR_LAUNCH(transpose_tile<PADDING>, grid, dim3(TILE, LINES), 0, stream, args->in, args->out, args->n);
}

/* ---- access patterns ------------------------------------------------------------------------- */

/* rows = n²/TSR_MEMORY_STRIDE: the parts of the strided pattern that share sectors run rows apart, so that no cache
 * joins them. */
template <tsr_pattern P> __global__ void __launch_bounds__(THREADS) gather(const float *in, float *out, int64_t rows) {
    for (int64_t y = blockIdx.y; y < TSR_MEMORY_STRIDE; y += gridDim.y)
        for (int64_t x = (int64_t)blockIdx.x * THREADS + threadIdx.x; x < rows; x += (int64_t)gridDim.x * THREADS)
            out[y * rows + x] = in[tsr_pattern_index(P, x, y, rows)];
}

template <tsr_pattern P> tsr_status launch_gather(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    const int64_t rows = args->n * args->n / TSR_MEMORY_STRIDE;
    TSR_TRY(tsr_cuda_grid(TSR_MEMORY_STRIDE, rows, 1, THREADS, &grid));
    return TSR_LAUNCH(gather<P>, grid, dim3(THREADS), 0, stream, args->in, args->out, rows);
}

template <tsr_pattern P> int64_t pattern_at(int64_t n, int lane) {
    return tsr_pattern_index(P, lane, 0, n * n / TSR_MEMORY_STRIDE);
}

/* ---- blur ------------------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS) blur(const float *in, float *out, int64_t n) {
    for_square(n, [=](int64_t x, int64_t y) {
        float sum = 0, pixels = 0;
#pragma unroll
        for (int dy = -1; dy <= 1; dy++) {
#pragma unroll
            for (int dx = -1; dx <= 1; dx++) {
                if (y + dy < 0 || y + dy >= n || x + dx < 0 || x + dx >= n) continue;
                sum += in[(y + dy) * n + x + dx];
                pixels += 1;
            }
        }
        out[y * n + x] = sum / pixels;
    });
}

tsr_status launch_blur(tsr_device *, tsr_stream *stream, const tsr_memory_args *args) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(args->n, args->n, LINES, TILE, &grid));
    return TSR_LAUNCH(blur, grid, dim3(TILE, LINES), 0, stream, args->in, args->out, args->n);
}

int64_t along_row(int64_t, int lane) { return lane; }
int64_t along_column(int64_t n, int lane) { return lane * n; }

} // namespace

#define TSR_MEMORY(symbol, symbol_name, text, makes, bytes, asked, flop, loads, stores, launches)                      \
    const tsr_memory_kernel symbol = {.name = symbol_name,                                                             \
                                      .what = text,                                                                    \
                                      .device = TSR_DEVICE_CUDA,                                                       \
                                      .result = makes,                                                                 \
                                      .effective_bytes = bytes,                                                        \
                                      .asked_bytes = asked,                                                            \
                                      .flops = flop,                                                                   \
                                      .load_at = loads,                                                                \
                                      .store_at = stores,                                                              \
                                      .launch = launches}
#define TSR_MEMORY_GATHER(symbol, symbol_name, text, order)                                                            \
    const tsr_memory_kernel symbol = {.name = symbol_name,                                                             \
                                      .what = text,                                                                    \
                                      .device = TSR_DEVICE_CUDA,                                                       \
                                      .result = TSR_MEMORY_PATTERN,                                                    \
                                      .pattern = order,                                                                \
                                      .effective_bytes = 8,                                                            \
                                      .asked_bytes = 8,                                                                \
                                      .load_at = pattern_at<order>,                                                    \
                                      .store_at = along_row,                                                           \
                                      .launch = launch_gather<order>}

TSR_MEMORY(tsr_memory_copy, "copy", "one float a thread", TSR_MEMORY_COPY, 8, 8, 0, along_row, along_row, launch_copy);
TSR_MEMORY(tsr_memory_copy_wide, "copy-wide", "16 bytes a load, four loads a step", TSR_MEMORY_COPY, 8, 8, 0, nullptr,
           nullptr, launch_copy_wide);
TSR_MEMORY(tsr_memory_read, "read", "16 bytes a load, 16 loads a step, nothing kept but their exclusive or",
           TSR_MEMORY_READ, 4, 4, 0, nullptr, nullptr, launch_read);
TSR_MEMORY(tsr_memory_transpose_read, "transpose-read", "coalesced reads, a column written", TSR_MEMORY_TRANSPOSE, 8, 8,
           0, along_row, along_column, launch_transpose<read_rows>);
TSR_MEMORY(tsr_memory_transpose_write, "transpose-write", "a column read, coalesced writes", TSR_MEMORY_TRANSPOSE, 8, 8,
           0, along_column, along_row, launch_transpose<write_rows>);
TSR_MEMORY(tsr_memory_transpose_ldg, "transpose-ldg", "the same, read through the read-only cache",
           TSR_MEMORY_TRANSPOSE, 8, 8, 0, along_column, along_row, launch_transpose<write_rows_ldg>);
TSR_MEMORY(tsr_memory_transpose_tile, "transpose-tile",
           "coalesced both ways through shared memory, columns in one bank", TSR_MEMORY_TRANSPOSE, 8, 8, 0, along_row,
           along_row, launch_transpose_tile<0>);
TSR_MEMORY(tsr_memory_transpose_padded, "transpose-padded", "the same with rows padded by one: columns in 32 banks",
           TSR_MEMORY_TRANSPOSE, 8, 8, 0, along_row, along_row, launch_transpose_tile<1>);
TSR_MEMORY_GATHER(tsr_memory_sequential, "sequential", "lane by lane", TSR_PATTERN_SEQUENTIAL);
TSR_MEMORY_GATHER(tsr_memory_permuted, "permuted", "a warp's floats in another order", TSR_PATTERN_PERMUTED);
TSR_MEMORY_GATHER(tsr_memory_offset, "offset", "sequential, begun one float later", TSR_PATTERN_OFFSET);
TSR_MEMORY_GATHER(tsr_memory_strided, "strided", "every eighth float", TSR_PATTERN_STRIDED);
TSR_MEMORY_GATHER(tsr_memory_broadcast, "broadcast", "one float for all lanes", TSR_PATTERN_BROADCAST);
TSR_MEMORY(tsr_memory_blur, "blur", "mean of 3 x 3 neighbours, each thread reading all nine", TSR_MEMORY_BLUR, 8, 40,
           10, along_row, along_row, launch_blur);
