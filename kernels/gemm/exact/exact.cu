/* Operation: C = A·B or C += A·B, fp64 or fp32, row-major, any shape, exact between two roundings (exact_rules.h): the
 *   same bits on every GPU and on the CPU, however C and k are cut at multiples of TSR_EXACT_BLOCK and TSR_EXACT_RANGE.
 * Mapping: for each range of k and each block of C of up to EDGE rows and columns: lines are looked at and converted to
 *   residues (exact_convert.h), a product of magnitudes decides which level each block of C needs, and one of patterns
 *   where that proves none. Each level's blocks are multiplied modulo every modulus (residues/products.h), put together
 *   by the Chinese remainder theorem, and rounded. Few elements of a block may take the last level by themselves; what
 *   no level holds, blocks or single elements, is made by a loop.
 *   Large blocks of C that take one level are multiplied in quarters (residues/winograd.h).
 * Check: args.check (exact_check.h), by kernels of its own, 2 to 4 %. What is made by itself, or by a loop, is made
 *   twice.
 * Under `auto`: blocks of C that would take longer than with `dmma` (fp32: `simt`) are handed over to it, by a count on
 *   the device. Asked for by name it makes all itself. Products that `split3` cannot hold come here, too.
 * Memory: in the workspace, a byte for each element of A, B and C and each modulus, of at most EDGE rows and columns,
 *   or two where there may be quarters; two for the proof, and a bit for each element of C; for the check 8 for each
 *   element of k and 128 lines.
 * Requirements: none; fast on sm_90, whose tensor cores multiply bytes.
 * Measured: H200, 2026-11-30, normal data, TFLOP/s for 2 s, cuBLAS in turns in brackets: fp64 70 (52) at n = 4096, 83
 *   (53) at 8192, 92 (53) at 16384; fp32 135 (51), 165 (51), 185 (53). With the check 68, 80, 90; 130, 160, 181. By the
 *   profiler, of 1.80 ms of fp64 at 4096, products take 1.21, the last step 0.13, conversion 0.30, the proof 0.10.
 * Reference: Ozaki, Uchino, Imamura, arXiv 2504.08009; docs/exact.md. */
#include "kernels/gemm/auto/handing.h"
#include "kernels/gemm/auto/shapes.h"
#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/exact/exact_check.h"
#include "kernels/gemm/exact/exact_combine.h"
#include "kernels/gemm/exact/exact_levels.h"
#include "kernels/gemm/registry.h"
#include "kernels/gemm/residues/winograd.h"

