/* What `split3` makes of its operands before it multiplies: the largest magnitude of every row of A and column of B,
 * fp16 high and low parts in tiles that are the image shared memory wants, and a verdict whether these hold A and B
 * to fp32 accuracy. Device code and its launches, for split3.cu alone. */
#ifndef TSR_KERNELS_GEMM_HOPPER_SPLIT3_OPERANDS_H
#define TSR_KERNELS_GEMM_HOPPER_SPLIT3_OPERANDS_H

#include "kernels/gemm/gemm_cuda.h"
#include "kernels/gemm/hopper/split3_arithmetic.h"

namespace {

using namespace split3;

/* a block's tile of C, and a panel */
constexpr int M = 128;
constexpr int N = 192;
constexpr int K = 64;
constexpr int LINES = 64; /* rows of A or columns of B a packing block takes */
constexpr int PACKED = 4; /* panels it takes of them */
/* Where sums are reproducible: of lines that the split does not hold. */
constexpr unsigned LEFT_OUT = 1u << 31;

/* A line is a row of A or a column of B. What is known of each. */
struct Lines {
    unsigned *largest; /* bits of the largest magnitude, and LEFT_OUT */
    unsigned *weak;    /* elements too small for 22 bits */
    unsigned *firm;    /* elements that count as large in `judge` */
    int64_t count;
};

__device__ __forceinline__ int64_t at_most(int64_t x, int64_t most) { return x < most ? x : most; }

/* ---- measuring and packing ------------------------------------------------------------------- */

constexpr int MEASURED = 1024;   /* elements of A a warp measures, in 1 row or 4 */
constexpr int ROWS_THREAD = 128; /* of B, that a thread measures in one column */

/* Largest magnitudes of rows; a warp takes ROWS of them. */
template <int ROWS>
__global__ void __launch_bounds__(256)
    measure_rows(unsigned *largest, const float *x, int64_t ld, int64_t rows, int64_t cols) {
    constexpr int COLS = MEASURED / ROWS;
    const int64_t across = (cols + COLS - 1) / COLS;
    const int64_t row = (blockIdx.x / across * 8 + threadIdx.x / 32) * ROWS,
                  col = blockIdx.x % across * COLS + threadIdx.x % 32;
    if (row >= rows) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t at = at_most(row + r, rows - 1); /* the last row once more where there is none */
        unsigned most = 0;
#pragma unroll
        for (int i = 0; i < COLS; i += 32) most = max(most, size_bits(x[at * ld + at_most(col + i, cols - 1)]));
#pragma unroll
        for (int lane = 1; lane < 32; lane *= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, lane));
        if (threadIdx.x % 32 == 0) atomicMax(largest + at, most);
    }
}

/* Largest magnitudes of columns. */
__global__ void __launch_bounds__(256)
    measure_cols(unsigned *largest, const float *x, int64_t ld, int64_t rows, int64_t cols) {
    const int64_t across = (cols + 255) / 256;
    const int64_t row = blockIdx.x / across * ROWS_THREAD, col = blockIdx.x % across * 256 + threadIdx.x;
    if (col >= cols) return;
    const float *at = x + row * ld + col;
    unsigned most = 0;
    if (row + ROWS_THREAD <= rows) {
#pragma unroll 32
        for (int i = 0; i < ROWS_THREAD; i++, at += ld) most = max(most, size_bits(*at));
    } else {
        for (int64_t i = row; i < rows; i++, at += ld) most = max(most, size_bits(*at));
    }
    atomicMax(largest + col, most);
}

struct alignas(16) Halves {
    Half at[8];
};

/* What a thread reads of LINES lines × K: 16 elements, along the lines of A (rows) or across those of B (columns). */
template <bool COLUMNS>
__device__ __forceinline__ void load_square(float (&own)[16], const float *from, int64_t ld, int64_t lines,
                                            int64_t steps) {
    const int x = (int)threadIdx.x % 64, y = (int)threadIdx.x / 64;
    if (lines >= LINES && steps >= K) {
        from += y * ld + x;
#pragma unroll
        for (int i = 0; i < 16; i++, from += 4 * ld) own[i] = *from;
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int line = COLUMNS ? x : y + 4 * i, step = COLUMNS ? y + 4 * i : x;
        own[i] = line < lines && step < steps ? from[COLUMNS ? step * ld + line : line * ld + step] : 0.0f;
    }
}

