/* The memory kernels of the CUDA device: pack, add, finish and mirror.
 * Mapping: rows (pack_units.h): blocks of 32 × 8 threads, a warp a row, 1 to 4 units of 16 bytes of the target a
 * thread, all loads ahead of the first store. Transposes (pack_tiles.h): 256 threads a tile of 256 or 512 bytes ×
 * 256 or 512 bytes, down the source's columns first.
 *   What of the target lies outside the operand is written as zeros by the same stores. Blocks stride over the
 *   matrix, so that no grid limit matters; indices are 64-bit.
 * A block uses: 256 threads, at most 80 registers; transposes 19 to 39 kB of shared memory.
 * Requirements: source and target aligned to their elements.
 * Arithmetic intensity: none to 3 flop an element; memory-bound, reads and writes each element once.
 * Measured at 8192 on an H200, 2026-11-21, of the device's own copy (4145 GB/s): rows 94 to 100 %; transposes of f32
 * 98 %, f64 97 %, f16 93 %; with odd rows 93, 95, 88 %. `tessera bench memory`, docs/measurements/gpu_memory.md.
 * Reference: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009. */
#include <float.h>

#include "kernels/base/one_nan.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_complex.h"
#include "kernels/pack/pack_tiles.h"

namespace {

constexpr int ITEMS = 4; /* columns a thread in a row of finish */

/* ---- finish ---------------------------------------------------------------------------------- */

/* Where a thread stands in rows × cols: calls item(i, j0) for every row and first column of the block's strides. A
 * thread's N columns are j0, j0 + LANES, …; each kernel loads all of them before it stores any, to have more loads
 * on their way. */
template <int N = ITEMS, typename F> __device__ __forceinline__ void for_items(int64_t rows, int64_t cols, F item) {
    const int64_t row_step = (int64_t)gridDim.y * LINES, col_step = (int64_t)gridDim.x * (LANES * N);
    for (int64_t i = (int64_t)blockIdx.y * LINES + threadIdx.y; i < rows; i += row_step)
        for (int64_t j0 = (int64_t)blockIdx.x * (LANES * N) + threadIdx.x; j0 < cols; j0 += col_step) item(i, j0);
}

/* to[j] = load(j) for the thread's columns from j0 that are below cols */
template <int N = ITEMS, typename T, typename F>
__device__ __forceinline__ void move_items(T *to, int64_t j0, int64_t cols, F load) {
    T value[N];
#pragma unroll
    for (int item = 0; item < N; item++)
        if (j0 + item * LANES < cols) value[item] = load(j0 + item * LANES);
#pragma unroll
    for (int item = 0; item < N; item++)
        if (j0 + item * LANES < cols) to[j0 + item * LANES] = value[item];
}

/* out (rows × cols) = alpha·sum + beta·c0; product and sum rounded apart, as the CPU device does. Finite values that
 * become infinite are counted: a thread with any adds its own once. */
template <typename A, typename O>
__global__ void finish_rows(const A *sum, int64_t ld_sum, double alpha, double beta, tsr_element c0_element,
                            const void *c0, int64_t ld_c0, O *out, int64_t ld_out, int64_t rows, int64_t cols,
                            uint64_t *overflows) {
    unsigned count = 0; /* a thread has fewer than 2^32 elements */
    for_items(rows, cols, [&](int64_t i, int64_t j0) {
        move_items(out + i * ld_out, j0, cols, [&](int64_t j) {
            double value = __dmul_rn(alpha, (double)sum[i * ld_sum + j]);
            if (beta != 0.0) value = __dadd_rn(value, __dmul_rn(beta, load_double(c0_element, c0, i * ld_c0 + j)));
            const O element = rounded<O>::from(value);
            if (rounded<O>::infinite(element)) count += fabs(value) <= DBL_MAX;
            return element;
        });
    });
    if (count > 0 && overflows) atomicAdd(reinterpret_cast<unsigned long long *>(overflows), (unsigned long long)count);
}

/* ---- add ------------------------------------------------------------------------------------- */

/* to[i] (+)= from[i] + from[i + stride] + …, each addition rounded. A thread has whole elements. */
template <typename T>
__global__ void add_parts(T *to, const T *from, int64_t stride, int parts, int64_t count, bool accumulate) {
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        T sum = accumulate ? tsr_one_nan(to[i] + from[i]) : tsr_one_nan(from[i]);
        for (int part = 1; part < parts; part++) sum = tsr_one_nan(sum + from[part * stride + i]);
        to[i] = sum;
    }
}

