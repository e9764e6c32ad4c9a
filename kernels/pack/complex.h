/* Complex arithmetic of pack and finish, the same bits on the host and the GPU: nothing is fused. */
#ifndef TSR_KERNELS_PACK_COMPLEX_H
#define TSR_KERNELS_PACK_COMPLEX_H

#include "kernels/base/element.h"

#ifdef __CUDA_ARCH__
#define TSR_MUL(x, y) __dmul_rn(x, y)
#define TSR_ADD(x, y) __dadd_rn(x, y)
#else
#define TSR_MUL(x, y) ((x) * (y))
#define TSR_ADD(x, y) ((x) + (y))
#endif

/* A number, and whether it has an imaginary part at all: what has none does not make NaN of another's infinity. */
typedef struct {
    double re, im;
    bool complex;
} tsr_number;

TSR_HOST_DEVICE static inline tsr_number tsr_number_times(tsr_number x, tsr_number y) {
    tsr_number z = {TSR_MUL(x.re, y.re), 0, x.complex || y.complex};
    if (x.complex && y.complex) {
        z.re = TSR_ADD(z.re, -TSR_MUL(x.im, y.im));
        z.im = TSR_ADD(TSR_MUL(x.re, y.im), TSR_MUL(x.im, y.re));
    } else if (x.complex) {
        z.im = TSR_MUL(x.im, y.re);
    } else if (y.complex) {
        z.im = TSR_MUL(x.re, y.im);
    }
    return z;
}

TSR_HOST_DEVICE static inline tsr_number tsr_number_plus(tsr_number x, tsr_number y) {
    const tsr_number z = {TSR_ADD(x.re, y.re), TSR_ADD(x.im, y.im), x.complex || y.complex};
    return z;
}

#undef TSR_MUL
#undef TSR_ADD

#endif