/* LINES lines × PACKED panels of A (lines are rows) or B (lines are columns) to tiles [line/TILE][k/K][high,
 * low][TILE][K], swizzled. */
template <bool COLUMNS>
__global__ void __launch_bounds__(256, 3)
    pack(unsigned char *to, const float *from, int64_t ld, Lines lines, int64_t k, int64_t panels) {
    constexpr int TILE = COLUMNS ? N : M, PART = TILE * K * 2;
    __shared__ float square[LINES][K + 1];
    const int64_t strips = (panels + PACKED - 1) / PACKED;
    const int64_t first = blockIdx.x / strips * LINES;
    const int64_t left = lines.count - first;
    const int64_t start = blockIdx.x % strips * PACKED, end = at_most(start + PACKED, panels);
    const int x = (int)threadIdx.x % 64;
    const int y = (int)threadIdx.x / 64;
    const int line = (int)threadIdx.x / 8;
    const int unit = (int)threadIdx.x % 8;
    float scale[2], own[16];
    int weak[2] = {0, 0}, firm[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; h++)
        scale[h] = power(line + 32 * h < left ? shift_of(lines.largest[first + line + 32 * h]) : 0);
    from += COLUMNS ? first : first * ld;
    load_square<COLUMNS>(own, from + start * K * (COLUMNS ? ld : 1), ld, left, k - start * K);
    for (int64_t panel = start; panel < end; panel++) {
        __syncthreads(); /* the panel before has been used */
#pragma unroll
        for (int i = 0; i < 16; i++) square[COLUMNS ? x : y + 4 * i][COLUMNS ? y + 4 * i : x] = own[i];
        __syncthreads();
        if (panel + 1 < end)
            load_square<COLUMNS>(own, from + (panel + 1) * K * (COLUMNS ? ld : 1), ld, left, k - (panel + 1) * K);
        unsigned char *tile = to + (first / TILE * panels + panel) * 2 * PART;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            Halves high, low;
#pragma unroll
            for (int e = 0; e < 8; e++)
                split(square[line + 32 * h][unit * 8 + e], scale[h], high.at + e, low.at + e, weak + h, firm + h);
            const int within = (int)(first % TILE) + line + 32 * h, at = within * 128 + (unit ^ within % 8) * 16;
            *reinterpret_cast<Halves *>(tile + at) = high;
            *reinterpret_cast<Halves *>(tile + PART + at) = low;
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int both = weak[h] << 16 | firm[h]; /* of the line, from its 8 threads */
#pragma unroll
        for (int lane = 1; lane < 8; lane *= 2) both += __shfl_xor_sync(0xffffffffu, both, lane);
        if (unit != 0 || line + 32 * h >= left) continue;
        atomicAdd(lines.firm + first + line + 32 * h, (unsigned)both & 0xffffu);
        if (both >> 16) atomicAdd(lines.weak + first + line + 32 * h, (unsigned)both >> 16);
    }
}

/* The verdict and what it rests on; all zeros at first. */
struct Verdict {
    unsigned unfit;   /* 1: the split cannot hold A or B, or is less exact than plain fp32 */
    unsigned refused; /* a line's scale is out of reach: tiny, or Inf or NaN */
    unsigned weak[2]; /* most of any line of A, of B */
    unsigned soft[2]; /* most elements that are not firm, of any line that is not all zeros */
    unsigned done;    /* blocks */
    unsigned left[2]; /* lines of A, of B that are left out */
    unsigned few;     /* 1: one of them because too few elements may meet */
};

