/* Operation: C_p = A_p·B_pᵀ for planes of bytes, both K-major, sums exact in int32; of these either the residues modulo
 * each plane's modulus, as bytes, or what proofs want of them (products.h).
 * Mapping: clusters of two blocks stay on their multiprocessors and walk tiles of 256 × 256, plane after plane. A
 * block makes 128 × 256 of each. One warp asks for panels of 128 along k by tensor copies. Each block brings half of
 * B's panel for both. Two groups of 4 warps multiply, 64 × 256 each. They end a tile one after the other, so that one
 * reduces and stores while the other multiplies.
 *   Beside them, for the check of `exact`, a launch makes products of up to 128 sums of lines: thin tiles of 64 or 128
 * sums × 512 lines, evenly between the others, each block 256 lines of its own without multicast. Where sums are 64 at
 * most the first group multiplies alone, and the second frees stages. That is a kernel of its own.
 *   Sums are never cut along k. Where not all tiles are wanted, list_tiles makes a list of those that are, and the host
 *   does not know how many.
 * Shared memory: a pipeline of 4 stages of 48 KiB; for each group two boxes of 64 × 128 bytes on their way to C.
 * Registers: 232 a thread that multiplies, 40 a thread that does not; no spills.
 * Requirements: sm_90a; rows and their bytes as products.h says; a workspace for the list.
 * Arithmetic intensity: 2·256·256·128 / (128·(256 + 256)) = 256 op/byte for a cluster.
 * Measured: H200, 2026-11-27, 2 s each in turns with cuBLAS, which stores int32, n = 8192: 1406 TOP/s (1307) for 14
 * planes, 1347 with the thin tiles, which do not count as operations, 1405 for one plane, 1205 for levels.
 * Reference: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions"; Ozaki, Uchino, Imamura, arXiv
 * 2504.08009. */
#include <type_traits>

#include "kernels/gemm/residues/flips_hopper.h"
#include "kernels/gemm/residues/proofs_hopper.h"

namespace {

using namespace residues;

constexpr tsr_tensor_box BOX = {.rows = 128, .cols = K, .swizzle = 128}; /* of A, and of half of B's panel */
constexpr tsr_tensor_box BOX_C = {.rows = GROUP_ROWS, .cols = BOX_COLS, .swizzle = 128}; /* and of a group's sums */
static_assert(M == 128 && N / CLUSTER == 128, "one box for both operands");
static_assert(BOX_COLS == K, "one box for C and sums");

/* Of thin tiles those with lines of a wanted tile. `wanted`: bits of these, of B's lines and of A's. */
__device__ __forceinline__ void list_thin(const unsigned (&wanted)[2], int thin_n, ListEntry *list) {
    int count = 0;
    for (int which = 0; which < 2; which++)
        for (unsigned left = wanted[which]; left; left &= left - 1)
            list[++count] = (ListEntry)(which * thin_n + __ffs((int)left) - 1);
    *list = (ListEntry)count;
}

/* The list of the wanted tiles, in the order of tile_at, and, with thin ones of B's lines, theirs behind it. One block,
 * whose threads take equal shares one after the other. */
__global__ void __launch_bounds__(LISTERS)
    list_tiles(const tsr_residue_blocks blocks, int tiles_m, int tiles_n, int thin_n, ListEntry *list) {
    tsr_cuda_begin();
    __shared__ unsigned thin[2];
    __shared__ int of_warps[LISTERS / 32];
    const int thread = (int)threadIdx.x, share = (tiles_m * tiles_n + LISTERS - 1) / LISTERS;
    const int first = min(thread * share, tiles_m * tiles_n), last = min(first + share, tiles_m * tiles_n);
    int count = 0;
    if (thread < 2) thin[thread] = 0;
    __syncthreads();
    for (int i = first; i < last; i++) {
        const hopper::TilePlace at = hopper::tile_at(i, tiles_m, tiles_n, BAND);
        if (!blocks.wants(at.row, at.col)) continue;
        count++;
        if (thin_n == 0) continue;
        atomicOr(&thin[0], 1u << at.col / (THIN / TSR_EXACT_TILE));
        atomicOr(&thin[1], 1u << at.row / (THIN / TSR_EXACT_TILE));
    }
    int through = count; /* tiles up to this thread's last one: of its warp, then of all */
    for (int step = 1; step < 32; step *= 2) {
        const int others = __shfl_up_sync(0xffffffffu, through, (unsigned)step);
        if (thread % 32 >= step) through += others;
    }
    if (thread % 32 == 31) of_warps[thread / 32] = through;
    __syncthreads();
    for (int warp = 0; warp < thread / 32; warp++) through += of_warps[warp];
    ListEntry *to = list + 1 + through - count;
    for (int i = first; i < last; i++) {
        const hopper::TilePlace at = hopper::tile_at(i, tiles_m, tiles_n, BAND);
        if (blocks.wants(at.row, at.col)) *to++ = (ListEntry)at.row << 16 | (ListEntry)at.col;
    }
    if (thread == LISTERS - 1) *list = (ListEntry)through;
    if (thread == 0 && thin_n > 0) list_thin(thin, thin_n, list + 1 + tiles_m * tiles_n);
}

/* ---- residues -------------------------------------------------------------------------------- */

/* Two bytes of each of two rows, 8 apart, from neighbours in pairs of lanes, make a word each: even lanes get the upper
 * row's, odd ones the lower's. */
__device__ __forceinline__ unsigned word_of(int a0, int a1, int b0, int b1) {
    const unsigned upper = __byte_perm((unsigned)a0, (unsigned)a1, 0x0040);
    const unsigned lower = __byte_perm((unsigned)b0, (unsigned)b1, 0x0040);
    const bool odd = threadIdx.x & 1;
    const unsigned given = __shfl_xor_sync(0xffffffffu, odd ? upper : lower, 1), own = odd ? lower : upper;
    return odd ? __byte_perm(given, own, 0x5410) : __byte_perm(own, given, 0x5410);
}

/* Residues, to C through boxes; or, of thin tiles, to what belongs to their sums. */
struct Residues {
    struct Work : residues::Work {
        CUtensorMap map_c; /* planes one below the other */
        tsr_residue_moduli moduli;
    };
    static __device__ __forceinline__ void open(const Work &w) { hopper::prefetch_map(&w.map_c); }
    static __device__ __forceinline__ void close() {
        if (threadIdx.x % 128 == 0) hopper::store_wait<0>();
    }
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Place &place,
                                                  const Sums &sum) {
        put(w, pipe, place.plane, sum, [&w, &place](int box, const unsigned char *from) {
            hopper::store_tensor(&w.map_c, place.plane * w.rows_a + group_row(place), place.col * N + box * BOX_COLS,
                                 from, hopper::evict_first());
        });
    }

