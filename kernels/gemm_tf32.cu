/* Operation: C = A·B or C += A·B, fp32, row-major, any shape; A and B rounded to tf32 (11 significant bits, to nearest even), products and
 *   sums on the tensor cores.
 * Mapping: the tensor cores want what they read from shared memory k-major, as A is and B is not. So they make Cᵀ = Bᵀ·Aᵀ: the rows of their
 *   product are columns of C, and Bᵀ comes from registers, where its order is free. Blocks stay on their multiprocessor and walk tiles of
 *   256 × 128 of C; one thread asks for panels of 32 along k, which the copy engine rounds to tf32 on the way and fills up with zeros at the
 *   edges; two groups of 4 warps multiply 256 × 64 each. Tiles left over when every block has made the same number are cut along k, so
 *   that all blocks end together, and a second kernel adds the parts up. C leaves through shared memory and the copy engine, while the next
 *   tile begins; where that cannot reach it, or C is added to, straight from the registers.
 * Shared memory: a ring of 4 slots of 48 KiB, a panel of A (rows of 128 bytes, swizzled) and of B (4 boxes of such rows), and 32 KiB for C.
 *   Registers: 232 a thread that multiplies, of which 128 hold sums and 32 two panels' fragments of B.
 * Requirements: sm_90a; workspace for parts of sums, and for copies of operands whose rows do not begin at multiples of 32 bytes.
 * Arithmetic intensity: 2·256·128·32 / (4·32·(256 + 128)) = 43 flop/byte.
 * Measured: H200, 2026-11-21, uniform data in [0, 1), packing included, TFLOP/s, cuBLAS tf32 in turns with it in brackets: 385 (381) at n = 4096, 384 (368)
 *   at 8192, 78 % of the tensor cores' tf32 peak, 347 (138) at 8191, 321 (131) at 8193; 8192 × 8192 × 512 314 (286), 512 × 8192 × 8192 391 (351),
 *   100000 × 256 × 256 206 (162), 256 × 256 × 100000 156 to 165 (166).
 * Reference: Osama, Merrill, Cecka, Garland, Owens, Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on
 *   the GPU, PPoPP 2023 (the cut of the last tiles). */
#include "kernels/gemm_cuda.h"
#include "kernels/hopper.h"
#include "kernels/tensor_map.h"