namespace {

using exact::Operand;

constexpr int64_t EDGE = TSR_EXACT_EDGE;
static_assert((EDGE / TSR_EXACT_TILE) * (EDGE / TSR_EXACT_TILE) <= TSR_EXACT_TILES_MOST);
constexpr int BLOCK = TSR_EXACT_BLOCK;

/* ---- how the workspace is cut ---------------------------------------------------------------- */

struct Sizes {
    int64_t m, n, k; /* of the largest block of C, and range */
    int64_t rows_a, rows_b, depth, parts;
    int across, blocks; /* of TSR_EXACT_BLOCK rows and columns */
    int down, wide;     /* such of them that have elements */
    bool quartered;     /* products are made of quarters, where all blocks take one level */
};
/* Which products are made of quarters. */
enum Quartering { LARGE, ALL, NONE };
Sizes sizes_of(int64_t m, int64_t n, int64_t k, Quartering quartering) {
    Sizes s;
    s.m = tsr_min(m, EDGE);
    s.n = tsr_min(n, EDGE);
    s.k = tsr_min(k, TSR_EXACT_RANGE);
    s.quartered = quartering == ALL || (quartering == LARGE && tsr_exact_is_quartered(m, n, k));
    const int sides = s.quartered ? 2 : 1;
    s.rows_a = tsr_round_up(s.m, sides * TSR_EXACT_TILE);
    s.rows_b = tsr_round_up(s.n, sides * TSR_EXACT_TILE);
    s.depth = tsr_round_up(s.k, sides * TSR_EXACT_DEPTH);
    s.parts = s.depth / TSR_EXACT_PART;
    s.across = (int)(s.rows_b / BLOCK);
    s.blocks = (int)(s.rows_a / BLOCK) * s.across;
    s.down = (int)tsr_ceil_div(s.m, BLOCK);
    s.wide = (int)tsr_ceil_div(s.n, BLOCK);
    return s;
}

/* What stands in the workspace, each at a multiple of 1024 bytes. */
struct Places {
    unsigned *handed; /* see exact::Handing; in front, wherever the others are */
    tsr_exact_proof *proof_a, *proof_b;
    tsr_exact_line *parts_b;
    /* one after the other up to `left`, with the check up to its totals, cleared together */
    unsigned *rough_a, *rough_b;
    unsigned *levels_a, *levels_b, *levels;
    tsr_exact_few *few;                     /* of blocks */
    unsigned *left;                         /* a bit an element of C: see tsr_residue_levels_args */
    size_t cleared_bytes, cleared_to_check; /* without totals, and with them */
    unsigned *open, *any;                   /* any: see note_any */
    int8_t *proving_a, *proving_b;
    int8_t *planes_a, *planes_b, *planes_c;
    exact::Checksums checksums;     /* but for where they are counted */
    void *lists[TSR_RESIDUE_LISTS]; /* of products */
    void *list_of_quarters;
    size_t bytes;
};

template <typename X> X *take(unsigned char *base, size_t *at, int64_t count) {
    X *place = (X *)(base + *at);
    *at += (size_t)tsr_round_up(count * (int64_t)sizeof(X), 1024);
    return place;
}

Places places_of(void *workspace, const Sizes &s, int planes, bool proves) {
    unsigned char *base = (unsigned char *)workspace;
    const int64_t rows = s.rows_a / BLOCK, columns = s.across;
    const int64_t all = s.quartered ? 2 * planes : planes;
    size_t at = 0;
    Places p = {};
    p.handed = take<unsigned>(base, &at, 2);
    p.proof_a = take<tsr_exact_proof>(base, &at, s.m);
    p.proof_b = take<tsr_exact_proof>(base, &at, s.n);
    p.parts_b = take<tsr_exact_line>(base, &at, s.parts * s.n);
    const size_t cleared_from = at;
    p.rough_a = take<unsigned>(base, &at, 2 * (rows + columns) + s.blocks);
    p.rough_b = p.rough_a + rows;
    p.levels_a = p.rough_b + columns;
    p.levels_b = p.levels_a + rows;
    p.levels = p.levels_b + columns;
    p.few = take<tsr_exact_few>(base, &at, s.blocks);
    p.left = take<unsigned>(base, &at, proves ? s.rows_a * s.rows_b / 32 : 0);
    p.cleared_bytes = at - cleared_from;
    p.checksums.totals_a = take<unsigned long long>(base, &at, proves ? rows * s.depth : 0);
    p.checksums.totals_b = take<unsigned long long>(base, &at, proves ? columns * s.depth : 0);
    p.cleared_to_check = at - cleared_from;
    p.open = take<unsigned>(base, &at, s.blocks + 1);
    p.any = p.open + s.blocks;
    p.proving_a = take<int8_t>(base, &at, proves ? s.rows_a * s.depth : 0);
    p.proving_b = take<int8_t>(base, &at, proves ? s.rows_b * s.depth : 0);
    p.planes_a = take<int8_t>(base, &at, all * s.rows_a * s.depth);
    p.planes_b = take<int8_t>(base, &at, all * s.rows_b * s.depth);
    p.planes_c = take<int8_t>(base, &at, all * s.rows_a * s.rows_b);
    p.checksums.of_a = take<int8_t>(base, &at, all * TSR_EXACT_SUMS * s.depth);
    p.checksums.of_b = take<int8_t>(base, &at, all * TSR_EXACT_SUMS * s.depth);
    p.checksums.columns = take<int8_t>(base, &at, all * TSR_EXACT_SUMS * s.rows_b);
    p.checksums.rows = take<int8_t>(base, &at, all * TSR_EXACT_SUMS * s.rows_a);
    p.checksums.upper_a = s.quartered ? (int)rows / 2 : TSR_EXACT_SUMS / 2;
    p.checksums.upper_b = s.quartered ? (int)columns / 2 : TSR_EXACT_SUMS / 2;
    for (void *&list : p.lists) list = take<unsigned char>(base, &at, (int64_t)tsr_residue_workspace(s.m, s.n));
    const size_t listed = s.quartered ? tsr_winograd_workspace(s.rows_a, s.rows_b) : 0;
    p.list_of_quarters = take<unsigned char>(base, &at, (int64_t)listed);
    p.bytes = at;
    return p;
}

/* ---- a block of C and a range of k ----------------------------------------------------------- */

template <typename T> struct Run {
    tsr_device *device;
    tsr_stream *stream;
    Sizes s;
    Places p;
    Operand<T> a, b;
    exact::Target<T> c;
    int planes; /* that there is room for; as many are behind them where r.s.quartered */
    bool proves;
    tsr_gemm_fallbacks *counted; /* or NULL */
    exact::Checksums checksums;  /* check.counts NULL: nothing is checked */
    tsr_residue_sums sums;       /* the same for products */
    bool hands;                  /* over to the fallback what that makes quicker */
    bool passes;                 /* as part of what another kernel handed over, where its predicate is not 0 */
};

template <typename T> bool checks(const Run<T> &r) { return r.checksums.check.counts != nullptr; }

/* Products of planes that stand in the workspace, of blocks whose entry is `wanted`; NULL: of all. */
template <typename T>
tsr_residue_args products_of(const Run<T> &r, int planes, const int8_t *a, const int8_t *b, const unsigned *blocks,
                             unsigned wanted, void *list) {
    return {.planes = planes,
            .m = r.s.m,
            .n = r.s.n,
            .k = r.s.k,
            .a = a,
            .b = b,
            .rows_a = r.s.rows_a,
            .rows_b = r.s.rows_b,
            .depth = r.s.depth,
            .blocks = blocks,
            .wanted = wanted,
            .workspace = list};
}
template <typename T> tsr_residue_args products_of_level(const Run<T> &r, int level) {
    const unsigned *blocks = r.proves ? r.p.levels : nullptr;
    const int planes = tsr_exact_moduli(exact::TYPE<T>, level);
    tsr_residue_args args =
        products_of(r, planes, r.p.planes_a, r.p.planes_b, blocks, (unsigned)level, r.p.lists[level]);
    if (checks(r)) args.sums = &r.sums;
    if (r.s.quartered && r.proves) args.condition = {r.p.any, 1u << level, false};
    return args;
}
/* Of bytes that prove levels. Their list is where later that of the last level is, which they may change. */
template <typename T> tsr_residue_args proving_products_of(const Run<T> &r, const unsigned *blocks, unsigned wanted) {
    return products_of(r, 1, r.p.proving_a, r.p.proving_b, blocks, wanted, r.p.lists[TSR_EXACT_LAST]);
}

/* Products of quarters, where all blocks take this level. */
template <typename T> tsr_status multiply_quarters(const Run<T> &r, int level) {
    tsr_residue_args whole = products_of_level(r, level);
    whole.condition.equal = true;
    whole.apart = r.planes;
    tsr_residue_sums sums;
    const tsr_residue_args quarters = tsr_winograd_quarters(&whole, &sums, r.p.list_of_quarters);
    TSR_TRY(tsr_winograd_spread(r.stream, &whole));
    TSR_FLIP(TSR_FLIP_A, r.stream, r.p.planes_a + r.planes * r.s.rows_a * r.s.depth,
             (size_t)(whole.planes * r.s.rows_a * r.s.depth));
    TSR_FLIP(TSR_FLIP_B, r.stream, r.p.planes_b + r.planes * r.s.rows_b * r.s.depth,
             (size_t)(whole.planes * r.s.rows_b * r.s.depth));
    TSR_TRY(tsr_residue_products(r.device, r.stream, &quarters, r.p.planes_c));
    TSR_FLIP(TSR_FLIP_C, r.stream, r.p.planes_c, (size_t)((r.planes + whole.planes) * r.s.rows_a * r.s.rows_b));
    return tsr_winograd_gather(r.stream, &whole, r.p.planes_c);
}

template <typename T, int COUNT> tsr_status multiply_level(const Run<T> &r, int level) {
    tsr_residue_args args = products_of_level(r, level);
    args.listed = r.proves && level < TSR_EXACT_LAST;
    TSR_FLIP(TSR_FLIP_A, r.stream, r.p.planes_a, (size_t)(COUNT * r.s.rows_a * r.s.depth));
    TSR_FLIP(TSR_FLIP_B, r.stream, r.p.planes_b, (size_t)(COUNT * r.s.rows_b * r.s.depth));
    if (r.s.quartered) TSR_TRY(multiply_quarters(r, level));
    if (!r.s.quartered || r.proves) TSR_TRY(tsr_residue_products(r.device, r.stream, &args, r.p.planes_c));
    TSR_FLIP(TSR_FLIP_C, r.stream, r.p.planes_c, (size_t)(COUNT * r.s.rows_a * r.s.rows_b));
    if (checks(r)) return exact::combine_and_compare_launch<T, COUNT>(r.stream, r.c, r.checksums, level);
    return exact::combine_launch<T, COUNT>(r.stream, r.c, level);
}

/* Looks at all lines, and converts them for the level at which they are likely to be wanted. */
template <typename T, int COUNT> tsr_status look(const Run<T> &r) {
    dim3 rows, columns, tiles;
    TSR_TRY(tsr_cuda_grid(1, r.s.m, 1, 1, &rows));
    TSR_TRY(tsr_cuda_grid(1, r.s.n, 1, exact::WARPS, &columns));
    TSR_TRY(tsr_cuda_grid(r.s.depth, r.s.n, TSR_EXACT_PART, exact::COLUMNS, &tiles));
    if (checks(r))
        TSR_TRY(TSR_LAUNCH_NEXT((exact::look_at_and_add_rows<T, COUNT>), rows, exact::THREADS, 0, r.stream, r.a,
                                r.checksums.totals_a));
    else TSR_TRY(TSR_LAUNCH_NEXT((exact::look_at_rows<T, COUNT>), rows, exact::THREADS, 0, r.stream, r.a));
    TSR_TRY(TSR_LAUNCH_NEXT((exact::look_at_columns<T>), tiles, exact::THREADS, 0, r.stream, r.b));
    TSR_TRY(TSR_LAUNCH_NEXT((exact::prove_columns<T>), columns, exact::THREADS, 0, r.stream, r.b));
    if (!checks(r)) return TSR_LAUNCH_NEXT((exact::convert_columns<T, COUNT>), tiles, exact::THREADS, 0, r.stream, r.b);
    TSR_TRY(TSR_LAUNCH_NEXT((exact::convert_and_add_columns<T, COUNT>), tiles, exact::THREADS, 0, r.stream, r.b,
                            r.checksums.totals_b));
    return exact::store_totals_launch<T, COUNT>(r.stream, r.a, r.b, r.checksums);
}

#ifndef TSR_TEST_FIRST_FROM
constexpr double FIRST_FROM = 0x1p34; /* m·n·k whose products pay for three launches more */
#else
constexpr double FIRST_FROM = TSR_TEST_FIRST_FROM;
#endif
/* So many elements of k settle the levels of dense data in fp32, whose level 0 holds with a third of the bound or less.
 * In fp64 half and more of it is taken. 0: all at once. */
template <typename T> int64_t first_of(const Sizes &s) {
    const bool pays = sizeof(T) == sizeof(float) && (double)s.m * (double)s.n * (double)s.k >= FIRST_FROM;
    return pays ? tsr_round_up(3 * s.k / 8, TSR_EXACT_DEPTH) : 0;
}

/* Decides which level each block needs, as far as magnitudes tell. */
template <typename T> tsr_status decide(const Run<T> &r) {
    constexpr int threads = 256;
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, r.s.blocks, 1, threads, &grid));
    tsr_residue_args args = proving_products_of(r, r.p.open, exact::OPEN);
    args.first = first_of<T>(r.s);
    TSR_TRY(TSR_LAUNCH_NEXT(exact::open_blocks, grid, threads, 0, r.stream, r.p.open, r.s.across, r.s.blocks,
                            r.p.rough_a, r.p.rough_b));
    const tsr_residue_levels_args levels = {r.p.proof_a, r.p.proof_b, tsr_exact_allowed(exact::TYPE<T>, r.s.k),
                                            r.p.levels,  r.p.left,    r.p.few};
    TSR_TRY(tsr_residue_levels(r.device, r.stream, &args, &levels));
    return TSR_LAUNCH_NEXT(exact::note_levels, grid, threads, 0, r.stream, r.p.levels, r.p.few, r.p.left, r.s.across,
                           r.s.blocks, r.s.down, r.s.wide, r.p.rough_a, r.p.rough_b, r.p.levels_a, r.p.levels_b);
}

