/* Operation: C = A·B or C += A·B, fp32, row-major, any shape; A and B rounded to tf32 (11 significant bits, to
 * nearest even), products and sums on the tensor cores.
 * Mapping: the tensor cores want what they read from shared memory k-major, as A is and B is not. So they make Cᵀ =
 * Bᵀ·Aᵀ: the rows of their product are columns of C, and Bᵀ comes from registers, where its order is free. Blocks
 * stay on their multiprocessor and walk tiles of 256 × 128 of C; one thread asks for panels of 32 along k, which the
 * TMA rounds to tf32 on the way and fills up with zeros at the edges; two groups of 4 warps multiply 256 ×
 * 64 each. Blocks share the tiles left over when every block has made the same number, so that all end together.
 * Tiles too few for the device are cut along k, and a second kernel adds the parts up. C leaves through shared
 * memory and TMA, while the next tile begins; where that cannot reach it, or C is added to, straight from the
 * registers.
 * Shared memory: a pipeline of 4 stages of 48 KiB, a panel of A (rows of 128 bytes, swizzled) and of B (4 boxes of such
 * rows), and 32 KiB for C.
 *   Registers: 232 a thread that multiplies, of which 128 hold sums and 32 two panels' fragments of B.
 * Requirements: sm_90a; workspace for parts of sums, and for copies of operands whose rows do not begin at multiples
 * of 32 bytes.
 * Arithmetic intensity: 2·256·128·32 / (4·32·(256 + 128)) = 43 flop/byte.
 * Measured: H200, 2026-11-21, uniform data in [0, 1), packing included, TFLOP/s, cuBLAS tf32 in turns with it in
 * brackets: 385 (381) at n = 4096, 384 (368) at 8192, 78 % of the tensor cores' tf32 peak, 347 (138) at 8191, 321
 * (131) at 8193; 8192 × 8192 × 512 314 (286), 512 × 8192 × 8192 391 (351), 100000 × 256 × 256 206 (162), 256 × 256 ×
 * 100000 156 to 165 (166). */
#include "kernels/gemm/hopper/persistent.h"
#include "kernels/gemm/hopper/tensor_map.h"

namespace {

/* a block's tile of C, and a panel */
constexpr int M = 256;
constexpr int N = 128;
constexpr int K = 32;
constexpr int GROUPS = 2; /* warpgroups that multiply */
constexpr int MULTIPLIERS = GROUPS * 128;
constexpr int A_BYTES = M * K * 4, BOX_BYTES = K * 32 * 4;
/* of C that a warpgroup hands to TMA at once */
constexpr int OUT_ROWS = 32;
/* two boxes of 32 columns; two such buffers a warpgroup */
constexpr int OUT_BOX = OUT_ROWS * 32 * 4, OUT_BYTES = 2 * OUT_BOX;
typedef hopper::Pipeline<4, A_BYTES + N / 32 * BOX_BYTES, GROUPS * 2 * OUT_BYTES> Pipe;
constexpr int BAND = 8;                   /* rows of tiles that blocks walk together */
constexpr int SUMS = M * N / MULTIPLIERS; /* of a thread */
/* panels that are one sum on the tensor cores, twice as many at most: the stated error rests on it */
constexpr int MOST_SUM_PANELS = 512;
constexpr int64_t MOST_EXTENT = 1 << 30; /* rows, columns and tiles that 32 bits count */

/* ---- multiplying ----------------------------------------------------------------------------- */

struct Work {
    CUtensorMap map_a, map_b, map_c; /* map_c if any columns are `copied` */
    float4 *parts;                   /* [part][SUMS / 4][MULTIPLIERS] */
    float *c;
    int64_t ldc, m, n;
    int tiles_m, tiles_n;
    hopper::TilePlan plan;
    int panel; /* of k, the first of this launch */
    bool accumulate;
    /* columns of tiles that TMA stores: it writes 16 bytes at a time, also where C ends between */
    int copied;
    bool wide; /* C can be reached by 8-byte accesses */

