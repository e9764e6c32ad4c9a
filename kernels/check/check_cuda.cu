/* Operation: Freivalds' check of a product in the device's memory (check.h): rows of B, A and C times three vectors.
 * Mapping: a warp makes 4 rows of a piece of the columns, so that what it loads of the vectors serves 4 rows; 16 bytes
 * of the matrix a load where rows begin at multiples of that, all 4 rows' ahead of the first product. A load's products
 * are added up in float (of doubles in double), loads in double. Pieces of a row's sum lie apart and are added up in
 * order, by one thread a row, which sees the sums on their way. The same input gives the same bits.
 * A block uses: 256 threads, at most 128 registers, no shared memory.
 * Arithmetic intensity: 4 multiply-adds an element; memory-bound.
 * Columns with NaN or Inf are found where a sum of B shows them: kernels that would leave them out return at once
 * otherwise.
 * Source: check.h. */
#include "kernels/check/check_rules.h"
#include "kernels/device/cuda_compat.h"

namespace {

constexpr int THREADS = 256;
constexpr int WARP = 32;
constexpr int ROWS = 4; /* a warp */
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
template <bool TF32> struct convert {
    static __device__ __forceinline__ float of(uint16_t bits) { return tsr_convert_f16(bits); }
    static __device__ __forceinline__ float of(bf16_bits value) { return tsr_convert_bf16(value.bits); }
    static __device__ __forceinline__ float of(float value) { return TF32 ? tsr_check_tf32(value) : value; }
    static __device__ __forceinline__ double of(double value) { return value; }
};

/* ---- rows times vectors ---------------------------------------------------------------------- */

struct product {
    const void *vectors; /* V × ld, in the arithmetic of A and B */
    int64_t ld, step;    /* from the vectors of a matrix of the batch to the next one's */
    const double *scale; /* of the vectors; NULL: 1 */
    double *partial;     /* pieces × V × all rows */
    int64_t chunk;       /* columns a piece */
    int pieces;
    const unsigned *only;    /* where it holds 0 nothing is done; NULL: always done */
    const unsigned *careful; /* where it holds more than 0, columns with scale 0 are skipped; NULL: never */
};

/* EACH elements of a row, in EACH columns of the vectors. */
template <typename F, int EACH, typename Element>
__device__ __forceinline__ void add_columns(Element element, const F (&x)[V][EACH], bool careful, double (&sum)[V]) {
    F part[V] = {0, 0, 0};
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        F value = element(e);
        if (careful && x[2][e] == 0) value = 0;
        const F scaled = value * x[2][e];
        part[0] += value * x[0][e];
        part[1] += value * x[1][e];
        part[2] += scaled * scaled;
    }
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] += (double)part[v];
}

/* EACH elements of a vector times `scale`; 16 bytes a load where they begin at a multiple of that. */
template <typename F, int EACH> __device__ __forceinline__ void load_vector(const F *from, F scale, F (&to)[EACH]) {
    constexpr int WORD = 16 / (int)sizeof(F);
    if constexpr (EACH % WORD == 0) {
#pragma unroll
        for (int e = 0; e < EACH; e += WORD) {
            const int4 words = __ldg(reinterpret_cast<const int4 *>(from + e));
            memcpy(&to[e], &words, sizeof words);
        }
    } else {
        for (int e = 0; e < EACH; e++) to[e] = from[e];
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) to[e] *= scale;
}

/* Where a warp stands: ROWS rows from `rows` on, of which there are `count`, the last standing for the rest; columns
 * [from, to). */
template <typename T, typename F> struct part {
    const T *rows;
    int64_t ld;
    int count;
    const F *vectors;
    int64_t vector_ld;
    F scale;
    bool careful;
    int64_t from, to;
};