/* Lists what is known of products to come. */
template <typename T> tsr_status list(const Run<T> &r) {
    const tsr_residue_args products[] = {products_of_level(r, 0), products_of_level(r, 1)};
    const tsr_residue_args meetings = proving_products_of(r, r.p.levels, exact::OPEN_LAST);
    static_assert(sizeof products == (TSR_RESIDUE_LISTS - 1) * sizeof *products && TSR_EXACT_LAST == 2);
    return tsr_residue_list(r.device, r.stream, products, &meetings);
}

/* Decides for blocks that are open for the last level, from patterns. */
template <typename T> tsr_status decide_last(const Run<T> &r) {
    constexpr int threads = 256;
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, r.s.blocks, 1, threads / 32, &grid));
    tsr_residue_args args = proving_products_of(r, r.p.levels, exact::OPEN_LAST);
    args.listed = true;
    TSR_TRY(tsr_residue_meetings(r.device, r.stream, &args, r.p.left));
    return TSR_LAUNCH_NEXT(exact::settle_blocks, grid, threads, 0, r.stream, r.p.levels, r.s.across, r.s.blocks,
                           r.p.left, r.p.levels_a);
}

template <typename T, int COUNT> tsr_status make_level(const Run<T> &r, int level) {
    TSR_TRY((exact::convert_later_launch<T, COUNT>(r.stream, r.a, r.b, r.checksums, level)));
    if (level == TSR_EXACT_LAST) TSR_TRY(decide_last(r));
    return multiply_level<T, COUNT>(r, level);
}

