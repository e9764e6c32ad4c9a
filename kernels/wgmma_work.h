/* How `wgmma` shares a product out among blocks that stay: the sizes of its two ways, tiles that are made whole, one after the other, and the last
 * tiles, which may be cut along k into pieces. Device code, for gemm_wgmma.cu, wgmma_store.h and wgmma_slices.h alone. */
#ifndef TSR_KERNELS_WGMMA_WORK_H
#define TSR_KERNELS_WGMMA_WORK_H

#include "kernels/gemm_cuda.h"
#include "kernels/hopper.h"

namespace {

constexpr int M = 128, K = 64; /* rows of a block's tile, and a panel */
constexpr int GROUPS = 2;      /* warpgroups that multiply */
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int A_BYTES = M * K * 2, SQUARE_BYTES = 64 * K * 2; /* of a panel of A, and of 64 rows or columns of a panel */
constexpr int BOX_ROWS = 64, BOX_COLS = 32, BOX_BYTES = BOX_ROWS * BOX_COLS * 4, BOXES = 8; /* of a group's part of C */
constexpr int QUADS = 32;       /* a thread's sums of a tile, in fours */
constexpr int GATHERERS = 128, MOST_STRANDS = 4; /* threads of gather_pieces that add up a quad each, and how many such groups share the pieces */
constexpr int BAND = 16;        /* rows of tiles that blocks walk together */
constexpr int MOST_BLOCKS = 132; /* of a device of today */

template <bool TURNS> struct Sizes {
    static constexpr int N = TURNS ? 128 : 256;
    static constexpr int CLUSTER = TURNS ? 1 : 2;
    static constexpr int PARTS = TURNS ? 2 : 1; /* of 64 rows, that a group multiplies */
    static constexpr int SLOTS = TURNS ? 6 : 4;
    static constexpr int SLOT_BYTES = A_BYTES + N * K * 2;
    static constexpr int OWNERS = TURNS ? 128 : 256; /* threads that hold a tile's sums */
    static constexpr int SHARED_BYTES = 1024 + SLOTS * SLOT_BYTES + GROUPS * 2 * BOX_BYTES + 2 * SLOTS * (int)sizeof(uint64_t);
};
template <bool TURNS> using Sums = float[Sizes<TURNS>::PARTS][Sizes<TURNS>::N / 2];

struct Work {
    float *c;
    int64_t ldc, m, n;
    float4 *pieces;               /* [worker][first or second][block of the cluster][quad][owner] */
    int panels, tiles_m, tiles_n; /* of k, m, n; a tile here is a cluster's */
    int workers;                  /* clusters */
    int whole;                    /* tiles made from end to end; the rest is cut along k for so many workers: */
    int cutters;
    bool accumulate, reached; /* reached: by tensor copies */
};

__device__ __forceinline__ void tile_of(const Work &w, int index, int *row, int *col) {
    tsr_gemm_band(index, w.tiles_m, w.tiles_n, BAND, row, col);
}

/* Panels of the tiles that are cut, and the first of a cutter's share of them. */
__device__ __forceinline__ uint32_t cut_panels(const Work &w) { return (uint32_t)(w.tiles_m * w.tiles_n - w.whole) * (uint32_t)w.panels; }
__device__ __forceinline__ uint32_t begin_of(const Work &w, int worker) {
    return worker < w.cutters ? (uint32_t)((uint64_t)cut_panels(w) * (uint32_t)worker / (uint32_t)w.cutters) : cut_panels(w);
}

/* Whose share a panel is. */
__device__ __forceinline__ int cutter_of(const Work &w, uint32_t panel) {
    int worker = (int)((uint64_t)panel * (uint32_t)w.cutters / cut_panels(w));
    while (begin_of(w, worker + 1) <= panel) worker++;
    return worker;
}

/* Panels first to last of a tile; piece: of a tile that is cut, this worker's first or second, else -1. */
struct Item {
    int tile, first, last, piece;
};

/* What a worker does, item after item: every workers-th whole tile, then its share of those that are cut. */
struct Walk {
    int tile, piece;
    uint32_t at, end;
    __device__ __forceinline__ Walk(const Work &w, int worker) {
        tile = worker;
        piece = 0;
        at = begin_of(w, worker);
        end = begin_of(w, worker + 1);
    }
    __device__ __forceinline__ bool next(const Work &w, Item *item) {
        if (tile < w.whole) {
            *item = {tile, 0, w.panels, -1};
            tile += w.workers;
            return true;
        }
        if (at >= end) return false;
        const int first = (int)(at % (uint32_t)w.panels), left = w.panels - first;
        const int count = end - at < (uint32_t)left ? (int)(end - at) : left;
        *item = {w.whole + (int)(at / (uint32_t)w.panels), first, first + count, piece++};
        at += (uint32_t)count;
        return true;
    }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* The slots, the barriers that say when each is full and when empty, and the boxes. */
struct Ring {
    unsigned char *slots, *boxes;
    uint64_t *full, *empty;
    __device__ __forceinline__ Ring(unsigned char *shared, int count, int slot_bytes) {
        slots = hopper::shared_aligned(shared, 1024);
        boxes = slots + count * slot_bytes;
        full = reinterpret_cast<uint64_t *>(boxes + GROUPS * 2 * BOX_BYTES);
        empty = full + count;
    }
};

/* A warp has read the slot: tell the producers of the cluster. */
template <int CLUSTER> __device__ __forceinline__ void release(const Ring &ring, int slot) {
    const int lane = (int)threadIdx.x % 32;
    if (CLUSTER == 1 && lane == 0) hopper::barrier_arrive(ring.empty + slot);
    if (CLUSTER > 1 && lane < CLUSTER) hopper::barrier_arrive_at(ring.empty + slot, (uint32_t)lane);
}

template <tsr_dtype TYPE> __device__ __forceinline__ void multiply_16(float (&sum)[64], uint64_t a, uint64_t b, bool add) {
    if (TYPE == TSR_BF16) hopper::wgmma_m64n128k16_bf16(sum, a, b, add);
    else hopper::wgmma_m64n128k16_f16(sum, a, b, add);
}
template <tsr_dtype TYPE> __device__ __forceinline__ void multiply_16(float (&sum)[128], uint64_t a, uint64_t b, bool add) {
    if (TYPE == TSR_BF16) hopper::wgmma_m64n256k16_bf16(sum, a, b, add);
    else hopper::wgmma_m64n256k16_f16(sum, a, b, add);
}
#endif

} // namespace

#endif
