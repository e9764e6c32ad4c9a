/* Residues of integers, for `exact` on CUDA devices. All that moduli need is worked out when this is compiled. Device
 * code. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_MODULI_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_MODULI_H

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/exact/exact_rules.h"

namespace exact {

/* What conversion needs of the first COUNT moduli. */
template <int COUNT> struct Moduli {
    static constexpr int WORDS = (COUNT + 3) / 4; /* residues of an integer, four a word */
    int modulus[COUNT];
    unsigned weights[COUNT][2]; /* 256^i mod p for the bytes of an integer, four a word */
    unsigned start[COUNT];      /* takes 2^63 away; as the bits of a float it adds 2^23 */

    constexpr Moduli() : modulus{}, weights{}, start{} {
        const int all[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
        for (int i = 0; i < COUNT; i++) {
            const int p = modulus[i] = all[i];
            long long power = 1;
            for (int b = 0; b < 8; b++, power = power * 256 % p) weights[i][b / 4] |= (unsigned)power << 8 * (b % 4);
            start[i] = 0x4B000000u + ((unsigned)p - (unsigned)((1ull << 63) % (unsigned)p)) % (unsigned)p;
        }
    }
};

/* ---- residues of integers -------------------------------------------------------------------- */

/* The integer of an element, plus 2^63, in two words. */
__device__ __forceinline__ void integer_of(double a, double scale, unsigned *low, unsigned *high) {
    const unsigned long long x = (unsigned long long)tsr_exact_rint(a, scale) ^ 1ull << 63;
    *low = (unsigned)x;
    *high = (unsigned)(x >> 32);
}

/* The residue in [-p/2, p/2], in the low byte. Sums of bytes by weights are below 2^20: read as a float they are exact,
 * and the nearest quotient is right but for ties, which odd moduli do not have. */
template <int COUNT> __device__ __forceinline__ unsigned residue_byte(unsigned low, unsigned high, int i) {
    constexpr Moduli<COUNT> m;
    const int p = m.modulus[i];
    if (p == 256) return low;
    const unsigned v = __dp4a(low, m.weights[i][0], __dp4a(high, m.weights[i][1], m.start[i]));
    const float quotient = __fmaf_rn(__uint_as_float(v) - 8388608.0f, 1.0f / (float)p, 12582912.0f);
    return v - __float_as_uint(quotient) * (unsigned)p;
}

/* Of four integers, a byte each. */
template <int COUNT>
__device__ __forceinline__ unsigned residue_word(const unsigned (&low)[4], const unsigned (&high)[4], int i) {
    const unsigned r0 = residue_byte<COUNT>(low[0], high[0], i), r1 = residue_byte<COUNT>(low[1], high[1], i);
    const unsigned r2 = residue_byte<COUNT>(low[2], high[2], i), r3 = residue_byte<COUNT>(low[3], high[3], i);
    return __byte_perm(__byte_perm(r0, r1, 0x0040), __byte_perm(r2, r3, 0x0040), 0x5410);
}

/* A sum of integers plus 2^63 each, halves apart. */
struct Sum {
    unsigned long long low, high;

    __device__ __forceinline__ void add(unsigned own_low, unsigned own_high) {
        low += own_low;
        high += own_high;
    }
};

/* Of a sum of `count` integers, 128 at most: its residue in [-p/2, p/2], in the low byte. */
template <int COUNT> __device__ __forceinline__ unsigned sum_byte(Sum sum, int count, int i) {
    constexpr Moduli<COUNT> m;
    const unsigned p = (unsigned)m.modulus[i], start = (unsigned)((1ull << 63) % p);
    const unsigned long long high = sum.high + (sum.low >> 32); /* below 2^40 */
    const unsigned rest = (unsigned)(high >> 32) * (2 * start % p) + (p - start) * (unsigned)count;
    const unsigned v = __dp4a((unsigned)sum.low, m.weights[i][0], __dp4a((unsigned)high, m.weights[i][1], rest));
    const unsigned r = v % p;
    return r > p / 2 ? r - p : r;
}

} // namespace exact

#endif
