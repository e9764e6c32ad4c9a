/* Operation: C = A·B or C += A·B, A and B bf16 or fp16, C fp32, row-major, any shape, on the tensor cores as they
 * add: exact products, sums truncated.
 * Mapping: blocks stay on their multiprocessor and walk tiles of C; one warp asks for panels of 64 along k by tensor
 * copies, straight from A and B where these can reach them (16-byte aligned rows), else from a copy that is aligned;
 * two groups of 4 warps multiply. B's panels stay as they stand, k by n. Long products: the groups share a tile of
 * 128 × 256, and two blocks of a cluster, one below the other, share the panels of B; the groups end a tile one
 * after the other, so that one stores while the other multiplies. Short ones, and those of few rows (`TURNS`): each
 * group makes tiles of 128 × 128 of its own, in turns.
 *   Workers share the last tiles; where tiles do not fill the device they are cut along k, and hopper::gather adds
 *   up the parts in their order.
 *   C of at most 132 tiles of 64 × 128: a block for each, or for a slice of it along k (wgmma_slices.h).
 * Shared memory: a pipeline of 4 stages of 48 KiB, 6 of 32 KiB or 8 of 24 KiB, and two boxes of 64 × 32 sums for each
 * group, on their way to C.
 * Registers: 232 a thread that multiplies, 40 a thread that does not; small tiles: 91 a thread.
 * Requirements: sm_90a; workspace for the aligned copies, 2·(m·k + k·n) bytes and padding, and for the parts.
 * Arithmetic intensity: 2·256·256·64 / (2·64·(256 + 256)) = 128 flop/byte for a cluster, 64 for a block that takes
 * turns, and for a cluster of slices.
 * Measured: H200, 2026-11-22, bf16, uniform in [0, 1), copies included, TFLOP/s, cuBLAS in turns with it in
 * brackets: 718 (718) at n = 4096, 714 (704) at 8192, 72 % of the bf16 tensor peak at the power limit, 726 (740) at
 * 16384, 651 (148) at 8191, 613 (149) at 8193; 8192 × 8192 × 512 508 (515), 512 × 8192 × 8192 710 (714), 100000 ×
 * 256 × 256 293 (296), 256 × 256 × 100000 336 (384). The same two kernels differ by up to 5 % from run to run.
 * Reference: PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Instructions"; Ootomo and Yokota (arXiv 2203.03341)
 * on truncating sums. */
#include "kernels/gemm/hopper/persistent.h"
#include "kernels/gemm/hopper/tensor_map.h"
#include "kernels/gemm/hopper/wgmma_slices.h"
#include "kernels/gemm/hopper/wgmma_store.h"

namespace {

/* With TURNS the tensor cores are one group's at a time. Without: group 1 leaves the last panels of an item, whose
 * stages need not be freed for the other, to group 0 first. So one stores while the other multiplies. Once an item by
 * each, group 0 when its last panel is under way. */
constexpr int LAST_PANELS = Sizes<false>::STAGES - 1;
__device__ __forceinline__ void take_turn() {
    hopper::wait_turn();
    hopper::pass_turn();
}

/* sum += this group's rows of the next panels of the pipeline. One panel's products are under way while the next is
 * waited for. */
template <tsr_dtype TYPE, bool TURNS>
__device__ __forceinline__ void multiply(Sums<TURNS> &sum, const typename Sizes<TURNS>::Pipe &pipe,
                                         typename Sizes<TURNS>::Pipe::State &at, int panels) {
    const uint32_t own = TURNS ? 0 : threadIdx.x / 128 * SQUARE_BYTES;
    int before = 0;
    const bool leads = !TURNS && threadIdx.x < 128, follows = !TURNS && !leads;
    const int last = panels > LAST_PANELS ? panels - LAST_PANELS : 0;
    if (TURNS) hopper::wait_turn();
    for (int p = 0; p < panels; p++) {
        if (follows && p == last) take_turn();
        const uint32_t stage = pipe.address(at.stage);
        const uint64_t a = hopper::wgmma_operand(stage + own),
                       b = hopper::wgmma_operand_along_n(stage + A_BYTES, SQUARE_BYTES);
        pipe.wait(at);
        hopper::wgmma_fence();
#pragma unroll
        for (int step = 0; step < K / 16; step++)
#pragma unroll
            for (int i = 0; i < Sizes<TURNS>::PARTS; i++)
                multiply_16<TYPE>(sum[i], a + 2 * step + i * (SQUARE_BYTES >> 4), b + 128 * step, true);
        hopper::wgmma_commit();
        if (p > 0) {
            hopper::wgmma_wait<1>();
            pipe.release(before);
        }
        before = at.stage;
        at.step();
    }
    if (leads) take_turn();
    if (TURNS) hopper::pass_turn();
    hopper::wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < Sizes<TURNS>::PARTS; i++) hopper::wgmma_hold(sum[i]);
    pipe.release(before);
}

