/* How wrong a product is: inputs that are hard in different ways, each element a function of its place, and inner
 * products in twice double's precision to compare with. */
#ifndef TSR_KERNELS_GEMM_ACCURACY_H
#define TSR_KERNELS_GEMM_ACCURACY_H

#include "kernels/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TSR_INPUT_UNIFORM,    /* [0, 1): nothing cancels */
    TSR_INPUT_NORMAL,     /* mean 0, variance 1 */
    TSR_INPUT_WIDE,       /* normal · exp(phi · normal): exponents spread */
    TSR_INPUT_CANCELLING, /* the second half of every sum takes away the first but for 2^-12 of it */
    /* 2^-16 along rows of A and down them, against B growing along k and falling along its rows */
    TSR_INPUT_GRADED,
    TSR_INPUT_SPARSE, /* normal, 1 % of elements, the rest 0: hardly any two meet */
    TSR_INPUT_BANDED, /* normal in a band of 49 elements around the diagonal, else 0 */
    TSR_INPUT_COUNT
} tsr_input;

tsr_status tsr_input_parse(const char *name, tsr_input *input); /* lists names on error */
const char *tsr_input_name(tsr_input input);

/* Fills A (m × k) or B (k × n), a type of TSR_USE_PRODUCT, native order, the whole matrix. Imaginary parts are such a
 * matrix, too, of other random numbers. */
tsr_status tsr_input_fill_a(tsr_input input, double phi, tsr_view a);
tsr_status tsr_input_fill_b(tsr_input input, double phi, tsr_view b);

/* The number high + low; high is that number rounded. */
typedef struct {
    double high, low;
} tsr_double_double;

/* Σ a[p]·b[p] as if computed in twice double's precision and rounded, and Σ |a[p]·b[p]|; within k²·2^-104 of the
 * latter.
 * Ogita, Rump, Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26(6), 2005, algorithm 5.3 (Dot2). */
tsr_double_double tsr_oracle_dot(int64_t k, const double *a, const double *b, double *absolute);

#ifdef __cplusplus
}
#endif
#endif
