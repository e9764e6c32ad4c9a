/* The tile scheduler of persistent kernels: which tiles of C, and which panels of k, a worker makes, and in which
 * order. A worker is a block or a cluster that stays on its multiprocessors. Plain code: a test on the host walks it,
 * too.
 * A tile's sum along k is one piece. Where tiles are too few for the device it is several, which gather.h adds up in
 * the order of k. piece_panels() alone says where pieces begin. It knows the product's shape and nothing of the
 * device, so the bits of C are the same on any number of multiprocessors.
 * All workers end together: they make whole rounds of tiles, side by side along k so that they share panels in the L2
 * cache, and then equal shares of a tail. A piece that lies in two shares is handed over. The worker that has its first
 * panels makes them at the beginning of its share and leaves the sums. The next worker makes the other panels last of
 * all and goes on with these sums, as if the piece were whole. So nobody waits for long, and only for a block that
 * started before.
 * Source: McNaughton, Scheduling with deadlines and loss functions, Management Science 6 (1959): the wrap-around
 * rule. */
#ifndef TSR_KERNELS_GEMM_HOPPER_TILE_SCHEDULER_H
#define TSR_KERNELS_GEMM_HOPPER_TILE_SCHEDULER_H

#include "kernels/device/cuda_compat.h"

namespace hopper {

/* ---- where k is cut -------------------------------------------------------------------------- */

/* Fewer tiles than an H200 has multiprocessors are cut, whatever the device has. */
constexpr int FULL_DEVICE = 132;

/* How a kernel cuts k, in panels. */
struct Cut {
    int unit;      /* a piece is a multiple of it */
    int handing;   /* what must be saved to be worth handing sums over, */
    int gathering; /* or gathering pieces, */
    int parts;     /* and one more for every so many of these */
    int full;      /* FULL_DEVICE, in workers */
};

/* Panels of a piece, where a tile has at most `pieces`. */
static inline int64_t piece_of(Cut cut, int64_t panels, int64_t pieces) {
    return tsr_round_up(tsr_ceil_div(panels, tsr_max(1, tsr_min(pieces, panels / cut.unit))), cut.unit);
}

/* Panels of a piece; the last of a tile may be shorter. A piece a worker, unless equal shares of more pieces are so
 * much shorter that handing over is worth it. */
static inline int64_t piece_panels(Cut cut, int64_t tiles, int64_t panels) {
    if (tiles >= cut.full || panels < 2 * cut.unit || tiles * panels > INT32_MAX) return panels;
    const int64_t even = tsr_ceil_div(tiles * panels, cut.full);
    const int64_t whole = piece_of(cut, panels, cut.full / tiles);
    const int64_t piece = whole - even < cut.handing ? whole : piece_of(cut, panels, tsr_ceil_div(cut.full, tiles));
    const int64_t pieces = tsr_ceil_div(panels, piece), busy = piece == whole ? piece : even;
    return panels - busy < cut.gathering + tiles * pieces / cut.parts ? panels : piece;
}

/* The same, but no tile is cut, however few there are: an element's sum depends on its row, its column and k alone.
 * Workers hand sums over as before, which changes none. */
static inline Cut whole(Cut cut) {
    cut.gathering = INT32_MAX;
    return cut;
}

/* ---- the plan, made on the host -------------------------------------------------------------- */

struct TilePlan {
    int tiles, panels; /* panels of k in each tile */
    int piece, pieces; /* panels of a piece, and pieces of a tile */
    int spread;        /* panels from tile to tile of the tail: `panels`, or more where each worker has one piece */
    int workers;
    int rounds;             /* the first tiles, every workers-th made whole by a worker; the others are the tail */
    int sharing;            /* workers that share the tail */
    uint32_t share, longer; /* panels of the tail that each makes; the first `longer` make one more */
    bool hands_over;        /* pieces lie in two shares */
    uint32_t *handed;       /* [worker][group of threads]: not 0 when it has left the sums of a piece (gather.h) */
};

/* For at most `most` workers. The last `thin` tiles before the tail take less time than others: no tail is made for
 * them. Where tiles are cut there are none. */
static inline TilePlan tile_plan(Cut cut, int64_t tiles, int64_t panels, int64_t most, int64_t thin) {
    TilePlan p = {};
    const int64_t piece = thin > 0 ? panels : piece_panels(cut, tiles, panels), pieces = tsr_ceil_div(panels, piece);
    const int64_t workers = tsr_min(tsr_min(most, 2 * cut.full), tiles * pieces), left = (tiles - thin) % workers;
    p.tiles = (int)tiles;
    p.panels = (int)panels;
    p.piece = (int)piece;
    p.pieces = (int)pieces;
    p.workers = (int)workers;
    p.rounds = (int)tiles;
    const bool shared =
        left > 0 && tiles - thin > workers && panels - tsr_ceil_div(left * panels, workers) >= cut.handing;
    const int64_t tail = pieces > 1 ? tiles : shared ? workers + left : 0;
    if (tail == 0 || tail * panels > INT32_MAX) return p;
    p.rounds = (int)(tiles - tail);
    p.hands_over = tiles * pieces != workers;
    p.spread = (int)(p.hands_over ? panels : pieces * piece);
    p.sharing = (int)tsr_min(workers, tail * p.spread / piece); /* a share is no shorter than a piece */
    p.share = (uint32_t)(tail * p.spread / p.sharing);
    p.longer = (uint32_t)(tail * p.spread % p.sharing);
    if (p.rounds == 0) p.workers = p.sharing;
    return p;
}

/* Parts, sums of a tile that are left in the workspace, at most: of every piece where tiles are cut, else one a
 * worker. */
static inline int64_t most_parts(Cut cut, int64_t tiles, int64_t panels) {
    return panels > tsr_min(cut.handing, cut.gathering) ? tsr_min(2 * cut.full, tiles * tsr_max(1, panels / cut.unit))
                                                        : 0;
}

/* ---- what a worker does ---------------------------------------------------------------------- */

/* Panels first to last of a tile. from: the part whose sums it goes on with, left by the worker before this one; -1: it
 * begins with zero. to: the part where it leaves the sums, for the next worker (`handed`) or for the gather; -1: they
 * go to C. */
struct WorkTile {
    int tile, first, last;
    int from, to;
    bool handed;
};

struct TileScheduler {
    typedef WorkTile Tile;
    int worker, index;  /* index: of the next tile of the rounds */
    uint32_t mine, end; /* what is left of the share, in panels of the tail; it is made from its end */