    /* store(box, from): one thread, to where the box belongs. */
    template <typename W, typename Store>
    static __device__ __forceinline__ void put(const W &w, const Pipe &pipe, int plane, const Sums &sum, Store store) {
        const int modulus = w.moduli.modulus[plane], inverse = w.moduli.inverse[plane];
        const bool first = threadIdx.x % 128 == 0;
        unsigned char *boxes = pipe.behind() + own_group() * BOXES * BOX_BYTES;
        if (first) hopper::store_wait<0>();
        hopper::named_wait(3 + own_group(), 128); /* the boxes are free */
        const int row = own_row() + (threadIdx.x & 1 ? 8 : 0);
#pragma unroll
        for (int j = 0; j < N / 8; j++) {
            const int *s = sum + 4 * j;
            const unsigned word = word_of(tsr_residue(s[0], modulus, inverse), tsr_residue(s[1], modulus, inverse),
                                          tsr_residue(s[2], modulus, inverse), tsr_residue(s[3], modulus, inverse));
            const int col = 8 * j + (int)threadIdx.x % 4 / 2 * 4, unit = col % BOX_COLS / 16 ^ row % 8;
            unsigned char *to = boxes + col / BOX_COLS * BOX_BYTES + row * BOX_COLS + unit * 16 + col % 16;
            *reinterpret_cast<unsigned *>(to) = word;
        }
        hopper::fence_copies();
        hopper::named_wait(3 + own_group(), 128);
        if (!first) return;
        for (int box = 0; box < BOXES; box++) store(box, boxes + box * BOX_BYTES);
        hopper::store_commit();
    }
};

