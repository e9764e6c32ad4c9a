/* What the kernels `batched` share: many small products in one launch. A block makes a tile of one product at a time.
 * Its panels come by asynchronous copies into a ring of stages; several blocks share a multiprocessor, so that one
 * multiplies while another waits for memory or stores.
 * A kernel is a struct, `Kind` below. It says
 *   In, Out            of A and B, and of C
 *   TM, TN, TK         a block's tile of C, and a panel
 *   STAGES, THREADS
 *   BLOCKS             at least so many blocks share a multiprocessor, as far as registers decide
 *   PITCH_A, PITCH_B   elements from row to row of a stage: TM rows of A, TK rows of B
 *   place_a(row, col)  where an element of A's panel stands, col a multiple of 16 bytes
 *   Sums               of a thread
 *   EXISTS             whether this is the code of an architecture that it runs on
 *   multiply(a, b, sum), store(w, c, rows, cols, sum)
 * Device code and its launches. */
#ifndef TSR_KERNELS_GEMM_BATCHED_BATCHED_H
#define TSR_KERNELS_GEMM_BATCHED_BATCHED_H

#include "kernels/gemm/gemm_cuda.h"

#if defined(TSR_KERNELS_GEMM_HOPPER_INSTRUCTIONS_H) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
#include "kernels/gemm/hopper/instructions.h"
#define TSR_BATCHED_ASYNC 1
#endif

