/* Operation: C = A·B or C += A·B, fp64, row-major, any shape; IEEE multiply-adds on the tensor cores.
 * Mapping: blocks stay on their multiprocessor and walk tiles of 128 × 128 of C. One thread asks for panels of 16 along k by tensor maps, straight
 *   from A and B where these begin at multiples of 16 bytes, else from an aligned copy; 8 warps make 32 × 64 of the tile each. What whole
 *   rounds of tiles leave over is cut along k and added up in a fixed order by a second kernel.
 * Even and odd rows of A and B come by maps of their own, swizzled, so that all reads of fragments are 16 bytes wide and free of bank
 *   conflicts; the order of k inside a panel is chosen for that. The tensor cores make transposes, Cᵀ = Bᵀ·Aᵀ: so the two doubles of
 *   a read are neighbours in the registers of a fragment, and a thread's sums are neighbours in C.
 * Shared memory: a ring of 6 slots of 32 KiB. Registers: 240 a thread that multiplies, 128 of them sums.
 * Requirements: sm_90a; workspace for sums of cut tiles, at most 33 MiB, and for aligned copies, 8·(m·k + k·n) bytes and padding.
 * Arithmetic intensity: 128·128/(128+128)/4 = 16 flop/byte.
 * Measured: H200, 2026-11-21, copies included, at the 700 W limit, which decides, TFLOP/s, cuBLAS DGEMM in turns with it in brackets: 60.5 (55.4) at n = 4096,
 *   60.4 (57.6) at 8192, 90 % of the fp64 tensor peak, 55.5 (54.8) at 16384, 57.5 (43.0) at 8191, 55.4 (42.4) at 8193; rectangles 49 to 60, 1.03 to 1.16
 *   of the vendor's.
 * Reference: PTX ISA 8.0, mma.m16n8k16 with .f64; cutting along k: Osama et al., Stream-K, PPoPP 2023 (arXiv 2301.03598). */
#include "kernels/gemm_cuda.h"
#include "kernels/hopper.h"
#include "kernels/tensor_map.h"