/* The kernel as persistent.h wants it. The blocks of a cluster bring half of B's panel each, for both. */
template <tsr_dtype TYPE, bool TURNS_> struct Wgmma : hopper::Persistent<Parts<TURNS_>> {
    typedef Sizes<TURNS_> S;
    typedef Parts<TURNS_> Base;
    typedef ::Work Work;
    typedef typename S::Pipe Pipe;
    typedef ::Sums<TURNS_> Sums;
    typedef typename Pipe::State State;
    struct Lane {};
    static constexpr int CLUSTER = S::CLUSTER;
    static constexpr int THREADS = GROUPS * 128;
    static constexpr int HOLDERS = 128, BARRIER = 3;
    static constexpr int RELEASING = (TURNS_ ? 1 : GROUPS) * 4 * S::CLUSTER;
    static constexpr int PRODUCER_REGISTERS = 40;
    static constexpr bool WGMMA_ADDS = true, TURNS = TURNS_;

    static __device__ __forceinline__ void open(const Work &w) {
        hopper::prefetch_map(&w.map_a);
        hopper::prefetch_map(&w.map_b);
        if (w.reached) hopper::prefetch_map(&w.map_c);
    }
    /* no arrival may come from the other block when this one is gone */
    static __device__ __forceinline__ void close(const Pipe &pipe, State at) {
        if (S::CLUSTER > 1) pipe.drain(at);
    }
    static __device__ __forceinline__ float &at(Sums &sum, int i) { return sum[i / (S::N / 2)][i % (S::N / 2)]; }
    static __device__ __forceinline__ int flag(int group) { return TURNS ? 0 : rank_of<TURNS>() * GROUPS + group; }

    static __device__ __forceinline__ void bring(const Work &w, const Pipe &pipe, State &at,
                                                 const hopper::WorkTile &work) {
        const int rank = rank_of<TURNS>();
        const uint64_t keep = hopper::evict_last();
        const hopper::TilePlace tile = w.place_of(work.tile);
        const int row = (tile.row * S::CLUSTER + rank) * M, col = tile.col * S::N;
        const int row_b = w.product_rows > 0 ? row / w.product_rows * w.product_depth : 0;
        if (w.accumulate && w.reached && work.to < 0) {
            for (int i = 0; i < M / BOX_ROWS * (S::N / BOX_COLS); i++)
                hopper::prefetch_tensor(&w.map_c, row + i % 2 * BOX_ROWS, col + i / 2 * BOX_COLS);
        }
        for (int p = work.first; p < work.last; p++, at.step()) {
            unsigned char *stage = pipe.stage(at.stage);
            uint64_t *full = pipe.full(at.stage);
            pipe.acquire(at);
            /* blocks beside this one take the same rows, now and next */
            hopper::copy_tensor_keep(stage, &w.map_a, row, p * K, full, keep);
#pragma unroll
            for (int i = 0; i < S::N / 64 / S::CLUSTER; i++) {
                const int square = rank * (S::N / 64 / S::CLUSTER) + i;
                unsigned char *to = stage + A_BYTES + square * SQUARE_BYTES;
                if (TURNS) hopper::copy_tensor(to, &w.map_b, row_b + p * K, col + square * 64, full);
                else hopper::copy_tensor_to(3, to, &w.map_b, row_b + p * K, col + square * 64, full);
            }
        }
    }

    /* A group: its part of every work of this block, or with TURNS every second work. */
    struct Consumer : hopper::EveryWork {
        int turn = 0;
        __device__ __forceinline__ void begin() const {
            if (threadIdx.x / 128 == 1) hopper::pass_turn(); /* the other begins */
        }
        __device__ __forceinline__ bool skips(State &at, const hopper::WorkTile &work) {
            const bool others = turn != (int)threadIdx.x / 128;
            turn ^= 1;
            if (others) at.step(work.last - work.first);
            return others;
        }
        __device__ __forceinline__ void multiply(const Work &, const Pipe &pipe, const Lane &, State &at,
                                                 const hopper::WorkTile &work, bool, Sums &sum) const {
#pragma unroll
            for (int i = 0; i < S::PARTS; i++) hopper::wgmma_hold(sum[i]);
            ::multiply<TYPE, TURNS>(sum, pipe, at, work.last - work.first);
        }
        __device__ __forceinline__ void finish(const Work &w, const Pipe &pipe, const Lane &,
                                               const hopper::WorkTile &work, Sums &sum) const {
            if (work.to >= 0) return Base::leave(w, work.to, sum[0]);
            const int group = (int)threadIdx.x / 128;
            const hopper::TilePlace tile = w.place_of(work.tile);
            const int64_t row = (int64_t)(tile.row * S::CLUSTER + rank_of<TURNS>()) * M + (TURNS ? 0 : group * 64),
                          col = (int64_t)tile.col * S::N;
            unsigned char *boxes = pipe.behind() + group * 2 * BOX_BYTES;
            if (!TURNS && w.accumulate && w.reached) store<TURNS, !TURNS>(&w.map_c, w, sum, boxes, row, col);
            else store<TURNS, false>(&w.map_c, w, sum, boxes, row, col);
        }
        __device__ __forceinline__ void end() const {
            const int group = (int)threadIdx.x / 128;
            if (TURNS ? turn == group : group == 0) hopper::wait_turn(); /* as often as the other passes it */
            if (threadIdx.x % 128 == 0) hopper::store_wait<0>();
        }
    };
};

