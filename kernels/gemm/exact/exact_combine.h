/* The last steps of `exact` on CUDA devices: elements of C from their residues by the Chinese remainder theorem, few of
 * a block by themselves, and those and blocks that no level holds by a loop. Device code and its launches, for exact.cu
 * alone. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_COMBINE_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_COMBINE_H

#include "kernels/gemm/exact/exact_convert.h"
#include "kernels/gemm/exact/exact_rows.h"
#include "kernels/gemm/flips.h"

namespace exact {

/* C, and what it is made from. */
template <typename T> struct Target {
    T *c;
    int64_t ldc, m, n;
    bool accumulate;
    const int8_t *planes; /* COUNT × rows × columns */
    int64_t rows, columns;
    const tsr_exact_proof *proof_a, *proof_b;
    const unsigned *levels; /* of blocks of TSR_EXACT_BLOCK, `across` a row of them */
    int across;
    const unsigned *wanted;   /* of blocks of rows: bits of the levels of theirs */
    const unsigned *left;     /* elements that are made by themselves, a bit each: see tsr_residue_levels_args */
    const tsr_exact_few *few; /* of blocks: those that take the last level */
    bool proved;              /* else all are of level 0, and none is left */

    __device__ __forceinline__ int64_t block_at(int64_t row, int64_t col) const {
        return row / TSR_EXACT_BLOCK * across + col / TSR_EXACT_BLOCK;
    }
    __device__ __forceinline__ int level_at(int64_t row, int64_t col) const {
        return proved ? (int)levels[block_at(row, col)] : 0;
    }
};

template <typename T> __device__ __forceinline__ void put(const Target<T> &t, int64_t row, int64_t col, T value) {
    T *c = t.c + row * t.ldc + col;
    *c = tsr_one_nan(t.accumulate ? *c + value : value);
}
/* Four neighbours, of which those whose bit in `own` is set are put; none is a NaN. */
template <typename T>
__device__ __forceinline__ void put_four(const Target<T> &t, int64_t row, int64_t col, const T (&value)[4],
                                         unsigned own) {
    T *c = t.c + row * t.ldc + col;
    if (own == 15 && !t.accumulate && (uintptr_t)c % sizeof(Chunk<T>) == 0) {
        store_chunks(c, value);
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (own >> e & 1) put(t, row, col + e, value[e]);
    }
}

/* Counts so many rows that are wrong, where C is made by this launch. */
__device__ __forceinline__ void note_wrong(const tsr_gemm_check &check, unsigned rows) {
    typedef unsigned long long Word;
    const Word first = atomicAdd(reinterpret_cast<Word *>(&check.counts->doubtful), (Word)rows);
    atomicAdd(reinterpret_cast<Word *>(&check.counts->wrong), (Word)rows);
    for (Word place = first; place < first + rows && place < TSR_CHECK_PLACES; place++) {
        check.counts->place[place].row = check.place_row;
        check.counts->place[place].col = check.place_col;
    }
}

/* ---- residues to elements -------------------------------------------------------------------- */

/* What the check does with integers before they are rounded, and behind a row of them: nothing. */
struct Unwatched {
    static constexpr bool WATCHES = false;
    __device__ __forceinline__ void see(int, tsr_exact_integer *) {}
    __device__ __forceinline__ void end_row(int) {}
};

/* A warp: a row of a block of C from `col` on, with the columns' shifts. any_few: see Target. watch.see(e, x): the
 * integer of a lane's element e of those within C. */
