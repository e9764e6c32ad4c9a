/* The check of `exact` on CUDA devices, in every plane of residues. The integers of 128 rows of A are added up, and so
 * are those of 128 columns of B. Residues of these sums, times the planes of B and of A, are what columns and rows of a
 * block of C must add up to, modulo the plane's modulus. No rounding, and so no threshold: a residue that is changed
 * after its integer was added up, in a plane or on its way into C's, is found unless C stays what it was. One of A
 * shows in a block's columns, one of B in its rows, one of C in both. Device code and its launches, for exact.cu. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_CHECK_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_CHECK_H

#include "kernels/gemm/exact/exact_combine.h"
#include "kernels/gemm/exact/residue_products.h"
#include "kernels/gemm/flips.h"

namespace exact {

constexpr int BLOCK = TSR_EXACT_BLOCK;
constexpr int64_t SUM_LINES = TSR_EXACT_TILE; /* of a plane of sums: room for those of TSR_EXACT_EDGE lines */
static_assert(TSR_EXACT_EDGE / BLOCK <= SUM_LINES, "one for a block of lines");

/* What the check holds in the workspace. */
struct Checksums {
    int8_t *of_a, *of_b;         /* COUNT × SUM_LINES × depth: residues of sums of integers */
    int8_t *columns;             /* COUNT × SUM_LINES × rows_b: what columns of blocks must add up to */
    int8_t *rows;                /* COUNT × rows_a × SUM_LINES: and rows */
    unsigned *wants_a, *wants_b; /* SUM_LINES / BLOCK entries for each block of lines, as tsr_residue_args wants them */
    tsr_check_counts *counts;
    int64_t place_row, place_col;
};

/* ---- sums of integers ------------------------------------------------------------------------ */

/* A sum of integers plus 2^63 each, halves apart. */
struct Sum {
    unsigned long long low, high;

    __device__ __forceinline__ void add(double a, double scale) {
        unsigned own_low, own_high;
        integer_of(a, scale, &own_low, &own_high);
        low += own_low;
        high += own_high;
    }
};

/* Of a sum of `count` integers: its residue in [-p/2, p/2], as a byte. */
template <int COUNT> __device__ __forceinline__ unsigned sum_byte(Sum sum, int count, int plane) {
    constexpr Moduli<COUNT> m;
    const unsigned p = (unsigned)m.modulus[plane];
    const unsigned word = (unsigned)((1ull << 32) % p), start = (unsigned)((1ull << 63) % p);
    const unsigned above = (unsigned)(sum.high % p) * word + (unsigned)(sum.low % p);
    const unsigned r = (above + p * (unsigned)count - start * (unsigned)count) % p;
    return (r > p / 2 ? r - p : r) & 0xff;
}

template <typename T> __device__ __forceinline__ bool is_wanted(const Operand<T> &x, int64_t block, int level) {
    return !x.proving || (x.levels[block] >> level & 1);
}
template <typename T> __device__ __forceinline__ int lines_of(const Operand<T> &x, int64_t block) {
    return (int)min((int64_t)BLOCK, x.lines - block * BLOCK);
}

/* A block adds up a part of a block of rows, a warp every WARPS-th row. */
template <typename T, int COUNT>
__device__ __forceinline__ void add_rows(const Operand<T> &x, int8_t *to, int64_t block, int64_t part, int level) {
    __shared__ Sum of_warps[WARPS][PART];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int count = lines_of(x, block);
    Sum sum[4] = {};
    for (int i = warp; i < count; i += WARPS) {
        const int64_t row = block * BLOCK + i;
        const double scale = tsr_exact_power(x.proof[row].shifts[level]);
        T value[4];
        load_four(x.data + row * x.ld, part * PART + 4 * lane, x.k, value);
#pragma unroll
        for (int e = 0; e < 4; e++) sum[e].add((double)value[e], scale);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) of_warps[warp][4 * lane + e] = sum[e];
    __syncthreads();
    if (threadIdx.x < PART) {
        Sum all = of_warps[0][threadIdx.x];
        for (int w = 1; w < WARPS; w++) {
            all.low += of_warps[w][threadIdx.x].low;
            all.high += of_warps[w][threadIdx.x].high;
        }
        for (int i = 0; i < COUNT; i++)
            to[(i * SUM_LINES + block) * x.depth + part * PART + threadIdx.x] = (int8_t)sum_byte<COUNT>(all, count, i);
    }
    __syncthreads();
}
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS) sums_of_rows(const Operand<T> x, int8_t *to, int level) {
    const int64_t blocks = (x.lines + BLOCK - 1) / BLOCK;
    for (int64_t block = blockIdx.y; block < blocks; block += gridDim.y)
        for (int64_t part = blockIdx.x; part < x.depth / PART; part += gridDim.x)
            if (is_wanted(x, block, level)) add_rows<T, COUNT>(x, to, block, part, level);
}