template <typename T> tsr_status count(const Run<T> &r) {
    constexpr int threads = 256, most = 64;
    const unsigned grid = (unsigned)tsr_min(most, tsr_ceil_div(r.s.down * r.s.wide, threads / 32));
    return TSR_LAUNCH_NEXT(exact::count_levels, grid, threads, 0, r.stream, r.p.levels, r.p.few, r.s.across, r.s.down,
                           r.s.wide, r.p.left, r.counted);
}

/* Decides who makes these blocks, behind `decide`, which has no more use for `open`. */
template <typename T> tsr_status hand(const Run<T> &r) {
    constexpr int threads = 256;
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, r.s.blocks, 1, threads / 32, &grid));
    TSR_TRY(TSR_LAUNCH_NEXT(exact::count_open, grid, threads, 0, r.stream, r.p.levels, r.s.across, r.s.blocks, r.p.left,
                            r.p.open));
    const exact::Handing h = {.handed = r.p.handed,
                              .levels = r.p.levels,
                              .levels_a = r.p.levels_a,
                              .levels_b = r.p.levels_b,
                              .rows = (int)(r.s.rows_a / BLOCK),
                              .across = r.s.across,
                              .down = r.s.down,
                              .wide = r.s.wide,
                              .type = exact::TYPE<T>,
                              .m = r.s.m,
                              .n = r.s.n,
                              .k = r.s.k,
                              .open = exact::OPEN_LAST,
                              .left = r.p.open,
                              .predicate = r.a.predicate,
                              .passes = r.passes,
                              .to = r.counted};
    return TSR_LAUNCH_NEXT(exact::hand_over, 1, exact::HANDERS, 0, r.stream, h);
}

