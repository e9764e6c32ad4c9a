/* Every NaN as the same one, for sums that have the same bits wherever they are made: processors make NaN with signs
 * and payloads of their own. */
#ifndef TSR_KERNELS_BASE_ONE_NAN_H
#define TSR_KERNELS_BASE_ONE_NAN_H

#include <stdint.h>
#include <string.h>

#include "kernels/base/half.h"

static inline TSR_HOST_DEVICE double tsr_one_nan_f64(double x) {
    const int64_t bits = (int64_t)0x7ff8000000000000;
    double nan;
    memcpy(&nan, &bits, sizeof nan);
    return x == x ? x : nan;
}
static inline TSR_HOST_DEVICE float tsr_one_nan_f32(float x) {
    const int32_t bits = 0x7fc00000;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    return x == x ? x : nan;
}

#ifdef __cplusplus
static inline TSR_HOST_DEVICE double tsr_one_nan(double x) { return tsr_one_nan_f64(x); }
static inline TSR_HOST_DEVICE float tsr_one_nan(float x) { return tsr_one_nan_f32(x); }
#endif

#endif
