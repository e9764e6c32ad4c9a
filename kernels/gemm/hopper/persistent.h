/* The kernel that all families for sm_90 share. Blocks, or clusters of them, stay on their multiprocessors and walk
 * tiles of C (tile_scheduler.h). One thread asks for panels of A and B in the order of use. The threads before it
 * multiply them, and hand sums over or leave them to be gathered (gather.h). Stages of shared memory lie between
 * (pipeline.h).
 * A kernel is a struct, `Kernel` below. It derives from Persistent and says what differs:
 *   Work                its argument; of it this file wants what take_product fills, `plan` and `parts`
 *   Pipe, Sums          its pipeline, and the sums of a thread
 *   THREADS             that multiply (of Parts)
 *   HOLDERS, BARRIER    of these, how many hold a tile's sums together, and the first of the named barriers for them
 *   PRODUCER_REGISTERS  what the thread that asks for panels keeps; those that multiply get the rest
 *   WGMMA_ADDS          `wgmma` adds to the sums themselves
 *   CUT, add, put       see gather.h
 *   Scheduler           which works a worker makes, each a Tile of its, and in which order: TileScheduler, unless it
 *                       has its own
 *   bring(w, pipe, at, work)  asks for the panels of a work, from stage `at` on, which steps on
 *   Lane                what a thread that multiplies knows of its place
 *   Consumer            what it keeps from work to work, and what it does with one (EveryWork)
 * The machine code depends on how this is written: on what is one struct, and on what goes by reference.
 * Device code and its launches. */
#ifndef TSR_KERNELS_GEMM_HOPPER_PERSISTENT_H
#define TSR_KERNELS_GEMM_HOPPER_PERSISTENT_H

#include "kernels/gemm/hopper/gather.h"
#include "kernels/gemm/hopper/pipeline.h"

namespace hopper {

/* What a kernel may say besides. Parts: see gather.h. */
template <typename Parts> struct Persistent : Parts {
    static constexpr int CLUSTER = 1;                     /* blocks of a worker */
    static constexpr int RELEASING = Parts::THREADS / 32; /* arrivals that free a stage */
    static constexpr bool TURNS = false;                  /* groups of threads take turns: Consumer::skips */
    static constexpr bool WHOLE = false; /* sums are never cut: `multiply` begins with its first product */
    typedef TileScheduler Scheduler;
    /* Arrivals that fill a stage, beside its bytes. 1: one thread brings all panels; else the whole warpgroup does. */
    template <typename Work> static __device__ __forceinline__ uint32_t filling(const Work &) { return 1; }
    static constexpr bool EARLY = false; /* launched like TSR_LAUNCH_NEXT */
    /* What the thread that brings panels does before all, and after. */
    template <typename Work> static __device__ __forceinline__ void open(const Work &) {}
    template <typename Pipe, typename State> static __device__ __forceinline__ void close(const Pipe &, State) {}
    /* Which of a worker's flags (`handed`) belongs to a group of threads. */
    static __device__ __forceinline__ int flag(int group) { return group; }
    /* Sum number i of a thread, in the order of its parts. */
    template <typename Sums> static __device__ __forceinline__ typename Parts::Value &at(Sums &sum, int i) {
        return reinterpret_cast<typename Parts::Value *>(sum)[i];
    }
};

template <typename Kernel> __device__ __forceinline__ int worker_of() { return (int)blockIdx.x / Kernel::CLUSTER; }

template <typename Kernel>
__device__ __forceinline__ void produce(const typename Kernel::Work &w, const typename Kernel::Pipe &pipe) {
    typename Kernel::Pipe::State at = {0, 0};
    typename Kernel::Scheduler scheduler(w.plan, worker_of<Kernel>());
    for (typename Kernel::Scheduler::Tile work; scheduler.next(w.plan, &work);) Kernel::bring(w, pipe, at, work);
    Kernel::close(pipe, at);
}

/* sum = 0, if so. */
template <typename Kernel> __device__ __forceinline__ void clear(typename Kernel::Sums &sum, bool so) {
#pragma unroll
    for (int i = 0; so && i < Kernel::COUNT; i++) Kernel::at(sum, i) = 0;
}

template <typename Kernel>
__device__ __forceinline__ void consume(const typename Kernel::Work &w, const typename Kernel::Pipe &pipe) {
    constexpr bool TOGETHER = Kernel::HOLDERS == Kernel::THREADS;
    const int group = TOGETHER ? 0 : (int)threadIdx.x / Kernel::HOLDERS;
    const auto first = [] { return (TOGETHER ? threadIdx.x : threadIdx.x % Kernel::HOLDERS) == 0; };
    const auto barrier = [group] { named_wait(Kernel::BARRIER + group, Kernel::HOLDERS); };
    const typename Kernel::Lane lane;
    typename Kernel::Consumer own;
    typename Kernel::Pipe::State at = {0, 0};
    own.begin();
    typename Kernel::Scheduler scheduler(w.plan, worker_of<Kernel>());
    for (typename Kernel::Scheduler::Tile work; scheduler.next(w.plan, &work);) {
        if constexpr (Kernel::TURNS)
            if (own.skips(at, work)) continue;
        typename Kernel::Sums sum;
        if constexpr (!Kernel::WHOLE) {
            const bool begun = work.from >= 0;
            if (!Kernel::WGMMA_ADDS) clear<Kernel>(sum, true);
            if (begun) {
                take_over(w.plan, worker_of<Kernel>(), Kernel::flag(group), first(), barrier);
                Kernel::go_on(w, work.from, &Kernel::at(sum, 0));
            }
            /* with `else` ptxas serializes the products of a wgmma (C7515) */
            if (Kernel::WGMMA_ADDS) clear<Kernel>(sum, !begun);
        }
        own.multiply(w, pipe, lane, at, work, scheduler.more(w.plan), sum);
        own.finish(w, pipe, lane, work, sum);
        if constexpr (!Kernel::WHOLE)
            if (work.handed) hand_over(w.plan, worker_of<Kernel>(), Kernel::flag(group), first(), barrier);
    }
    own.end();
}

/* What a Consumer does before the first work and after the last: nothing, unless it says otherwise. Each says
 *   multiply(w, pipe, lane, at, work, more, sum): adds the work's panels, from stage `at` on; more: work follows
 *   finish(w, pipe, lane, work, sum): the sums to C, or to a part
 *   skips(at, work), where groups take turns: whether the other makes a work; `at` then steps on */
struct EveryWork {
    __device__ __forceinline__ void begin() const {}
    __device__ __forceinline__ void end() const {}
};

template <typename Kernel> __device__ __forceinline__ void run(const typename Kernel::Work &w) {
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    const typename Kernel::Pipe pipe(shared, Kernel::filling(w), Kernel::RELEASING);
    if (threadIdx.x == Kernel::THREADS) Kernel::open(w);
    __syncthreads();
    if (Kernel::CLUSTER > 1) cluster_barrier();
    if (threadIdx.x >= Kernel::THREADS) {
        registers_give<Kernel::PRODUCER_REGISTERS>();
        if (Kernel::filling(w) > 1 || threadIdx.x == Kernel::THREADS) produce<Kernel>(w, pipe);
    } else {
        registers_take<(3 * 168 - Kernel::PRODUCER_REGISTERS) / 2>();
        consume<Kernel>(w, pipe);
    }
}

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::THREADS + 128, 1) gemm(const __grid_constant__ typename Kernel::Work w) {
    if (!FOR_SM90A) return __trap(); /* the registry never gets here */
    if (Kernel::EARLY) tsr_cuda_begin();
    if (!Kernel::left_out(w)) run<Kernel>(w);
}

