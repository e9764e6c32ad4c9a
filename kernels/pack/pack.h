/* The memory kernels around a product: `pack` brings an operand as it stood in the file into the layout and type a
 * kernel wants; `finish` turns accumulated C into the bytes of the output. One table a device. */
#ifndef TSR_KERNELS_PACK_PACK_H
#define TSR_KERNELS_PACK_PACK_H

#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    tsr_view from;  /* rows × cols as stored: any dtype, either byte order */
    bool transpose; /* to[j][i] = from[i][j] */
    void *to;       /* (transpose ? cols × rows : rows × cols), `type` */
    tsr_dtype type; /* TSR_F32, TSR_F64 or TSR_BF16, each element rounded once; or TSR_F16 where `from` is that, too */
    int64_t ld;     /* elements from row to row of `to` */
    int64_t padded_rows, padded_cols; /* extent of `to` written: outside the operand zeros; ≥ its rows and cols, ≤ ld */
} tsr_pack_args;

typedef struct {
    tsr_view accumulated; /* rows × cols, TSR_F32 or TSR_F64, native order */
    double alpha, beta;
    tsr_view c0;         /* rows × cols in any element type; never read (data may be NULL) when beta = 0 */
    tsr_view out;        /* rows × cols, a type of TSR_USE_RESULT, native order */
    uint64_t *overflows; /* device memory, may be NULL: finite elements that out's type makes infinite are added */
} tsr_finish_args;       /* out = alpha·accumulated + beta·c0, computed in fp64, rounded once to out's type */

typedef struct tsr_pack_ops {
    tsr_device_kind device;
    tsr_status (*pack)(tsr_device *device, tsr_stream *stream, const tsr_pack_args *args);
    tsr_status (*finish)(tsr_device *device, tsr_stream *stream, const tsr_finish_args *args);
} tsr_pack_ops;

extern const tsr_pack_ops tsr_pack_cpu;
extern const tsr_pack_ops tsr_pack_cuda;

const tsr_pack_ops *tsr_pack_find(tsr_device_kind device); /* never NULL for a device that opened */

/* Every table checks its arguments with these before anything is read. */
tsr_status tsr_pack_check(const tsr_pack_args *args);
tsr_status tsr_finish_check(const tsr_finish_args *args);

#ifdef __cplusplus
}
#endif
#endif
