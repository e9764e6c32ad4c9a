/* What lines of an operand of `exact` are like, on CUDA devices: the numbers of tsr_exact_line, from few instructions
 * for each element. Device code, for exact.cu alone. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_LINES_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_LINES_H

#include <limits.h>

#include "kernels/device/cuda_warps.h"
#include "kernels/gemm/exact/exact_rules.h"

namespace exact {

template <typename T> constexpr tsr_dtype TYPE = sizeof(T) == sizeof(double) ? TSR_F64 : TSR_F32;

/* 2^exponent, of normal numbers of T; made of its bits. Converted from fp64, ptxas of CUDA 13.0 took one such power for
 * another, in a loop of two rows that it had unrolled. */
template <typename T> __device__ __forceinline__ T power_of(int exponent);
template <> __device__ __forceinline__ double power_of<double>(int exponent) { return tsr_exact_power(exponent); }
template <> __device__ __forceinline__ float power_of<float>(int exponent) {
    return __uint_as_float((unsigned)(exponent + 127) << 23);
}

/* ---- elements of a thread -------------------------------------------------------------------- */

/* Sizes are compared as bits without their sign, of fp64 as those of its upper half. The value of an element's lowest
 * bit is its size less that without the bit, or its size, of powers of two. */
template <typename T> struct Extremes;

template <> struct Extremes<float> {
    unsigned largest = 0, least = UINT_MAX; /* of sizes; of lowest bits, less 1, so that 0 counts as the largest */

    __device__ __forceinline__ void see(float x) {
        const unsigned size = __float_as_uint(x) & 0x7fffffffu;
        const float lowest = fabsf(x) - __uint_as_float(size & ((size - 1) | 0x7f800000u));
        largest = max(largest, size);
        least = min(least, min(__float_as_uint(lowest) - 1, size - 1)); /* lowest is 0 of a power of two */
    }
    __device__ __forceinline__ void join_warp();
    __device__ __forceinline__ int exponent() const {
        if (largest == 0) return TSR_EXACT_EMPTY;
        return largest >= 0x7f800000u ? 1025 : max((int)(largest >> 23) - 126, tsr_exact_floor(TSR_F32));
    }
    __device__ __forceinline__ int lowest() const {
        const unsigned bits = least + 1;
        if (bits == 0) return TSR_EXACT_WHOLE;
        return bits >> 23 ? (int)(bits >> 23) - 127 : __ffs((int)bits) - 150;
    }
};

/* Of subnormal numbers -1023, or less, for any lowest bit: no shift reaches it (a line's is 1022 at most). */
template <> struct Extremes<double> {
    unsigned largest = 0, rest = 0; /* rest: bits of the lower halves */
    unsigned least = UINT_MAX;

    __device__ __forceinline__ void see(double x) {
        const unsigned long long size = (unsigned long long)__double_as_longlong(x) & 0x7fffffffffffffffull;
        const double lowest = fabs(x) - __longlong_as_double((long long)(size & ((size - 1) | 0x7ff0000000000000ull)));
        largest = max(largest, (unsigned)(size >> 32));
        rest |= (unsigned)size;
        const unsigned own = (unsigned)((lowest > 0 ? (unsigned long long)__double_as_longlong(lowest) : size) >> 32);
        least = min(least, size == 0 ? UINT_MAX : own);
    }
    __device__ __forceinline__ void join_warp();
    __device__ __forceinline__ int exponent() const {
        if ((largest | rest) == 0) return TSR_EXACT_EMPTY;
        return largest >= 0x7ff00000u ? 1025 : max((int)(largest >> 20) - 1022, tsr_exact_floor(TSR_F64));
    }
    __device__ __forceinline__ int lowest() const {
        return least == UINT_MAX ? TSR_EXACT_WHOLE : (int)(least >> 20) - 1023;
    }
};

/* |x|·scale, rounded up: tsr_exact_quantum, as the bits that a fused sum with 2^23 or 2^52 ends in. */
__device__ __forceinline__ unsigned quantum_of(float x, float scale) {
    return __float_as_uint(__fmaf_ru(fabsf(x), scale, 0x1p23f)) & 0xffff;
}
__device__ __forceinline__ unsigned quantum_of(double x, double scale) {
    return (unsigned)__double_as_longlong(__fma_ru(fabs(x), scale, 0x1p52)) & 0xffff;
}
static_assert(TSR_EXACT_QUANTUM_BITS < 16);

