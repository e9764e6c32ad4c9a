/* The memory kernels of the CUDA device: pack, finish, add.
 * Mapping: rows: blocks of 32 × 8 threads, a block covers 128 columns (or groups of columns) × 8 rows. Transposes: tiles of 64 × 64,
 *   256 threads that load, convert and turn 4 × 4 elements each; 16 bytes a thread on either side where addresses allow it, else
 *   neighbouring elements by neighbouring lanes. Blocks stride over the matrix, so that no grid limit matters; indices are 64-bit.
 * Shared memory: transpose 64 × 64 elements (16 or 32 kB) in units of 16 bytes; unit u of row j stands at u ^ turn(j), so that
 *   neither the rows written nor the columns read meet in one bank.
 * Requirements: source aligned to its elements. Rows 16-byte aligned and of the target's type are copied 16 bytes a thread.
 * Arithmetic intensity: none to 3 flop an element; memory-bound, reads and writes each element once.
 * Measured: `tessera bench memory`, docs/performance.md. */
#include "kernels/cuda_compat.h"
#include "kernels/element.h"
#include "kernels/gemm_cuda.h"
#include "kernels/registry.h"

#include <stdint.h>

#define LANES 32 /* threads in x */
#define LINES 8  /* threads in y */
#define ITEMS 4  /* columns or groups of columns a thread in a row */
#define GROUP 4  /* neighbouring elements that a thread loads at once, where they are aligned */
#define TILE 64  /* edge of a transpose tile: LANES · LINES threads of GROUP × GROUP elements */

namespace {

/* Elements that are loaded or stored together. */
template <typename W, int COUNT> struct alignas(COUNT * sizeof(W) < 16 ? COUNT * sizeof(W) : 16) group {
    W of[COUNT];
};

/* A bfloat16 to convert to. Integers that a float would round go through double. */
struct bf16 {
    uint16_t bits;
    bf16() = default;
    TSR_HOST_DEVICE explicit bf16(float value) : bits(tsr_bf16_encode_float(value)) {}
    TSR_HOST_DEVICE explicit bf16(double value) : bits(tsr_bf16_encode(value)) {}
    template <typename I> TSR_HOST_DEVICE explicit bf16(I value) : bits(sizeof(I) < 4 ? bf16((float)value).bits : bf16((double)value).bits) {}
};

/* Elements of a target that a transpose moves at once in shared memory. */
template <typename T> constexpr int EACH = sizeof(T) < 4 ? GROUP : 16 / (int)sizeof(T);

/* ---- source elements ------------------------------------------------------------------------------------------------ */

template <tsr_dtype D> struct source;
#define DEFINE_SOURCE(code, suffix, bits)                                                                             \
    template <> struct source<TSR_##code> {                                                                           \
        typedef uint##bits##_t word_type;                                                                             \
        template <typename T> TSR_HOST_DEVICE static inline T convert(word_type word, bool swapped) {                 \
            return static_cast<T>(tsr_convert_##suffix(swapped ? tsr_reverse_##bits(word) : word));                   \
        }                                                                                                             \
        template <typename T> TSR_HOST_DEVICE static inline T load(const void *base, int64_t at, bool swapped) {      \
            return convert<T>(static_cast<const word_type *>(base)[at], swapped);                                     \
        }                                                                                                             \
    };
TSR_SOURCE_LIST(DEFINE_SOURCE)

/* ---- kernels --------------------------------------------------------------------------------------------------------- */

/* Where a thread stands in rows × cols: calls item(i, j0) for every row and first column of the block's strides. A thread's
 * N columns are j0, j0 + LANES, …; each kernel loads all of them before it stores any, to have more loads on their way. */
template <int N = ITEMS, typename F> __device__ __forceinline__ void for_items(int64_t rows, int64_t cols, F item) {
    const int64_t row_step = (int64_t)gridDim.y * LINES, col_step = (int64_t)gridDim.x * (LANES * N);
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < rows; i += row_step)
        for (int64_t j0 = (int64_t)blockIdx.x * (LANES * N) + threadIdx.x; j0 < cols; j0 += col_step) item(i, j0);
}

/* to[j] = load(j) for the thread's columns from j0 that are below cols */
template <int N = ITEMS, typename T, typename F> __device__ __forceinline__ void move_items(T *to, int64_t j0, int64_t cols, F load) {
    T value[N];
#pragma unroll
    for (int item = 0; item < N; item++)
        if (j0 + item * LANES < cols) value[item] = load(j0 + item * LANES);
#pragma unroll
    for (int item = 0; item < N; item++)
        if (j0 + item * LANES < cols) to[j0 + item * LANES] = value[item];
}

