/* Operation: C = A·B or C += A·B, A and B bf16 or fp16, C fp32, row-major, any shape, on the tensor cores as they add: exact products,
 *   sums truncated.
 * Mapping: blocks stay on their multiprocessor and walk tiles of C; one warp asks for panels of 64 along k by tensor copies, straight from
 *   A and B where these can reach them (16-byte aligned rows), else from a copy that is aligned; two groups of 4 warps multiply. B's panels
 *   stay as they stand, k by n. Long products: the groups share a tile of 128 × 256, and two blocks of a cluster, one below the other,
 *   share the panels of B. Short ones (`TURNS`): each group makes tiles of 128 × 128 of its own, and one stores while the other multiplies.
 *   Where tiles do not fill the device, the last ones are cut along k, and gather_pieces adds up the pieces in their order.
 * Shared memory: a ring of 4 slots of 48 KiB or 6 of 32 KiB, and two boxes of 64 × 32 sums for each group, on their way to C.
 * Registers: 232 a thread that multiplies, 40 a thread that does not.
 * Requirements: sm_90a; workspace for the aligned copies, 2·(m·k + k·n) bytes and padding, and for the pieces.
 * Arithmetic intensity: 2·256·256·64 / (2·64·(256 + 256)) = 128 flop/byte for a cluster, 64 for a block that takes turns. */
#include "kernels/gemm_cuda.h"
#include "kernels/hopper.h"
#include "kernels/tensor_map.h"

