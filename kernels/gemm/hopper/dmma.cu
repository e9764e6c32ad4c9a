/* Operation: C = A·B or C += A·B, fp64, row-major, any shape; IEEE multiply-adds on the tensor cores.
 * Mapping: blocks stay on their multiprocessor and walk tiles of 128 × 128 of C. One thread asks for panels of 16
 * along k by tensor maps, straight from A and B where these begin at multiples of 16 bytes, else from an aligned
 * copy; 8 warps make 32 × 64 of the tile each. Blocks share what whole rounds of
 * tiles leave over; fewer tiles are cut along k, and a second kernel adds the parts up.
 * Even and odd rows of A and B come by maps of their own, swizzled, so that all reads of fragments are 16 bytes wide
 * and free of bank conflicts; the order of k inside a panel is chosen for that. The tensor cores make transposes, Cᵀ
 * = Bᵀ·Aᵀ: so the two doubles of a read are neighbours in the registers of a fragment, and a thread's sums are
 * neighbours in C.
 * Shared memory: a pipeline of 6 stages of 32 KiB. Registers: 240 a thread that multiplies, 128 of them sums.
 * Requirements: sm_90a; workspace for parts of sums, at most 33 MiB, and for aligned copies, 8·(m·k + k·n) bytes
 * and padding.
 * Arithmetic intensity: 128·128/(128+128)/4 = 16 flop/byte.
 * Measured: H200, 2026-11-21, copies included, at the 700 W limit, which decides, TFLOP/s, cuBLAS DGEMM in turns
 * with it in brackets: 60.5 (55.4) at n = 4096, 60.4 (57.6) at 8192, 90 % of the fp64 tensor peak, 55.5 (54.8) at
 * 16384, 57.5 (43.0) at 8191, 55.4 (42.4) at 8193; rectangles 49 to 60, 1.03 to 1.16 of the vendor's.
 * Reference: PTX ISA 8.0, mma.m16n8k16 with .f64. */
#include "kernels/gemm/hopper/persistent.h"
#include "kernels/gemm/hopper/tensor_map.h"

namespace {

/* a block's tile of C, and a panel */
constexpr int M = 128;
constexpr int N = 128;
constexpr int K = 16;
/* columns of B that stand together in shared memory, 128 bytes a row, as A's panel does */
constexpr int SPAN = 16;
constexpr int SPANS = 4, STRIPS = 4; /* a warp makes SPANS · 16 columns × STRIPS · 8 rows */
constexpr int WARPS = 8;
constexpr int MULTIPLIERS = WARPS * 32;
constexpr int A_HALF = M / 2 * 128, A_BYTES = 2 * A_HALF; /* even, then odd rows of A's panel */
constexpr int B_HALF = K / 2 * 128;
constexpr int B_SPAN = 2 * B_HALF;
constexpr int B_BYTES = N / SPAN * B_SPAN;
typedef hopper::Pipeline<6, A_BYTES + B_BYTES, 0, 1, 1024, hopper::StagesByAddress> Pipe;
constexpr int BAND = 12; /* rows of tiles that blocks walk together */

struct Work {
    CUtensorMap a[2], b[2]; /* even rows, odd rows */
    double *parts;
    double *c;
    int64_t ldc, m, n;
    hopper::TilePlan plan;
    int tiles_m, tiles_n;         /* tiles walked in bands, */
    int thin, thin_first, thin_m; /* and among the whole ones these thin ones: thin_m along the bottom edge, */
                                  /* the rest along the right one */
    bool accumulate, wide;
    const unsigned *predicate; /* as in tsr_gemm_args */

