/* Tiles of the kernel `simt`, and its operands as it wants them. Of a panel of A (m × k) it wants columns, which
 * stand PITCH elements apart in shared memory: packed like that beforehand, [m/M][padded k][PITCH], where enough
 * columns of tiles share the work; otherwise each block turns what it reads. Of B (k × n) it wants rows: TMA
 * brings them from B itself or, where they do not begin at multiples of 16 bytes, from a copy. Included by
 * simt.cu alone. */
#ifndef TSR_KERNELS_GEMM_SIMT_SIMT_OPERANDS_H
#define TSR_KERNELS_GEMM_SIMT_SIMT_OPERANDS_H

#include "kernels/gemm/gemm_cuda.h"
#if !defined(TSR_EMULATE_CUDA) || defined(TSR_HAVE_HOPPER)
#include "kernels/gemm/hopper/tensor_map.h"
#endif

namespace {

/* Of C: a tile; rows and columns a thread owns, of a warp's LANES_M rows of lanes and WARPS_M rows of warps. Along
 * k: a stage of the pipeline holds a panel; with TMA there are STAGES_TMA of them. */
template <typename T> struct Tile;
template <> struct Tile<float> {
    static constexpr int M = 256;
    static constexpr int N = 128;
    static constexpr int WARPS_M = 4;
    static constexpr int LANES_M = 8;
    static constexpr int OWN_M = 8;
    static constexpr int OWN_N = 16;
    static constexpr int PANEL_TMA = 32;
    static constexpr int STAGES_TMA = 4;
    static constexpr int PANEL_PLAIN = 16;
    static constexpr tsr_dtype TYPE = TSR_F32;
};
template <> struct Tile<double> {
    static constexpr int M = 128;
    static constexpr int N = 128;
    static constexpr int WARPS_M = 2;
    static constexpr int LANES_M = 8;
    static constexpr int OWN_M = 8;
    static constexpr int OWN_N = 8;
    static constexpr int PANEL_TMA = 16;
    static constexpr int STAGES_TMA = 6;
    static constexpr int PANEL_PLAIN = 8;
    static constexpr tsr_dtype TYPE = TSR_F64;
};

template <typename T> constexpr int GROUP = 16 / (int)sizeof(T); /* elements of 16 bytes */
/* of A's panel: 8 elements along k of 4 rows are written without bank conflicts */
template <typename T> constexpr int PITCH = Tile<T>::M + GROUP<T>;
constexpr int UNIT = 32; /* along k: a multiple of every panel */
/* columns of C from which packing A costs no more than turning it in the blocks: 2 % more at 2048, as much at 3072,
 * 1 % less at 4096 on an H200 */
constexpr int64_t PACKED_FROM = 2560;

#if !defined(TSR_EMULATE_CUDA) || defined(TSR_HAVE_HOPPER)
typedef CUtensorMap Map;
#else
struct Map {}; /* no TMA */
#endif
constexpr int BOX_ALIGNMENT = 128; /* of the place in shared memory that TMA fills */

constexpr int OPERAND_THREADS = 256, LOADS = 8; /* loads of a thread in flight */
template <typename T> constexpr size_t SQUARE_BYTES = UNIT *(Tile<T>::M + 1) * sizeof(T);

template <typename T> struct Preparing {
    const T *a, *b; /* null: as it stands */
    T *to_a, *to_b;
    int64_t lda, ldb, ld_to_b;
    int64_t m, n, k;
    int across;                /* threads along a row of B */
    const unsigned *predicate; /* as in tsr_gemm_args */
};

/* M × UNIT of A, turned in shared memory: reads along k, writes along m. */
template <typename T> __device__ __forceinline__ void pack_a(const Preparing<T> &p, int64_t work, T *square) {
    constexpr int M = Tile<T>::M, ROWS = OPERAND_THREADS / UNIT;
    const int x = (int)threadIdx.x % UNIT, y = (int)threadIdx.x / UNIT;
    const int64_t units = (p.k + UNIT - 1) / UNIT;
    const int64_t row = work / units * M;
    const int64_t col = work % units * UNIT;
    const T *from = p.a + (row + y) * p.lda + col + x;
    const int rows = (int)(p.m - row < M ? p.m - row : M) - y;
    for (int i = 0; i < M; i += ROWS * LOADS) {
        T part[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++)
            part[j] = i + j * ROWS < rows && col + x < p.k ? from[(int64_t)(i + j * ROWS) * p.lda] : T(0);
#pragma unroll
        for (int j = 0; j < LOADS; j++) square[x * (M + 1) + y + i + j * ROWS] = part[j];
    }
    __syncthreads();
    T *to = p.to_a + work * UNIT * PITCH<T>;
    for (int i = (int)threadIdx.x; i < UNIT * M; i += OPERAND_THREADS)
        to[i / M * PITCH<T> + i % M] = square[i / M * (M + 1) + i % M];
    __syncthreads();
}

/* Of B p.across columns, and LOADS rows for each row of threads. */
template <typename T> __device__ __forceinline__ void copy_b(const Preparing<T> &p, int64_t work) {
    const int rows = OPERAND_THREADS / p.across;
    const int64_t strips = (p.n + p.across - 1) / p.across;
    const int64_t row = work / strips * LOADS * rows + (int)threadIdx.x / p.across,
                  col = work % strips * p.across + (int)threadIdx.x % p.across;
    if (col >= p.n) return;
    T part[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) part[i] = row + i * rows < p.k ? p.b[(row + i * rows) * p.ldb + col] : T(0);
#pragma unroll
    for (int i = 0; i < LOADS; i++)
        if (row + i * rows < p.k) p.to_b[(row + i * rows) * p.ld_to_b + col] = part[i];
}

template <typename T>
__global__ void __launch_bounds__(OPERAND_THREADS) prepare_operands(Preparing<T> p, int64_t works_a, int64_t works) {
    if (tsr_gemm_idle(p.predicate)) return;
    TSR_SHARED_DYNAMIC(T, square); /* UNIT × (M + 1) */
    for (int64_t work = blockIdx.x; work < works; work += gridDim.x) {
        if (work < works_a) pack_a(p, work, square);
        else copy_b(p, work - works_a);
    }
}

/* Blocks for `count` pieces of work, of which each does every gridDim.x-th. */
tsr_status blocks_for(int64_t count, unsigned *blocks) {
    int most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    *blocks = (unsigned)tsr_min(tsr_min(count, most), 1 << 20);
    return TSR_OK;
}

template <typename T> tsr_status prepare_where(tsr_stream *stream, Preparing<T> p) {
    p.across = OPERAND_THREADS;
    while (p.across / 2 >= p.n && p.across > 1) p.across /= 2;
    const int64_t works_a = p.a ? tsr_ceil_div(p.m, Tile<T>::M) * tsr_ceil_div(p.k, UNIT) : 0;
    const int64_t works =
        works_a + (p.b ? tsr_ceil_div(p.k, LOADS * (OPERAND_THREADS / p.across)) * tsr_ceil_div(p.n, p.across) : 0);
    unsigned blocks;
    if (works == 0) return TSR_OK;
    TSR_TRY(blocks_for(works, &blocks));
    return TSR_LAUNCH(prepare_operands<T>, blocks, OPERAND_THREADS, p.a ? SQUARE_BYTES<T> : 0, stream, p, works_a,
                      works);
}

/* Whether A is packed. */
bool packs(int64_t n) { return n >= PACKED_FROM; }
/* Bytes of a packed A, and of a copy of B, whose rows begin at multiples of 32 bytes. */
template <typename T> size_t packed_a_bytes(int64_t m, int64_t n, int64_t k) {
    return !packs(n) ? 0
                     : (size_t)tsr_round_up(
                           tsr_ceil_div(m, Tile<T>::M) * PITCH<T> * tsr_round_up(k, UNIT) * (int64_t)sizeof(T), 128);
}
template <typename T> int64_t copied_ld(int64_t n) { return tsr_round_up(n, 32 / (int64_t)sizeof(T)); }
template <typename T> size_t copied_b_bytes(int64_t k, int64_t n) {
    return (size_t)tsr_round_up(k * copied_ld<T>(n) * (int64_t)sizeof(T), 128);
}

/* Whether rows begin at multiples of 16 bytes. */
template <typename T> bool aligned(const T *x, int64_t ld) {
    return (uintptr_t)x % 16 == 0 && (size_t)ld * sizeof(T) % 16 == 0;
}
/* Whether TMA reaches them: rows may be less than 2^40 bytes apart, and are taken up to 2^38. */
template <typename T> bool reached(const T *x, int64_t ld) {
    return aligned(x, ld) && ld < ((int64_t)1 << 38) / (int64_t)sizeof(T);
}

} // namespace

#endif
