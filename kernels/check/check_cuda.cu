/* Operation: Freivalds' check of a product in the device's memory (check.h): rows of B, A and C times three vectors.
 * Mapping: a block makes of a tile, 8 groups of 4 rows, some pieces of the columns one after another, a warp a group
 * (check_rows.h). Neighbours read the same columns, so vectors come from L1. The block that comes last of a tile's
 * adds the sums of all pieces up in order, a thread a row, and ends the rows: they become elements of the thin
 * vectors, sums of A, or are judged. So each matrix is one launch. The same input gives the same bits.
 * A block uses: 256 threads, at most 128 registers, 33 KiB of shared memory.
 * Arithmetic intensity: 4 multiply-adds an element; memory-bound. An element takes 7 instructions, of tf32 11.
 * Columns with NaN or Inf are found where a sum of B shows them: B is multiplied again then, without them. That launch
 * returns at once otherwise.
 * Source: check.h. */
#include "kernels/check/check_rows.h"

namespace {

constexpr int DRAWERS = TSR_CHECK_CHUNKS * V / 2; /* blocks that draw signs: each has two of the partial sums' places */
constexpr int AGAIN = 512;                        /* blocks of a launch that mostly returns at once */

/* What a block's columns are, before signs are drawn; all 0 at first. */
struct opening {
    unsigned long long exponents; /* of columns of B that have one, shifted by SHIFT, added up, */
    unsigned seen, most, least;   /* how many, the largest, and SHIFT's double less the smallest */
    unsigned arrived;             /* blocks that have drawn */
    unsigned long long top_of_a;  /* the bits of a double ≥ 0 */
};
constexpr int SHIFT = 2048;

/* ---- joining threads and blocks -------------------------------------------------------------- */

/* A number a thread to one of the block, the same for every thread. */
template <typename G> __device__ __forceinline__ void join(double &value, G both) {
    __shared__ double values[THREADS];
    const int t = (int)threadIdx.x;
    values[t] = value;
    for (int apart = THREADS / 2; apart > 0; apart /= 2) {
        __syncthreads();
        if (t < apart) values[t] = both(values[t], values[t + apart]);
    }
    __syncthreads();
    value = values[0];
    __syncthreads();
}

/* Likewise of a warp: the first thread has it. */
template <typename N, typename G> __device__ __forceinline__ N join_warp(N value, G both) {
    for (int apart = WARP / 2; apart > 0; apart /= 2) value = both(value, __shfl_down_sync(0xffffffffu, value, apart));
    return value;
}

/* Whether this block is the last of `all` that come here, and sees what the others wrote (past L1, by __ldcg). */
__device__ __forceinline__ bool comes_last(unsigned *arrived, unsigned all) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(arrived, 1u) == all - 1;
        if (last) *arrived = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* ---- rows times vectors ---------------------------------------------------------------------- */

enum ending_kind { ENDS_THIN, ENDS_SUMS, ENDS_JUDGED };

/* What becomes of rows whose sums are whole. */
struct ending {
    ending_kind kind;
    tsr_check_facts *facts;
    void *thin; /* V × thin_ld, in the arithmetic of A and B */
    int64_t thin_ld;
    void *signs, *signs_c; /* V × ld of the product's vectors: columns with NaN or Inf are taken out */
    bool opens, again;     /* the first launch of a block of C; columns were taken out */
    double *sums;          /* rows × SUMS */
    bool accumulate;
    int64_t n, k, place_row, place_col;
    tsr_check_noise noise;
    tsr_check_counts *counts;
};

/* ---- what becomes of rows -------------------------------------------------------------------- */

/* Piece by piece onto `sum`; returns the largest that the first two ever were. */
__device__ __forceinline__ double add_pieces(const product &p, int64_t all, int64_t row, double (&sum)[V]) {
    double largest = 0;
    for (int piece = 0; piece < p.pieces; piece++) {
#pragma unroll
        for (int v = 0; v < V; v++) sum[v] += __ldcg(&p.partial[((int64_t)piece * V + v) * all + row]);
        largest = fmax(largest, fmax(fabs(sum[0]), fabs(sum[1])));
    }
    return largest;
}

/* An element of each thin vector, of squares their root, times the scale of A; whether the sums are finite. The root is
 * no less than that of a row of B whose elements are the smallest that tensor cores tell apart. */
template <typename F> __device__ __forceinline__ bool end_thin(const ending &e, int64_t row, const double (&sum)[V]) {
    F *thin = static_cast<F *>(e.thin) + row;
    const F scale = (F)e.facts->of_a;
    thin[0] = (F)sum[0] * scale;
    thin[e.thin_ld] = (F)sum[1] * scale;
    const double least = e.noise.cut > 0 ? e.noise.normal * e.noise.normal * e.facts->squares : 0;
    thin[2 * e.thin_ld] = (F)sqrt(sum[2] < least ? least : sum[2]) * scale;
    return isfinite(sum[0]) && isfinite(sum[1]) && isfinite(sum[2]);
}

/* Takes columns of B out that hold NaN or Inf in this row. All threads of a block. */
template <typename T, typename F>
__device__ __forceinline__ void leave_out(const matrix &b, const ending &e, int64_t ld, const T *row) {
    F *signs = static_cast<F *>(e.signs), *signs_c = static_cast<F *>(e.signs_c);
    for (int64_t j = threadIdx.x; j < b.cols; j += THREADS) {
        if (isfinite(convert(row[j]))) continue;
        if (!e.opens && signs[2 * ld + j] != 0) e.facts->spoiled = 1;
        for (int v = 0; v < V; v++) {
            signs[v * ld + j] = 0;
            signs_c[v * ld + j] = 0;
        }
        e.facts->left_out = 1;
    }
}

typedef unsigned long long word;

/* Counts a warp's rows; all its threads. */
__device__ __forceinline__ void count_rows(const ending &e, bool is, tsr_row_verdict verdict, double ratio) {
    const auto add = [](unsigned a, unsigned b) { return a + b; };
    tsr_check_counts *counts = e.counts;
    const unsigned judged = join_warp(is && verdict != TSR_ROW_UNJUDGED ? 1u : 0u, add);
    const unsigned unjudged = join_warp(is && verdict == TSR_ROW_UNJUDGED ? 1u : 0u, add);
    const double worst = join_warp(is ? ratio : 0.0, [](double a, double b) { return fmax(a, b); });
    if (threadIdx.x % WARP == 0) {
        word bits; /* of doubles ≥ 0: they compare as these do */
        memcpy(&bits, &worst, sizeof bits);
        if (judged > 0) atomicAdd(reinterpret_cast<word *>(&counts->judged), (word)judged);
        if (unjudged > 0) atomicAdd(reinterpret_cast<word *>(&counts->unjudged), (word)unjudged);
        if (worst > 0) atomicMax(reinterpret_cast<word *>(&counts->worst_bits), bits);
    }
    if (!is || (verdict != TSR_ROW_WRONG && verdict != TSR_ROW_DOUBTFUL)) return;
    if (verdict == TSR_ROW_WRONG) atomicAdd(reinterpret_cast<word *>(&counts->wrong), (word)1);
    const word place = atomicAdd(reinterpret_cast<word *>(&counts->doubtful), (word)1);
    if (place >= TSR_CHECK_PLACES) return;
    counts->place[place].row = e.place_row;
    counts->place[place].col = e.place_col;
}

/* The rows of a tile, whose sums are whole. All threads of a block, in which the first warp has a thread for each. */
template <typename T, typename F>
__device__ __forceinline__ void end_tile(const matrix &m, const product &p, const ending &e, int64_t tile) {
    __shared__ const T *not_finite[TILE];
    static_assert(TILE == WARP, "a thread a row");
    const int t = (int)threadIdx.x;
    if (t < TILE) {
        int64_t one, in_one;
        const bool is = find_row(m, tile * WARPS + t / ROWS, t % ROWS, &one, &in_one);
        const int64_t row = one * m.rows + in_one;
        double *sums = e.sums + SUMS * row;
        double sum[V] = {0, 0, 0};
        double before = 0, ratio = 0;
        const bool adds = is && e.kind == ENDS_SUMS && e.accumulate;
        if (adds)
            for (int v = 0; v < V; v++) sum[v] = sums[v];
        if (adds) before = sums[V];
        const double largest = is ? fmax(before, add_pieces(p, m.batch * m.rows, row, sum)) : 0;
        tsr_row_verdict verdict = TSR_ROW_RIGHT;
        not_finite[t] = nullptr;
        if (is && e.kind == ENDS_THIN && !end_thin<F>(e, row, sum) && !e.again)
            not_finite[t] = static_cast<const T *>(m.data) + one * m.stride + in_one * m.ld;
        if (is && e.kind == ENDS_SUMS) {
            for (int v = 0; v < V; v++) sums[v] = sum[v];
            sums[V] = largest;
        }
        if (is && e.kind == ENDS_JUDGED)
            verdict = tsr_check_row(sums, sum, sum[2], e.n, e.k, e.facts, &e.noise, &ratio);
        if (e.kind == ENDS_JUDGED) count_rows(e, is, verdict, ratio);
    }
    if (e.kind == ENDS_SUMS && t == 0) e.facts->found = 0; /* for the next launch's B */
    if (e.kind != ENDS_THIN || e.again) return;
    __syncthreads();
    for (int r = 0; r < TILE; r++)
        if (not_finite[r]) {
            e.facts->found = 1;
            leave_out<T, F>(m, e, p.ld, not_finite[r]);
        }
}

/* A task is some pieces of a tile; neighbours read the same columns. */
template <typename T, typename F, bool WIDE, bool TF32>
__global__ void __launch_bounds__(THREADS, 2) rows_times(matrix m, product p, ending e) {
    if (p.only && *p.only == 0) return;
    const bool careful = p.careful && *p.careful > 0;
    const int64_t groups = m.batch * ((m.rows + ROWS - 1) / ROWS), tiles = (groups + WARPS - 1) / WARPS;
    for (int64_t task = blockIdx.x; task < tiles * p.tasks; task += gridDim.x) {
        const int64_t tile = task % tiles;
        const int first = (int)(task / tiles) * p.span;
        multiply_group<T, F, WIDE, TF32>(m, p, tile * WARPS + threadIdx.x / WARP, first, careful);
        if (comes_last(&p.arrived[tile], (unsigned)p.tasks)) end_tile<T, F>(m, p, e, tile);
    }
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* Of the block's columns of B, what `opened` says, and their largest finite elements; all of rows spread over the first
 * matrix. A block 32 columns of B or A. */
template <typename T, typename F>
__global__ void __launch_bounds__(THREADS) find_tops(matrix a, matrix b, F *tops, opening *opened) {
    __shared__ F of_warps[WARPS][WARP];
    const int64_t tiles_b = (b.cols + WARP - 1) / WARP, tiles = tiles_b + (a.cols + WARP - 1) / WARP;
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const bool of_b = tile < tiles_b;
        const T *data = static_cast<const T *>(of_b ? b.data : a.data);
        const int64_t rows = of_b ? b.rows : a.rows, cols = of_b ? b.cols : a.cols;
        const int64_t ld = of_b ? b.ld : a.ld;
        const int64_t j = (of_b ? tile : tile - tiles_b) * WARP + lane;
        const int64_t step = rows / TSR_CHECK_SAMPLED > 1 ? rows / TSR_CHECK_SAMPLED : 1;
        F top = 0;
        if (j < cols)
#pragma unroll 8
            for (int64_t l = warp * step; l < rows; l += WARPS * step) {
                const F size = fabs(convert(data[l * ld + j]));
                if (isfinite(size) && size > top) top = size;
            }
        of_warps[warp][lane] = top;
        __syncthreads();
        if (warp == 0) {
            for (int w = 1; w < WARPS; w++) top = top < of_warps[w][lane] ? of_warps[w][lane] : top;
            if (of_b && j < cols) tops[j] = top;
            const unsigned exponent = top > 0 ? (unsigned)(tsr_check_exponent((double)top) + SHIFT) : 0;
            const auto larger = [](auto one, auto other) { return one < other ? other : one; };
            const auto add = [](unsigned one, unsigned other) { return one + other; };
            const double largest = join_warp((double)top, larger);
            const unsigned sum = join_warp(exponent, add), seen = join_warp(top > 0 ? 1u : 0u, add);
            const unsigned most = join_warp(exponent, larger);
            const unsigned least = join_warp(top > 0 ? 2 * SHIFT - exponent : 0u, larger);
            if (lane == 0 && of_b && seen > 0) {
                atomicAdd(&opened->exponents, (word)sum);
                atomicAdd(&opened->seen, seen);
                atomicMax(&opened->most, most);
                atomicMax(&opened->least, least);
            }
            word bits;
            memcpy(&bits, &largest, sizeof bits);
            if (lane == 0 && !of_b && largest > 0) atomicMax(&opened->top_of_a, bits);
        }
        __syncthreads();
    }
}

/* C underflows where both of its operands' scales are so large. */
template <typename F> __device__ __forceinline__ F finite(F value) {
    const F most = sizeof(F) == 4 ? (F)0x1p126 : (F)0x1p1020;
    return value > most ? most : value < -most ? -most : value;
}

template <typename F> __device__ __forceinline__ double scale_of(int64_t exponent) {
    return tsr_check_scale(exponent, sizeof(F) == 4 ? TSR_CHECK_FLOAT : TSR_CHECK_DOUBLE);
}

/* signs: holds B's tops where scales come. At most DRAWERS blocks, of which the last writes the facts. */
template <typename F>
__global__ void __launch_bounds__(THREADS) draw_signs(F *signs, F *signs_c, int64_t ld, int64_t width, opening *opened,
                                                      uint64_t seed, double *partial, tsr_check_facts *facts) {
    const auto add = [](double a, double b) { return a + b; };
    const auto lesser = [](double a, double b) { return fmin(a, b); };
    const int64_t seen = opened->seen, shifted = (int64_t)opened->exponents - SHIFT * seen;
    const int64_t usual = seen > 0 ? shifted / seen : 0, least = SHIFT - (int64_t)opened->least;
    const bool alike = seen == 0 || tsr_check_alike(least, (int64_t)opened->most - SHIFT);
    double top, squares = 0, smallest = INFINITY;
    memcpy(&top, &opened->top_of_a, sizeof top);
    const double of_a = top > 0 ? scale_of<F>(tsr_check_exponent(top)) : 1;
    F *scales = signs + 2 * ld;
    for (int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x; j < width; j += (int64_t)gridDim.x * THREADS) {
        const double scale = scale_of<F>(scales[j] > 0 && !alike ? tsr_check_exponent((double)scales[j]) : usual);
        const double root = TSR_CHECK_ROOT * scale;
        const uint64_t draw = tsr_check_draw(seed, j);
        signs[j] = (F)(scale * tsr_check_sign(draw, 0));
        signs[ld + j] = (F)(scale * tsr_check_sign(draw, 1));
        scales[j] = (F)root;
        for (int v = 0; v < V; v++) signs_c[v * ld + j] = finite(signs[v * ld + j] * (F)of_a);
        squares += root * root;
        smallest = fmin(smallest, scale);
    }
    join(squares, add);
    join(smallest, lesser);
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = squares;
        partial[2 * blockIdx.x + 1] = smallest;
    }
    if (!comes_last(&opened->arrived, gridDim.x) || threadIdx.x > 0) return;
    squares = 0;
    for (unsigned block = 0; block < gridDim.x; block++) {
        squares += __ldcg(&partial[2 * block]);
        smallest = fmin(smallest, __ldcg(&partial[2 * block + 1]));
    }
    *facts = tsr_check_facts{of_a, smallest, squares, 0, 0, 0};
}