    __device__ __forceinline__ hopper::TilePlace place_of(int tile) const {
        const int edge = tile - thin_first;
        if (edge < 0 || edge >= thin) return hopper::tile_at(edge < 0 ? tile : tile - thin, tiles_m, tiles_n, BAND);
        return {edge < thin_m ? tiles_m : edge - thin_m, edge < thin_m ? edge : tiles_n};
    }
};

/* A warp's part of the tile, and a lane's place in a stage. */
struct Own {
    int row, col;
    uint32_t a, b; /* bytes */
    __device__ __forceinline__ Own() {
        const int warp = (int)threadIdx.x / 32;
        const int g = (int)threadIdx.x % 32 / 4;
        const int t = (int)threadIdx.x % 4;
        /* w and w + 4 share a tensor core; along a thin edge one of them has work */
        const int warp_n = warp / 4, warp_m = (warp ^ warp_n * 2) % 4;
        row = warp_m * STRIPS * 8;
        col = warp_n * SPANS * SPAN;
        a = row / 2 * 128 + g * 128 + (2 * t ^ g) * 16;
        b = A_BYTES + warp_n * SPANS * B_SPAN + 2 * t * 128 + (g ^ 2 * t) * 16;
    }
};

/* Where in the tile a thread's pairs of neighbours belong. */
__device__ __forceinline__ int row_of(const Own &own, int strip, int which) {
    return own.row + strip / 2 * 16 + strip % 2 + (int)threadIdx.x % 4 * 4 + which * 2;
}
__device__ __forceinline__ int col_of(const Own &own, int span) {
    return own.col + span * SPAN + (int)threadIdx.x % 32 / 4 * 2;
}

__device__ __forceinline__ double2 sum_of(double2 x, double2 y) { return make_double2(x.x + y.x, x.y + y.y); }

/* One pair, as far as it lies in C. */
__device__ __forceinline__ void store_pair(const Work &w, int64_t row, int64_t col, double2 x) {
    double *at = w.c + row * w.ldc + col;
    if (row < w.m && col < w.n) at[0] = w.accumulate ? at[0] + x.x : x.x;
    if (row < w.m && col + 1 < w.n) at[1] = w.accumulate ? at[1] + x.y : x.y;
}

/* ---- multiplying: the tensor cores see transposes, Cᵀ = Bᵀ·Aᵀ -------------------------------- */

/* Columns span·16 ... + 15 of this warp: lane (g, t) has columns 2g and 2g + 1, elements 4t ... 4t + 3 along k. */
__device__ __forceinline__ void load_span(double (&x)[8], const Own &own, uint32_t stage, int span) {
#pragma unroll
    for (int j = 0; j < 4; j++)
        hopper::load_shared(x + 2 * j, ((stage + own.b) ^ j / 2 * (128 + 16)) + j % 2 * B_HALF + span * B_SPAN);
}
/* Even or odd rows of strip / 2 · 16 ... + 15 of this warp: lane (g, t) has row 2g (+ 1), elements 4t ... 4t + 3
 * along k. */
__device__ __forceinline__ void load_strip(double (&x)[4], const Own &own, uint32_t stage, int strip) {
#pragma unroll
    for (int h = 0; h < 2; h++)
        hopper::load_shared(x + 2 * h, ((stage + own.a) ^ h * 16) + strip % 2 * A_HALF + strip / 2 * 1024);
}

typedef double Sums[SPANS][STRIPS][4];

__device__ __forceinline__ void release(const Pipe &pipe, int stage) {
    __syncwarp();
    pipe.release(stage);
}

/* sum = panels of the pipeline; unless WHOLE, of the first `spans` and `strips` only. Fragments are loaded while others
 * are multiplied. Consecutive products share a span, and where the span changes mostly the strip: of the orders
 * tried this one takes the least power. */
template <bool WHOLE>
__device__ __forceinline__ void multiply(Sums &sum, const Pipe &pipe, const Own &own, Pipe::State *at, int panels,
                                         int spans, int strips) {
    double a[2][8], b[STRIPS][4];
    pipe.wait(*at);
    uint32_t stage = pipe.address(at->stage);
#pragma unroll
    for (int j = 0; j < STRIPS; j++) load_strip(b[j], own, stage, j);
    load_span(a[0], own, stage, 0);
#pragma unroll 1
    for (; panels > 0; panels--) {
        Pipe::State next = *at;
        next.step();
        const bool more = panels > 1;
        /* after the last panel its own stage once more, unused: that saves a branch */
        const uint32_t next_stage = pipe.address(more ? next.stage : at->stage);
        bool arrived = true;
#pragma unroll
        for (int i = 0; i < SPANS; i++) {
            if (i < SPANS - 1) load_span(a[(i + 1) % 2], own, stage, i + 1);
            if (i == SPANS - 2 && more) arrived = hopper::barrier_test(pipe.full(next.stage), next.phase);
            if (i == SPANS - 1) {
                if (more) release(pipe, at->stage);
                if (more && !arrived) pipe.wait(next);
                load_span(a[0], own, next_stage, 0);
            }
#pragma unroll
            for (int s = 0; s < STRIPS; s++) {
                const int j = i == 1 || i == 2 ? STRIPS - 1 - s : s;
                if (WHOLE || (i < spans && j < strips)) hopper::mma_m16n8k16(sum[i][j], a[i % 2], b[j]);
                if (i == SPANS - 1) load_strip(b[j], own, next_stage, j);
            }
        }
        if (!more) release(pipe, at->stage);
        *at = next;
        stage = next_stage;
    }
}

/* A thread's sums as pairs of neighbours in C. */
__device__ __forceinline__ double2 pair_of(const Sums &sum, int strip, int which, int span) {
    return make_double2(sum[span][strip][which], sum[span][strip][2 + which]);
}

__device__ __forceinline__ void store(const Work &w, const Own &own, int64_t row, int64_t col, const Sums &sum) {
    const bool fast = w.wide && row + M <= w.m && col + N <= w.n;
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++) {
#pragma unroll
        for (int which = 0; which < 2; which++) {
            const int64_t at_row = row + row_of(own, strip, which);
            if (fast) {
                double2 *at = reinterpret_cast<double2 *>(w.c + at_row * w.ldc + col + col_of(own, 0)), before[SPANS];
                if (w.accumulate) {
#pragma unroll
                    for (int span = 0; span < SPANS; span++) before[span] = at[span * SPAN / 2];
#pragma unroll
                    for (int span = 0; span < SPANS; span++)
                        at[span * SPAN / 2] = sum_of(before[span], pair_of(sum, strip, which, span));
                } else {
#pragma unroll
                    for (int span = 0; span < SPANS; span++) at[span * SPAN / 2] = pair_of(sum, strip, which, span);
                }
            } else {
#pragma unroll
                for (int span = 0; span < SPANS; span++)
                    store_pair(w, at_row, col + col_of(own, span), pair_of(sum, strip, which, span));
            }
        }
    }
}

