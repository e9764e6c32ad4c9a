/* Operation: C_p = A_p·B_pᵀ for planes of bytes, both K-major, sums exact in int32; of these either the residues modulo
 * each plane's modulus, as bytes, or what proofs want of them (products.h).
 * Mapping: clusters of two blocks stay on their multiprocessors and walk tiles of 256 × 256, plane after plane. A
 * block makes 128 × 256 of each. One warp asks for panels of 128 along k by tensor copies. Each block brings half of
 * B's panel for both. Two groups of 4 warps multiply, 64 × 256 each. They end a tile one after the other, so that one
 * reduces and stores while the other multiplies.
 *   Some tiles have a side: with each panel come 8, 32 or 64 lines that meet those of A, or of B, which are there
 * anyway. These are sums of lines, for the check of `exact`, or the last 32 lines or fewer of an operand, for which a
 * row or a column of tiles would be idle for the most part. Alone such lines would wait for the others. For each number
 * there are kernels of their own.
 *   Sums are never cut along k. Of a last panel with 32 elements of k or fewer no zeros behind these are multiplied.
 *   Where the caches do not hold two planes clusters wait for each other, so that they share panels (keep_pace).
 *   Planes may be quarters of planes (winograd.h), by kernels of their own.
 *   Levels may be asked of a part of k first (early_hopper.h).
 *   Where not all tiles are wanted, or some have a side, list_works makes a list of those that are, and the host does
 * not know how many (works_hopper.h). In the list sides go round the clusters: before, some had 8 more than others of
 * 14 planes of 8193 × 8193, and the product took 3 % more.
 * Shared memory: a pipeline of 4 stages of 48 KiB; for each group two boxes of 64 × 128 bytes on their way to C. With
 * sides 49, 52 or 56 KiB, and no boxes: lanes exchange words, and store them.
 * Registers: 232 a thread that multiplies, 40 a thread that does not; no spills.
 * Requirements: sm_90a; rows and their bytes as products.h says; a workspace for the list.
 * Arithmetic intensity: 2·256·256·128 / (128·(256 + 256)) = 256 op/byte for a cluster.
 * Measured: H200, 2026-11-27, 2 s each in turns with cuBLAS, which stores int32, n = 8192: 1406 TOP/s (1307) for 14
 * planes, 1405 for one plane, 1205 for levels. Sides with 64 sums take 1.9 % more there, and 1.8 % more at 16384, with
 * 32 sums 2.2 and 3.1 % (fp64, 2026-11-28, by the profiler).
 * Reference: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions"; Ozaki, Uchino, Imamura, arXiv
 * 2504.08009. */
#include <type_traits>

#include "kernels/gemm/residues/early_hopper.h"
#include "kernels/gemm/residues/flips_hopper.h"
#include "kernels/gemm/residues/residues_hopper.h"

