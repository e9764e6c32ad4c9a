/* What the CUDA multiplication kernels share: their argument, the loop of launches over grids the hardware can hold, and the
 * facts of a launch for `shape`. */
#ifndef TSR_KERNELS_GEMM_CUDA_H
#define TSR_KERNELS_GEMM_CUDA_H

#include "kernels/cuda_compat.h"
#include "kernels/registry.h"

/* C (m × n) = or += A (m × k) · B (k × n), row-major; a kernel's only argument. */
template <typename T> struct tsr_gemm_operands {
    int64_t m, n, k;
    const T *a; /* m × k */
    int64_t lda;
    const T *b; /* k × n */
    int64_t ldb;
    T *c; /* m × n */
    int64_t ldc;
    bool accumulate;
    const unsigned *wanted; /* device memory; where it holds 0 the kernel leaves at once. NULL: always wanted. gemm_coarse.cu */
};

/* The unit roundoffs add up to k·u/(1 - k·u) for a sum of k products taken in order, one rounding or two a term: 5 % more than k·u
 * covers k·u ≤ 0.047. */
#define TSR_GEMM_PLAIN_ERROR_FACTOR 1.05

static inline tsr_status tsr_cuda_attribute(cudaDeviceAttr attribute, int *value) {
    int device = 0;
    TSR_TRY(TSR_CUDA(cudaGetDevice(&device)));
    return TSR_CUDA(cudaDeviceGetAttribute(value, attribute, device));
}

/* Row and column of tile `index` of a product of tiles_m × tiles_n tiles: bands of `band` rows of tiles, column by column inside a band, so that
 * blocks that work at the same time share panels of both operands in the L2 cache. */
__device__ __forceinline__ void tsr_gemm_band(int index, int tiles_m, int tiles_n, int band, int *row, int *col) {
    const int first = index / (band * tiles_n) * band, within = index - first * tiles_n;
    const int rows = tiles_m - first < band ? tiles_m - first : band;
    *row = first + within % rows;
    *col = within / rows;
}

/* Enough blocks of height × width for rows × cols, never more than the device takes: for kernels that stride over the rest. */
static inline tsr_status tsr_cuda_grid(int64_t rows, int64_t cols, int64_t height, int64_t width, dim3 *grid) {
    int most_x = 0, most_y = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most_x));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimY, &most_y));
    grid->x = (unsigned)tsr_min(tsr_ceil_div(cols, width), most_x);
    grid->y = (unsigned)tsr_min(tsr_ceil_div(rows, height), most_y);
    return TSR_OK;
}

/* Calls launch(grid, operands) for parts of C of whole tiles (tile_m × tile_n a block; blockIdx.x over columns, blockIdx.y over
 * rows) until all of C is covered: once, unless a grid dimension cannot hold it. Local. */
template <typename T, typename Launch>
static tsr_status tsr_gemm_grids(const tsr_gemm_args *args, int tile_m, int tile_n, Launch launch) {
    int most_x = 0, most_y = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most_x));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimY, &most_y));
    const int64_t rows = (int64_t)most_y * tile_m, cols = (int64_t)most_x * tile_n;
    const T *a = (const T *)args->a, *b = (const T *)args->b;
    for (int64_t row = 0; row < args->m; row += rows) {
        for (int64_t col = 0; col < args->n; col += cols) {
            tsr_gemm_operands<T> part;
            part.m = tsr_min(rows, args->m - row);
            part.n = tsr_min(cols, args->n - col);
            part.k = args->k;
            part.a = args->k > 0 ? a + row * args->lda : a; /* may be NULL when k = 0 */
            part.b = args->k > 0 ? b + col : b;
            part.c = (T *)args->c + row * args->ldc + col;
            part.lda = args->lda;
            part.ldb = args->ldb;
            part.ldc = args->ldc;
            part.accumulate = args->accumulate;
            part.wanted = nullptr;
            dim3 grid((unsigned)tsr_ceil_div(part.n, tile_n), (unsigned)tsr_ceil_div(part.m, tile_m));
            TSR_TRY(launch(grid, part));
        }
    }
    return TSR_OK;
}

/* The kernel `coarse` in fp32, run only if *wanted (device memory) is not 0 when its turn on the stream comes; NULL: always. Local.
 * gemm_coarse.cu */
tsr_status tsr_gemm_coarse_where(tsr_stream *stream, const tsr_gemm_args *args, const unsigned *wanted);
/* The same of `simt` in fp32, whose workspace args must hold. Local. gemm_simt.cu */
tsr_status tsr_gemm_simt_where(tsr_stream *stream, const tsr_gemm_args *args, const unsigned *wanted);

/* The widest tile of 16 or 32 whose block of width² threads and two width² tiles of T fit the device. */
template <typename T> static tsr_status tsr_gemm_tile_width(int *width) {
    int threads = 0, shared_bytes = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxThreadsPerBlock, &threads));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxSharedMemoryPerBlock, &shared_bytes));
    *width = threads >= 32 * 32 && (size_t)shared_bytes >= 2 * 32 * 32 * sizeof(T) ? 32 : 16;
    return TSR_OK;
}

/* Fills shape from tile sizes, threads, and what the compiler and the occupancy calculator say of the kernel. A is read once for
 * every column of tiles, B once for every row of tiles, C written once. */
template <typename Kernel>
static tsr_status tsr_gemm_describe(Kernel kernel, int tile_m, int tile_n, int tile_k, int threads, size_t dynamic_shared_bytes,
                                    size_t element_bytes, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *shape) {
    cudaFuncAttributes attributes;
    int blocks = 0, most_threads = 1;
    TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, kernel)));
    TSR_TRY(TSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic_shared_bytes)));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxThreadsPerMultiProcessor, &most_threads));
    const double loads = (double)m * (double)k * (double)tsr_ceil_div(n, tile_n) + (double)k * (double)n * (double)tsr_ceil_div(m, tile_m);
    *shape = tsr_gemm_shape();
    shape->tile_m = tile_m;
    shape->tile_n = tile_n;
    shape->tile_k = tile_k;
    shape->threads = threads;
    shape->shared_bytes = dynamic_shared_bytes + attributes.sharedSizeBytes;
    shape->registers = attributes.numRegs;
    shape->blocks_sm = blocks;
    shape->occupancy = (double)blocks * threads / most_threads;
    shape->bytes = (double)element_bytes * (loads + (double)m * (double)n);
    return TSR_OK;
}

#endif
