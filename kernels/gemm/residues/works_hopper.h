/* The works of products_hopper.cu: tiles of C, what they make beside, which of them there are, and in which order.
 * Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_WORKS_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_WORKS_HOPPER_H

#include "kernels/gemm/hopper/tile_scheduler.h"
#include "kernels/gemm/residues/quarters.h"
#include "kernels/gemm/residues/tiles.h"

namespace residues {

/* a block's tile, and a panel */
constexpr int M = 128;
constexpr int N = TSR_EXACT_TILE;
constexpr int K = TSR_EXACT_DEPTH;
constexpr int STEP = 32, STEPS = K / STEP; /* of k, in an instruction; of a panel */
constexpr int CLUSTER = TSR_EXACT_TILE / M;
constexpr int BAND = 8; /* rows of tiles that clusters walk together */

/* ---- which tiles, and in which order --------------------------------------------------------- */

/* A list in the workspace: how many works follow, and these: from the lowest bit on side, column, row and plane. */
typedef unsigned ListEntry;
constexpr int LISTERS = 1024;
constexpr int SIDE_BITS = 8, TILE_BITS = 8;
constexpr int PLANE_BITS = 8;
constexpr int ROW_AT = SIDE_BITS + TILE_BITS, PLANE_AT = ROW_AT + TILE_BITS;
constexpr int MOST_ACROSS = 1 << TILE_BITS; /* tiles in a row or a column of them */
constexpr unsigned TILE_MASK = MOST_ACROSS - 1, SIDE_MASK = (1u << SIDE_BITS) - 1;
static_assert(PLANE_AT + PLANE_BITS == 32 && TSR_QUARTER_PRODUCTS * TSR_EXACT_MODULI_MOST <= 1 << PLANE_BITS);
__device__ __forceinline__ ListEntry entry_of(int plane, int row, int col, unsigned side) {
    return (ListEntry)plane << PLANE_AT | (ListEntry)row << ROW_AT | (ListEntry)col << SIDE_BITS | side;
}

struct Plan {
    const ListEntry *list; /* NULL: all tiles are made, nothing else is */
    int tiles_m, tiles_n;
    int planes, panels;
    int workers; /* clusters */
    tsr_residue_condition condition;
    unsigned *progress; /* see keep_pace; NULL: workers do not wait for each other */
};

struct Place {
    int plane, row, col; /* row and column in tiles */
    unsigned side;       /* see Sides */
};
struct PlaneTile : hopper::WorkTile {
    Place place;
    int turn;   /* so many works of its worker before */
    bool whole; /* all workers have a work of this turn */
};

/* Works of all planes, every workers-th by a worker. What the list says of the next one is asked for before it is
 * wanted. */
struct PlaneScheduler {
    typedef PlaneTile Tile;
    int index, end;
    ListEntry entry;

    __device__ __forceinline__ PlaneScheduler(const Plan &p, int worker) : index(worker), end(0), entry(0) {
        if (tsr_residue_idle(p.condition)) return;
        end = p.list ? (int)*p.list : p.planes * p.tiles_m * p.tiles_n;
        ask(p);
    }
    __device__ __forceinline__ void ask(const Plan &p) {
        if (p.list && index < end) entry = p.list[1 + index];
    }
    __device__ __forceinline__ Place place(const Plan &p) const {
        if (p.list)
            return {(int)(entry >> PLANE_AT), (int)(entry >> ROW_AT & TILE_MASK), (int)(entry >> SIDE_BITS & TILE_MASK),
                    entry & SIDE_MASK};
        const int tiles = p.tiles_m * p.tiles_n, plane = index / tiles;
        const hopper::TilePlace at = hopper::tile_at(index - plane * tiles, p.tiles_m, p.tiles_n, BAND);
        return {plane, at.row, at.col, 0};
    }
    __device__ __forceinline__ bool next(const Plan &p, PlaneTile *work) {
        if (index >= end) return false;
        const int turn = index / p.workers;
        *work = {{index, 0, p.panels, -1, -1, false}, place(p), turn, (turn + 1) * p.workers <= end};
        index += p.workers;
        ask(p);
        return true;
    }
    __device__ __forceinline__ bool more(const Plan &) const { return index < end; }
};