/* tsr_exact_magnitude: the same, rounded down. No line has magnitudes of 2^(TSR_EXACT_QUANTUM_BITS + 4) or more. */
__device__ __forceinline__ unsigned magnitude_of(float x, float scale) {
    const unsigned bits = __float_as_uint(__fmaf_rd(fabsf(x), scale, 0x1p23f));
    return scale == 0 ? 0 : min(bits - 0x4b000000u, 127u);
}
__device__ __forceinline__ unsigned magnitude_of(double x, double scale) {
    const unsigned bits = (unsigned)__double_as_longlong(__fma_rd(fabs(x), scale, 0x1p52));
    return scale == 0 ? 0 : min(bits, 127u);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Exponent and lowest bit of elements so that the larger halves are those of all. */
__device__ __forceinline__ unsigned packed(int exponent, int lowest) {
    return (unsigned)exponent << 16 | ((unsigned)-lowest & 0xffff);
}
__device__ __forceinline__ int exponent_of(unsigned extremes) { return (int)extremes >> 16; }
__device__ __forceinline__ int lowest_of(unsigned extremes) { return -(int)(short)(extremes & 0xffff); }

template <typename T, int VALUES> __device__ __forceinline__ unsigned extremes_of(const T (&x)[VALUES]) {
    Extremes<T> all;
#pragma unroll
    for (int e = 0; e < VALUES; e++) all.see(x[e]);
    return packed(all.exponent(), all.lowest());
}

/* Of elements of a part: how many are not 0, and the sums of their quanta and of the squares of these. */
struct Quanta {
    unsigned count, sum, squares;
};
/* Of a thread's, whose part's largest exponent is known. */
template <typename T, int VALUES> __device__ __forceinline__ Quanta quanta_of(const T (&x)[VALUES], int exponent) {
    static_assert(VALUES <= 16, "32 bits hold the squares of a thread");
    const bool has_quanta = exponent != TSR_EXACT_EMPTY && exponent <= 1024;
    const T scale = has_quanta ? power_of<T>(TSR_EXACT_QUANTUM_BITS - exponent) : (T)0;
    Quanta all = {};
#pragma unroll
    for (int e = 0; e < VALUES; e++) {
        const unsigned q = quantum_of(x[e], scale);
        all.count += x[e] != 0;
        all.sum += q;
        all.squares += q * q;
    }
    if (!has_quanta) all.sum = all.squares = 0;
    return all;
}

/* Of a part, in one number: squares, sum, count. */
typedef unsigned long long Totals;
constexpr int SUM_AT = 2 * TSR_EXACT_QUANTUM_BITS + 8, COUNT_AT = SUM_AT + TSR_EXACT_QUANTUM_BITS + 9;
static_assert(TSR_EXACT_PART <= 128 && COUNT_AT + 8 <= 64, "they fit");
template <typename T, int VALUES> __device__ __forceinline__ Totals totals_of(const T (&x)[VALUES], int exponent) {
    const Quanta all = quanta_of(x, exponent);
    return (Totals)all.count << COUNT_AT | (Totals)all.sum << SUM_AT | all.squares;
}
__device__ __forceinline__ tsr_exact_line part_of(unsigned extremes, Totals totals) {
    constexpr Totals one = 1;
    return {exponent_of(extremes), lowest_of(extremes), (unsigned)(totals >> COUNT_AT),
            totals >> SUM_AT & ((one << (COUNT_AT - SUM_AT)) - 1), totals & ((one << SUM_AT) - 1)};
}

/* ---- warps ----------------------------------------------------------------------------------- */

__device__ __forceinline__ void Extremes<float>::join_warp() {
    largest = tsr_warp_largest(largest);
    least = tsr_warp_least(least);
}
__device__ __forceinline__ void Extremes<double>::join_warp() {
    largest = tsr_warp_largest(largest | (rest != 0)); /* whose last bit tells no exponent */
    rest = 0;
    least = tsr_warp_least(least);
}

/* A warp: a part. All lanes return it. */
template <typename T, int VALUES> __device__ __forceinline__ tsr_exact_line part_of_warp(const T (&x)[VALUES]) {
    static_assert(32 * VALUES <= TSR_EXACT_PART && TSR_EXACT_QUANTUM_BITS + 8 <= 24);
    Extremes<T> all;
#pragma unroll
    for (int e = 0; e < VALUES; e++) all.see(x[e]);
    all.join_warp();
    const int exponent = all.exponent();
    const Quanta own = quanta_of(x, exponent);
    const unsigned both = tsr_warp_total(own.count << 24 | own.sum);
    const unsigned low = tsr_warp_total(own.squares & 0xffff), high = tsr_warp_total(own.squares >> 16);
    return {exponent, all.lowest(), both >> 24, both & 0xffffff, ((unsigned long long)high << 16) + low};
}

/* A warp makes a line of its parts, `step` apart. All lanes return it. */
__device__ __forceinline__ tsr_exact_line line_of(const tsr_exact_line *parts, int64_t step, int count) {
    constexpr int QUANTA = TSR_EXACT_QUANTUM_BITS;
    static_assert(TSR_EXACT_RANGE <= 1 << 14 && QUANTA + 14 < 32, "32 bits hold a line's sum,");
    static_assert(2 * QUANTA + 14 - 16 < 32, "and its squares without their lowest 16 bits");
    constexpr int OFFSET = 1 << 15;
    const int lane = (int)threadIdx.x % 32;
    tsr_exact_line line = {TSR_EXACT_EMPTY, TSR_EXACT_WHOLE, 0, 0, 0};
    for (int i = lane; i < count; i += 32) {
        line.exponent = max(line.exponent, parts[i * step].exponent);
        line.lowest = min(line.lowest, parts[i * step].lowest);
    }
    line.exponent = (int)tsr_warp_largest((unsigned)(line.exponent + OFFSET)) - OFFSET;
    line.lowest = (int)tsr_warp_least((unsigned)(line.lowest + OFFSET)) - OFFSET;
    for (int i = lane; i < count; i += 32) tsr_exact_join(&line, parts[i * step]);
    line.count = tsr_warp_total(line.count);
    line.sum = tsr_warp_total((unsigned)line.sum);
    const unsigned low = tsr_warp_total((unsigned)line.squares & 0xffff);
    line.squares = ((unsigned long long)tsr_warp_total((unsigned)(line.squares >> 16)) << 16) + low;
    return line;
}

} // namespace exact

#endif