/* A warp adds up a block of columns at an element of k, four columns a lane, whose scales it has. A lane a plane. */
template <typename T, int COUNT>
__device__ __forceinline__ void add_columns(const Operand<T> &x, int8_t *to, int64_t block, const double (&scale)[4],
                                            int64_t l) {
    const int lane = (int)threadIdx.x % 32, count = lines_of(x, block);
    Sum sum = {0, 0};
#pragma unroll
    for (int e = 0; e < 4; e++)
        if (lane + 32 * e < count)
            sum.add(l < x.k ? (double)x.data[l * x.ld + block * BLOCK + lane + 32 * e] : 0, scale[e]);
    sum.low = warp_sum(sum.low);
    sum.high = warp_sum(sum.high);
    if (lane < COUNT) to[(lane * SUM_LINES + block) * x.depth + l] = (int8_t)sum_byte<COUNT>(sum, count, lane);
}
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS) sums_of_columns(const Operand<T> x, int8_t *to, int level) {
    const int64_t blocks = (x.lines + BLOCK - 1) / BLOCK, step = (int64_t)gridDim.x * WARPS;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int64_t block = blockIdx.y; block < blocks; block += gridDim.y) {
        if (!is_wanted(x, block, level)) continue;
        double scale[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int64_t column = block * BLOCK + lane + 32 * e;
            scale[e] = column < x.lines ? tsr_exact_power(x.proof[column].shifts[level]) : 0;
        }
        for (int64_t l = (int64_t)blockIdx.x * WARPS + warp; l < x.depth; l += step)
            add_columns<T, COUNT>(x, to, block, scale, l);
    }
}

/* Which blocks of lines are wanted at a level, for products with sums: of columns, whose entries follow each other, and
 * of rows, of which each has SUM_LINES / BLOCK. */
static __global__ void note_wanted(const unsigned *levels_a, int rows, const unsigned *levels_b, int columns, int level,
                                   unsigned *wants_a, unsigned *wants_b) {
    constexpr int EACH = SUM_LINES / BLOCK;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < EACH * (rows + columns);
         i += (int)(gridDim.x * blockDim.x)) {
        if (i < EACH * rows) wants_a[i] = levels_a[i / EACH] >> level & 1;
        else wants_b[i - EACH * rows] = levels_b[(i - EACH * rows) % columns] >> level & 1;
    }
}

/* ---- blocks of C ----------------------------------------------------------------------------- */

/* 1 in each byte of a word that counts: of a row, columns from `first` on, of `count`. */
__device__ __forceinline__ unsigned ones_of(int first, int count) {
    const int bytes = count - first;
    return bytes >= 4 ? 0x01010101u : bytes <= 0 ? 0 : 0x01010101u & ((1u << 8 * bytes) - 1);
}

/* What a plane's block must be, and where. */
struct Expected {
    const int8_t *plane;   /* of C: first element of the block */
    int64_t ld;            /* of C's plane */
    const int8_t *columns; /* their sums */
    const int8_t *rows;    /* theirs, `row_step` apart */
    int64_t row_step;
    int down, across; /* rows and columns that count */
    int modulus;
};

/* All threads of a block, BLOCK of them: whether this thread's row, and its column, are not what they must be. */
constexpr int BLOCK_WORDS = BLOCK / 4;
__device__ __forceinline__ void compare_plane(const Expected &e, unsigned (&tile)[BLOCK][BLOCK_WORDS + 1],
                                              bool *wrong_row, bool *wrong_column) {
    const int t = (int)threadIdx.x, word = t % BLOCK_WORDS;
    for (int i = t / BLOCK_WORDS; i < BLOCK; i += BLOCK / BLOCK_WORDS)
        tile[i][word] = i < e.down ? *reinterpret_cast<const unsigned *>(e.plane + i * e.ld + 4 * word) : 0;
    __syncthreads();
    int row = 0, column = 0;
    for (int w = 0; w < BLOCK_WORDS; w++) row = dp4a_mixed(tile[t][w], ones_of(4 * w, e.across), row);
    for (int i = 0; i < BLOCK; i++) column += (int8_t)(tile[i][t / 4] >> 8 * (t % 4));
    *wrong_row |= t < e.down && (row - e.rows[t * e.row_step]) % e.modulus != 0;
    *wrong_column |= t < e.across && (column - e.columns[t]) % e.modulus != 0;
    __syncthreads();
}

/* Counts rows of a block that are wrong, or one, where only columns are. One thread. */
__device__ __forceinline__ void note_wrong(const Checksums &s, unsigned rows) {
    typedef unsigned long long Word;
    const Word first = atomicAdd(reinterpret_cast<Word *>(&s.counts->doubtful), (Word)rows);
    atomicAdd(reinterpret_cast<Word *>(&s.counts->wrong), (Word)rows);
    for (Word place = first; place < first + rows && place < TSR_CHECK_PLACES; place++) {
        s.counts->place[place].row = s.place_row;
        s.counts->place[place].col = s.place_col;
    }
}