/* ---- launches, on the host --------------------------------------------------------------------- */

/* The kernel and the gather, on the stream. w: filled but for its parts, which take `room`. */
template <typename Kernel> tsr_status launch(tsr_stream *stream, typename Kernel::Work *w, void *room) {
    TSR_TRY(parts_clear(stream, w, room));
    TSR_TRY(tsr_gemm_allow_shared(gemm<Kernel>, Kernel::Pipe::SHARED_BYTES));
    TSR_TRY(TSR_LAUNCH(gemm<Kernel>, (unsigned)w->plan.workers, Kernel::THREADS + 128, Kernel::Pipe::SHARED_BYTES,
                       stream, *w));
    return gather_launch<Kernel>(stream, *w);
}

/* A kernel whose workers are clusters of `cluster_blocks` blocks; EARLY: like TSR_LAUNCH_NEXT. */
template <bool EARLY = false, typename Function, typename... Arguments>
tsr_status launch_clusters(Function kernel, tsr_stream *stream, int64_t blocks, int threads, int shared_bytes,
                           int cluster_blocks, const Arguments &...arguments) {
    cudaLaunchAttribute attributes[2];
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = (unsigned)cluster_blocks;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)shared_bytes;
    config.stream = tsr_cuda_stream(stream);
    config.attrs = attributes;
    config.numAttrs = 1;
    if (EARLY) TSR_TRY(tsr_cuda_allow_early(&config, attributes + 1));
    TSR_TRY(tsr_gemm_allow_shared(kernel, config.dynamicSmemBytes));
    if (tsr_device_loads_only()) return tsr_cuda_load(kernel, "of clusters");
    return TSR_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/* The kernel's `shape`. */
template <typename Kernel> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    return tsr_gemm_describe(gemm<Kernel>, Kernel::TILE_M, Kernel::TILE_N, Kernel::TILE_K, Kernel::THREADS + 128,
                             Kernel::Pipe::SHARED_BYTES, sizeof(typename Kernel::Value), m, n, k, out);
}

} // namespace hopper

#endif
