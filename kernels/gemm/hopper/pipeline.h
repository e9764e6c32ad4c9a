/* The pipeline of a persistent kernel for sm_90: stages in shared memory, which a producer fills by TMA while warps
 * that multiply (consumers) empty others. Two barriers a stage say when it is full and when it is empty. Device code
 * only. */
#ifndef TSR_KERNELS_GEMM_HOPPER_PIPELINE_H
#define TSR_KERNELS_GEMM_HOPPER_PIPELINE_H

#include "kernels/gemm/hopper/hopper.h"

namespace hopper {

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
