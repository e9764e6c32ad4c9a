/* The memory kernels of the CPU device. Every pair of source and target type has its own row and transpose loops, written
 * out by macros, so that the compiler vectorises them; a table picks the pair. Sources may have any alignment. Transposes go through blocks that stay in
 * cache. Memory-bound: the fastest case is a row's memcpy. */
#include <string.h>

#include "kernels/element.h"
#include "kernels/registry.h"

enum { BLOCK_ROWS = 16, BLOCK_COLS = 64 }; /* of the source, a transpose block */

/* ---- loops, one set a source type × byte order × target type ------------------------------------------------------ */

/* to[j] = from[j], n elements */
typedef void row_loop(const void *from, void *to, int64_t n);
/* to[j·ld_to + i] = from[i·ld_from + j] for rows × cols elements of the source */
typedef void block_loop(const void *from, int64_t ld_from, void *to, int64_t ld_to, int64_t rows, int64_t cols);

#define DEFINE_LOOPS(suffix, bits, order, reverse, target)                                                            \
    static inline target load_##suffix##_##order##_##target(const char *at) {                                         \
        uint##bits##_t word;                                                                                          \
        memcpy(&word, at, sizeof word);                                                                               \
        return (target)tsr_convert_##suffix(reverse(word));                                                           \
    }                                                                                                                 \
    static void row_##suffix##_##order##_##target(const void *from, void *to, int64_t n) {                            \
        const char *restrict source = from;                                                                           \
        target *restrict values = to;                                                                                 \
        for (int64_t j = 0; j < n; j++) values[j] = load_##suffix##_##order##_##target(source + j * (bits / 8));      \
    }                                                                                                                 \
    static void block_##suffix##_##order##_##target(const void *from, int64_t ld_from, void *to, int64_t ld_to,       \
                                                    int64_t rows, int64_t cols) {                                     \
        const char *restrict source = from;                                                                           \
        target *restrict values = to;                                                                                 \
        for (int64_t j = 0; j < cols; j++)                                                                            \
            for (int64_t i = 0; i < rows; i++)                                                                        \
                values[j * ld_to + i] = load_##suffix##_##order##_##target(source + (i * ld_from + j) * (bits / 8));  \
    }