/* ---- launches -------------------------------------------------------------------------------- */

/* For kernels that stride over the rest. */
tsr_status blocks_for(int64_t items, int64_t each, dim3 *grid) {
    return tsr_cuda_grid(1, tsr_max(1, items), 1, each, grid);
}

/* Rows times vectors that are `ld` long; how they are cut, multiply says. */
product product_of(const tsr_check_space &s, const void *vectors, int64_t ld, const unsigned *careful) {
    product p = {};
    p.vectors = vectors;
    p.ld = ld;
    p.partial = s.partial;
    p.arrived = s.arrived;
    p.careful = careful;
    return p;
}

template <typename T, typename F, bool TF32>
tsr_status multiply(tsr_stream *stream, const matrix &m, product p, const ending &e) {
    const int64_t bytes = (int64_t)sizeof(T);
    const bool aligned = ((uintptr_t)m.data | (uintptr_t)(m.ld * bytes) | (uintptr_t)(m.stride * bytes)) % 16 == 0 &&
                         p.step * (int64_t)sizeof(F) % 16 == 0;
    dim3 grid;
    const int64_t tiles = tsr_ceil_div(m.batch * tsr_ceil_div(m.rows, ROWS), WARPS);
    p.chunk = tsr_check_chunk(m.cols);
    p.pieces = (int)tsr_max(1, tsr_ceil_div(m.cols, p.chunk));
    p.span = tsr_check_span(tiles, m.cols);
    p.tasks = (int)tsr_ceil_div(p.pieces, p.span);
    const int64_t tasks = tiles * p.tasks;
    TSR_TRY(blocks_for(p.only ? tsr_min(tasks, AGAIN) : tasks, 1, &grid));
    if constexpr (2 * sizeof(T) > sizeof(F) ||
                  sizeof(F) == sizeof(float)) /* else 16 bytes of a row are more doubles than there are registers */
        if (aligned) return TSR_LAUNCH((rows_times<T, F, true, TF32>), grid, THREADS, 0, stream, m, p, e);
    return TSR_LAUNCH((rows_times<T, F, false, TF32>), grid, THREADS, 0, stream, m, p, e);
}

