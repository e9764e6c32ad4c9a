/* What `exact` products are, element by element: plain functions that the CPU, the GPU and tests share, so that all
 * have the same bits.
 *
 *   C_ij = Σ over ranges of v_ij, in order, each addition rounded in C's type
 *   v_ij = 2^(-e_i - f_j) · Σ_l a'_il·b'_lj, rounded once;  a'_il = rint(2^e_i · a_il),  b'_lj = rint(2^f_j · b_lj)
 *
 * A range is TSR_EXACT_RANGE elements of k, counted from 0. A line is a row of A or a column of B within a range. Its
 * shift e is the largest for which no sum leaves what the product P of some moduli can tell apart: 2·Σ|a'||b'| < P, by
 * Cauchy and Schwarz. How many moduli, is one of TSR_EXACT_LEVELS levels. It is chosen for a block of C of
 * TSR_EXACT_BLOCK rows and columns, counted from 0, and a range: the least that is proved to keep
 * |ΔC| ≤ f·u·(|A||B|), f = max(4, √k), for each of its elements, by the product of magnitudes. Where TSR_EXACT_FEW
 * elements or fewer need the last level, they take it by themselves, and their block the level below. Where none is
 * proved, the product of patterns may prove the last level. Elements for which neither proves anything are left to one
 * loop in the order of l with fused multiply-add in fp64, over pairs without a zero, rounded to C's type. Where they
 * are too many, or a line has Inf or NaN, the whole block is made by such a loop over all pairs. Every NaN is the same
 * one.
 * Source: Ozaki, Uchino, Imamura, arXiv 2504.08009 (scheme II); docs/exact.md has the proof. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_RULES_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_RULES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/base/dtype.h"
#include "kernels/base/one_nan.h"

#if defined(__CUDACC__)
#define TSR_EXACT __host__ __device__ __forceinline__
#else
#define TSR_EXACT static inline
#endif
#ifdef __cplusplus
#define TSR_EXACT_CONSTANT constexpr
#else
#define TSR_EXACT_CONSTANT
#endif

#define TSR_EXACT_RANGE 16384
#define TSR_EXACT_BLOCK 128
#define TSR_EXACT_LEVELS 3
#define TSR_EXACT_LAST (TSR_EXACT_LEVELS - 1)
#define TSR_EXACT_LOOP TSR_EXACT_LEVELS /* the level of a block that is made by the loop */
#define TSR_EXACT_LEFT_MOST 1024        /* elements of a block that are left to the loop one by one */
#define TSR_EXACT_FEW 4                 /* elements of a block that take the last level by themselves */
#define TSR_EXACT_MODULI_MOST 16

#define TSR_EXACT_WHAT "exact integer products of rounded operands: the same bits everywhere"
#define TSR_EXACT_ERROR_FACTOR 4.0 /* times k: max(4, √k) is less */

typedef __int128 tsr_exact_integer;
typedef unsigned __int128 tsr_exact_natural;

/* Zeros in front of the highest bit of x, which is not 0. */
#ifdef __CUDA_ARCH__
TSR_EXACT int tsr_exact_zeros_32(uint32_t x) { return __clz((int)x); }
TSR_EXACT int tsr_exact_zeros_64(uint64_t x) { return __clzll((long long)x); }
#else
TSR_EXACT int tsr_exact_zeros_32(uint32_t x) { return __builtin_clz(x); }
TSR_EXACT int tsr_exact_zeros_64(uint64_t x) { return __builtin_clzll(x); }
#endif
/* How many bits x has, which is not 0. */
TSR_EXACT int tsr_exact_length(tsr_exact_natural x) {
    const uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    return high ? 128 - tsr_exact_zeros_64(high) : 64 - tsr_exact_zeros_64(low);
}

/* ---- moduli ---------------------------------------------------------------------------------- */

/* Pairwise coprime, from the largest on: a level takes the first so many. */
#define TSR_EXACT_MODULI                                                                                               \
    { 256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193 }

/* Moduli of a level. fp32 leaves out 8: data that are too wide for 7 have blocks that want 8 among others that want 9,
 * and then most tiles of a GPU's product would be made twice. 10 are not enough for the graded data of accuracy.h. */
TSR_EXACT TSR_EXACT_CONSTANT int tsr_exact_moduli(tsr_dtype type, int level) {
    return type == TSR_F64 ? 14 + level : 7 + 2 * level;
}
TSR_EXACT TSR_EXACT_CONSTANT tsr_exact_natural tsr_exact_product(int moduli) {
    const int all[TSR_EXACT_MODULI_MOST] = TSR_EXACT_MODULI;
    tsr_exact_natural product = 1;
    for (int i = 0; i < moduli; i++) product *= (tsr_exact_natural)all[i];
    return product;
}
/* 1/x modulo p, which have no common factor. */
TSR_EXACT TSR_EXACT_CONSTANT int tsr_exact_inverse(int x, int p) {
    int i = 1;
    while (x % p * i % p != 1) i++;
    return i;
}
/* What the squares of a line's numbers, scaled, may sum to: half of the product, less what rounding them to integers
 * adds: √k/2 to a norm of 2^27 or more, k ≤ TSR_EXACT_RANGE. */
