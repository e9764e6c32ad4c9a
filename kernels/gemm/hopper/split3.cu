/* Operation: C = A·B or C += A·B, fp32, row-major, any shape, to fp32 accuracy from three fp16 products on the
 * tensor cores.
 * Split: a row of A and a column of B are scaled by a power of two so that the largest magnitude lies in [2^14,
 * 2^15); a scaled x is then high + low, both fp16. high·low + low·high + high·high is one sum on the tensor cores,
 * of a panel of 64 along k only, because they truncate where IEEE rounds; panels are added up on the CUDA cores,
 * rounded to nearest.
 * What the split cannot hold, and where it would be less exact than plain fp32 because few elements meet (sparse,
 * banded), is found while packing (see `judge`) and the product is then made by `simt` instead, or by `exact` where
 * earlier ones of the run were, all on the device. Where sums are reproducible each line is judged by itself, and
 * `simt` makes the elements of C whose line is not held. `simt` also makes products of few rows or few columns, whose
 * packing would take longer than what it saves.
 * Mapping: packing writes tiles that are the image shared memory wants, k-major, swizzled, zero-padded. Blocks stay
 * on their multiprocessor and walk tiles of 128 × 192 of C; one warp asks for panels by bulk copies, two groups of 4
 * warps multiply 64 × 192 each.
 * Shared memory: a pipeline of 5 stages of 40 KiB, each the high or the low part of a panel. Registers: 240 a thread
 * that multiplies.
 * Requirements: sm_90a; workspace for the packed operands, 4·(m·k + k·n) bytes and padding, and 26 MB for parts of
 * sums, or what `simt` wants.
 * Arithmetic intensity: 6·128·192·64 / (4·64·(128 + 192)) = 115 fp16 flop/byte.
 * Measured: H200, 2026-11-21, packing included, TFLOP/s, cuBLAS SGEMM in turns with it in brackets: 185 (50) at n =
 * 4096, 220 (51) at 8192, 219 (54) at 16384, 210 (48) at 8191; 8192 × 8192 × 512 168 (48), 512 × 8192 × 8192 114
 * (51), 100000 × 256 × 256 56 (46). Of the fp16 tensor peak, three products counted: 67 % at 8192.
 *   Error |ΔC|/(|A||B|), worst of 4096 samples, k = 8192, normal data: 0.23 eps, SGEMM 1.43; uniform in [0, 1): 6.1,
 *   SGEMM 39.
 * Reference: Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores, IJHPCA 2022 (arXiv
 * 2203.03341). */
#include "kernels/gemm/hopper/persistent.h"
#include "kernels/gemm/hopper/split3_operands.h"

namespace {

constexpr int GROUPS = 2; /* warpgroups that multiply */
constexpr int MULTIPLIERS = GROUPS * 128;
constexpr int A_PART = M * K * 2, B_PART = N * K * 2; /* bytes of one part of a panel */
typedef hopper::Pipeline<5, A_PART + B_PART> Pipe;
constexpr int BAND = 16;     /* rows of tiles that blocks walk together */
constexpr int SHORTEST = 64; /* along k; below it the stated error would not cover the split's own */

/* ---- multiplying ----------------------------------------------------------------------------- */

struct Work {
    const unsigned char *a, *b; /* packed */
    const unsigned *unfit, *largest_a, *largest_b;
    float *parts;
    float *c;
    int64_t ldc, m, n;
    int tiles_m, tiles_n;
    hopper::TilePlan plan;
    bool accumulate, wide;