/* ---- operands that tensor copies cannot reach ------------------------------------------------ */

/* rows of whole cache lines: 8 elements would do, slower */
int64_t aligned_ld(int64_t cols) { return tsr_round_up(cols, 64); }
size_t aligned_bytes(int64_t rows, int64_t cols) { return (size_t)tsr_round_up(rows * aligned_ld(cols) * 2, 1024); }

/* A map of an operand in boxes of box_rows × 64, of its copy in `room` where tensor copies cannot reach the operand
 * itself. alone: as in tsr_tensor_box. */
tsr_status map_operand(tsr_device *device, tsr_stream *stream, tsr_dtype type, const void *data, int64_t rows,
                       int64_t cols, int64_t ld, int box_rows, bool alone, void *room, CUtensorMap *map) {
    TSR_TRY(tsr_tensor_align(device, stream, type, rows, cols, 16, room, aligned_ld(cols), &data, &ld));
    const tsr_tensor_box box = {.rows = box_rows, .cols = 64, .swizzle = 128, .alone = alone};
    return tsr_tensor_map(data, type, rows, cols, ld, box, map);
}

/* ---- the kernel as the contract wants it ----------------------------------------------------- */

constexpr int SHARED_TILE_PANELS = 32; /* panels from which the groups share a tile */
constexpr int MANY_PARTS = 8;          /* of a tile, from which strands of threads share them */
/* panels up to which 72 blocks are as fast as tiles that are cut for all (768 × 768 × 8192) */
constexpr int LONGEST_SLICED_PANELS = 128;
/* clusters of one slice start so far apart: near each other on the device, it seems, where reads of the same lines
 * meet */
constexpr int CLUSTER_STRIDE = 8;
/* tensor copies count rows and columns in 32 bits */
constexpr int64_t MOST_EXTENT = 1 << 30;