/* ---- mirror ---------------------------------------------------------------------------------- */

/* Squares of LANES × LANES at and below the diagonal of a tile of n × n, through shared memory: rows are read and
 * written along rows. A block touches its square and the mirrored one alone. Of `batch` tiles, n rows apart, a layer of
 * the grid takes every gridDim.z-th. */
template <typename W>
__global__ void mirror_tiles(W *tiles, int64_t ld, int64_t n, int64_t batch, tsr_triangle triangle) {
    __shared__ W square[LANES][LANES + 1];
    const int64_t squares = (n + LANES - 1) / LANES;
    const int x = (int)threadIdx.x;
    for (int64_t one = blockIdx.z; one < batch; one += gridDim.z) {
        W *tile = tiles + one * n * ld;
        for (int64_t i = blockIdx.y; i < squares; i += gridDim.y)
            for (int64_t j = blockIdx.x; j <= i; j += gridDim.x) {
                for (int y = (int)threadIdx.y; y < LANES; y += LINES) {
                    const int64_t row = i * LANES + y, col = j * LANES + x;
                    if (row < n && col < n) square[y][x] = tile[row * ld + col];
                }
                __syncthreads();
                for (int y = (int)threadIdx.y; y < LANES; y += LINES) {
                    const int64_t row = j * LANES + y, col = i * LANES + x; /* of the mirrored square */
                    if (row < col && col < n)
                        tile[row * ld + col] = triangle == TSR_TRIANGLE_LOWER ? W(0) : square[x][y];
                    const int64_t below = i * LANES + y, left = j * LANES + x;
                    if (triangle == TSR_TRIANGLE_UPPER && left < below && below < n) tile[below * ld + left] = W(0);
                }
                __syncthreads();
            }
    }
}

template <typename W> __global__ void clear_rows(W *rows, int64_t ld, int64_t count, int64_t cols) {
    for_items(count, cols,
              [&](int64_t i, int64_t j0) { move_items(rows + i * ld, j0, cols, [](int64_t) { return W(0); }); });
}

/* ---- launches -------------------------------------------------------------------------------- */

const dim3 threads(LANES, LINES);

template <tsr_dtype D, typename T> static tsr_status launch_convert(tsr_stream *stream, const tsr_pack_args *args) {
    /* memory that is not there is not read, but has an address */
    const operand from = {args->from.data ? args->from.data : args->to, args->from.ld, args->from.rows, args->from.cols,
                          args->from.element.swapped};
    const target<T> to = {static_cast<T *>(args->to), args->ld, args->padded_rows, args->padded_cols};
    const bool aligned = ((uintptr_t)to.data | (uintptr_t)(to.ld * (int64_t)sizeof(T))) % SECTOR == 0;
    /* as many as the units of a row may take */
    const int64_t cols = to.cols + (aligned ? 0 : SECTOR / (int64_t)sizeof(T) - 1);
    dim3 grid;
    if (args->transpose) {
        TSR_TRY(tsr_cuda_grid(to.rows, cols, tile<D, T>::COLS, tile<D, T>::ROWS, &grid));
        return TSR_LAUNCH((convert_transposed<D, T>), grid, dim3(THREADS), 0, stream, from, to, aligned);
    }
    TSR_TRY(tsr_cuda_grid(to.rows, cols, LINES, LANES * UNITS<D, T> * EACH<T>, &grid));
    return TSR_LAUNCH((convert_rows<D, T>), grid, threads, 0, stream, from, to);
}

