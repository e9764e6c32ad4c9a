/* Philox4x32-10, the counter-based generator of Salmon et al., SC 2011: ten rounds turn a 128-bit counter and a
 * 64-bit key into 128 random bits. Header-only so that its test can feed it the published vectors. */
#ifndef TSR_KERNELS_FILL_PHILOX_H
#define TSR_KERNELS_FILL_PHILOX_H

#include <stdint.h>

#include "kernels/base/half.h" /* TSR_HOST_DEVICE */

/* Replaces the counter with the random words. */
TSR_HOST_DEVICE static inline void tsr_philox4x32_10(uint32_t counter[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * counter[0];
        uint64_t product1 = (uint64_t)0xCD9E8D57u * counter[2];
        uint32_t word0 = (uint32_t)(product1 >> 32) ^ counter[1] ^ key0;
        uint32_t word2 = (uint32_t)(product0 >> 32) ^ counter[3] ^ key1;
        counter[0] = word0;
        counter[1] = (uint32_t)product1;
        counter[2] = word2;
        counter[3] = (uint32_t)product0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

#endif
