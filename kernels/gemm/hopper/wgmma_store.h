/* The way of `wgmma`'s sums to C: through boxes in shared memory and tensor copies where these can reach C, else by
 * ordinary stores; and of parts of tiles that are cut along k, for hopper::gather. Device code, for
 * wgmma.cu and wgmma_slices.h alone. */
#ifndef TSR_KERNELS_GEMM_HOPPER_WGMMA_STORE_H
#define TSR_KERNELS_GEMM_HOPPER_WGMMA_STORE_H

#include "kernels/gemm/hopper/wgmma_work.h"

namespace {

/* Where a thread's sums stand in a box (see wgmma_m64n192k16): 4 pairs of neighbours in this row, 4 in the row 8
 * below. */
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

/* This thread's 16 sums of a box to shared memory, swizzled as the tensor map says; rows of either parity begin at
 * other banks. */
__device__ __forceinline__ void fill_box(const float *sum, unsigned char *box) {
    const int row = own_row();
    const bool odd = row & 1;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int even_pair = i * 4, odd_pair = (i ^ 2) * 4;
        const int unit = ((odd ? i ^ 2 : i) * 2 + (int)threadIdx.x % 4 / 2) ^ (row & 7);
        float2 *to = reinterpret_cast<float2 *>(box + row * 128 + unit * 16 + threadIdx.x % 2 * 8);
        to[0] = odd ? make_float2(sum[odd_pair], sum[odd_pair + 1]) : make_float2(sum[even_pair], sum[even_pair + 1]);
        to[8 * 128 / sizeof(float2)] = odd ? make_float2(sum[odd_pair + 2], sum[odd_pair + 3])
                                           : make_float2(sum[even_pair + 2], sum[even_pair + 3]);
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
        const float sum =
            *reinterpret_cast<const float *>(box + (first + i) * 128 + (lane / 4 ^ i % 8) * 16 + lane % 4 * 4);
        if (i < rows) to[i * t.ldc] = accumulate ? old[i] + sum : sum;
    }
}

/* This group's sums to C, which begins at (row, col) for it, a box at a time. Boxes that end within 16 bytes go by
 * ordinary stores: a tensor copy would write to their end. ADD: to what ordinary loads bring, AHEAD boxes before it
 * is needed. */
template <bool TURNS, bool ADD>
__device__ __forceinline__ void store(const void *map_c, const Work &w, Sums<TURNS> &sum, unsigned char *boxes,
                                      int64_t row, int64_t col) {
    constexpr int ACROSS = Sizes<TURNS>::N / BOX_COLS, AHEAD = 2;
    const bool first = threadIdx.x % 128 == 0;
    const Target target = {w.c + row * w.ldc + col, w.ldc, at_most_256(w.m - row), at_most_256(w.n - col)};
    float2 old[AHEAD + 1][8];
#pragma unroll
    for (int box = 0; ADD && box < AHEAD; box++)
        load_box(target, old[box], box / ACROSS * BOX_ROWS, box % ACROSS * BOX_COLS);
#pragma unroll
    for (int box = 0; box < BOXES; box++) {
        unsigned char *at = boxes + box % 2 * BOX_BYTES;
        float *own = sum[box / ACROSS] + box % ACROSS * 16;
        const int down = box / ACROSS * BOX_ROWS;
        const int across = box % ACROSS * BOX_COLS;
        const int next = box + AHEAD;
        if (ADD && next < BOXES)
            load_box(target, old[next % (AHEAD + 1)], next / ACROSS * BOX_ROWS, next % ACROSS * BOX_COLS);
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

/* The parts of tiles for hopper::gather: a quad of the sums of THREADS owners at a time. */
template <bool TURNS> struct Parts : hopper::Parts<float, M, Sizes<TURNS>::N, K, Sizes<TURNS>::OWNERS, 4> {
    typedef ::Work Work;
    typedef Sizes<TURNS> S;
    static constexpr int THREADS = 128;
    static constexpr int STRANDS = 4;
    static constexpr int UNROLL = 16;
    static constexpr int ACROSS = S::OWNERS / THREADS;
    static constexpr int GROUPS = S::CLUSTER * QUADS * ACROSS;
    static constexpr int CLUSTER = S::CLUSTER;
    static constexpr hopper::Cut CUT = S::CUT;
    typedef hopper::Parts<float, M, S::N, K, S::OWNERS, 4> Base;
    /* a part of a cluster is one of each of its blocks */
    static __device__ __forceinline__ int own_part(int part) { return part * CLUSTER + (int)blockIdx.x % CLUSTER; }
    static __device__ __forceinline__ void leave(const Work &w, int part, const float *sum) {
        Base::leave(w, own_part(part), sum, threadIdx.x % S::OWNERS);
    }
    static __device__ __forceinline__ void go_on(const Work &w, int part, float *sum) {
        Base::go_on(w, own_part(part), sum, threadIdx.x % S::OWNERS);
    }
    static __device__ __forceinline__ void add(const Work &w, int part, int group, int thread, float (&sum)[4]) {
        const int owner = group % ACROSS * THREADS + thread, quads = part * S::CLUSTER * QUADS + group / ACROSS;
        hopper::add4(sum, w.parts[(int64_t)quads * S::OWNERS + owner]);
    }
    static __device__ __forceinline__ void put(const Work &w, int tile, int group, int thread, const float (&sum)[4]) {
        const int owner = group % ACROSS * THREADS + thread;
        const int quad = group / ACROSS % QUADS;
        const int rank = group / ACROSS / QUADS;
        const hopper::TilePlace place = w.place_of(tile);
        const int part_rows = TURNS ? quad / (S::N / 8) * 64 : owner / 128 * 64;
        const int64_t row =
            (int64_t)(place.row * S::CLUSTER + rank) * M + part_rows + owner % 128 / 32 * 16 + owner % 32 / 4;
        const int64_t col = (int64_t)place.col * S::N + quad % (S::N / 8) * 8 + owner % 4 * 2;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t at_row = row + i / 2 * 8, at_col = col + i % 2;
            float *to = w.c + at_row * w.ldc + at_col;
            if (at_row < w.m && at_col < w.n) *to = w.accumulate ? *to + sum[i] : sum[i];
        }
    }
};

} // namespace

#endif