/* A block a block of C of this level. */
template <typename T, int COUNT>
__global__ void __launch_bounds__(BLOCK) compare(const Target<T> t, const Checksums s, int level) {
    constexpr Moduli<COUNT> m;
    __shared__ unsigned tile[BLOCK][BLOCK_WORDS + 1];
    __shared__ unsigned rows, columns; /* that are wrong */
    const int64_t blocks = (t.m + BLOCK - 1) / BLOCK * t.across;
    for (int64_t at = blockIdx.x; at < blocks; at += gridDim.x) {
        const int64_t block_row = at / t.across, block_col = at % t.across;
        const int64_t row = block_row * BLOCK, col = block_col * BLOCK;
        if (col >= t.n || t.level_at(row, col) != level) continue;
        bool wrong_row = false, wrong_column = false;
        if (threadIdx.x == 0) rows = columns = 0;
        for (int i = 0; i < COUNT; i++)
            compare_plane({t.planes + (i * t.rows + row) * t.columns + col, t.columns,
                           s.columns + (i * SUM_LINES + block_row) * t.columns + col,
                           s.rows + (i * t.rows + row) * SUM_LINES + block_col, SUM_LINES,
                           (int)min((int64_t)BLOCK, t.m - row), (int)min((int64_t)BLOCK, t.n - col), m.modulus[i]},
                          tile, &wrong_row, &wrong_column);
        if (wrong_row) atomicAdd(&rows, 1u);
        if (wrong_column) atomicAdd(&columns, 1u);
        __syncthreads();
        if (threadIdx.x == 0 && rows + columns > 0) note_wrong(s, rows > 0 ? rows : 1);
    }
}

/* A thread a block of rows: they are judged, unless some of their blocks are made by the loop. */
template <typename T> __global__ void count_judged(const Target<T> t, tsr_check_counts *counts) {
    typedef unsigned long long Word;
    const int64_t rows = (t.m + BLOCK - 1) / BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += (int64_t)gridDim.x * blockDim.x) {
        bool loops = false;
        for (int64_t col = 0; col < t.n; col += BLOCK) loops |= t.level_at(i * BLOCK, col) == TSR_EXACT_LOOP;
        uint64_t *to = loops ? &counts->unjudged : &counts->judged;
        atomicAdd(reinterpret_cast<Word *>(to), (Word)min((int64_t)BLOCK, t.m - i * BLOCK));
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Adds up the integers of the lines that are wanted at a level. `a` and `b` hold its planes. */
template <typename T, int COUNT>
tsr_status add_up_launch(tsr_stream *stream, const Operand<T> &a, const Operand<T> &b, const Checksums &s, int level) {
    dim3 rows, columns;
    TSR_TRY(small_grid(a.lines, a.depth, BLOCK, PART, &rows));
    TSR_TRY(small_grid(b.lines, b.depth, BLOCK, WARPS, &columns));
    TSR_TRY(TSR_LAUNCH((sums_of_rows<T, COUNT>), rows, THREADS, 0, stream, a, s.of_a, level));
    TSR_TRY(TSR_LAUNCH((sums_of_columns<T, COUNT>), columns, THREADS, 0, stream, b, s.of_b, level));
    if (!a.proving) return TSR_OK;
    return TSR_LAUNCH(note_wanted, 1, THREADS, 0, stream, a.levels, (int)(a.rows / BLOCK), b.levels,
                      (int)(b.rows / BLOCK), level, s.wants_a, s.wants_b);
}

/* Multiplies sums by planes as `whole`, the product of planes, does these: what blocks must add up to. */
static inline tsr_status expect_launch(tsr_device *device, tsr_stream *stream, const tsr_residue_args *whole,
                                       const Checksums &s) {
    tsr_residue_args columns = *whole, rows = *whole;
    columns.m = tsr_ceil_div(whole->m, BLOCK);
    columns.a = s.of_a;
    columns.rows_a = SUM_LINES;
    columns.blocks = whole->blocks ? s.wants_b : NULL;
    columns.wanted = 1;
    TSR_TRY(tsr_residue_products(device, stream, &columns, s.columns));
    rows.n = tsr_ceil_div(whole->n, BLOCK);
    rows.b = s.of_b;
    rows.rows_b = SUM_LINES;
    rows.blocks = whole->blocks ? s.wants_a : NULL;
    rows.wanted = 1;
    return tsr_residue_products(device, stream, &rows, s.rows);
}

template <typename T, int COUNT>
tsr_status compare_launch(tsr_stream *stream, const Target<T> &t, const Checksums &s, int level) {
    dim3 grid;
    TSR_TRY(small_grid(1, t.rows / BLOCK * t.across, 1, 1, &grid));
    return TSR_LAUNCH((compare<T, COUNT>), grid, BLOCK, 0, stream, t, s, level);
}

template <typename T> tsr_status count_judged_launch(tsr_stream *stream, const Target<T> &t, const Checksums &s) {
    return TSR_LAUNCH((count_judged<T>), 1, BLOCK, 0, stream, t, s.counts);
}

} // namespace exact

#endif