/* Columns a thread of convert_rows: more where elements are narrow. */
template <tsr_dtype D> struct columns {
    static constexpr int COUNT = sizeof(typename source<D>::word_type) < 4 ? 2 * ITEMS : ITEMS;
};

/* to (rows × cols) = from (rows × cols), converted; any alignment */
template <tsr_dtype D, typename T>
__global__ void convert_rows(const void *from, int64_t ld_from, bool swapped, T *to, int64_t ld_to, int64_t rows, int64_t cols) {
    constexpr int N = columns<D>::COUNT;
    for_items<N>(rows, cols, [=](int64_t i, int64_t j0) {
        move_items<N>(to + i * ld_to, j0, cols, [=](int64_t j) { return source<D>::template load<T>(from, i * ld_from + j, swapped); });
    });
}

/* The same for rows that begin aligned to GROUP elements, on both sides: GROUP columns at once, the last ones of a row singly. */
template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(LANES *LINES, sizeof(typename source<D>::word_type) == 8 ? 3 : 4)
    convert_groups(const void *from, int64_t ld_from, bool swapped, T *to, int64_t ld_to, int64_t rows, int64_t cols) {
    typedef group<typename source<D>::word_type, GROUP> words;
    typedef group<T, EACH<T>> unit;
    const int64_t whole = cols / GROUP;
    for_items(rows, whole + (cols % GROUP > 0), [=](int64_t i, int64_t g0) {
        const words *row = reinterpret_cast<const words *>(static_cast<const typename source<D>::word_type *>(from) + i * ld_from);
        words word[ITEMS] = {};
#pragma unroll
        for (int item = 0; item < ITEMS; item++)
            if (g0 + item * LANES < whole) word[item] = row[g0 + item * LANES];
#pragma unroll
        for (int item = 0; item < ITEMS; item++) {
            const int64_t g = g0 + item * LANES;
#pragma unroll
            for (int h = 0; h < GROUP / EACH<T> && g < whole; h++) {
                unit value;
#pragma unroll
                for (int e = 0; e < EACH<T>; e++) value.of[e] = source<D>::template convert<T>(word[item].of[h * EACH<T> + e], swapped);
                *reinterpret_cast<unit *>(to + i * ld_to + g * GROUP + h * EACH<T>) = value;
            }
            if (g == whole)
                for (int64_t j = g * GROUP; j < cols; j++) to[i * ld_to + j] = source<D>::template load<T>(from, i * ld_from + j, swapped);
        }
    });
}

/* Where unit u of row j of a tile of T stands, in units of EACH<T> elements. For eight neighbouring u, and for eight j that differ in
 * their bits 0 to 2 or 2 to 4 alone, these are eight different places in a line of 128 bytes. */
template <typename T> __device__ __forceinline__ int place_of(int j, int u) {
    return j * (TILE / EACH<T>) + (u ^ ((j ^ j >> 3) & 7));
}

/* The thread's GROUP × GROUP elements of a tile (rows × cols from `from`): rows y·GROUP + r, and columns x·GROUP + c when aligned, else
 * x + c·TILE/GROUP; what lies outside stays as it is. All loads are on their way before one is used. */
template <typename W>
__device__ __forceinline__ void load_tile(group<W, GROUP> word[GROUP], const W *from, int64_t ld, int rows, int cols, bool aligned, int x, int y) {
#pragma unroll
    for (int r = 0; r < GROUP; r++) {
        if (y * GROUP + r >= rows) continue;
        const W *row = from + (y * GROUP + r) * ld;
        if (aligned && x * GROUP + GROUP <= cols) {
            word[r] = *reinterpret_cast<const group<W, GROUP> *>(row + x * GROUP);
            continue;
        }
#pragma unroll
        for (int c = 0; c < GROUP; c++) {
            const int j = aligned ? x * GROUP + c : x + c * (TILE / GROUP);
            if (j < cols) word[r].of[c] = row[j];
        }
    }
}

/* to (cols × rows, both ≤ TILE) = the tile in shared memory, whose rows those of `to` are */
template <typename T>
__device__ __forceinline__ void store_tile(const group<T, EACH<T>> *tile, T *to, int64_t ld, int rows, int cols, bool aligned, int t) {
    constexpr int UNITS = TILE / EACH<T>, THREADS = LANES * LINES;
    if (aligned && rows == TILE) {
#pragma unroll
        for (int at = 0; at < TILE * UNITS; at += THREADS) {
            const int j = (at + t) / UNITS, u = (at + t) % UNITS;
            if (j < cols) *reinterpret_cast<group<T, EACH<T>> *>(to + j * ld + u * EACH<T>) = tile[place_of<T>(j, u)];
        }
        return;
    }
    for (int at = t; at < TILE * TILE; at += THREADS) {
        const int j = at / TILE, i = at % TILE;
        if (j < cols && i < rows) to[j * ld + i] = tile[place_of<T>(j, i / EACH<T>)].of[i % EACH<T>];
    }
}

