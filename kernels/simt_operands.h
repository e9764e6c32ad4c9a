/* Tiles of the kernel `simt`, and the packing of its operands: A (m × k) to [m/M][padded k][M], B (k × n) to [n/N][padded k][N], padded
 * with zeros, so that every panel of a tile is one piece of memory and the image shared memory wants. The boundary check and the
 * transposition happen here, once. Included by gemm_simt.cu alone. */
#ifndef TSR_KERNELS_SIMT_OPERANDS_H
#define TSR_KERNELS_SIMT_OPERANDS_H

#include "kernels/gemm_cuda.h"

namespace {

constexpr int PACK_K = 32; /* packed operands hold a multiple of this along k */

/* Of C: a tile; rows and columns a thread owns, of a warp's LANES_M rows of lanes and WARPS_M rows of warps. Along k: a stage of the ring
 * holds PANEL, which divides PACK_K; with bulk copies there are STAGES_BULK of them. */
template <typename T> struct Tile;
template <> struct Tile<float> {
    static constexpr int M = 256, N = 128, WARPS_M = 4, LANES_M = 8, OWN_M = 8, OWN_N = 16;
    static constexpr int PANEL_BULK = 32, STAGES_BULK = 4, PANEL_PLAIN = 16;
};
template <> struct Tile<double> {
    static constexpr int M = 128, N = 128, WARPS_M = 2, LANES_M = 8, OWN_M = 8, OWN_N = 8;
    static constexpr int PANEL_BULK = 16, STAGES_BULK = 6, PANEL_PLAIN = 8;
};

constexpr int PACK_THREADS = 256, LOADS = 8; /* loads of a thread in flight */
template <typename T> constexpr size_t PACK_SHARED_BYTES = PACK_K * (Tile<T>::M + 1) * sizeof(T);

template <typename T> struct Packing {
    T *to_a, *to_b; /* packed */
    const T *a, *b;
    int64_t lda, ldb, m, n, k;
    const unsigned *wanted; /* as in tsr_gemm_operands */
};

/* M × PACK_K of A, turned in shared memory: reads along k, writes along m. */
template <typename T> __device__ __forceinline__ void pack_a(const Packing<T> &p, int64_t work, int64_t works_k, T *square) {
    constexpr int M = Tile<T>::M, ROWS = PACK_THREADS / PACK_K;
    const int x = (int)threadIdx.x % PACK_K, y = (int)threadIdx.x / PACK_K;
    const int64_t row = work / works_k * M, col = work % works_k * PACK_K;
    const T *from = p.a + (row + y) * p.lda + col + x;
    const int rows = (int)(p.m - row < M ? p.m - row : M) - y;
    for (int i = 0; i < M; i += ROWS * LOADS) {
        T part[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) part[j] = i + j * ROWS < rows && col + x < p.k ? from[(int64_t)(i + j * ROWS) * p.lda] : T(0);
#pragma unroll
        for (int j = 0; j < LOADS; j++) square[x * (M + 1) + y + i + j * ROWS] = part[j];
    }
    __syncthreads();
    T *to = p.to_a + work * PACK_K * M;
    for (int i = (int)threadIdx.x; i < PACK_K * M; i += PACK_THREADS) to[i] = square[i / M * (M + 1) + i % M];
    __syncthreads();
}

/* PACK_K × N of B: rows stay rows. */
template <typename T> __device__ __forceinline__ void pack_b(const Packing<T> &p, int64_t work, int64_t works_k) {
    constexpr int N = Tile<T>::N, ROWS = PACK_THREADS / N;
    const int x = (int)threadIdx.x % N, y = (int)threadIdx.x / N;
    const int64_t row = work % works_k * PACK_K, col = work / works_k * N + x;
    const T *from = p.b + (row + y) * p.ldb + col;
    T *to = p.to_b + (work * PACK_K + y) * N + x;
    const int rows = (int)(p.k - row < PACK_K ? p.k - row : PACK_K) - y;
    for (int i = 0; i < PACK_K; i += ROWS * LOADS) {
        T part[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) part[j] = i + j * ROWS < rows && col < p.n ? from[(int64_t)(i + j * ROWS) * p.ldb] : T(0);
#pragma unroll
        for (int j = 0; j < LOADS; j++) to[(i + j * ROWS) * N] = part[j];
    }
}

template <typename T> __global__ void __launch_bounds__(PACK_THREADS) pack_operands(Packing<T> p, int64_t works_k, int64_t works_a, int64_t works) {
    if (p.wanted && *p.wanted == 0) return;
    TSR_SHARED_DYNAMIC(T, square); /* PACK_K × (M + 1) */
    for (int64_t work = blockIdx.x; work < works; work += gridDim.x) {
        if (work < works_a) pack_a(p, work, works_k, square);
        else pack_b(p, work - works_a, works_k);
    }
}

/* Blocks for `count` pieces of work, of which each does every gridDim.x-th. */
tsr_status blocks_for(int64_t count, unsigned *blocks) {
    int most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    *blocks = (unsigned)tsr_min(tsr_min(count, most), 1 << 20);
    return TSR_OK;
}

template <typename T> tsr_status pack(tsr_stream *stream, const Packing<T> &p) {
    const int64_t works_k = tsr_ceil_div(p.k, PACK_K);
    const int64_t works_a = tsr_ceil_div(p.m, Tile<T>::M) * works_k, works = works_a + tsr_ceil_div(p.n, Tile<T>::N) * works_k;
    unsigned blocks;
    TSR_TRY(blocks_for(works, &blocks));
    return TSR_LAUNCH(pack_operands<T>, blocks, PACK_THREADS, PACK_SHARED_BYTES<T>, stream, p, works_k, works_a, works);
}

template <typename T> size_t packed_a_bytes(int64_t m, int64_t k) { return (size_t)tsr_round_up(m, Tile<T>::M) * (size_t)tsr_round_up(k, PACK_K) * sizeof(T); }
template <typename T> size_t packed_b_bytes(int64_t k, int64_t n) { return (size_t)tsr_round_up(n, Tile<T>::N) * (size_t)tsr_round_up(k, PACK_K) * sizeof(T); }

} // namespace

#endif
