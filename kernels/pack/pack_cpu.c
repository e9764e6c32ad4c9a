/* The memory kernels of the CPU device. Every pair of source and target type has its own row loop, written out by a
 * macro so that the compiler vectorises it; a table picks the pair. Sources may have any alignment. A transpose
 * converts a tile's rows into a buffer that stays in the nearest cache and writes its columns from there: both sides
 * of memory are swept in order.
 * Memory-bound: the fastest case is a row's memcpy. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/base/element.h"
#include "kernels/base/one_nan.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_cpu.h"

/* ---- row loops, one a source type × byte order × target type --------------------------------- */

/* to[j] = from[j], n elements */
typedef void row_loop(const void *from, void *to, int64_t n);

#define DEFINE_LOOP(suffix, bits, order, reverse, name, target, rounded)                                               \
    static void row_##suffix##_##order##_##name(const void *from, void *to, int64_t n) {                               \
        const char *restrict source = from;                                                                            \
        target *restrict values = to;                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            uint##bits##_t word;                                                                                       \
            memcpy(&word, source + j * (bits / 8), sizeof word);                                                       \
            values[j] = rounded(tsr_convert_##suffix(reverse(word)));                                                  \
        }                                                                                                              \
    }

#define AS_IS(word) (word)
#define DEFINE_ORDER(suffix, bits, order, reverse)                                                                     \
    DEFINE_LOOP(suffix, bits, order, reverse, f16, uint16_t, tsr_encode_f16)                                           \
    DEFINE_LOOP(suffix, bits, order, reverse, bf16, uint16_t, tsr_encode_bf16)                                         \
    DEFINE_LOOP(suffix, bits, order, reverse, f32, float, (float))                                                     \
    DEFINE_LOOP(suffix, bits, order, reverse, f64, double, (double))