    __device__ __forceinline__ TileScheduler(const TilePlan &p, int worker)
        : worker(worker), index(worker), mine(begin(p, worker)), end(begin(p, worker + 1)) {}

    /* Where a worker's share begins, in panels of the tail. */
    static __device__ __forceinline__ uint32_t begin(const TilePlan &p, int worker) {
        const uint32_t number = (uint32_t)(worker < p.sharing ? worker : p.sharing);
        return number * p.share + (number < p.longer ? number : p.longer);
    }
    __device__ __forceinline__ bool next(const TilePlan &p, WorkTile *work) {
        if (index < p.rounds) {
            *work = {index, 0, p.panels, -1, -1, false};
            index += p.workers;
            return true;
        }
        if (end == mine) return false;
        /* the piece that the last panel lies in, as far as it lies in the share */
        const uint32_t spread = (uint32_t)p.spread;
        const uint32_t panels = (uint32_t)p.panels;
        const uint32_t piece = (uint32_t)p.piece;
        const uint32_t tile = (end - 1) / spread, number = (end - 1) % spread / piece;
        const uint32_t start = tile * spread, from = start + number * piece;
        const uint32_t to = panels - number * piece < piece ? start + panels : from + piece;
        const uint32_t begun = from > mine ? from : mine, last = end < to ? end : to;
        const int part = p.pieces > 1 ? (int)(tile * (uint32_t)p.pieces + number) : -1;
        work->tile = p.rounds + (int)tile;
        work->first = (int)(begun - start);
        work->last = (int)(last - start);
        work->handed = last < to;
        work->from = begun == from ? -1 : p.pieces > 1 ? part : worker - 1;
        work->to = p.pieces == 1 && work->handed ? worker : part;
        end = begun;
        return true;
    }
    /* Whether there is more after what `next` gave. */
    __device__ __forceinline__ bool more(const TilePlan &p) const { return index < p.rounds || end > mine; }
};

/* Row and column of a tile, in tiles. */
struct TilePlace {
    int row, col;
};
/* Of tile `index` of tiles_m × tiles_n: bands of `band` rows of tiles, column by column inside a band, so that workers
 * share panels of both operands in the L2 cache. */
__device__ __forceinline__ TilePlace tile_at(int index, int tiles_m, int tiles_n, int band) {
    const int first = index / (band * tiles_n) * band, within = index - first * tiles_n;
    const int rows = tiles_m - first < band ? tiles_m - first : band;
    return {first + within % rows, within / rows};
}

} // namespace hopper

#endif