template <tsr_dtype D, typename T> static tsr_status launch_pack(tsr_stream *stream, const tsr_pack_args *args) {
    if constexpr (is_part<D>)
        if (args->form != TSR_FORM_REAL) return launch_complex<D, T>(stream, args);
    return launch_convert<D, T>(stream, args);
}

template <tsr_dtype D> static tsr_status convert_from(tsr_stream *stream, const tsr_pack_args *args) {
    if (args->type == TSR_F32) return launch_pack<D, float>(stream, args);
    if (args->type == TSR_F64) return launch_pack<D, double>(stream, args);
    return launch_pack<D, bf16>(stream, args);
}

static tsr_status convert(tsr_stream *stream, const tsr_pack_args *args) {
    if (args->padded_rows == 0 || args->padded_cols == 0) return TSR_OK;
    if (args->type == TSR_F16) return launch_convert<TSR_U16, uint16_t>(stream, args); /* from halves: only moved */
    switch (args->from.element.dtype) {
#define CASE(code, suffix, bits, memory)                                                                               \
    case TSR_##code: return convert_from<TSR_##code>(stream, args);
        TSR_REAL_LIST(CASE)
#undef CASE
#define CASE(code, suffix, bits, part)                                                                                 \
    case TSR_##code: return convert_from<TSR_##part>(stream, args);
        TSR_COMPLEX_LIST(CASE)
#undef CASE
    default:
        return tsr_fail(TSR_ERR_UNSUPPORTED, "pack: element type %d is unknown: use one of tsr_dtype",
                        (int)args->from.element.dtype);
    }
}

static tsr_status check_aligned(const char *what, const void *data, tsr_dtype dtype) {
    if ((uintptr_t)data % tsr_dtype_bytes(tsr_dtype_part(dtype)) == 0) return TSR_OK;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "%s at %p is not aligned to its %s elements: align it", what, data,
                    tsr_dtype_name(dtype));
}

static tsr_status pack(tsr_device *, tsr_stream *stream, const tsr_pack_args *asked) {
    TSR_TRY(tsr_pack_check(asked));
    TSR_TRY(check_aligned("pack: source", asked->from.data, asked->from.element.dtype));
    TSR_TRY(check_aligned("pack: target", asked->to, asked->type));
    tsr_pack_args args = *asked;
    (void)tsr_pack_take_parts(&args);
    return convert(stream, &args);
}

template <typename A, typename O> static tsr_status launch_finish(tsr_stream *stream, const tsr_finish_args *args) {
    const tsr_view *sum = &args->accumulated, *out = &args->out;
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(out->rows, out->cols, LINES, LANES * ITEMS, &grid));
    return TSR_LAUNCH((finish_rows<A, O>), grid, threads, 0, stream, static_cast<const A *>(sum->data), sum->ld,
                      args->alpha, args->beta, args->c0.element, static_cast<const void *>(args->c0.data), args->c0.ld,
                      static_cast<O *>(out->data), out->ld, out->rows, out->cols, args->overflows);
}

template <typename A, typename O>
static tsr_status finish_as(tsr_stream *stream, const tsr_finish_args *args, bool reals) {
    return reals ? launch_finish<A, O>(stream, args) : launch_finish_complex<A, O>(stream, args);
}

template <typename A> static tsr_status finish_from(tsr_stream *stream, const tsr_finish_args *args, bool reals) {
    const tsr_dtype part = tsr_dtype_part(args->out.element.dtype);
    if (part == TSR_F64) return finish_as<A, double>(stream, args, reals);
    if (part == TSR_F32) return finish_as<A, float>(stream, args, reals);
    if (part == TSR_BF16) return finish_as<A, bf16>(stream, args, reals);
    return finish_as<A, uint16_t>(stream, args, reals);
}