namespace {

using namespace residues;

constexpr tsr_tensor_box BOX = {.rows = 128, .cols = K, .swizzle = 128}; /* of A, and of half of B's panel */
constexpr tsr_tensor_box BOX_C = {.rows = GROUP_ROWS, .cols = BOX_COLS, .swizzle = 128};
static_assert(M == 128 && N / CLUSTER == 128, "one box for both operands");

/* ---- the kernel as persistent.h wants it ----------------------------------------------------- */

/* What it wants of sums that are never left in parts. */
struct Tile {
    typedef int Value;
    static constexpr int THREADS = GROUPS * 128;
    template <typename W> static __device__ __forceinline__ bool left_out(const W &) { return false; }
};

/* Group 1 leaves the last panels of a tile, whose stages need not be freed for the other, to group 0 first. Once a tile
 * by each, group 0 when its last panel is under way. */
constexpr int LAST_PANELS = STAGES - 1;
__device__ __forceinline__ void take_turn() {
    hopper::wait_turn();
    hopper::pass_turn();
}

/* Instructions of a panel, which the compiler knows. */
template <int COUNT> using Steps = std::integral_constant<int, COUNT>;

/* LAST: steps of the last panel, whose others would multiply zeros. A branch around these would make ptxas serialize
 * all (C7520), and another loop in the same kernel makes the usual one 0.8 % slower. */
template <typename Epilogue, int LAST = STEPS> struct Products : hopper::Persistent<Tile> {
    typedef typename Epilogue::Work Work;
    typedef typename Epilogue::Pipe Pipe;
    typedef residues::Sums Sums;
    typedef typename Pipe::State State;
    typedef PlaneScheduler Scheduler;
    struct Lane {};
    static constexpr int CLUSTER = residues::CLUSTER;
    static constexpr int HOLDERS = 128, BARRIER = 3;
    static constexpr int RELEASING = GROUPS * 4 * CLUSTER;
    static constexpr int PRODUCER_REGISTERS = 40;
    static constexpr bool WHOLE = true, EARLY = true;
    static constexpr bool FLIPS = !Epilogue::PROVES; /* proofs are not checked */
    static constexpr int LINES = CHUNK_LINES<Epilogue>;
    static constexpr bool SIDES = LINES > 0;
    typedef SideSums<SIDES ? LINES : FEW_LINES> Beside;

    static __device__ __forceinline__ void open(const Work &w) {
        hopper::prefetch_map(&w.map_a);
        hopper::prefetch_map(&w.map_b);
        Epilogue::open(w);
    }
    /* no arrival may come from the other block when this one is gone */
    static __device__ __forceinline__ void close(const Pipe &pipe, State at) { pipe.drain(at); }

    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, State &at, const PlaneTile &work) {
        const int rank = (int)hopper::cluster_rank();
        const Place &place = work.place;
        const tsr_quarter a = start_of(w, place, TSR_QUARTERS_OF_A, w.rows_a, w.depth);
        const tsr_quarter b = start_of(w, place, TSR_QUARTERS_OF_B, w.rows_b, w.depth);
        const int row = a.row + (place.row * CLUSTER + rank) * M;
        const int col = b.row + place.col * N + rank * (N / CLUSTER);
        const bool paced = w.plan.progress && rank == 0 && work.whole;
        unsigned seen = ~0u;
        for (int p = 0; p < work.last; p++, at.step()) {
            if (paced) keep_pace(w.plan, work, p, &seen);
            unsigned char *stage = pipe.stage(at.stage);
            uint64_t *full = pipe.full(at.stage);
            pipe.acquire(at, (uint32_t)(A_BYTES + B_BYTES + (place.side ? LINES * K : 0)));
            hopper::copy_tensor(stage, &w.map_a, row, a.column + p * K, full);
            hopper::copy_tensor_to(3, stage + A_BYTES + rank * (B_BYTES / CLUSTER), &w.map_b, col, b.column + p * K,
                                   full);
            if constexpr (SIDES)
                if (place.side) bring_side<LINES>(w, place, p, stage + A_BYTES + B_BYTES, full);
        }
    }

    struct Consumer : hopper::EveryWork {
        __device__ __forceinline__ void begin() const {
            if (own_group() == 1) hopper::pass_turn(); /* the other begins */
        }
        /* One panel's products are under way while the next is waited for. OWN: those of a tile, BESIDE: of a side. */
        template <bool OWN, bool BESIDE>
        static __device__ __forceinline__ void multiply_panels(const Pipe &pipe, State &at, int panels, int side_at,
                                                               Sums &sum, Beside &side) {
            const int group = own_group(), turn = panels > LAST_PANELS ? panels - LAST_PANELS : 0;
            int before = 0;
            const auto multiply_panel = [&](int p, auto steps) {
                if (group == 1 && p == turn) take_turn(); /* both multiply then */
                const uint32_t stage = pipe.address(at.stage);
                const uint64_t a = hopper::wgmma_operand(stage + group * GROUP_ROWS * K),
                               b = hopper::wgmma_operand(stage + A_BYTES);
                const uint64_t lines = hopper::wgmma_operand(stage + side_at),
                               beside = hopper::wgmma_operand(stage + A_BYTES + B_BYTES);
                pipe.wait(at);
                if (FLIPS) flip_panel(pipe.stage(at.stage));
                hopper::wgmma_fence();
#pragma unroll
                for (int step = 0; step < decltype(steps)::value; step++) {
                    const bool add = p > 0 || step > 0;
                    if constexpr (OWN) hopper::wgmma_m64n256k32_s8(sum, a + 2 * step, b + 2 * step, add);
                    if constexpr (BESIDE) multiply_side(side, lines + 2 * step, beside + 2 * step, add);
                }
                hopper::wgmma_commit();
                if (p > 0) {
                    hopper::wgmma_wait<1>();
                    pipe.release(before);
                }
                before = at.stage;
                at.step();
            };
            for (int p = 0; p < panels - (LAST < STEPS); p++) multiply_panel(p, Steps<STEPS>());
            if (LAST < STEPS) multiply_panel(panels - 1, Steps<LAST>());
            if (group == 0) take_turn();
            hopper::wgmma_wait<0>();
            if constexpr (OWN) hopper::wgmma_hold(sum);
            if constexpr (BESIDE) hopper::wgmma_hold(side);
            if (FLIPS && OWN) flip_sum(sum);
            if (FLIPS && BESIDE) flip_sum(side);
            pipe.release(before);
        }
        __device__ __forceinline__ void multiply(const Work &w, const Pipe &pipe, const Lane &, State &at,
                                                 const PlaneTile &work, bool, Sums &sum) const {
            Beside side = {}; /* else ptxas serializes the products of a wgmma (C7515) */
            if constexpr (SIDES) {
                const Place &place = work.place;
                if (place.side) {
                    if (place.side & SIDE_ALONE)
                        multiply_panels<false, true>(pipe, at, work.last, side_place(place), sum, side);
                    else multiply_panels<true, true>(pipe, at, work.last, side_place(place), sum, side);
                    put_side<LINES>(w, place, side);
                    return;
                }
            }
            multiply_panels<true, false>(pipe, at, work.last, 0, sum, side);
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Lane &, const PlaneTile &work,
                                               Sums &sum) const {
            Epilogue::finish(w, pipe, work.place, sum);
        }
        __device__ __forceinline__ void end() const {
            if (own_group() == 0) hopper::wait_turn(); /* as often as the other passes it */
            Epilogue::close();
        }
    };
};

