/* Operands of `exact` on CUDA devices: what lines are like, and their residues, K-major planes of bytes. Rows of A are
 * K-major as they stand; columns of B are turned in shared memory. A warp takes a part of a line at a time, four
 * elements a thread, so that its words of a plane follow each other. Device code, for exact.cu alone. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_CONVERT_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_CONVERT_H

#include "kernels/gemm/exact/exact_moduli.h"
#include "kernels/gemm/gemm_cuda.h"

namespace exact {

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int PART = TSR_EXACT_PART;
constexpr int PARTS_MOST = TSR_EXACT_RANGE / PART;
constexpr int COLUMNS = 32; /* of B, that a block turns */
/* what a block's lines are like, some of them */
constexpr unsigned LOSES = 1, UNPROVABLE = 2;
constexpr unsigned WAITS = 4;       /* a line is not converted for level 0, */
constexpr unsigned BEGINS_NEXT = 8; /* but for level 1 at once */
/* beside the bits of levels: patterns decide a block that these lines go through */
constexpr unsigned MEETS = 1u << (TSR_EXACT_LOOP + 1);
static_assert(PART == 4 * 32, "a warp takes a part");

/* A grid for kernels that stride over the rest, and find little to do in most of it: blocks that leave at once take
 * their time, too. */
static inline tsr_status small_grid(int64_t rows, int64_t cols, int64_t height, int64_t width, unsigned most,
                                    dim3 *grid) {
    TSR_TRY(tsr_cuda_grid(rows, cols, height, width, grid));
    grid->y = tsr_min(grid->y, most);
    grid->x = tsr_min(grid->x, tsr_max(1u, most / grid->y));
    return TSR_OK;
}
constexpr unsigned FEW_BLOCKS = 1024, MANY_BLOCKS = 4096; /* about a wave, and several */

