/* Which level makes which block of C, for `exact` on CUDA devices: what is open for a proof, what levels are wanted of
 * lines, and how much each makes. Device code, for exact.cu alone. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_LEVELS_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_LEVELS_H

#include "kernels/gemm/exact/exact_convert.h"

namespace exact {

/* of a block whose level a product of magnitudes decides, of one where patterns decide, and of one past the end of C */
constexpr unsigned OPEN = 99, OPEN_LAST = 98;
constexpr unsigned PAST = 96;

/* A thread a block of C: whether its lines lose nothing at level 0, which needs no proof. */
static __global__ void open_blocks(unsigned *open, int across, int blocks, const unsigned *rough_a,
                                   const unsigned *rough_b) {
    tsr_cuda_begin();
    for (int at = (int)(blockIdx.x * blockDim.x + threadIdx.x); at < blocks; at += (int)(gridDim.x * blockDim.x))
        open[at] = rough_a[at / across] | rough_b[at % across] ? OPEN : 0;
}

constexpr int LEFT_WORDS = TSR_EXACT_BLOCK / 32; /* of a row of a block, a bit an element */

/* One thread: the bits of few elements of a block. */
__device__ __forceinline__ void leave_few(const tsr_exact_few &few, unsigned *left, int across, int at) {
    for (unsigned i = 0; i < few.count; i++) {
        const int row = at / across * TSR_EXACT_BLOCK + (int)few.at[i] / TSR_EXACT_BLOCK;
        const int col = at % across * TSR_EXACT_BLOCK + (int)few.at[i] % TSR_EXACT_BLOCK;
        left[(int64_t)row * across * LEFT_WORDS + col / 32] |= 1u << col % 32;
    }
}

/* A thread a block of C, of `down` × `wide` that have elements: its level is wanted of its rows and columns. Where few
 * elements need the last one it is the one below, elsewhere there are no few. Blocks for which magnitudes prove none,
 * but for such that nothing is proved of, stay open for the last one. */
static __global__ void note_levels(unsigned *levels, tsr_exact_few *few, unsigned *left, int across, int blocks,
                                   int down, int wide, const unsigned *rough_a, const unsigned *rough_b, unsigned *of_a,
                                   unsigned *of_b) {
    tsr_cuda_begin();
    for (int at = (int)(blockIdx.x * blockDim.x + threadIdx.x); at < blocks; at += (int)(gridDim.x * blockDim.x)) {
        unsigned level = levels[at];
        if (at / across >= down || at % across >= wide) {
            levels[at] = PAST;
            continue;
        }
        if (tsr_exact_are_few((int)level, few[at].count)) {
            levels[at] = --level;
            leave_few(few[at], left, across, at);
        } else few[at].count = 0;
        if (level == TSR_EXACT_LOOP && !((rough_a[at / across] | rough_b[at % across]) & UNPROVABLE)) {
            level = TSR_EXACT_LAST;
            levels[at] = OPEN_LAST;
        }
        const unsigned bits = 1u << level | (levels[at] == OPEN_LAST ? MEETS : 0);
        atomicOr(of_a + at / across, bits);
        atomicOr(of_b + at % across, bits);
    }
}

/* A warp: bits of the levels at which any of `rows` rows of blocks is wanted. */
static __global__ void note_any(unsigned *any, const unsigned *of_a, int rows) {
    tsr_cuda_begin();
    unsigned all = 0;
    for (int i = (int)threadIdx.x; i < rows; i += 32) all |= of_a[i];
    for (int step = 16; step > 0; step /= 2) all |= __shfl_xor_sync(0xffffffffu, all, step);
    if (threadIdx.x == 0) *any = all & ~MEETS;
}

/* Elements of a block of C that are made by themselves; a warp's lane its share. */
__device__ __forceinline__ int left_of(const unsigned *left, int across, int at) {
    const unsigned *first = left + ((int64_t)(at / across) * TSR_EXACT_BLOCK * across + at % across) * LEFT_WORDS;
    int count = 0;
    for (int i = (int)threadIdx.x % 32; i < TSR_EXACT_BLOCK * LEFT_WORDS; i += 32)
        count += __popc(first[(int64_t)(i / LEFT_WORDS) * across * LEFT_WORDS + i % LEFT_WORDS]);
    return count;
}

/* A warp a block of C that is open for the last level, and how many of its elements are left: one lane says `use`. */
template <typename Use>
__device__ __forceinline__ void for_open(const unsigned *levels, int across, int blocks, const unsigned *left,
                                         Use use) {
    const int warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int at = warp; at < blocks; at += (int)(gridDim.x * blockDim.x) / 32) {
        if (levels[at] != OPEN_LAST) continue;
        const int count = tsr_warp_sum(left_of(left, across, at));
        if (threadIdx.x % 32 == 0) use(at, count);
    }
}
/* Decides their level; where that is the loop, it is wanted of their rows. */
static __global__ void settle_blocks(unsigned *levels, int across, int blocks, const unsigned *left, unsigned *of_a) {
    tsr_cuda_begin();
    for_open(levels, across, blocks, left, [levels, across, of_a](int at, int count) {
        levels[at] = (unsigned)tsr_exact_settled(count);
        if (levels[at] == TSR_EXACT_LOOP) atomicOr(of_a + at / across, 1u << TSR_EXACT_LOOP);
    });
}
/* Notes what magnitudes leave of them. */
static __global__ void count_open(const unsigned *levels, int across, int blocks, const unsigned *left,
                                  unsigned *counts) {
    tsr_cuda_begin();
    for_open(levels, across, blocks, left, [counts](int at, int count) { counts[at] = (unsigned)count; });
}

/* A warp takes blocks of C, of `down` × `wide` that have elements, and adds what they took. */
static __global__ void count_levels(const unsigned *levels, const tsr_exact_few *few, int across, int down, int wide,
                                    const unsigned *left, tsr_gemm_fallbacks *to) {
    tsr_cuda_begin();
    typedef unsigned long long Word;
    const int lane = (int)threadIdx.x % 32, warp = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    Word blocks[TSR_GEMM_LEVELS] = {}, elements = 0;
    for (int i = warp; i < down * wide; i += (int)(gridDim.x * blockDim.x) / 32) {
        const int at = i / wide * across + i % wide;
        for (unsigned level = 0; level < TSR_GEMM_LEVELS; level++) blocks[level] += levels[at] == level;
        if (levels[at] == TSR_EXACT_LAST) elements += (Word)tsr_warp_sum(left_of(left, across, at));
        else if (levels[at] < TSR_EXACT_LAST) elements += few[at].count;
    }
    if (lane > 0) return;
    for (int level = 0; level < TSR_GEMM_LEVELS; level++)
        if (blocks[level] > 0) atomicAdd(reinterpret_cast<Word *>(&to->levels[level]), blocks[level]);
    if (elements > 0) atomicAdd(reinterpret_cast<Word *>(&to->left), elements);
}

} // namespace exact

#endif