template <typename T, int COUNT, typename Watch>
__device__ __forceinline__ void combine_row(const Target<T> &t, int64_t row, int64_t col, int level, bool any_few,
                                            const int *shifts, const Residues<COUNT> &residues,
                                            const LaneUnits<COUNT> &units, typename Row<COUNT>::Room &room,
                                            Watch &watch) {
    const int lane = (int)threadIdx.x % 32;
    const int64_t own_col = col + 4 * lane;
    const int shift = t.proof_a[row].shifts[level];
    const unsigned there = t.n - own_col >= 4 ? 15 : t.n > own_col ? (1u << (t.n - own_col)) - 1 : 0;
    unsigned left = 0; /* bits of those that are made by themselves: where any row may have some they come early */
    if (COUNT == tsr_exact_moduli(TYPE<T>, TSR_EXACT_LAST)) left = t.left[row * (t.columns / 32) + own_col / 32];
    T value[4] = {};
    integers_of_row<COUNT>(residues, units, room, [&](int e, tsr_exact_integer x) {
        if (!(there >> e & 1)) return;
        watch.see(e, &x);
        value[e] = value_of<T, COUNT>(x, shift, shifts[32 * e + lane]);
    });
    if (COUNT == tsr_exact_moduli(TYPE<T>, TSR_EXACT_LAST - 1) && any_few)
        left = t.left[row * (t.columns / 32) + own_col / 32];
    const unsigned own = there & ~(left >> own_col % 32);
    if (own) put_four(t, row, own_col, value, own);
}

/* A block of threads makes `rows` rows of a block of C, or fewer, a warp every WARPS-th. watch.end_row(i), of whole
 * warps: behind row i. */
template <typename T, int COUNT, typename Watch>
__device__ __forceinline__ void combine_rows(const Target<T> &t, int64_t row, int64_t col, int rows, int level,
                                             Watch &watch) {
    const int down = (int)min((int64_t)rows, t.m - row), warp = (int)threadIdx.x / 32;
    const int column = (int)threadIdx.x;
    __shared__ int shifts[TSR_EXACT_BLOCK]; /* of the columns, a lane's 32 apart */
    __shared__ typename Row<COUNT>::Room rooms[WARPS];
    const LaneUnits<COUNT> units;
    const bool any_few =
        COUNT == tsr_exact_moduli(TYPE<T>, TSR_EXACT_LAST - 1) && t.few[t.block_at(row, col)].count > 0;
    __syncthreads(); /* of a block before */
    if (column < TSR_EXACT_BLOCK && col + column < t.n)
        shifts[column % 4 * 32 + column / 4] = t.proof_b[col + column].shifts[level];
    __syncthreads();
    const int8_t *from = t.planes + (row + warp) * t.columns + col;
    const int64_t plane_bytes = t.rows * t.columns;
    constexpr bool AHEAD = !Watch::WATCHES || COUNT <= 10; /* registers have room for a row ahead */
    Residues<COUNT> next;
    if (AHEAD) next.load(from, plane_bytes);
#pragma unroll 1
    for (int i = warp; i < down; i += WARPS) {
        if (!AHEAD) next.load(from, plane_bytes);
        const Residues<COUNT> residues = next;
        from += WARPS * t.columns;
        if (AHEAD && i + WARPS < down) next.load(from, plane_bytes);
        combine_row<T, COUNT>(t, row + i, col, level, any_few, shifts, residues, units, rooms[warp], watch);
        watch.end_row(i);
    }
}

/* Blocks of C of this level. Behind the first level they may be few: they are made in parts, all over the device. */
constexpr int PART_ROWS = 32;
constexpr int held(int count) { return count > 15 ? 2 : count > 9 ? 3 : 4; } /* by a multiprocessor, without spilling */
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS, held(COUNT)) combine(const Target<T> t, int level) {
    tsr_cuda_begin();
    if (level > 0 && !has_any(t.wanted, t.m, 1u << level)) return;
    const int height = level > 0 ? PART_ROWS : TSR_EXACT_BLOCK;
    const int parts = (int)((t.m + height - 1) / height) * t.across;
    for (int at = (int)blockIdx.x; at < parts; at += (int)gridDim.x) {
        const int64_t row = (int64_t)(at / t.across) * height;
        const int64_t col = (int64_t)(at % t.across) * TSR_EXACT_BLOCK;
        Unwatched nothing;
        if (col < t.n && t.level_at(row, col) == level) combine_rows<T, COUNT>(t, row, col, height, level, nothing);
    }
}

template <typename T> tsr_status blocks_grid(const Target<T> &t, dim3 *grid) {
    return small_grid(1, t.rows / TSR_EXACT_BLOCK * t.across, 1, 1, MANY_BLOCKS, grid);
}