namespace {

constexpr int M = 128, K = 64; /* rows of a block's tile, and a panel */
constexpr int GROUPS = 2;      /* warpgroups that multiply */
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int A_BYTES = M * K * 2, SQUARE_BYTES = 64 * K * 2; /* of a panel of A, and of 64 rows or columns of a panel */
constexpr int BOX_ROWS = 64, BOX_COLS = 32, BOX_BYTES = BOX_ROWS * BOX_COLS * 4, BOXES = 8; /* of a group's part of C */
constexpr int QUADS = 32;       /* a thread's sums of a tile, in fours */
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

/* Tile `index`: bands of BAND rows of tiles, column by column inside a band. */
__device__ __forceinline__ void tile_of(const Work &w, int index, int *row, int *col) {
    const int first = index / (BAND * w.tiles_n) * BAND, within = index - first * w.tiles_n;
    const int rows = w.tiles_m - first < BAND ? w.tiles_m - first : BAND;
    *row = first + within % rows;
    *col = within / rows;
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
/* Where in the ring, and in which turn of it. */
template <int SLOTS> struct Place {
    int slot;
    uint32_t phase;
    __device__ __forceinline__ void step(int count) {
        slot += count;
        phase ^= slot / SLOTS & 1;
        slot %= SLOTS;
    }
    __device__ __forceinline__ void step() {
        if (++slot == SLOTS) slot = 0, phase ^= 1;
    }
};

/* The slots, the barriers that say when each is full and when empty, and the boxes. */
struct Ring {
    unsigned char *slots, *boxes;
    uint64_t *full, *empty;
};

template <bool TURNS> __device__ __forceinline__ int rank_of() { return TURNS ? 0 : (int)hopper::cluster_rank(); }

/* One thread: asks for every panel in the order of use. The blocks of a cluster bring half of B's panel each, for both. */
template <bool TURNS> __device__ __forceinline__ void produce(const void *map_a, const void *map_b, const void *map_c, const Work &w, const Ring &ring) {
    using S = Sizes<TURNS>;
    const int rank = rank_of<TURNS>();
    const uint64_t keep = hopper::evict_last();
    Place<S::SLOTS> place = {0, 0};
    Walk walk(w, (int)blockIdx.x / S::CLUSTER);
    for (Item item; walk.next(w, &item);) {
        int row, col;
        tile_of(w, item.tile, &row, &col);
        row = (row * S::CLUSTER + rank) * M;
        col *= S::N;
        if (w.accumulate && w.reached && item.piece < 0) {
            for (int i = 0; i < M / BOX_ROWS * (S::N / BOX_COLS); i++)
                hopper::prefetch_tensor(map_c, row + i % 2 * BOX_ROWS, col + i / 2 * BOX_COLS);
        }
        for (int p = item.first; p < item.last; p++, place.step()) {
            unsigned char *slot = ring.slots + place.slot * S::SLOT_BYTES;
            uint64_t *full = ring.full + place.slot;
            hopper::barrier_wait(ring.empty + place.slot, place.phase ^ 1); /* free from the start */
            hopper::barrier_expect(full, S::SLOT_BYTES);
            hopper::copy_tensor_keep(slot, map_a, row, p * K, full, keep); /* blocks beside this one take the same rows, now and next */
#pragma unroll
            for (int i = 0; i < S::N / 64 / S::CLUSTER; i++) {
                const int square = rank * (S::N / 64 / S::CLUSTER) + i;
                unsigned char *to = slot + A_BYTES + square * SQUARE_BYTES;
                if (TURNS) hopper::copy_tensor(to, map_b, p * K, col + square * 64, full);
                else hopper::copy_tensor_to(3, to, map_b, p * K, col + square * 64, full);
            }
        }
    }
}

/* A warp has read the slot: tell the producers of the cluster. */
template <bool TURNS> __device__ __forceinline__ void release(const Ring &ring, int slot) {
    const int lane = (int)threadIdx.x % 32;
    if (TURNS && lane == 0) hopper::barrier_arrive(ring.empty + slot);
    if (!TURNS && lane < Sizes<TURNS>::CLUSTER) hopper::barrier_arrive_at(ring.empty + slot, (uint32_t)lane);
}

template <tsr_dtype TYPE> __device__ __forceinline__ void multiply_16(float (&sum)[64], uint64_t a, uint64_t b, bool add) {
    if (TYPE == TSR_BF16) hopper::wgmma_m64n128k16_bf16(sum, a, b, add);
    else hopper::wgmma_m64n128k16_f16(sum, a, b, add);
}
template <tsr_dtype TYPE> __device__ __forceinline__ void multiply_16(float (&sum)[128], uint64_t a, uint64_t b, bool add) {
    if (TYPE == TSR_BF16) hopper::wgmma_m64n256k16_bf16(sum, a, b, add);
    else hopper::wgmma_m64n256k16_f16(sum, a, b, add);
}

/* With TURNS: the tensor cores are one group's at a time. */
__device__ __forceinline__ void wait_turn() { hopper::named_wait(1 + (int)threadIdx.x / 128, GROUPS * 128); }
__device__ __forceinline__ void pass_turn() { hopper::named_arrive(1 + ((int)threadIdx.x / 128 ^ 1), GROUPS * 128); }

/* sum = this group's rows of the next panels of the ring. One panel's products are under way while the next is waited for. */
template <tsr_dtype TYPE, bool TURNS>
__device__ __forceinline__ void multiply(Sums<TURNS> &sum, const Ring &ring, Place<Sizes<TURNS>::SLOTS> &place, int panels) {
    const uint32_t own = TURNS ? 0 : threadIdx.x / 128 * SQUARE_BYTES;
    int before = 0;
    if (TURNS) wait_turn();
    for (int p = 0; p < panels; p++) {
        const uint32_t slot = hopper::shared_address(ring.slots) + place.slot * Sizes<TURNS>::SLOT_BYTES;
        const uint64_t a = hopper::wgmma_operand(slot + own), b = hopper::wgmma_operand_along_n(slot + A_BYTES, SQUARE_BYTES);
        hopper::barrier_wait(ring.full + place.slot, place.phase);
        hopper::wgmma_fence();
#pragma unroll
        for (int step = 0; step < K / 16; step++)
#pragma unroll
            for (int i = 0; i < Sizes<TURNS>::PARTS; i++)
                multiply_16<TYPE>(sum[i], a + 2 * step + i * (SQUARE_BYTES >> 4), b + 128 * step, p > 0 || step > 0);
        hopper::wgmma_commit();
        if (p > 0) {
            hopper::wgmma_wait<1>();
            release<TURNS>(ring, before);
        }
        before = place.slot;
        place.step();
    }
    if (TURNS) pass_turn();
    hopper::wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < Sizes<TURNS>::PARTS; i++) hopper::wgmma_hold(sum[i]);
    release<TURNS>(ring, before);
}

/* ---- C -------------------------------------------------------------------------------------------------------------------- */

/* Where a thread's sums stand in a box (see wgmma_m64n192k16): 4 pairs of neighbours in this row, 4 in the row 8 below. */
__device__ __forceinline__ int own_row() { return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4; }

/* A group's part of C: rows × cols of it exist (at most all; may be ≤ 0). */
struct Target {
    float *c;
    int64_t ldc;
    int rows, cols;
};
__device__ __forceinline__ int at_most_256(int64_t count) { return count < 256 ? (int)count : 256; }

/* What C holds where this thread's 16 sums of the box at (row, col) belong. */
__device__ __forceinline__ void load_box(const Target &t, float2 (&old)[8], int row, int col) {
    asm volatile("" : "+r"(row)); /* addresses are made here, not kept in registers for all boxes */
    row += own_row();
    col += (int)threadIdx.x % 4 * 2;
    const float *from = t.c + row * t.ldc + col;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float *at = from + i % 2 * 8 * t.ldc + i / 2 * 8;
        const int left = row + i % 2 * 8 < t.rows ? t.cols - col - i / 2 * 8 : 0;
        old[i] = left > 1 ? __ldcs(reinterpret_cast<const float2 *>(at)) : make_float2(left > 0 ? at[0] : 0.0f, 0.0f);
    }
}

