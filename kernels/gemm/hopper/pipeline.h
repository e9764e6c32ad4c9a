/* The pipeline of a persistent kernel for sm_90: stages in shared memory, which a producer fills by TMA while warps
 * that multiply (consumers) empty others. Two barriers a stage say when it is full and when it is empty. And what
 * else these kernels share beside the instructions: turns of two warpgroups, and the descriptors by which wgmma finds
 * its operands in a stage. Device code only. */
#ifndef TSR_KERNELS_GEMM_HOPPER_PIPELINE_H
#define TSR_KERNELS_GEMM_HOPPER_PIPELINE_H

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

/* Where a thread is in the pipeline: a stage, and the parity of its turn. */
template <int STAGES> struct PipelineState {
    int stage;
    uint32_t phase;
    __device__ __forceinline__ void step() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ __forceinline__ void step(int count) {
        stage += count;
        phase ^= stage / STAGES & 1;
        stage %= STAGES;
    }
};

/* Where STAGES stages of STAGE_BYTES stand in shared memory, then BEHIND_BYTES that a kernel uses as it likes, then
 * the barriers. As pointers, or as one address (docs/kernels.md, "Shared by the kernels for sm_90"). */
template <int STAGES, int STAGE_BYTES, int BEHIND_BYTES, int ALIGNMENT> struct StagesByPointer {
    unsigned char *stages;
    uint64_t *fulls, *empties;
    __device__ __forceinline__ explicit StagesByPointer(unsigned char *shared)
        : stages(shared_aligned(shared, ALIGNMENT)),
          fulls(reinterpret_cast<uint64_t *>(stages + STAGES * STAGE_BYTES + BEHIND_BYTES)), empties(fulls + STAGES) {}
    __device__ __forceinline__ uint32_t address(int i) const { return shared_address(stages) + i * STAGE_BYTES; }
    __device__ __forceinline__ unsigned char *stage(int i) const { return stages + i * STAGE_BYTES; }
    __device__ __forceinline__ uint64_t *full(int i) const { return fulls + i; }
    __device__ __forceinline__ uint64_t *empty(int i) const { return empties + i; }
};
template <int STAGES, int STAGE_BYTES, int BEHIND_BYTES, int ALIGNMENT> struct StagesByAddress {
    uint32_t base;
    __device__ __forceinline__ explicit StagesByAddress(unsigned char *shared)
        : base((shared_address(shared) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT) {}
    __device__ __forceinline__ unsigned char *at(int bytes) const {
        return (unsigned char *)__cvta_shared_to_generic(base + bytes);
    }
    __device__ __forceinline__ uint32_t address(int i) const { return base + i * STAGE_BYTES; }
    __device__ __forceinline__ unsigned char *stage(int i) const { return at(i * STAGE_BYTES); }
    __device__ __forceinline__ uint64_t *full(int i) const {
        return (uint64_t *)at(STAGES * STAGE_BYTES + BEHIND_BYTES + i * 8);
    }
    __device__ __forceinline__ uint64_t *empty(int i) const { return full(STAGES + i); }
};

/* CLUSTER blocks fill each other's stages: a consumer releases a stage to all of them. */
template <int STAGES, int STAGE_BYTES, int BEHIND_BYTES = 0, int CLUSTER = 1, int ALIGNMENT = 1024,
          template <int, int, int, int> class Stages = StagesByPointer>
struct Pipeline : Stages<STAGES, STAGE_BYTES, BEHIND_BYTES, ALIGNMENT> {
    typedef PipelineState<STAGES> State;
    typedef Stages<STAGES, STAGE_BYTES, BEHIND_BYTES, ALIGNMENT> Base;
    static constexpr int SHARED_BYTES =
        ALIGNMENT + STAGES * STAGE_BYTES + BEHIND_BYTES + 2 * STAGES * (int)sizeof(uint64_t);
    using Base::empty;
    using Base::full;

    /* A stage is full after `filling` arrivals and all expected bytes, and empty after `emptying` arrivals. All
     * threads of the block make it, before a barrier of the block or cluster. */
    __device__ __forceinline__ Pipeline(unsigned char *shared, uint32_t filling, uint32_t emptying) : Base(shared) {
        barriers_init<STAGES>(full(0), empty(0), filling, emptying);
    }
    __device__ __forceinline__ unsigned char *behind() const { return Base::stage(STAGES); }

    /* One thread of the producer: waits until the stage is empty, as all are at first, and expects `bytes` in it. */
    __device__ __forceinline__ void acquire(State at, uint32_t bytes = STAGE_BYTES) const {
        barrier_wait(empty(at.stage), at.phase ^ 1);
        barrier_expect(full(at.stage), bytes);
    }
    /* Until all stages from `at` on have been released: no arrival from another block is on its way then. */
    __device__ __forceinline__ void drain(State at) const {
        for (int i = 0; i < STAGES; i++, at.step()) barrier_wait(empty(at.stage), at.phase ^ 1);
    }
    /* A consumer: until the stage is full. */
    __device__ __forceinline__ void wait(State at) const { barrier_wait(full(at.stage), at.phase); }
    /* A warp has read a stage. */
    __device__ __forceinline__ void release(int stage) const {
        const int lane = (int)threadIdx.x % 32;
        if (CLUSTER == 1 && lane == 0) barrier_arrive(empty(stage));
        if (CLUSTER > 1 && lane < CLUSTER) barrier_arrive_at(empty(stage), (uint32_t)lane);
    }
};

} // namespace hopper

#endif
