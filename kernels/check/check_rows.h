/* Rows of a matrix times three vectors, for the check of products (check_cuda.cu).
 * Mapping: a warp makes 4 rows of a piece of the columns, so that what it loads of the vectors serves 4 rows. Where
 * rows begin at multiples of 16 bytes, the matrix goes to shared memory by asynchronous copies of 16 bytes, two of each
 * row under way all the time: 64 KiB a multiprocessor, and no register waits for them. Each thread reads what it
 * copied, so there is no barrier. What two copies hold is added up in float (of doubles in double), and that in double.
 * A block uses: 256 threads, 32 KiB of shared memory. */
#ifndef TSR_KERNELS_CHECK_CHECK_ROWS_H
#define TSR_KERNELS_CHECK_CHECK_ROWS_H

#include "kernels/check/check_rules.h"
#include "kernels/device/cuda_compat.h"

namespace {

constexpr int THREADS = 256;
constexpr int WARP = 32, WARPS = THREADS / WARP;
constexpr int ROWS = 4;  /* a warp */
constexpr int LOADS = 2; /* of each of them under way */
constexpr int TILE = WARPS * ROWS;
constexpr int V = TSR_CHECK_VECTORS, SUMS = TSR_CHECK_SUMS;

/* rows × cols of a matrix, or of each of `batch`; elements of 2, 4 or 8 bytes. */
struct matrix {
    const void *data;
    int64_t rows, cols, ld;
    int64_t batch, stride;
};

struct bf16_bits {
    uint16_t bits;
};

/* The arithmetic of sums, F: float, or double for such elements. */
template <typename T> struct arithmetic { typedef float type; };
template <> struct arithmetic<double> { typedef double type; };
static __device__ __forceinline__ float convert(uint16_t bits) { return tsr_convert_f16(bits); }
static __device__ __forceinline__ float convert(bf16_bits value) { return tsr_convert_bf16(value.bits); }
static __device__ __forceinline__ float convert(float value) { return value; }
static __device__ __forceinline__ double convert(double value) { return value; }

struct product {
    const void *vectors;     /* V × ld, in the arithmetic of A and B */
    int64_t ld, step;        /* from the vectors of a matrix of the batch to the next one's */
    double *partial;         /* pieces × V × all rows */
    unsigned *arrived;       /* a tile's blocks */
    int64_t chunk;           /* columns a piece, */
    int pieces;              /* of so many, */
    int span, tasks;         /* of which a task makes `span`, one after the other */
    const unsigned *only;    /* where it holds 0 nothing is done; NULL: always done */
    const unsigned *careful; /* where it holds more than 0, columns with scale 0 are skipped; NULL: never */
};

/* EACH elements of a vector; 16 bytes a load where they begin at a multiple of that. */
template <typename F, int EACH> __device__ __forceinline__ void load_vector(const F *from, F (&to)[EACH]) {
    constexpr int WORD = 16 / (int)sizeof(F);
    if constexpr (EACH % WORD == 0) {
#pragma unroll
        for (int e = 0; e < EACH; e += WORD) {
            const int4 words = __ldg(reinterpret_cast<const int4 *>(from + e));
            memcpy(&to[e], &words, sizeof words);
        }
    } else {
        for (int e = 0; e < EACH; e++) to[e] = __ldg(from + e);
    }
}

/* 16 bytes of global memory to shared memory, both at multiples of that, without a register that waits for them; and
 * until all but the latest PENDING groups of a thread's copies are there. */
__device__ __forceinline__ void copy_async(int4 *to, const void *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
#else
    *to = *static_cast<const int4 *>(from);
#endif
}
__device__ __forceinline__ void close_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int PENDING> __device__ __forceinline__ void wait_groups() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* As the kernel reads it. Some NaN become 0 where TF32 rounds them: sums of squares are of `value` and show them. */
template <bool TF32> __device__ __forceinline__ float rounded(float value) {
    const unsigned bits = __float_as_uint(value);
    return TF32 ? __uint_as_float((bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu) : value;
}
template <bool TF32> __device__ __forceinline__ double rounded(double value) { return value; }

/* 16 bytes of a row as EACH numbers. */
template <typename T, typename F, int EACH> __device__ __forceinline__ void unpack(const int4 &words, F (&to)[EACH]) {
    T elements[EACH];
    memcpy(elements, &words, sizeof words);
#pragma unroll
    for (int e = 0; e < EACH; e++) to[e] = (F)convert(elements[e]);
}
template <> __device__ __forceinline__ void unpack<bf16_bits>(const int4 &words, float (&to)[8]) {
    const unsigned pairs[4] = {(unsigned)words.x, (unsigned)words.y, (unsigned)words.z, (unsigned)words.w};
#pragma unroll
    for (int e = 0; e < 8; e++) to[e] = __uint_as_float(e % 2 ? pairs[e / 2] & 0xffff0000u : pairs[e / 2] << 16);
}

/* EACH elements of a row times those of the vectors. */
template <typename F, int EACH, bool TF32, bool CAREFUL>
__device__ __forceinline__ void add_row(const F (&of)[EACH], const F (&x)[V][EACH], F (&part)[V]) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const F whole = CAREFUL && x[2][e] == 0 ? 0 : of[e], value = rounded<TF32>(whole);
        const F scaled = whole * x[2][e];
        part[0] += value * x[0][e];
        part[1] += value * x[1][e];
        part[2] += scaled * scaled;
    }
}