/* This thread's 16 sums of a box to shared memory, swizzled as the tensor map says; rows of either parity begin at other banks. */
__device__ __forceinline__ void fill_box(const float *sum, unsigned char *box) {
    const int row = own_row();
    const bool odd = row & 1;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int even_pair = i * 4, odd_pair = (i ^ 2) * 4;
        const int unit = ((odd ? i ^ 2 : i) * 2 + (int)threadIdx.x % 4 / 2) ^ (row & 7);
        float2 *to = reinterpret_cast<float2 *>(box + row * 128 + unit * 16 + threadIdx.x % 2 * 8);
        to[0] = odd ? make_float2(sum[odd_pair], sum[odd_pair + 1]) : make_float2(sum[even_pair], sum[even_pair + 1]);
        to[8 * 128 / sizeof(float2)] =
            odd ? make_float2(sum[odd_pair + 2], sum[odd_pair + 3]) : make_float2(sum[even_pair + 2], sum[even_pair + 3]);
    }
}

/* A box to its place (row, col) in C by ordinary stores, where tensor copies cannot reach it. A warp takes 16 rows. */
__device__ __forceinline__ void copy_box(const Target &t, const unsigned char *box, int row, int col, bool accumulate) {
    const int lane = (int)threadIdx.x % 32, first = (int)threadIdx.x % 128 / 32 * 16;
    asm volatile("" : "+r"(row)); /* addresses are made here, not kept in registers for all boxes */
    if (col + lane >= t.cols) return;
    float *to = t.c + (row + first) * t.ldc + col + lane;
    const int rows = t.rows - row - first;
    float old[16];
#pragma unroll
    for (int i = 0; i < 16; i++) old[i] = accumulate && i < rows ? to[i * t.ldc] : 0.0f;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const float sum = *reinterpret_cast<const float *>(box + (first + i) * 128 + (lane / 4 ^ i % 8) * 16 + lane % 4 * 4);
        if (i < rows) to[i * t.ldc] = accumulate ? old[i] + sum : sum;
    }
}

/* This group's sums to C, which begins at (row, col) for it, a box at a time. Boxes that end within 16 bytes go by ordinary stores: a tensor
 * copy would write to their end. ADD: to what ordinary loads bring, a box ahead. */