__device__ __forceinline__ void worst_of(const Lines &lines, int64_t i, unsigned k, unsigned *weak, unsigned *soft,
                                         unsigned *refused) {
    const unsigned largest = i < lines.count ? lines.largest[i] : 0;
    if (largest == 0) return;
    if (refuses(largest)) atomicOr(refused, 1u);
    if (lines.weak[i] > 0) atomicMax(weak, lines.weak[i]);
    if (lines.firm[i] < k) atomicMax(soft, k - lines.firm[i]);
}

/* Whether the split fails to hold A and B: of all lines the worst. passed: the fallback's own makes it. */
__global__ void __launch_bounds__(256)
    judge(Verdict *verdict, tsr_gemm_fallbacks *fallbacks, bool passed, Lines a, Lines b, int64_t k) {
    __shared__ unsigned worst[5]; /* weak, soft of A; of B; refused */
    if (threadIdx.x < 5) worst[threadIdx.x] = 0;
    __syncthreads();
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    worst_of(a, i, (unsigned)k, worst, worst + 1, worst + 4);
    worst_of(b, i, (unsigned)k, worst + 2, worst + 3, worst + 4);
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int side = 0; side < 2; side++) {
        atomicMax(verdict->weak + side, worst[2 * side]);
        atomicMax(verdict->soft + side, worst[2 * side + 1]);
    }
    atomicOr(&verdict->refused, worst[4]);
    __threadfence();
    if (atomicAdd(&verdict->done, 1u) + 1 < gridDim.x) return;
    __threadfence(); /* the last block: all others have added theirs */
    const volatile Verdict *v = verdict;
    const int64_t soft = (int64_t)v->soft[0] + v->soft[1];
    const bool sparse = !v->refused && few(k, soft);
    verdict->unfit = v->refused || sparse || unfit(k, (int64_t)v->weak[0] + v->weak[1], soft);
    if (!verdict->unfit || !fallbacks) return;
    fallbacks->products += 1; /* products follow each other on one stream */
    fallbacks->few += sparse;
    fallbacks->multiply_adds += (uint64_t)(a.count * b.count * k);
    if (passed) fallbacks->passed += (uint64_t)(a.count * b.count * k);
}

/* Whether a line is left out, which is marked then; few: because too few elements may meet. */
__device__ __forceinline__ bool leave_out(const Lines &lines, int64_t i, int64_t k, bool *few) {
    const unsigned largest = i < lines.count ? lines.largest[i] : 0;
    if (largest == 0) return false;
    const int64_t soft = k - lines.firm[i];
    *few = !refuses(largest) && line_few(k, soft);
    if (!refuses(largest) && !*few && !line_unfit(k, lines.weak[i], soft)) return false;
    lines.largest[i] = largest | LEFT_OUT;
    return true;
}

/* Where sums are reproducible: each line is judged by itself, and `unfit` says that one is left out. */
__global__ void __launch_bounds__(256)
    judge_lines(Verdict *verdict, tsr_gemm_fallbacks *fallbacks, Lines a, Lines b, int64_t k) {
    __shared__ unsigned left[3]; /* of A, of B; because few may meet */
    if (threadIdx.x < 3) left[threadIdx.x] = 0;
    __syncthreads();
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    bool few[2] = {false, false};
    if (leave_out(a, i, k, few)) atomicAdd(left, 1u);
    if (leave_out(b, i, k, few + 1)) atomicAdd(left + 1, 1u);
    if (few[0] || few[1]) atomicOr(left + 2, 1u);
    __syncthreads();
    if (threadIdx.x != 0) return;
    atomicAdd(verdict->left, left[0]);
    atomicAdd(verdict->left + 1, left[1]);
    atomicOr(&verdict->few, left[2]);
    __threadfence();
    if (atomicAdd(&verdict->done, 1u) + 1 < gridDim.x) return;
    __threadfence(); /* the last block: all others have added theirs */
    const volatile Verdict *v = verdict;
    const int64_t held = (a.count - v->left[0]) * (b.count - v->left[1]);
    verdict->unfit = v->left[0] > 0 || v->left[1] > 0;
    if (!verdict->unfit || !fallbacks) return;
    fallbacks->products += 1; /* products follow each other on one stream */
    fallbacks->few += v->few;
    fallbacks->multiply_adds += (uint64_t)((a.count * b.count - held) * k);
}