/* ---- the pace -------------------------------------------------------------------------------- */

/* Workers share panels in the L2 cache, and lose them as they fall apart. So one that is more than a step of PACE
 * panels ahead of the average waits before it takes another one. Whoever is behind never waits, so all get on, as long
 * as all are there: one that has asked PACE_POLLS times, a fraction of a ms, frees all for the rest of the launch. */
constexpr int PACE = 4, PACE_AHEAD = 1;
constexpr int PACE_POLLS = 500;
constexpr unsigned PACE_FREE = 1u << 30;

/* One thread of a worker, before each panel of a work. progress: steps that all workers together have begun. seen: what
 * it was a step ago, when it was asked for, so that nobody waits for the answer; at the first step of a work anything
 * is enough. */
__device__ __forceinline__ void keep_pace(const Plan &p, const PlaneTile &work, int panel, unsigned *seen) {
    if (panel % PACE != 0) return;
    const int step = work.turn * ((p.panels + PACE - 1) / PACE) + panel / PACE - PACE_AHEAD;
    const unsigned least = step > 0 ? (unsigned)(p.workers * step) : 0;
    volatile unsigned *progress = p.progress;
    for (int polls = 0; *seen < least; polls++) {
        if (polls == PACE_POLLS) atomicMax(p.progress, PACE_FREE);
        *seen = *progress;
    }
    atomicAdd(p.progress, 1u);
    *seen = *progress;
}

/* ---- sides ----------------------------------------------------------------------------------- */

/* What a tile makes beside its part of C: products of its lines of one operand with a chunk of lines of the other that
 * come beside. These are sums of lines, or its last lines, where they are so few: a row or a column of tiles for them
 * would be idle for the most part. A side is 0, or which lines meet, and which chunk of the others, CHUNK_LAST for the
 * last lines. A chunk has FEW_LINES, or MANY_LINES where there are more sums, so that half as many tiles have one:
 * beside FEW_LINES instructions wait for lines. Without sums FEWEST_LINES may be enough, which take less power. */
constexpr int FEW_LINES = TSR_RESIDUE_CHUNK, MANY_LINES = 2 * FEW_LINES;
constexpr int FEWEST_LINES = 8;
constexpr unsigned CHUNK = 15, CHUNK_LAST = 8;
constexpr unsigned SIDE_OF_A_LINES = 16, SIDE_OF_B_LINES = 32;
constexpr unsigned SIDE_ALONE = 64; /* its part of C is made by another work, or not wanted */
static_assert(TSR_EXACT_SUMS / FEW_LINES <= CHUNK_LAST);

/* Of so many, those behind the last whole tile, where they are no tile of their own. */
static inline int last_lines(int64_t lines) {
    const int last = (int)(lines % TSR_EXACT_TILE);
    return lines > TSR_EXACT_TILE && last <= FEW_LINES ? last : 0;
}
/* Of a chunk, where operands have so many sums, and m and n lines. */
static inline int chunk_lines(int sums_a, int sums_b, int64_t m, int64_t n) {
    const int sums = tsr_max(sums_a, sums_b);
    if (sums == 0 && tsr_max(last_lines(m), last_lines(n)) <= FEWEST_LINES) return FEWEST_LINES;
    return sums > FEW_LINES ? MANY_LINES : FEW_LINES;
}

/* An operand's chunks: those of its sums, and whether its last lines are one, and in no tile. */
struct Chunks {
    int sums;
    bool last;

    __host__ __device__ __forceinline__ int count() const { return sums + last; }
    __device__ __forceinline__ unsigned chunk(int number) const {
        return number < sums ? (unsigned)number : CHUNK_LAST;
    }
};

/* Which sides there are. Each chunk of B meets all rows of tiles, each of A all columns of them. Tile (i, j) is number
 * (j - i) mod `around` of its row and of its column, where these are so many. Every `apart`-th makes a chunk, first
 * those of B. So a tile makes one at most, a panel that a fault changes is not in both, and what clusters make at a
 * time has sides evenly. */
