/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major.
 * Mapping: one thread an element of C; a block covers 8 rows × 32 columns, a warp 32 neighbouring columns of one
 * row, so that its loads of B and stores of C are contiguous and its loads of A are one address.
 * A block uses: 256 threads, no shared memory, 29 to 42 registers a thread.
 * Requirements: none; any shape, any alignment.
 * Arithmetic intensity: 2 flops for two loads: 0.25 flop/byte in fp32, 0.125 in fp64; every reuse is left to the
 * caches.
 * Measured at 4096 on an H200, 2026-11-21: fp32 5.3 TFLOP/s, 8 % of the CUDA cores' peak; fp64 3.0, 9 %.
 * Reference: Hwu, Kirk, El Hajj, Programming Massively Parallel Processors, 4th ed., section 3.4. */
#include "kernels/gemm/gemm_cuda.h"

namespace {

constexpr int ROWS = 8, COLS = 32; /* a block */

template <typename T> __global__ void __launch_bounds__(ROWS *COLS) gemm_naive(tsr_gemm_operands<T> g) {
    const int64_t row = (int64_t)blockIdx.y * ROWS + threadIdx.y;
    const int64_t col = (int64_t)blockIdx.x * COLS + threadIdx.x;
    if (row >= g.m || col >= g.n) return;
    T sum = 0;
    for (int64_t p = 0; p < g.k; p++) sum = fma(g.a[row * g.lda + p], g.b[p * g.ldb + col], sum);
    T *c = g.c + row * g.ldc + col;
    *c = g.accumulate ? *c + sum : sum;
}

template <typename T> tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    return tsr_gemm_grids<T>(args, ROWS, COLS, [=](dim3 grid, const tsr_gemm_operands<T> &part) {
        return TSR_LAUNCH(gemm_naive<T>, grid, dim3(COLS, ROWS), 0, stream, part);
    });
}

template <typename T> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    /* every thread reads its own row and column */
    TSR_TRY(tsr_gemm_describe(gemm_naive<T>, 1, 1, 1, ROWS * COLS, 0, sizeof(T), m, n, k, out));
    out->tile_m = ROWS;
    out->tile_n = COLS;
    out->tile_k = 0;
    return TSR_OK;
}

template <typename T> constexpr tsr_gemm_kernel table(tsr_dtype type) {
    return tsr_gemm_cuda_kernel(type, type,
                                {.name = "naive",
                                 .what = "one thread an element, straight from global memory",
                                 .speed_rank = 10,
                                 .shape = shape<T>,
                                 .launch = launch<T>,
                                 .launch_reproducible = launch<T>});
}

} // namespace

const tsr_gemm_kernel tsr_gemm_naive_f32 = table<float>(TSR_F32);
const tsr_gemm_kernel tsr_gemm_naive_f64 = table<double>(TSR_F64);