    __device__ __forceinline__ hopper::TilePlace place_of(int tile) const {
        return hopper::tile_at(tile, tiles_m, tiles_n, BAND);
    }
};

/* A warp's 16 rows of the product are columns of C, two pieces of 8 neighbours: pairs of rows take 16-byte units 0,
 * 5, 1, 4 (2, 7, 3, 6 every other warp) of 32 columns, so that neither loads of fragments nor stores to `out`, both
 * swizzled, meet bank conflicts. The thread's unit, and the first of its two columns. */
__device__ __forceinline__ int unit_of() {
    const int pair = (int)threadIdx.x % 32 / 8;
    return (pair % 2 * 5) ^ (pair / 2) ^ ((int)threadIdx.x / 32 % 2 * 2);
}
__device__ __forceinline__ int column_of() {
    return (int)threadIdx.x / 64 * 32 + unit_of() * 4 + (int)threadIdx.x % 32 / 4 % 2 * 2;
}

/* COUNT of a thread's sums from number `from` on, to (first row, col) of C: 4 are 2 rows × 2 neighbouring columns,
 * the next 8 rows further.
 * All loads go before the first store. WHOLE: all of them lie in C, which 8-byte accesses reach. */
template <bool WHOLE, int COUNT>
__device__ __forceinline__ void store_some(const Work &w, const float *sum, int64_t row, int64_t col) {
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
template <int COUNT>
__device__ __forceinline__ void store(const Work &w, int tile_row, int tile_col, const float (&sum)[COUNT], int from) {
    constexpr int SOME = COUNT < 16 ? COUNT : 16;
    const int64_t row = (int64_t)tile_row * M + from * 2 + (int)threadIdx.x % 4 * 2,
                  col = (int64_t)tile_col * N + column_of();
    const bool whole = w.wide && (int64_t)(tile_row + 1) * M <= w.m && (int64_t)(tile_col + 1) * N <= w.n;
#pragma unroll
    for (int i = 0; i < COUNT; i += SOME) {
        if (whole) store_some<true, SOME>(w, sum + i, row + i * 2, col);
        else store_some<false, SOME>(w, sum + i, row + i * 2, col);
        asm volatile("" ::: "memory"); /* some after the other: all at once would not fit the registers */
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
            of[step][0] = low.x;
            of[step][1] = low.y;
            of[step][2] = high.x;
            of[step][3] = high.y;
        }
    }
};

/* sum += the panel at `at`, which steps on. Its products are under way on return; those of the panel before,
 * unless this one is the `first`, are made and its stage, `busy`, is free. */
__device__ __forceinline__ void add_panel(float (&sum)[SUMS], Fragments &fragments, const Pipe &pipe, Pipe::State &at,
                                          int &busy, uint32_t own, int bytes, bool first) {
    pipe.wait(at);
    fragments.load(pipe.stage(at.stage) + own, bytes);
    const uint64_t a = hopper::wgmma_operand(pipe.address(at.stage));
    hopper::wgmma_fence();
#pragma unroll
    for (int step = 0; step < K / 8; step++) hopper::wgmma_m64n256k8(sum, fragments.of[step], a + 2 * step, true);
    hopper::wgmma_commit();
    hopper::wgmma_wait<1>();
    if (!first) pipe.release(busy);
    busy = at.stage;
    at.step();
}

/* A warpgroup's sums to C by TMA, OUT_ROWS rows at a time through one of two buffers: while one is read
 * the next is written. */
__device__ __forceinline__ void copy_out(const Work &w, const Pipe &pipe, int tile_row, int tile_col,
                                         const float (&sum)[SUMS]) {
    const int group = (int)threadIdx.x / 128, row = (int)threadIdx.x % 4 * 2;
    unsigned char *out = pipe.behind() + group * 2 * OUT_BYTES;
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
            hopper::store_tensor(&w.map_c, tile_row * M + i * OUT_ROWS, tile_col * N + group * 64 + box * 32,
                                 out + buffer + box * OUT_BOX, hopper::evict_first());
        hopper::store_commit();
    }
}