#define AS_IS(word) (word)
#define DEFINE_SOURCE(code, suffix, bits)                                                                             \
    DEFINE_LOOPS(suffix, bits, native, AS_IS, float)                                                                  \
    DEFINE_LOOPS(suffix, bits, native, AS_IS, double)                                                                 \
    DEFINE_LOOPS(suffix, bits, swapped, tsr_reverse_##bits, float)                                                    \
    DEFINE_LOOPS(suffix, bits, swapped, tsr_reverse_##bits, double)
TSR_SOURCE_LIST(DEFINE_SOURCE)

typedef struct {
    row_loop *row;
    block_loop *block;
} loops;

/* [source][swapped][target is f64] */
#define LOOPS(suffix, order, target) {row_##suffix##_##order##_##target, block_##suffix##_##order##_##target}
#define TABLE_LINE(code, suffix, bits)                                                                                \
    [TSR_##code] = {{LOOPS(suffix, native, float), LOOPS(suffix, native, double)},                                    \
                    {LOOPS(suffix, swapped, float), LOOPS(suffix, swapped, double)}},
static const loops table[TSR_DTYPE_COUNT][2][2] = {TSR_SOURCE_LIST(TABLE_LINE)};

/* ---- pack --------------------------------------------------------------------------------------------------------- */

static const char *at(const void *base, int64_t elements, size_t bytes) { return (const char *)base + elements * (int64_t)bytes; }
static char *at_mutable(void *base, int64_t elements, size_t bytes) { return (char *)base + elements * (int64_t)bytes; }

static void pack_rows(const tsr_pack_args *args, const loops *loop) {
    size_t from_bytes = tsr_dtype_bytes(args->from.element.dtype), to_bytes = tsr_dtype_bytes(args->type);
    bool same = args->from.element.dtype == args->type && !args->from.element.swapped;
    for (int64_t i = 0; i < args->from.rows; i++) {
        const char *from = at(args->from.data, i * args->from.ld, from_bytes);
        char *to = at_mutable(args->to, i * args->ld, to_bytes);
        if (same)
            memcpy(to, from, (size_t)args->from.cols * to_bytes);
        else
            loop->row(from, to, args->from.cols);
    }
}

static void pack_transposed(const tsr_pack_args *args, const loops *loop) {
    size_t from_bytes = tsr_dtype_bytes(args->from.element.dtype), to_bytes = tsr_dtype_bytes(args->type);
    for (int64_t j = 0; j < args->from.cols; j += BLOCK_COLS)
        for (int64_t i = 0; i < args->from.rows; i += BLOCK_ROWS)
            loop->block(at(args->from.data, i * args->from.ld + j, from_bytes), args->from.ld,
                        at_mutable(args->to, j * args->ld + i, to_bytes), args->ld, tsr_min(BLOCK_ROWS, args->from.rows - i),
                        tsr_min(BLOCK_COLS, args->from.cols - j));
}

/* Zeros of `to` outside the operand's rows × cols. */
static void pad(const tsr_pack_args *args, int64_t rows, int64_t cols) {
    size_t bytes = tsr_dtype_bytes(args->type);
    for (int64_t i = 0; i < rows && args->padded_cols > cols; i++)
        memset(at_mutable(args->to, i * args->ld + cols, bytes), 0, (size_t)(args->padded_cols - cols) * bytes);
    for (int64_t i = rows; i < args->padded_rows && args->padded_cols > 0; i++)
        memset(at_mutable(args->to, i * args->ld, bytes), 0, (size_t)args->padded_cols * bytes);
}

static tsr_status pack(tsr_device *device, tsr_stream *stream, const tsr_pack_args *args) {
    (void)device, (void)stream;
    TSR_TRY(tsr_pack_check(args));
    const loops *loop = &table[args->from.element.dtype][args->from.element.swapped][args->type == TSR_F64];
    if (!tsr_rect_empty((tsr_rect){0, 0, args->from.rows, args->from.cols}))
        (args->transpose ? pack_transposed : pack_rows)(args, loop);
    pad(args, args->transpose ? args->from.cols : args->from.rows, args->transpose ? args->from.rows : args->from.cols);
    return TSR_OK;
}

/* ---- finish --------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 512 }; /* elements of a row held as doubles between loops */

static void store_row(const double *values, tsr_dtype dtype, char *to, int64_t n) {
    if (dtype == TSR_F64) {
        memcpy(to, values, (size_t)n * sizeof(double));
    } else if (dtype == TSR_F32) {
        float *restrict singles = (float *)(void *)to;
        for (int64_t j = 0; j < n; j++) singles[j] = (float)values[j];
    } else {
        uint16_t *halves = (uint16_t *)(void *)to;
        for (int64_t j = 0; j < n; j++) halves[j] = tsr_half_encode(values[j]);
    }
}

/* n ≤ CHUNK elements; c0 may be NULL when beta = 0 */
static void finish_chunk(const tsr_finish_args *args, const char *accumulated, const char *c0, char *out, int64_t n) {
    double values[CHUNK], add[CHUNK];
    table[args->accumulated.element.dtype][0][1].row(accumulated, values, n);
    if (args->alpha != 1.0)
        for (int64_t j = 0; j < n; j++) values[j] *= args->alpha;
    if (args->beta != 0.0) {
        table[args->c0.element.dtype][args->c0.element.swapped][1].row(c0, add, n);
        for (int64_t j = 0; j < n; j++) values[j] += args->beta * add[j];
    }
    store_row(values, args->out.element.dtype, out, n);
}

static tsr_status finish(tsr_device *device, tsr_stream *stream, const tsr_finish_args *args) {
    (void)device, (void)stream;
    TSR_TRY(tsr_finish_check(args));
    size_t from_bytes = tsr_dtype_bytes(args->accumulated.element.dtype), out_bytes = tsr_dtype_bytes(args->out.element.dtype);
    size_t c0_bytes = args->beta != 0.0 ? tsr_dtype_bytes(args->c0.element.dtype) : 0;
    bool as_is = args->alpha == 1.0 && args->beta == 0.0 && args->accumulated.element.dtype == args->out.element.dtype;
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
                         c0_bytes ? at(args->c0.data, i * args->c0.ld + j, c0_bytes) : NULL, out + j * (int64_t)out_bytes,
                         tsr_min(CHUNK, cols - j));
    }
    return TSR_OK;
}

/* ---- add ------------------------------------------------------------------------------------------------------------ */

static tsr_status add(tsr_device *device, tsr_stream *stream, tsr_view sum, tsr_view part) {
    (void)device, (void)stream;
    TSR_TRY(tsr_add_check(sum, part));
    for (int64_t i = 0; i < sum.rows; i++) {
        if (sum.element.dtype == TSR_F32) {
            float *restrict to = (float *)sum.data + i * sum.ld;
            const float *restrict from = (const float *)part.data + i * part.ld;
            for (int64_t j = 0; j < sum.cols; j++) to[j] += from[j];
        } else {
            double *restrict to = (double *)sum.data + i * sum.ld;
            const double *restrict from = (const double *)part.data + i * part.ld;
            for (int64_t j = 0; j < sum.cols; j++) to[j] += from[j];
        }
    }
    return TSR_OK;
}

const tsr_pack_ops tsr_pack_cpu = {.device = TSR_DEVICE_CPU, .pack = pack, .finish = finish, .add = add};
