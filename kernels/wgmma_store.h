/* The way of `wgmma`'s sums to C: through boxes in shared memory and tensor copies where these can reach C, else by ordinary stores; and of
 * pieces of tiles that are cut along k, which are added up in their order. Device code, for gemm_wgmma.cu and wgmma_slices.h alone. */
#ifndef TSR_KERNELS_WGMMA_STORE_H
#define TSR_KERNELS_WGMMA_STORE_H

#include "kernels/wgmma_work.h"

namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* Where a thread's sums stand in a box (see wgmma_m64n192k16): 4 pairs of neighbours in this row, 4 in the row 8 below. */
__device__ __forceinline__ int own_row() { return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4; }

/* A group's part of C: rows × cols of it exist (at most all; may be ≤ 0). */
struct Target {
    float *c;
    int64_t ldc;
    int rows, cols;
};
__device__ __forceinline__ int at_most_256(int64_t count) { return count < 256 ? (int)count : 256; }

/* What C holds where this thread's 16 sums of the box at (row, col) belong. */
__device__ __forceinline__ void load_box(const Target &t, float2 (&old)[8], int row, int col) {
    asm volatile("" : "+r"(row)); /* addresses are made here, not kept in registers for all boxes */
    row += own_row();
    col += (int)threadIdx.x % 4 * 2;
    const float *from = t.c + row * t.ldc + col;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float *at = from + i % 2 * 8 * t.ldc + i / 2 * 8;
        const int left = row + i % 2 * 8 < t.rows ? t.cols - col - i / 2 * 8 : 0;
        old[i] = left > 1 ? __ldcs(reinterpret_cast<const float2 *>(at)) : make_float2(left > 0 ? at[0] : 0.0f, 0.0f);
    }
}

/* This thread's 16 sums of a box to shared memory, swizzled as the tensor map says; rows of either parity begin at other banks. */
__device__ __forceinline__ void fill_box(const float *sum, unsigned char *box) {
    const int row = own_row();
    const bool odd = row & 1;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int even_pair = i * 4, odd_pair = (i ^ 2) * 4;
        const int unit = ((odd ? i ^ 2 : i) * 2 + (int)threadIdx.x % 4 / 2) ^ (row & 7);
        float2 *to = reinterpret_cast<float2 *>(box + row * 128 + unit * 16 + threadIdx.x % 2 * 8);
        to[0] = odd ? make_float2(sum[odd_pair], sum[odd_pair + 1]) : make_float2(sum[even_pair], sum[even_pair + 1]);
        to[8 * 128 / sizeof(float2)] =
            odd ? make_float2(sum[odd_pair + 2], sum[odd_pair + 3]) : make_float2(sum[even_pair + 2], sum[even_pair + 3]);
    }
}

/* A box to its place (row, col) in C by ordinary stores, where tensor copies cannot reach it. A warp takes 16 rows. */
__device__ __forceinline__ void copy_box(const Target &t, const unsigned char *box, int row, int col, bool accumulate) {
    const int lane = (int)threadIdx.x % 32, first = (int)threadIdx.x % 128 / 32 * 16;
    asm volatile("" : "+r"(row)); /* addresses are made here, not kept in registers for all boxes */
    if (col + lane >= t.cols) return;
    float *to = t.c + (row + first) * t.ldc + col + lane;
    const int rows = t.rows - row - first;
    float old[16];
#pragma unroll
    for (int i = 0; i < 16; i++) old[i] = accumulate && i < rows ? to[i * t.ldc] : 0.0f;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float sum = *reinterpret_cast<const float *>(box + (first + i) * 128 + (lane / 4 ^ i % 8) * 16 + lane % 4 * 4);
        if (i < rows) to[i * t.ldc] = accumulate ? old[i] + sum : sum;
    }
}

/* This group's sums to C, which begins at (row, col) for it, a box at a time. Boxes that end within 16 bytes go by ordinary stores: a tensor
 * copy would write to their end. ADD: to what ordinary loads bring, AHEAD boxes before it is needed. */