struct Tf32 : hopper::Persistent<hopper::Parts<float, M, N, K, MULTIPLIERS, 4>> {
    typedef ::Work Work;
    typedef ::Pipe Pipe;
    typedef float Sums[SUMS];
    static constexpr int HOLDERS = 128, BARRIER = 1;
    static constexpr int PRODUCER_REGISTERS = 40;
    static constexpr hopper::Cut CUT = {
        .unit = 4, .handing = 24, .gathering = 6, .parts = 11, .full = hopper::FULL_DEVICE}; /* in panels */
    static constexpr bool WGMMA_ADDS = true;

    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, Pipe::State &at,
                                                 const hopper::WorkTile &work) {
        const hopper::TilePlace tile = w.place_of(work.tile);
        for (int panel = work.first; panel < work.last; panel++, at.step()) {
            unsigned char *stage = pipe.stage(at.stage);
            pipe.acquire(at);
            hopper::copy_tensor(stage, &w.map_a, tile.row * M, (w.panel + panel) * K, pipe.full(at.stage));
#pragma unroll
            for (int box = 0; box < N / 32; box++)
                hopper::copy_tensor(stage + A_BYTES + box * BOX_BYTES, &w.map_b, (w.panel + panel) * K,
                                    tile.col * N + box * 32, pipe.full(at.stage));
        }
    }
    struct Lane {
        const int row = (int)threadIdx.x % 4; /* of a box; its 16-byte units are swizzled */
        const uint32_t own = A_BYTES + threadIdx.x / 64 * BOX_BYTES + row * 128;
        const int bytes = (unit_of() ^ row) * 16 + (int)threadIdx.x % 32 / 4 % 2 * 8;
    };
    struct Consumer : hopper::EveryWork {
        Fragments even, odd;
        int busy = 0;
        __device__ __forceinline__ void multiply(const Work &, const Pipe &pipe, const Lane &lane, Pipe::State &at,
                                                 const hopper::WorkTile &work, bool, Sums &sum) {
            hopper::wgmma_hold(sum);
            int panel = work.first;
            for (; panel + 2 <= work.last; panel += 2) {
                add_panel(sum, even, pipe, at, busy, lane.own, lane.bytes, panel == work.first);
                add_panel(sum, odd, pipe, at, busy, lane.own, lane.bytes, false);
            }
            if (panel < work.last) add_panel(sum, even, pipe, at, busy, lane.own, lane.bytes, panel == work.first);
            hopper::wgmma_wait<0>();
            hopper::wgmma_hold(sum);
            pipe.release(busy);
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Lane &,
                                               const hopper::WorkTile &work, const Sums &sum) const {
            if (work.to >= 0) return leave(w, work.to, sum);
            const hopper::TilePlace place = w.place_of(work.tile);
            if (place.col < w.copied) copy_out(w, pipe, place.row, place.col, sum);
            else ::store(w, place.row, place.col, sum, 0);
        }
        __device__ __forceinline__ void end() const {
            if (threadIdx.x % 128 == 0) hopper::store_wait<0>(); /* shared memory ends with the block */
        }
    };

    /* For the gather: 4 sums of a thread. */
    static __device__ __forceinline__ void add(const Work &w, int part, int group, int owner, float (&sum)[VALUES]) {
        hopper::add4(sum, w.parts[((int64_t)part * GROUPS + group) * THREADS + owner]);
    }
    static __device__ __forceinline__ void put(const Work &w, int tile, int group, int, const float (&sum)[VALUES]) {
        const hopper::TilePlace place = w.place_of(tile);
        store(w, place.row, place.col, sum, group * VALUES);
    }
};

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

int64_t packed_ld(int64_t cols) { return tsr_round_up(cols, 128 / (int64_t)sizeof(float)); }

/* How the workspace is cut; offsets in bytes. */
struct Places {
    size_t b, parts, end; /* a packed A comes first */
};
Places places_of(int64_t m, int64_t n, int64_t k) {
    Places p;
    p.b = (size_t)(m * packed_ld(k)) * sizeof(float);
    p.parts = p.b + (size_t)(k * packed_ld(n)) * sizeof(float);
    p.end = p.parts + hopper::parts_bytes_of<Tf32>(m, n, k);
    return p;
}

size_t workspace_bytes(int64_t m, int64_t n, int64_t k) { return places_of(m, n, k).end; }

/* A map of an operand in boxes of box_rows × 32; of its copy where rows do not begin at multiples of 32 bytes: at 16
 * TMA is slow. */
