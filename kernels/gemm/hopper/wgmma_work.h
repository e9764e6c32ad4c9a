/* The sizes of `wgmma`'s two ways, its argument, and its products of 16 along k. Device code, for wgmma.cu,
 * wgmma_store.h and wgmma_slices.h alone. */
#ifndef TSR_KERNELS_GEMM_HOPPER_WGMMA_WORK_H
#define TSR_KERNELS_GEMM_HOPPER_WGMMA_WORK_H

#include "kernels/gemm/hopper/gather.h"
#include "kernels/gemm/hopper/pipeline.h"
#include "kernels/gemm/hopper/tensor_map.h"

namespace {

constexpr int M = 128, K = 64; /* rows of a block's tile, and a panel */
constexpr int GROUPS = 2;      /* warpgroups that multiply */
constexpr int THREADS = (GROUPS + 1) * 128;
/* of a panel of A, and of 64 rows or columns of a panel */
constexpr int A_BYTES = M * K * 2, SQUARE_BYTES = 64 * K * 2;
/* of a group's part of C */
constexpr int BOX_ROWS = 64;
constexpr int BOX_COLS = 32;
constexpr int BOX_BYTES = BOX_ROWS * BOX_COLS * 4;
constexpr int BOXES = 8;
constexpr int QUADS = 32; /* a thread's sums of a tile, in fours */
constexpr int BAND = 16;  /* rows of tiles that blocks walk together, at most */

template <bool TURNS> struct Sizes {
    static constexpr int N = TURNS ? 128 : 256;
    static constexpr int CLUSTER = TURNS ? 1 : 2;
    static constexpr int PARTS = TURNS ? 2 : 1; /* of 64 rows, that a group multiplies */
    static constexpr int STAGES = TURNS ? 6 : 4;
    static constexpr int OWNERS = TURNS ? 128 : 256; /* threads that hold a tile's sums */
    typedef hopper::Pipeline<STAGES, A_BYTES + N * K * 2, GROUPS * 2 * BOX_BYTES, CLUSTER> Pipe; /* boxes behind */
    static constexpr hopper::Cut CUT = {
        .unit = 4, .handing = 16, .gathering = 16, .parts = 132, .full = hopper::FULL_DEVICE / CLUSTER};
};
template <bool TURNS> using Sums = float[Sizes<TURNS>::PARTS][Sizes<TURNS>::N / 2];

template <bool TURNS> __device__ __forceinline__ int rank_of() { return TURNS ? 0 : (int)hopper::cluster_rank(); }

struct Work {
    CUtensorMap map_a, map_b, map_c; /* map_c if `reached` */
    float *c;
    int64_t ldc, m, n;
    float4 *parts;                   /* of sums, a block of the cluster after the other */
    int tiles_m, tiles_n;            /* a tile here is a cluster's */
    hopper::TilePlan plan;           /* workers are clusters */
    bool accumulate, reached;        /* reached: by tensor copies */
    int product_rows, product_depth; /* of a stack: rows of C of one product, and of B. 0: one product */
    int band;                        /* rows of tiles that blocks walk together: those of one product of a stack */

    __device__ __forceinline__ hopper::TilePlace place_of(int tile) const {
        return hopper::tile_at(tile, tiles_m, tiles_n, band);
    }
};

template <tsr_dtype TYPE>
__device__ __forceinline__ void multiply_16(float (&sum)[64], uint64_t a, uint64_t b, bool add) {
    if (TYPE == TSR_BF16) hopper::wgmma_m64n128k16_bf16(sum, a, b, add);
    else hopper::wgmma_m64n128k16_f16(sum, a, b, add);
}
template <tsr_dtype TYPE>
__device__ __forceinline__ void multiply_16(float (&sum)[128], uint64_t a, uint64_t b, bool add) {
    if (TYPE == TSR_BF16) hopper::wgmma_m64n256k16_bf16(sum, a, b, add);
    else hopper::wgmma_m64n256k16_f16(sum, a, b, add);
}

} // namespace

#endif
