/* Matrices whose element (i, j) is a function of seed, i and j alone, so that any rank can make any part of them.
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011), counter (i, j), key seed. */
#ifndef TSR_KERNELS_FILL_FILL_H
#define TSR_KERNELS_FILL_FILL_H

#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TSR_FILL_UNIFORM, /* [0, 1) */
    TSR_FILL_NORMAL,  /* mean 0, variance 1, Box–Muller */
    TSR_FILL_INTEGER, /* -4 … 4, equally likely: products stay exact */
    TSR_FILL_IDENTITY /* 1 on the diagonal, 0 elsewhere */
} tsr_fill_kind;

tsr_status tsr_fill_parse(const char *name, tsr_fill_kind *kind); /* lists names on error */
const char *tsr_fill_name(tsr_fill_kind kind);
double tsr_fill_element(tsr_fill_kind kind, uint64_t seed, int64_t i, int64_t j);
/* The real parts of complex elements are those of even columns of a real matrix, the imaginary ones of odd columns;
 * the identity is real.
 * Fills `to` (host memory, any dtype, native order) with the elements whose first one is (row, col) of the whole
 * matrix. */
tsr_status tsr_fill_host(tsr_fill_kind kind, uint64_t seed, int64_t row, int64_t col, tsr_view to);

/* The same in a device's memory, asynchronous on the stream; one table a device. The CPU's fills at once. Elements
 * are the same bits on every device but for those of TSR_FILL_NORMAL, whose logarithm and cosine may differ in the
 * last ones. */
typedef struct {
    tsr_device_kind device;
    tsr_status (*fill)(tsr_device *device, tsr_stream *stream, tsr_fill_kind kind, uint64_t seed, int64_t row,
                       int64_t col, tsr_view to);
} tsr_fill_ops;

extern const tsr_fill_ops tsr_fill_cpu;
extern const tsr_fill_ops tsr_fill_cuda; /* with CUDA (TSR_HAVE_CUDA) or its emulation: fill_cuda.cu */

const tsr_fill_ops *tsr_fill_find(tsr_device_kind device); /* NULL where a device has none */

#ifdef __cplusplus
}
#endif
#endif
