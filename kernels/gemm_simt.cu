/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major, any shape; IEEE multiply-adds on the CUDA cores.
 * Mapping: 8 warps make a tile of 256 × 128 (fp32) or 128 × 128 (fp64) of C; a warp's 8 × 4 lanes own 8 × 16 (8 × 8) elements each. Shared memory
 *   holds columns of A and rows of B (simt_operands.h, simt_ring.h): A is packed so beforehand, or turned on the way where few columns of C would pay for that;
 *   B stays as it is. On sm_90a a warpgroup of its own fills a ring of stages, by the copy engine and, where A turns, by asynchronous copies of
 *   single elements that complete on the same barriers, and gives registers to the warps that multiply; elsewhere all
 *   threads load the next panel into registers before they multiply one, and store it behind that. Blocks stay on their
 *   multiprocessor and walk C in bands of 8 rows of tiles, which share their panels in the L2 cache; tiles
 *   left over in the end are cut along k, in equal shares for all blocks, and a second kernel adds up the parts in a fixed order.
 * The registers' two banks give one operand each a cycle, and a multiply-add wants three: neighbours share one, which the operand cache
 *   keeps, and what the compiler makes of the loop (registers, order) decides how often the other two stand in one bank.
 * A block uses: 199872 (fp32) or 200416 (fp64) bytes of shared memory and 384 threads of 168 registers, of which 256 get 224, on sm_90a;
 *   50 or 35 KiB, 256 threads and at most 255 registers elsewhere. One block a multiprocessor.
 * Requirements: workspace for a copy of B, where A is packed (n ≥ 2560) for that, too, k·n and m·k elements and padding, and at most 40 MiB for parts of sums.
 * Arithmetic intensity: 256·128/(256+128)/2 = 42.7 flop/byte in fp32; 128·128/(128+128)/4 = 16 in fp64.
 * Measured on an H200, 2026-11-21, TFLOP/s, cuBLAS SGEMM in turns with it in brackets: fp32 54.7 (50.3) at 4096, 56.1 (50.9) at 8192, 84 % of the CUDA cores'
 *   peak, 57.0 (54.0) at 16384, 55.6 (47.8) at 8191; 512 × 8192 × 8192 54 (50), 256 × 256 × 100000 49 (47). fp64 26.5 at 4096, 26.3 at 8192, 78 %.
 * Reference: Volkov and Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008; packing: Goto and van de Geijn, Anatomy of
 *   high-performance matrix multiplication, TOMS 2008; equal shares: Osama et al., Stream-K, PPoPP 2023 (arXiv 2301.03598). */
#include "kernels/simt_ring.h"