template <bool TURNS, bool ADD>
__device__ __forceinline__ void store(const void *map_c, const Work &w, Sums<TURNS> &sum, unsigned char *boxes, int64_t row, int64_t col) {
    constexpr int ACROSS = Sizes<TURNS>::N / BOX_COLS, AHEAD = 2;
    const bool first = threadIdx.x % 128 == 0;
    const Target target = {w.c + row * w.ldc + col, w.ldc, at_most_256(w.m - row), at_most_256(w.n - col)};
    float2 old[AHEAD + 1][8];
#pragma unroll
    for (int box = 0; ADD && box < AHEAD; box++) load_box(target, old[box], box / ACROSS * BOX_ROWS, box % ACROSS * BOX_COLS);
#pragma unroll
    for (int box = 0; box < BOXES; box++) {
        unsigned char *at = boxes + box % 2 * BOX_BYTES;
        float *own = sum[box / ACROSS] + box % ACROSS * 16;
        const int down = box / ACROSS * BOX_ROWS, across = box % ACROSS * BOX_COLS, next = box + AHEAD;
        if (ADD && next < BOXES) load_box(target, old[next % (AHEAD + 1)], next / ACROSS * BOX_ROWS, next % ACROSS * BOX_COLS);
#pragma unroll
        for (int i = 0; ADD && i < 8; i++) {
            own[2 * i] += old[box % (AHEAD + 1)][i].x;
            own[2 * i + 1] += old[box % (AHEAD + 1)][i].y;
        }
        if (first) hopper::store_wait<1>(); /* the copy before the last one has left this box */
        hopper::named_wait(3 + (int)threadIdx.x / 128, 128);
        fill_box(own, at);
        hopper::fence_copies();
        hopper::named_wait(3 + (int)threadIdx.x / 128, 128);
        const bool ragged = w.n % 4 != 0 && across + BOX_COLS > target.cols;
        if (!w.reached || ragged || (w.accumulate && !ADD)) copy_box(target, at, down, across, w.accumulate && !ADD);
        else if (first) hopper::store_tensor(map_c, (int)row + down, (int)col + across, at, hopper::evict_first());
    }
}

/* This thread's sums of a piece, for gather_pieces. */
template <bool TURNS> __device__ __forceinline__ void leave(const Work &w, const Sums<TURNS> &sum, int piece) {
    using S = Sizes<TURNS>;
    const int worker = (int)blockIdx.x / S::CLUSTER, rank = (int)blockIdx.x % S::CLUSTER;
    float4 *to = w.pieces + (int64_t)((worker * 2 + piece) * S::CLUSTER + rank) * QUADS * S::OWNERS + threadIdx.x % S::OWNERS;
#pragma unroll
    for (int quad = 0; quad < QUADS; quad++) {
        const float *from = sum[quad / (S::N / 8)] + quad % (S::N / 8) * 4;
        to[quad * S::OWNERS] = make_float4(from[0], from[1], from[2], from[3]);
    }
}

/* A group: its part of every item of this block, or with TURNS every second item. */
template <tsr_dtype TYPE, bool TURNS> __device__ __forceinline__ void consume(const void *map_c, const Work &w, const Ring &ring) {
    using S = Sizes<TURNS>;
    const int group = (int)threadIdx.x / 128;
    int turn = 0;
    Place<S::SLOTS> place = {0, 0};
    Walk walk(w, (int)blockIdx.x / S::CLUSTER);
    if (TURNS && group == 1) pass_turn(); /* the other begins */
    for (Item item; walk.next(w, &item); turn ^= 1) {
        if (TURNS && turn != group) {
            place.step(item.last - item.first);
            continue;
        }
        Sums<TURNS> sum;
        multiply<TYPE, TURNS>(sum, ring, place, item.last - item.first);
        if (item.piece >= 0) {
            leave<TURNS>(w, sum, item.piece);
            continue;
        }
        int row, col;
        tile_of(w, item.tile, &row, &col);
        const int64_t first_row = (int64_t)(row * S::CLUSTER + rank_of<TURNS>()) * M + (TURNS ? 0 : group * 64), first_col = (int64_t)col * S::N;
        unsigned char *boxes = ring.boxes + group * 2 * BOX_BYTES;
        if (!TURNS && w.accumulate && w.reached) store<TURNS, !TURNS>(map_c, w, sum, boxes, first_row, first_col);
        else store<TURNS, false>(map_c, w, sum, boxes, first_row, first_col);
    }
    if (TURNS && turn == group) wait_turn(); /* as often as the other passes it */
    if (threadIdx.x % 128 == 0) hopper::store_wait<0>();
}
#endif