namespace {

constexpr int M = 256, N = 128, K = 32; /* a block's tile of C, and a panel */
constexpr int GROUPS = 2;               /* warpgroups that multiply */
constexpr int MULTIPLIERS = GROUPS * 128, THREADS = MULTIPLIERS + 128;
constexpr int SLOTS = 4;
constexpr int A_BYTES = M * K * 4, BOX_BYTES = K * 32 * 4, SLOT_BYTES = A_BYTES + N / 32 * BOX_BYTES;
constexpr int OUT_ROWS = 32;                                        /* of C that a warpgroup hands to the copy engine at once */
constexpr int OUT_BOX = OUT_ROWS * 32 * 4, OUT_BYTES = 2 * OUT_BOX; /* two boxes of 32 columns; two such buffers a warpgroup */
constexpr int OUT_AT = SLOTS * SLOT_BYTES, BARRIERS_AT = OUT_AT + GROUPS * 2 * OUT_BYTES;
constexpr size_t SHARED_BYTES = 1024 + BARRIERS_AT + 2 * SLOTS * sizeof(uint64_t);
constexpr int BAND = 8;                /* rows of tiles that blocks walk together */
constexpr int SUMS = M * N / MULTIPLIERS; /* of a thread */
constexpr int MOST_BLOCKS = 132;       /* multiprocessors of the largest sm_90 device */
constexpr int SHORTEST = 4;            /* panels that a block takes of a tile cut along k */
constexpr int LONGEST = 512;           /* panels that are one sum on the tensor cores, twice as many at most: the stated error rests on it */
constexpr double SMALL = 64 * 64 * 64; /* multiply-adds that `coarse` makes faster */
constexpr int64_t REACH = 1 << 30;     /* rows, columns and tiles that 32 bits count */

/* ---- multiplying ---------------------------------------------------------------------------------------------------------- */

struct Work {
    CUtensorMap map_a, map_b, map_c; /* map_c if any columns are `copied` */
    float4 *partial; /* [part][its first or second tile][SUMS / 4][MULTIPLIERS] */
    float *c;
    int64_t ldc, m, n;
    int tiles_m, tiles_n;
    int whole;         /* tiles before the rest; every block makes as many */
    int panel, panels; /* of k: the first, and how many */
    int parts;         /* into which the rest is cut, tile after tile, all panels of it; a tile each unless `cut` */
    bool cut, accumulate;
    int copied;   /* columns of tiles that the copy engine stores: it writes 16 bytes at a time, also where C ends between */
    bool wide;    /* C can be reached by 8-byte accesses */
};

__device__ __forceinline__ void tile_of(const Work &w, int index, int *row, int *col) {
    tsr_gemm_band(index, w.tiles_m, w.tiles_n, BAND, row, col);
}

/* Where part p of the rest begins, in panels of its tiles. */
__device__ __forceinline__ int64_t begin_of(const Work &w, int part) { return (int64_t)(w.tiles_m * w.tiles_n - w.whole) * w.panels * part / w.parts; }

/* What a block works through: whole tiles, then its part of the rest. */
struct Walk {
    int tile, first, last;       /* the present tile, and panels of it */
    int slot;                    /* of `partial`; -1: straight to C */
    int next, panel, left, used; /* the next tile and its first panel; panels left of the part, slots used for it */
    __device__ __forceinline__ Walk(const Work &w) : next((int)blockIdx.x), panel(0), left(0), used(0) {}
    __device__ __forceinline__ bool step(const Work &w) {
        if (next < w.whole) {
            tile = next, first = 0, last = w.panels, slot = -1;
            next += (int)gridDim.x;
            return true;
        }
        if (used == 0) {
            if ((int)blockIdx.x >= w.parts) return false;
            const int64_t begin = begin_of(w, (int)blockIdx.x);
            next = w.whole + (int)(begin / w.panels);
            panel = (int)(begin % w.panels);
            left = (int)(begin_of(w, (int)blockIdx.x + 1) - begin);
        }
        if (left == 0) return false;
        tile = next++, first = panel, last = w.panels - first < left ? w.panels : first + left;
        slot = w.cut ? 2 * (int)blockIdx.x + used : -1;
        left -= last - first;
        panel = 0;
        used++;
        return true;
    }
};

/* A warp's 16 rows of the product are columns of C, two pieces of 8 neighbours: pairs of rows take 16-byte units 0, 5, 1, 4 (2, 7, 3, 6 every
 * other warp) of 32 columns, so that neither loads of fragments nor stores to `out`, both swizzled, meet bank conflicts. The thread's unit,
 * and the first of its two columns. */
__device__ __forceinline__ int unit_of() {
    const int pair = (int)threadIdx.x % 32 / 8;
    return (pair % 2 * 5) ^ (pair / 2) ^ ((int)threadIdx.x / 32 % 2 * 2);
}
__device__ __forceinline__ int column_of() { return (int)threadIdx.x / 64 * 32 + unit_of() * 4 + (int)threadIdx.x % 32 / 4 % 2 * 2; }

/* COUNT of a thread's sums from number `from` on, to (first row, col) of C: 4 are 2 rows × 2 neighbouring columns, the next 8 rows further.
 * All loads go before the first store. WHOLE: all of them lie in C, which 8-byte accesses reach. */
template <bool WHOLE, int COUNT> __device__ __forceinline__ void store_some(const Work &w, const float *sum, int64_t row, int64_t col) {
    float2 before[COUNT / 2];
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
        const int64_t at_row = row + i / 2 * 8 + i % 2;
        const float *from = w.c + at_row * w.ldc + col;
        before[i] = make_float2(0.0f, 0.0f);
        if (!w.accumulate) continue;
        if (WHOLE) before[i] = *reinterpret_cast<const float2 *>(from);
        else {
            if (at_row < w.m && col < w.n) before[i].x = from[0];
            if (at_row < w.m && col + 1 < w.n) before[i].y = from[1];
        }
    }
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
        const int64_t at_row = row + i / 2 * 8 + i % 2;
        float *to = w.c + at_row * w.ldc + col;
        const float2 sums = make_float2(sum[i / 2 * 4 + i % 2], sum[i / 2 * 4 + 2 + i % 2]);
        const float2 after = w.accumulate ? make_float2(before[i].x + sums.x, before[i].y + sums.y) : sums;
        if (WHOLE) __stcs(reinterpret_cast<float2 *>(to), after);
        else {
            if (at_row < w.m && col < w.n) __stcs(to, after.x);
            if (at_row < w.m && col + 1 < w.n) __stcs(to + 1, after.y);
        }
    }
}

