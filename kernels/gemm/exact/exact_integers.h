/* Integers of residues, and elements of C of integers, for `exact` on CUDA devices.
 *   With unit_i, 1 modulo p_i and 0 modulo the other moduli, the integer of residues r_i is Σ r_i·unit_i modulo their
 * product P, nearest to 0. The bytes r_i + 128 have no sign, and no sum of their products with bytes of units has one.
 * One more residue, 1, makes up for what they add: its unit is -128·Σ unit_i modulo P. The sum is below 2^12·P. A
 * multiplication of its 32 highest bits tells how many P are to be taken away, by less than 2^-17 wrong; integers stay
 * 2^-15·P away from where that matters (tsr_exact_limit).
 * Device code. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_INTEGERS_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_INTEGERS_H

#include <type_traits>

#include "kernels/gemm/exact/exact_moduli.h"

namespace exact {

/* ---- integers of residues -------------------------------------------------------------------- */

/* a·b mod m, all below 2^127. */
constexpr tsr_exact_natural times(tsr_exact_natural a, tsr_exact_natural b, tsr_exact_natural m) {
    tsr_exact_natural r = 0;
    for (a %= m; b; b >>= 1, a = (a << 1) % m)
        if (b & 1) r = (r + a) % m;
    return r;
}

constexpr int bits_of(tsr_exact_natural x) { return x == 0 ? 0 : 1 + bits_of(x >> 1); }
/* 2^(31 + bits of x) / x, rounded down: 32 bits. x is no power of two. */
constexpr unsigned reciprocal_of(tsr_exact_natural x) {
    tsr_exact_natural rest = (tsr_exact_natural)1 << (bits_of(x) - 1);
    unsigned quotient = 0;
    for (int i = 0; i < 32; i++) {
        rest <<= 1;
        quotient = 2 * quotient + (rest >= x);
        if (rest >= x) rest -= x;
    }
    return quotient;
}

template <int COUNT> struct Product {
    static constexpr tsr_exact_natural VALUE = tsr_exact_product(COUNT);
    static constexpr int BITS = bits_of(VALUE), BYTES = (BITS + 7) / 8;
    static constexpr unsigned RECIPROCAL = reciprocal_of(VALUE);
};