namespace {

constexpr int MOST_SHARERS = 160; /* blocks that may share tiles; each leaves up to two parts */
constexpr int FEWEST = 4;         /* units in a share */
constexpr int WORTH = 4;          /* units that a block must save to make gathering worth it */
template <typename T> constexpr int STEPS = sizeof(T) == sizeof(float) ? 8 : K<T>; /* along k in the body of the innermost loop: it must stay in the instruction cache */
template <typename T> constexpr int LANES_N = 32 / Tile<T>::LANES_M;
template <typename T> constexpr int OWN = Tile<T>::OWN_M * Tile<T>::OWN_N;

/* ---- multiplying ---------------------------------------------------------------------------------------------------------- */

/* COUNT elements of a thread: groups of 16 bytes, LANES of them side by side. */
template <typename T, int COUNT, int LANES> __device__ __forceinline__ void load_own(T (&own)[COUNT], const T *row) {
#pragma unroll
    for (int g = 0; g < COUNT / GROUP<T>; g++) {
        const Group<T> group = *reinterpret_cast<const Group<T> *>(row + g * LANES * GROUP<T>);
#pragma unroll
        for (int e = 0; e < GROUP<T>; e++) own[g * GROUP<T> + e] = group.at[e];
    }
}

/* `panels` panels of the ring into `sum`; the next step's elements are loaded while the present ones are multiplied. Neighbouring
 * multiply-adds share an operand, down one column of `sum` and up the next; the order of TURN suits the registers the compiler picks. */
template <typename T>
__device__ __forceinline__ void multiply(const Work<T> &w, Ring<T> &ring, int panels, int own_row, int own_col, T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N]) {
    constexpr int PITCH_A = PITCH<T>, N = Tile<T>::N, OWN_M = Tile<T>::OWN_M, OWN_N = Tile<T>::OWN_N, LANES_M = Tile<T>::LANES_M;
    constexpr int TURN[OWN_M] = {2, 4, 7, 3, 6, 0, 5, 1};
#pragma unroll 1
    for (int t = 0; t < panels; t++) {
        T own_a[2][OWN_M], own_b[2][OWN_N];
        ring.wait(w);
        const T *a = ring.stage() + own_row, *b = ring.stage() + A_ELEMENTS<T> + own_col;
        load_own<T, OWN_M, LANES_M>(own_a[0], a);
        load_own<T, OWN_N, LANES_N<T>>(own_b[0], b);
#pragma unroll 1
        for (int step = 0; step < K<T>; step += STEPS<T>, a += STEPS<T> * PITCH_A, b += STEPS<T> * N) {
            /* At the end of the panel what nobody uses: a branch would keep loads and multiply-adds apart. */
            const bool more = step + STEPS<T> < K<T>;
            const T *next_a = more ? a + STEPS<T> * PITCH_A : ring.idle() + own_row, *next_b = more ? b + STEPS<T> * N : ring.idle() + own_col;
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
        ring.done(w);
    }
}

/* ---- storing -------------------------------------------------------------------------------------------------------------- */

/* Where thread `threadIdx.x` owns elements of a tile: the first of them, and row i of its own. */
template <typename T> __device__ __forceinline__ int first_row() {
    constexpr int WARPS_N = THREADS / 32 / Tile<T>::WARPS_M;
    return (int)threadIdx.x / 32 / WARPS_N * Tile<T>::LANES_M * Tile<T>::OWN_M + (int)threadIdx.x % 32 / LANES_N<T> * GROUP<T>;
}
template <typename T> __device__ __forceinline__ int first_col() {
    constexpr int WARPS_N = THREADS / 32 / Tile<T>::WARPS_M;
    return (int)threadIdx.x / 32 % WARPS_N * LANES_N<T> * Tile<T>::OWN_N + (int)threadIdx.x % LANES_N<T> * GROUP<T>;
}
template <typename T> __device__ __forceinline__ int row_of(int i) { return i / GROUP<T> * Tile<T>::LANES_M * GROUP<T> + i % GROUP<T>; }

/* GROUP sums to C, of whose row `cols` elements are left. Always an addition: stored as they are, the sums would have to stand in registers
 * side by side, like the operands, and meet them in the same register banks all along k. */
template <typename T> __device__ __forceinline__ void store_group(const T *sum, T *c, int64_t cols, bool accumulate, bool wide) {
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
template <typename T> __device__ __forceinline__ void store(const Work<T> &w, int tile, const T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N]) {
    int tile_row, tile_col;
    tile_of(w, tile, &tile_row, &tile_col);
    const int64_t row = (int64_t)tile_row * Tile<T>::M + first_row<T>(), col = (int64_t)tile_col * Tile<T>::N + first_col<T>();
#pragma unroll
    for (int i = 0; i < Tile<T>::OWN_M; i++) {
        if (row + row_of<T>(i) >= w.m) continue;
#pragma unroll
        for (int g = 0; g < Tile<T>::OWN_N / GROUP<T>; g++) {
            const int64_t at = col + g * LANES_N<T> * GROUP<T>;
            store_group(sum[i] + g * GROUP<T>, w.c + (row + row_of<T>(i)) * w.ldc + at, w.n - at, w.accumulate, w.wide_c);
        }
    }
}

/* A thread's sums of a part of k, to be added up by gather. */
template <typename T> __device__ __forceinline__ void keep(const Work<T> &w, int part, const T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N]) {
    T *to = w.partial + (int64_t)part * OWN<T> * THREADS + threadIdx.x;
#pragma unroll
    for (int i = 0; i < OWN<T>; i++) to[i * THREADS] = sum[i / Tile<T>::OWN_N][i % Tile<T>::OWN_N];
}

