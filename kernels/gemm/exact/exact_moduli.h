/* Residues of integers, and integers of residues, for `exact` on CUDA devices. All that moduli need is worked out when
 * this is compiled. Device code. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_MODULI_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_MODULI_H

#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/exact/exact_rules.h"

namespace exact {

/* a·b mod m, all below 2^127. */
constexpr tsr_exact_natural times(tsr_exact_natural a, tsr_exact_natural b, tsr_exact_natural m) {
    tsr_exact_natural r = 0;
    for (a %= m; b; b >>= 1, a = (a << 1) % m)
        if (b & 1) r = (r + a) % m;
    return r;
}
constexpr int inverse_of(int x, int p) {
    for (int i = 1; i < p; i++)
        if (x % p * i % p == 1) return i;
    return 0;
}

/* What conversion and reconstruction need of the first COUNT moduli. */
template <int COUNT> struct Moduli {
    static constexpr int WORDS = (COUNT + 3) / 4, BYTES = 16;
    int modulus[COUNT];
    tsr_exact_natural product;
    unsigned weights[COUNT][2]; /* 256^i mod p for the bytes of an integer, four a word */
    unsigned start[COUNT];      /* takes 2^63 away; as the bits of a float it adds 2^23 */
    /* byte b of the numbers that are 1 mod p and 0 mod the others, four moduli a word */
    unsigned unit_bytes[BYTES][WORDS];

    constexpr Moduli() : modulus{}, product(tsr_exact_product(COUNT)), weights{}, start{}, unit_bytes{} {
        const int all[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
        for (int i = 0; i < COUNT; i++) {
            const int p = modulus[i] = all[i];
            const tsr_exact_natural others = product / (tsr_exact_natural)p;
            tsr_exact_natural unit =
                times(others, (tsr_exact_natural)inverse_of((int)(others % (tsr_exact_natural)p), p), product);
            for (int b = 0; b < BYTES; b++, unit >>= 8) unit_bytes[b][i / 4] |= (unsigned)(unit & 0xff) << 8 * (i % 4);
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

/* ---- integers of residues -------------------------------------------------------------------- */

/* sum + bytes of a, signed, times bytes of b, unsigned. */
__device__ __forceinline__ int dp4a_mixed(unsigned a, unsigned b, int sum) {
#ifdef TSR_EMULATE_CUDA
    for (int byte = 0; byte < 4; byte++) sum += (int)(int8_t)(a >> 8 * byte) * (int)(b >> 8 * byte & 0xff);
    return sum;
#else
    int d;
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(sum));
    return d;
#endif
}

/* The integer in (-P/2, P/2) that has these residues, four a word: the sum of units, less as many P as are in it. It is
 * right modulo 2^128, which is enough. */
template <int COUNT>
__device__ __forceinline__ tsr_exact_integer integer_from(const unsigned (&r)[Moduli<COUNT>::WORDS]) {
    constexpr Moduli<COUNT> m;
    constexpr double per_product = 1 / (double)m.product;
    long long quarter[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int bytes[4] = {0, 0, 0, 0};
#pragma unroll
        for (int b = 0; b < 4; b++)
#pragma unroll
            for (int w = 0; w < Moduli<COUNT>::WORDS; w++)
                bytes[b] = dp4a_mixed(r[w], m.unit_bytes[4 * q + b][w], bytes[b]);
        quarter[q] = (long long)(bytes[0] + bytes[1] * 256) + (long long)(bytes[2] + bytes[3] * 256) * 65536;
    }
    const double about = (((double)quarter[3] * 0x1p32 + (double)quarter[2]) * 0x1p32 + (double)quarter[1]) * 0x1p32 +
                         (double)quarter[0];
    const long long quotient = __double2ll_rn(about * per_product);
    tsr_exact_natural x = (tsr_exact_natural)(tsr_exact_integer)quarter[0];
    x += (tsr_exact_natural)(tsr_exact_integer)quarter[1] << 32;
    x += (tsr_exact_natural)(tsr_exact_integer)quarter[2] << 64;
    x += (tsr_exact_natural)(tsr_exact_integer)quarter[3] << 96;
    x -= m.product * (tsr_exact_natural)(tsr_exact_integer)quotient;
    return (tsr_exact_integer)x;
}

/* 1/x modulo 2^128, of an odd x: each step doubles the bits that are right. */
TSR_EXACT constexpr tsr_exact_natural inverse_of_odd(tsr_exact_natural x) {
    tsr_exact_natural inverse = x; /* right in 3 bits */
    for (int bits = 3; bits < 128; bits *= 2) inverse *= 2 - x * inverse;
    return inverse;
}

/* Whether x, modulo 2^128, is q times the product of the moduli, |q| ≤ most. One modulus is 256, the others are odd. */
template <int COUNT> __device__ __forceinline__ bool is_multiple(tsr_exact_natural x, unsigned most) {
    constexpr tsr_exact_natural inverse = inverse_of_odd(tsr_exact_product(COUNT) >> 8);
    if ((unsigned)x & 0xff) return false;
    const tsr_exact_natural q = (x >> 8) * inverse; /* modulo 2^120 */
    return (q + most) << 8 <= (tsr_exact_natural)(2 * most) << 8;
}

/* tsr_exact_value, quickly where v is a normal number: the 64 highest bits, of which the last gathers what is lost,
 * are rounded once, and scaled by the larger shift first. */
template <tsr_dtype OF> __device__ __forceinline__ double value_of(tsr_exact_integer x, int shift_a, int shift_b) {
#ifdef TSR_EMULATE_CUDA
    return tsr_exact_value(OF, x, shift_a + shift_b);
#else
    const bool negative = x < 0;
    const tsr_exact_natural u = negative ? -(tsr_exact_natural)x : (tsr_exact_natural)x;
    const unsigned long long high = (unsigned long long)(u >> 64), low = (unsigned long long)u;
    const int drop = 64 - __clzll((long long)high); /* bits below the 64 that are kept */
    const unsigned long long lost = drop < 64 ? low & ((1ull << drop) - 1) : low;
    const unsigned long long kept = drop == 0    ? low
                                    : drop == 64 ? high | (lost != 0)
                                                 : (high << (64 - drop) | low >> drop) | (lost != 0);
    const double rounded = OF == TSR_F64 ? __ull2double_rn(kept) : (double)__ull2float_rn(kept);
    const int larger = max(shift_a, shift_b), smaller = min(shift_a, shift_b);
    const double value = rounded * tsr_exact_power(drop) * tsr_exact_power(-larger) * tsr_exact_power(-smaller);
    const double least = OF == TSR_F64 ? 0x1p-1021 : 0x1p-125;
    if (value < least && u != 0) return tsr_exact_value(OF, x, shift_a + shift_b);
    return negative ? -value : value;
#endif
}

} // namespace exact

#endif