    __device__ __forceinline__ hopper::TilePlace place_of(int tile) const {
        return hopper::tile_at(tile, tiles_m, tiles_n, BAND);
    }
};

/* 2^-shift as two factors: by itself it may be no float. */
struct Factors {
    float first, second;
};
template <bool BY_LINE> __device__ __forceinline__ Factors factors_of(unsigned largest) {
    const int down = -shift_of(BY_LINE ? largest & ~LEFT_OUT : largest);
    return {power(down >> 1), power(down - (down >> 1))};
}
__device__ __forceinline__ float unscaled(float x, Factors row, Factors col) {
    return x * (row.first * col.first) * (row.second * col.second);
}

/* before + own. APART: `own` is rounded before that, as where somebody else adds it; its last factor is not fused. */
template <bool APART> __device__ __forceinline__ float added(float before, float own) {
    return APART ? __fadd_rn(before, own) : before + own;
}

/* COUNT sums of a thread, from (row, col) of C on: 4 are two rows, 8 apart, × two columns; the next stand 8 columns
 * further. All loads go before the first store. WHOLE: all of them lie in C, which 8-byte accesses reach.
 * BY_LINE: some may be left out, of rows where left_rows is not 0. */
template <bool BY_LINE, bool WHOLE, int COUNT>
__device__ __forceinline__ void store_some(const Work &w, const float *sum, int64_t row, int64_t col,
                                           const Factors (&own)[2], const unsigned (&left_rows)[2]) {
    unsigned largest[COUNT / 2];
    float before[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
        const int64_t at = col + i / 2 * 8 + i % 2;
        largest[i] = __ldg(w.largest_b + (WHOLE ? at : at_most(at, w.n - 1)));
    }
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) {
        const int64_t at_row = row + i / 2 % 2 * 8, at_col = col + i / 4 * 8;
        const float *from = w.c + at_row * w.ldc + at_col;
        if (WHOLE) {
            const float2 pair = w.accumulate ? *reinterpret_cast<const float2 *>(from) : make_float2(0.0f, 0.0f);
            before[i] = pair.x;
            before[i + 1] = pair.y;
        } else {
            before[i] = w.accumulate && at_row < w.m && at_col < w.n ? from[0] : 0.0f;
            before[i + 1] = w.accumulate && at_row < w.m && at_col + 1 < w.n ? from[1] : 0.0f;
        }
    }
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) {
        const int64_t at_row = row + i / 2 % 2 * 8, at_col = col + i / 4 * 8;
        float *to = w.c + at_row * w.ldc + at_col;
        const unsigned *of = largest + i / 4 * 2;
        const float x = added<BY_LINE>(before[i], unscaled(sum[i], own[i / 2 % 2], factors_of<BY_LINE>(of[0])));
        const float y = added<BY_LINE>(before[i + 1], unscaled(sum[i + 1], own[i / 2 % 2], factors_of<BY_LINE>(of[1])));
        if (WHOLE && !BY_LINE) {
            *reinterpret_cast<float2 *>(to) = make_float2(x, y);
        } else {
            const bool row_left = BY_LINE && left_rows[i / 2 % 2];
            if (at_row < w.m && at_col < w.n && !(row_left || (BY_LINE && of[0] & LEFT_OUT))) to[0] = x;
            if (at_row < w.m && at_col + 1 < w.n && !(row_left || (BY_LINE && of[1] & LEFT_OUT))) to[1] = y;
        }
    }
}

/* COUNT of the 96 sums a thread holds (see wgmma_m64n192k16), from `from` on, to the tile's place in C. */
template <bool BY_LINE, int COUNT>
__device__ __forceinline__ void store(const Work &w, int tile_row, int tile_col, const float (&sum)[COUNT], int from) {
    constexpr int SOME = COUNT < 32 ? COUNT : 32;
    const int thread = (int)threadIdx.x;
    const int64_t row = (int64_t)tile_row * M + thread / 32 * 16 + thread % 32 / 4,
                  col = (int64_t)tile_col * N + from * 2 + thread % 4 * 2;
    const unsigned of[2] = {w.largest_a[at_most(row, w.m - 1)], w.largest_a[at_most(row + 8, w.m - 1)]};
    const Factors own[2] = {factors_of<BY_LINE>(of[0]), factors_of<BY_LINE>(of[1])};
    const unsigned left[2] = {of[0] & LEFT_OUT, of[1] & LEFT_OUT};
    if (w.wide && (int64_t)(tile_row + 1) * M <= w.m && (int64_t)(tile_col + 1) * N <= w.n) {
#pragma unroll
        for (int i = 0; i < COUNT; i += SOME) store_some<BY_LINE, true, SOME>(w, sum + i, row, col + i * 2, own, left);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i += SOME)
            if (col + i * 2 < w.n) store_some<BY_LINE, false, SOME>(w, sum + i, row, col + i * 2, own, left);
    }
}

/* sum (64 × 192) = or += one part of A's panel times one of B's. */
__device__ __forceinline__ void multiply(float (&sum)[96], uint64_t a, uint64_t b, bool add) {
#pragma unroll
    for (int step = 0; step < K / 16; step++)
        hopper::wgmma_m64n192k16(sum, a + 2 * step, b + 2 * step, add || step > 0);
}

