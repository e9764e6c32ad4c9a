/* The check of `exact` on CUDA devices. The integers of 128 rows of A are added up, and so are those of 128 columns of
 * B. Residues of these sums, times the planes of B and of A, are what columns and rows of a block of C must add up to,
 * modulo each plane's modulus. Columns and rows are added up as integers, which the last step makes of residues, and
 * compared modulo the product of the moduli: that is, in all planes. No rounding, and so no threshold: a residue that
 * is changed after its integer was added up, in a plane or on its way into C's, is found unless C stays what it was. So
 * is an integer of C. What is wrong in A shows in a block's columns, in B in its rows, in C in both. Elements that the
 * loop makes have no such sums: they are made twice (exact_combine.h).
 *   Lines are added up where they are converted, those of level 0 in memory, products of sums are made beside those of
 * planes, and rows and columns of C are added up where C is made.
 * Device code and its launches, for exact.cu. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_CHECK_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_CHECK_H

#include "kernels/gemm/exact/exact_combine.h"
#include "kernels/gemm/residues/products.h"

namespace exact {

constexpr int BLOCK = TSR_EXACT_BLOCK;
static_assert(TSR_EXACT_EDGE <= TSR_EXACT_SUMS * BLOCK && TSR_EXACT_EDGE % (2 * TSR_EXACT_TILE) == 0,
              "one sum for a block of lines, and half of them for a half");

/* What the check holds in the workspace. */
struct Checksums {
    int8_t *of_a, *of_b;    /* COUNT × TSR_EXACT_SUMS × depth: residues of sums of integers */
    int8_t *columns, *rows; /* what columns and rows of blocks must add up to: see tsr_residue_sums */
    int upper_a, upper_b;   /* blocks of lines of an upper half; of products without quarters TSR_EXACT_SUMS / 2 */
    unsigned long long *totals_a, *totals_b; /* of blocks of lines at level 0, 0 in front: see total_at */
    tsr_gemm_check check;
};
/* The line of sums of a block of lines: those of a lower half begin at TSR_EXACT_SUMS / 2. */
__host__ __device__ __forceinline__ int64_t sum_line(int64_t block, int upper) {
    return block < upper ? block : block - upper + TSR_EXACT_SUMS / 2;
}

/* ---- sums of integers ------------------------------------------------------------------------ */

/* Of PART elements of k over lines: a thread's share, four neighbours. */
template <int COUNT> struct PartSums {
    static constexpr bool ADDS = true;
    Sum<ARE_SHORT<COUNT>> sum[4];
    __device__ __forceinline__ void add(const unsigned (&low)[4], const unsigned (&high)[4]) {
#pragma unroll
        for (int e = 0; e < 4; e++) sum[e].add(low[e], high[e]);
    }
};
/* Of a part of a block of lines, by each warp those it had. */
template <int COUNT> using WarpSums = Sum<ARE_SHORT<COUNT>>[WARPS][PART];

template <typename T> __device__ __forceinline__ int lines_of(const Operand<T> &x, int64_t block) {
    return (int)min((int64_t)BLOCK, x.lines - block * BLOCK);
}

/* All threads: residues of a part's sums over a block of lines, to its line of the planes of sums `to`. */
template <typename T, int COUNT>
__device__ __forceinline__ void store_sums(const Operand<T> &x, int8_t *to, int upper, WarpSums<COUNT> &of_warps,
                                           const PartSums<COUNT> &own, int64_t block, int64_t part) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int element = (int)threadIdx.x;
#pragma unroll
    for (int e = 0; e < 4; e++) of_warps[warp][4 * lane + e] = own.sum[e];
    __syncthreads();
    if (element < PART) {
        Sum<ARE_SHORT<COUNT>> all = of_warps[0][element];
        for (int w = 1; w < WARPS; w++) all.join(of_warps[w][element]);
        int8_t *at = to + sum_line(block, upper) * x.depth + part * PART + element;
#pragma unroll
        for (int i = 0; i < COUNT; i++, at += TSR_EXACT_SUMS * x.depth)
            *at = (int8_t)sum_byte<COUNT, IS_NARROW<T, COUNT>>(all, lines_of(x, block), i);
    }
    __syncthreads();
}

/* Where a thread's share of a part's sums over a block of lines begins in memory. Its elements are 32 words apart, so
 * that a warp's follow each other. */
