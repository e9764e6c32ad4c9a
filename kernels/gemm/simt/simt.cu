/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major, any shape; IEEE multiply-adds on the CUDA cores.
 * Mapping: 8 warps make a tile of 256 × 128 (fp32) or 128 × 128 (fp64) of C; a warp's 8 × 4 lanes own 8 × 16 (8 × 8)
 * elements each. Shared memory holds columns of A and rows of B (simt_operands.h, simt_stages.h): A is packed so
 * beforehand, or turned on the way where few columns of C would pay for that; B stays as it is. On sm_90a a
 * warpgroup of its own fills the stages of a pipeline, by TMA and, where A turns, by asynchronous copies of
 * single elements that complete on the same barriers, and gives registers to the warps that multiply; elsewhere all
 * threads load the next panel into registers before they multiply one, and store it behind that. Blocks stay on
 * their multiprocessor and walk C in bands of 8 rows of tiles, which share their panels in the L2 cache; they share
 * the tiles left over in the end. Tiles too few for the device are cut along k, and a second kernel adds up the parts.
 * The registers' two banks give one operand each a cycle, and a multiply-add wants three: neighbours share one,
 * which the operand cache keeps, and what the compiler makes of the loop (registers, order) decides how often the
 * other two stand in one bank.
 * A block uses: 199872 (fp32) or 200416 (fp64) bytes of shared memory and 384 threads of 168 registers, of which 256
 * get 240, on sm_90a; 50 or 35 KiB, 256 threads and at most 255 registers elsewhere. One block a multiprocessor.
 * Requirements: workspace for a copy of B, where A is packed (n ≥ 2560) for that, too, k·n and m·k elements and
 * padding, and at most 33 MiB for parts of sums.
 * Arithmetic intensity: 256·128/(256+128)/2 = 42.7 flop/byte in fp32; 128·128/(128+128)/4 = 16 in fp64.
 * Measured on an H200, 2026-11-21, TFLOP/s, cuBLAS SGEMM in turns with it in brackets: fp32 54.7 (50.3) at 4096,
 * 56.1 (50.9) at 8192, 84 % of the CUDA cores' peak, 57.0 (54.0) at 16384, 55.6 (47.8) at 8191; 512 × 8192 × 8192 54
 * (50), 256 × 256 × 100000 49 (47). fp64 26.5 at 4096, 26.3 at 8192, 78 %.
 * Reference: Volkov and Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008; packing: Goto and van de
 * Geijn, Anatomy of high-performance matrix multiplication, TOMS 2008. */
#include "kernels/gemm/simt/simt_stages.h"