namespace batched {

/* The argument of a kernel. */
template <typename In, typename Out> struct Work {
    int64_t m, n, k;
    const In *a, *b;
    Out *c;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c; /* elements from product to product */
    int64_t tiles_n, tiles;               /* along n, of a product */
    int64_t first;                        /* tile of the launch, counted over all products */
    bool accumulate;
    bool wide_c; /* 16 bytes can be reached at once */
};

/* ---- panels ---------------------------------------------------------------------------------- */

/* COUNT elements to shared memory, of which the first `left` are read and the rest is zero. */
template <int COUNT, typename T> __device__ __forceinline__ void copy_group(T *to, const T *from, int left) {
#pragma unroll
    for (int e = 0; e < COUNT; e++) to[e] = e < left ? from[e] : T(0);
}
/* 16 bytes to shared memory, or zeros. */
template <typename T> __device__ __forceinline__ void copy_16(T *to, const T *from, bool inside) {
#ifdef TSR_BATCHED_ASYNC
    hopper::copy_async_16(hopper::shared_address(to), from, inside);
#else
    constexpr int COUNT = 16 / (int)sizeof(T);
    copy_group<COUNT>(to, from, inside ? COUNT : 0);
#endif
}
__device__ __forceinline__ void commit() {
#ifdef TSR_BATCHED_ASYNC
    hopper::copies_commit();
#endif
}
template <int PENDING> __device__ __forceinline__ void wait() {
#ifdef TSR_BATCHED_ASYNC
    hopper::copies_wait_group<PENDING>();
#endif
}

/* A thread's share of the copies of ROWS × COLS elements to rows PITCH apart: one group of 16 bytes of every STEP-th
 * row. */
template <typename T, int ROWS, int COLS, int PITCH, int THREADS> struct Share {
    static constexpr int GROUP = 16 / (int)sizeof(T);
    static constexpr int GROUPS = COLS / GROUP;
    static constexpr int STEP = THREADS / GROUPS;
    static_assert(THREADS % GROUPS == 0 && ROWS % STEP == 0 && STEP % 2 == 0, "the same group of even or odd rows");
    static __device__ __forceinline__ int row() { return (int)threadIdx.x / GROUPS; }
    static __device__ __forceinline__ int col() { return (int)threadIdx.x % GROUPS * GROUP; }

    /* to: of the panel and own: of the matrix, where this thread's first group stands. rows × cols of the panel lie in
     * the matrix; the others become zeros. WIDE: rows begin at multiples of 16 bytes. */
    template <bool WIDE>
    static __device__ __forceinline__ void load(T *to, const T *own, int64_t ld, int rows, int cols) {
        const int rest = cols - col(), most = rest < 0 ? 0 : rest < GROUP ? rest : GROUP;
        /* a copy of 16 bytes reads beyond the matrix where that ends inside them, whatever it leaves of them */
        const bool whole = WIDE && most % GROUP == 0;
#pragma unroll
        for (int i = 0; i < ROWS; i += STEP) {
            const int left = row() + i < rows ? most : 0;
            const T *x = own + i * ld;
            if (whole) copy_16(to + i * PITCH, x, left > 0);
            else copy_group<GROUP>(to + i * PITCH, x, left);
        }
    }
};

/* ---- the kernel ------------------------------------------------------------------------------ */

template <typename Kind> constexpr int A_ELEMENTS = Kind::TM *Kind::PITCH_A;
template <typename Kind> constexpr int STAGE_ELEMENTS = A_ELEMENTS<Kind> + Kind::TK *Kind::PITCH_B;
template <typename Kind>
constexpr size_t SHARED_BYTES = (size_t)Kind::STAGES *STAGE_ELEMENTS<Kind> * sizeof(typename Kind::In);

__device__ __forceinline__ int within(int64_t length, int most) { return length < most ? (int)length : most; }

/* Where the stage after that at `at` begins. */
template <typename Kind> __device__ __forceinline__ int next_stage(int at) {
    constexpr int ALL = Kind::STAGES * STAGE_ELEMENTS<Kind>;
    return at + STAGE_ELEMENTS<Kind> == ALL ? 0 : at + STAGE_ELEMENTS<Kind>;
}

/* The tile at (row, col) of a product, whose operands begin at w.a and w.b. */
template <typename Kind, bool WIDE>
__device__ __forceinline__ void make_tile(const Work<typename Kind::In, typename Kind::Out> &w,
                                          typename Kind::In *stages, int64_t row, int64_t col) {
    typedef typename Kind::In In;
    typedef Share<In, Kind::TM, Kind::TK, Kind::PITCH_A, Kind::THREADS> A;
    typedef Share<In, Kind::TK, Kind::TN, Kind::PITCH_B, Kind::THREADS> B;
    typename Kind::Sums sum = {};
    const int rows = within(w.m - row, Kind::TM), cols = within(w.n - col, Kind::TN);
    /* this thread's first group; where it lies in no matrix, nothing is read from there */
    const In *a = w.a + (row + A::row()) * w.lda + A::col(), *b = w.b + B::row() * w.ldb + col + B::col();
    In *to_a = stages + Kind::place_a(A::row(), A::col());
    In *to_b = stages + A_ELEMENTS<Kind> + B::row() * Kind::PITCH_B + B::col();
    int64_t left = w.k; /* along k, to bring */
    int into = 0;       /* the stage that the next panel comes into */
    const auto bring = [&] {
        if (left > 0) {
            const int depth = within(left, Kind::TK);
            A::template load<WIDE>(to_a + into, a, w.lda, rows, depth);
            B::template load<WIDE>(to_b + into, b, w.ldb, depth, cols);
        }
        commit(); /* a group without copies where there is no panel: the groups are counted */
        left -= Kind::TK;
        a += Kind::TK;
        b += Kind::TK * w.ldb;
        into = next_stage<Kind>(into);
    };
#pragma unroll
    for (int stage = 0; stage < Kind::STAGES - 1; stage++) bring();
    int at = 0;
#pragma unroll 1
    for (int64_t k = 0; k < w.k; k += Kind::TK) {
        wait<Kind::STAGES - 2>();
        __syncthreads(); /* the panel is there for all, and all are done with the one before */
        bring();
        Kind::multiply(stages + at, stages + at + A_ELEMENTS<Kind>, sum);
        at = next_stage<Kind>(at);
    }
    Kind::store(w, w.c + row * w.ldc + col, rows, cols, sum);
}

template <typename Kind, bool WIDE>
__global__ void __launch_bounds__(Kind::THREADS, Kind::BLOCKS)
    gemm_batched(const __grid_constant__ Work<typename Kind::In, typename Kind::Out> all) {
    if (!Kind::EXISTS) return __trap(); /* the registry never gets here */
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    const int64_t work = all.first + blockIdx.x;
    const int64_t product = all.tiles == 1 ? work : work / all.tiles; /* a division takes as long as a small panel */
    const int tile = (int)(work - product * all.tiles), tiles_n = (int)all.tiles_n;
    Work<typename Kind::In, typename Kind::Out> w = all;
    w.a += product * all.stride_a;
    w.b += product * all.stride_b;
    w.c += product * all.stride_c;
    make_tile<Kind, WIDE>(w, reinterpret_cast<typename Kind::In *>(shared),
                          (int64_t)(tiles_n == 1 ? tile : tile / tiles_n) * Kind::TM,
                          (int64_t)(tiles_n == 1 ? 0 : tile % tiles_n) * Kind::TN);
}

/* ---- launches, on the host ------------------------------------------------------------------- */

/* Whether all rows of all products begin at multiples of 16 bytes. */
static inline bool aligned(const void *x, int64_t ld, int64_t stride, int64_t batch, size_t bytes) {
    return (uintptr_t)x % 16 == 0 && (size_t)ld * bytes % 16 == 0 && (batch < 2 || (size_t)stride * bytes % 16 == 0);
}

/* A block a tile: one launch, unless a grid cannot hold as many. */
template <typename Kind, bool WIDE>
tsr_status launch_tiles(tsr_stream *stream, Work<typename Kind::In, typename Kind::Out> w, int64_t tiles) {
    int most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    TSR_TRY(tsr_gemm_allow_shared(gemm_batched<Kind, WIDE>, SHARED_BYTES<Kind>));
    for (w.first = 0; w.first < tiles; w.first += most)
        TSR_TRY(TSR_LAUNCH((gemm_batched<Kind, WIDE>), (unsigned)tsr_min(tiles - w.first, most), Kind::THREADS,
                           SHARED_BYTES<Kind>, stream, w));
    return TSR_OK;
}

template <typename Kind> tsr_status launch(tsr_stream *stream, const tsr_gemm_args *args) {
    typedef typename Kind::In In;
    typedef typename Kind::Out Out;
    const int64_t batch = tsr_max(1, args->batch);
    Work<In, Out> w = {};
    w.m = args->m;
    w.n = args->n;
    w.k = args->k;
    w.a = (const In *)args->a;
    w.b = (const In *)args->b;
    w.c = (Out *)args->c;
    w.lda = args->lda;
    w.ldb = args->ldb;
    w.ldc = args->ldc;
    w.stride_a = args->stride_a;
    w.stride_b = args->stride_b;
    w.stride_c = args->stride_c;
    w.tiles_n = tsr_ceil_div(w.n, Kind::TN);
    w.tiles = w.tiles_n * tsr_ceil_div(w.m, Kind::TM);
    w.accumulate = args->accumulate;
    w.wide_c = aligned(w.c, w.ldc, w.stride_c, batch, sizeof(Out));
    const bool wide =
        aligned(w.a, w.lda, w.stride_a, batch, sizeof(In)) && aligned(w.b, w.ldb, w.stride_b, batch, sizeof(In));
    return wide ? launch_tiles<Kind, true>(stream, w, w.tiles * batch)
                : launch_tiles<Kind, false>(stream, w, w.tiles * batch);
}

template <typename Kind> tsr_status shape(int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    return tsr_gemm_describe(gemm_batched<Kind, true>, Kind::TM, Kind::TN, Kind::TK, Kind::THREADS, SHARED_BYTES<Kind>,
                             sizeof(typename Kind::In), m, n, k, out);
}

} // namespace batched

#endif