struct launch_parts {
    matrix a, b, c;
    tsr_check_space space;
};

/* The signs of a block. */
template <typename T, typename F>
tsr_status open_block(tsr_stream *stream, const tsr_check_args *args, const launch_parts &l) {
    const tsr_check_space &s = l.space;
    F *signs = (F *)s.signs;
    opening *opened = (opening *)s.opening;
    static_assert(sizeof *opened <= TSR_CHECK_OPENING * sizeof(double), "its place is too small");
    matrix b = l.b;
    b.cols = s.width;
    dim3 tops, drawers;
    TSR_TRY(blocks_for(tsr_ceil_div(b.cols, WARP) + tsr_ceil_div(l.a.cols, WARP), 1, &tops));
    TSR_TRY(blocks_for(tsr_min(s.width, DRAWERS * THREADS), THREADS, &drawers));
    const size_t counters = (size_t)tsr_check_counters(args->rows, args->depth) * sizeof *s.arrived;
    TSR_TRY(
        TSR_CUDA(cudaMemsetAsync(opened, 0, TSR_CHECK_OPENING * sizeof(double) + counters, tsr_cuda_stream(stream))));
    TSR_TRY(TSR_LAUNCH((find_tops<T, F>), tops, THREADS, 0, stream, l.a, b, signs + 2 * s.ld, opened));
    return TSR_LAUNCH(draw_signs<F>, drawers, THREADS, 0, stream, signs, (F *)s.signs_c, s.ld, s.width, opened,
                      args->seed, s.partial, s.facts);
}

