/* IEEE half precision and bfloat16 in bit arithmetic, shared by host code and CUDA kernels so that both round alike:
 * once, to nearest even, from a double or float that holds the source value exactly. */
#ifndef TSR_KERNELS_BASE_HALF_H
#define TSR_KERNELS_BASE_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TSR_HOST_DEVICE __host__ __device__
#else
#define TSR_HOST_DEVICE
#endif

/* Exact. Without branches, so that loops over it vectorise: the half's exponent and mantissa moved into a float's
 * fields are 2^-112 times the value, subnormals included. */
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
    uint32_t special = (uint32_t) - (int32_t)(magnitude >= (0x7c00u << 13)); /* all ones for infinity and NaN */
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

TSR_HOST_DEVICE static inline uint16_t tsr_half_encode(double value) {
    const uint64_t one = UINT64_C(1) << 52;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 48) & 0x8000u);
    uint64_t magnitude = bits & UINT64_C(0x7fffffffffffffff);
    int exponent = (int)(magnitude >> 52) - 1023;
    if (magnitude > UINT64_C(0x7ff0000000000000)) return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= UINT64_C(0x40effe0000000000)) return (uint16_t)(sign | 0x7c00u); /* from 65520: infinity */
    if (exponent >= -14) return (uint16_t)(sign | (tsr_half_shift(magnitude, 42) - ((uint64_t)(1023 - 15) << 10)));
    if (exponent < -25) return sign; /* below half of the smallest subnormal */
    return (uint16_t)(sign | tsr_half_shift((magnitude & (one - 1)) | one, 28 - exponent));
}

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

TSR_HOST_DEVICE static inline uint16_t tsr_bf16_encode(double value) {
#ifdef __CUDA_ARCH__
    /* To the float next to zero, its last bit set where that is not exact: what is rounded next falls on the same
     * side of every tie. */
    const float near = __double2float_rz(value);
    return tsr_bf16_encode_float(__uint_as_float(__float_as_uint(near) | (unsigned)((double)near != value)));
#else
    const uint64_t one = UINT64_C(1) << 52;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 48) & 0x8000u);
    uint64_t magnitude = bits & UINT64_C(0x7fffffffffffffff);
    int exponent = (int)(magnitude >> 52) - 1023;
    if (magnitude > UINT64_C(0x7ff0000000000000)) return (uint16_t)(sign | 0x7fc0u);
    if (exponent >= 128) return (uint16_t)(sign | 0x7f80u);
    if (exponent >= -126) return (uint16_t)(sign | (tsr_half_shift(magnitude, 45) - ((uint64_t)(1023 - 127) << 7)));
    if (exponent < -134) return sign; /* below half of the smallest subnormal */
    return (uint16_t)(sign | tsr_half_shift((magnitude & (one - 1)) | one, -81 - exponent));
#endif
}

#endif