TSR_EXACT TSR_EXACT_CONSTANT tsr_exact_natural tsr_exact_limit(int moduli) {
    const tsr_exact_natural half = (tsr_exact_product(moduli) - 1) / 2;
    return half - (half >> 14);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* What elements are like: of a part, TSR_EXACT_PART of a line, counted from the range's beginning, or of a line. None
 * of it depends on an order. */
typedef struct {
    int exponent;     /* all |a| < 2^exponent; TSR_EXACT_EMPTY for zeros alone */
    int lowest;       /* all a are multiples of 2^lowest; TSR_EXACT_WHOLE for zeros alone */
    uint32_t count;   /* of those that are not 0 */
    uint64_t sum;     /* of q, where |a| ≤ q·2^(exponent - TSR_EXACT_QUANTUM_BITS), rounded up */
    uint64_t squares; /* of q², rounded up */
} tsr_exact_line;

#define TSR_EXACT_PART 128
#define TSR_EXACT_QUANTUM_BITS 13
#define TSR_EXACT_EMPTY (-30000)
#define TSR_EXACT_WHOLE 30000

TSR_EXACT int64_t tsr_exact_bits(double a) {
    int64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
TSR_EXACT double tsr_exact_power(int exponent) { /* 2^exponent, of normal numbers */
    const int64_t bits = (int64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Exponents below it count as it: scales for them would leave fp64, or, of fp32, that type. */
TSR_EXACT int tsr_exact_floor(tsr_dtype type) { return type == TSR_F64 ? -960 : -90; }
/* Whether no shift serves a line: Inf, NaN, or nothing above the floor. */
TSR_EXACT bool tsr_exact_refuses(tsr_dtype type, int exponent) {
    return exponent > 1024 || exponent == tsr_exact_floor(type);
}

/* The least E with |a| < 2^E that the exponent of a tells; 1025 of Inf and NaN. */
TSR_EXACT int tsr_exact_exponent(tsr_dtype type, double a) {
    const int exponent = (int)(tsr_exact_bits(a) >> 52 & 0x7ff) - 1022, least = tsr_exact_floor(type);
    return a == 0 ? TSR_EXACT_EMPTY : exponent < least ? least : exponent;
}
/* The place of the lowest bit of a that is set. */
TSR_EXACT int tsr_exact_lowest(double a) {
    const int64_t bits = tsr_exact_bits(a);
    const int64_t field = bits >> 52 & 0x7ff;
    const int64_t fraction = (bits & (((int64_t)1 << 52) - 1)) | (int64_t)(field != 0) << 52;
    if (fraction == 0) return TSR_EXACT_WHOLE;
#ifdef __CUDA_ARCH__
    const int zeros = __ffsll(fraction) - 1;
#else
    const int zeros = __builtin_ctzll((unsigned long long)fraction);
#endif
    return (int)(field != 0 ? field : 1) - 1075 + zeros;
}

/* q of an element of a part; `scale` is 2^(TSR_EXACT_QUANTUM_BITS - exponent). */
TSR_EXACT uint32_t tsr_exact_quantum(double a, double scale) {
    const double scaled = fabs(a) * scale; /* may be too small for fp64, of elements that count as 1 */
    return a == 0 ? 0 : scaled < 1 ? 1 : (uint32_t)ceil(scaled);
}
TSR_EXACT double tsr_exact_quantum_scale(int exponent) { /* 0 for parts that have no quanta */
    return exponent == TSR_EXACT_EMPTY || exponent > 1024 ? 0 : tsr_exact_power(TSR_EXACT_QUANTUM_BITS - exponent);
}
/* x / 2^by, rounded up. */
TSR_EXACT uint64_t tsr_exact_lowered(uint64_t x, int by) {
    if (by > 62) return x > 0;
    return (x + (((uint64_t)1 << by) - 1)) >> by;
}
/* Adds a part to its line, whose `exponent` is that of all its parts already. */
TSR_EXACT void tsr_exact_join(tsr_exact_line *line, tsr_exact_line part) {
    if (part.exponent == TSR_EXACT_EMPTY) return;
    line->count += part.count;
    line->sum += tsr_exact_lowered(part.sum, line->exponent - part.exponent);
    line->squares += tsr_exact_lowered(part.squares, 2 * (line->exponent - part.exponent));
}

/* Magnitudes, whose products bound |A||B| from below: how many times 2^grain quanta an element has, rounded down, 127
 * at most. A line's grain is such that its elements have 16 to 32 in the mean, so that few large ones do not hide the
 * others. */
#define TSR_EXACT_MEAN_BITS 4
TSR_EXACT int tsr_exact_grain(tsr_exact_line line) {
    if (line.sum < line.count || line.count == 0) return -TSR_EXACT_MEAN_BITS;
    const int bits = tsr_exact_zeros_32(line.count) + 32 - tsr_exact_zeros_64(line.sum);
    return bits - ((uint64_t)line.count << bits > line.sum) - TSR_EXACT_MEAN_BITS; /* 2^bits·count ≤ sum, at last */
}
/* `scale`: that power, or 0 for lines that have no magnitudes. */
TSR_EXACT int tsr_exact_magnitude(double a, double scale) {
    const double scaled = fabs(a) * scale;
    return scale == 0 ? 0 : scaled < 127 ? (int)scaled : 127;
}
TSR_EXACT double tsr_exact_magnitude_scale(tsr_dtype type, int exponent, int grain) {
    return exponent == TSR_EXACT_EMPTY || tsr_exact_refuses(type, exponent)
               ? 0
               : tsr_exact_power(TSR_EXACT_QUANTUM_BITS - exponent - grain);
}

/* The largest t with squares·4^t ≤ limit. The line's shift is t + TSR_EXACT_QUANTUM_BITS - exponent. */
TSR_EXACT int tsr_exact_steps(uint64_t squares, tsr_exact_natural limit) {
    int t = (tsr_exact_length(limit) - tsr_exact_length(squares)) / 2 + 1;
    while ((tsr_exact_natural)squares << 2 * t > limit) t--; /* three times at most */
    return t;
}

/* The integer of an element, below 2^63; `scale` is 2^shift. */
TSR_EXACT int64_t tsr_exact_rint(double a, double scale) {
#ifdef __CUDA_ARCH__
    return __double2ll_rn(a * scale);
#else
    return llrint(a * scale);
#endif
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* What a line brings to the proof: half the sum of its quanta, and by how much rounding to integers may change an
 * element at each level, as a power of two: 2^-t; 0 where all are integers already, Inf where the line is refused. */
typedef struct {
    double half;
    double errors[TSR_EXACT_LEVELS];
    int shifts[TSR_EXACT_LEVELS];
    int exponent, grain; /* the line's */
    int first;           /* the level that a GPU converts it for when it looks at it, or -1; changes no bit of C */
    double unit;         /* 2^grain: what a magnitude of 1 stands for, in quanta */
} tsr_exact_proof;

TSR_EXACT tsr_exact_proof tsr_exact_prove(tsr_dtype type, tsr_exact_line line, const tsr_exact_natural *limits) {
    tsr_exact_proof proof;
    const bool refused = tsr_exact_refuses(type, line.exponent);
    proof.half = refused ? 0 : 0.5 * (double)line.sum;
    proof.exponent = line.exponent;
    proof.grain = tsr_exact_grain(line);
    proof.unit = tsr_exact_power(proof.grain);
    for (int level = 0; level < TSR_EXACT_LEVELS; level++) {
        const bool zero = line.exponent == TSR_EXACT_EMPTY;
        const int t = refused || zero ? 0 : tsr_exact_steps(line.squares, limits[level]);
        const int shift = refused || zero ? 0 : t + TSR_EXACT_QUANTUM_BITS - line.exponent;
        proof.shifts[level] = shift;
        proof.errors[level] = refused ? (double)INFINITY : zero || line.lowest >= -shift ? 0 : tsr_exact_power(-t);
    }
    return proof;
}

/* What the errors of a level may reach for each unit of |A||B|, in quanta: u·(f - 2) for k elements of a range: of f, 1
 * is for the last rounding, and 1 for what adding ranges loses. */
TSR_EXACT double tsr_exact_allowed(tsr_dtype type, int64_t k) {
    const double f = k > 16 ? sqrt((double)k) : 4, u = type == TSR_F64 ? 0x1p-53 : 0x1p-24;
    return (f - 2) * u * (1 - 0x1p-30);
}

/* Whether a level keeps the bound for the element of C at a row and a column, by their `half`, their `errors` at that
 * level and the product of their `unit`s; `met` is the product of magnitudes. Errors are half a unit of each element of
 * one times the other's size, and of both. Powers of two alone are multiplied by what is added, so that contracting
 * sums to fused ones changes nothing. */
TSR_EXACT bool tsr_exact_holds(double half_a, double error_a, double half_b, double error_b, double units, int64_t k,
                               double allowed, int met) {
    const double err = half_a * error_b + half_b * error_a + 0.25 * (double)k * (error_a * error_b);
    return err <= allowed * (double)met * units;
}
/* The level that an element needs, as far as magnitudes tell; the loop, where they prove none. */
TSR_EXACT int tsr_exact_level(const tsr_exact_proof *a, const tsr_exact_proof *b, int64_t k, double allowed, int met) {
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        if (tsr_exact_holds(a->half, a->errors[level], b->half, b->errors[level], a->unit * b->unit, k, allowed, met))
            return level;
    return TSR_EXACT_LOOP;
}

/* Elements of a block that need the last level: how many there are, and where those stand that one can take by
 * themselves, in any order: row · TSR_EXACT_BLOCK + column. */
typedef struct {
    uint32_t count;
    uint32_t at[TSR_EXACT_FEW];
} tsr_exact_few;
/* Whether so many do, of a block that needs `level`: it takes the level below then. */
TSR_EXACT bool tsr_exact_are_few(int level, int64_t count) { return level == TSR_EXACT_LAST && count <= TSR_EXACT_FEW; }
/* What a pair adds to the sum of integers of such an element. `scale_a`, `scale_b`: 2^shift of its lines. */
TSR_EXACT tsr_exact_integer tsr_exact_pair(double a, double scale_a, double b, double scale_b) {
    return (tsr_exact_integer)tsr_exact_rint(a, scale_a) * tsr_exact_rint(b, scale_b);
}

/* Whether a line is for the loop, and with it each block that it goes through. */
TSR_EXACT bool tsr_exact_unprovable(const tsr_exact_proof *line) {
    return line->errors[TSR_EXACT_LAST] == (double)INFINITY;
}

/* Patterns, whose products tell for the last level what becomes of the pairs of elements that meet, which are those
 * without a zero. A pair of zero adds 0 to C, exactly. An element is weak where rounding it to an integer changes it.
 * Where no pair has a weak element the sum is that of the products themselves, and is rounded once. So A times the
 * identity is A. */
#define TSR_EXACT_WEAK 127 /* the pattern of weak elements; 1 that of the others, 0 that of zeros */
/* `scale` is 2^shift of the last level. What is scaled is exact, or below 1, and weak. */
TSR_EXACT int tsr_exact_pattern(double a, double scale) {
    const double scaled = fabs(a) * scale;
    if (a == 0) return 0;
    return scaled >= 1 && scaled == rint(scaled) ? 1 : TSR_EXACT_WEAK;
}
/* Whether a product of patterns proves the last level: no pair has a weak element. */
TSR_EXACT bool tsr_exact_meets_well(int patterns) { return patterns < TSR_EXACT_WEAK; }

/* The level of a block for some of whose elements magnitudes prove none, by how many of these patterns leave. */
TSR_EXACT int tsr_exact_settled(int left) { return left > TSR_EXACT_LEFT_MOST ? TSR_EXACT_LOOP : TSR_EXACT_LAST; }

/* ---- values ---------------------------------------------------------------------------------- */

/* x·2^exponent rounded once to a number of `digits` bits whose last is worth 2^least or more, to nearest even: as
 * fp64, which holds it. */
TSR_EXACT double tsr_exact_rounded(tsr_exact_integer x, int exponent, int digits, int least) {
    const bool negative = x < 0;
    const tsr_exact_natural u = negative ? -(tsr_exact_natural)x : (tsr_exact_natural)x;
    if (u == 0) return 0;
    const int bits = tsr_exact_length(u);
    int drop = bits - digits;
    if (drop < least - exponent) drop = least - exponent;
    if (drop > bits) return negative ? -0.0 : 0.0;
    uint64_t kept = drop > 0 ? (drop < 128 ? (uint64_t)(u >> drop) : 0) : (uint64_t)u;
    if (drop > 0) {
        const tsr_exact_natural half = (tsr_exact_natural)1 << (drop - 1);
        const tsr_exact_natural lost = drop < 128 ? u & ((half << 1) - 1) : u;
        kept += lost > half || (lost == half && kept % 2 == 1);
    } else drop = 0;
    const double value = ldexp((double)kept, exponent + drop);
    return negative ? -value : value;
}
/* v of an element: the sum of its integers, and the sum of both lines' shifts. fp32: in fp64, which holds it. */
TSR_EXACT double tsr_exact_value(tsr_dtype type, tsr_exact_integer x, int shifts) {
    if (type == TSR_F64) return tsr_exact_rounded(x, -shifts, 53, -1074);
    return tsr_exact_rounded(x, -shifts, 24, -149);
}

#endif