namespace {

constexpr int M = 128, N = 128, K = 16; /* a block's tile of C, and a panel */
constexpr int SPAN = 16;                /* columns of B that stand together in shared memory, 128 bytes a row, as A's panel does */
constexpr int SPANS = 4, STRIPS = 4;    /* a warp makes SPANS · 16 columns × STRIPS · 8 rows */
constexpr int WARPS = 8;
constexpr int MULTIPLIERS = WARPS * 32, THREADS = MULTIPLIERS + 128;
constexpr int STAGES = 6;
constexpr int A_HALF = M / 2 * 128, A_BYTES = 2 * A_HALF; /* even, then odd rows of A's panel */
constexpr int B_HALF = K / 2 * 128, B_SPAN = 2 * B_HALF, B_BYTES = N / SPAN * B_SPAN;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr size_t SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + 2 * STAGES * sizeof(uint64_t);
constexpr int PAIRS = SPANS * STRIPS * 2; /* of neighbours in C that a thread makes */
constexpr int BAND = 12;                  /* rows of tiles that blocks walk together */
constexpr int MOST_BLOCKS = 132;          /* multiprocessors of a device of today */

struct Work {
    CUtensorMap a[2], b[2]; /* even rows, odd rows */
    double2 *partial;       /* [2 · block + piece][pair of a thread][thread]: sums of cut tiles */
    double *c;
    int64_t ldc, m, n;
    int panels;           /* of k */
    int inner_m, inner_n; /* tiles walked in bands */
    int whole;            /* that many of them are made whole, */
    int thin_m, thin_n;   /* then these along the bottom and the right edge, */
    int tail;             /* then the rest, */
    int share;            /* of whose panels every block has so many */
    bool accumulate, wide;
};

/* ---- what a block makes --------------------------------------------------------------------------------------------------- */

struct Item {
    int row, col;    /* tile */
    int first, last; /* panels */
    int part;        /* where its sums go; -1: to C */
};

__device__ __forceinline__ void tile_of(const Work &w, int index, Item *item) {
    tsr_gemm_band(index, w.inner_m, w.inner_n, BAND, &item->row, &item->col);
}

/* A warp's part of the tile, and a lane's place in a slot. */
struct Own {
    int row, col;
    uint32_t a, b; /* bytes */
    __device__ __forceinline__ Own() {
        const int warp = (int)threadIdx.x / 32, g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        const int warp_n = warp / 4, warp_m = (warp ^ warp_n * 2) % 4; /* w and w + 4 share a tensor core; along a thin edge one of them has work */
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
__device__ __forceinline__ int col_of(const Own &own, int span) { return own.col + span * SPAN + (int)threadIdx.x % 32 / 4 * 2; }

__device__ __forceinline__ double2 sum_of(double2 x, double2 y) { return make_double2(x.x + y.x, x.y + y.y); }

/* One pair, as far as it lies in C. */
__device__ __forceinline__ void store_pair(const Work &w, int64_t row, int64_t col, double2 x) {
    double *at = w.c + row * w.ldc + col;
    if (row < w.m && col < w.n) at[0] = w.accumulate ? at[0] + x.x : x.x;
    if (row < w.m && col + 1 < w.n) at[1] = w.accumulate ? at[1] + x.y : x.y;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* The block's next piece of work; step counts from 0. */
__device__ __forceinline__ bool next_item(const Work &w, int *step, Item *item) {
    const int blocks = (int)gridDim.x, block = (int)blockIdx.x, thin = w.thin_m + w.thin_n;
    const int turns = (w.whole + blocks - 1) / blocks, thin_turns = (thin + blocks - 1) / blocks;
    item->first = 0;
    item->last = w.panels;
    item->part = -1;
    for (;;) {
        const int s = (*step)++;
        if (s < turns) {
            const int index = s * blocks + block;
            if (index >= w.whole) continue;
            tile_of(w, index, item);
            return true;
        }
        if (s < turns + thin_turns) {
            const int index = (s - turns) * blocks + block;
            if (index >= thin) continue;
            item->row = index < w.thin_m ? w.inner_m : index - w.thin_m;
            item->col = index < w.thin_m ? index : w.inner_n;
            return true;
        }
        const int piece = s - turns - thin_turns, from = block * w.share, to = min(from + w.share, w.tail * w.panels);
        if (piece >= 2 || from >= to) return false;
        const int tile = from / w.panels, split = (tile + 1) * w.panels;
        if (piece == 1 && to <= split) return false;
        tile_of(w, w.whole + tile + piece, item);
        item->first = piece == 0 ? from - split + w.panels : 0;
        item->last = piece == 0 ? min(to, split) - split + w.panels : to - split;
        item->part = 2 * block + piece;
        return true;
    }
}

typedef hopper::Place<STAGES> Place;

/* The slots, 1024-byte aligned because the swizzle goes by address, and behind them the barriers that say when each is full and when
 * empty; by their addresses in shared memory, which fewer registers hold. */
struct Ring {
    uint32_t base;
    __device__ __forceinline__ uint32_t slot(int i) const { return base + i * STAGE_BYTES; }
    __device__ __forceinline__ uint64_t *full(int i) const { return pointer(STAGES * STAGE_BYTES + i * 8); }
    __device__ __forceinline__ uint64_t *empty(int i) const { return pointer(STAGES * STAGE_BYTES + STAGES * 8 + i * 8); }
    __device__ __forceinline__ uint64_t *pointer(int bytes) const { return (uint64_t *)__cvta_shared_to_generic(base + bytes); }
};

/* One thread: asks for every panel in the order of use. */
__device__ __forceinline__ void produce(const Work &w, const Ring &ring) {
    Place place = {0, 0};
    Item item;
    for (int step = 0; next_item(w, &step, &item);) {
#pragma unroll 1 /* few registers are left to this thread */
        for (int panel = item.first; panel < item.last; panel++, place.step()) {
            unsigned char *a = (unsigned char *)ring.pointer(place.slot * STAGE_BYTES), *b = a + A_BYTES;
            uint64_t *full = ring.full(place.slot);
            hopper::barrier_wait(ring.empty(place.slot), place.phase ^ 1); /* free from the start */
            hopper::barrier_expect(full, STAGE_BYTES);
#pragma unroll
            for (int odd = 0; odd < 2; odd++) {
                hopper::copy_tensor(a + odd * A_HALF, &w.a[odd], item.row * (M / 2), panel * K, full);
#pragma unroll
                for (int span = 0; span < N / SPAN; span++)
                    hopper::copy_tensor(b + span * B_SPAN + odd * B_HALF, &w.b[odd], panel * (K / 2), item.col * N + span * SPAN, full);
            }
        }
    }
}

/* ---- multiplying: the tensor cores see transposes, Cᵀ = Bᵀ·Aᵀ ------------------------------------------------------------- */

/* d (16 × 8) += a (16 × 16) · b (16 × 8). Lane 4g + t holds of a rows g and g + 8, of b column g, of d rows g and g + 8 of columns 2t and
 * 2t + 1; along k it holds the same four of each. */
__device__ __forceinline__ void mma(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

__device__ __forceinline__ void load2(double *x, uint32_t at) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(at));
}

/* Columns span·16 ... + 15 of this warp: lane (g, t) has columns 2g and 2g + 1, elements 4t ... 4t + 3 along k. */
__device__ __forceinline__ void load_span(double (&x)[8], const Own &own, uint32_t slot, int span) {
#pragma unroll
    for (int j = 0; j < 4; j++) load2(x + 2 * j, ((slot + own.b) ^ j / 2 * (128 + 16)) + j % 2 * B_HALF + span * B_SPAN);
}
/* Even or odd rows of strip / 2 · 16 ... + 15 of this warp: lane (g, t) has row 2g (+ 1), elements 4t ... 4t + 3 along k. */
__device__ __forceinline__ void load_strip(double (&x)[4], const Own &own, uint32_t slot, int strip) {
#pragma unroll
    for (int h = 0; h < 2; h++) load2(x + 2 * h, ((slot + own.a) ^ h * 16) + strip % 2 * A_HALF + strip / 2 * 1024);
}

typedef double Sums[SPANS][STRIPS][4];

__device__ __forceinline__ void release(const Ring &ring, int slot) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) hopper::barrier_arrive(ring.empty(slot));
}

/* sum = panels of the ring; unless WHOLE, of the first `spans` and `strips` only. Fragments are loaded while others are multiplied. Consecutive
 * products share a span, and where the span changes mostly the strip: of the orders tried this one takes the least power. */
template <bool WHOLE>
__device__ __forceinline__ void multiply(Sums &sum, const Ring &ring, const Own &own, Place *place, int panels, int spans, int strips) {
    double a[2][8], b[STRIPS][4];
    hopper::barrier_wait(ring.full(place->slot), place->phase);
    uint32_t slot = ring.slot(place->slot);
#pragma unroll
    for (int j = 0; j < STRIPS; j++) load_strip(b[j], own, slot, j);
    load_span(a[0], own, slot, 0);
#pragma unroll 1
    for (; panels > 0; panels--) {
        Place next = *place;
        next.step();
        const bool more = panels > 1;
        const uint32_t next_slot = ring.slot(more ? next.slot : place->slot); /* after the last panel its own once more, for nobody: no branch */
        bool arrived = true;
#pragma unroll
        for (int i = 0; i < SPANS; i++) {
            if (i < SPANS - 1) load_span(a[(i + 1) % 2], own, slot, i + 1);
            if (i == SPANS - 2 && more) arrived = hopper::barrier_test(ring.full(next.slot), next.phase);
            if (i == SPANS - 1) {
                if (more) release(ring, place->slot);
                if (more && !arrived) hopper::barrier_wait(ring.full(next.slot), next.phase);
                load_span(a[0], own, next_slot, 0);
            }
#pragma unroll
            for (int s = 0; s < STRIPS; s++) {
                const int j = i == 1 || i == 2 ? STRIPS - 1 - s : s;
                if (WHOLE || (i < spans && j < strips)) mma(sum[i][j], a[i % 2], b[j]);
                if (i == SPANS - 1) load_strip(b[j], own, next_slot, j);
            }
        }
        if (!more) release(ring, place->slot);
        *place = next;
        slot = next_slot;
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
                    for (int span = 0; span < SPANS; span++) at[span * SPAN / 2] = sum_of(before[span], pair_of(sum, strip, which, span));
                } else {
#pragma unroll
                    for (int span = 0; span < SPANS; span++) at[span * SPAN / 2] = pair_of(sum, strip, which, span);
                }
            } else {
#pragma unroll
                for (int span = 0; span < SPANS; span++) store_pair(w, at_row, col + col_of(own, span), pair_of(sum, strip, which, span));
            }
        }
    }
}