template <tsr_dtype TYPE, bool TURNS>
__global__ void __launch_bounds__(THREADS, 1) gemm_wgmma(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                                                         const __grid_constant__ CUtensorMap map_c, const __grid_constant__ Work w) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using S = Sizes<TURNS>;
    TSR_SHARED_DYNAMIC(unsigned char, shared);
    Ring ring;
    ring.slots = shared + (1024 - hopper::shared_address(shared) % 1024) % 1024; /* the swizzle goes by address */
    ring.boxes = ring.slots + S::SLOTS * S::SLOT_BYTES;
    ring.full = reinterpret_cast<uint64_t *>(ring.boxes + GROUPS * 2 * BOX_BYTES);
    ring.empty = ring.full + S::SLOTS;
    if (threadIdx.x == 0) {
        for (int s = 0; s < S::SLOTS; s++) {
            hopper::barrier_init(ring.full + s, 1);
            hopper::barrier_init(ring.empty + s, (TURNS ? 1 : GROUPS) * 4 * S::CLUSTER);
        }
        hopper::fence_init();
    }
    if (threadIdx.x == GROUPS * 128) {
        hopper::prefetch_map(&map_a);
        hopper::prefetch_map(&map_b);
        if (w.reached) hopper::prefetch_map(&map_c);
    }
    __syncthreads();
    if (!TURNS) hopper::cluster_barrier();
    if (threadIdx.x >= GROUPS * 128) {
        hopper::registers_give<40>();
        if (threadIdx.x == GROUPS * 128) produce<TURNS>(&map_a, &map_b, &map_c, w, ring);
    } else {
        hopper::registers_take<232>();
        consume<TYPE, TURNS>(&map_c, w, ring);
    }
    __syncwarp();
    if (!TURNS) hopper::cluster_barrier(); /* nobody leaves while the other may still write here or arrive */
#else
    (void)map_a, (void)map_b, (void)map_c, (void)w;
    __trap(); /* built for another device: the registry never gets here */
#endif
}