namespace {

/* along k in the body of the innermost loop: it must stay in the instruction cache */
template <typename T> constexpr int STEPS = sizeof(T) == sizeof(float) ? 8 : K<T>;
template <typename T> constexpr int LANES_N = 32 / Tile<T>::LANES_M;

/* ---- multiplying ----------------------------------------------------------------------------- */

/* COUNT elements of a thread: groups of 16 bytes, LANES of them side by side. */
template <typename T, int COUNT, int LANES> __device__ __forceinline__ void load_own(T (&own)[COUNT], const T *row) {
#pragma unroll
    for (int g = 0; g < COUNT / GROUP<T>; g++) take(own + g * GROUP<T>, row + g * LANES * GROUP<T>);
}

/* `panels` panels of the pipeline into `sum`; the next step's elements are loaded while the present ones are
 * multiplied. Neighbouring multiply-adds share an operand, down one column of `sum` and up the next; the order of TURN
 * suits the registers the compiler picks. */
template <typename T>
__device__ __forceinline__ void multiply(const Work<T> &w, Stages<T> &stages, int panels, int own_row, int own_col,
                                         T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N]) {
    constexpr int PITCH_A = PITCH<T>;
    constexpr int N = Tile<T>::N;
    constexpr int OWN_M = Tile<T>::OWN_M;
    constexpr int OWN_N = Tile<T>::OWN_N;
    constexpr int LANES_M = Tile<T>::LANES_M;
    constexpr int TURN[OWN_M] = {7, 2, 4, 3, 6, 0, 5, 1};
#pragma unroll 1
    for (int t = 0; t < panels; t++) {
        T own_a[2][OWN_M], own_b[2][OWN_N];
        stages.wait(w);
        const T *a = stages.stage() + own_row, *b = stages.stage() + A_ELEMENTS<T> + own_col;
        load_own<T, OWN_M, LANES_M>(own_a[0], a);
        load_own<T, OWN_N, LANES_N<T>>(own_b[0], b);
#pragma unroll 1
        for (int step = 0; step < K<T>; step += STEPS<T>, a += STEPS<T> * PITCH_A, b += STEPS<T> * N) {
            /* The last loads of a panel are not used. A branch around them would separate loads from multiply-adds. */
            const bool more = step + STEPS<T> < K<T>;
            const T *next_a = more ? a + STEPS<T> * PITCH_A : stages.idle() + own_row,
                    *next_b = more ? b + STEPS<T> * N : stages.idle() + own_col;
#pragma unroll
            for (int l = 0; l < STEPS<T>; l++) {
                if (l + 1 < STEPS<T> || STEPS<T> < K<T>) { /* known to the compiler */
                    load_own<T, OWN_M, LANES_M>(own_a[(l + 1) % 2], l + 1 < STEPS<T> ? a + (l + 1) * PITCH_A : next_a);
                    load_own<T, OWN_N, LANES_N<T>>(own_b[(l + 1) % 2], l + 1 < STEPS<T> ? b + (l + 1) * N : next_b);
                }
#pragma unroll
                for (int j = 0; j < OWN_N; j++)
#pragma unroll
                    for (int i = 0; i < OWN_M; i++) {
                        const int at = TURN[j % 2 ? OWN_M - 1 - i : i];
                        sum[at][j] = fma(own_a[l % 2][at], own_b[l % 2][j], sum[at][j]);
                    }
            }
        }
        stages.done(w);
    }
}

/* ---- storing --------------------------------------------------------------------------------- */

/* Where thread `threadIdx.x` owns elements of a tile: the first of them, and row i of its own. */
template <typename T> __device__ __forceinline__ int first_row() {
    constexpr int WARPS_N = THREADS / 32 / Tile<T>::WARPS_M;
    return (int)threadIdx.x / 32 / WARPS_N * Tile<T>::LANES_M * Tile<T>::OWN_M +
           (int)threadIdx.x % 32 / LANES_N<T> * GROUP<T>;
}
template <typename T> __device__ __forceinline__ int first_col() {
    constexpr int WARPS_N = THREADS / 32 / Tile<T>::WARPS_M;
    return (int)threadIdx.x / 32 % WARPS_N * LANES_N<T> * Tile<T>::OWN_N + (int)threadIdx.x % LANES_N<T> * GROUP<T>;
}
template <typename T> __device__ __forceinline__ int row_of(int i) {
    return i / GROUP<T> * Tile<T>::LANES_M * GROUP<T> + i % GROUP<T>;
}

/* GROUP sums to C, of whose row `cols` elements are left. Always an addition: stored as they are, the sums would
 * have to stand in registers side by side, like the operands, and meet them in the same register banks all along k. */
template <typename T>
__device__ __forceinline__ void store_group(const T *sum, T *c, int64_t cols, bool accumulate, bool wide) {
    Group<T> group = {};
    if (wide && cols >= GROUP<T>) {
        if (accumulate) group = *reinterpret_cast<const Group<T> *>(c);
#pragma unroll
        for (int e = 0; e < GROUP<T>; e++) group.at[e] += sum[e];
        *reinterpret_cast<Group<T> *>(c) = group;
    } else {
#pragma unroll
        for (int e = 0; e < GROUP<T>; e++)
            if (e < cols) c[e] = (accumulate ? c[e] : T(0)) + sum[e];
    }
}