__device__ __forceinline__ void consume(const Work &w, const Ring &ring) {
    const Own own;
    Place place = {0, 0};
    Item item;
    for (int step = 0; next_item(w, &step, &item);) {
        Sums sum = {};
        const int64_t row = (int64_t)item.row * M, col = (int64_t)item.col * N;
        const int64_t rows = w.m - row - own.row, cols = w.n - col - own.col;
        const int strips = rows >= STRIPS * 8 ? STRIPS : rows <= 0 ? 0 : ((int)rows + 15) / 16 * 2;
        const int spans = cols >= SPANS * SPAN ? SPANS : cols <= 0 ? 0 : ((int)cols + SPAN - 1) / SPAN;
        if (strips == STRIPS && spans == SPANS) multiply<true>(sum, ring, own, &place, item.last - item.first, spans, strips);
        else multiply<false>(sum, ring, own, &place, item.last - item.first, spans, strips);
        if (item.part < 0) {
            store(w, own, row, col, sum);
            continue;
        }
        double2 *to = w.partial + (int64_t)item.part * PAIRS * MULTIPLIERS + threadIdx.x;
#pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) to[pair * MULTIPLIERS] = pair_of(sum, pair / 2 / SPANS, pair / SPANS % 2, pair % SPANS);
    }
}
#endif

