/* What the CUDA multiplication kernels share: their argument, the loop of launches over grids that the hardware can
 * hold, and the facts of a launch for `shape`. */
#ifndef TSR_KERNELS_GEMM_GEMM_CUDA_H
#define TSR_KERNELS_GEMM_GEMM_CUDA_H

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/registry.h"

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
    const unsigned *predicate; /* as in tsr_gemm_args; `coarse` obeys it */
};

/* Whether a launch with this predicate (tsr_gemm_args) does nothing. Device code. */
__device__ __forceinline__ bool tsr_gemm_idle(const unsigned *predicate) { return predicate && *predicate == 0; }

/* hopper/wgmma.cu: many products of one shape whose 16-bit matrices lie one below the other, as one tall matrix each,
 * of which a tile knows its product by its row. Whether these can be made so: m a multiple of 128, k of 64 and at most
 * 1024, rows that begin at multiples of 16 bytes, and tiles that fill a device. */
bool tsr_wgmma_stacks(const tsr_gemm_args *args);
/* Makes them, without a workspace. `type`: of A and B, TSR_F16 or TSR_BF16. */
tsr_status tsr_wgmma_stack(tsr_stream *stream, tsr_dtype type, const tsr_gemm_args *args);

/* The unit roundoffs add up to k·u/(1 - k·u) for a sum of k products taken in order, one rounding or two a term: 5 %
 * more than k·u covers k·u ≤ 0.047. */
#define TSR_GEMM_PLAIN_ERROR_FACTOR 1.05

/* The descriptor of a CUDA kernel, with `input` and `type` as there. `own` says what is the kernel's own; without an
 * error factor its sums are plain ones, without a `multiple` it takes any shape. */
constexpr tsr_gemm_kernel tsr_gemm_cuda_kernel(tsr_dtype input, tsr_dtype type, tsr_gemm_kernel own) {
    own.device = TSR_DEVICE_CUDA;
    own.input = input;
    own.type = type;
    if (own.multiple == 0) own.multiple = 1;
    if (own.error_factor == 0) {
        own.error_factor = TSR_GEMM_PLAIN_ERROR_FACTOR;
        own.error_grows = true;
    }
    return own;
}

/* Calls launch(grid, operands) for parts of C of whole tiles (tile_m × tile_n a block; blockIdx.x over columns,
 * blockIdx.y over rows) until all of C is covered: once, unless a grid dimension cannot hold it. Local. */
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
            part.predicate = args->predicate;
            dim3 grid((unsigned)tsr_ceil_div(part.n, tile_n), (unsigned)tsr_ceil_div(part.m, tile_m));
            TSR_TRY(launch(grid, part));
        }
    }
    return TSR_OK;
}

/* The widest tile of 16 or 32 whose block of width² threads and two width² tiles of T fit the device. */
template <typename T> static tsr_status tsr_gemm_tile_width(int *width) {
    int threads = 0, shared_bytes = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxThreadsPerBlock, &threads));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxSharedMemoryPerBlock, &shared_bytes));
    *width = threads >= 32 * 32 && (size_t)shared_bytes >= 2 * 32 * 32 * sizeof(T) ? 32 : 16;
    return TSR_OK;
}

/* Lets a kernel have that much dynamic shared memory a block. 48 KiB need no leave. */
template <typename Kernel> static tsr_status tsr_gemm_allow_shared(Kernel kernel, size_t bytes) {
    if (bytes <= 48 << 10) return TSR_OK;
    return TSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

/* Fills shape from tile sizes, threads, and what the compiler and the occupancy calculator say of the kernel. A is
 * read once for every column of tiles, B once for every row of tiles, C written once. */
template <typename Kernel>
static tsr_status tsr_gemm_describe(Kernel kernel, int tile_m, int tile_n, int tile_k, int threads,
                                    size_t dynamic_shared_bytes, size_t element_bytes, int64_t m, int64_t n, int64_t k,
                                    tsr_gemm_shape *shape) {
    cudaFuncAttributes attributes;
    int blocks = 0, most_threads = 1;
    TSR_TRY(tsr_gemm_allow_shared(kernel, dynamic_shared_bytes));
    TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, kernel)));
    TSR_TRY(TSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic_shared_bytes)));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxThreadsPerMultiProcessor, &most_threads));
    const double loads = (double)m * (double)k * (double)tsr_ceil_div(n, tile_n) +
                         (double)k * (double)n * (double)tsr_ceil_div(m, tile_m);
    *shape = tsr_gemm_shape();
    shape->tile_m = tile_m;
    shape->tile_n = tile_n;
    shape->tile_k = tile_k;
    shape->threads = threads;
    shape->shared_bytes = dynamic_shared_bytes + attributes.sharedSizeBytes;
    shape->registers = attributes.numRegs;
    shape->occupancy = (double)blocks * threads / most_threads;
    shape->bytes = (double)element_bytes * (loads + (double)m * (double)n);
    return TSR_OK;
}

#endif