/* A thread's sums to C. */
template <typename T>
__device__ __forceinline__ void store(const Work<T> &w, int tile, const T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N]) {
    const hopper::TilePlace place = w.place_of(tile);
    const int64_t row = (int64_t)place.row * Tile<T>::M + first_row<T>(),
                  col = (int64_t)place.col * Tile<T>::N + first_col<T>();
#pragma unroll
    for (int i = 0; i < Tile<T>::OWN_M; i++) {
        if (row + row_of<T>(i) >= w.m) continue;
#pragma unroll
        for (int g = 0; g < Tile<T>::OWN_N / GROUP<T>; g++) {
            const int64_t at = col + g * LANES_N<T> * GROUP<T>;
            store_group(sum[i] + g * GROUP<T>, w.c + (row + row_of<T>(i)) * w.ldc + at, w.n - at, w.accumulate,
                        w.wide_c);
        }
    }
}

/* A thread's elements of a tile as sums, and as parts for the gather. */
template <typename T> struct Simt : hopper::Parts<T, Tile<T>::M, Tile<T>::N, UNIT, THREADS, 1, GROUP<T>> {
    typedef ::Work<T> Work;
    static constexpr int UNROLL = 4, VALUES = GROUP<T>;
    static constexpr hopper::Cut CUT = {
        .unit = 4, .handing = 4, .gathering = 4, .parts = 132, .full = hopper::FULL_DEVICE}; /* in units of k */
    static __device__ __forceinline__ bool left_out(const Work &w) { return tsr_gemm_idle(w.predicate); }
    static __device__ __forceinline__ void put(const Work &w, int tile, int group, int, const T (&sum)[VALUES]) {
        constexpr int GROUPS_ROW = Tile<T>::OWN_N / VALUES;
        const hopper::TilePlace place = w.place_of(tile);
        const int64_t row = (int64_t)place.row * Tile<T>::M + first_row<T>() + row_of<T>(group / GROUPS_ROW);
        const int64_t col = (int64_t)place.col * Tile<T>::N + first_col<T>() + group % GROUPS_ROW * LANES_N<T> * VALUES;
        if (row < w.m) store_group(sum, w.c + row * w.ldc + col, w.n - col, w.accumulate, w.wide_c);
    }
};

#ifdef TSR_SIMT_TMA
/* The kernel as hopper/persistent.h wants it. */
template <typename T> struct SimtTma : hopper::Persistent<Simt<T>> {
    typedef ::Work<T> Work;
    typedef ::Pipe<T> Pipe;
    typedef typename Pipe::State State;
    typedef T Sums[Tile<T>::OWN_M][Tile<T>::OWN_N];
    static constexpr int HOLDERS = ::THREADS, BARRIER = 1;
    static constexpr int RELEASING = ::THREADS;
    static constexpr int PRODUCER_REGISTERS = 24;
    static constexpr bool WGMMA_ADDS = false;

    static __device__ __forceinline__ T &at(Sums &sum, int i) { return sum[i / Tile<T>::OWN_N][i % Tile<T>::OWN_N]; }
    /* the whole warpgroup turns A */
    static __device__ __forceinline__ uint32_t filling(const Work &w) { return w.packed ? 1 : 1 + PRODUCERS; }
    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, State &at,
                                                 const hopper::WorkTile &work) {
        for (Panels p = panels_of(w, work); p.count > 0; p.count--, p.k += K<T>, at.step()) {
            uint64_t *full = pipe.full(at.stage);
            T *stage = stage_of<T>(pipe, at.stage);
            hopper::barrier_wait(pipe.empty(at.stage), at.phase ^ 1); /* as all are at first */
            if (threadIdx.x == ::THREADS) {
                hopper::barrier_expect(full, ((w.packed ? A_ELEMENTS<T> : 0) + B_ELEMENTS<T>)*sizeof(T));
                if (w.packed) hopper::copy_bulk(stage, packed_at(w, p.row, p.k), A_ELEMENTS<T> * sizeof(T), full);
                hopper::copy_tensor(stage + A_ELEMENTS<T>, &w.map_b, (int)p.k, (int)p.col, full);
            }
            if (w.packed) continue;
            if (p.row + Tile<T>::M <= w.m && p.k + K<T> <= w.k) transpose<true>(w, stage, p.row, p.k);
            else transpose<false>(w, stage, p.row, p.k);
            hopper::copies_arrive(full);
        }
    }
    static __device__ __forceinline__ void close(const Pipe &, State) { hopper::copies_wait(); }

    struct Lane {
        const int own_row = first_row<T>(), own_col = first_col<T>();
    };
    struct Consumer : hopper::EveryWork {
        __device__ __forceinline__ void multiply(const Work &w, const Pipe &pipe, const Lane &lane, State &at,
                                                 const hopper::WorkTile &work, bool, Sums &sum) const {
            Stages<T> stages = {pipe, at};
            ::multiply(w, stages, panels_of(w, work).count, lane.own_row, lane.own_col, sum);
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &, const Lane &, const hopper::WorkTile &work,
                                               const Sums &sum) const {
            if (work.to < 0) store(w, work.tile, sum);
            else Simt<T>::leave(w, work.to, sum[0]);
        }
    };
};
#else
/* The same without TMA: all threads bring panels in and multiply them. */
template <typename T> __device__ __forceinline__ void run(const Work<T> &w) {
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    const int worker = (int)blockIdx.x;
    const auto barrier = [] { __syncthreads(); };
    Stages<T> stages(w, shared);
    hopper::TileScheduler scheduler(w.plan, worker);
    for (hopper::WorkTile work; scheduler.next(w.plan, &work);) {
        const Panels panels = panels_of(w, work);
        T sum[Tile<T>::OWN_M][Tile<T>::OWN_N] = {};
        if (work.from >= 0) {
            hopper::take_over(w.plan, worker, 0, threadIdx.x == 0, barrier);
            Simt<T>::go_on(w, work.from, sum[0]);
        }
        stages.begin(w, panels);
        multiply(w, stages, panels.count, first_row<T>(), first_col<T>(), sum);
        if (work.to < 0) store(w, work.tile, sum);
        else Simt<T>::leave(w, work.to, sum[0]);
        if (work.handed) hopper::hand_over(w.plan, worker, 0, threadIdx.x == 0, barrier);
    }
}
#endif