/* The warpgroups take turns at the tensor cores, a panel each: while one rounds and adds, the other multiplies.
 * sum (64 × 192) += this warpgroup's rows of the panel whose high parts stand at `high`, low parts in the stage
 * behind. The small products come first, so that truncation takes from the large ones only, 4 times. */
__device__ __forceinline__ void add_panel(float (&sum)[96], const Pipe &pipe, uint32_t own, Pipe::State high,
                                          Pipe::State low, bool pass) {
    const uint32_t at_high = pipe.address(high.stage);
    const uint32_t at_low = pipe.address(low.stage);
    const uint64_t a_high = hopper::wgmma_operand(at_high + own), b_high = hopper::wgmma_operand(at_high + A_PART);
    const uint64_t a_low = hopper::wgmma_operand(at_low + own), b_low = hopper::wgmma_operand(at_low + A_PART);
    float part[96];
    pipe.wait(high);
    pipe.wait(low);
    hopper::wait_turn();
    hopper::wgmma_fence();
    multiply(part, a_high, b_low, false);
    multiply(part, a_low, b_high, true);
    multiply(part, a_high, b_high, true);
    hopper::wgmma_commit();
    if (pass) hopper::pass_turn();
    hopper::wgmma_wait<0>();
    hopper::wgmma_hold(part);
    pipe.release(low.stage);
    pipe.release(high.stage);
#pragma unroll
    for (int i = 0; i < 96; i++) sum[i] += part[i];
}

/* BY_LINE: what halves cannot hold are lines, and not the product. */
template <bool BY_LINE> struct Split3 : hopper::Persistent<hopper::Parts<float, M, N, K, MULTIPLIERS, 1>> {
    typedef ::Work Work;
    typedef ::Pipe Pipe;
    typedef float Sums[COUNT];
    struct Lane {};
    static constexpr int HOLDERS = 128, BARRIER = 3;
    static constexpr int PRODUCER_REGISTERS = 24;
    static constexpr hopper::Cut CUT = {
        .unit = 4, .handing = 4, .gathering = 4, .parts = 132, .full = hopper::FULL_DEVICE}; /* in panels */
    static constexpr bool WGMMA_ADDS = false;
    static __device__ __forceinline__ unsigned left_out(const Work &w) { return BY_LINE ? 0 : *w.unfit; }

    /* asks for every part of every panel */
    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, Pipe::State &at,
                                                 const hopper::WorkTile &work) {
        const hopper::TilePlace tile = w.place_of(work.tile);
        const unsigned char *a = w.a + ((int64_t)tile.row * w.plan.panels + work.first) * 2 * A_PART,
                            *b = w.b + ((int64_t)tile.col * w.plan.panels + work.first) * 2 * B_PART;
#pragma unroll 1 /* few registers are left to this thread */
        for (int parts = 2 * (work.last - work.first); parts > 0; parts--, a += A_PART, b += B_PART, at.step()) {
            pipe.acquire(at);
            hopper::copy_bulk(pipe.stage(at.stage), a, A_PART, pipe.full(at.stage));
            hopper::copy_bulk(pipe.stage(at.stage) + A_PART, b, B_PART, pipe.full(at.stage));
        }
    }

    /* a warpgroup makes its 64 rows */
    struct Consumer : hopper::EveryWork {
        __device__ __forceinline__ void begin() const {
            if (threadIdx.x / 128 == 1) hopper::pass_turn(); /* the other begins */
        }
        __device__ __forceinline__ void multiply(const Work &, const Pipe &pipe, const Lane &, Pipe::State &at,
                                                 const hopper::WorkTile &work, bool more, Sums &sum) {
            const int group = (int)threadIdx.x / 128;
            const int very_last = more || group == 0 ? -1 : work.last - 1;
            for (int panel = work.first; panel < work.last; panel++) {
                Pipe::State low = at;
                low.step();
                add_panel(sum, pipe, (uint32_t)group * 64 * 128, at, low, panel != very_last);
                at = low;
                at.step();
            }
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &, const Lane &, const hopper::WorkTile &work,
                                               const Sums &sum) const {
            if (work.to >= 0) return leave(w, work.to, sum);
            put(w, work.tile, 0, 0, sum);
        }
    };

    static __device__ __forceinline__ void add(const Work &w, int part, int group, int thread, float (&sum)[VALUES]) {
        const float *from = w.parts + (int64_t)part * M * N + group * VALUES * THREADS + thread;
#pragma unroll
        for (int i = 0; i < VALUES; i++) sum[i] += from[i * THREADS];
    }
    template <int COUNT>
    static __device__ __forceinline__ void put(const Work &w, int tile, int group, int, const float (&sum)[COUNT]) {
        const hopper::TilePlace place = w.place_of(tile);
        store<BY_LINE>(w, place.row, place.col, sum, group * VALUES);
    }
};

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