/* The same beside products of sums. */
struct CheckedResidues : Residues {
    struct Work : WorkOf<SumsPlan> {
        CUtensorMap map_c; /* planes one below the other, and of sums likewise */
        CUtensorMap map_of_a, map_of_b;
        CUtensorMap map_columns, map_rows;
        tsr_residue_moduli moduli;
    };
    static __device__ __forceinline__ void open(const Work &w) {
        hopper::prefetch_map(&w.map_c);
        hopper::prefetch_map(&w.map_of_a);
        hopper::prefetch_map(&w.map_of_b);
        hopper::prefetch_map(&w.map_columns);
        hopper::prefetch_map(&w.map_rows);
    }
    static __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const SumsPlace &place,
                                                  const Sums &sum) {
        put(w, pipe, place.plane, sum, [&w, &place](int box, const unsigned char *from) {
            const bool thin = place.making != TSR_MAKING_C;
            hopper::store_tensor(!thin                                ? &w.map_c
                                 : place.making == TSR_MAKING_COLUMNS ? &w.map_columns
                                                                      : &w.map_rows,
                                 thin ? place.plane * TSR_EXACT_SUMS + own_group() * GROUP_ROWS
                                      : place.plane * w.rows_a + group_row(place),
                                 (thin ? thin_line(place) : place.col * N) + box * BOX_COLS, from,
                                 hopper::evict_first());
        });
    }
};

/* ---- thin tiles ------------------------------------------------------------------------------ */

/* How many of a block's groups multiply in a tile. */
template <typename W> __device__ __forceinline__ int groups_of(const W &, int) { return GROUPS; }
__device__ __forceinline__ int groups_of(const SumsPlan &p, tsr_residue_making making) {
    return making == TSR_MAKING_C ? GROUPS : making == TSR_MAKING_COLUMNS ? p.groups_columns : p.groups_rows;
}
__device__ __forceinline__ int groups_of(const CheckedResidues::Work &w, int tile) {
    return groups_of(w.plan, place_of(w.plan, tile).making);
}

/* Asks for the panels of a thin tile, whose lines stand where B's do; each block for its own. Returns whether it is
 * one. */
template <typename W> __device__ __forceinline__ bool bring_thin(const W &, const Pipe &, Pipe::State &, int, int) {
    return false;
}
__device__ __forceinline__ bool bring_thin(const CheckedResidues::Work &w, const Pipe &pipe, Pipe::State &at, int tile,
                                           int panels) {
    const SumsPlace place = place_of(w.plan, tile);
    if (place.making == TSR_MAKING_C) return false;
    const bool of_columns = place.making == TSR_MAKING_COLUMNS;
    const int groups = groups_of(w.plan, place.making);
    const CUtensorMap *sums = of_columns ? &w.map_of_a : &w.map_of_b, *other = of_columns ? &w.map_b : &w.map_a;
    const int line = place.plane * (of_columns ? w.rows_b : w.rows_a) + thin_line(place);
    for (int p = 0; p < panels; p++, at.step()) {
        unsigned char *stage = pipe.stage(at.stage);
        uint64_t *full = pipe.full(at.stage);
        pipe.acquire(at, (uint32_t)(groups * GROUP_ROWS * K + B_BYTES));
        for (int group = 0; group < groups; group++)
            hopper::copy_tensor(stage + group * GROUP_ROWS * K, sums, place.plane * TSR_EXACT_SUMS + group * GROUP_ROWS,
                                p * K, full);
        for (int box = 0; box < N / BOX.rows; box++)
            hopper::copy_tensor(stage + A_BYTES + box * BOX.rows * K, other, line + box * BOX.rows, p * K, full);
    }
    return true;
}

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

