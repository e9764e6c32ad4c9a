/* What products_hopper.cu and its epilogues share: tiles, their order, and where a thread's sums stand. Device
 * code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_SUMS_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_SUMS_HOPPER_H

#include "kernels/gemm/hopper/persistent.h"
#include "kernels/gemm/hopper/tensor_map.h"
#include "kernels/gemm/residues/tiles.h"

namespace residues {

/* a block's tile, and a panel */
constexpr int M = 128;
constexpr int N = TSR_EXACT_TILE;
constexpr int K = TSR_EXACT_DEPTH;
constexpr int STAGES = 4;
constexpr int CLUSTER = TSR_EXACT_TILE / M;
constexpr int GROUPS = 2; /* warpgroups that multiply */
constexpr int GROUP_ROWS = M / GROUPS;
constexpr int A_BYTES = M * K, B_BYTES = N * K;
constexpr int BOX_COLS = 128; /* of a group's part of C, bytes */
constexpr int BOXES = N / BOX_COLS;
constexpr int BOX_BYTES = GROUP_ROWS * BOX_COLS;
constexpr int BAND = 8; /* rows of tiles that clusters walk together */

typedef hopper::Pipeline<STAGES, A_BYTES + B_BYTES, GROUPS * BOXES * BOX_BYTES, CLUSTER> Pipe; /* boxes behind */
typedef int Sums[N / 2];

/* ---- which tiles, and in which order --------------------------------------------------------- */

/* A list in the workspace: how many tiles follow, and these, row · 2^16 + column. */
typedef unsigned ListEntry;
constexpr int LISTERS = 1024;
constexpr int MOST_TILES = 1 << 16; /* in a row or a column of them */

struct Plan {
    const ListEntry *list; /* NULL: all tiles are made */
    int tiles_m, tiles_n;
    int planes, panels;
    int workers; /* clusters */

    __device__ __forceinline__ int tiles() const { return list ? (int)*list : tiles_m * tiles_n; }
};

/* Tiles of all planes, every workers-th by a worker. */
template <typename Plan> struct PlaneScheduler {
    int index, end;

    __device__ __forceinline__ PlaneScheduler(const Plan &p, int worker) : index(worker), end(p.planes * p.tiles()) {}
    __device__ __forceinline__ bool next(const Plan &p, hopper::WorkTile *work) {
        if (index >= end) return false;
        *work = {index, 0, p.panels, -1, -1, false};
        index += p.workers;
        return true;
    }
    __device__ __forceinline__ bool more(const Plan &) const { return index < end; }
};

struct Place {
    int plane, row, col; /* row and column in tiles */
};
__device__ __forceinline__ Place place_of(const Plan &p, int index) {
    const int tiles = p.tiles();
    const int plane = index / tiles;
    const int within = index - plane * tiles;
    if (p.list) {
        const ListEntry entry = p.list[1 + within];
        return {plane, (int)(entry >> 16), (int)(entry & (MOST_TILES - 1))};
    }
    const hopper::TilePlace place = hopper::tile_at(within, p.tiles_m, p.tiles_n, BAND);
    return {plane, place.row, place.col};
}

/* With products of sums (tsr_residue_sums). A thin tile is one of these: the sums, whose planes are TSR_EXACT_SUMS
 * rows, times THIN lines of the other operand, N for each block of a cluster. A group has GROUP_ROWS sums, if there are
 * as many. Their loads have no time of their own in so few products. So thin tiles stand evenly between the others,
 * whose loads leave room for them. */
constexpr int THIN = CLUSTER * N;
struct SumsPlan : Plan {
    int thin_n, thin_m;              /* thin tiles of a plane: of B's lines, and of A's */
    int groups_columns, groups_rows; /* that have sums, of A and of B */

    /* A list of thin tiles as that of the others, behind it: their numbers, B's lines first. */
    __device__ __forceinline__ const ListEntry *thin_list() const { return list + 1 + tiles_m * tiles_n; }
    __device__ __forceinline__ int thin() const { return list ? (int)*thin_list() : thin_n + thin_m; }
    __device__ __forceinline__ int tiles() const { return Plan::tiles() + thin(); }
};
struct SumsPlace : Place { /* of a thin tile: row 0, and its column */
    tsr_residue_making making;
};
__device__ __forceinline__ SumsPlace place_of(const SumsPlan &p, int index) {
    const int thin = p.thin(), tiles = p.tiles();
    const int usual = tiles - thin;
    const int plane = index / tiles, within = index - plane * tiles;
    const int before = within * thin / tiles; /* thin ones */
    if ((within + 1) * thin / tiles == before) {
        const Place place = place_of(static_cast<const Plan &>(p), plane * usual + within - before);
        return {{plane, place.row, place.col}, TSR_MAKING_C};
    }
    const int number = p.list ? (int)p.thin_list()[1 + before] : before;
    return number < p.thin_n ? SumsPlace{{plane, 0, number}, TSR_MAKING_COLUMNS}
                             : SumsPlace{{plane, 0, number - p.thin_n}, TSR_MAKING_ROWS};
}

/* ---- sums ------------------------------------------------------------------------------------ */

template <typename Plan> struct WorkOf {
    CUtensorMap map_a, map_b; /* planes one below the other */
    Plan plan;
    int rows_a, rows_b; /* of a plane */
};
typedef WorkOf<Plan> Work;

/* Where a thread's sums stand (see wgmma_m64n192k16): in this row of its group's and 8 below, from this column on. */
__device__ __forceinline__ int own_row() { return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4; }
__device__ __forceinline__ int own_col() { return (int)threadIdx.x % 4 * 2; }
__device__ __forceinline__ int own_group() { return (int)threadIdx.x / 128; }
/* The row of C, in its plane, where a group's part of a tile begins. */
__device__ __forceinline__ int group_row(const Place &place) {
    return (place.row * CLUSTER + (int)hopper::cluster_rank()) * M + own_group() * GROUP_ROWS;
}

/* The line of the other operand where this block's part of a thin tile begins. */
__device__ __forceinline__ int thin_line(const Place &place) {
    return place.col * THIN + (int)hopper::cluster_rank() * N;
}

} // namespace residues

#endif