template <typename T> __global__ void __launch_bounds__(ALL_THREADS, 1) gemm_simt(const __grid_constant__ Work<T> w) {
    if (Simt<T>::left_out(w)) return;
#ifdef TSR_SIMT_TMA
    hopper::run<SimtTma<T>>(w);
#else
    run(w);
#endif
}

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

template <typename T> size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    return packed_a_bytes<T>(m, n, k) + copied_b_bytes<T>(k, n) + hopper::parts_bytes_of<Simt<T>>(m, n, k);
}

/* What the code that the device will run was compiled to. */
struct Build {
    bool tma; /* B's panels come by TMA */
    int threads, panel;
    size_t shared_bytes;
};

template <typename T> tsr_status prepare(Build *build) {
    using Sizes = Tile<T>;
    cudaFuncAttributes attributes;
    TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, gemm_simt<T>)));
    /* as __launch_bounds__ says */
    build->tma = attributes.ptxVersion >= 90 && attributes.maxThreadsPerBlock > THREADS;
    const int stages = build->tma ? Sizes::STAGES_TMA : STAGES_PLAIN;
    build->threads = build->tma ? THREADS + PRODUCERS : THREADS;
    build->panel = build->tma ? Sizes::PANEL_TMA : Sizes::PANEL_PLAIN;
    build->shared_bytes = ((size_t)stages * build->panel * (PITCH<T> + Sizes::N) + IDLE) * sizeof(T) +
                          (build->tma ? 2 * stages * sizeof(uint64_t) + BOX_ALIGNMENT : 0);
    return tsr_gemm_allow_shared(gemm_simt<T>, build->shared_bytes);
}

template <typename T>
tsr_status multiply_tiles(tsr_stream *stream, const Build &build, hopper::Cut cut, Work<T> w, void *parts) {
    TSR_TRY(hopper::plan_tiles(cut, &w, tsr_ceil_div(w.k, UNIT)));
    TSR_TRY(hopper::parts_clear(stream, &w, parts));
    TSR_TRY(TSR_LAUNCH(gemm_simt<T>, (unsigned)w.plan.workers, build.threads, build.shared_bytes, stream, w));
    return hopper::gather_launch<Simt<T>>(stream, w);
}

