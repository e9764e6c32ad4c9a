/* What lines of an operand of `exact` are like, on CUDA devices: the numbers of tsr_exact_line, from few instructions
 * for each element. Device code, for exact.cu alone. */
#ifndef TSR_KERNELS_GEMM_EXACT_EXACT_LINES_H
#define TSR_KERNELS_GEMM_EXACT_EXACT_LINES_H

#include <limits.h>

#include "kernels/device/cuda_compat.h"
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
        least = min(least, __float_as_uint(lowest > 0 ? lowest : fabsf(x)) - 1);
    }
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

/* Of a part, in one number: the sum of its quanta's squares, of its quanta, and how many elements are not 0. */
typedef unsigned long long Totals;
constexpr int SUM_AT = 2 * TSR_EXACT_QUANTUM_BITS + 8, COUNT_AT = SUM_AT + TSR_EXACT_QUANTUM_BITS + 9;
static_assert(TSR_EXACT_PART <= 128 && COUNT_AT + 8 <= 64, "they fit");

/* Of a part whose largest exponent is known. */
template <typename T, int VALUES> __device__ __forceinline__ Totals totals_of(const T (&x)[VALUES], int exponent) {
    static_assert(VALUES <= 16, "32 bits hold the squares of a thread");
    const bool has_quanta = exponent != TSR_EXACT_EMPTY && exponent <= 1024;
    const T scale = has_quanta ? power_of<T>(TSR_EXACT_QUANTUM_BITS - exponent) : (T)0;
    unsigned count = 0;
    unsigned sum = 0, squares = 0; /* of quanta */
#pragma unroll
    for (int e = 0; e < VALUES; e++) {
        const unsigned q = quantum_of(x[e], scale);
        count += x[e] != 0;
        sum += q;
        squares += q * q;
    }
    const Totals counted = (Totals)count << COUNT_AT;
    return has_quanta ? counted | (Totals)sum << SUM_AT | squares : counted;
}
__device__ __forceinline__ tsr_exact_line part_of(unsigned extremes, Totals totals) {
    constexpr Totals one = 1;
    return {exponent_of(extremes), lowest_of(extremes), (unsigned)(totals >> COUNT_AT),
            totals >> SUM_AT & ((one << (COUNT_AT - SUM_AT)) - 1), totals & ((one << SUM_AT) - 1)};
}

/* ---- warps ----------------------------------------------------------------------------------- */

__device__ __forceinline__ unsigned warp_extremes(unsigned x) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) x = __vmaxs2(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
}
template <typename X> __device__ __forceinline__ X warp_sum(X x) {
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/* A warp makes a line of its parts, `step` apart. All lanes return it. */
__device__ __forceinline__ tsr_exact_line line_of(const tsr_exact_line *parts, int64_t step, int count) {
    const int lane = (int)threadIdx.x % 32;
    tsr_exact_line line = {0, 0, 0, 0, 0};
    unsigned all = packed(TSR_EXACT_EMPTY, TSR_EXACT_WHOLE);
    for (int i = lane; i < count; i += 32)
        all = __vmaxs2(all, packed(parts[i * step].exponent, parts[i * step].lowest));
    all = warp_extremes(all);
    line.exponent = exponent_of(all);
    line.lowest = lowest_of(all);
    for (int i = lane; i < count; i += 32) tsr_exact_join(&line, parts[i * step]);
    line.count = warp_sum(line.count);
    line.sum = warp_sum((unsigned long long)line.sum);
    line.squares = warp_sum((unsigned long long)line.squares);
    return line;
}

} // namespace exact

#endif