template <typename T, int COUNT> tsr_status combine_launch(tsr_stream *stream, const Target<T> &t, int level) {
    dim3 grid;
    TSR_TRY(blocks_grid(t, &grid));
    return TSR_LAUNCH_NEXT((combine<T, COUNT>), grid, THREADS, 0, stream, t, level);
}

/* ---- the loop -------------------------------------------------------------------------------- */

constexpr int LOOP_TILE = 64, LOOP_DEPTH = 16; /* of C, a block of 16 × 16 threads with 4 × 4 elements each; of k */

/* What a block's threads have of a tile of C. */
template <typename T>
__device__ __forceinline__ void loop_sums(const Operand<T> &a, const Operand<T> &b, const Target<T> &t, int64_t row0,
                                          int64_t col0, double (&sum)[4][4]) {
    __shared__ T rows[LOOP_DEPTH][LOOP_TILE + 1];
    __shared__ T columns[LOOP_DEPTH][LOOP_TILE];
    const int x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;
    for (int64_t l0 = 0; l0 < a.k; l0 += LOOP_DEPTH) {
        for (int i = y; i < LOOP_TILE; i += 16)
            rows[x][i] = row0 + i < t.m && l0 + x < a.k ? a.data[(row0 + i) * a.ld + l0 + x] : (T)0;
        for (int j = x; j < LOOP_TILE; j += 16)
            columns[y][j] = col0 + j < t.n && l0 + y < a.k ? b.data[(l0 + y) * b.ld + col0 + j] : (T)0;
        __syncthreads();
        const int depth = a.k - l0 < LOOP_DEPTH ? (int)(a.k - l0) : LOOP_DEPTH; /* 0 times Inf is none of the sum's */
        for (int l = 0; l < depth; l++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] = __fma_rn((double)rows[l][y + 16 * i], (double)columns[l][x + 16 * j], sum[i][j]);
        __syncthreads();
    }
}

/* A warp makes an element of which pairs that meet are finite: it lists these, PAIRS elements of k at a time, and adds
 * them up in their order, one after the other. */
constexpr int PAIRS = 128;
struct Pairs {
    double x[PAIRS], y[PAIRS];
};
template <typename T>
__device__ __forceinline__ double sum_of_pairs(const Operand<T> &a, const Operand<T> &b, Pairs &pairs, int64_t row,
                                               int64_t col) {
    const int lane = (int)threadIdx.x % 32;
    double sum = 0;
    for (int64_t l0 = 0; l0 < a.k; l0 += PAIRS) {
        T x[PAIRS / 32], y[PAIRS / 32];
#pragma unroll
        for (int i = 0; i < PAIRS / 32; i++) {
            const int64_t l = l0 + 32 * i + lane;
            x[i] = l < a.k ? a.data[row * a.ld + l] : (T)0;
        }
#pragma unroll
        for (int i = 0; i < PAIRS / 32; i++) /* a line of memory each: only those that are wanted */
            y[i] = x[i] != 0 ? b.data[(l0 + 32 * i + lane) * b.ld + col] : (T)0;
        int count = 0;
#pragma unroll
        for (int i = 0; i < PAIRS / 32; i++) {
            const unsigned meet = __ballot_sync(0xffffffffu, x[i] != 0 && y[i] != 0);
            if (meet >> lane & 1) {
                const int at = count + __popc(meet & ((1u << lane) - 1));
                pairs.x[at] = (double)x[i];
                pairs.y[at] = (double)y[i];
            }
            count += __popc(meet);
        }
        __syncwarp();
#pragma unroll 8
        for (int i = 0; i < count; i++) sum = __fma_rn(pairs.x[i], pairs.y[i], sum);
        __syncwarp();
    }
    return sum;
}

/* No sum of integers tells what an element must be that is made by itself, or by the loop: the check makes it twice.
 * CHECKS: it is on. */

/* One thread: an element that was made by itself; `again`, where it was made twice. */
template <typename T, bool CHECKS>
__device__ __forceinline__ void put_alone(const Target<T> &t, const tsr_gemm_check &check, int64_t row, int64_t col,
                                          double value, double again) {
    TSR_FLIP_WORD(TSR_FLIP_LOOP, &value);
    if (CHECKS && tsr_exact_bits(value) != tsr_exact_bits(again)) note_wrong(check, 1);
    put(t, row, col, (T)value);
}