template <typename T> __global__ void __launch_bounds__(ALL_THREADS, 1) gemm_simt(const __grid_constant__ Work<T> w, const __grid_constant__ Map map_b) {
    if (w.wanted && *w.wanted == 0) return;
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    Ring<T> ring;
    Segment s;
    ring.open(w, shared);
#ifdef TSR_SIMT_ENGINE
    if (threadIdx.x >= THREADS) {
        hopper::registers_give<40>();
        if (w.packed && threadIdx.x > THREADS) return;
        for (int i = 0; segment_of(w, i, &s); i++) ring.produce(w, map_b, panels_of(w, s));
        hopper::copies_wait();
        return;
    }
    hopper::registers_take<224>();
#else
    (void)map_b;
#endif
    const int own_row = first_row<T>(), own_col = first_col<T>();
    for (int i = 0; segment_of(w, i, &s); i++) {
        const Panels panels = panels_of(w, s);
        T sum[Tile<T>::OWN_M][Tile<T>::OWN_N] = {};
        ring.begin(w, panels);
        multiply(w, ring, panels.count, own_row, own_col, sum);
        if (s.part < 0) store(w, s.tile, sum);
        else keep(w, s.part, sum);
    }
}

/* Adds up the parts of the shared tiles, in the order of k; a block GROUP elements of a thread of one tile at a time. */
template <typename T> __global__ void __launch_bounds__(THREADS) gather(Work<T> w, int whole_tiles) {
    if (w.wanted && *w.wanted == 0) return;
    constexpr int PIECES = OWN<T> / GROUP<T>, PIECES_ROW = Tile<T>::OWN_N / GROUP<T>;
    for (int work = (int)blockIdx.x; work < w.left * PIECES; work += (int)gridDim.x) {
        const int tile = work / PIECES, piece = work % PIECES, start = tile * w.depth, end = start + w.depth;
        int sharer = start / (w.share + 1); /* or a later one */
        while (share_start(w, sharer + 1) <= start) sharer++;
        if (share_start(w, sharer) == start && share_start(w, sharer + 1) >= end) continue; /* made in one piece */
        const T *from = w.partial + (int64_t)piece * GROUP<T> * THREADS + threadIdx.x;
        int part = 2 * sharer + (share_start(w, sharer) < start);
        T sum[GROUP<T>] = {};
#pragma unroll 4
        for (; share_start(w, sharer) < end; part = 2 * ++sharer) {
#pragma unroll
            for (int e = 0; e < GROUP<T>; e++) sum[e] += from[((int64_t)part * OWN<T> + e) * THREADS];
        }
        int tile_row, tile_col;
        tile_of(w, whole_tiles + tile, &tile_row, &tile_col);
        const int64_t row = (int64_t)tile_row * Tile<T>::M + first_row<T>() + row_of<T>(piece / PIECES_ROW);
        const int64_t col = (int64_t)tile_col * Tile<T>::N + first_col<T>() + piece % PIECES_ROW * LANES_N<T> * GROUP<T>;
        if (row < w.m) store_group(sum, w.c + row * w.ldc + col, w.n - col, w.accumulate, w.wide_c);
    }
}

/* ---- the kernel as the contract wants it ---------------------------------------------------------------------------------- */

template <typename T> size_t part_bytes(int64_t m, int64_t n, int64_t k) {
    const int64_t shares = tsr_ceil_div(m, Tile<T>::M) * tsr_ceil_div(n, Tile<T>::N) * tsr_ceil_div(k, UNIT) / FEWEST;
    return (size_t)tsr_min(shares, MOST_SHARERS) * 2 * OWN<T> * THREADS * sizeof(T);
}
template <typename T> size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    return packed_a_bytes<T>(m, n, k) + copied_b_bytes<T>(k, n) + part_bytes<T>(m, n, k);
}