/* c (rows × cols) = or += made, where a line is left out. largest_a: of these rows. A block takes 256 elements of a
 * row at a time. */
__global__ void __launch_bounds__(256)
    take_left_out(float *c, int64_t ldc, const float *made, int64_t ld, const unsigned *largest_a,
                  const unsigned *largest_b, int64_t rows, int64_t cols, bool accumulate, const unsigned *predicate) {
    if (*predicate == 0) return;
    const int64_t across = (cols + 255) / 256;
    for (int64_t at = blockIdx.x; at < rows * across; at += gridDim.x) {
        const int64_t i = at / across, j = at % across * 256 + threadIdx.x;
        if (j < cols && (largest_a[i] | largest_b[j]) & LEFT_OUT)
            c[i * ldc + j] = made[i * ld + j] + (accumulate ? c[i * ldc + j] : 0.0f);
    }
}

/* ---- launches -------------------------------------------------------------------------------- */

tsr_status measure_a(tsr_stream *stream, const Lines &lines, const float *a, int64_t lda, int64_t k) {
    const int rows = k <= MEASURED / 4 ? 4 : 1; /* so that a warp always has enough to load at once */
    const unsigned blocks = (unsigned)(tsr_ceil_div(lines.count, 8 * rows) * tsr_ceil_div(k, MEASURED / rows));
    return rows == 4 ? TSR_LAUNCH(measure_rows<4>, blocks, 256, 0, stream, lines.largest, a, lda, lines.count, k)
                     : TSR_LAUNCH(measure_rows<1>, blocks, 256, 0, stream, lines.largest, a, lda, lines.count, k);
}

tsr_status measure_b(tsr_stream *stream, const Lines &lines, const float *b, int64_t ldb, int64_t k) {
    const unsigned blocks = (unsigned)(tsr_ceil_div(lines.count, 256) * tsr_ceil_div(k, ROWS_THREAD));
    return TSR_LAUNCH(measure_cols, blocks, 256, 0, stream, lines.largest, b, ldb, k, lines.count);
}

template <bool COLUMNS>
tsr_status pack_lines(tsr_stream *stream, unsigned char *to, const float *x, int64_t ld, const Lines &lines,
                      int64_t k) {
    const int64_t panels = tsr_ceil_div(k, K), padded = tsr_round_up(lines.count, COLUMNS ? N : M);
    const unsigned blocks = (unsigned)(padded / LINES * tsr_ceil_div(panels, PACKED));
    return TSR_LAUNCH(pack<COLUMNS>, blocks, 256, 0, stream, to, x, ld, lines, k, panels);
}

/* Measures and packs; all the multiplication needs of A and B but for a verdict. Counts are zeros. */
tsr_status prepare(tsr_stream *stream, const tsr_gemm_args *args, const Lines &a, const Lines &b,
                   unsigned char *packed_a, unsigned char *packed_b) {
    TSR_TRY(measure_a(stream, a, (const float *)args->a, args->lda, args->k));
    TSR_TRY(measure_b(stream, b, (const float *)args->b, args->ldb, args->k));
    TSR_TRY(pack_lines<false>(stream, packed_a, (const float *)args->a, args->lda, a, args->k));
    return pack_lines<true>(stream, packed_b, (const float *)args->b, args->ldb, b, args->k);
}

/* lines_alone: by judge_lines; passed: see judge */
tsr_status judge_operands(tsr_stream *stream, const tsr_gemm_args *args, const Lines &a, const Lines &b,
                          bool lines_alone, bool passed, Verdict *verdict) {
    const unsigned blocks = (unsigned)tsr_ceil_div(tsr_max(args->m, args->n), 256);
    if (lines_alone) return TSR_LAUNCH(judge_lines, blocks, 256, 0, stream, verdict, args->fallbacks, a, b, args->k);
    return TSR_LAUNCH(judge, blocks, 256, 0, stream, verdict, args->fallbacks, passed, a, b, args->k);
}

} // namespace

#endif