/* ---- launches -------------------------------------------------------------------------------- */

int sums_a(const tsr_residue_args *args) { return args->sums ? args->sums->lines_a : 0; }
int sums_b(const tsr_residue_args *args) { return args->sums ? args->sums->lines_b : 0; }
int chunk_lines_of(const tsr_residue_args *args) { return chunk_lines(sums_a(args), sums_b(args), args->m, args->n); }
Chunks chunks_a(const tsr_residue_args *args) { return chunks_of(sums_a(args), args->m, chunk_lines_of(args)); }
Chunks chunks_b(const tsr_residue_args *args) { return chunks_of(sums_b(args), args->n, chunk_lines_of(args)); }
bool has_sides(const tsr_residue_args *args) { return chunks_a(args).count() + chunks_b(args).count() > 0; }

#ifndef TSR_TEST_CACHED_BYTES
constexpr int64_t CACHED_BYTES = 40 << 20; /* of two planes, which the L2 cache of an H200, 50 MB, holds */
#else
constexpr int64_t CACHED_BYTES = TSR_TEST_CACHED_BYTES;
#endif

/* What is to be listed. SIDED: of products that may have sides. */
template <bool SIDED> tsr_status listing_of(const tsr_residue_args *args, Listing *listing) {
    int multiprocessors = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    const int64_t tiles_m = tsr_ceil_div(args->m, TSR_EXACT_TILE), tiles_n = tsr_ceil_div(args->n, TSR_EXACT_TILE);
    if (tsr_max(tiles_m, tiles_n) > MOST_ACROSS || tiles_m * tiles_n > TSR_EXACT_TILES_MOST)
        return tsr_fail(TSR_ERR_LIMIT,
                        "%d planes of %lld x %lld residues are more than a launch makes: make it in parts",
                        args->planes, (long long)args->rows_a, (long long)args->rows_b);
    const Chunks a = SIDED ? chunks_a(args) : Chunks(), b = SIDED ? chunks_b(args) : Chunks();
    const int whole_m = (int)tiles_m - a.last, whole_n = (int)tiles_n - b.last;
    const int workers = (int)tsr_max(1, tsr_min(multiprocessors / CLUSTER, args->planes * tiles_m * tiles_n));
    const bool cached = (args->rows_a + args->rows_b) * args->depth <= CACHED_BYTES;
    listing->lister = {
        tsr_residue_blocks_of(args), whole_m, whole_n, sides_of(a, b, whole_m, whole_n), args->planes, workers, cached};
    listing->list = (ListEntry *)((unsigned char *)args->workspace + TSR_RESIDUE_PROGRESS_BYTES);
    listing->progress = cached ? NULL : (unsigned *)args->workspace;
    listing->condition = args->condition;
    return TSR_OK;
}

/* Of the first `wanted` columns of all planes at `from`, one below the other, behind which copies find zeros. Of
 * quarters: of the planes that these are of. */
