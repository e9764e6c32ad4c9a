/* Operation: C = A·B or C += A·B, fp32 or fp64, row-major, any shape; IEEE multiply-adds on the CUDA cores.
 * Mapping: A and B are first packed into tiles that are the very image shared memory wants, k-major, zero-padded: the boundary
 *   check and the transposition happen there, once. 8 warps make a tile of 256 × 128 (fp32) or 128 × 128 (fp64) of C; a warp's 8 × 4
 *   (4 × 8) lanes own 8 × 16 (8 × 8) elements each. On sm_90a a ring of stages is filled by bulk copies that one thread of a producing
 *   warpgroup asks for and that complete on barriers, and the registers it does not need go to the warps that multiply; elsewhere
 *   all threads copy, between block barriers. Blocks walk C in bands of 8 rows of tiles, which share their panels in the L2 cache.
 * A block uses: 196672 (fp32) or 196704 (fp64) bytes of shared memory and 384 threads of 168 registers, of which 256 get 240, on sm_90a;
 *   48 or 32 KiB, 256 threads and at most 255 registers elsewhere. One block a multiprocessor.
 * Requirements: workspace for the packed operands, (m·k + k·n) elements and padding.
 * Arithmetic intensity: 256·128/(256+128)/2 = 42.7 flop/byte in fp32; 128·128/(128+128)/4 = 16 in fp64.
 * Measured at 8192 on an H200, 2026-11-21, packing included: fp32 51.3 TFLOP/s, 77 % of the CUDA cores' peak; fp64 25.0, 75 %.
 * Reference: Volkov and Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008; packing: Goto and van de Geijn, Anatomy of
 *   high-performance matrix multiplication, TOMS 2008. */
#include "kernels/gemm_cuda.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "kernels/hopper.h"
#define TSR_SIMT_BULK 1
#endif