#define DEFINE_SOURCE(code, suffix, bits, memory)                                                                      \
    DEFINE_ORDER(suffix, bits, native, AS_IS)                                                                          \
    DEFINE_ORDER(suffix, bits, swapped, tsr_reverse_##bits)
TSR_REAL_LIST(DEFINE_SOURCE)

/* [source][swapped][target] */
#define TABLE_TARGETS(suffix, order)                                                                                   \
    {                                                                                                                  \
        [TSR_F16] = row_##suffix##_##order##_f16, [TSR_BF16] = row_##suffix##_##order##_bf16,                          \
        [TSR_F32] = row_##suffix##_##order##_f32, [TSR_F64] = row_##suffix##_##order##_f64                             \
    }
#define TABLE_LINE(code, suffix, bits, memory)                                                                         \
    [TSR_##code] = {TABLE_TARGETS(suffix, native), TABLE_TARGETS(suffix, swapped)},
static row_loop *const loops[TSR_DTYPE_COUNT][2][TSR_DTYPE_COUNT] = {TSR_REAL_LIST(TABLE_LINE)};

/* Elements that keep their type: their bytes move, turned round where swapped. */
#define DEFINE_MOVE(bits)                                                                                              \
    DEFINE_LOOP(u##bits, bits, native, AS_IS, word, uint##bits##_t, AS_IS)                                             \
    DEFINE_LOOP(u##bits, bits, swapped, tsr_reverse_##bits, word, uint##bits##_t, AS_IS)
DEFINE_MOVE(16)
DEFINE_MOVE(32)
DEFINE_MOVE(64)

/* [log2 of the bytes][swapped]; no target has elements of one byte. */
static row_loop *const moves[4][2] = {[1] = {row_u16_native_word, row_u16_swapped_word},
                                      [2] = {row_u32_native_word, row_u32_swapped_word},
                                      [3] = {row_u64_native_word, row_u64_swapped_word}};

static row_loop *loop_for(tsr_element from, tsr_dtype to) {
    if (from.dtype != to) return loops[from.dtype][from.swapped][to];
    return moves[ilogb((double)tsr_dtype_bytes(to))][from.swapped];
}

void tsr_cpu_convert(tsr_element element, const void *from, tsr_dtype to_type, void *to, int64_t n) {
    loop_for(element, to_type)(from, to, n);
}

/* ---- pack ------------------------------------------------------------------------------------ */

static const char *at(const void *base, int64_t elements, size_t bytes) {
    return (const char *)base + elements * (int64_t)bytes;
}
static char *at_mutable(void *base, int64_t elements, size_t bytes) { return (char *)base + elements * (int64_t)bytes; }

static void pack_rows(const tsr_pack_args *args, row_loop *loop) {
    size_t from_bytes = tsr_dtype_bytes(args->from.element.dtype), to_bytes = tsr_dtype_bytes(args->type);
    bool same = args->from.element.dtype == args->type && !args->from.element.swapped;
    for (int64_t i = 0; i < args->from.rows; i++) {
        const char *from = at(args->from.data, i * args->from.ld, from_bytes);
        char *to = at_mutable(args->to, i * args->ld, to_bytes);
        if (same) memcpy(to, from, (size_t)args->from.cols * to_bytes);
        else loop(from, to, args->from.cols);
    }
}

/* of the source; rows of the buffer start in different cache sets */
enum { TILE_ROWS = 16, TILE_COLS = 128, TILE_LD = 136 };

/* to[j·ld + i] = tile[i·TILE_LD + j], rows × cols of the tile */
#define DEFINE_STORE_COLUMNS(bits)                                                                                     \
    static void store_columns_##bits(const uint##bits##_t *restrict tile, uint##bits##_t *restrict to, int64_t ld,     \
                                     int64_t rows, int64_t cols) {                                                     \
        for (int64_t j = 0; j < cols; j++)                                                                             \
            for (int64_t i = 0; i < rows; i++) to[j * ld + i] = tile[i * TILE_LD + j];                                 \
    }
DEFINE_STORE_COLUMNS(16)
DEFINE_STORE_COLUMNS(32)
DEFINE_STORE_COLUMNS(64)

/* The tile whose first element is (i0, j0) of the source. */
static void transpose_tile(const tsr_pack_args *args, row_loop *loop, int64_t i0, int64_t j0) {
    union {
        uint16_t u16[TILE_ROWS * TILE_LD];
        uint32_t u32[TILE_ROWS * TILE_LD];
        uint64_t u64[TILE_ROWS * TILE_LD];
    } tile;
    size_t from_bytes = tsr_dtype_bytes(args->from.element.dtype), to_bytes = tsr_dtype_bytes(args->type);
    int64_t rows = tsr_min(TILE_ROWS, args->from.rows - i0), cols = tsr_min(TILE_COLS, args->from.cols - j0);
    void *to = at_mutable(args->to, j0 * args->ld + i0, to_bytes);
    for (int64_t i = 0; i < rows; i++)
        loop(at(args->from.data, (i0 + i) * args->from.ld + j0, from_bytes), at_mutable(&tile, i * TILE_LD, to_bytes),
             cols);
    if (to_bytes == 8) store_columns_64(tile.u64, to, args->ld, rows, cols);
    else if (to_bytes == 4) store_columns_32(tile.u32, to, args->ld, rows, cols);
    else store_columns_16(tile.u16, to, args->ld, rows, cols);
}

/* Down the source first: the lines of `to` that a tile leaves unfinished are finished by the next. */
static void pack_transposed(const tsr_pack_args *args, row_loop *loop) {
    for (int64_t j = 0; j < args->from.cols; j += TILE_COLS)
        for (int64_t i = 0; i < args->from.rows; i += TILE_ROWS) transpose_tile(args, loop, i, j);
}

/* Zeros of `to` outside the operand's rows × cols. */
static void pad(const tsr_pack_args *args, int64_t rows, int64_t cols) {
    size_t bytes = tsr_dtype_bytes(args->type);
    for (int64_t i = 0; i < rows && args->padded_cols > cols; i++)
        memset(at_mutable(args->to, i * args->ld + cols, bytes), 0, (size_t)(args->padded_cols - cols) * bytes);
    for (int64_t i = rows; i < args->padded_rows && args->padded_cols > 0; i++)
        memset(at_mutable(args->to, i * args->ld, bytes), 0, (size_t)args->padded_cols * bytes);
}

static void pack_reals(const tsr_pack_args *args) {
    row_loop *loop = loop_for(args->from.element, args->type);
    (args->transpose ? pack_transposed : pack_rows)(args, loop);
}

static tsr_status pack(tsr_device *device, tsr_stream *stream, const tsr_pack_args *asked) {
    (void)device;
    (void)stream;
    TSR_TRY(tsr_pack_check(asked));
    tsr_pack_args args = *asked;
    const bool reals = tsr_pack_take_parts(&args);
    const tsr_view *from = &args.from;
    if (from->rows > 0 && from->cols > 0 && reals) pack_reals(&args);
    if (!reals) TSR_TRY(tsr_pack_complex(&args));
    pad(&args, tsr_form_rows(args.form) * (args.transpose ? from->cols : from->rows),
        tsr_form_cols(args.form) * (args.transpose ? from->rows : from->cols));
    return TSR_OK;
}

/* ---- finish ---------------------------------------------------------------------------------- */

enum { CHUNK = 512 }; /* elements of a row held as doubles between loops */

/* Finite values that round to infinity: from halfway between the type's largest and what would follow it. */
static uint64_t count_overflows(const double *values, tsr_dtype dtype, int64_t n) {
    const double from = tsr_dtype_overflow(dtype);
    uint64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        const double magnitude = fabs(values[j]);
        count += (uint64_t)(magnitude >= from) & (uint64_t)(magnitude <= DBL_MAX);
    }
    return count;
}

/* n ≤ CHUNK elements; c0 may be NULL when beta = 0 */
static void finish_chunk(const tsr_finish_args *args, const char *accumulated, const char *c0, char *out, int64_t n) {
    double values[CHUNK], add[CHUNK];
    loops[args->accumulated.element.dtype][0][TSR_F64](accumulated, values, n);
    if (args->alpha != 1.0)
        for (int64_t j = 0; j < n; j++) values[j] *= args->alpha;
    if (args->beta != 0.0) {
        loops[args->c0.element.dtype][args->c0.element.swapped][TSR_F64](c0, add, n);
        for (int64_t j = 0; j < n; j++) values[j] += args->beta * add[j];
    }
    for (int64_t j = 0; j < n; j++) values[j] = tsr_one_nan_f64(values[j]);
    const tsr_dtype type = args->out.element.dtype;
    if (args->overflows && tsr_dtype_overflow(type) <= DBL_MAX) *args->overflows += count_overflows(values, type, n);
    loop_for((tsr_element){TSR_F64, false}, type)(values, out, n);
}

static void finish_reals(const tsr_finish_args *args) {
    size_t from_bytes = tsr_dtype_bytes(args->accumulated.element.dtype),
           out_bytes = tsr_dtype_bytes(args->out.element.dtype);
    size_t c0_bytes = args->beta != 0.0 ? tsr_dtype_bytes(args->c0.element.dtype) : 0;
    bool as_is = tsr_finish_copies(args);
    int64_t rows = args->out.rows, cols = args->out.cols;
    for (int64_t i = 0; i < rows && cols > 0; i++) {
        const char *from = at(args->accumulated.data, i * args->accumulated.ld, from_bytes);
        char *out = at_mutable(args->out.data, i * args->out.ld, out_bytes);
        if (as_is) {
            memmove(out, from, (size_t)cols * out_bytes);
            continue;
        }
        for (int64_t j = 0; j < cols; j += CHUNK)
            finish_chunk(args, from + j * (int64_t)from_bytes,
                         c0_bytes ? at(args->c0.data, i * args->c0.ld + j, c0_bytes) : NULL,
                         out + j * (int64_t)out_bytes, tsr_min(CHUNK, cols - j));
    }
}

static tsr_status finish(tsr_device *device, tsr_stream *stream, const tsr_finish_args *asked) {
    (void)device;
    (void)stream;
    TSR_TRY(tsr_finish_check(asked));
    tsr_finish_args args = *asked;
    if (!tsr_finish_take_parts(&args)) return tsr_finish_complex(&args);
    finish_reals(&args);
    return TSR_OK;
}

/* ---- mirror ---------------------------------------------------------------------------------- */

enum { MIRROR_EDGE = 32 }; /* of squares that are read along rows and written along columns */

/* Rows and columns of the square at (i0, j0), j0 ≤ i0: what lies below the diagonal to above it, or zeros. */
#define DEFINE_MIRROR(bits)                                                                                            \
    static void mirror_square_##bits(uint##bits##_t *tile, int64_t n, int64_t ld, int64_t i0, int64_t j0,              \
                                     tsr_triangle triangle) {                                                          \
        for (int64_t i = i0; i < tsr_min(n, i0 + MIRROR_EDGE); i++)                                                    \
            for (int64_t j = j0; j < tsr_min(i, j0 + MIRROR_EDGE); j++) {                                              \
                tile[j * ld + i] = triangle == TSR_TRIANGLE_LOWER ? 0 : tile[i * ld + j];                              \
                if (triangle == TSR_TRIANGLE_UPPER) tile[i * ld + j] = 0;                                              \
            }                                                                                                          \
    }
DEFINE_MIRROR(16)
DEFINE_MIRROR(32)
DEFINE_MIRROR(64)

static void mirror_tile(const tsr_mirror_args *args, void *tile, size_t bytes) {
    for (int64_t i = 0; i < args->tile; i += MIRROR_EDGE)
        for (int64_t j = 0; j <= i; j += MIRROR_EDGE) {
            if (bytes == 8) mirror_square_64(tile, args->tile, args->ld, i, j, args->triangle);
            else if (bytes == 4) mirror_square_32(tile, args->tile, args->ld, i, j, args->triangle);
            else mirror_square_16(tile, args->tile, args->ld, i, j, args->triangle);
        }
}

static tsr_status mirror(tsr_device *device, tsr_stream *stream, const tsr_mirror_args *args) {
    (void)device;
    (void)stream;
    TSR_TRY(tsr_mirror_check(args));
    const size_t bytes = tsr_dtype_bytes(args->type);
    for (int64_t i = 0; i < args->rows && args->left > 0 && args->triangle == TSR_TRIANGLE_UPPER; i++)
        memset(at_mutable(args->data, i * args->ld, bytes), 0, (size_t)args->left * bytes);
    for (int64_t one = 0; one < tsr_max(1, args->batch); one++)
        mirror_tile(args, at_mutable(args->data, one * args->rows * args->ld + args->left, bytes), bytes);
    return TSR_OK;
}

/* ---- add ------------------------------------------------------------------------------------- */

/* Part by part, so that all memory is swept in order; a NaN that comes in between stays one. */
#define DEFINE_ADD(suffix, real)                                                                                       \
    static void add_##suffix(const tsr_add_args *args) {                                                               \
        real *to = args->to;                                                                                           \
        for (int part = 0; part < args->parts; part++) {                                                               \
            const real *from = (const real *)args->from + part * args->stride;                                         \
            const bool adds = args->accumulate || part > 0;                                                            \
            for (int64_t i = 0; i < args->count; i++) to[i] = tsr_one_nan_##suffix(adds ? to[i] + from[i] : from[i]);  \
        }                                                                                                              \
    }
DEFINE_ADD(f32, float)
DEFINE_ADD(f64, double)

static tsr_status add(tsr_device *device, tsr_stream *stream, const tsr_add_args *args) {
    (void)device;
    (void)stream;
    TSR_TRY(tsr_add_check(args));
    if (tsr_dtype_bytes(args->type) == sizeof(double)) add_f64(args);
    else add_f32(args);
    return TSR_OK;
}

const tsr_pack_ops tsr_pack_cpu = {
    .device = TSR_DEVICE_CPU, .pack = pack, .finish = finish, .add = add, .mirror = mirror};