struct Dmma : hopper::Persistent<hopper::Parts<double, M, N, K, MULTIPLIERS, 2>> {
    typedef ::Work Work;
    typedef ::Pipe Pipe;
    typedef ::Sums Sums;
    typedef Own Lane;
    static constexpr int HOLDERS = MULTIPLIERS, BARRIER = 1;
    static constexpr int PRODUCER_REGISTERS = 24, UNROLL = 4;
    /* in panels; leaving and reading sums takes about so long as 30 */
    static constexpr hopper::Cut CUT = {
        .unit = 4, .handing = 10, .gathering = 4, .parts = 8, .full = hopper::FULL_DEVICE};
    static constexpr bool WGMMA_ADDS = false;
    static __device__ __forceinline__ bool left_out(const Work &w) { return tsr_gemm_idle(w.predicate); }

    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, Pipe::State &at,
                                                 const hopper::WorkTile &work) {
        const hopper::TilePlace tile = w.place_of(work.tile);
#pragma unroll 1 /* few registers are left to this thread */
        for (int panel = work.first; panel < work.last; panel++, at.step()) {
            unsigned char *a = pipe.stage(at.stage), *b = a + A_BYTES;
            uint64_t *full = pipe.full(at.stage);
            pipe.acquire(at);
#pragma unroll
            for (int odd = 0; odd < 2; odd++) {
                hopper::copy_tensor(a + odd * A_HALF, &w.a[odd], tile.row * (M / 2), panel * K, full);
#pragma unroll
                for (int span = 0; span < N / SPAN; span++)
                    hopper::copy_tensor(b + span * B_SPAN + odd * B_HALF, &w.b[odd], panel * (K / 2),
                                        tile.col * N + span * SPAN, full);
            }
        }
    }

    struct Consumer : hopper::EveryWork {
        int64_t row, col; /* of the tile at hand */
        __device__ __forceinline__ void multiply(const Work &w, const Pipe &pipe, const Own &own, Pipe::State &at,
                                                 const hopper::WorkTile &work, bool, Sums &sum) {
            const hopper::TilePlace tile = w.place_of(work.tile);
            row = (int64_t)tile.row * M;
            col = (int64_t)tile.col * N;
            const int64_t rows = w.m - row - own.row, cols = w.n - col - own.col;
            const int strips = rows >= STRIPS * 8 ? STRIPS : rows <= 0 ? 0 : ((int)rows + 15) / 16 * 2;
            const int spans = cols >= SPANS * SPAN ? SPANS : cols <= 0 ? 0 : ((int)cols + SPAN - 1) / SPAN;
            if (strips == STRIPS && spans == SPANS)
                ::multiply<true>(sum, pipe, own, &at, work.last - work.first, spans, strips);
            else ::multiply<false>(sum, pipe, own, &at, work.last - work.first, spans, strips);
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &, const Own &own,
                                               const hopper::WorkTile &work, const Sums &sum) const {
            if (work.to < 0) store(w, own, row, col, sum);
            else leave(w, work.to, &sum[0][0][0]);
        }
    };

    /* For the gather: the four sums of one mma. */
    static __device__ __forceinline__ void put(const Work &w, int tile, int group, int, const double (&sum)[VALUES]) {
        const Own own;
        const hopper::TilePlace place = w.place_of(tile);
        const int span = group / STRIPS, strip = group % STRIPS;
#pragma unroll
        for (int which = 0; which < 2; which++)
            store_pair(w, (int64_t)place.row * M + row_of(own, strip, which),
                       (int64_t)place.col * N + col_of(own, span), make_double2(sum[which], sum[2 + which]));
    }
};

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

