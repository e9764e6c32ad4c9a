/* Sums of products of fp64 numbers that lose nothing, and what they are when rounded once: in the tests' own integers,
 * so that no kernel's arithmetic judges itself. Finite numbers, at most 2^28 products a sum. From C and C++.
 * Reference: Kulisch's long accumulator. */
#ifndef TSR_TESTS_KERNELS_GEMM_GRADE_EXACT_SUM_H
#define TSR_TESTS_KERNELS_GEMM_GRADE_EXACT_SUM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/base/dtype.h"

enum {
    EXACT_SUM_LOWEST = -2148, /* the last bit's exponent: the least product is 2^-1074·2^-1074 */
    EXACT_SUM_LIMBS = 134     /* of 32 bits, up to 2^(2048 + 28) and a sign */
};

typedef struct {
    int64_t limb[EXACT_SUM_LIMBS]; /* Σ limb[i]·2^(32·i + EXACT_SUM_LOWEST); carries wait in the upper halves */
} exact_sum;

/* |x| = *digits · 2^(what is returned) */
static inline int exact_parts(double x, uint64_t *digits) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7ff);
    *digits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)(field != 0) << 52;
    return (field != 0 ? field : 1) - 1075;
}

/* Adds a·b. */
static inline void exact_add(exact_sum *sum, double a, double b) {
    uint64_t x, y;
    const int place = exact_parts(a, &x) + exact_parts(b, &y) - EXACT_SUM_LOWEST;
    const unsigned __int128 product = (unsigned __int128)x * y;
    const int64_t sign = (signbit(a) != 0) != (signbit(b) != 0) ? -1 : 1;
    int64_t *limb = sum->limb + place / 32;
    for (int i = 0; i < 4; i++) { /* 106 bits, moved by up to 31 */
        const uint64_t part = (uint64_t)(uint32_t)(product >> 32 * i) << place % 32;
        if (part == 0) continue;
        limb[i] += sign * (int64_t)(part & 0xffffffff);
        limb[i + 1] += sign * (int64_t)(part >> 32);
    }
}

/* Limbs from 0 to 2^32 - 1, of |sum|. Whether it is negative. */
static inline bool exact_carry(exact_sum *sum) {
    bool negative = false;
    for (int round = 0; round < 2; round++) {
        int64_t carry = 0;
        for (int i = 0; i < EXACT_SUM_LIMBS; i++) {
            const int64_t all = sum->limb[i] + carry;
            carry = all >> 32;
            sum->limb[i] = all & 0xffffffff;
        }
        if (carry == 0) break;
        negative = true; /* carry is -1: what is there is 2^(32·limbs) too much */
        for (int i = 0; i < EXACT_SUM_LIMBS; i++) sum->limb[i] = -sum->limb[i];
        sum->limb[EXACT_SUM_LIMBS - 1] += (int64_t)1 << 32;
    }
    return negative;
}

/* The sum, rounded once, to nearest even, to a number of `type`, TSR_F32 or TSR_F64; Inf beyond its range. */
static inline double exact_rounded(exact_sum sum, tsr_dtype type) {
    const int digits = type == TSR_F64 ? 53 : 24, least = type == TSR_F64 ? -1074 : -149;
    const bool negative = exact_carry(&sum);
    int top = EXACT_SUM_LIMBS - 1;
    while (top >= 0 && sum.limb[top] == 0) top--;
    if (top < 0) return 0;
    const int bits = 32 * top + 64 - __builtin_clzll((uint64_t)sum.limb[top]);
    int drop = bits - digits; /* bits below those that are kept */
    if (drop < least - EXACT_SUM_LOWEST) drop = least - EXACT_SUM_LOWEST;
    uint64_t kept = 0;
    for (int at = bits - 1; at >= drop; at--) kept = kept << 1 | (uint64_t)(sum.limb[at / 32] >> at % 32 & 1);
    const bool half = (sum.limb[(drop - 1) / 32] >> (drop - 1) % 32 & 1) != 0;
    bool below = (sum.limb[(drop - 1) / 32] & (((int64_t)1 << (drop - 1) % 32) - 1)) != 0;
    for (int i = 0; i < (drop - 1) / 32; i++) below |= sum.limb[i] != 0;
    kept += half && (below || kept % 2 == 1);
    double value = ldexp((double)kept, drop + EXACT_SUM_LOWEST);
    if (type == TSR_F32 && value > 0x1.fffffep127) value = (double)INFINITY;
    return negative ? -value : value;
}

/* sum - got, but for the last bits of a long double. */
static inline long double exact_rest(exact_sum sum, double got) {
    long double value = 0;
    exact_add(&sum, got, -1);
    const bool negative = exact_carry(&sum);
    for (int i = EXACT_SUM_LIMBS - 1; i >= 0; i--)
        if (sum.limb[i] != 0) value += ldexpl((long double)sum.limb[i], 32 * i + EXACT_SUM_LOWEST);
    return negative ? -value : value;
}

#endif