struct Sides {
    Chunks a, b;
    int around, apart;

    __host__ __device__ __forceinline__ bool any() const { return a.count() + b.count() > 0; }
    __device__ __forceinline__ int mod_around(int x) const { return (x % around + around) % around; }
    /* Of the tile in row i, column j. */
    __device__ __forceinline__ unsigned side_of(int i, int j) const {
        if (!any()) return 0;
        const int number = mod_around(j - i), which = number / apart;
        if (number % apart > 0) return 0;
        if (which < b.count()) return j < around ? SIDE_OF_A_LINES + b.chunk(which) : 0;
        return which < b.count() + a.count() && i < around ? SIDE_OF_B_LINES + a.chunk(which - b.count()) : 0;
    }
    /* The tile that would make a chunk of B for row i of tiles, or one of A for column j. */
    __device__ __forceinline__ int column_for(int i, int number) const { return mod_around(i + number * apart); }
    __device__ __forceinline__ int row_for(int j, int number) const {
        return mod_around(j - (b.count() + number) * apart);
    }
};

/* Of an operand with so many sums and lines, in chunks of `each`. */
static inline Chunks chunks_of(int sums, int64_t lines, int each) {
    return {(sums + each - 1) / each, last_lines(lines) > 0};
}
static inline Sides sides_of(const Chunks &a, const Chunks &b, int tiles_m, int tiles_n) {
    const int around = tsr_min(tiles_m, tiles_n);
    return {a, b, around, (int)tsr_max(1, around / tsr_max(1, a.count() + b.count()))};
}

/* ---- the list -------------------------------------------------------------------------------- */

/* The list: of each plane the wanted tiles, in the order of tile_at, with their sides. Behind all planes those sides
 * alone which are wanted, but not the tile that would make them. Last lines are row tiles_m and column tiles_n of the
 * blocks' tiles. */
struct Lister {
    tsr_residue_blocks blocks;
    int tiles_m, tiles_n;
    Sides sides;
    int planes, workers;
    bool evens; /* those with fewer tiles get more sides: see Turn */

    __device__ __forceinline__ bool wants_side(int row, int col, unsigned side) const {
        if ((side & CHUNK) != CHUNK_LAST) return true;
        return side & SIDE_OF_A_LINES ? blocks.wants(row, tiles_n) : blocks.wants(tiles_m, col);
    }
    __device__ __forceinline__ unsigned side_of(int row, int col) const {
        const unsigned side = sides.side_of(row, col);
        return wants_side(row, col, side) ? side : 0;
    }
    /* Whether a tile of the list makes it. */
    __device__ __forceinline__ bool makes(int row, int col, unsigned side) const {
        return row < tiles_m && col < tiles_n && sides.side_of(row, col) == side && blocks.wants(row, col);
    }
};
/* Of tiles that are wanted: all, and those with a side. */
struct Counts {
    int all, sided;
};
/* One block: those of the threads before this one, and of all threads. */
__device__ __forceinline__ Counts counts_before(Counts own, Counts *total) {
    __shared__ Counts of_warps[LISTERS / 32];
    const int lane = (int)threadIdx.x % 32, own_warp = (int)threadIdx.x / 32;
    Counts through = own; /* up to this thread, of its warp */
    for (int step = 1; step < 32; step *= 2) {
        const int all = __shfl_up_sync(0xffffffffu, through.all, (unsigned)step);
        const int sided = __shfl_up_sync(0xffffffffu, through.sided, (unsigned)step);
        if (lane >= step) through = {through.all + all, through.sided + sided};
    }
    if (lane == 31) of_warps[own_warp] = through;
    __syncthreads();
    Counts before = {through.all - own.all, through.sided - own.sided};
    *total = {0, 0};
    for (int warp = 0; warp < LISTERS / 32; warp++) {
        const Counts of = of_warps[warp];
        *total = {total->all + of.all, total->sided + of.sided};
        if (warp < own_warp) before = {before.all + of.all, before.sided + of.sided};
    }
    return before;
}