int64_t aligned_ld(int64_t cols) { return tsr_round_up(cols, 16); }

size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    return hopper::parts_bytes_of<Dmma>(m, n, k) +
           sizeof(double) * ((size_t)m * (size_t)aligned_ld(k) + (size_t)k * (size_t)aligned_ld(n));
}

/* rows × cols elements, rows `ld` apart, to rows `to_ld` apart, unless *predicate is 0. */
__global__ void __launch_bounds__(256) copy_where(const unsigned *predicate, const double *from, int64_t ld, double *to,
                                                  int64_t to_ld, int64_t rows, int64_t cols) {
    if (*predicate == 0) return;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
        for (int64_t col = (int64_t)blockIdx.x * 256 + threadIdx.x; col < cols; col += (int64_t)gridDim.x * 256)
            to[row * to_ld + col] = from[row * ld + col];
}

/* An operand as tensor maps reach it: itself, or its copy. */
tsr_status align(tsr_device *device, tsr_stream *stream, const unsigned *predicate, int64_t rows, int64_t cols,
                 double *copy, const void **x, int64_t *ld) {
    if (!predicate || tsr_tensor_aligned(TSR_F64, 16, *x, *ld))
        return tsr_tensor_align(device, stream, TSR_F64, rows, cols, 16, copy, aligned_ld(cols), x, ld);
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(rows, cols, 1, 256, &grid));
    grid.y = tsr_min(grid.y, 1024u); /* blocks that leave at once take their time, too */
    TSR_TRY(TSR_LAUNCH(copy_where, grid, 256, 0, stream, predicate, (const double *)*x, *ld, copy, aligned_ld(cols),
                       rows, cols));
    *x = copy;
    *ld = aligned_ld(cols);
    return TSR_OK;
}