template <typename T> tsr_status make(const Run<T> &r) {
    constexpr int COUNT = tsr_exact_moduli(exact::TYPE<T>, 0);
    static_assert(TSR_EXACT_LEVELS == 3);
    const size_t cleared = checks(r) ? r.p.cleared_to_check : r.p.cleared_bytes;
    TSR_TRY(TSR_CUDA(cudaMemsetAsync(r.p.rough_a, 0, cleared, tsr_cuda_stream(r.stream))));
    TSR_TRY((look<T, COUNT>(r)));
    if (!r.proves) return multiply_level<T, COUNT>(r, 0);
    TSR_TRY(decide(r));
    if (r.hands) TSR_TRY(hand(r));
    if (r.s.quartered)
        TSR_TRY(TSR_LAUNCH_NEXT(exact::note_any, 1, 32, 0, r.stream, r.p.any, r.p.levels_a, r.s.rows_a / BLOCK));
    TSR_TRY(list(r));
    TSR_TRY((make_level<T, COUNT>(r, 0)));
    TSR_TRY((make_level<T, tsr_exact_moduli(exact::TYPE<T>, 1)>(r, 1)));
    TSR_TRY((make_level<T, tsr_exact_moduli(exact::TYPE<T>, 2)>(r, 2)));
    if (r.counted) TSR_TRY(count(r));
    return exact::loop_launch<T>(r.stream, r.a, r.b, r.c, r.checksums.check);
}

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

