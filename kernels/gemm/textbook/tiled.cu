/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major, for m, n, k that are multiples of 32.
 * Mapping: one thread an element of a 32 × 32 tile of C; the block walks along k in steps of 32, loads one tile of A
 * and one of B into shared memory, every thread one element of each, and multiplies from there.
 * A block uses: 1024 threads, 2 tiles of 32 × 32 in shared memory (8 KiB in fp32, 16 KiB in fp64), at most 64
 * registers a thread.
 * Requirements: m, n and k multiples of 32 (it has no boundary checks); any leading dimension and alignment.
 * Arithmetic intensity: each loaded element is used 32 times: 8 flop/byte in fp32, 4 in fp64.
 * Measured at 4096 on an H200, 2026-11-21: fp32 8.6 TFLOP/s, 13 % of the CUDA cores' peak; fp64 4.8, 14 %.
 * Reference: Hwu, Kirk, El Hajj, Programming Massively Parallel Processors, 4th ed., section 5.4. */
#include "kernels/gemm/gemm_cuda.h"

namespace {

constexpr int TILE = 32;

template <typename T> __global__ void __launch_bounds__(TILE *TILE) gemm_tiled(tsr_gemm_operands<T> g) {
    __shared__ T a_tile[TILE][TILE]; /* rows of C × k */
    __shared__ T b_tile[TILE][TILE]; /* k × columns of C */
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t row = (int64_t)blockIdx.y * TILE + y;
    const int64_t col = (int64_t)blockIdx.x * TILE + x;
    T sum = 0;
    for (int64_t first = 0; first < g.k; first += TILE) {
        a_tile[y][x] = g.a[row * g.lda + first + x];
        b_tile[y][x] = g.b[(first + y) * g.ldb + col];
        __syncthreads();
        for (int p = 0; p < TILE; p++) sum = fma(a_tile[y][p], b_tile[p][x], sum);
        __syncthreads();
    }
    T *c = g.c + row * g.ldc + col;
    *c = g.accumulate ? *c + sum : sum;
}

template <typename T> tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    return tsr_gemm_grids<T>(args, TILE, TILE, [=](dim3 grid, const tsr_gemm_operands<T> &part) {
        return TSR_LAUNCH(gemm_tiled<T>, grid, dim3(TILE, TILE), 0, stream, part);
    });
}

template <typename T> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    return tsr_gemm_describe(gemm_tiled<T>, TILE, TILE, TILE, TILE * TILE, 0, sizeof(T), m, n, k, out);
}

template <typename T> tsr_gemm_substitute substitute(int64_t m, int64_t n, int64_t k) {
    if (m % TILE == 0 && n % TILE == 0 && k % TILE == 0) return {};
    return {.kernel = sizeof(T) == sizeof(float) ? &tsr_gemm_checked_f32 : &tsr_gemm_checked_f64,
            .why = "m, n or k is no multiple of 32",
            .unable = true};
}

template <typename T> constexpr tsr_gemm_kernel table(tsr_dtype type) {
    return tsr_gemm_cuda_kernel(type, type,
                                {.name = "tiled",
                                 .what = "shared-memory tiles of 32, for multiples of 32 only",
                                 .multiple = TILE,
                                 .speed_rank = 20,
                                 .substitute = substitute<T>,
                                 .shape = shape<T>,
                                 .launch = launch<T>});
}

} // namespace

const tsr_gemm_kernel tsr_gemm_tiled_f32 = table<float>(TSR_F32);
const tsr_gemm_kernel tsr_gemm_tiled_f64 = table<double>(TSR_F64);