/* Lines of an operand within a range: rows of A, m × k, or columns of B, k × n. */
template <typename T> struct Operand {
    const T *data;
    int64_t ld, lines, k;
    int64_t rows, depth;    /* of a plane, in lines and bytes */
    tsr_exact_line *parts;  /* [part][line], of columns */
    tsr_exact_proof *proof; /* [line] */
    int8_t *proving;        /* rows × depth: magnitudes, then patterns; or NULL */
    int8_t *planes;         /* COUNT × rows × depth */
    unsigned *rough;        /* [line / TSR_EXACT_BLOCK]: LOSES where a line loses something at level 0, ...; or NULL */
    const unsigned *levels; /* [line / TSR_EXACT_BLOCK]: bits of the levels at which its lines are wanted, and MEETS */
    const unsigned *predicate; /* see tsr_gemm_args; what comes later looks at `levels` */
    double met_well; /* of a line, by its half squared: what the errors of an element of it and its like may be */
    tsr_exact_natural limits[TSR_EXACT_LEVELS];
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Whether a level is likely to hold for a line: times a line like it, an element would not come close to the bound. An
 * element of the block that comes closer decides, so what is too close was found by trying. Of level 0, dense normal
 * data are far: they reach 0.7 of the bound in fp64 and 0.2 in fp32. Such times exp(normal) reach 0.9 and 0.43, times
 * exp(2 · normal) 3 and 0.9; of the latter one line of 400 is below 0.43 (k = 4096, simulated), and of 35 below 0.5. */
template <typename T> constexpr double CLOSE = sizeof(T) == sizeof(double) ? 0.72 : 0.43;
constexpr double FAR = 0.3; /* in fp32 not even a line of wide data */
template <typename T>
__device__ __forceinline__ bool is_likely(const Operand<T> &x, const tsr_exact_proof &proof, int level,
                                          double close = CLOSE<T>) {
    const double error = proof.errors[level] * (2 * proof.half + 0.25 * (double)x.k * proof.errors[level]);
    return error <= close * x.met_well * (proof.half * proof.half);
}
/* Whether lines of a type may be converted for level 1 at once: its two moduli more make lines, but for sparse ones,
 * far from the bound. In fp64, by one more, lines that are far have elements that are not. */
template <typename T> constexpr bool HAS_NEXT = sizeof(T) == sizeof(float);
template <typename T> constexpr int NEXT = tsr_exact_moduli(TYPE<T>, 1);
/* tsr_exact_proof.first. Lines that wait are converted when it is known what for. */
template <typename T>
__device__ __forceinline__ int first_level(const Operand<T> &x, const tsr_exact_line &line,
                                           const tsr_exact_proof &proof) {
    if (!x.proving || is_likely(x, proof, 0)) return 0;
    const bool is_dense = (double)line.count * line.count >= 16 * (double)x.k;
    return HAS_NEXT<T> && is_dense && is_likely(x, proof, 1) ? 1 : -1;
}

/* One thread: the proof of a line. */
template <typename T>
__device__ __forceinline__ tsr_exact_proof keep_proof(const Operand<T> &x, int64_t at, const tsr_exact_line &line) {
    tsr_exact_proof proof = tsr_exact_prove(TYPE<T>, line, x.limits);
    proof.first = first_level(x, line, proof);
    unsigned *rough = x.rough ? x.rough + at / TSR_EXACT_BLOCK : nullptr;
    /* Most blocks of C that a line goes through need the level of the lines beside it. So few lines need be read once
     * more: those that look before the others. */
    if (HAS_NEXT<T> && x.proving && proof.first == 0 && !is_likely(x, proof, 0, FAR) &&
        *(volatile unsigned *)rough & BEGINS_NEXT)
        proof.first = 1;
    x.proof[at] = proof;
    const unsigned own = (proof.errors[0] != 0 ? LOSES : 0) | (tsr_exact_unprovable(&proof) ? UNPROVABLE : 0) |
                         (proof.first != 0 ? WAITS : 0) | (proof.first == 1 ? BEGINS_NEXT : 0);
    if (rough && own) atomicOr(rough, own);
    return proof;
}

/* What is read again is read from its end on, where the caches still have it. */
__device__ __forceinline__ int64_t from_end(int64_t count, int64_t at) { return count - 1 - at; }

/* ---- four elements --------------------------------------------------------------------------- */

/* What is loaded or stored at once. */
template <typename T> struct alignas(16) Chunk {
    static constexpr int SIZE = 16 / (int)sizeof(T);
    T value[SIZE];
};
/* Four neighbours at an address that is a multiple of 16. */
template <typename T> __device__ __forceinline__ void load_chunks(const T *from, T (&x)[4]) {
    constexpr int SIZE = Chunk<T>::SIZE;
#pragma unroll
    for (int e = 0; e < 4; e += SIZE) {
        const Chunk<T> chunk = *reinterpret_cast<const Chunk<T> *>(from + e);
#pragma unroll
        for (int i = 0; i < SIZE; i++) x[e + i] = chunk.value[i];
    }
}
template <typename T> __device__ __forceinline__ void store_chunks(T *to, const T (&x)[4]) {
    constexpr int SIZE = Chunk<T>::SIZE;
#pragma unroll
    for (int e = 0; e < 4; e += SIZE) {
        Chunk<T> chunk;
#pragma unroll
        for (int i = 0; i < SIZE; i++) chunk.value[i] = x[e + i];
        *reinterpret_cast<Chunk<T> *>(to + e) = chunk;
    }
}
/* Elements l0 … l0 + 3 of a line, zeros past its end. */
template <typename T> __device__ __forceinline__ void load_four(const T *line, int64_t l0, int64_t k, T (&x)[4]) {
    if (l0 + 4 <= k && (uintptr_t)(line + l0) % sizeof(Chunk<T>) == 0) {
        load_chunks(line + l0, x);
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++) x[e] = l0 + e < k ? line[l0 + e] : (T)0;
    }
}
/* Elements l0, l0 + 32, … of a line, likewise: a warp's loads follow each other, which wants no alignment. */
template <typename T> __device__ __forceinline__ void load_apart(const T *line, int64_t l0, int64_t k, T (&x)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) x[e] = l0 + 32 * e < k ? line[l0 + 32 * e] : (T)0;
}