/* to (cols × rows) = from (rows × cols) transposed and converted, one tile at a time through shared memory */
template <tsr_dtype D, typename T>
__global__ void __launch_bounds__(LANES *LINES, sizeof(typename source<D>::word_type) == 8 || sizeof(T) == 8 ? 2 : 3)
    convert_transposed(const void *from, int64_t ld_from, bool from_aligned, bool swapped, T *to, int64_t ld_to, bool to_aligned, int64_t rows,
                       int64_t cols) {
    typedef typename source<D>::word_type word_type;
    __shared__ group<T, EACH<T>> tile[TILE * TILE / EACH<T>]; /* columns of the source × its rows */
    const int t = (int)(threadIdx.y * LANES + threadIdx.x), x = t % (TILE / GROUP), y = t / (TILE / GROUP);
    for (int64_t i0 = (int64_t)blockIdx.y * TILE; i0 < rows; i0 += (int64_t)gridDim.y * TILE)
        for (int64_t j0 = (int64_t)blockIdx.x * TILE; j0 < cols; j0 += (int64_t)gridDim.x * TILE) {
            const int height = (int)min(rows - i0, (int64_t)TILE), width = (int)min(cols - j0, (int64_t)TILE);
            group<word_type, GROUP> word[GROUP] = {};
            load_tile(word, static_cast<const word_type *>(from) + i0 * ld_from + j0, ld_from, height, width, from_aligned, x, y);
#pragma unroll
            for (int c = 0; c < GROUP; c++) {
                const int j = from_aligned ? x * GROUP + c : x + c * (TILE / GROUP);
#pragma unroll
                for (int h = 0; h < GROUP / EACH<T>; h++) {
                    group<T, EACH<T>> unit;
#pragma unroll
                    for (int e = 0; e < EACH<T>; e++) unit.of[e] = source<D>::template convert<T>(word[h * EACH<T> + e].of[c], swapped);
                    tile[place_of<T>(j, y * (GROUP / EACH<T>) + h)] = unit;
                }
            }
            __syncthreads();
            store_tile(tile, to + j0 * ld_to + i0, ld_to, height, width, to_aligned, t);
            __syncthreads();
        }
}

/* Words W of 2, 4 or 16 bytes: to (rows × words) = from (rows × words), or zeros when from is NULL */
template <typename W>
__global__ void copy_rows(const W *from, int64_t ld_from, W *to, int64_t ld_to, int64_t rows, int64_t words) {
    for_items(rows, words, [=](int64_t i, int64_t j0) {
        move_items(to + i * ld_to, j0, words, [=](int64_t j) { return from ? from[i * ld_from + j] : W{}; });
    });
}

TSR_HOST_DEVICE static inline double load_double(tsr_element element, const void *base, int64_t at) {
    switch (element.dtype) {
#define CASE(code, suffix, bits)                                                                                      \
    case TSR_##code: return source<TSR_##code>::load<double>(base, at, element.swapped);
        TSR_SOURCE_LIST(CASE)
#undef CASE
    default: return 0.0;
    }
}

template <typename O> struct rounded {
    __device__ static inline O from(double value) { return (O)value; }
};
template <> struct rounded<uint16_t> { /* half */
    __device__ static inline uint16_t from(double value) { return tsr_half_encode(value); }
};

/* out (rows × cols) = alpha·sum + beta·c0; product and sum rounded apart, as the CPU device does */
template <typename A, typename O>
__global__ void finish_rows(const A *sum, int64_t ld_sum, double alpha, double beta, tsr_element c0_element, const void *c0,
                            int64_t ld_c0, O *out, int64_t ld_out, int64_t rows, int64_t cols) {
    for_items(rows, cols, [=](int64_t i, int64_t j0) {
        move_items(out + i * ld_out, j0, cols, [=](int64_t j) {
            double value = __dmul_rn(alpha, (double)sum[i * ld_sum + j]);
            if (beta != 0.0) value = __dadd_rn(value, __dmul_rn(beta, load_double(c0_element, c0, i * ld_c0 + j)));
            return rounded<O>::from(value);
        });
    });
}