/* Blocks for `tiles` tiles, fewer than `blocks`, that are `depth` deep: as many as tiles unless sharing saves time enough to gather. */
int64_t sharers_of(int64_t tiles, int64_t depth, int64_t blocks) {
    const int64_t most = tsr_min(tsr_min(blocks, MOST_SHARERS), tiles * depth / FEWEST);
    return most > tiles && depth - tsr_ceil_div(tiles * depth, most) >= WORTH ? most : tiles;
}

/* What the code that the device will run was compiled to. */
struct Build {
    bool engine; /* B's panels come by the copy engine */
    int threads, panel;
    size_t shared_bytes;
};

template <typename T> tsr_status prepare(Build *build) {
    using Sizes = Tile<T>;
    cudaFuncAttributes attributes;
    TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, gemm_simt<T>)));
    build->engine = attributes.ptxVersion >= 90 && attributes.maxThreadsPerBlock > THREADS; /* as __launch_bounds__ says */
    const int stages = build->engine ? Sizes::STAGES_ENGINE : STAGES_PLAIN;
    build->threads = build->engine ? THREADS + PRODUCERS : THREADS;
    build->panel = build->engine ? Sizes::PANEL_ENGINE : Sizes::PANEL_PLAIN;
    build->shared_bytes = ((size_t)stages * build->panel * (PITCH<T> + Sizes::N) + IDLE) * sizeof(T) + (build->engine ? 2 * stages * sizeof(uint64_t) + BOX_ALIGNMENT : 0);
    return TSR_CUDA(cudaFuncSetAttribute(gemm_simt<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)build->shared_bytes));
}

template <typename T> tsr_status multiply_tiles(tsr_stream *stream, const Build &build, Work<T> w, const Map &map_b) {
    int multiprocessors = 0, most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    const int64_t tiles = (int64_t)w.tiles_m * w.tiles_n, blocks = tsr_min(multiprocessors, most);
    w.whole = (int)(tiles / blocks);
    w.left = (int)(tiles % blocks);
    if (w.left > 0) {
        w.sharers = (int)sharers_of(w.left, w.depth, blocks);
        w.share = w.left * w.depth / w.sharers;
        w.longer = w.left * w.depth % w.sharers;
    }
    TSR_TRY(TSR_LAUNCH(gemm_simt<T>, (unsigned)(w.whole > 0 ? blocks : w.sharers), build.threads, build.shared_bytes, stream, w, map_b));
    if (w.sharers == w.left) return TSR_OK;
    unsigned gathering;
    TSR_TRY(blocks_for((int64_t)w.left * (OWN<T> / GROUP<T>), &gathering));
    return TSR_LAUNCH(gather<T>, gathering, THREADS, 0, stream, w, (int)tiles - w.left);
}