template <typename T, int COUNT>
__device__ __forceinline__ void integers_of(const T (&value)[4], int shift, unsigned (&low)[4], unsigned (&high)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) integer_of<IS_NARROW<T, COUNT>>(value[e], shift, low + e, high + e);
}
/* To the planes at `to`. */
template <typename T, int COUNT>
__device__ __forceinline__ void store_planes(const Operand<T> &x, const unsigned (&low)[4], const unsigned (&high)[4],
                                             int64_t to) {
    const int64_t plane_bytes = x.rows * x.depth;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        __stcs(reinterpret_cast<unsigned *>(x.planes + i * plane_bytes + to),
               residue_word<COUNT, IS_NARROW<T, COUNT>>(low, high, i));
}
/* Four bytes that elements have in the product that proves COUNT planes. */
template <typename T, int COUNT>
__device__ __forceinline__ void store_proving(const Operand<T> &x, const T (&value)[4], const tsr_exact_proof &proof,
                                              int64_t to) {
    constexpr bool PATTERNS = COUNT == tsr_exact_moduli(TYPE<T>, TSR_EXACT_LAST);
    const double scale = PATTERNS ? tsr_exact_power(proof.shifts[TSR_EXACT_LAST])
                                  : tsr_exact_magnitude_scale(TYPE<T>, proof.exponent, proof.grain);
    unsigned byte[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        byte[e] = PATTERNS ? (unsigned)tsr_exact_pattern((double)value[e], scale) : magnitude_of(value[e], (T)scale);
    __stcs(reinterpret_cast<unsigned *>(x.proving + to), bytes_of(byte));
}

/* Whether a block of lines has any of these bits. Whole warps: most launches for a level find none, and end. */
__device__ __forceinline__ bool has_any(const unsigned *of_blocks, int64_t lines, unsigned bits) {
    bool any = false;
    for (int64_t i = threadIdx.x % 32; i * TSR_EXACT_BLOCK < lines; i += 32) any |= (of_blocks[i] & bits) != 0;
    return __any_sync(0xffffffffu, any);
}
/* Whether lines are to be converted LATER; at level 0 only those that wait. */
template <typename T> __device__ __forceinline__ bool wants_later(const Operand<T> &x, int level) {
    return has_any(x.levels, x.lines, 1u << level) && (level > 0 || has_any(x.rough, x.lines, WAITS));
}

/* What becomes of a line. */
enum Purpose {
    FIRST, /* magnitudes, if wanted, and planes of proof.first */
    LATER  /* planes of a level at which it is wanted and has none; with the last ones patterns, where these decide */
};
/* Planes of a level are there from the first time, unless those of a level before took their place. */
template <typename T>
__device__ __forceinline__ bool wants_planes(const Operand<T> &x, int64_t line, const tsr_exact_proof &proof,
                                             Purpose purpose, int level) {
    if (purpose == FIRST) return proof.first == level;
    const unsigned levels = x.levels[line / TSR_EXACT_BLOCK], before = (1u << level) - 1;
    return (levels >> level & 1) && !(proof.first == level && !(levels & before));
}

/* Bytes for a proof. */
template <typename T>
__device__ __forceinline__ bool wants_proving(const Operand<T> &x, int64_t line, Purpose purpose, int level) {
    if (purpose == FIRST) return x.proving;
    return level == TSR_EXACT_LAST && (x.levels[line / TSR_EXACT_BLOCK] & MEETS);
}

/* What the check does with integers that are converted: nothing. */
struct NotAdded {
    static constexpr bool ADDS = false;
    __device__ __forceinline__ void add(const unsigned (&)[4], const unsigned (&)[4]) {}
};

/* Four neighbours of a line, from byte `to` of a plane on. Where the check adds up integers these are all, whether they
 * are converted now or not. */
template <typename T, int COUNT, typename Sums>
__device__ __forceinline__ void convert_four(const Operand<T> &x, int64_t line, const tsr_exact_proof &proof,
                                             const T (&value)[4], int64_t to, Purpose purpose, int level, Sums &sums) {
    const bool planes = wants_planes(x, line, proof, purpose, level);
    if (Sums::ADDS || planes) {
        unsigned low[4], high[4];
        integers_of<T, COUNT>(value, proof.shifts[level], low, high);
        sums.add(low, high);
        if (planes) store_planes<T, COUNT>(x, low, high, to);
    }
    if constexpr (HAS_NEXT<T>) {
        if (purpose == FIRST && proof.first == 1) {
            unsigned low[4], high[4];
            integers_of<T, NEXT<T>>(value, proof.shifts[1], low, high);
            store_planes<T, NEXT<T>>(x, low, high, to);
        }
    }
    if (wants_proving(x, line, purpose, level)) store_proving<T, COUNT>(x, value, proof, to);
}

/* ---- rows of A: a block each ----------------------------------------------------------------- */

/* Parts that a warp has at once. */
template <typename T> constexpr int PARTS_AT_ONCE = Chunk<T>::SIZE;
/* A warp: what parts from `first` on are like, every WARPS-th. What is summed up has no order. */
template <typename T>
__device__ __forceinline__ void look_at_parts(const Operand<T> &x, const T *line, int first, int count,
                                              tsr_exact_line *parts) {
    const int lane = (int)threadIdx.x % 32;
    T value[PARTS_AT_ONCE<T>][4];
#pragma unroll
    for (int i = 0; i < PARTS_AT_ONCE<T>; i++)
        load_apart(line, (int64_t)(first + i * WARPS) * PART + lane, x.k, value[i]);
#pragma unroll
    for (int i = 0; i < PARTS_AT_ONCE<T>; i++) {
        const tsr_exact_line part = part_of_warp(value[i]);
        if (lane == 0 && first + i * WARPS < count) parts[first + i * WARPS] = part;
    }
}
/* Converts a row: done(part, sums), behind a warp's part of it. */
template <typename T, int COUNT, typename Sums, typename Done>
__device__ __forceinline__ void convert_row(const Operand<T> &x, int64_t row, const tsr_exact_proof &proof,
                                            Purpose purpose, int level, Done done) {
    const int lane = (int)threadIdx.x % 32;
    for (int part = (int)threadIdx.x / 32; part < x.depth / PART; part += WARPS) {
        const int64_t l0 = (int64_t)part * PART + 4 * lane;
        Sums sums = {};
        T value[4];
        load_four(x.data + row * x.ld, l0, x.k, value);
        convert_four<T, COUNT>(x, row, proof, value, row * x.depth + l0, purpose, level, sums);
        done(part, sums);
    }
}
/* A block looks at a row, and converts it. Its second reading finds it in the L1 and L2 caches. */
template <typename T, int COUNT, typename Sums, typename Done>
__device__ __forceinline__ void look_at_row(const Operand<T> &x, int64_t row, Done done) {
    __shared__ tsr_exact_line parts[PARTS_MOST];
    __shared__ tsr_exact_proof proof;
    const int count = (int)(x.depth / PART);
    for (int first = (int)threadIdx.x / 32; first < count; first += PARTS_AT_ONCE<T> * WARPS)
        look_at_parts(x, x.data + row * x.ld, first, count, parts);
    __syncthreads();
    if (threadIdx.x < 32) {
        const tsr_exact_line line = line_of(parts, 1, count);
        if (threadIdx.x == 0) proof = keep_proof(x, row, line);
    }
    __syncthreads();
    convert_row<T, COUNT, Sums>(x, row, proof, FIRST, 0, done);
    __syncthreads();
}
template <typename T, int COUNT>
__global__ void __launch_bounds__(THREADS, sizeof(T) == sizeof(float) ? 5 : 6) look_at_rows(const Operand<T> x) {
    tsr_cuda_begin();
    if (tsr_gemm_idle(x.predicate)) return;
    for (int64_t row = blockIdx.x; row < x.lines; row += gridDim.x)
        look_at_row<T, COUNT, NotAdded>(x, row, [](int, const NotAdded &) {});
}

template <typename T, int COUNT> __device__ __forceinline__ void convert_rows_later(const Operand<T> &x, int level) {
    if (!wants_later(x, level)) return;
    for (int64_t row = blockIdx.y * gridDim.x + blockIdx.x; row < x.lines; row += gridDim.x * gridDim.y) {
        const tsr_exact_proof &proof = x.proof[row];
        if (wants_planes(x, row, proof, LATER, level))
            convert_row<T, COUNT, NotAdded>(x, row, proof, LATER, level, [](int, const NotAdded &) {});
    }
}

/* ---- columns of B ---------------------------------------------------------------------------- */

/* A block looks at a part of COLUMNS columns from `first` on: a thread at every WARPS-th element of one. */
template <typename T> __device__ __forceinline__ void look_at_tile(const Operand<T> &x, int64_t first, int64_t part) {
    __shared__ unsigned extremes[WARPS][COLUMNS];
    __shared__ Totals totals[WARPS][COLUMNS];
    const int c = (int)threadIdx.x % COLUMNS, warp = (int)threadIdx.x / COLUMNS;
    const int64_t col = first + c;
    T value[PART / WARPS];
#pragma unroll
    for (int e = 0; e < PART / WARPS; e++) {
        const int64_t l = part * PART + e * WARPS + warp;
        value[e] = l < x.k && col < x.lines ? x.data[l * x.ld + col] : (T)0;
    }
    extremes[warp][c] = extremes_of(value);
    __syncthreads();
    unsigned all = extremes[0][c];
#pragma unroll
    for (int w = 1; w < WARPS; w++) all = __vmaxs2(all, extremes[w][c]);
    totals[warp][c] = totals_of(value, exponent_of(all));
    __syncthreads();
    if (warp == 0 && col < x.lines) {
        Totals sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += totals[w][c];
        x.parts[part * x.lines + col] = part_of(all, sum);
    }
    __syncthreads();
}

/* A warp a column. */
template <typename T> __global__ void __launch_bounds__(THREADS) prove_columns(const Operand<T> x) {
    tsr_cuda_begin();
    if (tsr_gemm_idle(x.predicate)) return;
    for (int64_t col = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; col < x.lines; col += gridDim.x * WARPS) {
        const tsr_exact_line line = line_of(x.parts + col, x.lines, (int)(x.depth / PART));
        if (threadIdx.x % 32 == 0) keep_proof(x, col, line);
    }
}

/* A block turns a part of COLUMNS columns in shared memory, and converts it. */
template <typename T> struct alignas(16) Turned { T line[COLUMNS][PART + Chunk<T>::SIZE]; };
template <typename T, int COUNT, typename Sums>
__device__ __forceinline__ void convert_tile(const Operand<T> &x, Turned<T> &turned, int64_t first, int64_t part,
                                             Purpose purpose, int level, Sums &sums) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t l0 = part * PART;
    static_assert(COLUMNS == 32 && PART == 4 * 32);
#pragma unroll
    for (int e = 0; e < PART / WARPS; e += 4) {
        const int64_t l = l0 + warp * (PART / WARPS) + e, col = first + lane;
        T value[4];
#pragma unroll
        for (int i = 0; i < 4; i++) value[i] = l + i < x.k && col < x.lines ? x.data[(l + i) * x.ld + col] : (T)0;
        store_chunks(turned.line[lane] + warp * (PART / WARPS) + e, value);
    }
    __syncthreads();
#pragma unroll 2
    for (int column = warp; column < COLUMNS && first + column < x.lines; column += WARPS) {
        const tsr_exact_proof &proof = x.proof[first + column];
        const int64_t to = (first + column) * x.depth + l0 + 4 * lane;
        T value[4];
        load_chunks(turned.line[column] + 4 * lane, value);
        convert_four<T, COUNT>(x, first + column, proof, value, to, purpose, level, sums);
    }
    __syncthreads();
}

