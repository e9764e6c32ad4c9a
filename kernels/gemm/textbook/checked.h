/* The kernel of the rungs `checked` and `compensated`, which differ in how a thread sums: one thread an element of a
 * TILE × TILE tile of C, shared-memory tiles, boundary checked. Device code and its launches, for checked.cu
 * and compensated.cu. */
#ifndef TSR_KERNELS_GEMM_TEXTBOOK_CHECKED_H
#define TSR_KERNELS_GEMM_TEXTBOOK_CHECKED_H

#include "kernels/gemm/gemm_cuda.h"

namespace {

/* Sum<T> has add(a, b), which adds a product, and onto(c0), c0 plus the sum, and of() the sum. */
template <template <typename> class Sum, typename T, int TILE>
__global__ void __launch_bounds__(TILE *TILE) gemm_checked(tsr_gemm_operands<T> g) {
    TSR_SHARED_DYNAMIC(T, shared);
    T *a_tile = shared;               /* TILE × TILE: rows of C × k */
    T *b_tile = shared + TILE * TILE; /* TILE × TILE: k × columns of C */
    const int x = threadIdx.x, y = threadIdx.y;
    const int64_t row = (int64_t)blockIdx.y * TILE + y;
    const int64_t col = (int64_t)blockIdx.x * TILE + x;
    Sum<T> sum;
    for (int64_t first = 0; first < g.k; first += TILE) {
        const bool a_inside = row < g.m && first + x < g.k, b_inside = first + y < g.k && col < g.n;
        a_tile[y * TILE + x] = a_inside ? g.a[row * g.lda + first + x] : T(0);
        b_tile[y * TILE + x] = b_inside ? g.b[(first + y) * g.ldb + col] : T(0);
        __syncthreads();
#pragma unroll
        for (int p = 0; p < TILE; p++) sum.add(a_tile[y * TILE + p], b_tile[p * TILE + x]);
        __syncthreads();
    }
    if (row >= g.m || col >= g.n) return;
    T *c = g.c + row * g.ldc + col;
    *c = g.accumulate ? sum.onto(*c) : sum.of();
}

template <typename T> constexpr size_t shared_bytes(int tile) { return 2 * sizeof(T) * tile * tile; }

template <template <typename> class Sum, typename T>
tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    int tile = 0;
    TSR_TRY(tsr_gemm_tile_width<T>(&tile));
    return tsr_gemm_grids<T>(args, tile, tile, [=](dim3 grid, const tsr_gemm_operands<T> &part) {
        return tile == 32
                   ? TSR_LAUNCH((gemm_checked<Sum, T, 32>), grid, dim3(32, 32), shared_bytes<T>(32), stream, part)
                   : TSR_LAUNCH((gemm_checked<Sum, T, 16>), grid, dim3(16, 16), shared_bytes<T>(16), stream, part);
    });
}

template <template <typename> class Sum, typename T>
tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    int tile = 0;
    TSR_TRY(tsr_gemm_tile_width<T>(&tile));
    return tsr_gemm_describe(tile == 32 ? gemm_checked<Sum, T, 32> : gemm_checked<Sum, T, 16>, tile, tile, tile,
                             tile * tile, shared_bytes<T>(tile), sizeof(T), m, n, k, out);
}

} // namespace

#endif