template <typename T> constexpr int planes_of(bool proves) {
    return tsr_exact_moduli(exact::TYPE<T>, proves ? TSR_EXACT_LEVELS - 1 : 0);
}

/* Whether quarters of a block take less than the whole: tiles by panels, of which sums of quarters take one for so many
 * elements of A, B and C. They pay by 2.5 % of a product at 16384, and by nothing at 12288 (fp64, H200, 2026-11-29). */
bool quarters_pay(int64_t m, int64_t n, int64_t k) {
    constexpr double SUMS = 16000;
    const auto works = [m, n, k](int64_t sides) {
        return (double)tsr_ceil_div(m, sides * TSR_EXACT_TILE) * (double)tsr_ceil_div(n, sides * TSR_EXACT_TILE) *
               (double)tsr_ceil_div(k, sides * TSR_EXACT_DEPTH);
    };
    const double elements = (double)m * (double)k + (double)k * (double)n + (double)m * (double)n;
    return 7 * works(2) + elements / SUMS < works(1);
}

/* Kernels that are made of it. */
struct Kind {
    bool proves;
    Quartering quartering;
};
enum { PROVED, UNPROVED, QUARTERED, WHOLE };
constexpr Kind KINDS[] = {{true, LARGE}, {false, LARGE}, {true, ALL}, {true, NONE}};
constexpr bool proves(int kind) { return KINDS[kind].proves; }

template <typename T, int KIND> size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    const Sizes s = sizes_of(m, n, k, KINDS[KIND].quartering);
    return k == 0 ? 0 : places_of(nullptr, s, planes_of<T>(proves(KIND)), proves(KIND)).bytes;
}

/* The fallback's room, too: for blocks, behind what stands before the planes, and for shapes that are left to it. */
template <typename T, int KIND> size_t workspace_for_auto(int64_t m, int64_t n, int64_t k) {
    const Sizes s = sizes_of(m, n, k, KINDS[KIND].quartering);
    const Places p = places_of(nullptr, s, planes_of<T>(true), true);
    const size_t blocks = (size_t)p.planes_a + exact::FALLBACK<T>->workspace_bytes(s.m, s.n, s.k);
    return tsr_max(tsr_max(k == 0 ? 0 : p.bytes, blocks), exact::FALLBACK<T>->workspace_bytes(m, n, k));
}

template <typename T> Operand<T> operand_of(const T *data, int64_t ld, int64_t lines, const Sizes &s, int64_t rows) {
    Operand<T> x = {};
    x.data = data;
    x.ld = ld;
    x.lines = lines;
    x.k = s.k;
    x.rows = rows;
    x.depth = s.depth;
    x.met_well = 4 * tsr_exact_allowed(exact::TYPE<T>, s.k) / (double)s.k;
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        x.limits[level] = tsr_exact_limit(tsr_exact_moduli(exact::TYPE<T>, level));
    return x;
}

/* The fallback for these blocks, where they were handed over; it has the room of the planes. */
template <typename T> tsr_status launch_fallback(const Run<T> &r, const tsr_gemm_args *args) {
    tsr_gemm_args instead = *args;
    instead.workspace = r.p.planes_a;
    instead.predicate = r.p.handed;
    return tsr_gemm_launch(exact::FALLBACK<T>, r.device, r.stream, &instead);
}

/* Who asks for products. */
enum Caller { NAMED, AUTO, SPLIT3 };