constexpr const tsr_gemm_kernel &FALLBACK = tsr_gemm_exact_behind_f32;

/* How the workspace is cut; offsets in bytes. */
struct Places {
    size_t counts, a, b;
    size_t partial, end;
};
/* Where sums are reproducible `simt` makes so many rows at least for lines that are left out. */
constexpr int64_t STRIP = M;
int64_t strip_ld(int64_t n) { return tsr_round_up(n, 32); }
size_t made_bytes(int64_t rows, int64_t n) {
    return (size_t)tsr_round_up(rows * strip_ld(n) * (int64_t)sizeof(float), 1024);
}
size_t strip_bytes(int64_t rows, int64_t n, int64_t k) {
    return made_bytes(rows, n) + tsr_gemm_simt_f32.workspace_bytes(rows, n, k);
}
Places places_of(int64_t m, int64_t n, int64_t k) {
    const int64_t tiles_m = tsr_ceil_div(m, M);
    const int64_t tiles_n = tsr_ceil_div(n, N);
    const int64_t panels = tsr_ceil_div(k, K);
    Places p;
    p.counts = 1024; /* the verdict stands in front */
    p.a = p.counts + (size_t)tsr_round_up(3 * (m + n) * (int64_t)sizeof(unsigned), 1024);
    p.b = p.a + (size_t)(tiles_m * panels) * 2 * A_PART;
    p.partial = p.b + (size_t)(tiles_n * panels) * 2 * B_PART;
    p.end = p.partial + hopper::parts_bytes_of<Split3<false>>(m, n, k);
    /* which may take the place of it all */
    p.end = (size_t)tsr_max(p.end, p.a + tsr_gemm_simt_f32.workspace_bytes(m, n, k));
    p.end = (size_t)tsr_max(p.end, p.a + strip_bytes(tsr_min(m, STRIP), n, k));
    return p;
}

size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    return k < SHORTEST ? tsr_gemm_simt_f32.workspace_bytes(m, n, k) : places_of(m, n, k).end;
}

/* A product's operands on the stream, packed and judged. */
struct Operands {
    Places at;
    unsigned char *base;
    Verdict *verdict;
    Lines a, b;
};
tsr_status pack_operands(tsr_stream *stream, const tsr_gemm_args *args, bool lines_alone, bool passed, Operands *o) {
    const int64_t m = args->m, n = args->n;
    o->at = places_of(m, n, args->k);
    o->base = (unsigned char *)args->workspace;
    o->verdict = (Verdict *)o->base;
    unsigned *counts = (unsigned *)(o->base + o->at.counts);
    o->a = {counts, counts + m, counts + 2 * m, m};
    o->b = {counts + 3 * m, counts + 3 * m + n, counts + 3 * m + 2 * n, n};
    TSR_TRY(TSR_CUDA(cudaMemsetAsync(o->base, 0, o->at.a, tsr_cuda_stream(stream))));
    TSR_TRY(prepare(stream, args, o->a, o->b, o->base + o->at.a, o->base + o->at.b));
    return judge_operands(stream, args, o->a, o->b, lines_alone, passed, o->verdict);
}

template <bool BY_LINE>
tsr_status multiply_operands(tsr_stream *stream, const tsr_gemm_args *args, hopper::Cut cut, const Operands &o) {
    Work w;
    w.a = o.base + o.at.a;
    w.b = o.base + o.at.b;
    w.unfit = &o.verdict->unfit;
    w.largest_a = o.a.largest;
    w.largest_b = o.b.largest;
    hopper::take_product(&w, args, M, N);
    w.wide = (uintptr_t)args->c % 8 == 0 && args->ldc % 2 == 0;
    TSR_TRY(hopper::plan_tiles(cut, &w, tsr_ceil_div(args->k, K)));
    return hopper::launch<Split3<BY_LINE>>(stream, &w, o.base + o.at.partial);
}

tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    const bool by_exact =
        args->fallback_workspace && tsr_gemm_serving(&FALLBACK, args->m, args->n, args->k) == &FALLBACK;
    Operands o;
    TSR_TRY(pack_operands(stream, args, false, !by_exact, &o));
    TSR_TRY(multiply_operands<false>(stream, args, Split3<false>::CUT, o));
    tsr_gemm_args instead = *args;
    instead.workspace = by_exact ? args->fallback_workspace : o.base + o.at.a;
    instead.predicate = &o.verdict->unfit;
    return tsr_gemm_launch(by_exact ? &FALLBACK : &tsr_gemm_simt_f32, device, stream, &instead);
}

/* Elements of C whose row or column is left out, by `simt`, strip by strip, in the place of the packed operands. */
tsr_status make_left_out(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, const Operands &o) {
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    const int64_t ld = strip_ld(n);
    const size_t room = o.at.end - o.at.a;
    int64_t most = m;
    while (strip_bytes(most, n, k) > room) most = tsr_round_up(tsr_ceil_div(most, 2), STRIP);
    for (int64_t row = 0; row < m; row += most) {
        const int64_t rows = tsr_min(most, m - row);
        float *made = (float *)(o.base + o.at.a), *c = (float *)args->c + row * args->ldc;
        tsr_gemm_args strip = *args;
        strip.m = rows;
        strip.a = (const float *)args->a + row * args->lda;
        strip.c = made;
        strip.ldc = ld;
        strip.accumulate = false;
        strip.workspace = o.base + o.at.a + made_bytes(rows, n);
        strip.predicate = &o.verdict->unfit;
        TSR_TRY(tsr_gemm_simt_f32.launch_reproducible(device, stream, &strip));
        const unsigned blocks = (unsigned)tsr_min(rows * tsr_ceil_div(n, 256), 1024);
        TSR_TRY(TSR_LAUNCH(take_left_out, blocks, 256, 0, stream, c, args->ldc, (const float *)made, ld,
                           (const unsigned *)o.a.largest + row, (const unsigned *)o.b.largest, rows, n,
                           args->accumulate, &o.verdict->unfit));
    }
    return TSR_OK;
}

tsr_status launch_reproducible(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    Operands o;
    TSR_TRY(pack_operands(stream, args, true, true, &o));
    TSR_TRY(multiply_operands<true>(stream, args, hopper::whole(Split3<true>::CUT), o));
    return make_left_out(device, stream, args, o);
}

/* `simt` is quicker at 1024³ by 4 % on an H200, no longer at 1536³. 160 is from times at 256 × 256 × 100000, which
 * `simt` makes in 0.85 of them: packing costs more than the product gains. */
tsr_gemm_substitute substitute(int64_t m, int64_t n, int64_t k) {
    if (k < SHORTEST) return {.kernel = &tsr_gemm_simt_f32, .why = "k < 64", .unable = true};
    if (tsr_gemm_is_small(1100, m, n, k)) return {.kernel = &tsr_gemm_simt_f32, .why = "m*n*k < 1100^3, k < 1100"};
    if ((double)m * (double)n < 160 * (double)(m + n))
        return {.kernel = &tsr_gemm_simt_f32, .why = "m*n/(m + n) < 160"};
    return {};
}

} // namespace

/* k·u covers the split's own error, 8·u and at most 4·u of weak elements, because shorter products than SHORTEST go
 * to `simt`. */
const tsr_gemm_kernel tsr_gemm_split3_f32 =
    hopper::kernel(TSR_F32, TSR_F32,
                   {.name = "split3",
                    .what = "fp32 accuracy from three fp16 tensor-core products",
                    .speed_rank = 70,
                    .substitute = substitute,
                    .fallback = &FALLBACK,
                    .fallback_for = "elements that it cannot hold",
                    .batched = &tsr_gemm_batched_f32,
                    .workspace_bytes = workspace_bytes,
                    .shape = hopper::shape<Split3<false>>,
                    .launch = launch,
                    .launch_reproducible = launch_reproducible});
