/* Big-endian numbers, which the formats of HDF5's filters begin with. */
#ifndef TSR_IO_FILTERS_BIG_ENDIAN_H
#define TSR_IO_FILTERS_BIG_ENDIAN_H

#include <stdint.h>

static inline uint32_t tsr_big32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t tsr_big64(const uint8_t *at) { return (uint64_t)tsr_big32(at) << 32 | tsr_big32(at + 4); }

static inline void tsr_put_big32(uint8_t *at, uint32_t number) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(number >> (24 - 8 * i));
}

static inline void tsr_put_big64(uint8_t *at, uint64_t number) {
    tsr_put_big32(at, (uint32_t)(number >> 32));
    tsr_put_big32(at + 4, (uint32_t)number);
}

#endif
