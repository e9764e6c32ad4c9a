/* The arithmetic by which `split3` makes two halves of a float and judges whether they hold it; plain functions, for
 * the GPU and for tests on the host. A line is a row of A or a column of B. */
#ifndef TSR_KERNELS_GEMM_HOPPER_SPLIT3_ARITHMETIC_H
#define TSR_KERNELS_GEMM_HOPPER_SPLIT3_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define TSR_SPLIT3 __host__ __device__ __forceinline__
#else
#include "kernels/base/half.h"
#define TSR_SPLIT3 inline
#endif

namespace split3 {

#ifdef __CUDACC__
typedef __half Half;
TSR_SPLIT3 Half to_half(float x) { return __float2half_rn(x); }
TSR_SPLIT3 float to_float(Half x) { return __half2float(x); }
#else
struct Half {
    uint16_t bits;
};
TSR_SPLIT3 Half to_half(float x) { return {tsr_half_encode((double)x)}; }
TSR_SPLIT3 float to_float(Half x) { return tsr_half_decode(x.bits); }
#endif

TSR_SPLIT3 unsigned bits_of(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
TSR_SPLIT3 float float_of(unsigned bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* from here on high + low errs by 2^-23 relative, below by 2^-25 absolute: low parts become subnormal */
constexpr float WEAK = 0.25f;
constexpr float FIRM = 32.0f;   /* counts as large in `unfit` */
constexpr int64_t MEETING = 32; /* firm products an element of C must have, or `few` */

/* Orders as magnitudes do; of Inf and NaN largest. */
TSR_SPLIT3 unsigned size_bits(float x) { return bits_of(x) & 0x7fffffffu; }

/* Whether no scale brings the line, whose largest magnitude has these bits, where halves are exact enough: tiny, or
 * Inf or NaN. */
TSR_SPLIT3 bool refuses(unsigned largest) {
    const int exponent = (int)(largest >> 23) - 127;
    return largest != 0 && (exponent < -100 || exponent > 127);
}

/* x·2^shift puts the line's largest magnitude into [2^14, 2^15); 0 for a line of zeros and for those refused. */
TSR_SPLIT3 int shift_of(unsigned largest) {
    const int exponent = (int)(largest >> 23) - 127;
    return exponent < -100 || exponent > 127 ? 0 : 14 - exponent;
}
TSR_SPLIT3 float power(int exponent) { return float_of((unsigned)(exponent + 127) << 23); }

/* x's halves; counts what it is. */
TSR_SPLIT3 void split(float x, float scale, Half *high, Half *low, int *weak, int *firm) {
    const float scaled = x * scale, size = fabsf(scaled);
    *high = to_half(scaled);
    *low = to_half(scaled - to_float(*high));
    *weak += x != 0.0f && size < WEAK;
    *firm += size >= FIRM;
}

/* Whether the split fails to hold A and B to fp32 accuracy, where `weak` and `soft` are the most elements of a row
 * of A and of a column of B together that are weak, and that are not firm. An element of magnitude ≥ WEAK errs by at
 * most 2^-23 relative, a weak one by 2^-25 absolute, which meets elements < 2^15: with S and T weak elements in a
 * row of A and a column of B these come to 2^-10·(S + T) at most.
 * If all but P and Q elements of the two are firm, k - P - Q firm ones meet and |A||B| ≥ 2^10·(k - P - Q). So 4·(S +
 * T) ≤ k - P - Q keeps the weak ones' share of the error within 4·2^-24·(|A||B|), for every element of C and
 * wherever in k they stand. */
TSR_SPLIT3 bool unfit(int64_t k, int64_t weak, int64_t soft) { return weak > 0 && 4 * weak > k - soft; }

/* Whether so few firm elements of a row of A and a column of B may meet (`soft` as above) that plain fp32 is more
 * exact. A single product errs by 8·2^-24 at most, where plain fp32 errs by 2^-24; of many the errors average out,
 * and plain fp32 rounds each sum. In simulations with normal and uniform elements the largest errors are level at
 * 16 to 24 products, the median ones at 32. So sparse and banded matrices, and the identity, are not for halves;
 * lines of zeros alone do no harm. */
TSR_SPLIT3 bool few(int64_t k, int64_t soft) { return k - soft < MEETING; }

/* The same of a line by itself. Two lines that pass both pass the two above together: the sums of these inequalities
 * are twice those. */
TSR_SPLIT3 bool line_unfit(int64_t k, int64_t weak, int64_t soft) { return weak > 0 && 8 * weak > k - 2 * soft; }
TSR_SPLIT3 bool line_few(int64_t k, int64_t soft) { return k - 2 * soft < MEETING; }

} // namespace split3

#endif