__global__ void __launch_bounds__(THREADS, 1) gemm_dmma(const __grid_constant__ Work w) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    const Ring ring = {(hopper::shared_address(shared) + 1023) / 1024 * 1024};
    hopper::ring_init<STAGES>(ring.full(0), ring.empty(0), 1, WARPS);
    __syncthreads();
    if (threadIdx.x >= MULTIPLIERS) {
        hopper::registers_give<24>();
        if (threadIdx.x == MULTIPLIERS) produce(w, ring);
    } else {
        hopper::registers_take<240>();
        consume(w, ring);
    }
#else
    (void)w;
    __trap(); /* built for another device: the registry never gets here */
#endif
}

/* Adds up what blocks made of a tile's panels, in their order. blockIdx.x: (tile, pair of a thread). */
__global__ void __launch_bounds__(MULTIPLIERS) gather(const __grid_constant__ Work w) {
    const int tile = (int)blockIdx.x / PAIRS, pair = (int)blockIdx.x % PAIRS;
    const int from = tile * w.panels, to = from + w.panels, first = from / w.share, last = (to - 1) / w.share;
    double2 sum = make_double2(0.0, 0.0);
#pragma unroll 4
    for (int block = first; block <= last; block++) {
        const int part = 2 * block + (block * w.share < from ? 1 : 0);
        sum = sum_of(sum, w.partial[((int64_t)part * PAIRS + pair) * MULTIPLIERS + threadIdx.x]);
    }
    const Own own;
    Item item;
    tile_of(w, w.whole + tile, &item);
    store_pair(w, (int64_t)item.row * M + row_of(own, pair / 2 / SPANS, pair / SPANS % 2), (int64_t)item.col * N + col_of(own, pair % SPANS), sum);
}

/* ---- the kernel as the contract wants it ---------------------------------------------------------------------------------- */

int64_t aligned_ld(int64_t cols) { return tsr_round_up(cols, 16); }

size_t partial_bytes(int64_t m, int64_t n, int64_t k) {
    const double parts = 2.0 * (double)tsr_ceil_div(m, M) * (double)tsr_ceil_div(n, N) * (double)tsr_ceil_div(k, K);
    return (size_t)(parts < 2 * MOST_BLOCKS ? parts : 2 * MOST_BLOCKS) * M * N * sizeof(double);
}
size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    return partial_bytes(m, n, k) + sizeof(double) * ((size_t)m * (size_t)aligned_ld(k) + (size_t)k * (size_t)aligned_ld(n));
}

/* Maps of the even and the odd rows of an operand, of its copy where the copy engine cannot reach it. */
tsr_status map_rows(tsr_device *device, tsr_stream *stream, const void *data, int64_t rows, int64_t cols, int64_t ld, double *copy, int box_rows, CUtensorMap *maps) {
    TSR_TRY(tsr_tensor_align(device, stream, TSR_F64, rows, cols, 16, copy, aligned_ld(cols), &data, &ld));
    const double *x = (const double *)data;
    for (int odd = 0; odd < 2; odd++) {
        const int first = rows > 1 ? odd : 0; /* a single row's odd neighbour can be anything: it is never stored */
        TSR_TRY(tsr_tensor_map(x + first * ld, TSR_F64, (rows + 1 - first) / 2, cols, 2 * ld, box_rows, SPAN, 128, maps + odd));
    }
    return TSR_OK;
}

