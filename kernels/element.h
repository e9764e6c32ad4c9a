/* Loading one stored element of any type and byte order and converting it, rounded once, to the type products are computed
 * in. Shared by the host's and the GPU's pack so that both give the same bits. TSR_SOURCE_LIST expands one line per source:
 * X(dtype, suffix, bits): word type uintBITS_t, tsr_reverse_BITS, tsr_convert_SUFFIX. */
#ifndef TSR_KERNELS_ELEMENT_H
#define TSR_KERNELS_ELEMENT_H

#include "kernels/base.h"
#include "kernels/half.h"

TSR_HOST_DEVICE static inline uint8_t tsr_reverse_8(uint8_t word) { return word; }
TSR_HOST_DEVICE static inline uint16_t tsr_reverse_16(uint16_t word) { return (uint16_t)(word << 8 | word >> 8); }
TSR_HOST_DEVICE static inline uint32_t tsr_reverse_32(uint32_t word) {
    return word << 24 | (word & 0xff00u) << 8 | (word >> 8 & 0xff00u) | word >> 24;
}
TSR_HOST_DEVICE static inline uint64_t tsr_reverse_64(uint64_t word) {
    return (uint64_t)tsr_reverse_32((uint32_t)word) << 32 | tsr_reverse_32((uint32_t)(word >> 32));
}

TSR_HOST_DEVICE static inline float tsr_convert_f16(uint16_t word) { return tsr_half_decode(word); }
TSR_HOST_DEVICE static inline float tsr_convert_bf16(uint16_t word) { return tsr_bf16_decode(word); }
TSR_HOST_DEVICE static inline float tsr_convert_f32(uint32_t word) {
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}
TSR_HOST_DEVICE static inline double tsr_convert_f64(uint64_t word) {
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}
TSR_HOST_DEVICE static inline int8_t tsr_convert_i8(uint8_t word) { return (int8_t)word; }
TSR_HOST_DEVICE static inline int16_t tsr_convert_i16(uint16_t word) { return (int16_t)word; }
TSR_HOST_DEVICE static inline int32_t tsr_convert_i32(uint32_t word) { return (int32_t)word; }
TSR_HOST_DEVICE static inline int64_t tsr_convert_i64(uint64_t word) { return (int64_t)word; }
TSR_HOST_DEVICE static inline uint8_t tsr_convert_u8(uint8_t word) { return word; }
TSR_HOST_DEVICE static inline uint16_t tsr_convert_u16(uint16_t word) { return word; }
TSR_HOST_DEVICE static inline uint32_t tsr_convert_u32(uint32_t word) { return word; }
TSR_HOST_DEVICE static inline uint64_t tsr_convert_u64(uint64_t word) { return word; }

#define TSR_SOURCE_LIST(X)                                                                                            \
    X(F16, f16, 16)                                                                                                   \
    X(BF16, bf16, 16)                                                                                                 \
    X(F32, f32, 32)                                                                                                   \
    X(F64, f64, 64)                                                                                                   \
    X(I8, i8, 8)                                                                                                      \
    X(I16, i16, 16)                                                                                                   \
    X(I32, i32, 32)                                                                                                   \
    X(I64, i64, 64)                                                                                                   \
    X(U8, u8, 8)                                                                                                      \
    X(U16, u16, 16)                                                                                                   \
    X(U32, u32, 32)                                                                                                   \
    X(U64, u64, 64)

#endif