template <typename T> tsr_status launch_where(tsr_stream *stream, const tsr_gemm_args *args, const unsigned *wanted) {
    const int64_t m = args->m, n = args->n, k = args->k;
    unsigned char *at_b = (unsigned char *)args->workspace + packed_a_bytes<T>(m, n, k);
    Build build;
    TSR_TRY(prepare<T>(&build));
    Work<T> w = {};
    Preparing<T> p = {};
    w.a = (const T *)args->a, w.lda = args->lda;
    w.b = (const T *)args->b, w.ldb = args->ldb;
    w.c = (T *)args->c, w.ldc = args->ldc;
    w.partial = (T *)(at_b + copied_b_bytes<T>(k, n));
    w.m = m, w.n = n, w.k = k;
    p.m = m, p.n = n, p.k = k, p.lda = w.lda, p.ldb = w.ldb;
    p.wanted = w.wanted = wanted;
    w.packed = packs(n);
    if (w.packed) p.a = w.a, w.a = p.to_a = (T *)args->workspace;
    if (build.engine && !reached(w.b, w.ldb)) p.b = w.b, w.b = p.to_b = (T *)at_b, w.ldb = p.ld_to_b = copied_ld<T>(n);
    TSR_TRY(prepare_where(stream, p));
    w.depth = (int)tsr_ceil_div(k, UNIT);
    w.tiles_m = (int)tsr_ceil_div(m, Tile<T>::M);
    w.tiles_n = (int)tsr_ceil_div(n, Tile<T>::N);
    w.accumulate = args->accumulate;
    w.wide_b = aligned(w.b, w.ldb);
    w.wide_c = aligned(w.c, w.ldc);
    Map map_b = {};
#ifdef TSR_HAVE_HOPPER
    if (build.engine) TSR_TRY(tsr_tensor_map(w.b, Tile<T>::TYPE, k, n, w.ldb, build.panel, Tile<T>::N, 0, &map_b));
#endif
    return multiply_tiles(stream, build, w, map_b);
}

/* Whether there is something to add up, and no more of k and n than the copy engine and an int of panels count. */
bool ours(int64_t n, int64_t k) { return k > 0 && k <= (int64_t)1 << 28 && n <= 1 << 30; }

template <typename T> tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    const tsr_gemm_kernel *coarse = sizeof(T) == sizeof(float) ? &tsr_gemm_coarse_f32 : &tsr_gemm_coarse_f64;
    return ours(args->n, args->k) ? launch_where<T>(stream, args, nullptr) : coarse->launch(device, stream, args);
}

template <typename T> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    Build build;
    TSR_TRY(prepare<T>(&build));
    return tsr_gemm_describe(gemm_simt<T>, Tile<T>::M, Tile<T>::N, build.panel, build.threads, build.shared_bytes, sizeof(T), m, n, k, out);
}

/* Multiply-adds below which `tiled` or `checked` is quicker. On an H200 they take 11 and 12 µs at 256³ and 34 and 36 µs at 512³ in fp32, 17 and 18 µs at 256³ and
 * 61 and 62 µs at 512³ in fp64, and `simt` 28 to 30 µs at all of these. */
constexpr double SMALL_F32 = 440.0 * 440.0 * 440.0, SMALL_F64 = 330.0 * 330.0 * 330.0;

constexpr char WHAT[] = "register tiles, asynchronous ring of stages";

} // namespace

tsr_status tsr_gemm_simt_where(tsr_stream *stream, const tsr_gemm_args *args, const unsigned *wanted) {
    return ours(args->n, args->k) ? launch_where<float>(stream, args, wanted) : tsr_gemm_coarse_where(stream, args, wanted);
}

const tsr_gemm_kernel tsr_gemm_simt_f32 = {
    .name = "simt", .what = WHAT, .device = TSR_DEVICE_CUDA, .input = TSR_F32, .type = TSR_F32,
    .accuracy = TSR_ACCURACY_IEEE, .error_factor = TSR_GEMM_PLAIN_ERROR_FACTOR, .error_grows = true, .multiple = 1,
    .speed_rank = 55, .workspace_bytes = workspace_bytes<float>, .shape = shape<float>, .launch = launch<float>,
    .small_below = SMALL_F32, .small = &tsr_gemm_tiled_f32};
const tsr_gemm_kernel tsr_gemm_simt_f64 = {
    .name = "simt", .what = WHAT, .device = TSR_DEVICE_CUDA, .input = TSR_F64, .type = TSR_F64,
    .accuracy = TSR_ACCURACY_IEEE, .error_factor = TSR_GEMM_PLAIN_ERROR_FACTOR, .error_grows = true, .multiple = 1,
    .speed_rank = 55, .workspace_bytes = workspace_bytes<double>, .shape = shape<double>, .launch = launch<double>,
    .small_below = SMALL_F64, .small = &tsr_gemm_tiled_f64};