template <typename T, typename F, int EACH, bool TF32>
__device__ __forceinline__ void add_rows(const part<T, F> &p, double (&sum)[ROWS][V]) {
    for (int64_t j = p.from + (int64_t)threadIdx.x % WARP * EACH; j < p.to; j += WARP * EACH) {
        if (j + EACH <= p.to) {
            union {
                int4 words;
                T element[16 / sizeof(T)];
            } of[ROWS];
            F x[V][EACH];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const T *at = p.rows + (r < p.count ? r : p.count - 1) * p.ld + j;
                if (EACH > 1) of[r].words = __ldcs(reinterpret_cast<const int4 *>(at));
                else of[r].element[0] = *at;
            }
#pragma unroll
            for (int v = 0; v < V; v++) load_vector(p.vectors + v * p.vector_ld + j, p.scale, x[v]);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                add_columns<F, EACH>([&](int e) { return convert<TF32>::of(of[r].element[e]); }, x, p.careful, sum[r]);
        } else {
            for (int64_t tail = j; tail < p.to; tail++) {
                F x[V][1];
                for (int v = 0; v < V; v++) x[v][0] = p.vectors[v * p.vector_ld + tail] * p.scale;
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    add_columns<F, 1>(
                        [&](int) { return convert<TF32>::of(p.rows[(r < p.count ? r : p.count - 1) * p.ld + tail]); },
                        x, p.careful, sum[r]);
            }
        }
    }
}

/* A task is a group of ROWS rows and a piece of the columns; neighbours read the same columns. */
template <typename T, typename F, int EACH, bool TF32>
__global__ void __launch_bounds__(THREADS, 2) rows_times(matrix m, product p) {
    if (p.only && *p.only == 0) return;
    const int64_t groups = (m.rows + ROWS - 1) / ROWS, all = m.batch * m.rows;
    const int64_t warps = THREADS / WARP;
    const int64_t tasks = m.batch * groups * p.pieces, step = (int64_t)gridDim.x * warps;
    part<T, F> at = {
        .ld = m.ld, .vector_ld = p.ld, .scale = p.scale ? (F)*p.scale : F(1), .careful = p.careful && *p.careful > 0};
    for (int64_t task = (int64_t)blockIdx.x * warps + threadIdx.x / WARP; task < tasks; task += step) {
        const int64_t group = task % (m.batch * groups), piece = task / (m.batch * groups);
        const int64_t one = group / groups, row = group % groups * ROWS;
        at.rows = static_cast<const T *>(m.data) + one * m.stride + row * m.ld;
        at.vectors = static_cast<const F *>(p.vectors) + one * p.step;
        at.count = (int)(m.rows - row < ROWS ? m.rows - row : ROWS);
        at.from = piece * p.chunk;
        at.to = at.from + p.chunk < m.cols ? at.from + p.chunk : m.cols;
        double sum[ROWS][V];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int v = 0; v < V; v++) sum[r][v] = 0;
        add_rows<T, F, EACH, TF32>(at, sum);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int v = 0; v < V; v++) {
                for (int apart = WARP / 2; apart > 0; apart /= 2)
                    sum[r][v] += __shfl_down_sync(0xffffffffu, sum[r][v], apart);
                if (threadIdx.x % WARP == 0 && r < at.count)
                    p.partial[(piece * V + v) * all + one * m.rows + row + r] = sum[r][v];
            }
    }
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* The largest finite elements of columns, of rows spread over a matrix. */
template <typename T, typename F>
__global__ void find_tops(const T *b, int64_t rows, int64_t ld, int64_t width, F *tops) {
    const int64_t step = rows / TSR_CHECK_SAMPLED > 1 ? rows / TSR_CHECK_SAMPLED : 1;
    for (int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x; j < width; j += (int64_t)gridDim.x * THREADS) {
        F top = 0;
#pragma unroll 8
        for (int64_t l = 0; l < rows; l += step) {
            const F size = fabs(convert<false>::of(b[l * ld + j]));
            if (isfinite(size) && size > top) top = size;
        }
        tops[j] = top;
    }
}

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

template <typename F> __device__ __forceinline__ double scale_of(int64_t exponent) {
    return tsr_check_scale(exponent, sizeof(F) == 4 ? TSR_CHECK_FLOAT : TSR_CHECK_DOUBLE);
}