/* Blocks that make a slice of all of C. A product is made so where they can run at once and, if it is long, several
 * slices leave few multiprocessors idle. */
int64_t slice_blocks(int64_t m, int64_t n) {
    return SLICE_CLUSTER * tsr_ceil_div(m, SLICE_CLUSTER * SLICE_M) * tsr_ceil_div(n, SLICE_N);
}
bool in_slices(int64_t m, int64_t n, int64_t k) {
    const int64_t blocks = slice_blocks(m, n);
    if (m <= SLICE_M || blocks > hopper::FULL_DEVICE) return false;
    return tsr_ceil_div(k, K) <= LONGEST_SLICED_PANELS ||
           4 * (hopper::FULL_DEVICE / blocks * blocks) >= 3 * hopper::FULL_DEVICE;
}

bool takes_turns(int64_t m, int64_t k) { return m <= M || tsr_ceil_div(k, K) < SHARED_TILE_PANELS; }

/* Panels of a slice. */
int64_t slice_panels(int64_t blocks, int64_t panels) {
    constexpr hopper::Cut CUT = Sizes<true>::CUT;
    const int64_t most = tsr_max(1, tsr_min(CUT.full / blocks, panels / CUT.unit)), each = tsr_ceil_div(panels, most);
    return panels - each >= CUT.gathering ? tsr_round_up(each, CUT.unit) : panels;
}

/* Of the tiles of either way, or of all slices. */
template <bool TURNS> size_t tile_parts_bytes(int64_t m, int64_t n, int64_t k) {
    using S = Sizes<TURNS>;
    return hopper::parts_bytes(S::CUT, tsr_ceil_div(m, M * S::CLUSTER) * tsr_ceil_div(n, S::N), tsr_ceil_div(k, K),
                               M * S::CLUSTER * S::N * sizeof(float));
}
size_t parts_bytes(int64_t m, int64_t n, int64_t k) {
    const int64_t slices = tsr_max(1, tsr_ceil_div(k, K) / Sizes<true>::CUT.unit),
                  pieces = tsr_min(slice_blocks(m, n) * slices, hopper::FULL_DEVICE);
    const size_t sliced = (size_t)pieces * SLICE_M * SLICE_N * sizeof(float);
    return tsr_max(sliced, tsr_max(tile_parts_bytes<true>(m, n, k), tile_parts_bytes<false>(m, n, k)));
}

size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
    return aligned_bytes(m, k) + aligned_bytes(k, n) + parts_bytes(m, n, k);
}

constexpr tsr_tensor_box BOX = {.rows = BOX_ROWS, .cols = BOX_COLS, .swizzle = 128}; /* of C */

template <tsr_dtype TYPE, bool TURNS>
tsr_status launch_cut(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args, hopper::Cut cut) {
    using S = Sizes<TURNS>;
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    unsigned char *room_a = (unsigned char *)args->workspace, *room_b = room_a + aligned_bytes(m, k);
    Work w;
    hopper::take_product(&w, args, M * S::CLUSTER, S::N);
    w.product_rows = w.product_depth = 0;
    w.band = BAND;
    w.reached = tsr_tensor_map_reaches(args->c, args->ldc, sizeof(float));
    TSR_TRY(hopper::plan_tiles(cut, &w, tsr_ceil_div(k, K), S::CLUSTER));
    TSR_TRY(hopper::parts_clear(stream, &w, room_b + aligned_bytes(k, n)));
    TSR_TRY(map_operand(device, stream, TYPE, args->a, m, k, args->lda, M, false, room_a, &w.map_a));
    TSR_TRY(map_operand(device, stream, TYPE, args->b, k, n, args->ldb, K, false, room_b, &w.map_b));
    if (w.reached) TSR_TRY(tsr_tensor_map(args->c, TSR_F32, m, n, args->ldc, BOX, &w.map_c));

    TSR_TRY(hopper::launch_clusters(hopper::gemm<Wgmma<TYPE, TURNS>>, stream, (int64_t)w.plan.workers * S::CLUSTER,
                                    THREADS, S::Pipe::SHARED_BYTES, S::CLUSTER, w));
    return hopper::gather_launch<Parts<TURNS>>(stream, w, w.plan.pieces >= MANY_PARTS ? Parts<TURNS>::STRANDS : 1);
}
template <tsr_dtype TYPE, bool TURNS>
tsr_status launch_as(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    return launch_cut<TYPE, TURNS>(device, stream, args, Sizes<TURNS>::CUT);
}