/* A block takes a block of C: a list of the elements that are left, then a warp each. */
template <typename T, bool CHECKS>
__global__ void __launch_bounds__(THREADS)
    loop_left(const Operand<T> a, const Operand<T> b, const Target<T> t, const tsr_gemm_check check) {
    tsr_cuda_begin();
    constexpr int WORDS = TSR_EXACT_BLOCK / 32; /* of a row of a block */
    __shared__ unsigned count;
    __shared__ int list[TSR_EXACT_LEFT_MOST]; /* row · TSR_EXACT_BLOCK + column */
    __shared__ Pairs pairs[WARPS];
    const int blocks = (int)(t.rows / TSR_EXACT_BLOCK) * t.across;
    if (!has_any(t.wanted, t.m, 1u << TSR_EXACT_LAST)) return;
    for (int at = (int)blockIdx.x; at < blocks; at += (int)gridDim.x) {
        if (t.levels[at] != TSR_EXACT_LAST) continue;
        const int64_t row0 = (int64_t)(at / t.across) * TSR_EXACT_BLOCK,
                      col0 = (int64_t)(at % t.across) * TSR_EXACT_BLOCK;
        if (threadIdx.x == 0) count = 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < TSR_EXACT_BLOCK * WORDS; i += THREADS) {
            unsigned left = t.left[(row0 + i / WORDS) * (t.columns / 32) + col0 / 32 + i % WORDS];
            for (; left; left &= left - 1)
                list[atomicAdd(&count, 1u)] = i / WORDS * TSR_EXACT_BLOCK + i % WORDS * 32 + __ffs((int)left) - 1;
        }
        __syncthreads();
        for (unsigned i = threadIdx.x / 32; i < count; i += WARPS) {
            const int64_t row = row0 + list[i] / TSR_EXACT_BLOCK, col = col0 + list[i] % TSR_EXACT_BLOCK;
            const double value = sum_of_pairs(a, b, pairs[threadIdx.x / 32], row, col);
            const double again = CHECKS ? sum_of_pairs(a, b, pairs[threadIdx.x / 32], row, col) : 0;
            if (threadIdx.x % 32 == 0) put_alone<T, CHECKS>(t, check, row, col, value, again);
        }
        __syncthreads();
    }
}

/* A block: an element at the last level, whatever that of its block is. `sums`: of warps. */
template <typename T>
__device__ __forceinline__ double alone_at_last(const Operand<T> &a, const Operand<T> &b, const Target<T> &t,
                                                int64_t row, int64_t col, tsr_exact_natural (&sums)[WARPS]) {
    const int shift_a = t.proof_a[row].shifts[TSR_EXACT_LAST], shift_b = t.proof_b[col].shifts[TSR_EXACT_LAST];
    const double scale_a = tsr_exact_power(shift_a), scale_b = tsr_exact_power(shift_b);
    tsr_exact_natural sum = 0;
#pragma unroll 4
    for (int64_t l = threadIdx.x; l < a.k; l += THREADS)
        sum += (tsr_exact_natural)tsr_exact_pair((double)a.data[row * a.ld + l], scale_a,
                                                 (double)b.data[l * b.ld + col], scale_b);
    sum = tsr_warp_sum_128(sum);
    __syncthreads(); /* those of an element before are read */
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < WARPS; warp++) sum += sums[warp];
    return tsr_exact_value(TYPE<T>, (tsr_exact_integer)sum, shift_a + shift_b);
}
/* A block makes the few elements of block `at` that take the last level. */
template <typename T, bool CHECKS>
__device__ __forceinline__ void make_few(const Operand<T> &a, const Operand<T> &b, const Target<T> &t,
                                         const tsr_gemm_check &check, int at) {
    __shared__ tsr_exact_natural sums[WARPS];
    const tsr_exact_few &few = t.few[at];
    const int64_t row0 = (int64_t)(at / t.across) * TSR_EXACT_BLOCK, col0 = (int64_t)(at % t.across) * TSR_EXACT_BLOCK;
    for (unsigned i = 0; i < few.count; i++) {
        const int64_t row = row0 + few.at[i] / TSR_EXACT_BLOCK, col = col0 + few.at[i] % TSR_EXACT_BLOCK;
        const double value = alone_at_last(a, b, t, row, col, sums);
        const double again = CHECKS ? alone_at_last(a, b, t, row, col, sums) : 0;
        if (threadIdx.x == 0) put_alone<T, CHECKS>(t, check, row, col, value, again);
    }
}

