/* Where a test build breaks products_hopper.cu (flips.h). Device code; nothing in other builds. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_FLIPS_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_FLIPS_HOPPER_H

#include "kernels/gemm/flips.h"
#include "kernels/gemm/residues/sums_hopper.h"

namespace residues {

#ifdef TSR_TEST_FLIPS
/* A bit of the group's rows of A, or of B, when they have come and before its products read them. */
__device__ __forceinline__ void flip_panel(unsigned char *stage) {
    typedef unsigned char Rows[GROUP_ROWS * K];
    typedef unsigned char Lines[B_BYTES];
    if (threadIdx.x % 128 == 0) {
        TSR_FLIP_WORD(TSR_FLIP_TILE_A, reinterpret_cast<Rows *>(stage + own_group() * GROUP_ROWS * K));
        TSR_FLIP_WORD(TSR_FLIP_TILE_B, reinterpret_cast<Lines *>(stage + A_BYTES));
        hopper::fence_copies();
    }
    hopper::named_wait(3 + own_group(), 128);
}

/* Of one of a thread's sums. */
template <int COUNT> __device__ __forceinline__ void flip_sum(int (&sum)[COUNT]) {
    const int which = (int)threadIdx.x % 4 * (COUNT / 4);
#pragma unroll
    for (int i = 0; i < COUNT; i += COUNT / 4) {
        int word = sum[i]; /* sums stay in registers */
        if (i == which) TSR_FLIP_WORD(TSR_FLIP_SUM, &word);
        sum[i] = word;
    }
}
#else
__device__ __forceinline__ void flip_panel(unsigned char *) {}
template <int COUNT> __device__ __forceinline__ void flip_sum(int (&)[COUNT]) {}
#endif

} // namespace residues

#endif
