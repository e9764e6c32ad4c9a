/* Elements of every type: what a stored word of either byte order is as a number of C, and a number as an element.
 * Shared by the host and the GPU so that both give the same bits. TSR_REAL_LIST names what is here: word type
 * uintBITS_t, tsr_reverse_BITS, tsr_convert_SUFFIX, which is exact, and tsr_encode_SUFFIX. */
#ifndef TSR_KERNELS_BASE_ELEMENT_H
#define TSR_KERNELS_BASE_ELEMENT_H

#include "kernels/base/base.h"
#include "kernels/base/half.h"

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
TSR_HOST_DEVICE static inline uint8_t tsr_convert_b8(uint8_t word) { return word != 0; }

/* ---- the other way: an fp64 value as an element, rounded once --------------------------------- */

TSR_HOST_DEVICE static inline uint16_t tsr_encode_f16(double value) { return tsr_half_encode(value); }
TSR_HOST_DEVICE static inline uint16_t tsr_encode_bf16(double value) { return tsr_bf16_encode(value); }
TSR_HOST_DEVICE static inline float tsr_encode_f32(double value) { return (float)value; }
TSR_HOST_DEVICE static inline double tsr_encode_f64(double value) { return value; }
/* Integer types take the value cut towards zero. */
TSR_HOST_DEVICE static inline int8_t tsr_encode_i8(double value) { return (int8_t)value; }
TSR_HOST_DEVICE static inline int16_t tsr_encode_i16(double value) { return (int16_t)value; }
TSR_HOST_DEVICE static inline int32_t tsr_encode_i32(double value) { return (int32_t)value; }
TSR_HOST_DEVICE static inline int64_t tsr_encode_i64(double value) { return (int64_t)value; }
TSR_HOST_DEVICE static inline uint8_t tsr_encode_u8(double value) { return (uint8_t)value; }
TSR_HOST_DEVICE static inline uint16_t tsr_encode_u16(double value) { return (uint16_t)value; }
TSR_HOST_DEVICE static inline uint32_t tsr_encode_u32(double value) { return (uint32_t)value; }
TSR_HOST_DEVICE static inline uint64_t tsr_encode_u64(double value) { return (uint64_t)value; }
TSR_HOST_DEVICE static inline uint8_t tsr_encode_b8(double value) { return value != 0; }

/* row[j] = value, of a real type, in this machine's byte order; 0 where an unsigned type is given what is negative. */
TSR_HOST_DEVICE static inline void tsr_element_store(tsr_dtype dtype, void *row, int64_t j, double value) {
    const double natural = value > 0 ? value : 0;
    switch (dtype) {
#define STORE(code, suffix, memory, from)                                                                              \
    case TSR_##code:                                                                                                   \
        ((memory *)row)[j] = tsr_encode_##suffix(from);                                                                \
        break;
#define X(code, suffix, bits, memory) STORE(code, suffix, memory, value)
        TSR_FLOAT_LIST(X)
        TSR_SIGNED_LIST(X)
#undef X
#define X(code, suffix, bits, memory) STORE(code, suffix, memory, natural)
        TSR_UNSIGNED_LIST(X)
#undef X
#undef STORE
    default: break;
    }
}

#endif