template <bool TURNS, bool ADD>
__device__ __forceinline__ void store(const void *map_c, const Work &w, Sums<TURNS> &sum, unsigned char *boxes, int64_t row, int64_t col) {
    constexpr int ACROSS = Sizes<TURNS>::N / BOX_COLS, AHEAD = 2;
    const bool first = threadIdx.x % 128 == 0;
    const Target target = {w.c + row * w.ldc + col, w.ldc, at_most_256(w.m - row), at_most_256(w.n - col)};
    float2 old[AHEAD + 1][8];
#pragma unroll
    for (int box = 0; ADD && box < AHEAD; box++) load_box(target, old[box], box / ACROSS * BOX_ROWS, box % ACROSS * BOX_COLS);
#pragma unroll
    for (int box = 0; box < BOXES; box++) {
        unsigned char *at = boxes + box % 2 * BOX_BYTES;
        float *own = sum[box / ACROSS] + box % ACROSS * 16;
        const int down = box / ACROSS * BOX_ROWS, across = box % ACROSS * BOX_COLS, next = box + AHEAD;
        if (ADD && next < BOXES) load_box(target, old[next % (AHEAD + 1)], next / ACROSS * BOX_ROWS, next % ACROSS * BOX_COLS);
#pragma unroll
        for (int i = 0; ADD && i < 8; i++) {
            own[2 * i] += old[box % (AHEAD + 1)][i].x;
            own[2 * i + 1] += old[box % (AHEAD + 1)][i].y;
        }
        if (first) hopper::store_wait<1>(); /* the copy before the last one has left this box */
        hopper::named_wait(3 + (int)threadIdx.x / 128, 128);
        fill_box(own, at);
        hopper::fence_copies();
        hopper::named_wait(3 + (int)threadIdx.x / 128, 128);
        const bool ragged = w.n % 4 != 0 && across + BOX_COLS > target.cols;
        if (!w.reached || ragged || (w.accumulate && !ADD)) copy_box(target, at, down, across, w.accumulate && !ADD);
        else if (first) hopper::store_tensor(map_c, (int)row + down, (int)col + across, at, hopper::evict_first());
        if (first) hopper::store_commit(); /* with nothing in it after copy_box: store_wait counts boxes */
    }
}

/* This thread's sums of a piece, for gather_pieces. */
template <bool TURNS> __device__ __forceinline__ void leave(const Work &w, const Sums<TURNS> &sum, int piece) {
    using S = Sizes<TURNS>;
    const int worker = (int)blockIdx.x / S::CLUSTER, rank = (int)blockIdx.x % S::CLUSTER;
    float4 *to = w.pieces + (int64_t)((worker * 2 + piece) * S::CLUSTER + rank) * QUADS * S::OWNERS + threadIdx.x % S::OWNERS;
#pragma unroll
    for (int quad = 0; quad < QUADS; quad++) {
        const float *from = sum[quad / (S::N / 8)] + quad % (S::N / 8) * 4;
        to[quad * S::OWNERS] = make_float4(from[0], from[1], from[2], from[3]);
    }
}
#endif

/* Adds up the pieces of a quad of GATHERERS owners' sums of a tile, in the order of k, and puts them where they belong. The pieces are shared
 * out among the block's strands of GATHERERS threads, whose sums are then added. */
template <bool TURNS> __global__ void __launch_bounds__(GATHERERS *MOST_STRANDS) gather_pieces(const __grid_constant__ Work w) {
    using S = Sizes<TURNS>;
    constexpr int SHARES = S::OWNERS / GATHERERS;
    __shared__ float4 sums[MOST_STRANDS][GATHERERS];
    const int strands = (int)blockDim.x / GATHERERS, strand = (int)threadIdx.x / GATHERERS;
    const int owner = (int)blockIdx.x % SHARES * GATHERERS + (int)threadIdx.x % GATHERERS, quad = (int)blockIdx.x / SHARES % QUADS;
    const int rank = (int)blockIdx.x / SHARES / QUADS % S::CLUSTER, cut = (int)blockIdx.x / (SHARES * QUADS * S::CLUSTER);
    const uint32_t begin = (uint32_t)cut * (uint32_t)w.panels;
    const int first = cutter_of(w, begin), last = cutter_of(w, begin + (uint32_t)w.panels - 1); /* who made its first panel, and its last */
    const bool second = begin_of(w, first) < begin; /* of its pieces; the others begin here */
    const int from = first + (last + 1 - first) * strand / strands, to = first + (last + 1 - first) * (strand + 1) / strands;
    float4 sum = {};
#pragma unroll 16
    for (int worker = from; worker < to; worker++) {
        const int piece = worker * 2 + (worker == first && second ? 1 : 0);
        const float4 part = w.pieces[(int64_t)((piece * S::CLUSTER + rank) * QUADS + quad) * S::OWNERS + owner];
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    if (strands > 1) {
        sums[strand][threadIdx.x % GATHERERS] = sum;
        __syncthreads();
        if (strand > 0) return;
        for (int other = 1; other < strands; other++) {
            const float4 part = sums[other][threadIdx.x];
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
    }
    int tile_row, tile_col;
    tile_of(w, w.whole + cut, &tile_row, &tile_col);
    const int part_rows = TURNS ? quad / (S::N / 8) * 64 : owner / 128 * 64;
    const int64_t row = (int64_t)(tile_row * S::CLUSTER + rank) * M + part_rows + owner % 128 / 32 * 16 + owner % 32 / 4;
    const int64_t col = (int64_t)tile_col * S::N + quad % (S::N / 8) * 8 + owner % 4 * 2;
    const float own[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int64_t at_row = row + i / 2 * 8, at_col = col + i % 2;
        float *to = w.c + at_row * w.ldc + at_col;
        if (at_row < w.m && at_col < w.n) *to = w.accumulate ? *to + own[i] : own[i];
    }
}

} // namespace

#endif