/* What is listed, and where. */
struct Listing {
    Lister lister;
    ListEntry *list;
    unsigned *progress; /* of the product, which begins anew */
    tsr_residue_condition condition;
};
struct Listings {
    Listing of[TSR_RESIDUE_LISTS];
};

/* Where the works of a turn go. The workers take a number of works at a time, a turn. A tile with a side takes longer,
 * and a worker that has had more of them than others comes late to panels, which the caches have lost then. So tiles
 * are exchanged within a turn: with a side they go round the workers.
 *   Some workers have a work more than others, in a last turn that is not whole. Where the caches hold the planes the
 * others get all sides first, SIDES_OF_A_TILE each, which take as long as a tile. The last two turns count as one. */
constexpr int SIDES_OF_A_TILE = 5;
struct Turn {
    int first, next;       /* works */
    int passed, room;      /* workers that get none of its sides, and those behind them that do */
    int sided, sided_next; /* works with a side before it, and before the next one */

    /* Of a work of its, with so many sides before it. */
    __device__ __forceinline__ int place_of_sided(int before) const { return first + passed + before % room; }
    __device__ __forceinline__ int place_of_plain(int work, int before) const {
        const int number = work - first - (before - sided), all = passed + room - (sided_next - sided);
        if (number < passed) return first + number;
        if (number >= all) return first + number + sided_next - sided; /* of the last turn */
        return first + passed + (sided_next + number - passed) % room;
    }
};
/* Of a work, of so many; sided_before(work): how many before it have a side. */
template <typename Before>
__device__ __forceinline__ Turn turn_of(int work, int works, int workers, bool evens, Before sided_before) {
    const int whole = works / workers * workers; /* works of whole turns */
    const int longer = works - whole, shorter = workers - longer;
    const int first = work / workers * workers, next = min(first + workers, works);
    if (evens && longer > 0 && whole > 0) {
        const bool last = first >= whole - workers;
        Turn even = {last ? whole - workers : first, last ? works : next, longer, shorter, 0, 0};
        even.sided = sided_before(even.first);
        even.sided_next = sided_before(even.next);
        if (even.sided_next <= SIDES_OF_A_TILE * shorter && even.sided_next - even.sided <= shorter) return even;
    }
    return {first, next, 0, next - first, sided_before(first), sided_before(next)};
}

/* Blocks a list, in a row of the grid. The threads of each look at all tiles, equal shares one after the other. Then
 * each block lists its share of the works. */