template <typename F> __device__ __forceinline__ void clear(F (&part)[ROWS][V]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int v = 0; v < V; v++) part[r][v] = 0;
}
template <typename F> __device__ __forceinline__ void add_parts(const F (&part)[ROWS][V], double (&sum)[ROWS][V]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int v = 0; v < V; v++) sum[r][v] += (double)part[r][v];
}

/* A column a lane. */
template <typename T, typename F, bool TF32, bool CAREFUL>
__device__ __forceinline__ void add_singly(const T *const (&rows)[ROWS], int64_t from, int64_t to, const F *vectors,
                                           int64_t ld, double (&sum)[ROWS][V]) {
#pragma unroll 4
    for (int64_t j = from + threadIdx.x % WARP; j < to; j += WARP) {
        F part[ROWS][V], x[V][1];
        clear(part);
#pragma unroll
        for (int v = 0; v < V; v++) x[v][0] = __ldg(vectors + v * ld + j);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const F of[1] = {(F)convert(rows[r][j])};
            add_row<F, 1, TF32, CAREFUL>(of, x, part[r]);
        }
        add_parts(part, sum);
    }
}

/* Where a lane stands: rows and vectors, all at the same column. */
template <typename T, typename F> struct standing {
    const T *rows[ROWS];
    const F *vectors[V];
    int4 *room; /* LOADS × ROWS of 16 bytes that this thread alone uses, THREADS apart */
    int left;   /* loads of a row that are not added up */
};

/* Load l from here on goes on its way, if there is one. */
template <typename T, typename F> __device__ __forceinline__ void load(const standing<T, F> &at, int l) {
    constexpr int STEP = WARP * 16 / (int)sizeof(T);
    if (l < at.left)
#pragma unroll
        for (int r = 0; r < ROWS; r++) copy_async(at.room + (l % LOADS * ROWS + r) * THREADS, at.rows[r] + l * STEP);
    close_group();
}

/* Adds load l up, which is the first of LOADS on their way, and lets the next one go. */
template <typename T, typename F, bool TF32, bool CAREFUL>
__device__ __forceinline__ void add_load(const standing<T, F> &at, int l, F (&part)[ROWS][V]) {
    constexpr int EACH = 16 / (int)sizeof(T), STEP = WARP * EACH;
    F x[V][EACH];
    int4 words[ROWS];
    wait_groups<LOADS - 1>();
#pragma unroll
    for (int r = 0; r < ROWS; r++) words[r] = at.room[(l * ROWS + r) * THREADS];
    load(at, l + LOADS);
#pragma unroll
    for (int v = 0; v < V; v++) load_vector(at.vectors[v] + l * STEP, x[v]);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        F of[EACH];
        unpack<T>(words[r], of);
        add_row<F, EACH, TF32, CAREFUL>(of, x, part[r]);
    }
}

/* Where a lane begins with columns from `from` to `to`, 16 bytes of each row a load, of which the first are on their
 * way. */
template <typename T, typename F>
__device__ __forceinline__ standing<T, F> start(const T *const (&rows)[ROWS], int64_t from, int64_t to,
                                                const F *vectors, int64_t ld, int4 *room) {
    constexpr int EACH = 16 / (int)sizeof(T), STEP = WARP * EACH;
    const int64_t first = from + (int64_t)(threadIdx.x % WARP) * EACH;
    standing<T, F> at;
#pragma unroll
    for (int r = 0; r < ROWS; r++) at.rows[r] = rows[r] + first;
#pragma unroll
    for (int v = 0; v < V; v++) at.vectors[v] = vectors + v * ld + first;
    at.room = room;
    at.left = to - first >= EACH ? (int)((to - first - EACH) / STEP) + 1 : 0;
#pragma unroll
    for (int l = 0; l < LOADS; l++) load(at, l);
    return at;
}

/* A lane's share of a piece, `count` loads of each row; all that are left in the last piece, whose count may be odd. */
template <typename T, typename F, bool TF32, bool CAREFUL>
__device__ __forceinline__ void add_widely(standing<T, F> &at, int count, double (&sum)[ROWS][V]) {
    constexpr int STEP = WARP * 16 / (int)sizeof(T);
    const int stop = at.left > count ? at.left - count : 0;
    F part[ROWS][V];
#pragma unroll 1
    for (; at.left >= stop + LOADS; at.left -= LOADS) {
        clear(part);
#pragma unroll
        for (int l = 0; l < LOADS; l++) add_load<T, F, TF32, CAREFUL>(at, l, part);
        add_parts(part, sum);
#pragma unroll
        for (int r = 0; r < ROWS; r++) at.rows[r] += LOADS * STEP;
#pragma unroll
        for (int v = 0; v < V; v++) at.vectors[v] += LOADS * STEP;
    }
    if (stop > 0 || at.left == 0) return;
    clear(part);
#pragma unroll
    for (int l = 0; l < LOADS - 1; l++)
        if (l < at.left) add_load<T, F, TF32, CAREFUL>(at, l, part);
    add_parts(part, sum);
    at.left = 0;
}