constexpr int MOST_PANELS = INT32_MAX / MOST_BLOCKS - 1; /* so that a tail's are counted in an int */

/* Divides the tiles among blocks: whole ones as far as all have as many, the rest along k where that saves more than adding up costs.
 * Where tiles are many, edges of at most half a tile, which take their warps a fraction of the time, are no part of these rounds. */
void plan(Work *w, int blocks) {
    const int64_t tiles_m = tsr_ceil_div(w->m, M), tiles_n = tsr_ceil_div(w->n, N);
    w->inner_m = (int)tiles_m;
    w->inner_n = (int)tiles_n;
    w->thin_m = w->thin_n = 0;
    if (tiles_m * tiles_n >= 4 * blocks) {
        if (w->m % M > 0 && w->m % M <= M / 2) w->inner_m--, w->thin_m = (int)tiles_n;
        if (w->n % N > 0 && w->n % N <= N / 2) w->inner_n--, w->thin_n = w->inner_m;
    }
    const int tiles = w->inner_m * w->inner_n;
    w->tail = tiles % blocks;
    w->share = (int)tsr_ceil_div((int64_t)w->tail * w->panels, blocks);
    const int64_t pieces = tsr_min(blocks, (int64_t)w->tail * w->panels) + w->tail;
    if (w->panels - w->share < 4 + pieces / 8 || w->panels > MOST_PANELS) w->tail = w->share = 0; /* measured, in times of a panel */
    w->whole = tiles - w->tail;
}

tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    const int64_t m = args->m, n = args->n, k = args->k, most = INT32_MAX - 2 * M;
    const bool small = k <= K || (k <= 5 * K && (double)m * (double)n * (double)k < 1e6);
    if (small || m > most || n > most || k > most || tsr_ceil_div(m, M) * tsr_ceil_div(n, N) > most)
        return tsr_gemm_coarse_f64.launch(device, stream, args);
    Work w;
    int multiprocessors = 0;
    double *copy_a = (double *)((unsigned char *)args->workspace + partial_bytes(m, n, k)), *copy_b = copy_a + m * aligned_ld(k);
    TSR_TRY(map_rows(device, stream, args->a, m, k, args->lda, copy_a, M / 2, w.a));
    TSR_TRY(map_rows(device, stream, args->b, k, n, args->ldb, copy_b, K / 2, w.b));
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    const int blocks = (int)tsr_min(multiprocessors, MOST_BLOCKS);
    w.partial = (double2 *)args->workspace;
    w.c = (double *)args->c;
    w.ldc = args->ldc;
    w.m = m;
    w.n = n;
    w.panels = (int)tsr_ceil_div(k, K);
    w.accumulate = args->accumulate;
    w.wide = (uintptr_t)args->c % 16 == 0 && args->ldc % 2 == 0;
    plan(&w, blocks);
    TSR_TRY(TSR_CUDA(cudaFuncSetAttribute(gemm_dmma, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES)));
    TSR_TRY(TSR_LAUNCH(gemm_dmma, (unsigned)blocks, THREADS, SHARED_BYTES, stream, w));
    if (w.tail == 0) return TSR_OK;
    return TSR_LAUNCH(gather, (unsigned)(w.tail * PAIRS), MULTIPLIERS, 0, stream, w);
}

tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    TSR_TRY(TSR_CUDA(cudaFuncSetAttribute(gemm_dmma, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES)));
    return tsr_gemm_describe(gemm_dmma, M, N, K, THREADS, SHARED_BYTES, sizeof(double), m, n, k, out);
}

} // namespace

const tsr_gemm_kernel tsr_gemm_dmma_f64 = {
    .name = "dmma", .what = "fp64 tensor cores, tiles brought by the copy engine", .device = TSR_DEVICE_CUDA,
    .input = TSR_F64, .type = TSR_F64, .min_arch = 90, .accuracy = TSR_ACCURACY_IEEE,
    .error_factor = TSR_GEMM_PLAIN_ERROR_FACTOR, .error_grows = true, .multiple = 1, .speed_rank = 70,
    .workspace_bytes = workspace_bytes, .shape = shape, .launch = launch, .max_arch = 90};