/* One block. signs: holds B's tops where scales come; `tops`: of columns of A, `k` of them, which its scale is of. */
template <typename F>
__global__ void __launch_bounds__(THREADS)
    draw_signs(F *signs, int64_t ld, int64_t width, const F *tops, int64_t k, uint64_t seed, tsr_check_facts *facts) {
    const auto add = [](double a, double b) { return a + b; };
    const auto lesser = [](double a, double b) { return fmin(a, b); };
    const auto larger = [](double a, double b) { return fmax(a, b); };
    double least = INFINITY, most = -INFINITY;
    double exponents = 0, seen = 0;
    double squares = 0, smallest = INFINITY;
    double top = 0;
    F *scales = signs + 2 * ld;
    for (int64_t j = threadIdx.x; j < width; j += THREADS)
        if (scales[j] > 0) {
            const double exponent = tsr_check_exponent((double)scales[j]);
            least = fmin(least, exponent);
            most = fmax(most, exponent);
            exponents += exponent;
            seen += 1;
        }
    for (int64_t l = threadIdx.x; l < k; l += THREADS) top = fmax(top, (double)tops[l]);
    join(exponents, add);
    join(seen, add);
    join(least, lesser);
    join(most, larger);
    join(top, larger);
    const int64_t usual = seen > 0 ? (int64_t)(exponents / seen) : 0;
    const bool alike = seen == 0 || tsr_check_alike((int64_t)least, (int64_t)most);
    for (int64_t j = threadIdx.x; j < width; j += THREADS) {
        const double scale = scale_of<F>(scales[j] > 0 && !alike ? tsr_check_exponent((double)scales[j]) : usual);
        const double root = TSR_CHECK_ROOT * scale;
        const uint64_t draw = tsr_check_draw(seed, j);
        signs[j] = (F)(scale * tsr_check_sign(draw, 0));
        signs[ld + j] = (F)(scale * tsr_check_sign(draw, 1));
        scales[j] = (F)root;
        squares += root * root;
        smallest = fmin(smallest, scale);
    }
    join(squares, add);
    join(smallest, lesser);
    if (threadIdx.x > 0) return;
    *facts = tsr_check_facts{top > 0 ? scale_of<F>(tsr_check_exponent(top)) : 1, smallest, squares, 0, 0, 0};
}

/* ---- what becomes of the pieces -------------------------------------------------------------- */

__device__ __forceinline__ int64_t thread_row() { return (int64_t)blockIdx.x * THREADS + threadIdx.x; }
__device__ __forceinline__ int64_t thread_step() { return (int64_t)gridDim.x * THREADS; }

/* The thin vectors, of squares their roots. `again`: after columns were left out, if any were. */
template <typename F>
__global__ void add_thin(const double *partial, int pieces, int64_t rows, F *thin, int64_t ld, tsr_check_facts *facts,
                         bool again) {
    if (again && facts->found == 0) return;
    for (int64_t row = thread_row(); row < rows; row += thread_step()) {
        double sum[V] = {0, 0, 0};
        for (int piece = 0; piece < pieces; piece++)
            for (int v = 0; v < V; v++) sum[v] += partial[((int64_t)piece * V + v) * rows + row];
        thin[row] = (F)sum[0];
        thin[ld + row] = (F)sum[1];
        thin[2 * ld + row] = (F)sqrt(sum[2]);
        if (!again && !(isfinite(sum[0]) && isfinite(sum[1]))) facts->found = 1;
    }
}

/* Columns of B that hold NaN or Inf, in the rows whose sums show it; a block a row. */
template <typename T, typename F>
__global__ void leave_out(matrix b, const F *thin, int64_t ld, F *signs, int64_t signs_ld, tsr_check_facts *facts,
                          bool opens) {
    if (facts->found == 0) return;
    for (int64_t row = blockIdx.x; row < b.batch * b.rows; row += gridDim.x) {
        if (isfinite(thin[row]) && isfinite(thin[ld + row])) continue;
        const T *elements = static_cast<const T *>(b.data) + row / b.rows * b.stride + row % b.rows * b.ld;
        for (int64_t j = threadIdx.x; j < b.cols; j += THREADS) {
            if (isfinite(convert<false>::of(elements[j]))) continue;
            if (!opens && signs[2 * signs_ld + j] != 0) facts->spoiled = 1;
            for (int v = 0; v < V; v++) signs[v * signs_ld + j] = 0;
            facts->left_out = 1;
        }
    }
}

__global__ void add_sums(const double *partial, int pieces, int64_t rows, double *sums, bool accumulate) {
    for (int64_t row = thread_row(); row < rows; row += thread_step()) {
        double *to = sums + SUMS * row;
        double sum[V] = {0, 0, 0};
        double largest = 0;
        if (accumulate) {
            for (int v = 0; v < V; v++) sum[v] = to[v];
            largest = to[V];
        }
        for (int piece = 0; piece < pieces; piece++) {
            for (int v = 0; v < V; v++) sum[v] += partial[((int64_t)piece * V + v) * rows + row];
            largest = fmax(largest, fmax(fabs(sum[0]), fabs(sum[1])));
        }
        for (int v = 0; v < V; v++) to[v] = sum[v];
        to[V] = largest;
    }
}