template <typename T>
__device__ __forceinline__ unsigned long long *total_at(const Operand<T> &x, unsigned long long *totals, int64_t block,
                                                        int64_t part, int lane) {
    return totals + (block * (x.depth / PART) + part) * PART + lane;
}
template <typename T, int COUNT>
__device__ __forceinline__ void add_to_totals(const Operand<T> &x, unsigned long long *totals, int64_t block,
                                              int64_t part, const PartSums<COUNT> &own) {
    static_assert(ARE_SHORT<COUNT>);
    unsigned long long *to = total_at(x, totals, block, part, (int)threadIdx.x % 32);
#pragma unroll
    for (int e = 0; e < 4; e++) atomicAdd(to + 32 * e, own.sum[e].word);
}

/* In place of look_at_rows. */
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS, 5) look_at_and_add_rows(const Operand<T> x, unsigned long long *totals) {
    tsr_cuda_begin();
    if (tsr_gemm_idle(x.predicate)) return;
    for (int64_t row = blockIdx.x; row < x.lines; row += gridDim.x)
        look_at_row<T, COUNT, PartSums<COUNT>>(x, row, [&](int part, const PartSums<COUNT> &own) {
            add_to_totals<T, COUNT>(x, totals, row / BLOCK, part, own);
        });
}
/* In place of convert_columns. */
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS, sizeof(T) == sizeof(double) ? 4 : 5)
    convert_and_add_columns(const Operand<T> x, unsigned long long *totals) {
    tsr_cuda_begin();
    __shared__ Turned<T> turned;
    if (tsr_gemm_idle(x.predicate)) return;
    for_tiles(x, [&](int64_t first, int64_t at) {
        const int64_t part = from_end(x.depth / PART, at);
        PartSums<COUNT> own = {};
        convert_tile<T, COUNT>(x, turned, first, part, FIRST, 0, own);
        add_to_totals<T, COUNT>(x, totals, first / BLOCK, part, own);
    });
}
/* Residues of all totals, to the planes of sums: a thread each. Blocks with z = 0 take those of rows, 1 of columns. */
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS) store_totals(const Operand<T> a, const Operand<T> b, const Checksums s) {
    tsr_cuda_begin();
    const bool of_rows = blockIdx.z == 0;
    const Operand<T> &x = of_rows ? a : b;
    const int64_t blocks = (x.lines + BLOCK - 1) / BLOCK;
    const int element = (int)threadIdx.x % PART;
    if (tsr_gemm_idle(x.predicate)) return;
    for (int64_t block = blockIdx.y; block < blocks; block += gridDim.y)
        for (int64_t l = blockIdx.x * THREADS + threadIdx.x; l < x.depth; l += gridDim.x * THREADS) {
            unsigned long long *totals = of_rows ? s.totals_a : s.totals_b;
            const Sum<ARE_SHORT<COUNT>> all = {total_at(x, totals, block, l / PART, element / 4)[element % 4 * 32]};
            int8_t *to = (of_rows ? s.of_a : s.of_b) + sum_line(block, of_rows ? s.upper_a : s.upper_b) * x.depth + l;
#pragma unroll
            for (int i = 0; i < COUNT; i++, to += TSR_EXACT_SUMS * x.depth)
                *to = (int8_t)sum_byte<COUNT, IS_NARROW<T, COUNT>>(all, lines_of(x, block), i);
        }
}

/* What a block has in shared memory. */
template <typename T, int COUNT> union Room {
    Turned<T> turned;
    WarpSums<COUNT> of_warps;
};
/* Converts lines of a level LATER, and adds up each block of them beside it. Of rows a warp takes every WARPS-th of a
 * part. */
template <typename T, int COUNT>
__device__ __forceinline__ void convert_and_add_rows_later(const Operand<T> &x, int8_t *to, int upper,
                                                           WarpSums<COUNT> &of_warps, int level) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int64_t block = blockIdx.y; block * BLOCK < x.lines; block += gridDim.y) {
        if (!(x.levels[block] >> level & 1)) continue;
        const int64_t end = block * BLOCK + lines_of(x, block);
        for (int64_t part = blockIdx.x; part < x.depth / PART; part += gridDim.x) {
            const int64_t l0 = part * PART + 4 * lane;
            PartSums<COUNT> own = {};
#pragma unroll 1
            for (int64_t row = block * BLOCK + warp; row < end; row += WARPS) {
                T value[4];
                load_four(x.data + row * x.ld, l0, x.k, value);
                convert_four<T, COUNT>(x, row, x.proof[row], value, row * x.depth + l0, LATER, level, own);
            }
            store_sums<T, COUNT>(x, to, upper, of_warps, own, block, part);
        }
    }
}
template <typename T, int COUNT>
__device__ __forceinline__ void convert_and_add_columns_later(const Operand<T> &x, int8_t *to, int upper,
                                                              Room<T, COUNT> &room, int level) {
    for (int64_t part = blockIdx.y; part < x.depth / PART; part += gridDim.y)
        for (int64_t block = blockIdx.x; block * BLOCK < x.lines; block += gridDim.x) {
            if (!(x.levels[block] >> level & 1)) continue;
            PartSums<COUNT> own = {};
            for (int64_t first = block * BLOCK; first < x.lines && first < (block + 1) * BLOCK; first += COLUMNS)
                convert_tile<T, COUNT>(x, room.turned, first, part, LATER, level, own);
            store_sums<T, COUNT>(x, to, upper, room.of_warps, own, block, part);
        }
}