/* Bytes of units, four moduli a word. That of the one residue more is the last; where words are full, it is added. */
template <int COUNT> struct Units {
    static constexpr bool FULL = COUNT % 4 == 0;
    unsigned bytes[Product<COUNT>::BYTES][Moduli<COUNT>::WORDS];
    unsigned last[Product<COUNT>::BYTES];

    constexpr Units() : bytes{}, last{} {
        const int all[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
        constexpr tsr_exact_natural product = Product<COUNT>::VALUE;
        tsr_exact_natural more = 0;
        for (int i = 0; i < COUNT; i++) {
            const tsr_exact_natural p = (tsr_exact_natural)all[i], others = product / p;
            const tsr_exact_natural unit =
                times(others, (tsr_exact_natural)tsr_exact_inverse((int)(others % p), all[i]), product);
            more = (more + times(unit, 128, product)) % product;
            put(i, unit);
        }
        if (FULL)
            for (int b = 0; b < Product<COUNT>::BYTES; b++) last[b] = (unsigned)((product - more) >> 8 * b & 0xff);
        else put(COUNT, product - more);
    }
    constexpr void put(int i, tsr_exact_natural unit) {
        for (int b = 0; b < Product<COUNT>::BYTES; b++, unit >>= 8)
            bytes[b][i / 4] |= (unsigned)(unit & 0xff) << 8 * (i % 4);
    }
};

/* The integer of a sum of products, in words: less as many P as are in it. */
template <int COUNT, int SUMS> __device__ __forceinline__ tsr_exact_integer reduced(const unsigned (&sum)[SUMS]) {
    typedef Product<COUNT> P;
    constexpr int LOST = P::BITS - 20; /* bits of the sum that are not looked at */
    const unsigned long long ends = (unsigned long long)sum[LOST / 32 + 1] << 32 | sum[LOST / 32];
    const unsigned top = (unsigned)(ends >> LOST % 32);
    const unsigned quotient = (__umulhi(top, P::RECIPROCAL) + (1u << 18)) >> 19;
    const unsigned long long low = (unsigned long long)sum[1] << 32 | sum[0];
    if constexpr (P::BITS < 64) return (long long)(low - quotient * (unsigned long long)P::VALUE);
    const unsigned long long high = (unsigned long long)sum[3] << 32 | sum[2];
    return (tsr_exact_integer)(((tsr_exact_natural)high << 64 | low) - P::VALUE * quotient);
}
/* Of that sum's digits, of 16 bits but larger: two a word of it. */
template <int COUNT, int DIGITS>
__device__ __forceinline__ tsr_exact_integer integer_of_digits(const unsigned (&digit)[DIGITS]) {
    constexpr int PLACES = (Product<COUNT>::BYTES + 3) / 4;
    static_assert(DIGITS >= 2 * PLACES);
    unsigned sum[6] = {}, carry = 0;
#pragma unroll
    for (int place = 0; place < PLACES; place++) {
        const unsigned low = digit[2 * place] + carry;
        const unsigned long long all = (unsigned long long)digit[2 * place + 1] * 65536 + low;
        sum[place] = (unsigned)all;
        sum[place + 1] = carry = (unsigned)(all >> 32);
    }
    return reduced<COUNT>(sum);
}

/* What makes a word of residues bytes without a sign. In the last one it puts the residue that there is one more. */
template <int COUNT> TSR_EXACT constexpr unsigned moved_word(int word) {
    constexpr unsigned ALL = 0x80808080u;
    constexpr unsigned LAST = Units<COUNT>::FULL ? ALL : ((ALL >> 8) >> 8 * (3 - COUNT % 4)) + (1u << 8 * (COUNT % 4));
    return word + 1 < Moduli<COUNT>::WORDS ? ALL : LAST;
}

/* The integers in (-P/2, P/2) that have these residues, four a word; what is left of the last word is 0. SEVERAL at
 * once: a word of the units, which takes an instruction to get, serves all of them. */
template <int COUNT, int SEVERAL>
__device__ __forceinline__ void integers_from(const unsigned (&r)[SEVERAL][Moduli<COUNT>::WORDS],
                                              tsr_exact_integer (&x)[SEVERAL]) {
    typedef Product<COUNT> P;
    constexpr Units<COUNT> units;
    constexpr int WORDS = Moduli<COUNT>::WORDS, PLACES = (P::BYTES + 3) / 4;
    unsigned own[SEVERAL][WORDS], digits[SEVERAL][2 * PLACES] = {};
#pragma unroll
    for (int e = 0; e < SEVERAL; e++)
#pragma unroll
        for (int w = 0; w < WORDS; w++) own[e][w] = r[e][w] ^ moved_word<COUNT>(w);
#pragma unroll
    for (int b = 0; b < P::BYTES; b++) {
        unsigned sum[SEVERAL];
#pragma unroll
        for (int w = 0; w < WORDS; w++)
#pragma unroll
            for (int e = 0; e < SEVERAL; e++)
                sum[e] = __dp4a(own[e][w], units.bytes[b][w], w == 0 ? units.last[b] : sum[e]);
#pragma unroll
        for (int e = 0; e < SEVERAL; e++) digits[e][b / 2] += sum[e] << 8 * (b % 2);
    }
#pragma unroll
    for (int e = 0; e < SEVERAL; e++) x[e] = integer_of_digits<COUNT>(digits[e]);
}

/* What sums of 128 integers of COUNT moduli are added up in: 64 bits hold those of few moduli, of others they are taken
 * modulo 2^128. */
template <int COUNT>
using Natural = typename std::conditional<Product<COUNT>::BITS + 7 < 64, unsigned long long, tsr_exact_natural>::type;

/* 1/x modulo a power of two, of an odd x: each step doubles the bits that are right. */
template <typename Unsigned> TSR_EXACT constexpr Unsigned inverse_of_odd(Unsigned x) {
    Unsigned inverse = x; /* right in 3 bits */
    for (int bits = 3; bits < 8 * (int)sizeof x; bits *= 2) inverse *= 2 - x * inverse;
    return inverse;
}

/* Whether x, modulo 2^128 or 2^64, is q times the product of the moduli, |q| ≤ most. One modulus is 256, the others are
 * odd. */
template <int COUNT> __device__ __forceinline__ bool is_multiple(Natural<COUNT> x, unsigned most) {
    constexpr Natural<COUNT> inverse = inverse_of_odd((Natural<COUNT>)(tsr_exact_product(COUNT) >> 8));
    if ((unsigned)x & 0xff) return false;
    const Natural<COUNT> q = (x >> 8) * inverse; /* modulo 2^120, or 2^56 */
    return (q + most) << 8 <= (Natural<COUNT>)(2 * most) << 8;
}

/* ---- elements of integers -------------------------------------------------------------------- */

/* a number's bits */
__device__ __forceinline__ double double_of(unsigned long long bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x, less than 2^114 in size, rounded once. Right where the result is 2^72 or more in size: then only the last sum is
 * rounded, and no bit below 2^11 matters but whether there is one. */
__device__ __forceinline__ double rounded_once(tsr_exact_integer x) {
    const long long high = (long long)(x >> 64);
    const unsigned long long low = (unsigned long long)x;
    const unsigned rest = (unsigned)low, lost = (rest & 0x7ff) + 0x7ff;
    /* as bits behind those of 1.5·2^52, 2^84 and 2^52, which are taken away */
    const double top = double_of((unsigned long long)high + 0x4338000000000000ull) - 0x1.8p52;
    const double middle = double_of(0x4530000000000000ull | low >> 32) - 0x1p84;
    const double bottom = double_of(0x4330000000000000ull | ((rest | (lost & 0x800)) & ~0x7ffu)) - 0x1p52;
    const double sum = fma(top, 0x1p64, middle);
    const double error = middle - fma(top, -0x1p64, sum);
    return sum + (error + bottom);
}

/* x·2^by, of a normal number. It is sure where that is one, too. */
__device__ __forceinline__ float scaled(float x, int by, bool *sure) {
    const unsigned bits = __float_as_uint(x);
    const int field = (int)(bits >> 23 & 0xff) + by;
    *sure = *sure && field > 0 && field < 255;
    return __uint_as_float(bits + ((unsigned)by << 23));
}
__device__ __forceinline__ double scaled(double x, int by, bool *sure) {
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const int field = (int)((unsigned)(bits >> 52) & 0x7ff) + by;
    *sure = *sure && field > 0 && field < 2047;
    return double_of(bits + ((unsigned long long)(long long)by << 52));
}

/* tsr_exact_value, quickly where that is a normal number of an integer that is not small; of COUNT moduli. */
template <typename T, int COUNT> __device__ __forceinline__ T value_of(tsr_exact_integer x, int shift_a, int shift_b) {
    const int shifts = shift_a + shift_b;
    bool sure;
    T value;
    if constexpr (Product<COUNT>::BITS < 64) x = (long long)x; /* the upper half is its sign */
    if constexpr (TYPE<T> == TSR_F32) { /* 63 bits, of which the last gathers what is lost, are rounded once */
        constexpr int LOST = Product<COUNT>::BITS < 64 ? 0 : Product<COUNT>::BITS - 63;
        const bool odd = LOST > 0 && ((unsigned)x & ((1u << LOST) - 1)) != 0;
        const long long kept = (long long)(x >> LOST) | odd;
        const float rounded = (float)kept;
        sure = LOST > 0 ? fabsf(rounded) >= 0x1p26f : kept != 0;
        value = scaled(rounded, LOST - shifts, &sure);
    } else if constexpr (Product<COUNT>::BITS < 114) {
        const double rounded = rounded_once(x);
        sure = fabs(rounded) >= 0x1p72;
        value = scaled(rounded, -shifts, &sure);
    } else { /* the 64 highest bits, likewise */
        const tsr_exact_natural u = x < 0 ? -(tsr_exact_natural)x : (tsr_exact_natural)x;
        const unsigned long long high = (unsigned long long)(u >> 64), low = (unsigned long long)u;
        const int drop = 64 - __clzll((long long)(high | 1));
        const unsigned long long lost = drop < 64 ? low & ((1ull << drop) - 1) : low;
        const unsigned long long kept = (drop < 64 ? high << (64 - drop) | low >> drop : high) | (lost != 0);
        sure = high != 0;
        value = scaled(x < 0 ? -(double)kept : (double)kept, drop - shifts, &sure);
    }
    return sure ? value : (T)tsr_exact_value(TYPE<T>, x, shifts);
}

} // namespace exact

#endif