/* Makes the few that take the last level, and blocks by the loop. As the last launch it counts the rows that were
 * judged. */
template <typename T, bool CHECKS>
__global__ void __launch_bounds__(256)
    make_rest(const Operand<T> a, const Operand<T> b, const Target<T> t, const tsr_gemm_check check) {
    tsr_cuda_begin();
    const int x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;
    if (CHECKS && threadIdx.x == 0 && blockIdx.x == 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(&check.counts->judged), (unsigned long long)t.m);
    const int blocks = (int)(t.rows / TSR_EXACT_BLOCK) * t.across;
    if (has_any(t.wanted, t.m, 1u << (TSR_EXACT_LAST - 1)))
        for (int at = (int)blockIdx.x; at < blocks; at += (int)gridDim.x)
            if (t.levels[at] == TSR_EXACT_LAST - 1) make_few<T, CHECKS>(a, b, t, check, at);
    if (!has_any(t.wanted, t.m, 1u << TSR_EXACT_LOOP)) return;
    const int64_t across = (t.n + LOOP_TILE - 1) / LOOP_TILE, tiles = (t.m + LOOP_TILE - 1) / LOOP_TILE * across;
    for (int64_t at = blockIdx.x; at < tiles; at += gridDim.x) {
        /* neither a row of tiles nor a column of them is for few blocks alone */
        const int64_t row0 = at / across * LOOP_TILE, col0 = (at + at / across) % across * LOOP_TILE;
        if (t.level_at(row0, col0) != TSR_EXACT_LOOP) continue;
        double sum[4][4] = {}, again[4][4] = {};
        loop_sums(a, b, t, row0, col0, sum);
        if constexpr (CHECKS) loop_sums(a, b, t, row0, col0, again);
        unsigned wrong = 0;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int64_t row = row0 + y + 16 * i, col = col0 + x + 16 * j;
                if (row >= t.m || col >= t.n) continue;
                TSR_FLIP_WORD(TSR_FLIP_LOOP, &sum[i][j]);
                wrong += CHECKS && tsr_exact_bits(sum[i][j]) != tsr_exact_bits(again[i][j]);
                put(t, row, col, (T)sum[i][j]);
            }
        if (wrong > 0) note_wrong(check, wrong);
    }
}

template <typename T, bool CHECKS>
tsr_status loop_launch(tsr_stream *stream, const Operand<T> &a, const Operand<T> &b, const Target<T> &t,
                       const tsr_gemm_check &check) {
    dim3 grid, blocks;
    TSR_TRY(small_grid(1, tsr_ceil_div(t.m, LOOP_TILE) * tsr_ceil_div(t.n, LOOP_TILE), 1, 1, FEW_BLOCKS, &grid));
    TSR_TRY(blocks_grid(t, &blocks));
    TSR_TRY(TSR_LAUNCH_NEXT((loop_left<T, CHECKS>), blocks, THREADS, 0, stream, a, b, t, check));
    return TSR_LAUNCH_NEXT((make_rest<T, CHECKS>), grid, 256, 0, stream, a, b, t, check);
}

/* What is made by itself, and blocks of which no level is proved. */
template <typename T>
tsr_status loop_launch(tsr_stream *stream, const Operand<T> &a, const Operand<T> &b, const Target<T> &t,
                       const tsr_gemm_check &check) {
    return check.counts ? loop_launch<T, true>(stream, a, b, t, check) : loop_launch<T, false>(stream, a, b, t, check);
}

} // namespace exact

#endif