/* All that is to be converted LATER for a level, and, but at level 0, whose sums are there, added up: blocks with z = 0
 * take rows, 1 columns. */
template <typename T, int COUNT, bool ADDS>
__global__ void __launch_bounds__(THREADS, !ADDS                         ? 4
                                           : sizeof(T) == sizeof(double) ? 2
                                                                         : 3)
    convert_later(const Operand<T> a, const Operand<T> b, const Checksums s, int level) {
    tsr_cuda_begin();
    __shared__ Room<T, COUNT> room;
    const bool of_rows = blockIdx.z == 0;
    if (!ADDS)
        return of_rows ? convert_rows_later<T, COUNT>(a, level)
                       : convert_columns_later<T, COUNT>(b, room.turned, level);
    if (!has_any(of_rows ? a.levels : b.levels, of_rows ? a.lines : b.lines, 1u << level)) return;
    if (of_rows) convert_and_add_rows_later<T, COUNT>(a, s.of_a, s.upper_a, room.of_warps, level);
    else convert_and_add_columns_later<T, COUNT>(b, s.of_b, s.upper_b, room, level);
}

/* ---- blocks of C ----------------------------------------------------------------------------- */

/* A sum of integers in pieces of which a warp's add up in 32 bits. */
constexpr int PIECE_BITS = 27;
template <int COUNT> constexpr int PIECES = (8 * (int)sizeof(Natural<COUNT>) + PIECE_BITS - 1) / PIECE_BITS;
static_assert(PIECE_BITS + 5 <= 32, "32 lanes of them");

/* What combine_rows adds up: a thread's integers of four columns, over its rows, and those of a row over a warp's. */
template <int COUNT> struct Added {
    static constexpr bool WATCHES = true;
    unsigned (*rows)[PIECES<COUNT>]; /* of a block's rows */
    Natural<COUNT> columns[4], row;

    __device__ __forceinline__ void see(int e, tsr_exact_integer *x) {
        TSR_FLIP_WORD(TSR_FLIP_INTEGER, x);
        columns[e] += (Natural<COUNT>)*x;
        row += (Natural<COUNT>)*x;
    }
    __device__ __forceinline__ void end_row(int i) {
        constexpr unsigned MASK = (1u << PIECE_BITS) - 1;
#pragma unroll
        for (int piece = 0; piece < PIECES<COUNT>; piece++) {
            const unsigned total = tsr_warp_total((unsigned)(row >> PIECE_BITS * piece) & MASK);
            if ((int)threadIdx.x % 32 == piece) rows[i][piece] = total;
        }
        row = 0;
    }
};

/* Whether a sum of BLOCK integers has these residues, `step` from plane to plane. Integers and theirs are less than the
 * moduli's product apart, so few of these products make the difference. */
template <int COUNT>
__device__ __forceinline__ bool has_residues(Natural<COUNT> sum, const int8_t *expected, int64_t step) {
    unsigned r[1][Moduli<COUNT>::WORDS] = {};
    tsr_exact_integer x[1];
#pragma unroll
    for (int i = 0; i < COUNT; i++) r[0][i / 4] |= (unsigned)(uint8_t)expected[i * step] << 8 * (i % 4);
    integers_from<COUNT>(r, x);
    return is_multiple<COUNT>(sum - (Natural<COUNT>)x[0], BLOCK);
}

