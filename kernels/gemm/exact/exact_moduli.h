/* Residues of integers, for `exact` on CUDA devices. All that moduli need is worked out when this is compiled. Device
 * code. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_MODULI_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_MODULI_H

#include "kernels/gemm/exact/exact_lines.h"

namespace exact {

constexpr int NARROW_MODULI = tsr_exact_moduli(TSR_F32, 0);
/* Whether integers fit into one word, where such of COUNT moduli are made of T: those of fp32 at level 0. */
template <typename T, int COUNT> constexpr bool IS_NARROW = sizeof(T) == sizeof(float) && COUNT <= NARROW_MODULI;
static_assert(tsr_exact_limit(NARROW_MODULI) >> 60 == 0, "a line's norm is below 2^30");
/* What is added to integers, so that their bytes have no sign: 2^63, or 2^31. */
template <bool NARROW> constexpr unsigned long long MOVED = 1ull << (NARROW ? 31 : 63);

/* What conversion needs of the first COUNT moduli. */
template <int COUNT, bool NARROW = false> struct Moduli {
    static constexpr int WORDS = (COUNT + 3) / 4; /* residues of an integer, four a word */
    int modulus[COUNT];
    unsigned weights[COUNT][2]; /* 256^i mod p for the bytes of an integer, four a word */
    bool near[COUNT];           /* 1/p in fp32 is as near to it as sums below 2^23 + 2^20 want */
    unsigned front[COUNT];      /* the bits of 2^23 as a float, or, if near, of the next multiple of p */
    unsigned start[COUNT];      /* the same, and MOVED is taken away */

    constexpr Moduli() : modulus{}, weights{}, near{}, front{}, start{} {
        const int all[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
        for (int i = 0; i < COUNT; i++) {
            const int p = modulus[i] = all[i];
            const unsigned own = (unsigned)p;
            long long power = 1;
            for (int b = 0; b < 8; b++, power = power * 256 % p) weights[i][b / 4] |= (unsigned)power << 8 * (b % 4);
            const double off = (double)(1.0f / (float)p) * p - 1;
            near[i] = (off < 0 ? -off : off) * 0x1.2p23 < 0.5;
            front[i] = 0x4B000000u + (near[i] ? (own - (1u << 23) % own) % own : 0);
            start[i] = front[i] + (own - (unsigned)(MOVED<NARROW> % own)) % own;
        }
    }
};

/* ---- residues of integers -------------------------------------------------------------------- */

/* The integer of an element, plus MOVED, in two words, or in the lower one. */
template <bool NARROW> __device__ __forceinline__ void integer_of(double a, int shift, unsigned *low, unsigned *high) {
    static_assert(!NARROW);
    const unsigned long long x = (unsigned long long)tsr_exact_rint(a, tsr_exact_power(shift)) ^ MOVED<NARROW>;
    *low = (unsigned)x;
    *high = (unsigned)(x >> 32);
}
template <bool NARROW> __device__ __forceinline__ void integer_of(float a, int shift, unsigned *low, unsigned *high) {
    if constexpr (NARROW) {
        *low = (unsigned)__float2int_rn(a * power_of<float>(shift)) ^ (unsigned)MOVED<NARROW>;
        *high = 0;
    } else integer_of<NARROW>((double)a, shift, low, high);
}

/* The residue in [-p/2, p/2], in the low byte, of a sum of bytes by weights, below 2^20. Behind `front` it is exact as
 * a float, and the nearest quotient is right but for ties, which odd moduli do not have. In front stands a multiple of
 * p, unless 1/p is too far from its float: then 2^23, which is taken away first. */
template <int COUNT, bool NARROW> __device__ __forceinline__ unsigned byte_of_sum(unsigned v, int i) {
    constexpr Moduli<COUNT, NARROW> m;
    const int p = m.modulus[i];
    const float sum = m.near[i] ? __uint_as_float(v) : __uint_as_float(v) - 8388608.0f;
    return v - __float_as_uint(__fmaf_rn(sum, 1.0f / (float)p, 12582912.0f)) * (unsigned)p;
}
/* Of an integer. */
template <int COUNT, bool NARROW> __device__ __forceinline__ unsigned residue_byte(unsigned low, unsigned high, int i) {
    constexpr Moduli<COUNT, NARROW> m;
    if (m.modulus[i] == 256) return low;
    const unsigned start = NARROW ? m.start[i] : __dp4a(high, m.weights[i][1], m.start[i]);
    return byte_of_sum<COUNT, NARROW>(__dp4a(low, m.weights[i][0], start), i);
}

/* The low bytes. */
__device__ __forceinline__ unsigned bytes_of(const unsigned (&x)[4]) {
    return __byte_perm(__byte_perm(x[0], x[1], 0x0040), __byte_perm(x[2], x[3], 0x0040), 0x5410);
}
/* Of four integers, a byte each. */
template <int COUNT, bool NARROW>
__device__ __forceinline__ unsigned residue_word(const unsigned (&low)[4], const unsigned (&high)[4], int i) {
    unsigned r[4];
#pragma unroll
    for (int e = 0; e < 4; e++) r[e] = residue_byte<COUNT, NARROW>(low[e], high[e], i);
    return bytes_of(r);
}

/* Whether integers of COUNT moduli have 55 bits, so that sums of 128 fit into a word. */
template <int COUNT> constexpr bool ARE_SHORT = tsr_exact_limit(COUNT) >> 2 * 55 == 0;
/* A sum of 128 integers at most, plus MOVED each: modulo 2^64, or halves apart. */
template <bool SHORT> struct Sum {
    unsigned long long word;

    __device__ __forceinline__ void add(unsigned low, unsigned high) { word += (unsigned long long)high << 32 | low; }
    __device__ __forceinline__ void join(const Sum &other) { word += other.word; }
};
template <> struct Sum<false> {
    unsigned long long low, high;

    __device__ __forceinline__ void add(unsigned own_low, unsigned own_high) {
        low += own_low;
        high += own_high;
    }
    __device__ __forceinline__ void join(const Sum &other) {
        low += other.low;
        high += other.high;
    }
};

/* Of a sum of `count` integers: its residue in [-p/2, p/2], in the low byte. */
template <int COUNT, bool NARROW> __device__ __forceinline__ unsigned sum_byte(Sum<true> sum, int count, int i) {
    const unsigned long long x = sum.word - (unsigned)count * MOVED<NARROW> + MOVED<false>;
    return residue_byte<COUNT, false>((unsigned)x, (unsigned)(x >> 32), i);
}
template <int COUNT, bool NARROW> __device__ __forceinline__ unsigned sum_byte(Sum<false> sum, int count, int i) {
    static_assert(!NARROW);
    constexpr Moduli<COUNT> m;
    const unsigned p = (unsigned)m.modulus[i], start = (unsigned)(MOVED<false> % p);
    const unsigned long long high = sum.high + (sum.low >> 32); /* below 2^40 */
    const unsigned rest = (unsigned)(high >> 32) * (unsigned)((1ull << 63) % p * 2 % p) + (p - start) * (unsigned)count;
    const unsigned v = __dp4a((unsigned)sum.low, m.weights[i][0], __dp4a((unsigned)high, m.weights[i][1], rest));
    const unsigned r = v % p;
    return r > p / 2 ? r - p : r;
}

} // namespace exact

#endif