/* Adds up the pieces of a quad of every owner's sums of a tile, in the order of k, and puts them where they belong. */
template <bool TURNS> __global__ void __launch_bounds__(Sizes<TURNS>::OWNERS) gather_pieces(const __grid_constant__ Work w) {
    using S = Sizes<TURNS>;
    const int quad = (int)blockIdx.x % QUADS, rank = (int)blockIdx.x / QUADS % S::CLUSTER, cut = (int)blockIdx.x / (QUADS * S::CLUSTER);
    const uint32_t begin = (uint32_t)cut * (uint32_t)w.panels;
    const int first = cutter_of(w, begin), last = cutter_of(w, begin + (uint32_t)w.panels - 1); /* who made its first panel, and its last */
    const bool second = begin_of(w, first) < begin; /* of its pieces; the others begin here */
    const float4 *from = w.pieces + ((int64_t)(first * 2 + (second ? 1 : 0)) * S::CLUSTER + rank) * QUADS * S::OWNERS + quad * S::OWNERS + threadIdx.x;
    float4 sum = *from;
    from = w.pieces + ((int64_t)(first + 1) * 2 * S::CLUSTER + rank) * QUADS * S::OWNERS + quad * S::OWNERS + threadIdx.x;
#pragma unroll 16
    for (int worker = first + 1; worker <= last; worker++, from += 2 * S::CLUSTER * QUADS * S::OWNERS) {
        const float4 part = *from;
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    int tile_row, tile_col;
    tile_of(w, w.whole + cut, &tile_row, &tile_col);
    const int part_rows = TURNS ? quad / (S::N / 8) * 64 : (int)threadIdx.x / 128 * 64;
    const int64_t row = (int64_t)(tile_row * S::CLUSTER + rank) * M + part_rows + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    const int64_t col = (int64_t)tile_col * S::N + quad % (S::N / 8) * 8 + threadIdx.x % 4 * 2;
    const float own[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int64_t at_row = row + i / 2 * 8, at_col = col + i % 2;
        float *to = w.c + at_row * w.ldc + at_col;
        if (at_row < w.m && at_col < w.n) *to = w.accumulate ? *to + own[i] : own[i];
    }
}

/* ---- operands that tensor copies cannot reach -------------------------------------------------------------------------------- */

constexpr int ALIGN_THREADS = 256, ALIGN_PAIRS = 4;
constexpr int ALIGN_COLS = ALIGN_THREADS * ALIGN_PAIRS * 2; /* of a row, that a block copies at a time */

/* rows × cols from rows ld elements apart to rows to_ld, a multiple of 2, apart. */
__global__ void __launch_bounds__(ALIGN_THREADS) align_rows(uint16_t *to, int64_t to_ld, const uint16_t *from, int64_t ld, int64_t rows, int64_t cols) {
    const int64_t across = (cols + ALIGN_COLS - 1) / ALIGN_COLS;
    for (int64_t work = blockIdx.x; work < rows * across; work += gridDim.x) {
        const int64_t row = work / across, col = work % across * ALIGN_COLS + threadIdx.x * 2;
        uint32_t pairs[ALIGN_PAIRS];
#pragma unroll
        for (int i = 0; i < ALIGN_PAIRS; i++) {
            const int64_t at = col + i * ALIGN_THREADS * 2;
            const uint16_t *pair = from + row * ld + at;
            pairs[i] = (at < cols ? pair[0] : 0u) | (at + 1 < cols ? (uint32_t)pair[1] << 16 : 0u);
        }
#pragma unroll
        for (int i = 0; i < ALIGN_PAIRS; i++) {
            const int64_t at = col + i * ALIGN_THREADS * 2;
            if (at < cols) *reinterpret_cast<uint32_t *>(to + row * to_ld + at) = pairs[i];
        }
    }
}

int64_t aligned_ld(int64_t cols) { return tsr_round_up(cols, 64); } /* rows of whole cache lines: 8 elements would do, slower */
size_t aligned_bytes(int64_t rows, int64_t cols) { return (size_t)tsr_round_up(rows * aligned_ld(cols) * 2, 1024); }

/* A map of an operand in boxes of box_rows × 64, of its copy in `room` where tensor copies cannot reach the operand itself. */
tsr_status map_operand(tsr_stream *stream, tsr_dtype type, const void *data, int64_t rows, int64_t cols, int64_t ld, int box_rows, void *room, CUtensorMap *map) {
    if (!tsr_tensor_map_reaches(data, ld, sizeof(uint16_t))) {
        const int64_t works = rows * tsr_ceil_div(cols, ALIGN_COLS);
        TSR_TRY(TSR_LAUNCH(align_rows, (unsigned)tsr_min(works, 1 << 20), ALIGN_THREADS, 0, stream, (uint16_t *)room, aligned_ld(cols),
                           (const uint16_t *)data, ld, rows, cols));
        data = room;
        ld = aligned_ld(cols);
    }
    return tsr_tensor_map(data, type, rows, cols, ld, box_rows, 64, 128, map);
}

/* ---- the kernel as the contract wants it ---------------------------------------------------------------------------------- */

constexpr int LONG = 32;             /* panels from which the groups share a tile, */
constexpr int MANY = 16;             /* where there are more tiles than this */
constexpr int LEAST_SHARE = 4;       /* panels of a piece, about */
constexpr int WORTH = 16;            /* panels that a cut must save to be worth its gathering */
constexpr int64_t FARTHEST = 1 << 30; /* tensor copies count rows and columns in 32 bits, and MOST_BLOCKS times so many panels fit them */

bool takes_turns(int64_t m, int64_t n, int64_t k) {
    return m <= M || tsr_ceil_div(k, K) < LONG || tsr_ceil_div(m, 2 * M) * tsr_ceil_div(n, Sizes<false>::N) <= MANY;
}

/* Enough for every piece of either way: at most two a worker, and no more than there are panels. */
size_t pieces_bytes(int64_t m, int64_t n, int64_t k) {
    const int64_t panels = tsr_ceil_div(m, 2 * M) * tsr_ceil_div(n, 2 * M) * tsr_ceil_div(k, K);
    return k > WORTH * K ? (size_t)tsr_min(panels, MOST_BLOCKS) * 2 * M * 2 * M * sizeof(float) : 0;
}

size_t workspace_bytes(int64_t m, int64_t n, int64_t k) { return aligned_bytes(m, k) + aligned_bytes(k, n) + pieces_bytes(m, n, k); }

template <bool TURNS> tsr_status plan(const tsr_gemm_args *args, Work *w) {
    using S = Sizes<TURNS>;
    int multiprocessors = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMultiProcessorCount, &multiprocessors));
    const int64_t most = tsr_min(multiprocessors, MOST_BLOCKS) / S::CLUSTER;
    w->panels = (int)tsr_ceil_div(args->k, K);
    w->tiles_m = (int)tsr_ceil_div(args->m, M * S::CLUSTER);
    w->tiles_n = (int)tsr_ceil_div(args->n, S::N);
    const int64_t tiles = (int64_t)w->tiles_m * w->tiles_n, rest = tiles % most, cutters = tsr_min(most, rest * w->panels / LEAST_SHARE);
    const bool cut = cutters > rest && w->panels - tsr_ceil_div(rest * w->panels, cutters) >= WORTH;
    w->whole = (int)(cut ? tiles - rest : tiles);
    w->cutters = cut ? (int)cutters : 0;
    w->workers = (int)(w->whole > 0 ? tsr_min(most, tiles) : cutters);
    return TSR_OK;
}

