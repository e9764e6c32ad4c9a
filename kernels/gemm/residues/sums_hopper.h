/* What products_hopper.cu and its epilogues share: their argument, and where a thread's sums stand. Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_SUMS_HOPPER_H
#define TSR_KERNELS_GEMM_RESIDUES_SUMS_HOPPER_H

#include "kernels/gemm/hopper/tensor_map.h"
#include "kernels/gemm/residues/works_hopper.h"

namespace residues {

struct Work {
    CUtensorMap map_a, map_b; /* planes one below the other */
    Plan plan;
    int rows_a, rows_b; /* of a plane */
};

/* Where a thread's sums stand (see wgmma_m64n192k16): in this row of its group's and 8 below, from this column on. */
__device__ __forceinline__ int own_row() { return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4; }
__device__ __forceinline__ int own_col() { return (int)threadIdx.x % 4 * 2; }
__device__ __forceinline__ int own_group() { return (int)threadIdx.x / 128; }
/* The row of C, in its plane, where a group's part of a tile begins. */
__device__ __forceinline__ int group_row(const Place &place) {
    return (place.row * CLUSTER + (int)hopper::cluster_rank()) * M + own_group() * GROUP_ROWS;
}

} // namespace residues

#endif