typedef unsigned long long word;

struct judgement {
    int64_t n, k, place_row, place_col;
    tsr_check_noise noise;
};

__global__ void judge(const double *partial, int pieces, int64_t rows, const double *sums, const tsr_check_facts *facts,
                      judgement of, tsr_check_counts *counts) {
    unsigned judged = 0, unjudged = 0;
    unsigned wrong = 0;
    double worst = 0;
    for (int64_t row = thread_row(); row < rows; row += thread_step()) {
        const double *z = sums + SUMS * row;
        double c[V] = {0, 0, 0}, ratio;
        for (int piece = 0; piece < pieces; piece++)
            for (int v = 0; v < V; v++) c[v] += partial[((int64_t)piece * V + v) * rows + row];
        const tsr_row_verdict verdict = tsr_check_row(z, z[2], z[3], c, c[2], of.n, of.k, facts, &of.noise, &ratio);
        judged += verdict != TSR_ROW_UNJUDGED;
        unjudged += verdict == TSR_ROW_UNJUDGED;
        worst = fmax(worst, ratio);
        if (verdict != TSR_ROW_WRONG && verdict != TSR_ROW_DOUBTFUL) continue;
        wrong += verdict == TSR_ROW_WRONG;
        const word place = atomicAdd(reinterpret_cast<word *>(&counts->doubtful), (word)1);
        if (place >= TSR_CHECK_PLACES) continue;
        counts->place[place].row = of.place_row;
        counts->place[place].col = of.place_col;
    }
    if (judged > 0) atomicAdd(reinterpret_cast<word *>(&counts->judged), (word)judged);
    if (unjudged > 0) atomicAdd(reinterpret_cast<word *>(&counts->unjudged), (word)unjudged);
    if (wrong > 0) atomicAdd(reinterpret_cast<word *>(&counts->wrong), (word)wrong);
    word bits; /* of doubles ≥ 0: they compare as these do */
    memcpy(&bits, &worst, sizeof bits);
    if (worst > 0) atomicMax(reinterpret_cast<word *>(&counts->worst_bits), bits);
}

/* ---- launches -------------------------------------------------------------------------------- */

int pieces_of(int64_t cols) { return (int)tsr_max(1, tsr_ceil_div(cols, tsr_check_chunk(cols))); }

/* For kernels that stride over the rest. */
tsr_status blocks_for(int64_t items, int64_t each, dim3 *grid) {
    return tsr_cuda_grid(1, tsr_max(1, items), 1, each, grid);
}

template <typename T, typename F, bool TF32> tsr_status multiply(tsr_stream *stream, const matrix &m, product p) {
    constexpr int EACH = 16 / (int)sizeof(T);
    const int64_t bytes = (int64_t)sizeof(T);
    const bool wide = ((uintptr_t)m.data | (uintptr_t)(m.ld * bytes) | (uintptr_t)(m.stride * bytes)) % 16 == 0 &&
                      p.step * (int64_t)sizeof(F) % 16 == 0;
    dim3 grid;
    p.chunk = tsr_check_chunk(m.cols);
    p.pieces = pieces_of(m.cols);
    TSR_TRY(blocks_for(m.batch * tsr_ceil_div(m.rows, ROWS) * p.pieces, THREADS / WARP, &grid));
    if (wide) return TSR_LAUNCH((rows_times<T, F, EACH, TF32>), grid, THREADS, 0, stream, m, p);
    return TSR_LAUNCH((rows_times<T, F, 1, TF32>), grid, THREADS, 0, stream, m, p);
}

struct launch_parts {
    matrix a, b, c;
    tsr_check_space space;
};