template <typename T, bool TF32, typename C>
tsr_status follow_types(tsr_stream *stream, const tsr_check_args *args, const launch_parts &l) {
    typedef typename arithmetic<T>::type F;
    const tsr_check_space &s = l.space;
    if (args->opens) TSR_TRY((open_block<T, F>(stream, args, l)));
    product p = product_of(s, s.signs, s.ld, &s.facts->left_out);
    ending e = {.kind = ENDS_THIN,
                .facts = s.facts,
                .thin = s.thin,
                .thin_ld = s.depth,
                .signs = s.signs,
                .signs_c = s.signs_c,
                .opens = args->opens,
                .again = false,
                .sums = s.sums + SUMS * args->row,
                .accumulate = args->gemm->accumulate,
                .n = l.c.cols,
                .k = args->k,
                .place_row = args->place_row,
                .place_col = args->place_col,
                .noise = tsr_check_noise_of(args->kernel, args->k),
                .counts = args->counts};
    TSR_TRY((multiply<T, F, TF32>(stream, l.b, p, e)));
    p.only = &s.facts->found;
    e.again = true;
    TSR_TRY((multiply<T, F, TF32>(stream, l.b, p, e)));
    p = product_of(s, s.thin, s.depth, nullptr);
    p.step = l.b.batch > 1 ? l.b.rows : 0;
    e.kind = ENDS_SUMS;
    TSR_TRY((multiply<T, F, TF32>(stream, l.a, p, e)));
    if (!args->closes) return TSR_OK;
    p = product_of(s, s.signs_c, s.ld, &s.facts->left_out);
    e.kind = ENDS_JUDGED;
    return multiply<C, F, false>(stream, l.c, p, e);
}