#ifndef TSR_EMULATE_CUDA
constexpr int LISTING_BLOCKS = 6;
#else
constexpr int LISTING_BLOCKS = 2; /* whose threads take turns */
#endif
static __global__ void __launch_bounds__(LISTERS, 1) list_works(const Listings all) {
    tsr_cuda_begin();
    const Lister &l = all.of[blockIdx.y].lister;
    ListEntry *list = all.of[blockIdx.y].list;
    __shared__ bool rows[MOST_ACROSS], columns[MOST_ACROSS]; /* those with a wanted tile */
    __shared__ unsigned alone;
    __shared__ ListEntry entries[TSR_EXACT_TILES_MOST];        /* of the first plane, wanted */
    __shared__ unsigned short sided[TSR_EXACT_TILES_MOST + 1]; /* with a side before it */
    const int thread = (int)threadIdx.x;
    const bool is_first = blockIdx.x == 0; /* block of the list */
    if (tsr_residue_idle(all.of[blockIdx.y].condition)) return;
    if (is_first && thread == 0 && all.of[blockIdx.y].progress) *all.of[blockIdx.y].progress = 0;
    const int tiles = l.tiles_m * l.tiles_n, share = (tiles + LISTERS - 1) / LISTERS;
    const int first = min(thread * share, tiles), last = min(first + share, tiles);
    unsigned wanted = 0; /* bits of the thread's tiles */
    static_assert(TSR_EXACT_TILES_MOST <= 32 * LISTERS);
    for (int i = first; i < last; i++) {
        const hopper::TilePlace at = hopper::tile_at(i, l.tiles_m, l.tiles_n, BAND);
        wanted |= (unsigned)l.blocks.wants(at.row, at.col) << (i - first);
    }
    /* use(row, column) for each of them */
    const auto for_wanted = [&](auto use) {
        for (int i = first; i < last; i++) {
            if (!(wanted >> (i - first) & 1)) continue;
            const hopper::TilePlace at = hopper::tile_at(i, l.tiles_m, l.tiles_n, BAND);
            use(at.row, at.col);
        }
    };
    const auto note = [](int row, int col) { rows[row] = columns[col] = true; };
    Counts own = {0, 0}, total;
    if (thread < MOST_ACROSS) rows[thread] = columns[thread] = false;
    if (thread == 0) alone = 0;
    __syncthreads();
    for_wanted([&](int row, int col) {
        own = {own.all + 1, own.sided + (l.side_of(row, col) != 0)};
        if (l.sides.any()) note(row, col);
    });
    const int edge_rows = l.tiles_m + l.sides.a.last, edge_columns = l.tiles_n + l.sides.b.last;
    if (l.sides.b.last)
        for (int i = thread; i < edge_rows; i += LISTERS)
            if (l.blocks.wants(i, l.tiles_n)) note(i, l.tiles_n);
    if (l.sides.a.last)
        for (int j = thread; j < edge_columns; j += LISTERS)
            if (l.blocks.wants(l.tiles_m, j)) note(l.tiles_m, j);
    Counts at_hand = counts_before(own, &total);
    if (total.all == 0 && !l.sides.a.last && !l.sides.b.last) { /* of most levels */
        if (is_first && thread == 0) *list = 0;
        return;
    }
    for_wanted([&](int row, int col) {
        const unsigned side = l.side_of(row, col);
        entries[at_hand.all] = entry_of(0, row, col, side);
        sided[at_hand.all] = (unsigned short)at_hand.sided;
        at_hand = {at_hand.all + 1, at_hand.sided + (side != 0)};
    });
    if (thread == 0) sided[total.all] = (unsigned short)total.sided;
    __syncthreads();
    const int works = l.planes * total.all;
    const auto sided_before = [&](int work) { return work / total.all * total.sided + sided[work % total.all]; };
    for (int work = (int)blockIdx.x * LISTERS + thread; work < works; work += (int)gridDim.x * LISTERS) {
        const ListEntry entry = entries[work % total.all];
        const Turn turn = turn_of(work, works, l.workers, l.evens, sided_before);
        const int before = sided_before(work);
        const int place = entry & SIDE_MASK ? turn.place_of_sided(before) : turn.place_of_plain(work, before);
        list[1 + place] = entry + entry_of(work / total.all, 0, 0, 0);
    }
    if (!is_first) return;
    const auto add_alone = [&](int row, int col, unsigned side) {
        const bool noted = side & SIDE_OF_A_LINES ? rows[row] : columns[col];
        if (!noted || !l.wants_side(row, col, side) || l.makes(row, col, side)) return;
        const int place = 1 + works + l.planes * (int)atomicAdd(&alone, 1u);
        for (int plane = 0; plane < l.planes; plane++)
            list[place + plane] = entry_of(plane, row, col, side | SIDE_ALONE);
    };
    const int of_b = l.sides.b.count(), of_a = l.sides.a.count();
    for (int i = thread; i < edge_rows * of_b; i += LISTERS) {
        const int row = i / of_b, number = i % of_b;
        add_alone(row, l.sides.column_for(row, number), SIDE_OF_A_LINES | l.sides.b.chunk(number));
    }
    for (int i = thread; i < edge_columns * of_a; i += LISTERS) {
        const int col = i / of_a, number = i % of_a;
        const unsigned chunk = l.sides.a.chunk(number);
        if (chunk == CHUNK_LAST && col == l.tiles_n) continue; /* last lines of both are a row's */
        add_alone(l.sides.row_for(col, number), col, SIDE_OF_B_LINES | chunk);
    }
    __syncthreads();
    if (thread == 0) *list = (unsigned)works + (unsigned)l.planes * alone;
}

} // namespace residues

#endif