template <tsr_dtype TYPE, bool TURNS> tsr_status launch_as(tsr_stream *stream, const tsr_gemm_args *args) {
    using S = Sizes<TURNS>;
    const int64_t m = args->m, n = args->n, k = args->k;
    unsigned char *room_a = (unsigned char *)args->workspace, *room_b = room_a + aligned_bytes(m, k);
    Work w;
    CUtensorMap map_a, map_b, map_c = {};
    w.c = (float *)args->c;
    w.ldc = args->ldc;
    w.m = m;
    w.n = n;
    w.pieces = (float4 *)(room_b + aligned_bytes(k, n));
    w.accumulate = args->accumulate;
    w.reached = tsr_tensor_map_reaches(args->c, args->ldc, sizeof(float));
    TSR_TRY(plan<TURNS>(args, &w));
    TSR_TRY(map_operand(stream, TYPE, args->a, m, k, args->lda, M, room_a, &map_a));
    TSR_TRY(map_operand(stream, TYPE, args->b, k, n, args->ldb, K, room_b, &map_b));
    if (w.reached) TSR_TRY(tsr_tensor_map(args->c, TSR_F32, m, n, args->ldc, BOX_ROWS, BOX_COLS, 128, &map_c));

    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = S::CLUSTER;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(w.workers * S::CLUSTER));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = S::SHARED_BYTES;
    config.stream = tsr_cuda_stream(stream);
    config.attrs = &cluster;
    config.numAttrs = 1;
    TSR_TRY(TSR_CUDA(cudaFuncSetAttribute(gemm_wgmma<TYPE, TURNS>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED_BYTES)));
    TSR_TRY(TSR_CUDA(cudaLaunchKernelEx(&config, gemm_wgmma<TYPE, TURNS>, map_a, map_b, map_c, w)));
    if (w.cutters == 0) return TSR_OK;
    const int cuts = w.tiles_m * w.tiles_n - w.whole;
    return TSR_LAUNCH(gather_pieces<TURNS>, (unsigned)(cuts * S::CLUSTER * QUADS), S::OWNERS, 0, stream, w);
}