/* A block makes a block of C of this level and compares. */
constexpr int comparing(int count) { return count > 14 ? 2 : count > 7 ? 3 : 4; } /* by a multiprocessor */
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS, comparing(COUNT))
    combine_and_compare(const Target<T> t, const Checksums s, int level) {
    tsr_cuda_begin();
    __shared__ Natural<COUNT> columns[WARPS][BLOCK];
    __shared__ unsigned rows[BLOCK][PIECES<COUNT>];
    __shared__ unsigned wrong_rows, wrong_columns;
    static_assert(BLOCK == 4 * 32 && THREADS == 2 * BLOCK, "a warp has a row, and a thread compares a row or a column");
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int line = (int)threadIdx.x % BLOCK; /* that is compared */
    const int blocks = (int)(t.m + BLOCK - 1) / BLOCK * t.across;
    if (level > 0 && !has_any(t.wanted, t.m, 1u << level)) return;
    for (int at = (int)blockIdx.x; at < blocks; at += (int)gridDim.x) {
        const int block_row = at / t.across, block_col = at % t.across;
        const int64_t row = (int64_t)block_row * BLOCK, col = (int64_t)block_col * BLOCK;
        if (col >= t.n || t.level_at(row, col) != level) continue;
        const int down = (int)min((int64_t)BLOCK, t.m - row), across = (int)min((int64_t)BLOCK, t.n - col);
        Added<COUNT> own = {};
        own.rows = rows;
        if (threadIdx.x == 0) wrong_rows = wrong_columns = 0;
        combine_rows<T, COUNT>(t, row, col, BLOCK, level, own);
#pragma unroll
        for (int e = 0; e < 4; e++) columns[warp][4 * lane + e] = own.columns[e];
        __syncthreads();
        const bool of_column = threadIdx.x < BLOCK;
        Natural<COUNT> sum = 0;
        if (of_column)
            for (int w = 0; w < WARPS; w++) sum += columns[w][line];
        else
            for (int piece = 0; piece < PIECES<COUNT>; piece++)
                sum += (Natural<COUNT>)rows[line][piece] << PIECE_BITS * piece;
        const int8_t *expected = of_column ? s.columns + sum_line(block_row, s.upper_a) * t.columns + col + line
                                           : s.rows + sum_line(block_col, s.upper_b) * t.rows + row + line;
        const int64_t step = TSR_EXACT_SUMS * (of_column ? t.columns : t.rows);
        if (line < (of_column ? across : down) && !has_residues<COUNT>(sum, expected, step))
            atomicAdd(of_column ? &wrong_columns : &wrong_rows, 1u);
        __syncthreads();
        if (threadIdx.x == 0 && wrong_rows + wrong_columns > 0) note_wrong(s.check, wrong_rows > 0 ? wrong_rows : 1);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

template <typename T, int COUNT>
tsr_status store_totals_launch(tsr_stream *stream, const Operand<T> &a, const Operand<T> &b, const Checksums &s) {
    dim3 grid;
    TSR_TRY(small_grid(tsr_max(a.lines, b.lines), a.depth, BLOCK, THREADS, FEW_BLOCKS / 2, &grid));
    grid.z = 2;
    return TSR_LAUNCH_NEXT((store_totals<T, COUNT>), grid, THREADS, 0, stream, a, b, s);
}
template <typename T, int COUNT>
tsr_status convert_later_launch(tsr_stream *stream, const Operand<T> &a, const Operand<T> &b, const Checksums &s,
                                int level) {
    dim3 grid;
    const unsigned most =
        s.check.counts ? FEW_BLOCKS / 2 : FEW_BLOCKS; /* with sums a multiprocessor has fewer at a time */
    TSR_TRY(small_grid(b.depth, tsr_max(a.lines, b.lines), PART, COLUMNS, most, &grid));
    grid.z = 2;
    if constexpr (COUNT != tsr_exact_moduli(TYPE<T>, 0)) /* sums of level 0 are there */
        if (s.check.counts)
            return TSR_LAUNCH_NEXT((convert_later<T, COUNT, true>), grid, THREADS, 0, stream, a, b, s, level);
    return TSR_LAUNCH_NEXT((convert_later<T, COUNT, false>), grid, THREADS, 0, stream, a, b, s, level);
}

template <typename T, int COUNT>
tsr_status combine_and_compare_launch(tsr_stream *stream, const Target<T> &t, const Checksums &s, int level) {
    dim3 grid;
    TSR_TRY(blocks_grid(t, &grid));
    return TSR_LAUNCH_NEXT((combine_and_compare<T, COUNT>), grid, THREADS, 0, stream, t, s, level);
}

} // namespace exact

#endif
