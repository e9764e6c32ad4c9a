/* Part of model.h: places in shared memory, barriers of threads, mbarriers. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_BARRIERS_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_BARRIERS_H

#include "kernels/device/cuda_compat.h"

/* Of functions that take most of the time, in memory that is there whatever a kernel does. */
#define MODEL_QUICK __attribute__((optimize("O3"), no_sanitize("address"), no_sanitize("undefined")))

namespace hopper_model {

/* In sixteenths: how often work that goes on beside the threads is carried out when a thread makes place for another;
 * 0: as late as can be. */
inline int eagerness;

/* ---- places in shared memory ----------------------------------------------------------------- */

constexpr uint32_t FIRST_ADDRESS = 1024 + 16; /* of dynamic shared memory in a block's window */
constexpr int MOST_BLOCKS_CLUSTER = 8, MOST_THREADS = 1024;

inline unsigned char *place(int rank, uint32_t address, size_t bytes) {
    size_t all;
    unsigned char *shared = tsr_emulation_shared_of(rank, &all);
    if (address < FIRST_ADDRESS || address - FIRST_ADDRESS + bytes > all)
        tsr_emulation_complain("%zu bytes at address %u are not in the %zu of shared memory", bytes, address, all);
    return shared + (address - FIRST_ADDRESS);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

/* As it stands in shared memory. What nothing was written to is `unset`. */
struct Mbarrier {
    uint64_t left : 20, arrivals : 20; /* that complete a phase: still to come, all */
    int64_t bytes : 22;                /* still to come; fewer than none if some came before they were expected */
    uint64_t odd : 1, unset : 1;       /* odd: parity of the present phase */
};
static_assert(sizeof(Mbarrier) == 8, "an mbarrier has 8 bytes");

inline Mbarrier *mbarrier(int rank, uint32_t address) {
    Mbarrier *barrier = reinterpret_cast<Mbarrier *>(place(rank, address, sizeof(Mbarrier)));
    if (address % 8 != 0) tsr_emulation_complain("an mbarrier at address %u", address);
    if (tsr_emulation_running(rank) == 0) tsr_emulation_complain("an mbarrier of a block that has ended");
    if (barrier->unset) tsr_emulation_complain("an mbarrier that was not initialised");
    return barrier;
}
inline void advance(Mbarrier *barrier) {
    if (barrier->left > 0 || barrier->bytes != 0) return;
    barrier->odd ^= 1;
    barrier->left = barrier->arrivals;
    tsr_emulation_wake(barrier);
}
inline void arrive(Mbarrier *barrier) {
    if (barrier->left == 0) tsr_emulation_complain("more arrivals at an mbarrier than it awaits");
    barrier->left--;
    advance(barrier);
}
inline void expect(Mbarrier *barrier, int64_t bytes) { /* bytes < 0: these have come */
    constexpr int64_t MOST = (1 << 20) - 1;
    if (barrier->bytes + bytes > MOST || barrier->bytes + bytes < -MOST)
        tsr_emulation_complain("an mbarrier expects %lld bytes", (long long)(barrier->bytes + bytes));
    barrier->bytes += bytes;
}

/* ---- barriers of threads --------------------------------------------------------------------- */

struct ThreadBarrier {
    int arrived, threads;
    uint64_t phases; /* completed */
};
inline ThreadBarrier named[MOST_BLOCKS_CLUSTER][16], of_cluster;
inline int blocks_cluster;

inline void meet(ThreadBarrier *barrier, int threads, bool wait, const char *what) {
    const uint64_t phases = barrier->phases;
    if (barrier->arrived > 0 && barrier->threads != threads)
        tsr_emulation_complain("%s for %d threads is met by one for %d", what, barrier->threads, threads);
    barrier->threads = threads;
    if (++barrier->arrived == threads) {
        barrier->arrived = 0;
        barrier->phases++;
        tsr_emulation_wake(barrier);
    }
    while (wait && barrier->phases == phases) tsr_emulation_wait(barrier, what);
}
inline ThreadBarrier *named_barrier(int id) {
    if (id < 1 || id > 15) tsr_emulation_complain("named barrier %d", id);
    return &named[tsr_emulation_rank()][id];
}

inline void begin_barriers(int blocks) {
    blocks_cluster = blocks;
    memset(named, 0, sizeof named);
    of_cluster = {};
}
inline void end_barriers() {
    for (int rank = 0; rank < blocks_cluster; rank++)
        for (int id = 0; id < 16; id++)
            if (named[rank][id].arrived > 0)
                tsr_emulation_complain("named barrier %d of block %d of the cluster has %d arrivals at the end", id,
                                       rank, named[rank][id].arrived);
}

} // namespace hopper_model

/* ---- the instructions ------------------------------------------------------------------------ */

static inline void *__cvta_shared_to_generic(uint32_t address) {
    return hopper_model::place(tsr_emulation_rank(), address, 1);
}

namespace hopper {

inline uint32_t shared_address(const void *at) {
    size_t bytes;
    const unsigned char *shared = tsr_emulation_shared_of(tsr_emulation_rank(), &bytes);
    const int64_t offset = static_cast<const unsigned char *>(at) - shared;
    if (offset < 0 || offset > (int64_t)bytes) tsr_emulation_complain("not a place in the block's shared memory");
    return hopper_model::FIRST_ADDRESS + (uint32_t)offset;
}
inline hopper_model::Mbarrier *own_mbarrier(uint64_t *barrier) {
    return hopper_model::mbarrier(tsr_emulation_rank(), shared_address(barrier));
}

inline void barrier_init(uint64_t *barrier, uint32_t arrivals) {
    unsigned char *at = hopper_model::place(tsr_emulation_rank(), shared_address(barrier), sizeof *barrier);
    *reinterpret_cast<hopper_model::Mbarrier *>(at) = {arrivals, arrivals, 0, 0, 0};
}
inline void fence_init() {}
inline void barrier_arrive(uint64_t *barrier) {
    tsr_emulation_pause();
    hopper_model::arrive(own_mbarrier(barrier));
    tsr_emulation_pause();
}
inline void barrier_expect(uint64_t *barrier, uint32_t bytes) {
    hopper_model::Mbarrier *own = own_mbarrier(barrier);
    hopper_model::expect(own, bytes);
    hopper_model::arrive(own);
    tsr_emulation_pause();
}
inline bool barrier_test(uint64_t *barrier, uint32_t parity) {
    tsr_emulation_pause();
    if (parity > 1) tsr_emulation_complain("parity %u", parity);
    return own_mbarrier(barrier)->odd != parity;
}
inline void barrier_wait(uint64_t *barrier, uint32_t parity) {
    while (!barrier_test(barrier, parity))
        tsr_emulation_wait(barrier, parity ? "an odd phase of an mbarrier" : "an even phase of an mbarrier");
}
inline void barrier_arrive_at(uint64_t *barrier, uint32_t rank) {
    tsr_emulation_pause();
    if ((int)rank >= hopper_model::blocks_cluster) tsr_emulation_complain("block %u of a cluster", rank);
    hopper_model::arrive(hopper_model::mbarrier((int)rank, shared_address(barrier)));
    tsr_emulation_pause();
}

inline void named_wait(int id, int threads) {
    hopper_model::meet(hopper_model::named_barrier(id), threads, true, "a named barrier");
}
inline void named_arrive(int id, int threads) {
    hopper_model::meet(hopper_model::named_barrier(id), threads, false, "a named barrier");
    tsr_emulation_pause();
}
inline uint32_t cluster_rank() { return (uint32_t)tsr_emulation_rank(); }
inline void cluster_barrier() {
    hopper_model::meet(&hopper_model::of_cluster, hopper_model::blocks_cluster * (int)blockDim.x, true,
                       "the barrier of the cluster");
}
template <int COUNT> void registers_give() {}
template <int COUNT> void registers_take() {}

} // namespace hopper

#endif
