/* The way of `wgmma` for products of few tiles: a block makes one tile of 64 × 128, or a slice of it along k, and is
 * done. 1024 × 1024 fills the device so, and the slices of a long sum are few and small: 16 of 256 × 256 × 100000, 4
 * MB, where tiles of 256 × 256 leave 17. Two blocks of a cluster, one below the other, share the panels of B. The
 * groups of a block take panels in turns; in the end each adds up what both made of half of the columns. Slices, and
 * a C that tensor copies cannot store as it is wanted, go through the workspace; add_slices takes them from there.
 * Device code, for wgmma.cu alone. */
#ifndef TSR_KERNELS_GEMM_HOPPER_WGMMA_SLICES_H
#define TSR_KERNELS_GEMM_HOPPER_WGMMA_SLICES_H

#include "kernels/gemm/hopper/wgmma_store.h"

namespace {

constexpr int SLICE_M = 64;
constexpr int SLICE_N = 128;
constexpr int SLICE_CLUSTER = 2;
constexpr int SLICE_STAGES = 8;
constexpr int SLICE_A_BYTES = SLICE_M * K * 2, SLICE_B_BYTES = SLICE_N * K * 2;
typedef hopper::Pipeline<SLICE_STAGES, SLICE_A_BYTES + SLICE_B_BYTES, GROUPS * 2 * BOX_BYTES, SLICE_CLUSTER> SlicePipe;
constexpr int ADDERS = 128; /* threads of a block of add_slices, each four columns of a row */

struct SliceWork {
    int panels, piece, slices; /* panels of k, of a slice (the last may be shorter), and slices */
    int pairs, tiles_n;        /* clusters below and beside one another */
    /* the next cluster in the order of tiles and slices is this many further in the order of starting; divides their
     * number */
    int cluster_stride;
    int rows;  /* of the target from slice to slice */
    bool kept; /* the target is read again at once */
};

/* What this block makes: panels first to last of the tile at (row, col). */
struct Slice {
    int index, row, col;
    int first, last;
    __device__ __forceinline__ explicit Slice(const SliceWork &w) {
        const int started = (int)blockIdx.x / SLICE_CLUSTER, clusters = (int)gridDim.x / SLICE_CLUSTER;
        const int cluster = started % w.cluster_stride * (clusters / w.cluster_stride) + started / w.cluster_stride;
        const int tiles = w.pairs * w.tiles_n;
        const int tile = cluster % tiles;
        index = cluster / tiles;
        row = (tile % w.pairs * SLICE_CLUSTER + (int)hopper::cluster_rank()) * SLICE_M;
        col = tile / w.pairs * SLICE_N;
        first = index * w.piece;
        last = w.panels - first < w.piece ? w.panels : first + w.piece;
    }
};

/* One thread: asks for panels of one operand, copy(stage, k, full) each, of which `bytes` come to this block. There
 * are two, for A and for B, and little time:
 * the tensor cores make a panel in 256 cycles. So the stages are unrolled, and their addresses ready. */
template <typename Copy>
__device__ __forceinline__ void produce_slice(const Slice &slice, const SlicePipe &pipe, uint32_t bytes, Copy copy) {
    uint32_t phase = 1; /* free from the start */
#pragma unroll 1
    for (int panel = slice.first; panel < slice.last; panel += SLICE_STAGES, phase ^= 1) {
#pragma unroll
        for (int s = 0; s < SLICE_STAGES; s++) {
            if (panel + s >= slice.last) break;
            hopper::barrier_wait(pipe.empty(s), phase);
            hopper::barrier_expect(pipe.full(s), bytes);
            copy(pipe.stage(s), (panel + s) * K, pipe.full(s));
        }
    }
    /* the other block's arrivals: none comes when this one is gone */
    for (int i = slice.last - slice.first, end = i + SLICE_STAGES; i < end; i++)
        hopper::barrier_wait(pipe.empty(i % SLICE_STAGES), (uint32_t)(i / SLICE_STAGES & 1) ^ 1);
}

/* sum = this group's panels of the slice: every second one. One panel's products are under way while the next is
 * waited for. */
template <tsr_dtype TYPE>
__device__ __forceinline__ void multiply_slice(float (&sum)[64], const Slice &slice, const SlicePipe &pipe) {
    const int group = (int)threadIdx.x / 128;
    SlicePipe::State at = {group, 0};
    int before = -1;
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i] = 0.0f;
    for (int p = slice.first + group; p < slice.last; p += GROUPS) {
        const uint32_t stage = pipe.address(at.stage);
        const uint64_t a = hopper::wgmma_operand(stage),
                       b = hopper::wgmma_operand_along_n(stage + SLICE_A_BYTES, SQUARE_BYTES);
        pipe.wait(at);
        hopper::wgmma_fence();
#pragma unroll
        for (int step = 0; step < K / 16; step++) multiply_16<TYPE>(sum, a + 2 * step, b + 128 * step, true);
        hopper::wgmma_commit();
        if (before >= 0) {
            hopper::wgmma_wait<1>();
            pipe.release(before);
        }
        before = at.stage;
        at.step(GROUPS);
    }
    hopper::wgmma_wait<0>();
    hopper::wgmma_hold(sum);
    if (before >= 0) pipe.release(before);
}

