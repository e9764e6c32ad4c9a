/* A model on the host of the instructions by which the kernels for sm_90 work (kernels/gemm/hopper/instructions.h). A
 * test includes this, then a kernel's .cu: the kernel's own code runs in the emulation of CUDA, a fiber a thread, and
 * all blocks of a cluster at once. Threads run in a random order, and what is asynchronous happens at a random time
 * between its start and the wait for it, both decided by a seed. So a mistake in a pipeline shows as a wrong result, a
 * deadlock or a complaint, and comes back with its seed.
 *
 * Covered:
 * - mbarriers: arrivals, expected bytes, parity, arrivals at other blocks of a cluster; too many arrivals, barriers not
 *   initialised, and blocks that have ended are complaints (model_barriers.h);
 * - named barriers, which must be even when a block ends, and the barrier of a cluster;
 * - TMA: boxes of tensor maps, edges, swizzles, rounding to tf32, multicast, bulk copies, cp.async, stores and the wait
 *   for them; what a load will overwrite is NaN from its start on (model_copies.h);
 * - wgmma, of floats and of bytes, with operands found by their descriptors, and mma: which thread holds what, and when
 *   it is there (model_products.h);
 * - shared memory of exactly the size that the launch asked for, 16-byte aligned, NaN at first.
 * Not covered:
 * - memory fences, proxies and the order in which a GPU's memory shows writes: here every write is seen at once;
 * - threads that are stopped anywhere: they change places at instructions of this model alone;
 * - how tensor cores round: the model sums in fp32, to nearest, in the order of k;
 * - the text of the instructions in instructions.h, registers and their limits, caches, bank conflicts, speed;
 * - blocks that are not of one cluster: these run one after the other. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_H

#include "kernels/device/cuda_compat.h"

#include "tests/kernels/gemm/hopper/model_barriers.h"
#include "tests/kernels/gemm/hopper/model_copies.h"
#include "tests/kernels/gemm/hopper/model_products.h"

/* This takes the place of the instructions. __CUDA_ARCH_FEAT_SM90_ALL, of the command line, brings in their users. */
#define TSR_KERNELS_GEMM_HOPPER_INSTRUCTIONS_H

namespace hopper_model {

inline bool all_late;

inline void begin(int blocks, int) {
    constexpr int DRAWN[] = {0, 1, 6, 16};
    eagerness = all_late ? 0 : DRAWN[tsr_emulation_random() % 4];
    begin_barriers(blocks);
    begin_copies();
    begin_products();
}

/* One piece of work of those under way, any of them. */
inline bool step(bool must) {
    const size_t copies = copies_under_way(), products = products_under_way();
    if (copies + products == 0) return false;
    if (!must && (int)(tsr_emulation_random() % 16) >= eagerness) return false;
    const size_t which = tsr_emulation_random() % (copies + products);
    if (which < copies) carry_out_copy(which);
    else carry_out_product(which - copies);
    return true;
}

inline void end() {
    if (copies_under_way() + products_under_way() > 0)
        tsr_emulation_complain("copies or products under way at the end");
    end_barriers();
}

/* The emulation with this model, from here on; seed > 0. late: copies and products are carried out when no thread can
 * go on, and not before; otherwise when the seed says, differently for every block. */
inline void use(uint64_t seed, bool late) {
    all_late = late;
    const tsr_emulation_model model = {.begin = begin, .step = step, .end = end};
    tsr_emulation_set_model(&model, seed);
}

} // namespace hopper_model

#endif
