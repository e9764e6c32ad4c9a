/* What the kernels for sm_90 share beside the instructions themselves: barriers of a pipeline, places in shared memory,
 * and the descriptors by which wgmma finds its operands there. Device code only. */
#ifndef TSR_KERNELS_GEMM_HOPPER_HOPPER_H
#define TSR_KERNELS_GEMM_HOPPER_HOPPER_H

#include "kernels/gemm/hopper/instructions.h"

namespace hopper {

/* Whether this is the code for sm_90a, or that of a kernel which is never launched. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool FOR_SM90A = true;
#else
constexpr bool FOR_SM90A = false;
#endif

/* The barriers of a pipeline's stages, `full` ones after `filling` arrivals, `empty` ones after `emptying`. All threads
 * of the block, before a barrier of the block or cluster. */
template <int STAGES>
__device__ __forceinline__ void barriers_init(uint64_t *full, uint64_t *empty, uint32_t filling, uint32_t emptying) {
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + s, filling);
            barrier_init(empty + s, emptying);
        }
        fence_init();
    }
}
/* The first address in a block's dynamic shared memory that is a multiple of `alignment`; swizzles go by address. */
__device__ __forceinline__ unsigned char *shared_aligned(unsigned char *shared, uint32_t alignment) {
    return shared + (alignment - shared_address(shared) % alignment) % alignment;
}

/* Two warpgroups, the first of the block, take turns: each waits for its own, and passes it to the other. Named
 * barriers 1 and 2. */
__device__ __forceinline__ void wait_turn() { named_wait(1 + (int)threadIdx.x / 128, 256); }
__device__ __forceinline__ void pass_turn() { named_arrive(1 + ((int)threadIdx.x / 128 ^ 1), 256); }

/* Descriptor of a k-major operand: rows of 128 bytes, swizzled in groups of 8 rows (16-byte unit c of row r stands
 * at c ^ r % 8), the groups one after the other; 1024-byte aligned. 16 halves further along k: descriptor + 2. */
__device__ __forceinline__ uint64_t wgmma_operand(uint32_t address) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Descriptor of an operand that stands k by n: rows of 64 elements (128 bytes) along n, swizzled as above, 8 rows of
 * k a group, groups one after the other; the next 64 along n begin `stride` bytes further. 16 further along k:
 * descriptor + 128. */
__device__ __forceinline__ uint64_t wgmma_operand_along_n(uint32_t address, uint32_t stride) {
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(stride >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

} // namespace hopper

#endif