namespace {

constexpr int THREADS = 256;  /* that multiply */
constexpr int PRODUCERS = 128; /* one warpgroup more with bulk copies */
constexpr int BAND = 8;        /* rows of tiles that blocks walk together */
constexpr int PACK_K = 32;     /* packed operands hold a multiple of this along k */

/* Of C; and along k of a stage of the ring: PANEL, STAGES of them. With bulk copies and without, PANEL divides PACK_K. */
template <typename T> struct Tile;
template <> struct Tile<float> {
    static constexpr int M = 256, N = 128, WARPS_M = 4, LANES_M = 8, OWN_M = 8, OWN_N = 16;
    static constexpr int PANEL_BULK = 32, STAGES_BULK = 4, PANEL_PLAIN = 16;
};
template <> struct Tile<double> {
    static constexpr int M = 128, N = 128, WARPS_M = 4, LANES_M = 4, OWN_M = 8, OWN_N = 8;
    static constexpr int PANEL_BULK = 16, STAGES_BULK = 6, PANEL_PLAIN = 8;
};
constexpr int STAGES_PLAIN = 2;
#ifdef TSR_SIMT_BULK
constexpr int ALL_THREADS = THREADS + PRODUCERS;
template <typename T> constexpr int K = Tile<T>::PANEL_BULK;
template <typename T> constexpr int STAGES = Tile<T>::STAGES_BULK;
#else
constexpr int ALL_THREADS = THREADS;
template <typename T> constexpr int K = Tile<T>::PANEL_PLAIN;
template <typename T> constexpr int STAGES = STAGES_PLAIN;
#endif
template <typename T> constexpr int LANES_N = 32 / Tile<T>::LANES_M;
template <typename T> constexpr int GROUP = 16 / (int)sizeof(T); /* elements of 16 bytes */
template <typename T> constexpr int A_ELEMENTS = K<T> * Tile<T>::M; /* of a stage */
template <typename T> constexpr int B_ELEMENTS = K<T> * Tile<T>::N;
template <typename T> constexpr int STAGE_ELEMENTS = A_ELEMENTS<T> + B_ELEMENTS<T>;

/* ---- packing ------------------------------------------------------------------------------------------------------------ */

constexpr int PACK_THREADS = 256, LOADS = 8; /* loads of a thread in flight */

/* A (m × k) to tiles [m/M][padded k][M]. A block turns M × PACK_K of A at a time in shared memory: reads along k, writes along m. */
template <typename T>
__global__ void __launch_bounds__(PACK_THREADS) pack_a(T *to, const T *a, int64_t lda, int64_t m, int64_t k, int64_t works_k, int64_t works) {
    constexpr int M = Tile<T>::M, ROWS = PACK_THREADS / PACK_K;
    TSR_SHARED_DYNAMIC(T, square); /* PACK_K × (M + 1) */
    const int x = (int)threadIdx.x % PACK_K, y = (int)threadIdx.x / PACK_K;
    for (int64_t work = blockIdx.x; work < works; work += gridDim.x) {
        const int64_t row = work / works_k * M, col = work % works_k * PACK_K;
        const T *from = a + (row + y) * lda + col + x;
        const int rows = (int)(m - row < M ? m - row : M) - y;
        for (int i = 0; i < M; i += ROWS * LOADS) {
            T part[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; j++) part[j] = i + j * ROWS < rows && col + x < k ? from[(int64_t)(i + j * ROWS) * lda] : T(0);
#pragma unroll
            for (int j = 0; j < LOADS; j++) square[x * (M + 1) + y + i + j * ROWS] = part[j];
        }
        __syncthreads();
        T *out = to + work * PACK_K * M;
        for (int i = (int)threadIdx.x; i < PACK_K * M; i += PACK_THREADS) out[i] = square[i / M * (M + 1) + i % M];
        __syncthreads();
    }
}

/* B (k × n) to tiles [n/N][padded k][N]: rows stay rows. A block moves PACK_K × N at a time. */
template <typename T>
__global__ void __launch_bounds__(PACK_THREADS) pack_b(T *to, const T *b, int64_t ldb, int64_t k, int64_t n, int64_t works_k, int64_t works) {
    constexpr int N = Tile<T>::N, ROWS = PACK_THREADS / N;
    const int x = (int)threadIdx.x % N, y = (int)threadIdx.x / N;
    for (int64_t work = blockIdx.x; work < works; work += gridDim.x) {
        const int64_t row = work % works_k * PACK_K, col = work / works_k * N + x;
        const T *from = b + (row + y) * ldb + col;
        T *out = to + (work * PACK_K + y) * N + x;
        const int rows = (int)(k - row < PACK_K ? k - row : PACK_K) - y;
        for (int i = 0; i < PACK_K; i += ROWS * LOADS) {
            T part[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; j++) part[j] = i + j * ROWS < rows && col < n ? from[(int64_t)(i + j * ROWS) * ldb] : T(0);
#pragma unroll
            for (int j = 0; j < LOADS; j++) out[(i + j * ROWS) * N] = part[j];
        }
    }
}

/* ---- multiplying -------------------------------------------------------------------------------------------------------- */

template <typename T> struct alignas(16) Group {
    T at[GROUP<T>];
};

/* COUNT elements of a thread: groups of 16 bytes, LANES of them side by side. */
template <typename T, int COUNT, int LANES> __device__ __forceinline__ void load_own(T (&own)[COUNT], const T *row) {
#pragma unroll
    for (int g = 0; g < COUNT / GROUP<T>; g++) {
        const Group<T> group = *reinterpret_cast<const Group<T> *>(row + g * LANES * GROUP<T>);
#pragma unroll
        for (int e = 0; e < GROUP<T>; e++) own[g * GROUP<T> + e] = group.at[e];
    }
}

/* The ring of stages: where panel t stands, when it is there, and when its place is free again. */
template <typename T> struct Ring {
    T *stages;
    uint64_t *full, *empty; /* STAGES barriers each, with bulk copies */
    const T *a, *b;         /* first panels of this block's tiles */
    int64_t panels;

    __device__ __forceinline__ T *stage(int64_t t) const { return stages + t % STAGES<T> * STAGE_ELEMENTS<T>; }

#ifdef TSR_SIMT_BULK
    __device__ __forceinline__ void open() const {
        if (threadIdx.x == 0) {
            for (int s = 0; s < STAGES<T>; s++) {
                hopper::barrier_init(full + s, 1);
                hopper::barrier_init(empty + s, THREADS / 32);
            }
            hopper::fence_init();
        }
        __syncthreads();
    }
    /* The producing thread's life: asks for every panel as soon as its place is free. */
    __device__ __forceinline__ void produce() const {
        for (int64_t t = 0; t < panels; t++) {
            if (t >= STAGES<T>) hopper::barrier_wait(empty + t % STAGES<T>, (uint32_t)(t / STAGES<T> - 1) & 1);
            hopper::barrier_expect(full + t % STAGES<T>, STAGE_ELEMENTS<T> * sizeof(T));
            hopper::copy_bulk(stage(t), a + t * A_ELEMENTS<T>, A_ELEMENTS<T> * sizeof(T), full + t % STAGES<T>);
            hopper::copy_bulk(stage(t) + A_ELEMENTS<T>, b + t * B_ELEMENTS<T>, B_ELEMENTS<T> * sizeof(T), full + t % STAGES<T>);
        }
    }
    __device__ __forceinline__ void fill(int64_t) const {}
    __device__ __forceinline__ bool arrived(int64_t t) const { return hopper::barrier_test(full + t % STAGES<T>, (uint32_t)(t / STAGES<T>) & 1); }
    __device__ __forceinline__ void wait(int64_t t) const { hopper::barrier_wait(full + t % STAGES<T>, (uint32_t)(t / STAGES<T>) & 1); }
    __device__ __forceinline__ void done(int64_t t) const {
        __syncwarp();
        if (threadIdx.x % 32 == 0) hopper::barrier_arrive(empty + t % STAGES<T>);
    }
#else
    __device__ __forceinline__ void copy(T *to, const T *from, int elements) const {
        for (int i = (int)threadIdx.x * GROUP<T>; i < elements; i += THREADS * GROUP<T>)
            *reinterpret_cast<Group<T> *>(to + i) = *reinterpret_cast<const Group<T> *>(from + i);
    }
    __device__ __forceinline__ void open() const { fill(0); }
    __device__ __forceinline__ void fill(int64_t t) const {
        if (t >= panels) return;
        copy(stage(t), a + t * A_ELEMENTS<T>, A_ELEMENTS<T>);
        copy(stage(t) + A_ELEMENTS<T>, b + t * B_ELEMENTS<T>, B_ELEMENTS<T>);
    }
    __device__ __forceinline__ bool arrived(int64_t) const { return false; }
    /* After this barrier panel t is there, and panel t - 1, whose place the next fill takes, has been used by all. */
    __device__ __forceinline__ void wait(int64_t) const { __syncthreads(); }
    __device__ __forceinline__ void done(int64_t) const {}
#endif
};

/* Elements of C a thread made, row by row; outside C nothing is touched. */
template <typename T>
__device__ __forceinline__ void store(const T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N], T *c, int64_t ldc, int64_t rows, int64_t cols, bool accumulate, bool wide) {
#pragma unroll
    for (int i = 0; i < Tile<T>::OWN_M; i++) {
        const int64_t row = i / GROUP<T> * Tile<T>::LANES_M * GROUP<T> + i % GROUP<T>;
        if (row >= rows) continue;
#pragma unroll
        for (int g = 0; g < Tile<T>::OWN_N / GROUP<T>; g++) {
            const int64_t col = g * LANES_N<T> * GROUP<T>;
            T *at = c + row * ldc + col;
            if (wide && col + GROUP<T> <= cols) {
                Group<T> group = {};
                if (accumulate) group = *reinterpret_cast<const Group<T> *>(at);
#pragma unroll
                for (int e = 0; e < GROUP<T>; e++) group.at[e] = accumulate ? group.at[e] + sum[i][g * GROUP<T> + e] : sum[i][g * GROUP<T> + e];
                *reinterpret_cast<Group<T> *>(at) = group;
            } else {
#pragma unroll
                for (int e = 0; e < GROUP<T>; e++)
                    if (col + e < cols) at[e] = accumulate ? at[e] + sum[i][g * GROUP<T> + e] : sum[i][g * GROUP<T> + e];
            }
        }
    }
}

