/* Sums of residues, two at a time in fp16: an instruction takes both, and none waits for integers' multiplier. Integers
 * up to 2048 are exact in fp16, even ones up to 4096. Device code. */
#ifndef TSR_KERNELS_GEMM_RESIDUES_PAIRS_H
#define TSR_KERNELS_GEMM_RESIDUES_PAIRS_H

#include "kernels/base/half.h"
#include "kernels/device/cuda_compat.h"
#include "kernels/gemm/exact/exact_rules.h"

namespace pairs {

typedef unsigned Pair; /* two fp16 numbers */

#ifdef TSR_EMULATE_CUDA
static inline double half_of(Pair x, int shift) { return (double)tsr_half_decode((uint16_t)(x >> shift)); }
template <typename Operation> static inline Pair of_halves(Operation operation) {
    return (Pair)tsr_half_encode(operation(0)) | (Pair)tsr_half_encode(operation(16)) << 16;
}
static inline Pair add(Pair x, Pair y) {
    return of_halves([x, y](int at) { return half_of(x, at) + half_of(y, at); });
}
static inline Pair subtract(Pair x, Pair y) {
    return of_halves([x, y](int at) { return half_of(x, at) - half_of(y, at); });
}
static inline Pair multiply_add(Pair x, Pair y, Pair z) {
    return of_halves([x, y, z](int at) { return half_of(x, at) * half_of(y, at) + half_of(z, at); });
}
#else
__device__ __forceinline__ Pair add(Pair x, Pair y) {
    Pair sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));
    return sum;
}
__device__ __forceinline__ Pair subtract(Pair x, Pair y) {
    Pair difference;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(x), "r"(y));
    return difference;
}
__device__ __forceinline__ Pair multiply_add(Pair x, Pair y, Pair z) {
    Pair sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(y), "r"(z));
    return sum;
}
#endif

/* fp16 numbers, twice: 2^10, whose last ten bits are an integer that is added to it, that and 2^7, twice this, and
 * 1.5 · 2^10, which rounds what is added to an integer. */
constexpr Pair FRONT = 0x64006400;
constexpr Pair MOVED = 0x64806480;
constexpr Pair MOVED_TWICE = 0x68806880;
constexpr Pair ROUNDS = 0x66006600;

/* Four bytes as two pairs, each number plus MOVED. */
struct Moved {
    Pair lower, upper;
};
constexpr unsigned SIGNS = 0x80808080;
__device__ __forceinline__ Moved moved(unsigned bytes) {
    return {__byte_perm(bytes ^ SIGNS, FRONT, 0x5150), __byte_perm(bytes ^ SIGNS, FRONT, 0x5352)};
}

struct Modulus {
    Pair inverse, minus; /* 1/p and -p */
};
static inline Modulus modulus_of(int p) {
    const auto both = [](double x) { return (Pair)tsr_half_encode(x) * 0x10001u; };
    return {both(1.0 / p), both(-p)};
}
/* x, four residues' sum at most, modulo p in [-p/2, p/2], plus MOVED. The quotient is less than 512/193, so it errs by
 * 2.7 · 2^-11 with 1/p as it is in fp16. That is less than 1/(2p), by which quotients by odd p are off from a tie. */
__device__ __forceinline__ Pair reduced(Pair x, const Modulus &p) {
    const Pair quotient = subtract(multiply_add(x, p.inverse, ROUNDS), ROUNDS);
    return multiply_add(quotient, p.minus, add(x, MOVED));
}
/* Four bytes of two such. */
__device__ __forceinline__ unsigned bytes_of(Pair lower, Pair upper) {
    return __byte_perm(lower, upper, 0x6420) ^ SIGNS;
}

} // namespace pairs

#endif