template <typename Epilogue> struct Products : hopper::Persistent<Tile> {
    typedef typename Epilogue::Work Work;
    typedef residues::Pipe Pipe;
    typedef residues::Sums Sums;
    typedef Pipe::State State;
    typedef PlaneScheduler<decltype(Work::plan)> Scheduler;
    struct Lane {};
    static constexpr int CLUSTER = residues::CLUSTER;
    static constexpr int HOLDERS = 128, BARRIER = 3;
    static constexpr int RELEASING = GROUPS * 4 * CLUSTER;
    static constexpr int PRODUCER_REGISTERS = 40;
    static constexpr bool WHOLE = true, EARLY = true;
    static constexpr bool FLIPS = std::is_base_of<Residues, Epilogue>::value; /* proofs are not checked */

    static __device__ __forceinline__ void open(const Work &w) {
        hopper::prefetch_map(&w.map_a);
        hopper::prefetch_map(&w.map_b);
        Epilogue::open(w);
    }
    /* no arrival may come from the other block when this one is gone */
    static __device__ __forceinline__ void close(const Pipe &pipe, State at) { pipe.drain(at); }

    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, State &at,
                                                 const hopper::WorkTile &work) {
        if (bring_thin(w, pipe, at, work.tile, work.last)) return;
        const int rank = (int)hopper::cluster_rank();
        const Place place = place_of(w.plan, work.tile);
        const int row = place.plane * w.rows_a + (place.row * CLUSTER + rank) * M;
        const int col = place.plane * w.rows_b + place.col * N + rank * (N / CLUSTER);
        for (int p = 0; p < work.last; p++, at.step()) {
            unsigned char *stage = pipe.stage(at.stage);
            uint64_t *full = pipe.full(at.stage);
            pipe.acquire(at);
            hopper::copy_tensor(stage, &w.map_a, row, p * K, full);
            hopper::copy_tensor_to(3, stage + A_BYTES + rank * (B_BYTES / CLUSTER), &w.map_b, col, p * K, full);
        }
    }

    struct Consumer : hopper::EveryWork {
        __device__ __forceinline__ void begin() const {
            if (own_group() == 1) hopper::pass_turn(); /* the other begins */
        }
        /* One panel's products are under way while the next is waited for. */
        __device__ __forceinline__ void multiply(const Work &w, const Pipe &pipe, const Lane &, State &at,
                                                 const hopper::WorkTile &work, bool, Sums &sum) const {
            const int group = own_group(), groups = groups_of(w, work.tile);
            if (group >= groups) return leave_out(pipe, at, work.last);
            const int last = work.last > LAST_PANELS ? work.last - LAST_PANELS : 0;
            int before = 0;
            for (int p = 0; p < work.last; p++) {
                if (group == 1 && p == last) take_turn(); /* both multiply then */
                const uint32_t stage = pipe.address(at.stage);
                const uint64_t a = hopper::wgmma_operand(stage + group * GROUP_ROWS * K),
                               b = hopper::wgmma_operand(stage + A_BYTES);
                pipe.wait(at);
                if (FLIPS) flip_panel(pipe.stage(at.stage));
                hopper::wgmma_fence();
#pragma unroll
                for (int step = 0; step < K / 32; step++)
                    hopper::wgmma_m64n256k32_s8(sum, a + 2 * step, b + 2 * step, p > 0 || step > 0);
                hopper::wgmma_commit();
                if (p > 0) {
                    hopper::wgmma_wait<1>();
                    pipe.release(before);
                }
                before = at.stage;
                at.step();
            }
            if (group == 0 && groups == GROUPS) take_turn();
            hopper::wgmma_wait<0>();
            hopper::wgmma_hold(sum);
            if (FLIPS) flip_sum(sum);
            pipe.release(before);
        }
        /* Frees the panels of a tile of which this group has none. */
        static __device__ __forceinline__ void leave_out(const Pipe &pipe, State &at, int panels) {
            for (int p = 0; p < panels; p++, at.step()) {
                pipe.wait(at);
                __syncwarp(); /* no lane misses this turn of the stage */
                pipe.release(at.stage);
            }
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Lane &,
                                               const hopper::WorkTile &work, Sums &sum) const {
            if (own_group() >= groups_of(w, work.tile)) return;
            Epilogue::finish(w, pipe, place_of(w.plan, work.tile), sum);
        }
        __device__ __forceinline__ void end() const {
            if (own_group() == 0) hopper::wait_turn(); /* as often as the other passes it */
            Epilogue::close();
        }
    };
};

/* ---- launches -------------------------------------------------------------------------------- */

/* A plan's thin tiles: of B's lines, and all of a plane. */
int plan_thin(Plan *, const tsr_residue_args *, int *thin_n) { return *thin_n = 0; }
int plan_thin(SumsPlan *p, const tsr_residue_args *args, int *thin_n) {
    const auto groups = [](int64_t lines) { return (int)tsr_ceil_div(lines, TSR_EXACT_BLOCK * GROUP_ROWS); };
    p->thin_n = *thin_n = (int)tsr_ceil_div(args->rows_b, THIN);
    p->thin_m = (int)tsr_ceil_div(args->rows_a, THIN);
    p->groups_columns = groups(args->m);
    p->groups_rows = groups(args->n);
    return p->thin_n + p->thin_m;
}