/* Tile of C that block `index` makes: bands of BAND rows of tiles, column by column inside a band. */
__device__ __forceinline__ void tile_of(int64_t index, int64_t tiles_m, int64_t tiles_n, int64_t *row, int64_t *col) {
    const int64_t first = index / (BAND * tiles_n) * BAND;
    const int64_t rows = tiles_m - first < BAND ? tiles_m - first : BAND, within = index - first * tiles_n;
    *row = first + within % rows;
    *col = within / rows;
}

/* Panels through the ring into `sum`; fragments of the next step of k are loaded while the present ones are multiplied. */
template <typename T>
__device__ __forceinline__ void multiply(const Ring<T> &ring, int own_row, int own_col, T (&sum)[Tile<T>::OWN_M][Tile<T>::OWN_N]) {
    constexpr int M = Tile<T>::M, N = Tile<T>::N, OWN_M = Tile<T>::OWN_M, OWN_N = Tile<T>::OWN_N, LANES_M = Tile<T>::LANES_M;
    T own_a[2][OWN_M], own_b[2][OWN_N];
    ring.wait(0);
    load_own<T, OWN_M, LANES_M>(own_a[0], ring.stage(0) + own_row);
    load_own<T, OWN_N, LANES_N<T>>(own_b[0], ring.stage(0) + A_ELEMENTS<T> + own_col);
    for (int64_t t = 0; t < ring.panels; t++) {
        const T *a = ring.stage(t) + own_row, *b = ring.stage(t) + A_ELEMENTS<T> + own_col;
        const T *next_a = ring.stage(t + 1) + own_row, *next_b = ring.stage(t + 1) + A_ELEMENTS<T> + own_col;
        const bool more = t + 1 < ring.panels;
        bool arrived = true;
#pragma unroll
        for (int l = 0; l < K<T>; l++) {
            if (l == 0) {
                ring.fill(t + 1);
                if (more) arrived = ring.arrived(t + 1); /* asked early: the answer takes a while */
            }
            if (l == K<T> - 1) {
                ring.done(t);
                if (more && !arrived) ring.wait(t + 1);
            }
            /* After the last panel this reads what nobody uses: a branch here would keep loads and multiply-adds apart. */
            load_own<T, OWN_M, LANES_M>(own_a[(l + 1) % 2], l + 1 < K<T> ? a + (l + 1) * M : next_a);
            load_own<T, OWN_N, LANES_N<T>>(own_b[(l + 1) % 2], l + 1 < K<T> ? b + (l + 1) * N : next_b);
#pragma unroll
            for (int i = 0; i < OWN_M; i++)
#pragma unroll
                for (int j = 0; j < OWN_N; j++) sum[i][j] = fma(own_a[l % 2][i], own_b[l % 2][j], sum[i][j]);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(ALL_THREADS, 1) gemm_simt(const T *packed_a, const T *packed_b, int64_t padded_k, int64_t first_tile, T *c, int64_t ldc,
                                                            int64_t m, int64_t n, bool accumulate, bool wide) {
    constexpr int M = Tile<T>::M, N = Tile<T>::N, WARPS_N = THREADS / 32 / Tile<T>::WARPS_M;
    TSR_SHARED_DYNAMIC(T, shared);
    uint64_t *barriers = reinterpret_cast<uint64_t *>(shared + STAGES<T> * STAGE_ELEMENTS<T>);
    int64_t tile_row, tile_col;
    tile_of(first_tile + blockIdx.x, (m + M - 1) / M, (n + N - 1) / N, &tile_row, &tile_col);
    const Ring<T> ring = {shared, barriers, barriers + STAGES<T>, packed_a + tile_row * padded_k * M, packed_b + tile_col * padded_k * N, padded_k / K<T>};
    ring.open();
#ifdef TSR_SIMT_BULK
    if (threadIdx.x >= THREADS) {
        hopper::registers_give<24>();
        if (threadIdx.x == THREADS) ring.produce();
        return;
    }
    hopper::registers_take<240>();
#endif
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int own_row = warp / WARPS_N * Tile<T>::LANES_M * Tile<T>::OWN_M + lane / LANES_N<T> * GROUP<T>;
    const int own_col = warp % WARPS_N * LANES_N<T> * Tile<T>::OWN_N + lane % LANES_N<T> * GROUP<T>;
    T sum[Tile<T>::OWN_M][Tile<T>::OWN_N] = {};
    if (padded_k > 0) multiply(ring, own_row, own_col, sum);
    const int64_t row = tile_row * M + own_row, col = tile_col * N + own_col;
    if (row < m && col < n) store(sum, c + row * ldc + col, ldc, m - row, n - col, accumulate, wide);
}

/* ---- the kernel as the contract wants it ------------------------------------------------------------------------------ */

template <typename T> size_t packed_a_bytes(int64_t m, int64_t k) { return (size_t)tsr_round_up(m, Tile<T>::M) * (size_t)tsr_round_up(k, PACK_K) * sizeof(T); }
template <typename T> size_t packed_b_bytes(int64_t k, int64_t n) { return (size_t)tsr_round_up(n, Tile<T>::N) * (size_t)tsr_round_up(k, PACK_K) * sizeof(T); }
template <typename T> size_t workspace_bytes(int64_t m, int64_t n, int64_t k) { return packed_a_bytes<T>(m, k) + packed_b_bytes<T>(k, n); }

/* Blocks for `count` pieces of work, of which each does every gridDim.x-th. */
tsr_status blocks_for(int64_t count, unsigned *blocks) {
    int most = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    *blocks = (unsigned)tsr_min(tsr_min(count, most), 1 << 20);
    return TSR_OK;
}

template <typename T> tsr_status pack(tsr_stream *stream, const tsr_gemm_args *args, T *packed_a, T *packed_b) {
    const int64_t works_k = tsr_ceil_div(args->k, PACK_K);
    const int64_t works_a = tsr_ceil_div(args->m, Tile<T>::M) * works_k, works_b = tsr_ceil_div(args->n, Tile<T>::N) * works_k;
    const size_t shared_bytes = PACK_K * (Tile<T>::M + 1) * sizeof(T);
    unsigned blocks;
    TSR_TRY(blocks_for(works_a, &blocks));
    TSR_TRY(TSR_LAUNCH(pack_a<T>, blocks, PACK_THREADS, shared_bytes, stream, packed_a, (const T *)args->a, args->lda, args->m, args->k, works_k, works_a));
    TSR_TRY(blocks_for(works_b, &blocks));
    return TSR_LAUNCH(pack_b<T>, blocks, PACK_THREADS, 0, stream, packed_b, (const T *)args->b, args->ldb, args->k, args->n, works_k, works_b);
}

/* What the code that the device will run was compiled to. */
struct Build {
    int threads, panel;
    size_t shared_bytes;
};

template <typename T> tsr_status prepare(Build *build) {
    using Sizes = Tile<T>;
    cudaFuncAttributes attributes;
    TSR_TRY(TSR_CUDA(cudaFuncGetAttributes(&attributes, gemm_simt<T>)));
    const bool bulk = attributes.ptxVersion >= 90 && attributes.maxThreadsPerBlock > THREADS; /* as __launch_bounds__ says */
    const int stages = bulk ? Sizes::STAGES_BULK : STAGES_PLAIN;
    build->threads = bulk ? THREADS + PRODUCERS : THREADS;
    build->panel = bulk ? Sizes::PANEL_BULK : Sizes::PANEL_PLAIN;
    build->shared_bytes = (size_t)stages * build->panel * (Sizes::M + Sizes::N) * sizeof(T) + (bulk ? 2 * stages * sizeof(uint64_t) : 0);
    return TSR_CUDA(cudaFuncSetAttribute(gemm_simt<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)build->shared_bytes));
}

template <typename T> tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    T *packed_a = (T *)args->workspace, *packed_b = packed_a + packed_a_bytes<T>(args->m, args->k) / sizeof(T);
    if (args->k > 0) TSR_TRY(pack(stream, args, packed_a, packed_b));
    Build build;
    int most = 0;
    TSR_TRY(prepare<T>(&build));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimX, &most));
    const bool wide = (uintptr_t)args->c % 16 == 0 && (size_t)args->ldc * sizeof(T) % 16 == 0;
    const int64_t tiles = tsr_ceil_div(args->m, Tile<T>::M) * tsr_ceil_div(args->n, Tile<T>::N);
    for (int64_t first = 0; first < tiles; first += most)
        TSR_TRY(TSR_LAUNCH(gemm_simt<T>, (unsigned)tsr_min(most, tiles - first), build.threads, build.shared_bytes, stream, packed_a, packed_b, tsr_round_up(args->k, PACK_K),
                           first, (T *)args->c, args->ldc, args->m, args->n, args->accumulate, wide));
    return TSR_OK;
}

template <typename T> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    Build build;
    TSR_TRY(prepare<T>(&build));
    return tsr_gemm_describe(gemm_simt<T>, Tile<T>::M, Tile<T>::N, build.panel, build.threads, build.shared_bytes, sizeof(T), m, n, k, out);
}

constexpr char WHAT[] = "packed operands, register tiles, asynchronous ring of stages";

} // namespace

const tsr_gemm_kernel tsr_gemm_simt_f32 = {"simt", WHAT, TSR_DEVICE_CUDA, TSR_F32, TSR_F32, 0, TSR_ACCURACY_IEEE, TSR_GEMM_PLAIN_ERROR_FACTOR,
                                           true, 1, 55, workspace_bytes<float>, shape<float>, launch<float>, 0, 0, nullptr};
const tsr_gemm_kernel tsr_gemm_simt_f64 = {"simt", WHAT, TSR_DEVICE_CUDA, TSR_F64, TSR_F64, 0, TSR_ACCURACY_IEEE, TSR_GEMM_PLAIN_ERROR_FACTOR,
                                           true, 1, 55, workspace_bytes<double>, shape<double>, launch<double>, 0, 0, nullptr};
