/* Sums that workers leave in parts of the workspace (tile_scheduler.h). Of a piece that lies in two shares: the first
 * worker leaves them and says so, the second waits for that and goes on with them. THREADS threads that hold a tile's
 * sums together, such as a warpgroup, do it by themselves; `barrier` waits for all of them. Of tiles that were cut
 * along k: a second kernel adds up the parts of each tile, in the order of k. */
#ifndef TSR_KERNELS_GEMM_HOPPER_GATHER_H
#define TSR_KERNELS_GEMM_HOPPER_GATHER_H

#include "kernels/gemm/gemm_cuda.h"
#include "kernels/gemm/hopper/tile_scheduler.h"

namespace hopper {

/* ---- parts of the workspace ------------------------------------------------------------------- */

constexpr int MOST_GROUPS = 4;           /* of a worker that hand over by themselves */
constexpr size_t HANDED_BYTES = 5 << 10; /* of 2·FULL_DEVICE workers, and so many that parts stay aligned */
static_assert(HANDED_BYTES >= 2 * FULL_DEVICE * MOST_GROUPS * sizeof(uint32_t));

/* Workspace for the flags and the parts of `bytes` each. */
static inline size_t parts_bytes(Cut cut, int64_t tiles, int64_t panels, size_t bytes) {
    const int64_t parts = most_parts(cut, tiles, panels);
    return parts > 0 ? HANDED_BYTES + (size_t)parts * bytes : 0;
}
/* The same for a Kernel that has Parts and a CUT. */
template <typename Kernel> static size_t parts_bytes_of(int64_t m, int64_t n, int64_t k) {
    return parts_bytes(Kernel::CUT, tsr_ceil_div(m, Kernel::TILE_M) * tsr_ceil_div(n, Kernel::TILE_N),
                       tsr_ceil_div(k, Kernel::TILE_K),
                       Kernel::TILE_M * Kernel::TILE_N * sizeof(typename Kernel::Value));
}
/* Where the parts stand in that room. On the stream: the flags are cleared. Local. */
template <typename Work> static tsr_status parts_clear(tsr_stream *stream, Work *w, void *room) {
    w->plan.handed = (uint32_t *)room;
    w->parts = (decltype(w->parts))((unsigned char *)room + HANDED_BYTES);
    if (!w->plan.hands_over) return TSR_OK;
    return TSR_CUDA(cudaMemsetAsync(room, 0, HANDED_BYTES, tsr_cuda_stream(stream)));
}

/* WIDTH neighbours, moved in one access. */
template <typename T, int WIDTH> struct alignas(sizeof(T) * WIDTH) Group { T at[WIDTH]; };

/* The tiles of a kernel, M × N of C in steps of K, and their parts: OWNERS threads hold a tile's sums together, and
 * leave them in groups of WIDTH, [group][owner][WIDTH]. The gather takes VALUES_ of a thread at a time. */
template <typename T, int M, int N, int K, int OWNERS, int WIDTH, int VALUES_ = 4> struct Parts {
    typedef T Value;
    static constexpr int TILE_M = M, TILE_N = N;
    static constexpr int TILE_K = K;
    static constexpr int COUNT = M * N / OWNERS; /* sums of a thread */
    static constexpr int THREADS = OWNERS, STRANDS = 1;
    static constexpr int VALUES = VALUES_, GROUPS = COUNT / VALUES;
    static constexpr int UNROLL = 8; /* of parts */

    /* A thread's sums to a part, and back. */
    template <typename Work>
    static __device__ __forceinline__ void leave(const Work &w, int part, const T *sum, unsigned owner = threadIdx.x) {
        Group<T, WIDTH> *to = (Group<T, WIDTH> *)w.parts + (int64_t)part * (COUNT / WIDTH) * OWNERS + owner;
#pragma unroll
        for (int i = 0; i < COUNT; i += WIDTH) {
            Group<T, WIDTH> group;
#pragma unroll
            for (int e = 0; e < WIDTH; e++) group.at[e] = sum[i + e];
            to[i / WIDTH * OWNERS] = group;
        }
    }
    template <typename Work>
    static __device__ __forceinline__ void go_on(const Work &w, int part, T *sum, unsigned owner = threadIdx.x) {
        const Group<T, WIDTH> *from =
            (const Group<T, WIDTH> *)w.parts + (int64_t)part * (COUNT / WIDTH) * OWNERS + owner;
#pragma unroll
        for (int i = 0; i < COUNT; i += WIDTH) {
            const Group<T, WIDTH> group = from[i / WIDTH * OWNERS];
#pragma unroll
            for (int e = 0; e < WIDTH; e++) sum[i + e] = group.at[e];
        }
    }
    /* For the gather: sum += `group`, of VALUES, of a thread's. */
    template <typename Work>
    static __device__ __forceinline__ void add(const Work &w, int part, int group, int owner, T (&sum)[VALUES]) {
        const Group<T, WIDTH> *from = (const Group<T, WIDTH> *)w.parts +
                                      ((int64_t)part * (COUNT / WIDTH) + group * (VALUES / WIDTH)) * OWNERS + owner;
#pragma unroll
        for (int i = 0; i < VALUES; i += WIDTH) {
            const Group<T, WIDTH> x = from[i / WIDTH * OWNERS];
#pragma unroll
            for (int e = 0; e < WIDTH; e++) sum[i + e] += x.at[e];
        }
    }
    template <typename Work> static __device__ __forceinline__ bool left_out(const Work &) { return false; }
};

/* Fills what every kernel's argument says of its product. */
template <typename Work> static void take_product(Work *w, const tsr_gemm_args *args, int tile_m, int tile_n) {
    w->c = (decltype(w->c))args->c;
    w->ldc = args->ldc;
    w->m = args->m;
    w->n = args->n;
    w->tiles_m = (int)tsr_ceil_div(args->m, tile_m);
    w->tiles_n = (int)tsr_ceil_div(args->n, tile_n);
    w->accumulate = args->accumulate;
}

/* Plans its tiles for the multiprocessors of the device, of which a worker takes `each`. Local. */
template <typename Work> static tsr_status plan_tiles(Cut cut, Work *w, int64_t panels, int each = 1) {
    int multiprocessors = 0, most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    w->plan = tile_plan(cut, (int64_t)w->tiles_m * w->tiles_n, panels, tsr_min(multiprocessors, most) / each, 0);
    return TSR_OK;
}

/* ---- handing over ----------------------------------------------------------------------------- */

/* This group's threads have stored their sums. */
template <typename Barrier>
__device__ __forceinline__ void hand_over(const TilePlan &p, int worker, int group, bool first, Barrier barrier) {
    barrier();
    if (!first) return;
    __threadfence();
    *(volatile uint32_t *)(p.handed + worker * MOST_GROUPS + group) = 1;
}
/* Until the same group of the worker before this one has. */
template <typename Barrier>
__device__ __forceinline__ void take_over(const TilePlan &p, int worker, int group, bool first, Barrier barrier) {
    if (first) {
        while (*(volatile uint32_t *)(p.handed + (worker - 1) * MOST_GROUPS + group) == 0) {}
        __threadfence();
    }
    barrier();
}

/* ---- gathering -------------------------------------------------------------------------------- */

__device__ __forceinline__ void add4(float (&sum)[4], float4 x) {
    sum[0] += x.x;
    sum[1] += x.y;
    sum[2] += x.z;
    sum[3] += x.w;
}

/* A block of Sums::THREADS threads adds up one of Sums::GROUPS groups of a tile's sums, VALUES of a thread. STRANDS
 * times as many threads share the parts out, and then add their sums.
 * Of w, which holds the `plan`, Sums says:
 *   left_out(w): nothing was made
 *   add(w, part, group, thread, sum): adds the values of a part to `sum`
 *   put(w, tile, group, thread, sum): adds `sum` to C, or stores it there */
template <typename Sums>
__global__ void __launch_bounds__(Sums::THREADS *Sums::STRANDS) gather(const __grid_constant__ typename Sums::Work w) {
    typedef typename Sums::Value Value;
    __shared__ Value others[Sums::STRANDS][Sums::VALUES][Sums::THREADS];
    if (Sums::left_out(w)) return;
    const int pieces = w.plan.pieces;
    const int thread = (int)threadIdx.x % Sums::THREADS, strand = (int)threadIdx.x / Sums::THREADS;
    const int strands = Sums::STRANDS > 1 ? (int)blockDim.x / Sums::THREADS : 1;
    for (int work = (int)blockIdx.x; work < w.plan.tiles * Sums::GROUPS; work += (int)gridDim.x) {
        const int tile = work / Sums::GROUPS, group = work % Sums::GROUPS;
        Value sum[Sums::VALUES] = {};
#pragma unroll(Sums::UNROLL)
        for (int i = pieces * strand / strands; i < pieces * (strand + 1) / strands; i++)
            Sums::add(w, tile * pieces + i, group, thread, sum);
        if (Sums::STRANDS > 1 && strands > 1) {
#pragma unroll
            for (int v = 0; v < Sums::VALUES; v++) others[strand][v][thread] = sum[v];
            __syncthreads();
            for (int other = 1; strand == 0 && other < strands; other++)
#pragma unroll
                for (int v = 0; v < Sums::VALUES; v++) sum[v] += others[other][v][thread];
            __syncthreads();
        }
        if (strand == 0) Sums::put(w, tile, group, thread, sum);
    }
}

/* On the stream, behind the kernel that left the parts; nothing where no tile was cut. Local. */
template <typename Sums>
static tsr_status gather_launch(tsr_stream *stream, const typename Sums::Work &w, int strands = 1) {
    int most = 0;
    if (w.plan.pieces == 1) return TSR_OK;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    const int64_t blocks = tsr_min((int64_t)w.plan.tiles * Sums::GROUPS, most);
    return TSR_LAUNCH(gather<Sums>, (unsigned)blocks, Sums::THREADS * strands, 0, stream, w);
}

/* The descriptor of a kernel for sm_90 alone. */
constexpr tsr_gemm_kernel kernel(tsr_dtype input, tsr_dtype type, tsr_gemm_kernel own) {
    own.min_arch = own.max_arch = 90;
    return tsr_gemm_cuda_kernel(input, type, own);
}

} // namespace hopper

#endif