/* Sums of all lanes: of row r in lanes 8 r to 8 r + 7. */
__device__ __forceinline__ void join_lanes(const double (&sum)[ROWS][V], double (&row)[V]) {
    static_assert(ROWS == 4, "halved twice");
    const bool upper = threadIdx.x & 16, odd = threadIdx.x & 8;
#pragma unroll
    for (int v = 0; v < V; v++) {
        double two[2];
#pragma unroll
        for (int r = 0; r < 2; r++)
            two[r] = (upper ? sum[r + 2][v] : sum[r][v]) +
                     __shfl_xor_sync(0xffffffffu, upper ? sum[r][v] : sum[r + 2][v], 16);
        row[v] = (odd ? two[1] : two[0]) + __shfl_xor_sync(0xffffffffu, odd ? two[0] : two[1], 8);
#pragma unroll
        for (int apart = 4; apart > 0; apart /= 2) row[v] += __shfl_xor_sync(0xffffffffu, row[v], apart);
    }
}

/* Row `row` of matrix `one` of the batch, `all` rows in all; false where there is none. */
__device__ __forceinline__ bool find_row(const matrix &m, int64_t group, int in_group, int64_t *one, int64_t *row) {
    const int64_t groups = (m.rows + ROWS - 1) / ROWS;
    *one = group / groups;
    *row = group % groups * ROWS + in_group;
    return *one < m.batch && *row < m.rows;
}

/* Sums of all lanes to the partial sums of a piece: `count` rows from row `row` of all matrices on. */
__device__ __forceinline__ void put_partial(const matrix &m, const product &p, int piece, int64_t row, int count,
                                            const double (&sum)[ROWS][V]) {
    const int lane = (int)threadIdx.x % WARP, r = lane / (WARP / ROWS);
    double mine[V];
    join_lanes(sum, mine);
    if (lane % (WARP / ROWS) > 0 || r >= count) return;
#pragma unroll
    for (int v = 0; v < V; v++) p.partial[((int64_t)piece * V + v) * (m.batch * m.rows) + row + r] = mine[v];
}

/* A group's part of a task, whose first piece is `piece`. */
template <typename T, typename F, bool WIDE, bool TF32, bool CAREFUL>
__device__ __forceinline__ void multiply_rows(const product &p, const matrix &m, const T *const (&rows)[ROWS],
                                              int64_t row, int count, const F *vectors, int piece, int4 *room) {
    constexpr int EACH = 16 / (int)sizeof(T), LOADS_A_UNIT = TSR_CHECK_UNIT / (WARP * EACH);
    const int end = piece + p.span < p.pieces ? piece + p.span : p.pieces;
    const int64_t last = end * p.chunk < m.cols ? end * p.chunk : m.cols;
    static_assert(LOADS_A_UNIT % LOADS == 0, "pieces but the last are whole rounds of loads");
    standing<T, F> at;
    if constexpr (WIDE) at = start(rows, piece * p.chunk, last, vectors, p.ld, room);
    for (; piece < end; piece++) {
        const int64_t from = piece * p.chunk, to = from + p.chunk < last ? from + p.chunk : last;
        double sum[ROWS][V] = {};
        if constexpr (WIDE) add_widely<T, F, TF32, CAREFUL>(at, (int)(p.chunk / TSR_CHECK_UNIT) * LOADS_A_UNIT, sum);
        const int64_t rest = WIDE ? to - (to - from) % EACH : from; /* what no load holds */
        if (rest < to) add_singly<T, F, TF32, CAREFUL>(rows, rest, to, vectors, p.ld, sum);
        put_partial(m, p, piece, row, count, sum);
    }
}
template <typename T, typename F, bool WIDE, bool TF32>
__device__ __forceinline__ void multiply_group(const matrix &m, const product &p, int64_t group, int piece,
                                               bool careful) {
    int64_t one, row;
    if (!find_row(m, group, 0, &one, &row)) return;
    const int count = (int)(m.rows - row < ROWS ? m.rows - row : ROWS);
    const T *first = static_cast<const T *>(m.data) + one * m.stride + row * m.ld, *rows[ROWS];
    const F *vectors = static_cast<const F *>(p.vectors) + one * p.step;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        rows[r] = first + (r < count ? r : count - 1) * m.ld; /* the last stands for those that there are not */
    row += one * m.rows;
    __shared__ int4 rooms[WIDE ? LOADS * ROWS * THREADS : 1];
    int4 *room = rooms + (WIDE ? threadIdx.x : 0);
    if (careful) multiply_rows<T, F, WIDE, TF32, true>(p, m, rows, row, count, vectors, piece, room);
    else multiply_rows<T, F, WIDE, TF32, false>(p, m, rows, row, count, vectors, piece, room);
}

} // namespace

#endif
