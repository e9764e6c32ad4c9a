/* Blocks of C that `exact` hands over to its fallback (shapes.h) under `auto`: where what their levels want takes
 * longer than that kernel, as the device finds when levels are decided. Device code, for exact.cu alone. */
#ifndef TSR_KERNELS_GEMM_AUTO_HANDING_H
#define TSR_KERNELS_GEMM_AUTO_HANDING_H

#include "kernels/gemm/exact/exact_convert.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/residues/products.h"

namespace exact {

/* What steps take, from speeds on an H200 at 4096 and 8192 and the shares of steps (exact.cu). The unit is a tile of C
 * (TSR_EXACT_TILE² elements) modulo one modulus, 97 ps for each element along k. A tile takes 23 where `dmma` makes it
 * at 59 TFLOP/s, and about as long where `simt` does in fp32. */
constexpr double FALLBACK_TILE = 23;
constexpr double LAST_STEP = 1800; /* over k: a block of C */
constexpr double CONVERTED = 0.9;  /* TSR_EXACT_BLOCK lines to a plane */
constexpr double LOOPED = 42;      /* a block of C by the loop, at 8 TFLOP/s */
/* an element that is left to the loop, which a warp takes 10 ns for each element along k: of all warps of a device, and
 * where a block's eight warps wait for each other */
constexpr double LEFT = 0.01, LEFT_ALONE = 13;

/* A level of blocks that the fallback makes. */
constexpr unsigned HANDED = 97;
constexpr int HANDERS = 1024; /* threads */

struct Handing {
    unsigned *handed; /* whether these blocks are; and whether blocks of this launch were before */
    unsigned *levels, *levels_a, *levels_b;
    int rows, across, down, wide; /* blocks, and such that have elements */
    tsr_dtype type;
    int64_t m, n, k;
    unsigned open;             /* the level of blocks that patterns will decide: the last one, or the loop */
    const unsigned *left;      /* of such a block: elements that magnitudes leave to the loop */
    const unsigned *predicate; /* see tsr_gemm_args */
    bool passes;               /* these blocks were handed over before, by the kernel in front */
    tsr_gemm_fallbacks *to;    /* or NULL */
};

/* What levels want: tiles and blocks of C, and blocks of lines. A tile with a block of a level is made as a whole. */
struct Wanted {
    unsigned tiles[TSR_EXACT_LEVELS], blocks[TSR_EXACT_LEVELS + 1], lines[TSR_EXACT_LEVELS];
    unsigned left, left_of_block; /* elements: all, and of the block with the most */
};
__device__ __forceinline__ double cost_of(const Wanted &w, const Handing &h) {
    double cost = LOOPED * w.blocks[TSR_EXACT_LOOP] + LEFT * w.left + LEFT_ALONE * w.left_of_block;
    for (int level = 0; level < TSR_EXACT_LEVELS; level++) {
        const double lines = level > 0 ? CONVERTED * w.lines[level] : 0; /* those of level 0 are converted */
        cost += tsr_exact_moduli(h.type, level) * (w.tiles[level] + lines) + LAST_STEP / (double)h.k * w.blocks[level];
    }
    return cost;
}

/* The level that a block takes; of one that is open, the worst that patterns may find. */
__device__ __forceinline__ unsigned worst_level(Wanted *w, const Handing &h, int at) {
    if (h.levels[at] != h.open) return h.levels[at];
    const unsigned left = h.left[at];
    if (left > TSR_EXACT_LEFT_MOST) return TSR_EXACT_LOOP;
    atomicAdd(&w->left, left);
    atomicMax(&w->left_of_block, left);
    return TSR_EXACT_LAST;
}
__device__ __forceinline__ void add_tile(Wanted *w, const Handing &h, int row, int col) {
    unsigned there = 0;
    for (int i = row; i < row + 2 && i < h.down; i++)
        for (int j = col; j < col + 2 && j < h.wide; j++) {
            const unsigned level = worst_level(w, h, i * h.across + j);
            atomicAdd(w->blocks + level, 1u);
            there |= 1u << level;
        }
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        if (there >> level & 1) atomicAdd(w->tiles + level, 1u);
}

/* Notes that the fallback makes these blocks. Products follow each other on one stream. */
__device__ __forceinline__ void count_handed(const Handing &h) {
    const uint64_t multiply_adds = (uint64_t)(h.m * h.n * h.k);
    if (h.passes) {
        h.to->passed += multiply_adds;
    } else {
        h.to->products += !h.handed[1];
        h.to->multiply_adds += multiply_adds;
    }
}

/* One block of threads. Where the levels take longer than the fallback, or there is nothing to make, nothing is wanted
 * of any level from here on. */
__global__ void __launch_bounds__(HANDERS) hand_over(const Handing h) {
    tsr_cuda_begin();
    static_assert(TSR_EXACT_TILE == 2 * TSR_EXACT_BLOCK);
    __shared__ Wanted wanted;
    __shared__ bool handed;
    const bool idle = tsr_gemm_idle(h.predicate);
    const int thread = (int)threadIdx.x;
    const int tiles_n = (h.wide + 1) / 2, tiles = (h.down + 1) / 2 * tiles_n;
    if (thread == 0) wanted = Wanted();
    __syncthreads();
    for (int i = thread; i < tiles; i += HANDERS) add_tile(&wanted, h, i / tiles_n * 2, i % tiles_n * 2);
    for (int i = thread; i < h.rows + h.across; i += HANDERS)
        for (int level = 1; level < TSR_EXACT_LEVELS; level++)
            if ((i < h.rows ? h.levels_a[i] : h.levels_b[i - h.rows]) >> level & 1) atomicAdd(wanted.lines + level, 1u);
    __syncthreads();
    if (thread == 0) {
        handed = !idle && cost_of(wanted, h) > FALLBACK_TILE * tiles;
        h.handed[0] = handed;
        if (handed && h.to) count_handed(h);
        if (handed) h.handed[1] = 1;
    }
    __syncthreads();
    if (!handed && !idle) return;
    for (int i = thread; i < h.rows * h.across; i += HANDERS) h.levels[i] = HANDED;
    for (int i = thread; i < h.rows; i += HANDERS) h.levels_a[i] = 0;
    for (int i = thread; i < h.across; i += HANDERS) h.levels_b[i] = 0;
}

} // namespace exact

#endif