/* GROUP's sums of the half of the columns that the other group keeps, to where that looks for them. */
template <int GROUP> __device__ __forceinline__ void give_half(const float (&sum)[64], unsigned char *boxes) {
    float4 *to = reinterpret_cast<float4 *>(boxes + (1 - GROUP) * 2 * BOX_BYTES) + threadIdx.x % 128;
    const float *from = sum + (1 - GROUP) * 32;
#pragma unroll
    for (int i = 0; i < 8; i++)
        to[i * 128] = make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
}

/* GROUP's own half: the other's sums are added to it, and it is stored. */
template <int GROUP>
__device__ __forceinline__ void store_half(const void *map_to, const SliceWork &w, float (&sum)[64], const Slice &slice,
                                           unsigned char *boxes) {
    unsigned char *own = boxes + GROUP * 2 * BOX_BYTES;
    const float4 *given = reinterpret_cast<const float4 *>(own) + threadIdx.x % 128;
    float *kept = sum + GROUP * 32;
#pragma unroll
    for (int i = 0; i < 8; i++) { hopper::add4(*reinterpret_cast<float(*)[4]>(kept + 4 * i), given[i * 128]); }
    hopper::named_wait(3 + GROUP, 128); /* all of it is read: its place takes the boxes */
    fill_box(kept, own);
    fill_box(kept + 16, own + BOX_BYTES);
    hopper::fence_copies();
    hopper::named_wait(3 + GROUP, 128);
    if (threadIdx.x % 128 > 0) return;
    const uint64_t policy = w.kept ? hopper::evict_last() : hopper::evict_first();
    for (int box = 0; box < 2; box++)
        hopper::store_tensor(map_to, slice.index * w.rows + slice.row, slice.col + GROUP * 64 + box * BOX_COLS,
                             own + box * BOX_BYTES, policy);
    hopper::store_commit();
    hopper::store_wait<0>();
}

/* map_to: of C, or of the slices one below the other. */
template <tsr_dtype TYPE>
__global__ void __launch_bounds__(THREADS, 1)
    gemm_wgmma_slices(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                      const __grid_constant__ CUtensorMap map_to, const __grid_constant__ SliceWork w) {
    if (!hopper::FOR_SM90A) return __trap(); /* the registry never gets here */
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    const SlicePipe pipe(shared, 2, 4 * SLICE_CLUSTER);
    if (threadIdx.x == GROUPS * 128) hopper::prefetch_map(&map_a);
    if (threadIdx.x == GROUPS * 128 + 32) hopper::prefetch_map(&map_b);
    const Slice slice(w);
    __syncthreads();
    hopper::cluster_barrier();
    if (threadIdx.x < GROUPS * 128) {
        float sum[64];
        multiply_slice<TYPE>(sum, slice, pipe);
        if (threadIdx.x < 128) give_half<0>(sum, pipe.behind());
        else give_half<1>(sum, pipe.behind());
        hopper::named_wait(1, GROUPS * 128);
        if (threadIdx.x < 128) store_half<0>(&map_to, w, sum, slice, pipe.behind());
        else store_half<1>(&map_to, w, sum, slice, pipe.behind());
    } else if (threadIdx.x == GROUPS * 128) {
        produce_slice(slice, pipe, SLICE_A_BYTES, [&](unsigned char *stage, int k, uint64_t *full) {
            hopper::copy_tensor(stage, &map_a, slice.row, k, full);
        });
        /* half of the columns, for both blocks of the cluster, of which the other brings the other half */
    } else if (threadIdx.x == GROUPS * 128 + 32) {
        const int half = (int)hopper::cluster_rank();
        produce_slice(slice, pipe, SLICE_B_BYTES, [&](unsigned char *stage, int k, uint64_t *full) {
            hopper::copy_tensor_to(3, stage + SLICE_A_BYTES + half * SQUARE_BYTES, &map_b, k, slice.col + half * 64,
                                   full);
        });
    }
}

/* C (m × n) = or += the sum of the slices, each `rows` × ld elements, in the order of k. */
__global__ void __launch_bounds__(ADDERS) add_slices(const float *slices, int count, int64_t rows, int64_t ld, float *c,
                                                     int64_t ldc, int m, int n, bool accumulate) {
    const int index = (int)(blockIdx.x * ADDERS + threadIdx.x);
    const int quads = (n + 3) / 4;
    const int row = index / quads;
    const int col = index % quads * 4;
    if (row >= m) return;
    const float *from = slices + row * ld + col;
    float4 sum = {};
#pragma unroll 16
    for (int i = 0; i < count; i++) {
        const float4 part = *reinterpret_cast<const float4 *>(from + i * rows * ld);
        sum.x += part.x;
        sum.y += part.y;
        sum.z += part.z;
        sum.w += part.w;
    }
    const float own[4] = {sum.x, sum.y, sum.z, sum.w};
    float *to = c + row * ldc + col;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (col + i < n) to[i] = accumulate ? to[i] + own[i] : own[i];
}

} // namespace

#endif
