/* What each block of the kernel `simt` makes, and how its panels come into shared memory: stages that a
 * warpgroup of its own fills on sm_90a, all threads elsewhere. Included by simt.cu alone. */
#ifndef TSR_KERNELS_GEMM_SIMT_SIMT_STAGES_H
#define TSR_KERNELS_GEMM_SIMT_SIMT_STAGES_H

#include "kernels/gemm/hopper/gather.h"
#include "kernels/gemm/simt/simt_operands.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "kernels/gemm/hopper/persistent.h"
#define TSR_SIMT_TMA 1
#endif

namespace {

constexpr int THREADS = 256;   /* that multiply */
constexpr int PRODUCERS = 128; /* one warpgroup more with TMA */
constexpr int BAND = 8;        /* rows of tiles that blocks walk together */
constexpr int STAGES_PLAIN = 2;
constexpr int IDLE = 256; /* elements, as many as the longest row of a panel holds */

#ifdef TSR_SIMT_TMA
constexpr int ALL_THREADS = THREADS + PRODUCERS;
template <typename T> constexpr int K = Tile<T>::PANEL_TMA;
template <typename T> constexpr int STAGES = Tile<T>::STAGES_TMA;
#else
constexpr int ALL_THREADS = THREADS;
template <typename T> constexpr int K = Tile<T>::PANEL_PLAIN;
template <typename T> constexpr int STAGES = STAGES_PLAIN;
template <typename T> constexpr int PART_A = K<T> *Tile<T>::M / THREADS; /* elements of a panel that a thread brings */
template <typename T> constexpr int PART_B = K<T> *Tile<T>::N / THREADS;
template <typename T> constexpr int ROWS_A = THREADS / K<T>; /* of A that all threads reach at once */
#endif
template <typename T> constexpr int A_ELEMENTS = K<T> *PITCH<T>; /* of a stage: columns of A, then rows of B */
template <typename T> constexpr int B_ELEMENTS = K<T> *Tile<T>::N;
template <typename T> constexpr int STAGE_ELEMENTS = A_ELEMENTS<T> + B_ELEMENTS<T>;

template <typename T> using Group = hopper::Group<T, GROUP<T>>;
/* A group from shared or global memory to a thread's own elements. */
template <typename T> __device__ __forceinline__ void take(T *own, const T *from) {
    const Group<T> group = *reinterpret_cast<const Group<T> *>(from);
#pragma unroll
    for (int e = 0; e < GROUP<T>; e++) own[e] = group.at[e];
}

template <typename T> struct Work {
    const T *a, *b; /* a: packed or not; b is for devices without a TMA */
    T *c;
    int64_t lda, ldb, ldc;
    int64_t m, n, k;
    bool packed;         /* A */
    bool wide_b, wide_c; /* 16 bytes can be reached at once */
    bool accumulate;
    int tiles_m, tiles_n;
    hopper::TilePlan plan;     /* its panels: units of k */
    T *parts;                  /* of sums */
    Map map_b;                 /* for TMA */
    const unsigned *predicate; /* as in tsr_gemm_args */

    __device__ __forceinline__ hopper::TilePlace place_of(int tile) const {
        return hopper::tile_at(tile, tiles_m, tiles_n, BAND);
    }
};

/* ---- bringing panels in ---------------------------------------------------------------------- */

/* The panels of a work tile: the first row of A and column of B, the first of k, and how many panels from there. */
struct Panels {
    int64_t row, col, k;
    int count;
};

template <typename T> __device__ __forceinline__ Panels panels_of(const Work<T> &w, const hopper::WorkTile &s) {
    const hopper::TilePlace tile = w.place_of(s.tile);
    return {(int64_t)tile.row * Tile<T>::M, (int64_t)tile.col * Tile<T>::N, (int64_t)s.first * UNIT,
            (s.last - s.first) * (UNIT / K<T>)};
}

/* A panel of a packed A. */
template <typename T> __device__ __forceinline__ const T *packed_at(const Work<T> &w, int64_t row, int64_t k) {
    return w.a + (row / Tile<T>::M * w.plan.panels * UNIT + k) * PITCH<T>;
}

#ifdef TSR_SIMT_TMA
template <typename T>
using Pipe = hopper::Pipeline<STAGES<T>, STAGE_ELEMENTS<T> *(int)sizeof(T), IDLE *(int)sizeof(T), 1, BOX_ALIGNMENT>;

template <typename T> __device__ __forceinline__ T *stage_of(const Pipe<T> &pipe, int stage) {
    return reinterpret_cast<T *>(pipe.stages) + stage * STAGE_ELEMENTS<T>;
}

/* A's panel at row and k to a stage, transposed: a warp takes 8 elements along k of 4 rows at a time. WHOLE: all of it
 * lies in A. */
template <bool WHOLE, typename T>
__device__ __forceinline__ void transpose(const Work<T> &w, T *stage, int64_t row, int64_t k) {
    constexpr int ALONG = 8, ROWS = PRODUCERS / ALONG;
    const int x = (int)threadIdx.x % ALONG, y = ((int)threadIdx.x - THREADS) / ALONG;
    const T *from = w.a + (row + y) * w.lda + k + x;
    const uint32_t to = hopper::shared_address(stage + x * PITCH<T> + y);
#pragma unroll(WHOLE ? Tile <T>::M / ROWS : 1)
    for (int i = 0; i < Tile<T>::M; i += ROWS, from += ROWS * w.lda) {
#pragma unroll
        for (int l = 0; l < K<T>; l += ALONG) {
            const bool inside = WHOLE || (row + y + i < w.m && k + x + l < w.k);
            hopper::copy_async<sizeof(T)>(to + (l * PITCH<T> + i) * (int)sizeof(T), inside ? from + l : w.a, inside);
        }
    }
}

/* The pipeline, and where in it a thread is. */
template <typename T> struct Stages {
    const Pipe<T> &pipe;
    typename Pipe<T>::State &at;

    __device__ __forceinline__ T *stage() const { return stage_of<T>(pipe, at.stage); }
    __device__ __forceinline__ const T *idle() const { return stage_of<T>(pipe, STAGES<T>); }
    __device__ __forceinline__ void wait(const Work<T> &) { pipe.wait(at); }
    /* Every thread arrives: racecheck does not follow a warp's reads through one lane to the asynchronous copies
     * that write next. */
    __device__ __forceinline__ void done(const Work<T> &) {
        hopper::barrier_arrive(pipe.empty(at.stage));
        at.step();
    }
};
#else
/* Two stages of panels, the next of which travels through registers while one is multiplied. */
template <typename T> struct Stages {
    T *stages;   /* and IDLE elements behind them, which are never written */
    int at;      /* the present stage */
    Panels next; /* to load */
    bool loaded; /* a panel is on its way, in registers */
    T part_a[PART_A<T>], part_b[PART_B<T>];

    __device__ __forceinline__ Stages(const Work<T> &, unsigned char *shared)
        : stages(reinterpret_cast<T *>(shared)), at(0), loaded(false) {}
    __device__ __forceinline__ T *stage() const { return stages + at * STAGE_ELEMENTS<T>; }
    __device__ __forceinline__ const T *idle() const { return stages + STAGES<T> * STAGE_ELEMENTS<T>; }
    /* This thread's part of A's next panel: groups of its columns where it is packed, else one column of every
     * ROWS_A-th row. */
    __device__ __forceinline__ void load_a(const Work<T> &w) {
        if (w.packed) {
            const T *from = packed_at(w, next.row, next.k);
#pragma unroll
            for (int i = 0; i < PART_A<T> / GROUP<T>; i++) take(part_a + i * GROUP<T>, from + group_a(i));
        } else {
            const int x = (int)threadIdx.x % K<T>, y = (int)threadIdx.x / K<T>;
            const T *from = w.a + (next.row + y) * w.lda + next.k + x;
#pragma unroll
            for (int i = 0; i < PART_A<T>; i++, from += ROWS_A<T> * w.lda)
                part_a[i] = next.row + y + i * ROWS_A<T> < w.m && next.k + x < w.k ? *from : T(0);
        }
    }
    __device__ __forceinline__ void load_b(const Work<T> &w) {
        constexpr int GROUPS = Tile<T>::N / GROUP<T>;
#pragma unroll
        for (int i = 0; i < PART_B<T> / GROUP<T>; i++) {
            const int at = (int)threadIdx.x + i * THREADS;
            const int64_t row = next.k + at / GROUPS;
            const int64_t col = next.col + at % GROUPS * GROUP<T>;
            const int64_t left = row < w.k ? w.n - col : 0;
            const T *from = w.b + row * w.ldb + col;
            if (w.wide_b && left >= GROUP<T>) take(part_b + i * GROUP<T>, from);
            else {
#pragma unroll
                for (int e = 0; e < GROUP<T>; e++) part_b[i * GROUP<T> + e] = e < left ? from[e] : T(0);
            }
        }
    }
    /* Where group i of this thread stands in A's panel. */
    static __device__ __forceinline__ int group_a(int i) {
        constexpr int GROUPS = Tile<T>::M / GROUP<T>;
        const int at = (int)threadIdx.x + i * THREADS;
        return at / GROUPS * PITCH<T> + at % GROUPS * GROUP<T>;
    }
    static __device__ __forceinline__ void put(T *to, const T *own) {
        Group<T> group;
#pragma unroll
        for (int e = 0; e < GROUP<T>; e++) group.at[e] = own[e];
        *reinterpret_cast<Group<T> *>(to) = group;
    }
    __device__ __forceinline__ void load(const Work<T> &w) {
        loaded = next.count > 0;
        if (!loaded) return;
        load_a(w);
        load_b(w);
        next.k += K<T>;
        next.count--;
    }
    /* What was loaded to its stage. */
    __device__ __forceinline__ void store(const Work<T> &w, T *to) {
        if (!loaded) return;
        if (w.packed) {
#pragma unroll
            for (int i = 0; i < PART_A<T> / GROUP<T>; i++) put(to + group_a(i), part_a + i * GROUP<T>);
        } else {
            const int x = (int)threadIdx.x % K<T>, y = (int)threadIdx.x / K<T>;
#pragma unroll
            for (int i = 0; i < PART_A<T>; i++) to[x * PITCH<T> + y + i * ROWS_A<T>] = part_a[i];
        }
#pragma unroll
        for (int i = 0; i < PART_B<T> / GROUP<T>; i++)
            put(to + A_ELEMENTS<T> + ((int)threadIdx.x + i * THREADS) * GROUP<T>, part_b + i * GROUP<T>);
    }
    __device__ __forceinline__ void begin(const Work<T> &w, const Panels &p) {
        next = p;
        __syncthreads();
        load(w);
        store(w, stage());
    }
    /* After the barrier the panel is there, and the one before, whose place the next gets, has been used by all.
     * The next travels to registers while this one is multiplied. */
    __device__ __forceinline__ void wait(const Work<T> &w) {
        __syncthreads();
        load(w);
    }
    __device__ __forceinline__ void done(const Work<T> &w) {
        store(w, stages + (at ^ 1) * STAGE_ELEMENTS<T>);
        at = (at + 1) % STAGES<T>;
    }
};
#endif

} // namespace

#endif
