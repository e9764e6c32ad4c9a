/* The memory kernels around a product: `pack` brings an operand as it stood in the file into the layout and type a
 * kernel wants; `add` joins sums of ranges of k; `finish` turns accumulated C into the bytes of the output; `mirror`
 * makes a symmetric C of its half.
 * One table a device. */
#ifndef TSR_KERNELS_PACK_PACK_H
#define TSR_KERNELS_PACK_PACK_H

#include "kernels/base/form.h"
#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    tsr_view from;  /* rows × cols as stored: any dtype, either byte order */
    bool transpose; /* to[j][i] = from[i][j] */
    tsr_form form;  /* REAL for a real `from`, another for a complex one */
    bool conjugate; /* of a complex one */
    void *to;       /* (transpose ? cols × rows : rows × cols) elements in that form, `type` */
    tsr_dtype type; /* TSR_F32, TSR_F64 or TSR_BF16, each element rounded once; or TSR_F16 where `from` is that, too */
    int64_t ld;     /* reals from row to row of `to` */
    /* extent of `to` written, in reals, whole elements: outside the operand zeros; ≥ its rows and cols, ≤ ld */
    int64_t padded_rows, padded_cols;
} tsr_pack_args;

typedef struct {
    tsr_view accumulated; /* rows × cols in `form`, ld in reals; TSR_F32 or TSR_F64, native order */
    tsr_form form;        /* SQUARES are no sums */
    double alpha, alpha_imag, beta, beta_imag;
    tsr_view c0;         /* rows × cols in any element type; never read (data may be NULL) when beta is 0 */
    tsr_view out;        /* rows × cols, a type of TSR_USE_RESULT, native order */
    uint64_t *overflows; /* device memory, may be NULL: finite elements that out's type makes infinite are added */
    /* out = alpha·accumulated + beta·c0, computed in fp64, rounded once to out's type. A real out takes the real part.
     * Of complex elements each part counts as an overflow. Every NaN becomes the same one (kernels/base/one_nan.h). */
    bool one_nan; /* also where accumulated is out already, which else is copied */
} tsr_finish_args;

/* Rows of a symmetric matrix of which what lies on and below the diagonal is known. The last `tile` of their columns
 * lie on the diagonal: rows × rows, or none. */
typedef struct {
    void *data;            /* rows × (left + tile), elements of 2, 4 or 8 bytes, which are moved */
    tsr_dtype type;        /* a type of TSR_USE_RESULT */
    int64_t rows, left;    /* columns left of the tile */
    int64_t tile;          /* rows or 0 */
    int64_t ld;            /* ≥ left + tile */
    int64_t batch;         /* so many matrices, whole ones (left = 0), one below the other; 0 and 1: one */
    tsr_triangle triangle; /* UPPER: what is below the diagonal becomes 0, LOWER: what is above; else it is mirrored */
} tsr_mirror_args;

/* Sums of a product's ranges of k that stayed apart, to be added in their order as a kernel that accumulates adds them.
 */
typedef struct {
    void *to;         /* count reals: parts[0] + parts[1] + …, each sum rounded, from left to right */
    const void *from; /* `parts` times count reals, */
    int64_t stride;   /* so many reals from one to the next */
    int parts;        /* ≥ 1 */
    int64_t count;
    bool accumulate; /* the first part is added to what `to` holds; false: that is never read */
    tsr_dtype type;  /* TSR_F32 or TSR_F64. Every NaN becomes the same one */
} tsr_add_args;

typedef struct tsr_pack_ops {
    tsr_device_kind device;
    tsr_status (*pack)(tsr_device *device, tsr_stream *stream, const tsr_pack_args *args);
    tsr_status (*finish)(tsr_device *device, tsr_stream *stream, const tsr_finish_args *args);
    tsr_status (*add)(tsr_device *device, tsr_stream *stream, const tsr_add_args *args);
    /* in place: above the diagonal of the tile stands what is below it, or as the triangle says */
    tsr_status (*mirror)(tsr_device *device, tsr_stream *stream, const tsr_mirror_args *args);
} tsr_pack_ops;

extern const tsr_pack_ops tsr_pack_cpu;
extern const tsr_pack_ops tsr_pack_cuda;

const tsr_pack_ops *tsr_pack_find(tsr_device_kind device); /* never NULL for a device that opened */

/* For tables: whether it is work on reals alone, as work on complex elements is whose parts stay side by side. These
 * are reals in twice the columns from then on. */
bool tsr_pack_take_parts(tsr_pack_args *args);
bool tsr_finish_take_parts(tsr_finish_args *args);
/* Whether what was accumulated is copied to out as it is; of work on reals. */
bool tsr_finish_copies(const tsr_finish_args *args);
static inline bool tsr_finish_adds(const tsr_finish_args *args) { return args->beta != 0 || args->beta_imag != 0; }
/* The CPU's work on all else (pack_complex.c). */
tsr_status tsr_pack_complex(const tsr_pack_args *args);
tsr_status tsr_finish_complex(const tsr_finish_args *args);

/* Every table checks its arguments with these before anything is read. */
tsr_status tsr_pack_check(const tsr_pack_args *args);
tsr_status tsr_finish_check(const tsr_finish_args *args);
tsr_status tsr_mirror_check(const tsr_mirror_args *args);
tsr_status tsr_add_check(const tsr_add_args *args);

#ifdef __cplusplus
}
#endif
#endif
