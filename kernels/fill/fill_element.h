/* One element of a generated matrix (fill.h), shared by the host's and the GPU's fill: counter-based random numbers,
 * Philox4x32-10 (Salmon et al., SC 2011), counter (i, j), key seed. uniform, integer and identity are the same bits
 * on both; the logarithm and cosine of normal may differ in the last ones. */
#ifndef TSR_KERNELS_FILL_FILL_ELEMENT_H
#define TSR_KERNELS_FILL_FILL_ELEMENT_H

#include <math.h>

#include "kernels/base/element.h"
#include "kernels/fill/fill.h"
#include "kernels/fill/philox.h"

/* 53 bits as a number in [0, 1) */
TSR_HOST_DEVICE static inline double tsr_fill_unit(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

TSR_HOST_DEVICE static inline double tsr_fill_value(tsr_fill_kind kind, uint64_t seed, int64_t i, int64_t j) {
    const double two_pi = 6.283185307179586477;
    if (kind == TSR_FILL_IDENTITY) return i == j ? 1.0 : 0.0;
    uint32_t random[4] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32), (uint32_t)j, (uint32_t)((uint64_t)j >> 32)};
    tsr_philox4x32_10(random, (uint32_t)seed, (uint32_t)(seed >> 32));
    switch (kind) {
    case TSR_FILL_UNIFORM: return tsr_fill_unit(random[0], random[1]);
    case TSR_FILL_INTEGER: return (double)((int)((uint64_t)random[0] * 9 >> 32) - 4);
    case TSR_FILL_NORMAL: /* 1 - u lies in (0, 1]: its logarithm is finite */
        return sqrt(-2.0 * log(1.0 - tsr_fill_unit(random[0], random[1]))) *
               cos(two_pi * tsr_fill_unit(random[2], random[3]));
    case TSR_FILL_IDENTITY: break;
    }
    return 0.0;
}

/* The same where each element is `parts` numbers side by side, which j counts. */
TSR_HOST_DEVICE static inline double tsr_fill_part(tsr_fill_kind kind, uint64_t seed, int parts, int64_t i, int64_t j) {
    return tsr_fill_value(kind, seed, kind == TSR_FILL_IDENTITY ? parts * i : i, j);
}
/* The parts of complex elements as a matrix of their own, with twice the columns; that of real ones is itself. Returns
 * how many parts an element has. */
static inline int tsr_fill_as_parts(tsr_view *to, int64_t *col) {
    const int parts = tsr_dtype_parts(to->element.dtype);
    to->element.dtype = tsr_dtype_part(to->element.dtype);
    to->cols *= parts;
    to->ld *= parts;
    *col *= parts;
    return parts;
}

/* What every fill asks of its target before it writes. */
static inline tsr_status tsr_fill_check(tsr_view to) {
    size_t bytes;
    if (to.element.swapped)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "fill writes this machine's byte order only: swap afterwards");
    if (to.rows < 0 || to.cols < 0 || to.ld < to.cols)
        return tsr_fail(TSR_ERR_SHAPE,
                        "fill: %lld x %lld with rows %lld elements apart is no matrix: ld must be at least cols",
                        (long long)to.rows, (long long)to.cols, (long long)to.ld);
    return tsr_bytes_checked(to.rows, to.ld, tsr_dtype_bytes(to.element.dtype), &bytes);
}

#endif