tsr_status map_of(tsr_device *device, tsr_stream *stream, const void *x, int64_t ld, int64_t rows, int64_t cols,
                  int box_rows, void *copy, CUtensorMap *map) {
    TSR_TRY(tsr_tensor_align(device, stream, TSR_F32, rows, cols, 32, copy, packed_ld(cols), &x, &ld));
    return tsr_tensor_map(x, TSR_F32, rows, cols, ld, {.rows = box_rows, .cols = 32, .swizzle = 128, .tf32 = true},
                          map);
}

/* All panels, one launch after the other where they are too many for one sum: `most` of a launch. */
tsr_status multiply(tsr_stream *stream, Work *w, void *parts, int64_t panels, hopper::Cut cut, int64_t most) {
    const int64_t launches = tsr_ceil_div(panels, most);
    for (int64_t i = 0; i < launches; i++) { /* the first stores, the others add */
        w->panel = (int)(panels * i / launches);
        TSR_TRY(hopper::plan_tiles(cut, w, panels * (i + 1) / launches - w->panel));
        TSR_TRY(hopper::launch<Tf32>(stream, w, parts));
        w->accumulate = true;
        w->copied = 0;
    }
    return TSR_OK;
}

/* whole: no sum is cut but for its length */
tsr_status launch_cut(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, bool whole) {
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    const Places p = places_of(m, n, k);
    unsigned char *base = (unsigned char *)args->workspace;
    Work w;
    TSR_TRY(map_of(device, stream, args->a, args->lda, m, k, M, base, &w.map_a));
    TSR_TRY(map_of(device, stream, args->b, args->ldb, k, n, K, base + p.b, &w.map_b));
    hopper::take_product(&w, args, M, N);
    w.wide = (uintptr_t)args->c % 8 == 0 && args->ldc % 2 == 0;
    w.copied = args->accumulate || !tsr_tensor_map_reaches(args->c, args->ldc, sizeof(float)) ? 0
               : n % 4 == 0                                                                   ? w.tiles_n
                                                                                              : (int)(n / N);
    if (w.copied > 0) TSR_TRY(tsr_tensor_map(args->c, TSR_F32, m, n, args->ldc, {OUT_ROWS, 32, 128}, &w.map_c));
    const int64_t tiles = (int64_t)w.tiles_m * w.tiles_n, pieces = tsr_ceil_div(Tf32::CUT.full, tiles);
    return multiply(stream, &w, base + p.parts, tsr_ceil_div(k, K), whole ? hopper::whole(Tf32::CUT) : Tf32::CUT,
                    MOST_SUM_PANELS * (whole ? 1 : pieces));
}

tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut(device, stream, args, false);
}
tsr_status launch_reproducible(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut(device, stream, args, true);
}

tsr_gemm_substitute substitute(int64_t m, int64_t n, int64_t k) {
    if (tsr_gemm_is_small(64, m, n, k))
        return {.kernel = &tsr_gemm_coarse_f32, .why = "m*n*k < 64^3, k < 64", .unable = k == 0};
    if (m > MOST_EXTENT || n > MOST_EXTENT || k > MOST_EXTENT || tsr_ceil_div(m, M) * tsr_ceil_div(n, N) > MOST_EXTENT)
        return {.kernel = &tsr_gemm_coarse_f32, .why = "m, n, k or tiles > 2^30", .unable = true};
    return {};
}

} // namespace

/* Operands rounded to nearest err by 2^-11 relative each: 16388 u in a product of two. The tensor cores truncate:
 * their sum of 8 more products errs by less than 6.5 u, 0.8 u a term. At most 2·MOST_SUM_PANELS panels are
 * one sum. */
const tsr_gemm_kernel tsr_gemm_tf32_f32 = hopper::kernel(TSR_F32, TSR_F32,
                                                         {.name = "tf32",
                                                          .what = "operands rounded to tf32, tensor cores",
                                                          .accuracy = TSR_ACCURACY_TF32,
                                                          .rounds_tf32 = true,
                                                          .error_factor = 43000,
                                                          .speed_rank = 80,
                                                          .substitute = substitute,
                                                          .batched = &tsr_gemm_batched_f32,
                                                          .workspace_bytes = workspace_bytes,
                                                          .shape = hopper::shape<Tf32>,
                                                          .launch = launch,
                                                          .launch_reproducible = launch_reproducible});