/* Fills what all kernels share of their argument; makes the list, if there is one. */
template <typename Work> tsr_status prepare(tsr_stream *stream, const tsr_residue_args *args, Work *w) {
    int multiprocessors = 0, thin_n = 0;
    const int thin = plan_thin(&w->plan, args, &thin_n);
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    const int64_t tiles_m = args->rows_a / TSR_EXACT_TILE, tiles_n = args->rows_b / TSR_EXACT_TILE;
    if (tsr_max(tiles_m, tiles_n) > MOST_TILES || args->planes * tiles_m * tiles_n > INT32_MAX ||
        args->planes * tsr_max(args->rows_a, args->rows_b) > INT32_MAX)
        return tsr_fail(TSR_ERR_LIMIT,
                        "%d planes of %lld x %lld residues are more than a launch makes: make it in parts",
                        args->planes, (long long)args->rows_a, (long long)args->rows_b);
    w->plan.list = args->blocks ? (const ListEntry *)args->workspace : NULL;
    w->plan.tiles_m = (int)tiles_m;
    w->plan.tiles_n = (int)tiles_n;
    w->plan.planes = args->planes;
    w->plan.panels = (int)(args->depth / K);
    w->plan.workers = (int)tsr_max(1, tsr_min(multiprocessors / CLUSTER, args->planes * (tiles_m * tiles_n + thin)));
    w->rows_a = (int)args->rows_a;
    w->rows_b = (int)args->rows_b;
    TSR_TRY(tsr_tensor_map(args->a, TSR_I8, args->planes * args->rows_a, args->depth, args->depth, BOX, &w->map_a));
    TSR_TRY(tsr_tensor_map(args->b, TSR_I8, args->planes * args->rows_b, args->depth, args->depth, BOX, &w->map_b));
    if (!args->blocks) return TSR_OK;
    return TSR_LAUNCH_NEXT(list_tiles, 1, LISTERS, 0, stream, tsr_residue_blocks_of(args), (int)tiles_m, (int)tiles_n,
                           thin_n, (ListEntry *)args->workspace);
}

template <typename Epilogue> tsr_status launch(tsr_stream *stream, const typename Epilogue::Work &w) {
    typedef Products<Epilogue> Kernel;
    return hopper::launch_clusters<Kernel::EARLY>(hopper::gemm<Kernel>, stream, (int64_t)w.plan.workers * CLUSTER,
                                                  Kernel::THREADS + 128, Pipe::SHARED_BYTES, CLUSTER, w);
}

template <typename Epilogue>
tsr_status make_products(tsr_stream *stream, const tsr_residue_args *args, int8_t *c, typename Epilogue::Work *w) {
    TSR_TRY(prepare(stream, args, w));
    TSR_TRY(tsr_tensor_map(c, TSR_I8, args->planes * args->rows_a, args->rows_b, args->rows_b, BOX_C, &w->map_c));
    w->moduli = tsr_residue_moduli_all();
    return launch<Epilogue>(stream, *w);
}

} // namespace

tsr_status tsr_residue_products_hopper(tsr_stream *stream, const tsr_residue_args *args, int8_t *c) {
    const tsr_residue_sums *sums = args->sums;
    const int64_t lines = (int64_t)args->planes * TSR_EXACT_SUMS;
    Residues::Work alone;
    CheckedResidues::Work w;
    if (!sums) return make_products<Residues>(stream, args, c, &alone);
    TSR_TRY(tsr_tensor_map(sums->of_a, TSR_I8, lines, args->depth, args->depth, BOX_C, &w.map_of_a));
    TSR_TRY(tsr_tensor_map(sums->of_b, TSR_I8, lines, args->depth, args->depth, BOX_C, &w.map_of_b));
    TSR_TRY(tsr_tensor_map(sums->columns, TSR_I8, lines, args->rows_b, args->rows_b, BOX_C, &w.map_columns));
    TSR_TRY(tsr_tensor_map(sums->rows, TSR_I8, lines, args->rows_a, args->rows_a, BOX_C, &w.map_rows));
    return make_products<CheckedResidues>(stream, args, c, &w);
}

tsr_status tsr_residue_levels_hopper(tsr_stream *stream, const tsr_residue_args *args, const tsr_exact_proof *rows,
                                     const tsr_exact_proof *columns, double allowed, unsigned *needed, unsigned *left) {
    Levels::Work w;
    TSR_TRY(prepare(stream, args, &w));
    w.rows = rows;
    w.columns = columns;
    w.k = args->k;
    w.m = (int)args->m;
    w.n = (int)args->n;
    w.allowed = allowed;
    w.needed = needed;
    w.left = left;
    return launch<Levels>(stream, w);
}

tsr_status tsr_residue_meetings_hopper(tsr_stream *stream, const tsr_residue_args *args, unsigned *left) {
    Meetings::Work w;
    TSR_TRY(prepare(stream, args, &w));
    w.blocks = tsr_residue_blocks_of(args);
    w.left = left;
    return launch<Meetings>(stream, w);
}