template <tsr_dtype TYPE> tsr_status launch_part(tsr_stream *stream, const tsr_gemm_args *args) {
    return takes_turns(args->m, args->n, args->k) ? launch_as<TYPE, true>(stream, args) : launch_as<TYPE, false>(stream, args);
}

template <tsr_dtype TYPE> tsr_status launch(tsr_device *, tsr_stream *stream, const tsr_gemm_args *args) {
    if (args->k == 0 && args->accumulate) return TSR_OK;
    if (args->k == 0)
        return TSR_CUDA(cudaMemset2DAsync(args->c, (size_t)args->ldc * sizeof(float), 0, (size_t)args->n * sizeof(float), (size_t)args->m,
                                          tsr_cuda_stream(stream)));
    tsr_gemm_args part = *args;
    for (int64_t row = 0; row < args->m; row += FARTHEST) {
        for (int64_t col = 0; col < args->n; col += FARTHEST) {
            for (int64_t depth = 0; depth < args->k; depth += FARTHEST) {
                part.m = tsr_min(args->m - row, FARTHEST);
                part.n = tsr_min(args->n - col, FARTHEST);
                part.k = tsr_min(args->k - depth, FARTHEST);
                part.a = (const uint16_t *)args->a + row * args->lda + depth;
                part.b = (const uint16_t *)args->b + depth * args->ldb + col;
                part.c = (float *)args->c + row * args->ldc + col;
                part.accumulate = args->accumulate || depth > 0;
                TSR_TRY(launch_part<TYPE>(stream, &part));
            }
        }
    }
    return TSR_OK;
}

template <tsr_dtype TYPE, bool TURNS> tsr_status shape_as(int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    using S = Sizes<TURNS>;
    TSR_TRY(TSR_CUDA(cudaFuncSetAttribute(gemm_wgmma<TYPE, TURNS>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED_BYTES)));
    TSR_TRY(tsr_gemm_describe(gemm_wgmma<TYPE, TURNS>, M, S::N, K, THREADS, S::SHARED_BYTES, sizeof(uint16_t), m, n, k, out));
    /* C has larger elements, and a cluster reads B once for all its rows. */
    const double a_bytes = 2.0 * (double)m * (double)k * (double)tsr_ceil_div(n, S::N), b_bytes = 2.0 * (double)k * (double)n * (double)tsr_ceil_div(m, M * S::CLUSTER);
    out->bytes = a_bytes + b_bytes + 4.0 * (double)m * (double)n;
    return TSR_OK;
}

template <tsr_dtype TYPE> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    return takes_turns(m, n, k) ? shape_as<TYPE, true>(m, n, k, out) : shape_as<TYPE, false>(m, n, k, out);
}

constexpr char WHAT[] = "tensor cores, 16-bit operands as they stand, tensor copies, persistent clusters";

/* The tensor cores align the 16 products and the sum of a step to the largest of them, keep at least 2 bits below fp32's last, and
 * truncate: at most 17/4 + 1 units of fp32's last place, 10.5·u, every 16 along k; 2·k·u holds that three times. Products are exact. */
constexpr double ERROR_FACTOR = 2.0;

} // namespace

const tsr_gemm_kernel tsr_gemm_wgmma_bf16 = {"wgmma", WHAT, TSR_DEVICE_CUDA, TSR_BF16, TSR_F32, 90, TSR_ACCURACY_FAST, ERROR_FACTOR, true, 1, 70,
                                             workspace_bytes, shape<TSR_BF16>, launch<TSR_BF16>, 90};
const tsr_gemm_kernel tsr_gemm_wgmma_f16 = {"wgmma", WHAT, TSR_DEVICE_CUDA, TSR_F16, TSR_F32, 90, TSR_ACCURACY_FAST, ERROR_FACTOR, true, 1, 70,
                                            workspace_bytes, shape<TSR_F16>, launch<TSR_F16>, 90};
