/* What products_hopper.cu and its epilogues share: stages, their argument, and where a thread's sums stand. Device
 * code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_SUMS_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_SUMS_HOPPER_H

#include "kernels/gemm/hopper/persistent.h"
#include "kernels/gemm/hopper/tensor_map.h"
#include "kernels/gemm/residues/works_hopper.h"

namespace residues {

constexpr int STAGES = 4;
constexpr int GROUPS = 2; /* warpgroups that multiply */
constexpr int GROUP_ROWS = M / GROUPS;
constexpr int A_BYTES = M * K, B_BYTES = N * K;
constexpr int BOX_COLS = 128; /* of a group's part of C, bytes */
constexpr int BOXES = N / BOX_COLS;
constexpr int BOX_BYTES = GROUP_ROWS * BOX_COLS;

/* Stages, each with so many more bytes, and so many boxes for each group behind them. */
template <int MORE_BYTES, int EACH>
using PipeWith = hopper::Pipeline<STAGES, A_BYTES + B_BYTES + MORE_BYTES, GROUPS * EACH * BOX_BYTES, CLUSTER>;
typedef PipeWith<0, BOXES> Pipe;
typedef int Sums[N / 2];

/* Of products of quarters (winograd.h) planes are quarters of those that stand one below the other. */
struct Work {
    static constexpr bool QUARTERS = false;
    CUtensorMap map_a, map_b; /* planes one below the other */
    Plan plan;
    int rows_a, rows_b, depth; /* of a plane */
    int apart;                 /* see tsr_residue_args */
};
/* Where a place's plane of `rows` × `columns` begins: see tsr_quarter_of. */
template <typename W>
__device__ __forceinline__ tsr_quarter start_of(const W &w, const Place &place, unsigned quarters, int rows,
                                                int columns) {
    if constexpr (W::QUARTERS) return tsr_quarter_of(place.plane, quarters, w.apart, rows, columns);
    else return {place.plane * rows, 0};
}

/* Where a thread's sums stand (see wgmma_m64n192k16): in this row of its group's and 8 below, from this column on. */
__device__ __forceinline__ int own_row() { return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4; }
__device__ __forceinline__ int own_col() { return (int)threadIdx.x % 4 * 2; }
__device__ __forceinline__ int own_group() { return (int)threadIdx.x / 128; }
/* Where a group's share of B's lines begins among a tile's, for its sides. */
__device__ __forceinline__ int group_share() {
    return ((int)hopper::cluster_rank() * GROUPS + own_group()) * GROUP_ROWS;
}
static_assert(N == CLUSTER * GROUPS * GROUP_ROWS, "shares of B's lines are as large as those of A's");
/* The row of C, in its plane, where a group's part of a tile begins. */
__device__ __forceinline__ int group_row(const Place &place) {
    return (place.row * CLUSTER + (int)hopper::cluster_rank()) * M + own_group() * GROUP_ROWS;
}

} // namespace residues

#endif