template <typename T>
__global__ void add_rows(T *sum, int64_t ld_sum, const T *part, int64_t ld_part, int64_t rows, int64_t cols) {
    for_items(rows, cols, [=](int64_t i, int64_t j0) {
        move_items(sum + i * ld_sum, j0, cols, [=](int64_t j) { return sum[i * ld_sum + j] + part[i * ld_part + j]; });
    });
}

/* ---- launches -------------------------------------------------------------------------------------------------------- */

const dim3 threads(LANES, LINES);

template <typename W>
static tsr_status launch_copy(tsr_stream *stream, const void *from, size_t step_from, void *to, size_t step_to, int64_t rows, size_t bytes) {
    int64_t words = (int64_t)(bytes / sizeof(W));
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(rows, words, LINES, LANES * ITEMS, &grid));
    return TSR_LAUNCH((copy_rows<W>), grid, threads, 0, stream, static_cast<const W *>(from),
                      (int64_t)(step_from / sizeof(W)), static_cast<W *>(to), (int64_t)(step_to / sizeof(W)), rows, words);
}

/* rows of `bytes`, `step` bytes apart, everything a multiple of 2 bytes; zeros when from is NULL */
static tsr_status copy_matrix(tsr_stream *stream, const void *from, size_t step_from, void *to, size_t step_to, int64_t rows, size_t bytes) {
    if (rows == 0 || bytes == 0) return TSR_OK;
    const size_t all = (uintptr_t)from | (uintptr_t)to | step_from | step_to | bytes;
    if (all % sizeof(uint4) == 0) return launch_copy<uint4>(stream, from, step_from, to, step_to, rows, bytes);
    if (all % sizeof(uint32_t) == 0) return launch_copy<uint32_t>(stream, from, step_from, to, step_to, rows, bytes);
    return launch_copy<uint16_t>(stream, from, step_from, to, step_to, rows, bytes);
}

/* Whether rows `ld` elements of `width` bytes apart all begin aligned to a group (16 bytes where it is larger). */
static bool is_grouped(const void *data, int64_t ld, size_t width) {
    size_t bytes = (size_t)tsr_min((int64_t)(GROUP * width), 16);
    return ((uintptr_t)data | (size_t)ld * width) % bytes == 0;
}

template <tsr_dtype D, typename T> static tsr_status launch_convert(tsr_stream *stream, const tsr_pack_args *args) {
    const tsr_view *from = &args->from;
    T *to = static_cast<T *>(args->to);
    const void *data = from->data;
    const bool swapped = from->element.swapped;
    const bool from_grouped = is_grouped(data, from->ld, tsr_dtype_bytes(D)), to_grouped = is_grouped(to, args->ld, sizeof(T));
    dim3 grid;
    if (args->transpose) {
        TSR_TRY(tsr_cuda_grid(from->rows, from->cols, TILE, TILE, &grid));
        return TSR_LAUNCH((convert_transposed<D, T>), grid, threads, 0, stream, data, from->ld, from_grouped, swapped, to, args->ld, to_grouped,
                          from->rows, from->cols);
    }
    if (from_grouped && to_grouped) {
        TSR_TRY(tsr_cuda_grid(from->rows, tsr_ceil_div(from->cols, GROUP), LINES, LANES * ITEMS, &grid));
        return TSR_LAUNCH((convert_groups<D, T>), grid, threads, 0, stream, data, from->ld, swapped, to, args->ld, from->rows, from->cols);
    }
    TSR_TRY(tsr_cuda_grid(from->rows, from->cols, LINES, LANES * columns<D>::COUNT, &grid));
    return TSR_LAUNCH((convert_rows<D, T>), grid, threads, 0, stream, data, from->ld, swapped, to, args->ld, from->rows, from->cols);
}

template <tsr_dtype D> static tsr_status convert_from(tsr_stream *stream, const tsr_pack_args *args) {
    if (args->type == TSR_F32) return launch_convert<D, float>(stream, args);
    if (args->type == TSR_F64) return launch_convert<D, double>(stream, args);
    return launch_convert<D, bf16>(stream, args);
}

static tsr_status convert(tsr_stream *stream, const tsr_pack_args *args) {
    const tsr_view *from = &args->from;
    size_t bytes = tsr_dtype_bytes(args->type);
    if (from->rows == 0 || from->cols == 0) return TSR_OK;
    if (!args->transpose && from->element.dtype == args->type && !from->element.swapped)
        return copy_matrix(stream, from->data, (size_t)from->ld * bytes, args->to, (size_t)args->ld * bytes, from->rows,
                           (size_t)from->cols * bytes);
    if (args->type == TSR_F16) return launch_convert<TSR_U16, uint16_t>(stream, args); /* from halves: only moved */
    switch (from->element.dtype) {
#define CASE(code, suffix, bits)                                                                                      \
    case TSR_##code: return convert_from<TSR_##code>(stream, args);
        TSR_SOURCE_LIST(CASE)
#undef CASE
    default: return tsr_fail(TSR_ERR_UNSUPPORTED, "pack: element type %d is unknown: use one of tsr_dtype", (int)from->element.dtype);
    }
}