template <tsr_dtype TYPE> tsr_status launch_slices(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    const int64_t blocks = slice_blocks(m, n);
    const int64_t panels = tsr_ceil_div(k, K);
    unsigned char *room_a = (unsigned char *)args->workspace, *room_b = room_a + aligned_bytes(m, k);
    float *pieces = (float *)(room_b + aligned_bytes(k, n));
    SliceWork w;
    w.panels = (int)panels;
    w.piece = (int)slice_panels(blocks, panels);
    w.slices = (int)tsr_ceil_div(panels, w.piece);
    w.pairs = (int)tsr_ceil_div(m, SLICE_CLUSTER * SLICE_M);
    w.tiles_n = (int)tsr_ceil_div(n, SLICE_N);
    w.rows = w.pairs * SLICE_CLUSTER * SLICE_M;
    w.cluster_stride =
        w.slices >= CLUSTER_STRIDE && blocks / SLICE_CLUSTER * w.slices % CLUSTER_STRIDE == 0 ? CLUSTER_STRIDE : 1;
    w.kept =
        w.slices > 1 || args->accumulate || n % 4 != 0 || !tsr_tensor_map_reaches(args->c, args->ldc, sizeof(float));
    const int64_t piece_ld = (int64_t)w.tiles_n * SLICE_N;
    CUtensorMap map_a, map_b, map_to;
    TSR_TRY(map_operand(device, stream, TYPE, args->a, m, k, args->lda, SLICE_M, true, room_a, &map_a));
    TSR_TRY(map_operand(device, stream, TYPE, args->b, k, n, args->ldb, K, true, room_b, &map_b));
    if (w.kept) TSR_TRY(tsr_tensor_map(pieces, TSR_F32, (int64_t)w.slices * w.rows, piece_ld, piece_ld, BOX, &map_to));
    else TSR_TRY(tsr_tensor_map(args->c, TSR_F32, m, n, args->ldc, BOX, &map_to));
    TSR_TRY(hopper::launch_clusters(gemm_wgmma_slices<TYPE>, stream, blocks * w.slices, THREADS,
                                    SlicePipe::SHARED_BYTES, SLICE_CLUSTER, map_a, map_b, map_to, w));
    if (!w.kept) return TSR_OK;
    return TSR_LAUNCH(add_slices, (unsigned)tsr_ceil_div(m * tsr_ceil_div(n, 4), ADDERS), ADDERS, 0, stream, pieces,
                      w.slices, (int64_t)w.rows, piece_ld, (float *)args->c, args->ldc, (int)m, (int)n,
                      args->accumulate);
}

/* ---- stacks of products (tsr_wgmma_stack) -------------------------------------------------------- */

template <tsr_dtype TYPE, bool TURNS> tsr_status launch_stack_as(tsr_stream *stream, const tsr_gemm_args *args) {
    using S = Sizes<TURNS>;
    constexpr tsr_tensor_box BOX_A = {.rows = M, .cols = 64, .swizzle = 128},
                             BOX_B = {.rows = K, .cols = 64, .swizzle = 128};
    tsr_gemm_args all = *args;
    Work w;
    all.m = args->batch * args->m;
    hopper::take_product(&w, &all, M * S::CLUSTER, S::N);
    w.product_rows = (int)args->m;
    w.product_depth = (int)args->k;
    w.band = (int)tsr_min(BAND, args->m / (M * S::CLUSTER));
    w.reached = true;
    TSR_TRY(hopper::plan_tiles(S::CUT, &w, args->k / K, S::CLUSTER));
    TSR_TRY(hopper::parts_clear(stream, &w, nullptr));
    TSR_TRY(tsr_tensor_map(args->a, TYPE, all.m, args->k, args->lda, BOX_A, &w.map_a));
    TSR_TRY(tsr_tensor_map(args->b, TYPE, args->batch * args->k, args->n, args->ldb, BOX_B, &w.map_b));
    TSR_TRY(tsr_tensor_map(args->c, TSR_F32, all.m, args->n, args->ldc, BOX, &w.map_c));
    return hopper::launch_clusters(hopper::gemm<Wgmma<TYPE, TURNS>>, stream, (int64_t)w.plan.workers * S::CLUSTER,
                                   THREADS, S::Pipe::SHARED_BYTES, S::CLUSTER, w);
}