tsr_status map_of(const tsr_residue_args *args, const int8_t *from, int64_t rows, int64_t columns, int64_t wanted,
                  tsr_tensor_box box, CUtensorMap *to) {
    const int64_t sides = args->quarters ? 2 : 1;
    const int64_t planes = args->quarters ? args->apart + args->planes / TSR_QUARTER_PRODUCTS : args->planes;
    return tsr_tensor_map(from, TSR_I8, planes * sides * rows, sides * wanted, sides * columns, box, to);
}
/* Of operands: up to the last step with elements of k, which of quarters are all. */
tsr_status map_of_operand(const tsr_residue_args *args, const int8_t *from, int64_t rows, tsr_tensor_box box,
                          CUtensorMap *to) {
    return map_of(args, from, rows, args->depth, tsr_round_up(args->k, STEP), box, to);
}

/* Fills what all kernels share of their argument; makes the list, if there is to be one. */
template <bool SIDED, typename Work> tsr_status prepare(tsr_stream *stream, const tsr_residue_args *args, Work *w) {
    Listings own = {};
    TSR_TRY(listing_of<SIDED>(args, own.of));
    const Lister &lister = own.of[0].lister;
    w->plan.list = args->blocks || lister.sides.any() ? own.of[0].list : NULL;
    w->plan.tiles_m = lister.tiles_m;
    w->plan.tiles_n = lister.tiles_n;
    w->plan.planes = args->planes;
    w->plan.panels = (int)tsr_ceil_div(args->k, K);
    w->plan.workers = lister.workers;
    w->plan.condition = args->condition;
    w->plan.progress = own.of[0].progress;
    w->rows_a = (int)args->rows_a;
    w->rows_b = (int)args->rows_b;
    w->depth = (int)args->depth;
    w->apart = args->apart;
    TSR_TRY(map_of_operand(args, args->a, args->rows_a, BOX, &w->map_a));
    TSR_TRY(map_of_operand(args, args->b, args->rows_b, BOX, &w->map_b));
    if (w->plan.list && args->listed) return TSR_OK;
    if (w->plan.list) return TSR_LAUNCH_NEXT(list_works, LISTING_BLOCKS, LISTERS, 0, stream, own);
    if (!w->plan.progress) return TSR_OK;
    return TSR_CUDA(cudaMemsetAsync(w->plan.progress, 0, sizeof *w->plan.progress, tsr_cuda_stream(stream)));
}

template <typename Kernel> tsr_status launch_kernel(tsr_stream *stream, const typename Kernel::Work &w) {
    return hopper::launch_clusters<Kernel::EARLY>(hopper::gemm<Kernel>, stream, (int64_t)w.plan.workers * CLUSTER,
                                                  Kernel::THREADS + 128, Kernel::Pipe::SHARED_BYTES, CLUSTER, w);
}
template <typename Epilogue> tsr_status launch(tsr_stream *stream, const typename Epilogue::Work &w) {
    return launch_kernel<Products<Epilogue>>(stream, w);
}
/* Of so many elements of k; of quarters these are whole panels. */
template <typename Epilogue> tsr_status launch(tsr_stream *stream, const typename Epilogue::Work &w, int64_t k) {
    if constexpr (!Epilogue::Work::QUARTERS)
        if (k <= (int64_t)(w.plan.panels - 1) * K + STEP) return launch_kernel<Products<Epilogue, 1>>(stream, w);
    return launch<Epilogue>(stream, w);
}

/* Residues to planes at c. */
template <bool QUARTERS> tsr_status make_without_sides(tsr_stream *stream, const tsr_residue_args *args, int8_t *c) {
    typename Residues<QUARTERS>::Work w;
    TSR_TRY(prepare<false>(stream, args, &w));
    w.moduli = tsr_residue_moduli_all();
    TSR_TRY(map_of(args, c, args->rows_a, args->rows_b, args->rows_b, BOX_C, &w.map_c));
    return launch<Residues<QUARTERS>>(stream, w, args->k);
}
template <int LINES, bool QUARTERS>
tsr_status make_with_sides(tsr_stream *stream, const tsr_residue_args *args, int8_t *c) {
    const auto map = [args](const int8_t *from, int64_t lines, CUtensorMap *to) {
        constexpr tsr_tensor_box box = {.rows = LINES, .cols = K, .swizzle = 128};
        return map_of_operand(args, from, lines, box, to);
    };
    typename SidedResidues<LINES, QUARTERS>::Work w;
    TSR_TRY(prepare<true>(stream, args, &w));
    w.moduli = tsr_residue_moduli_all();
    TSR_TRY(map(args->a, args->rows_a, &w.map_last_a));
    TSR_TRY(map(args->b, args->rows_b, &w.map_last_b));
    w.last_a = w.plan.tiles_m * TSR_EXACT_TILE;
    w.last_b = w.plan.tiles_n * TSR_EXACT_TILE;
    w.c = c;
    w.columns = w.rows = NULL;
    w.map_sums_a = w.map_sums_b = w.map_last_a; /* not used */
    if (args->sums) {
        constexpr int lines = SUMS<typename SidedResidues<LINES, QUARTERS>::Work>;
        TSR_TRY(map(args->sums->of_a, lines, &w.map_sums_a));
        TSR_TRY(map(args->sums->of_b, lines, &w.map_sums_b));
        w.columns = args->sums->columns;
        w.rows = args->sums->rows;
    }
    return launch<SidedResidues<LINES, QUARTERS>>(stream, w, args->k);
}