template <typename T> tsr_status launch_cut(tsr_stream *stream, const tsr_gemm_args *args, hopper::Cut cut) {
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    unsigned char *at_b = (unsigned char *)args->workspace + packed_a_bytes<T>(m, n, k);
    Build build;
    TSR_TRY(prepare<T>(&build));
    Work<T> w = {};
    Preparing<T> p = {};
    w.a = (const T *)args->a;
    w.lda = args->lda;
    w.b = (const T *)args->b;
    w.ldb = args->ldb;
    w.k = k;
    hopper::take_product(&w, args, Tile<T>::M, Tile<T>::N);
    p.m = m;
    p.n = n;
    p.k = k;
    p.lda = w.lda;
    p.ldb = w.ldb;
    p.predicate = w.predicate = args->predicate;
    w.packed = packs(n);
    if (w.packed) {
        p.a = w.a;
        w.a = p.to_a = (T *)args->workspace;
    }
    if (build.tma && !reached(w.b, w.ldb)) {
        p.b = w.b;
        w.b = p.to_b = (T *)at_b;
        w.ldb = p.ld_to_b = copied_ld<T>(n);
    }
    TSR_TRY(prepare_where(stream, p));
    w.wide_b = aligned(w.b, w.ldb);
    w.wide_c = aligned(w.c, w.ldc);
#ifdef TSR_HAVE_HOPPER
    if (build.tma)
        TSR_TRY(tsr_tensor_map(w.b, Tile<T>::TYPE, k, n, w.ldb, {.rows = build.panel, .cols = Tile<T>::N}, &w.map_b));
#endif
    return multiply_tiles(stream, build, cut, w, at_b + copied_b_bytes<T>(k, n));
}

template <typename T> tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut<T>(stream, args, Simt<T>::CUT);
}
template <typename T> tsr_status launch_reproducible(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut<T>(stream, args, hopper::whole(Simt<T>::CUT));
}

template <typename T> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    Build build;
    TSR_TRY(prepare<T>(&build));
    return tsr_gemm_describe(gemm_simt<T>, Tile<T>::M, Tile<T>::N, build.panel, build.threads, build.shared_bytes,
                             sizeof(T), m, n, k, out);
}

/* On an H200 `tiled` and `checked` take 11 and 12 µs at 256³ and 34 and 36 µs at 512³ in fp32, 17 and 18 µs at 256³
 * and 61 and 62 µs at 512³ in fp64, and `simt` 28 to 30 µs at all of these. TMA counts rows and columns in 31 bits, an
 * int panels of k. */
template <typename T> tsr_gemm_substitute substitute(int64_t m, int64_t n, int64_t k) {
    constexpr bool SINGLE = sizeof(T) == sizeof(float);
    if (tsr_gemm_is_small(SINGLE ? 440 : 330, m, n, k))
        return {.kernel = SINGLE ? &tsr_gemm_tiled_f32 : &tsr_gemm_tiled_f64,
                .why = SINGLE ? "m*n*k < 440^3, k < 440" : "m*n*k < 330^3, k < 330",
                .unable = k == 0};
    if (n > 1 << 30 || k > 1 << 28)
        return {.kernel = SINGLE ? &tsr_gemm_coarse_f32 : &tsr_gemm_coarse_f64,
                .why = "n > 2^30 or k > 2^28",
                .unable = true};
    return {};
}

template <typename T> constexpr tsr_gemm_kernel table(tsr_dtype type) {
    return tsr_gemm_cuda_kernel(type, type,
                                {.name = "simt",
                                 .what = "register tiles, asynchronous ring of stages",
                                 .speed_rank = 55,
                                 .substitute = substitute<T>,
                                 .predicated = true,
                                 .batched = type == TSR_F32 ? &tsr_gemm_batched_f32 : nullptr,
                                 .workspace_bytes = workspace_bytes<T>,
                                 .shape = shape<T>,
                                 .launch = launch<T>,
                                 .launch_reproducible = launch_reproducible<T>});
}

} // namespace

const tsr_gemm_kernel tsr_gemm_simt_f32 = table<float>(TSR_F32);
const tsr_gemm_kernel tsr_gemm_simt_f64 = table<double>(TSR_F64);