/* Tiles that two groups share ask the L2 cache for half as much. In a stack, whose operands come from memory, they are
 * quicker however short: 410 TFLOP/s instead of 301 for 1024 products of 512³ in bf16 on an H200, 235 instead of 226
 * at 256³. */
template <tsr_dtype TYPE> tsr_status launch_stack(tsr_stream *stream, const tsr_gemm_args *args) {
    using Shared = Sizes<false>;
    const int64_t rows = M * Shared::CLUSTER;
    const bool whole = args->m % rows == 0 && args->n % Shared::N == 0;
    const int64_t tiles = args->batch * (args->m / rows) * (args->n / Shared::N);
    return whole && tiles >= Shared::CUT.full ? launch_stack_as<TYPE, false>(stream, args)
                                              : launch_stack_as<TYPE, true>(stream, args);
}

template <tsr_dtype TYPE> tsr_status launch_part(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    if (in_slices(args->m, args->n, args->k)) return launch_slices<TYPE>(device, stream, args);
    return takes_turns(args->m, args->k) ? launch_as<TYPE, true>(device, stream, args)
                                         : launch_as<TYPE, false>(device, stream, args);
}

template <tsr_dtype TYPE> tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    if (args->k == 0 && args->accumulate) return TSR_OK;
    if (args->k == 0)
        return TSR_CUDA(cudaMemset2DAsync(args->c, (size_t)args->ldc * sizeof(float), 0,
                                          (size_t)args->n * sizeof(float), (size_t)args->m, tsr_cuda_stream(stream)));
    tsr_gemm_args part = *args;
    for (int64_t row = 0; row < args->m; row += MOST_EXTENT) {
        for (int64_t col = 0; col < args->n; col += MOST_EXTENT) {
            for (int64_t depth = 0; depth < args->k; depth += MOST_EXTENT) {
                part.m = tsr_min(args->m - row, MOST_EXTENT);
                part.n = tsr_min(args->n - col, MOST_EXTENT);
                part.k = tsr_min(args->k - depth, MOST_EXTENT);
                part.a = (const uint16_t *)args->a + row * args->lda + depth;
                part.b = (const uint16_t *)args->b + depth * args->ldb + col;
                part.c = (float *)args->c + row * args->ldc + col;
                part.accumulate = args->accumulate || depth > 0;
                TSR_TRY(launch_part<TYPE>(device, stream, &part));
            }
        }
    }
    return TSR_OK;
}

/* No slices, no tile that is cut, and turns by k alone. */
template <tsr_dtype TYPE>
tsr_status launch_reproducible(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    if (args->k == 0) return launch<TYPE>(device, stream, args);
    return takes_turns(MOST_EXTENT, args->k)
               ? launch_cut<TYPE, true>(device, stream, args, hopper::whole(Sizes<true>::CUT))
               : launch_cut<TYPE, false>(device, stream, args, hopper::whole(Sizes<false>::CUT));
}

/* Of a kernel whose blocks make tiles of tile_m × tile_n. C has larger elements than A and B, and a cluster reads B
 * once for all its rows. */