/* Maps of the even and the odd rows of an operand, of its copy where TMA cannot reach it. */
tsr_status map_rows(tsr_device *device, tsr_stream *stream, const unsigned *predicate, const void *data, int64_t rows,
                    int64_t cols, int64_t ld, double *copy, int box_rows, CUtensorMap *maps) {
    TSR_TRY(align(device, stream, predicate, rows, cols, copy, &data, &ld));
    const double *x = (const double *)data;
    for (int odd = 0; odd < 2; odd++) {
        const int first = rows > 1 ? odd : 0; /* a single row's odd neighbour can be anything: it is never stored */
        TSR_TRY(tsr_tensor_map(x + first * ld, TSR_F64, (rows + 1 - first) / 2, cols, 2 * ld, {box_rows, SPAN, 128},
                               maps + odd));
    }
    return TSR_OK;
}

/* Divides the tiles among blocks. Where tiles are many, edges of at most half a tile, which take their warps a fraction
 * of the time, are no part of the rounds. */
void plan(hopper::Cut cut, Work *w, int64_t panels, int64_t blocks) {
    const int64_t tiles = (int64_t)w->tiles_m * w->tiles_n;
    w->thin_m = 0;
    if (tiles >= 4 * tsr_max(blocks, Dmma::CUT.full)) {
        if (w->m % M > 0 && w->m % M <= M / 2) {
            w->tiles_m--;
            w->thin_m = w->tiles_n;
        }
        if (w->n % N > 0 && w->n % N <= N / 2) w->tiles_n--;
    }
    w->thin = (int)(tiles - (int64_t)w->tiles_m * w->tiles_n);
    w->plan = hopper::tile_plan(cut, tiles, panels, blocks, w->thin);
    w->thin_first = w->plan.rounds - w->thin;
}

tsr_status launch_cut(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, hopper::Cut cut) {
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    Work w;
    int multiprocessors = 0;
    double *copy_a = (double *)((unsigned char *)args->workspace + hopper::parts_bytes_of<Dmma>(m, n, k)),
           *copy_b = copy_a + m * aligned_ld(k);
    TSR_TRY(map_rows(device, stream, args->predicate, args->a, m, k, args->lda, copy_a, M / 2, w.a));
    TSR_TRY(map_rows(device, stream, args->predicate, args->b, k, n, args->ldb, copy_b, K / 2, w.b));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    hopper::take_product(&w, args, M, N);
    w.wide = (uintptr_t)args->c % 16 == 0 && args->ldc % 2 == 0;
    w.predicate = args->predicate;
    plan(cut, &w, tsr_ceil_div(k, K), multiprocessors);
    return hopper::launch<Dmma>(stream, &w, args->workspace);
}

tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut(device, stream, args, Dmma::CUT);
}
tsr_status launch_reproducible(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut(device, stream, args, hopper::whole(Dmma::CUT));
}

tsr_gemm_substitute substitute(int64_t m, int64_t n, int64_t k) {
    const int64_t most = INT32_MAX - 2 * M;
    if (k <= K) return {.kernel = &tsr_gemm_coarse_f64, .why = "k <= 16", .unable = true};
    if (k <= 5 * K && (double)m * (double)n * (double)k < 1e6)
        return {.kernel = &tsr_gemm_coarse_f64, .why = "m*n*k < 10^6, k <= 80", .unable = true};
    if (m > most || n > most || k > most || tsr_ceil_div(m, M) * tsr_ceil_div(n, N) > most)
        return {.kernel = &tsr_gemm_coarse_f64, .why = "m, n, k or tiles > 2^31 - 257", .unable = true};
    return {};
}

} // namespace

const tsr_gemm_kernel tsr_gemm_dmma_f64 = hopper::kernel(TSR_F64, TSR_F64,
                                                         {.name = "dmma",
                                                          .what = "fp64 tensor cores, tiles brought by TMA",
                                                          .speed_rank = 70,
                                                          .substitute = substitute,
                                                          .predicated = true,
                                                          .batched = &tsr_gemm_batched_f64,
                                                          .workspace_bytes = workspace_bytes,
                                                          .shape = hopper::shape<Dmma>,
                                                          .launch = launch,
                                                          .launch_reproducible = launch_reproducible});