template <typename T, int KIND>
tsr_status launch_block(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, Caller caller) {
    constexpr bool PROVES = proves(KIND);
    Run<T> r = {};
    r.device = device;
    r.stream = stream;
    const bool pays = KINDS[KIND].quartering != LARGE || quarters_pay(args->m, args->n, args->k);
    r.s = sizes_of(args->m, args->n, args->k, pays ? KINDS[KIND].quartering : NONE);
    r.planes = planes_of<T>(PROVES);
    r.proves = PROVES;
    r.counted = args->fallbacks;
    r.hands = caller != NAMED;
    r.passes = caller == SPLIT3;
    r.p = places_of(args->workspace, r.s, r.planes, PROVES);
    r.checksums = r.p.checksums;
    r.checksums.check = PROVES ? args->check : tsr_gemm_check(); /* the others have no room for totals */
    r.sums = {r.checksums.of_a,
              r.checksums.of_b,
              r.checksums.columns,
              r.checksums.rows,
              (int)exact::sum_line(r.s.down - 1, r.checksums.upper_a) + 1,
              (int)exact::sum_line(r.s.wide - 1, r.checksums.upper_b) + 1};
    r.a = operand_of((const T *)args->a, args->lda, args->m, r.s, r.s.rows_a);
    r.a.proof = r.p.proof_a;
    r.a.proving = PROVES ? r.p.proving_a : nullptr;
    r.a.planes = r.p.planes_a;
    r.a.rough = r.p.rough_a;
    r.a.levels = r.p.levels_a;
    r.a.predicate = args->predicate;
    r.b = operand_of((const T *)args->b, args->ldb, args->n, r.s, r.s.rows_b);
    r.b.parts = r.p.parts_b;
    r.b.proof = r.p.proof_b;
    r.b.proving = PROVES ? r.p.proving_b : nullptr;
    r.b.planes = r.p.planes_b;
    r.b.rough = r.p.rough_b;
    r.b.levels = r.p.levels_b;
    r.b.predicate = args->predicate;
    r.c = {.c = (T *)args->c,
           .ldc = args->ldc,
           .m = args->m,
           .n = args->n,
           .accumulate = args->accumulate,
           .planes = r.p.planes_c,
           .rows = r.s.rows_a,
           .columns = r.s.rows_b,
           .proof_a = r.p.proof_a,
           .proof_b = r.p.proof_b,
           .levels = r.p.levels,
           .across = r.s.across,
           .wanted = r.p.levels_a,
           .left = r.p.left,
           .few = r.p.few,
           .proved = PROVES};
    TSR_TRY(make(r));
    return r.hands ? launch_fallback(r, args) : TSR_OK;
}

template <typename T, int KIND>
tsr_status launch_all(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, Caller caller) {
    if (args->k == 0 && args->accumulate) return TSR_OK;
    if (args->k == 0)
        return TSR_CUDA(cudaMemset2DAsync(args->c, (size_t)args->ldc * sizeof(T), 0, (size_t)args->n * sizeof(T),
                                          (size_t)args->m, tsr_cuda_stream(stream)));
    for (int64_t l = 0; l < args->k; l += TSR_EXACT_RANGE)
        for (int64_t i = 0; i < args->m; i += EDGE)
            for (int64_t j = 0; j < args->n; j += EDGE) {
                tsr_gemm_args part = *args;
                part.m = tsr_min(EDGE, args->m - i);
                part.n = tsr_min(EDGE, args->n - j);
                part.k = tsr_min(TSR_EXACT_RANGE, args->k - l);
                part.a = (const T *)args->a + i * args->lda + l;
                part.b = (const T *)args->b + l * args->ldb + j;
                part.c = (T *)args->c + i * args->ldc + j;
                part.accumulate = args->accumulate || l > 0;
                TSR_TRY((launch_block<T, KIND>(device, stream, &part, caller)));
            }
    return TSR_OK;
}
template <typename T, int KIND> tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_all<T, KIND>(device, stream, args, NAMED);
}
template <typename T, Caller CALLER>
tsr_status launch_handing(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    tsr_gemm_args unchecked = *args;
    unchecked.check = {};
    if (args->k > 0)
        TSR_TRY(TSR_CUDA(cudaMemsetAsync(args->workspace, 0, 2 * sizeof(unsigned), tsr_cuda_stream(stream))));
    constexpr int KIND = CALLER == SPLIT3 ? WHOLE : PROVED;
    return launch_all<T, KIND>(device, stream, &unchecked, CALLER);
}