template <typename Kernel>
tsr_status shape_of(Kernel kernel, int tile_m, int tile_n, int shared_bytes, int cluster_blocks, int64_t m, int64_t n,
                    int64_t k, tsr_gemm_shape *out) {
    TSR_TRY(
        tsr_gemm_describe(kernel, tile_m, tile_n, K, THREADS, (size_t)shared_bytes, sizeof(uint16_t), m, n, k, out));
    out->bytes = 2.0 * (double)m * (double)k * (double)tsr_ceil_div(n, tile_n) +
                 2.0 * (double)k * (double)n * (double)tsr_ceil_div(m, tile_m * cluster_blocks) +
                 4.0 * (double)m * (double)n;
    return TSR_OK;
}

template <tsr_dtype TYPE> tsr_status shape(tsr_device *, int64_t m, int64_t n, int64_t k, tsr_gemm_shape *out) {
    typedef Sizes<true> Turns;
    typedef Sizes<false> Shared;
    if (in_slices(m, n, k))
        return shape_of(gemm_wgmma_slices<TYPE>, SLICE_M, SLICE_N, SlicePipe::SHARED_BYTES, SLICE_CLUSTER, m, n, k,
                        out);
    if (takes_turns(m, k))
        return shape_of(hopper::gemm<Wgmma<TYPE, true>>, M, Turns::N, Turns::Pipe::SHARED_BYTES, 1, m, n, k, out);
    return shape_of(hopper::gemm<Wgmma<TYPE, false>>, M, Shared::N, Shared::Pipe::SHARED_BYTES, Shared::CLUSTER, m, n,
                    k, out);
}

/* The tensor cores align the 16 products and the sum of a step to the largest of them, keep at least 2 bits below
 * fp32's last, and truncate: at most 17/4 + 1 units of fp32's last place, 10.5·u, every 16 along k; 2·k·u holds that
 * three times. Products are exact. */
constexpr double ERROR_FACTOR = 2.0;

template <tsr_dtype TYPE> constexpr tsr_gemm_kernel table(const tsr_gemm_kernel *batched) {
    return hopper::kernel(TYPE, TSR_F32,
                          {.name = "wgmma",
                           .what = "tensor cores, 16-bit operands as they stand, tensor copies, clusters",
                           .accuracy = TSR_ACCURACY_FAST,
                           .error_factor = ERROR_FACTOR,
                           .error_grows = true,
                           .speed_rank = 70,
                           .batched = batched,
                           .workspace_bytes = workspace_bytes,
                           .shape = shape<TYPE>,
                           .launch = launch<TYPE>,
                           .launch_reproducible = launch_reproducible<TYPE>});
}

} // namespace

bool tsr_wgmma_stacks(const tsr_gemm_args *args) {
    const int64_t batch = args->batch;
    const int64_t m = args->m;
    const int64_t n = args->n;
    const int64_t k = args->k;
    const bool follow =
        args->stride_a == m * args->lda && args->stride_b == k * args->ldb && args->stride_c == m * args->ldc;
    const bool reached = tsr_tensor_map_reaches(args->a, args->lda, sizeof(uint16_t)) &&
                         tsr_tensor_map_reaches(args->b, args->ldb, sizeof(uint16_t)) &&
                         tsr_tensor_map_reaches(args->c, args->ldc, sizeof(float));
    /* tiles that fill the device are not cut along k, and so short that none is handed over */
    return batch > 1 && follow && reached && m % M == 0 && k % K == 0 && k > 0 && k / K <= Sizes<true>::CUT.handing &&
           n > 0 && batch * m <= MOST_EXTENT && batch * k <= MOST_EXTENT &&
           batch * (m / M) * tsr_ceil_div(n, Sizes<true>::N) >= hopper::FULL_DEVICE;
}

tsr_status tsr_wgmma_stack(tsr_stream *stream, tsr_dtype type, const tsr_gemm_args *args) {
    return type == TSR_BF16 ? launch_stack<TSR_BF16>(stream, args) : launch_stack<TSR_F16>(stream, args);
}

const tsr_gemm_kernel tsr_gemm_wgmma_bf16 = table<TSR_BF16>(&tsr_gemm_batched_bf16);
const tsr_gemm_kernel tsr_gemm_wgmma_f16 = table<TSR_F16>(&tsr_gemm_batched_f16);
