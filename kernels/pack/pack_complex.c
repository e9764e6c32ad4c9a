/* Complex elements on the CPU device, where their parts do not stay side by side (pack.h). A tile's rows are converted
 * into a buffer in the nearest cache and written from there, row of the target by row. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/base/one_nan.h"
#include "kernels/pack/complex.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_cpu.h"

enum { TILE = 32 }; /* elements along either side of a tile */

/* ---- pack ------------------------------------------------------------------------------------ */

/* A tile of the target, (row, col) on, and where its elements stand in the buffer: two reals each, those of
 * neighbouring rows `down` reals apart, of columns `across`. */
typedef struct {
    int64_t row, col, rows, cols;
    int64_t down, across;
} tile;

#define DEFINE_STORE(bits)                                                                                             \
    static void store_##bits(const tsr_pack_args *args, const tile *t, const uint##bits##_t *buffer) {                 \
        const uint##bits##_t sign = (uint##bits##_t)((uint##bits##_t)1 << (bits - 1));                                 \
        const uint##bits##_t conjugate = args->conjugate ? sign : 0;                                                   \
        const int64_t down = tsr_form_rows(args->form), across = tsr_form_cols(args->form);                            \
        for (int64_t i = 0; i < t->rows; i++) {                                                                        \
            uint##bits##_t *to = (uint##bits##_t *)args->to + (t->row + i) * down * args->ld + t->col * across;        \
            uint##bits##_t *below = to + args->ld;                                                                     \
            const uint##bits##_t *from = buffer + i * t->down;                                                         \
            for (int64_t j = 0; j < t->cols; j++, from += t->across) {                                                 \
                const uint##bits##_t re = from[0], im = (uint##bits##_t)(from[1] ^ conjugate);                         \
                if (args->form == TSR_FORM_ROWS) {                                                                     \
                    to[j] = re;                                                                                        \
                    below[j] = im;                                                                                     \
                    continue;                                                                                          \
                }                                                                                                      \
                to[2 * j] = re;                                                                                        \
                to[2 * j + 1] = im;                                                                                    \
                if (args->form == TSR_FORM_BESIDE) continue;                                                           \
                below[2 * j] = (uint##bits##_t)(im ^ sign);                                                            \
                below[2 * j + 1] = re;                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
DEFINE_STORE(16)
DEFINE_STORE(32)
DEFINE_STORE(64)

/* Those of the source from (row, col) on. */
static void pack_tile(const tsr_pack_args *args, tsr_rect part) {
    union {
        uint16_t u16[2 * TILE * TILE];
        uint32_t u32[2 * TILE * TILE];
        uint64_t u64[2 * TILE * TILE];
    } buffer;
    const tsr_view *from = &args->from;
    const size_t bytes = tsr_dtype_bytes(args->type), stored = tsr_dtype_bytes(from->element.dtype);
    const tsr_element reals = {tsr_dtype_part(from->element.dtype), from->element.swapped};
    for (int64_t i = 0; i < part.rows; i++) {
        const char *row = (const char *)from->data + (size_t)((part.row + i) * from->ld + part.col) * stored;
        tsr_cpu_convert(reals, row, args->type, (char *)&buffer + (size_t)(2 * TILE * i) * bytes, 2 * part.cols);
    }
    tile t = {part.row, part.col, part.rows, part.cols, 2 * TILE, 2};
    if (args->transpose) t = (tile){part.col, part.row, part.cols, part.rows, 2, 2 * TILE};
    if (bytes == 8) store_64(args, &t, buffer.u64);
    else if (bytes == 4) store_32(args, &t, buffer.u32);
    else store_16(args, &t, buffer.u16);
}

tsr_status tsr_pack_complex(const tsr_pack_args *args) {
    for (int64_t i = 0; i < args->from.rows; i += TILE)
        for (int64_t j = 0; j < args->from.cols; j += TILE)
            pack_tile(args, (tsr_rect){i, j, tsr_min(TILE, args->from.rows - i), tsr_min(TILE, args->from.cols - j)});
    return TSR_OK;
}

/* ---- finish ---------------------------------------------------------------------------------- */

/* Element (i, j) of what was accumulated. */
static tsr_number sum_at(const tsr_finish_args *args, int64_t i, int64_t j) {
    const tsr_view *sums = &args->accumulated;
    const int64_t first = i * tsr_form_rows(args->form) * sums->ld + j * tsr_form_cols(args->form);
    const int64_t second = first + (args->form == TSR_FORM_ROWS ? sums->ld : 1);
    const size_t bytes = tsr_dtype_bytes(sums->element.dtype);
    tsr_number sum = {.complex = args->form != TSR_FORM_REAL};
    sum.re = tsr_element_to_double(sums->element, (const char *)sums->data + (size_t)first * bytes);
    if (sum.complex) sum.im = tsr_element_to_double(sums->element, (const char *)sums->data + (size_t)second * bytes);
    return sum;
}

static tsr_number c0_at(const tsr_finish_args *args, int64_t i, int64_t j) {
    const tsr_view *c0 = &args->c0;
    const char *at = (const char *)c0->data + (size_t)(i * c0->ld + j) * tsr_dtype_bytes(c0->element.dtype);
    const tsr_complex value = tsr_element_to_complex(c0->element, at);
    return (tsr_number){value.re, value.im, tsr_dtype_is_complex(c0->element.dtype)};
}

tsr_status tsr_finish_complex(const tsr_finish_args *args) {
    const tsr_number alpha = {args->alpha, args->alpha_imag, args->alpha_imag != 0};
    const tsr_number beta = {args->beta, args->beta_imag, args->beta_imag != 0};
    const tsr_dtype type = args->out.element.dtype, part = tsr_dtype_part(type);
    const int parts = tsr_dtype_parts(type);
    const double from = tsr_dtype_overflow(part);
    for (int64_t i = 0; i < args->out.rows; i++) {
        char *row = (char *)args->out.data + (size_t)(i * args->out.ld) * tsr_dtype_bytes(type);
        for (int64_t j = 0; j < args->out.cols; j++) {
            tsr_number value = tsr_number_times(alpha, sum_at(args, i, j));
            if (tsr_finish_adds(args)) value = tsr_number_plus(value, tsr_number_times(beta, c0_at(args, i, j)));
            const double both[2] = {tsr_one_nan_f64(value.re), tsr_one_nan_f64(value.im)};
            for (int p = 0; p < parts; p++) {
                tsr_element_store(part, row, parts * j + p, both[p]);
                if (args->overflows) *args->overflows += fabs(both[p]) >= from && fabs(both[p]) <= DBL_MAX;
            }
        }
    }
    return TSR_OK;
}