/* Of the products: tiles, and the bytes that conversion, products and the last step move. */
template <typename T, int KIND> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    const double planes = tsr_exact_moduli(exact::TYPE<T>, 0), operands = (double)m * (double)k + (double)k * (double)n;
    *out = tsr_gemm_shape();
    out->tile_m = out->tile_n = TSR_EXACT_TILE;
    out->tile_k = TSR_EXACT_DEPTH;
    out->threads = exact::THREADS;
    out->bytes = operands * (2.0 * sizeof(T) + (proves(KIND) ? planes + 1 : planes)) +
                 planes * ((double)m * (double)k * (double)tsr_ceil_div(n, TSR_EXACT_TILE) +
                           (double)k * (double)n * (double)tsr_ceil_div(m, TSR_EXACT_TILE)) +
                 (double)m * (double)n * (2 * planes + sizeof(T));
    return TSR_OK;
}

template <typename T, int KIND> constexpr tsr_gemm_kernel table(const tsr_gemm_kernel *for_auto = nullptr) {
    constexpr bool PROVES = proves(KIND);
    return tsr_gemm_cuda_kernel(exact::TYPE<T>, exact::TYPE<T>,
                                {.name = PROVES ? "exact" : "unproved",
                                 .what = TSR_EXACT_WHAT,
                                 .accuracy = PROVES ? TSR_ACCURACY_IEEE : TSR_ACCURACY_FAST,
                                 .error_factor = TSR_EXACT_ERROR_FACTOR,
                                 .error_grows = true,
                                 .speed_rank = 0,
                                 .for_auto = for_auto,
                                 .checks = PROVES,
                                 .workspace_bytes = workspace_bytes<T, KIND>,
                                 .shape_cost = exact::COST<T>,
                                 .shape = shape<T, KIND>,
                                 .launch = launch<T, KIND>});
}

/* The same for `auto`, which has no use for the same bits everywhere. */
template <typename T> constexpr tsr_gemm_kernel table_for_auto() {
    tsr_gemm_kernel own = table<T, PROVED>();
    own.what = "integer products of rounded operands, where they are the fastest";
    own.min_arch = own.max_arch = exact::TYPE<T> == TSR_F64 ? exact::FALLBACK_ARCH : 0;
    own.substitute = exact::leave_short<T>;
    own.fallback = exact::FALLBACK<T>;
    own.fallback_for = "data that take longer here";
    own.workspace_bytes = workspace_for_auto<T, PROVED>;
    own.shape_cost = exact::cost_for_auto<T>;
    own.checks = false; /* the fallback has no check */
    own.launch = launch_handing<T, AUTO>;
    return own;
}

constexpr tsr_gemm_kernel table_behind() {
    tsr_gemm_kernel own = table_for_auto<float>();
    own.predicated = true;
    own.workspace_bytes = workspace_for_auto<float, WHOLE>; /* it is given all of this, or nothing */
    own.launch = launch_handing<float, SPLIT3>;
    return own;
}

} // namespace

const tsr_gemm_kernel tsr_gemm_exact_f32 = table<float, PROVED>(&tsr_gemm_exact_auto_f32);
const tsr_gemm_kernel tsr_gemm_exact_f64 = table<double, PROVED>(&tsr_gemm_exact_auto_f64);
const tsr_gemm_kernel tsr_gemm_exact_auto_f32 = table_for_auto<float>();
const tsr_gemm_kernel tsr_gemm_exact_auto_f64 = table_for_auto<double>();
const tsr_gemm_kernel tsr_gemm_exact_behind_f32 = table_behind();
const tsr_gemm_kernel tsr_gemm_unproved_f32 = table<float, UNPROVED>();
const tsr_gemm_kernel tsr_gemm_unproved_f64 = table<double, UNPROVED>();
const tsr_gemm_kernel tsr_gemm_quartered_f32 = table<float, QUARTERED>();
const tsr_gemm_kernel tsr_gemm_quartered_f64 = table<double, QUARTERED>();
const tsr_gemm_kernel tsr_gemm_whole_f32 = table<float, WHOLE>();
const tsr_gemm_kernel tsr_gemm_whole_f64 = table<double, WHOLE>();