static tsr_status check_aligned(const char *what, const void *data, tsr_dtype dtype) {
    if ((uintptr_t)data % tsr_dtype_bytes(dtype) == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "%s at %p is not aligned to its %s elements: align it", what, data, tsr_dtype_name(dtype));
}

static tsr_status pack(tsr_device *, tsr_stream *stream, const tsr_pack_args *args) {
    TSR_TRY(tsr_pack_check(args));
    TSR_TRY(check_aligned("pack: source", args->from.data, args->from.element.dtype));
    TSR_TRY(check_aligned("pack: target", args->to, args->type));
    size_t bytes = tsr_dtype_bytes(args->type), step = (size_t)args->ld * bytes;
    int64_t rows = args->transpose ? args->from.cols : args->from.rows;
    int64_t cols = args->transpose ? args->from.rows : args->from.cols;
    char *to = static_cast<char *>(args->to);
    TSR_TRY(convert(stream, args));
    if (args->padded_rows > rows) /* zeros below and to the right of the operand */
        TSR_TRY(copy_matrix(stream, nullptr, 0, to + (size_t)rows * step, step, args->padded_rows - rows, (size_t)args->padded_cols * bytes));
    return copy_matrix(stream, nullptr, 0, to + (size_t)cols * bytes, step, rows, (size_t)(args->padded_cols - cols) * bytes);
}

template <typename A, typename O> static tsr_status launch_finish(tsr_stream *stream, const tsr_finish_args *args) {
    const tsr_view *sum = &args->accumulated, *out = &args->out;
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(out->rows, out->cols, LINES, LANES * ITEMS, &grid));
    return TSR_LAUNCH((finish_rows<A, O>), grid, threads, 0, stream,
                      static_cast<const A *>(sum->data), sum->ld, args->alpha, args->beta, args->c0.element,
                      static_cast<const void *>(args->c0.data), args->c0.ld, static_cast<O *>(out->data), out->ld, out->rows, out->cols);
}

template <typename A> static tsr_status finish_from(tsr_stream *stream, const tsr_finish_args *args) {
    if (args->out.element.dtype == TSR_F64) return launch_finish<A, double>(stream, args);
    if (args->out.element.dtype == TSR_F32) return launch_finish<A, float>(stream, args);
    return launch_finish<A, uint16_t>(stream, args);
}

static tsr_status finish(tsr_device *, tsr_stream *stream, const tsr_finish_args *args) {
    TSR_TRY(tsr_finish_check(args));
    if (args->beta != 0.0) TSR_TRY(check_aligned("finish: c0", args->c0.data, args->c0.element.dtype));
    const tsr_view *sum = &args->accumulated, *out = &args->out;
    if (out->rows == 0 || out->cols == 0) return TSR_OK;
    if (args->alpha == 1.0 && args->beta == 0.0 && sum->element.dtype == out->element.dtype) {
        size_t bytes = tsr_dtype_bytes(out->element.dtype);
        return copy_matrix(stream, sum->data, (size_t)sum->ld * bytes, out->data, (size_t)out->ld * bytes, out->rows, (size_t)out->cols * bytes);
    }
    return sum->element.dtype == TSR_F32 ? finish_from<float>(stream, args) : finish_from<double>(stream, args);
}

template <typename T> static tsr_status launch_add(tsr_stream *stream, tsr_view sum, tsr_view part) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(sum.rows, sum.cols, LINES, LANES * ITEMS, &grid));
    return TSR_LAUNCH((add_rows<T>), grid, threads, 0, stream, static_cast<T *>(sum.data), sum.ld,
                      static_cast<const T *>(part.data), part.ld, sum.rows, sum.cols);
}

static tsr_status add(tsr_device *, tsr_stream *stream, tsr_view sum, tsr_view part) {
    TSR_TRY(tsr_add_check(sum, part));
    if (sum.rows == 0 || sum.cols == 0) return TSR_OK;
    return sum.element.dtype == TSR_F32 ? launch_add<float>(stream, sum, part) : launch_add<double>(stream, sum, part);
}

} // namespace

const tsr_pack_ops tsr_pack_cuda = {/* device */ TSR_DEVICE_CUDA, pack, finish, add};