/* work(first column, part) for each part of COLUMNS columns that is this block's. Right behind look_at_columns B is
 * read from its end on, which the caches still have. */
template <typename T, typename Work> __device__ __forceinline__ void for_tiles(const Operand<T> &x, Work work) {
    for (int64_t part = blockIdx.y; part < x.depth / PART; part += gridDim.y)
        for (int64_t first = (int64_t)blockIdx.x * COLUMNS; first < x.lines; first += (int64_t)gridDim.x * COLUMNS)
            work(first, part);
}
template <typename T> __global__ void __launch_bounds__(THREADS, 4) look_at_columns(const Operand<T> x) {
    tsr_cuda_begin();
    if (tsr_gemm_idle(x.predicate)) return;
    for_tiles(x, [&x](int64_t first, int64_t part) { look_at_tile(x, first, part); });
}
template <typename T, int COUNT> __global__ void __launch_bounds__(THREADS, 5) convert_columns(const Operand<T> x) {
    tsr_cuda_begin();
    __shared__ Turned<T> turned;
    if (tsr_gemm_idle(x.predicate)) return;
    for_tiles(x, [&x](int64_t first, int64_t at) {
        NotAdded none;
        convert_tile<T, COUNT>(x, turned, first, from_end(x.depth / PART, at), FIRST, 0, none);
    });
}
template <typename T, int COUNT>
__device__ __forceinline__ void convert_columns_later(const Operand<T> &x, Turned<T> &turned, int level) {
    if (!wants_later(x, level)) return;
    for_tiles(x, [&x, &turned, level](int64_t first, int64_t part) {
        if (!(x.levels[first / TSR_EXACT_BLOCK] >> level & 1)) return;
        const int64_t own = first + threadIdx.x % COLUMNS;
        const bool any = own < x.lines && wants_planes(x, own, x.proof[own], LATER, level);
        NotAdded none;
        if (__any_sync(0xffffffffu, any)) convert_tile<T, COUNT>(x, turned, first, part, LATER, level, none);
    });
}

} // namespace exact

#endif