static tsr_status finish(tsr_device *, tsr_stream *stream, const tsr_finish_args *asked) {
    TSR_TRY(tsr_finish_check(asked));
    tsr_finish_args args = *asked;
    if (tsr_finish_adds(&args)) TSR_TRY(check_aligned("finish: c0", args.c0.data, args.c0.element.dtype));
    const bool reals = tsr_finish_take_parts(&args);
    const tsr_view *sum = &args.accumulated, *out = &args.out;
    if (out->rows == 0 || out->cols == 0) return TSR_OK;
    if (reals && tsr_finish_copies(&args)) {
        tsr_pack_args copy = {};
        copy.from = *sum;
        copy.to = out->data;
        copy.type = out->element.dtype;
        copy.ld = out->ld;
        copy.padded_rows = out->rows;
        copy.padded_cols = out->cols;
        return convert(stream, &copy);
    }
    return sum->element.dtype == TSR_F32 ? finish_from<float>(stream, &args, reals)
                                         : finish_from<double>(stream, &args, reals);
}

template <typename T> static tsr_status launch_add(tsr_stream *stream, const tsr_add_args *args) {
    dim3 grid;
    TSR_TRY(tsr_cuda_grid(1, args->count, 1, THREADS, &grid));
    return TSR_LAUNCH((add_parts<T>), grid, dim3(THREADS), 0, stream, static_cast<T *>(args->to),
                      static_cast<const T *>(args->from), args->stride, args->parts, args->count, args->accumulate);
}

static tsr_status add(tsr_device *, tsr_stream *stream, const tsr_add_args *args) {
    TSR_TRY(tsr_add_check(args));
    TSR_TRY(check_aligned("add: sums", args->to, args->type));
    TSR_TRY(check_aligned("add: parts", args->from, args->type));
    if (args->count == 0) return TSR_OK;
    const bool wide = tsr_dtype_bytes(args->type) == sizeof(double);
    return wide ? launch_add<double>(stream, args) : launch_add<float>(stream, args);
}

template <typename W> static tsr_status launch_mirror(tsr_stream *stream, const tsr_mirror_args *args) {
    W *data = static_cast<W *>(args->data);
    dim3 grid;
    if (args->triangle == TSR_TRIANGLE_UPPER && args->rows > 0 && args->left > 0) {
        TSR_TRY(tsr_cuda_grid(args->rows, args->left, LINES, LANES * ITEMS, &grid));
        TSR_TRY(TSR_LAUNCH((clear_rows<W>), grid, threads, 0, stream, data, args->ld, args->rows, args->left));
    }
    if (args->tile == 0) return TSR_OK;
    const int64_t batch = tsr_max(1, args->batch);
    int most_z = 0;
    TSR_TRY(tsr_cuda_attribute(cudaDevAttrMaxGridDimZ, &most_z));
    TSR_TRY(tsr_cuda_grid(args->tile, args->tile, LANES, LANES, &grid));
    grid.z = (unsigned)tsr_min(batch, most_z);
    return TSR_LAUNCH((mirror_tiles<W>), grid, threads, 0, stream, data + args->left, args->ld, args->tile, batch,
                      args->triangle);
}

static tsr_status mirror(tsr_device *, tsr_stream *stream, const tsr_mirror_args *args) {
    TSR_TRY(tsr_mirror_check(args));
    TSR_TRY(check_aligned("mirror: strip", args->data, args->type));
    const size_t bytes = tsr_dtype_bytes(args->type);
    if (bytes == 8) return launch_mirror<uint64_t>(stream, args);
    return bytes == 4 ? launch_mirror<uint32_t>(stream, args) : launch_mirror<uint16_t>(stream, args);
}

} // namespace

const tsr_pack_ops tsr_pack_cuda = {
    .device = TSR_DEVICE_CUDA, .pack = pack, .finish = finish, .add = add, .mirror = mirror};