/* Settles levels by a part of k, its middle: where A falls along k, and B rises, their magnitudes meet there.
 * `open`: what is to be settled by all of k. */
tsr_status settle_early(tsr_stream *stream, const tsr_residue_args *args, EarlyLevels::Work *w,
                        tsr_residue_args *open) {
    constexpr int MOST = 1024;
    const EarlyPlaces places = early_places(args);
    tsr_residue_args part = *args;
    const int64_t begin = (args->k - args->first) / 2 / TSR_EXACT_DEPTH * TSR_EXACT_DEPTH;
    part.k = args->first;
    part.a += begin;
    part.b += begin;
    TSR_TRY(prepare<false>(stream, &part, w));
    w->words = places.words;
    TSR_TRY(launch<EarlyLevels>(stream, *w));
    const Witnesses witnesses = {args->a, args->b, *w, places};
    const int blocks = w->blocks.rows * w->blocks.cols;
    const unsigned grid = (unsigned)tsr_min(MOST, tsr_ceil_div(blocks, WITNESS_THREADS / 32));
    TSR_TRY(TSR_LAUNCH_NEXT(ask_witnesses, grid, WITNESS_THREADS, 0, stream, witnesses));
    open->blocks = places.open;
    open->wanted = 1;
    return TSR_OK;
}

} // namespace

tsr_status tsr_residue_list_hopper(tsr_stream *stream, const tsr_residue_args *products,
                                   const tsr_residue_args *meetings) {
    constexpr int LAST = TSR_RESIDUE_LISTS - 1;
    Listings all = {};
    for (int i = 0; i < LAST; i++) TSR_TRY(listing_of<true>(products + i, all.of + i));
    TSR_TRY(listing_of<false>(meetings, all.of + LAST));
    const dim3 grid(LISTING_BLOCKS, TSR_RESIDUE_LISTS);
    return TSR_LAUNCH_NEXT(list_works, grid, LISTERS, 0, stream, all);
}

tsr_status tsr_residue_products_hopper(tsr_stream *stream, const tsr_residue_args *args, int8_t *c) {
    static_assert(SUMS<SidedResidues<MANY_LINES, true>::Work> == MANY_LINES, "sums of a half are a chunk");
    if (args->quarters)
        return args->sums ? make_with_sides<MANY_LINES, true>(stream, args, c)
                          : make_without_sides<true>(stream, args, c);
    if (!has_sides(args)) return make_without_sides<false>(stream, args, c);
    const int lines = chunk_lines_of(args);
    if (lines == FEWEST_LINES) return make_with_sides<FEWEST_LINES, false>(stream, args, c);
    if (lines == FEW_LINES) return make_with_sides<FEW_LINES, false>(stream, args, c);
    return make_with_sides<MANY_LINES, false>(stream, args, c);
}

tsr_status tsr_residue_levels_hopper(tsr_stream *stream, const tsr_residue_args *args,
                                     const tsr_residue_levels_args *levels) {
    EarlyLevels::Work w;
    w.of = *levels;
    w.k = args->k;
    w.m = (int)args->m;
    w.n = (int)args->n;
    w.by_allowed = 1 / levels->allowed;
    w.blocks = tsr_residue_blocks_of(args);
    tsr_residue_args open = *args;
    if (args->first > 0 && args->first < args->k) TSR_TRY(settle_early(stream, args, &w, &open));
    TSR_TRY(prepare<false>(stream, &open, &w));
    w.blocks = tsr_residue_blocks_of(&open);
    return launch<Levels>(stream, w);
}

tsr_status tsr_residue_meetings_hopper(tsr_stream *stream, const tsr_residue_args *args, unsigned *left) {
    Meetings::Work w;
    TSR_TRY(prepare<false>(stream, args, &w));
    w.blocks = tsr_residue_blocks_of(args);
    w.left = left;
    return launch<Meetings>(stream, w);
}
