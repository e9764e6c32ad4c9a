/* IEEE half precision and bfloat16 in bit arithmetic, shared by host code and CUDA kernels so that both round alike: once, to nearest
 * even, from a double or float that holds the source value exactly. */
#ifndef TSR_KERNELS_HALF_H
#define TSR_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TSR_HOST_DEVICE __host__ __device__
#else
#define TSR_HOST_DEVICE
#endif

/* Exact. Without branches, so that loops over it vectorise: the half's exponent and mantissa moved into a float's fields
 * are 2^-112 times the value, subnormals included. */
TSR_HOST_DEVICE static inline float tsr_half_decode(uint16_t half) {
#ifdef __CUDA_ARCH__
    float decoded; /* the same but for the bits of a NaN */
    asm("cvt.f32.f16 %0, %1;" : "=f"(decoded) : "h"(half));
    return decoded;
#else
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    float scaled;
    memcpy(&scaled, &magnitude, sizeof scaled);
    scaled *= 0x1p112f;
    uint32_t finite;
    memcpy(&finite, &scaled, sizeof finite);
    uint32_t special = (uint32_t)-(int32_t)(magnitude >= (0x7c00u << 13)); /* all ones for infinity and NaN */
    uint32_t bits = sign | (special & (magnitude | 0x7f800000u)) | (~special & finite);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
#endif
}

/* Drops `shift` (1…63) low bits of `value`, rounding to nearest even. */
TSR_HOST_DEVICE static inline uint64_t tsr_half_shift(uint64_t value, int shift) {
    uint64_t quotient = value >> shift;
    uint64_t rest = value & ((UINT64_C(1) << shift) - 1);
    uint64_t tie = UINT64_C(1) << (shift - 1);
    return quotient + (uint64_t)(rest > tie || (rest == tie && (quotient & 1u)));
}

/* A 16-bit number of `mantissa` bits behind the leading one, whose exponents are stored with `bias` added. */
TSR_HOST_DEVICE static inline uint16_t tsr_encode_16(double value, int mantissa, int bias) {
    const uint64_t one = UINT64_C(1) << 52;
    const int lowest = 1 - bias; /* exponent of the smallest normal number */
    const uint16_t infinity = (uint16_t)(0x7fff >> mantissa << mantissa);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 48) & 0x8000u);
    uint64_t magnitude = bits & UINT64_C(0x7fffffffffffffff);
    int exponent = (int)(magnitude >> 52) - 1023;
    if (magnitude > UINT64_C(0x7ff0000000000000)) return (uint16_t)(sign | infinity | 1u << (mantissa - 1));
    if (exponent > bias) return (uint16_t)(sign | infinity);
    if (exponent >= lowest) /* what rounds up beyond the largest number becomes infinity by itself */
        return (uint16_t)(sign | (tsr_half_shift(magnitude, 52 - mantissa) - ((uint64_t)(1023 - bias) << mantissa)));
    if (exponent < lowest - mantissa - 1) return sign; /* below half of the smallest subnormal */
    return (uint16_t)(sign | tsr_half_shift((magnitude & (one - 1)) | one, 52 - mantissa + lowest - exponent));
}

TSR_HOST_DEVICE static inline uint16_t tsr_half_encode(double value) { return tsr_encode_16(value, 10, 15); }

/* bfloat16 is the upper half of a float. */
TSR_HOST_DEVICE static inline float tsr_bf16_decode(uint16_t bf16) {
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TSR_HOST_DEVICE static inline uint16_t tsr_bf16_encode_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* stays a NaN */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

TSR_HOST_DEVICE static inline uint16_t tsr_bf16_encode(double value) { return tsr_encode_16(value, 7, 127); }

#endif