/* The signs of a block; the partial sums' place holds A's tops meanwhile. */
template <typename T, typename F>
tsr_status open_block(tsr_stream *stream, const tsr_check_args *args, const launch_parts &l) {
    const tsr_check_space &s = l.space;
    F *signs = (F *)s.signs, *tops = (F *)s.partial;
    dim3 columns, along_k;
    TSR_TRY(blocks_for(s.width, THREADS, &columns));
    TSR_TRY(blocks_for(l.a.cols, THREADS, &along_k));
    TSR_TRY(TSR_LAUNCH((find_tops<T, F>), columns, THREADS, 0, stream, static_cast<const T *>(l.b.data), l.b.rows,
                       l.b.ld, s.width, signs + 2 * s.ld));
    TSR_TRY(TSR_LAUNCH((find_tops<T, F>), along_k, THREADS, 0, stream, static_cast<const T *>(l.a.data), l.a.rows,
                       l.a.ld, l.a.cols, tops));
    return TSR_LAUNCH(draw_signs<F>, dim3(1), THREADS, 0, stream, signs, s.ld, s.width, (const F *)tops, l.a.cols,
                      args->seed, s.facts);
}

/* B·signs to the thin vectors; once more without the columns that hold NaN or Inf, where such are found. */
template <typename T, typename F, bool TF32>
tsr_status multiply_b(tsr_stream *stream, const tsr_check_args *args, const launch_parts &l) {
    const tsr_check_space &s = l.space;
    const int pieces = pieces_of(l.b.cols);
    const int64_t depth = l.b.batch * l.b.rows;
    F *signs = (F *)s.signs, *thin = (F *)s.thin;
    dim3 grid, rows;
    TSR_TRY(blocks_for(depth, THREADS, &grid));
    TSR_TRY(blocks_for(tsr_min(depth, 1024), 1, &rows));
    const product p = {s.signs, s.ld, 0, nullptr, s.partial, 0, 0, nullptr, &s.facts->left_out};
    product again = p;
    again.only = &s.facts->found;
    TSR_TRY(TSR_CUDA(cudaMemsetAsync(&s.facts->found, 0, sizeof s.facts->found, tsr_cuda_stream(stream))));
    TSR_TRY((multiply<T, F, TF32>(stream, l.b, p)));
    TSR_TRY(TSR_LAUNCH(add_thin<F>, grid, THREADS, 0, stream, s.partial, pieces, depth, thin, s.depth, s.facts, false));
    TSR_TRY(TSR_LAUNCH((leave_out<T, F>), rows, THREADS, 0, stream, l.b, (const F *)thin, s.depth, signs, s.ld, s.facts,
                       args->opens));
    TSR_TRY((multiply<T, F, TF32>(stream, l.b, again)));
    return TSR_LAUNCH(add_thin<F>, grid, THREADS, 0, stream, s.partial, pieces, depth, thin, s.depth, s.facts, true);
}

template <typename T, bool TF32, typename C>
tsr_status follow_types(tsr_stream *stream, const tsr_check_args *args, const launch_parts &l) {
    typedef typename arithmetic<T>::type F;
    const tsr_check_space &s = l.space;
    const int64_t rows = l.a.batch * l.a.rows;
    double *sums = s.sums + SUMS * args->row;
    const double *scale = &s.facts->of_a;
    dim3 grid;
    TSR_TRY(blocks_for(rows, THREADS, &grid));
    if (args->opens) TSR_TRY((open_block<T, F>(stream, args, l)));
    TSR_TRY((multiply_b<T, F, TF32>(stream, args, l)));
    const product of_a = {s.thin, s.depth, l.b.batch > 1 ? l.b.rows : 0, scale, s.partial, 0, 0, nullptr, nullptr};
    TSR_TRY((multiply<T, F, TF32>(stream, l.a, of_a)));
    TSR_TRY(TSR_LAUNCH(add_sums, grid, THREADS, 0, stream, s.partial, pieces_of(l.a.cols), rows, sums,
                       args->gemm->accumulate));
    if (!args->closes) return TSR_OK;
    const product of_c = {s.signs, s.ld, 0, scale, s.partial, 0, 0, nullptr, &s.facts->left_out};
    TSR_TRY((multiply<C, F, false>(stream, l.c, of_c)));
    const judgement of = {l.c.cols, args->k, args->place_row, args->place_col,
                          tsr_check_noise_of(args->kernel, args->k)};
    return TSR_LAUNCH(judge, grid, THREADS, 0, stream, s.partial, pieces_of(l.c.cols), rows, sums, s.facts, of,
                      args->counts);
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

} // namespace

const tsr_check_ops tsr_check_cuda = {.device = TSR_DEVICE_CUDA, .follow = follow};