/* COUNT of the thread's sums, from number `from` on, to the tile's place in C. */
template <int COUNT> __device__ __forceinline__ void store(const Work &w, int tile_row, int tile_col, const float (&sum)[COUNT], int from) {
    constexpr int SOME = COUNT < 16 ? COUNT : 16;
    const int64_t row = (int64_t)tile_row * M + from * 2 + (int)threadIdx.x % 4 * 2, col = (int64_t)tile_col * N + column_of();
    const bool whole = w.wide && (int64_t)(tile_row + 1) * M <= w.m && (int64_t)(tile_col + 1) * N <= w.n;
#pragma unroll
    for (int i = 0; i < COUNT; i += SOME) {
        if (whole) store_some<true, SOME>(w, sum + i, row + i * 2, col);
        else store_some<false, SOME>(w, sum + i, row + i * 2, col);
        asm volatile("" ::: "memory"); /* some after the other: all at once would not fit the registers */
    }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* The slots, and the barriers that say when each is full and when empty. Behind the slots: buffers for C. */
struct Ring {
    unsigned char *slots;
    uint64_t *full, *empty;
};

typedef hopper::Place<SLOTS> Place;

/* One thread: asks for every panel in the order of use. */
__device__ __forceinline__ void produce(const Work &w, const Ring &ring) {
    Place place = {0, 0};
    for (Walk walk(w); walk.step(w);) {
        int row, col;
        tile_of(w, walk.tile, &row, &col);
        for (int panel = walk.first; panel < walk.last; panel++, place.step()) {
            unsigned char *slot = ring.slots + place.slot * SLOT_BYTES;
            hopper::barrier_wait(ring.empty + place.slot, place.phase ^ 1); /* free from the start */
            hopper::barrier_expect(ring.full + place.slot, SLOT_BYTES);
            hopper::copy_tensor(slot, &w.map_a, row * M, (w.panel + panel) * K, ring.full + place.slot);
#pragma unroll
            for (int box = 0; box < N / 32; box++)
                hopper::copy_tensor(slot + A_BYTES + box * BOX_BYTES, &w.map_b, (w.panel + panel) * K, col * N + box * 32, ring.full + place.slot);
        }
    }
}

/* A thread's elements of a panel of B, as wgmma_m64n256k8 wants them for each step of 8 along k. */
struct Fragments {
    uint32_t of[K / 8][4];
    /* at: this thread's row t = lane % 4 of its warp's box; bytes: of its two columns in that row, and in row t + 4 */
    __device__ __forceinline__ void load(const unsigned char *at, int bytes) {
#pragma unroll
        for (int step = 0; step < K / 8; step++) {
            const uint2 low = *reinterpret_cast<const uint2 *>(at + step * 1024 + bytes);
            const uint2 high = *reinterpret_cast<const uint2 *>(at + step * 1024 + 512 + (bytes ^ 64));
            of[step][0] = low.x, of[step][1] = low.y, of[step][2] = high.x, of[step][3] = high.y;
        }
    }
};

__device__ __forceinline__ void release(const Ring &ring, int slot) {
    if (threadIdx.x % 32 == 0) hopper::barrier_arrive(ring.empty + slot);
}

/* sum = or += the panel at `place`, which steps on. Its products are under way on return; those of the panel before, if this one adds to them,
 * are made and its slot, `busy`, is free. */
__device__ __forceinline__ void add_panel(float (&sum)[SUMS], Fragments &fragments, const Ring &ring, Place &place, int &busy, uint32_t own, int bytes, bool add) {
    hopper::barrier_wait(ring.full + place.slot, place.phase);
    fragments.load(ring.slots + place.slot * SLOT_BYTES + own, bytes);
    const uint64_t a = hopper::wgmma_operand(hopper::shared_address(ring.slots) + place.slot * SLOT_BYTES);
    hopper::wgmma_fence();
#pragma unroll
    for (int step = 0; step < K / 8; step++) hopper::wgmma_m64n256k8(sum, fragments.of[step], a + 2 * step, add || step > 0);
    hopper::wgmma_commit();
    hopper::wgmma_wait<1>();
    if (add) release(ring, busy);
    busy = place.slot;
    place.step();
}

/* A warpgroup's sums to C by the copy engine, OUT_ROWS rows at a time through one of two buffers: while one is read the next is written. */
__device__ __forceinline__ void copy_out(const Work &w, const Ring &ring, int tile_row, int tile_col, const float (&sum)[SUMS]) {
    const int group = (int)threadIdx.x / 128, row = (int)threadIdx.x % 4 * 2;
    unsigned char *out = ring.slots + OUT_AT + group * 2 * OUT_BYTES;
    unsigned char *own = out + (int)threadIdx.x / 64 % 2 * OUT_BOX + row * 128 + (int)threadIdx.x % 32 / 4 % 2 * 8;
#pragma unroll
    for (int i = 0; i < M / OUT_ROWS; i++) {
        const int buffer = i % 2 * OUT_BYTES;
#pragma unroll
        for (int j = 0; j < OUT_ROWS / 8; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                *reinterpret_cast<float2 *>(own + buffer + j * 1024 + e * 128 + (unit_of() ^ (row + e)) * 16) =
                    make_float2(sum[(i * OUT_ROWS / 8 + j) * 4 + e], sum[(i * OUT_ROWS / 8 + j) * 4 + 2 + e]);
        hopper::fence_copies();
        if (threadIdx.x % 128 == 0) hopper::store_wait<0>(); /* the other buffer has been read */
        __syncwarp();
        hopper::named_wait(1 + group, 128);
        if (threadIdx.x % 128 != 0) continue;
        for (int box = 0; box < 2; box++)
            hopper::store_tensor(&w.map_c, tile_row * M + i * OUT_ROWS, tile_col * N + group * 64 + box * 32, out + buffer + box * OUT_BOX, hopper::evict_first());
        hopper::store_commit();
    }
}

/* A warpgroup: its 64 columns of every tile of this block. */
__device__ __forceinline__ void consume(const Work &w, const Ring &ring) {
    const int row = (int)threadIdx.x % 4; /* of a box; its 16-byte units are swizzled */
    const uint32_t own = A_BYTES + threadIdx.x / 64 * BOX_BYTES + row * 128;
    const int bytes = (unit_of() ^ row) * 16 + (int)threadIdx.x % 32 / 4 % 2 * 8;
    Place place = {0, 0};
    int busy = 0;
    float sum[SUMS];
    Fragments even, odd;
    for (Walk walk(w); walk.step(w);) {
        int panel = walk.first;
        for (; panel + 2 <= walk.last; panel += 2) {
            add_panel(sum, even, ring, place, busy, own, bytes, panel > walk.first);
            add_panel(sum, odd, ring, place, busy, own, bytes, true);
        }
        if (panel < walk.last) add_panel(sum, even, ring, place, busy, own, bytes, panel > walk.first);
        hopper::wgmma_wait<0>();
        hopper::wgmma_hold(sum);
        release(ring, busy);
        if (walk.slot >= 0) {
            float4 *to = w.partial + (int64_t)walk.slot * (SUMS / 4) * MULTIPLIERS + threadIdx.x;
#pragma unroll
            for (int i = 0; i < SUMS; i += 4) to[i / 4 * MULTIPLIERS] = make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
        } else {
            int tile_row, tile_col;
            tile_of(w, walk.tile, &tile_row, &tile_col);
            if (tile_col < w.copied) copy_out(w, ring, tile_row, tile_col, sum);
            else store(w, tile_row, tile_col, sum, 0);
        }
    }
    if (threadIdx.x % 128 == 0) hopper::store_wait<0>(); /* shared memory ends with the block */
}
#endif

__global__ void __launch_bounds__(THREADS, 1) gemm_tf32(const __grid_constant__ Work w) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    Ring ring;
    ring.slots = hopper::shared_aligned(shared, 1024);
    ring.full = reinterpret_cast<uint64_t *>(ring.slots + BARRIERS_AT);
    ring.empty = ring.full + SLOTS;
    hopper::ring_init<SLOTS>(ring.full, ring.empty, 1, GROUPS * 4);
    __syncthreads();
    if (threadIdx.x >= MULTIPLIERS) {
        hopper::registers_give<40>();
        if (threadIdx.x == MULTIPLIERS) produce(w, ring);
    } else {
        hopper::registers_take<232>();
        consume(w, ring);
    }
#else
    (void)w;
    __trap(); /* built for another device: the registry never gets here */
#endif
}

constexpr int GATHERED = 4; /* sums of a thread a block of gather_parts takes */

/* Adds up what the parts made of a tile of the rest, in their order along k. */
__global__ void __launch_bounds__(MULTIPLIERS) gather_parts(const __grid_constant__ Work w) {
    const int tile = (int)(blockIdx.x / (SUMS / GATHERED)), rest = w.tiles_m * w.tiles_n - w.whole;
    const int64_t begin = (int64_t)tile * w.panels;
    const int from = (int)(blockIdx.x % (SUMS / GATHERED)) * GATHERED;
    int first = tile * w.parts / rest, last = (tile + 1) * w.parts / rest;
    while (begin_of(w, first + 1) <= begin) first++;
    while (last == w.parts || begin_of(w, last) >= begin + w.panels) last--;
    int slot = 2 * first + (begin_of(w, first) < begin); /* the others begin with this tile */
    float sum[GATHERED] = {};
#pragma unroll 8
    for (int part = first; part <= last; part++) {
        const float4 x = w.partial[((int64_t)slot * SUMS + from) / 4 * MULTIPLIERS + threadIdx.x];
        sum[0] += x.x, sum[1] += x.y, sum[2] += x.z, sum[3] += x.w;
        slot = 2 * part + 2;
    }
    int tile_row, tile_col;
    tile_of(w, w.whole + tile, &tile_row, &tile_col);
    store(w, tile_row, tile_col, sum, from);
}

/* ---- the kernel as the contract wants it ---------------------------------------------------------------------------------- */

int64_t packed_ld(int64_t cols) { return tsr_round_up(cols, 128 / (int64_t)sizeof(float)); }

/* How the workspace is cut; offsets in bytes. */
struct Places {
    size_t b, partial, end; /* a packed A comes first */
};
Places places_of(int64_t m, int64_t n, int64_t k) {
    const double most = 2.0 * (double)tsr_ceil_div(m, M) * (double)tsr_ceil_div(n, N) * (double)tsr_ceil_div(k, K);
    const size_t slots = (size_t)(most < 2 * MOST_BLOCKS ? most : 2 * MOST_BLOCKS);
    Places p;
    p.b = (size_t)(m * packed_ld(k)) * sizeof(float);
    p.partial = p.b + (size_t)(k * packed_ld(n)) * sizeof(float);
    p.end = p.partial + slots * SUMS * MULTIPLIERS * sizeof(float);
    return p;
}

size_t workspace_bytes(int64_t m, int64_t n, int64_t k) { return places_of(m, n, k).end; }

/* A map of an operand in boxes of box_rows × 32; of its copy where rows do not begin at multiples of 32 bytes: at 16 the copy engine is slow. */
tsr_status map_of(tsr_device *device, tsr_stream *stream, const void *x, int64_t ld, int64_t rows, int64_t cols, int box_rows, void *copy, CUtensorMap *map) {
    TSR_TRY(tsr_tensor_align(device, stream, TSR_F32, rows, cols, 32, copy, packed_ld(cols), &x, &ld));
    return tsr_tensor_map_tf32(x, rows, cols, ld, box_rows, 32, 128, map);
}

/* How many blocks make whole tiles, and whether the tiles that remain are cut along k: where what it saves is worth writing and reading parts,
 * all counted in panels. Returns the blocks needed. */
unsigned divide(Work *w, int64_t multiprocessors) {
    const int64_t blocks = tsr_min(multiprocessors, MOST_BLOCKS), tiles = (int64_t)w->tiles_m * w->tiles_n, rest = tiles % blocks;
    const int64_t most = tsr_min(blocks, rest * w->panels / SHORTEST);
    w->whole = (int)(tiles - rest);
    w->parts = (int)rest;
    w->cut = most > rest && w->panels - rest * w->panels / most > 6 + (most + rest) / 11;
    if (w->cut) w->parts = (int)most;
    return (unsigned)(w->whole > 0 ? blocks : w->parts);
}

/* w's panels, one launch after the other where they are too many for one sum. */
tsr_status multiply(tsr_stream *stream, Work *w, int64_t multiprocessors) {
    const int64_t tiles = (int64_t)w->tiles_m * w->tiles_n, panels = w->panels;
    const int64_t most = tiles < multiprocessors ? LONGEST * multiprocessors / tiles : LONGEST, launches = tsr_ceil_div(panels, most);
    for (int64_t i = 0; i < launches; i++) { /* the first stores, the others add */
        w->panel = (int)(panels * i / launches);
        w->panels = (int)(panels * (i + 1) / launches) - w->panel;
        const unsigned blocks = divide(w, multiprocessors);
        TSR_TRY(TSR_LAUNCH(gemm_tf32, blocks, THREADS, SHARED_BYTES, stream, *w));
        if (w->cut) TSR_TRY(TSR_LAUNCH(gather_parts, (unsigned)((tiles - w->whole) * (SUMS / GATHERED)), MULTIPLIERS, 0, stream, *w));
        w->accumulate = true, w->copied = 0;
    }
    return TSR_OK;
}

tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    const int64_t m = args->m, n = args->n, k = args->k;
    if (k == 0 || m > REACH || n > REACH || k > REACH || tsr_ceil_div(m, M) * tsr_ceil_div(n, N) > REACH) return tsr_gemm_coarse_where(stream, args, nullptr);
    int multiprocessors = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    TSR_TRY(TSR_CUDA(cudaFuncSetAttribute(gemm_tf32, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES)));
    const Places p = places_of(m, n, k);
    unsigned char *base = (unsigned char *)args->workspace;
    Work w;
    TSR_TRY(map_of(device, stream, args->a, args->lda, m, k, M, base, &w.map_a));
    TSR_TRY(map_of(device, stream, args->b, args->ldb, k, n, K, base + p.b, &w.map_b));
    w.partial = (float4 *)(base + p.partial);
    w.c = (float *)args->c;
    w.ldc = args->ldc;
    w.m = m;
    w.n = n;
    w.tiles_m = (int)tsr_ceil_div(m, M);
    w.tiles_n = (int)tsr_ceil_div(n, N);
    w.panels = (int)tsr_ceil_div(k, K);
    w.accumulate = args->accumulate;
    w.wide = (uintptr_t)args->c % 8 == 0 && args->ldc % 2 == 0;
    w.copied = args->accumulate || !tsr_tensor_map_reaches(args->c, args->ldc, sizeof(float)) ? 0 : n % 4 == 0 ? w.tiles_n : (int)(n / N);
    if (w.copied > 0) TSR_TRY(tsr_tensor_map(args->c, TSR_F32, m, n, args->ldc, OUT_ROWS, 32, 128, &w.map_c));
    return multiply(stream, &w, multiprocessors);
}

tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    TSR_TRY(TSR_CUDA(cudaFuncSetAttribute(gemm_tf32, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)SHARED_BYTES)));
    return tsr_gemm_describe(gemm_tf32, M, N, K, THREADS, SHARED_BYTES, sizeof(float), m, n, k, out);
}

} // namespace

/* Operands rounded to nearest err by 2^-11 relative each: 16388 u in a product of two. The tensor cores truncate: their sum of 8 more products
 * errs by less than 6.5 u, 0.8 u a term, and at most 2·LONGEST panels are one sum. */
const tsr_gemm_kernel tsr_gemm_tf32_f32 = {
    .name = "tf32", .what = "operands rounded to tf32, tensor cores", .device = TSR_DEVICE_CUDA, .input = TSR_F32,
    .type = TSR_F32, .min_arch = 90, .accuracy = TSR_ACCURACY_TF32, .error_factor = 43000, .multiple = 1,
    .speed_rank = 80, .workspace_bytes = workspace_bytes, .shape = shape, .launch = launch, .max_arch = 90,
    .small_below = SMALL, .small = &tsr_gemm_coarse_f32};