tsr_status follow(tsr_device *device, tsr_stream *stream, const tsr_check_args *args) {
    (void)device;
    const tsr_gemm_args *g = args->gemm;
    const int64_t batch = tsr_max(1, g->batch), of_b = batch > 1 && g->stride_b != 0 ? batch : 1;
    const launch_parts l = {{g->a, g->m, g->k, g->lda, batch, batch > 1 ? g->stride_a : 0},
                            {g->b, g->k, g->n, g->ldb, of_b, of_b > 1 ? g->stride_b : 0},
                            {g->c, g->m, g->n, g->ldc, batch, batch > 1 ? g->stride_c : 0},
                            tsr_check_space_of(args)};
    if (g->m == 0 || g->n == 0) return TSR_OK;
    switch (args->kernel->input) {
    case TSR_F16: return follow_types<uint16_t, false, float>(stream, args, l);
    case TSR_BF16: return follow_types<bf16_bits, false, float>(stream, args, l);
    case TSR_F64: return follow_types<double, false, double>(stream, args, l);
    default: break;
    }
    if (args->kernel->rounds_tf32) return follow_types<float, true, float>(stream, args, l);
    return follow_types<float, false, float>(stream, args, l);
}

/* Rows of C in its own type: T, where vectors are in F. */
template <typename F>
tsr_status judge_types(tsr_stream *stream, const tsr_check_strip *strip, const matrix &c, const product &p,
                       const ending &e) {
    switch (strip->type) {
    case TSR_F16: return multiply<uint16_t, F, false>(stream, c, p, e);
    case TSR_BF16: return multiply<bf16_bits, F, false>(stream, c, p, e);
    case TSR_F32: return multiply<float, F, false>(stream, c, p, e);
    default: return multiply<double, F, false>(stream, c, p, e);
    }
}

tsr_status judge(tsr_device *device, tsr_stream *stream, const tsr_check_args *args, const tsr_check_strip *strip) {
    (void)device;
    const tsr_check_space s = tsr_check_space_of(args);
    const matrix c = {strip->data, strip->rows, strip->cols, strip->ld, 1, 0};
    const product p = product_of(s, s.signs_c, s.ld, &s.facts->left_out);
    ending e = {};
    e.kind = ENDS_JUDGED;
    e.facts = s.facts;
    e.sums = s.sums + SUMS * strip->row;
    e.n = strip->cols;
    e.k = args->k;
    e.place_row = args->place_row;
    e.place_col = args->place_col;
    e.noise = tsr_check_noise_of_strip(args->kernel, args->k, strip);
    e.counts = args->counts;
    if (strip->rows == 0 || strip->cols == 0) return TSR_OK;
    if (tsr_dtype_bytes(args->kernel->input) == sizeof(double)) return judge_types<double>(stream, strip, c, p, e);
    return judge_types<float>(stream, strip, c, p, e);
}

} // namespace

const tsr_check_ops tsr_check_cuda = {.device = TSR_DEVICE_CUDA, .follow = follow, .judge = judge};
