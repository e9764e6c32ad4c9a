/* Random numbers for tests of the check, and the types that hold them. Nothing here uses the check's own code. */
#ifndef TSR_TESTS_APP_VERIFY_MADE_NUMBERS_H
#define TSR_TESTS_APP_VERIFY_MADE_NUMBERS_H

#include <math.h>
#include <stdlib.h>

#include "kernels/base/base.h"
#include "kernels/base/half.h"
#include "tests/check.h"
#include "tests/splitmix64.h"

static uint64_t random_state;

static uint64_t random_bits(void) { return splitmix64(&random_state); }
static double uniform(void) { return (double)(random_bits() >> 11) * 0x1p-53; }
static int below(int n) { return (int)(random_bits() % (uint64_t)n); }
static double normal(void) { return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform()); }

static double held(double value, tsr_dtype type) {
    switch (type) {
    case TSR_F16: return tsr_half_decode(tsr_half_encode(value));
    case TSR_F32: return (float)value;
    default: return value;
    }
}
static double unit(tsr_dtype type) { return type == TSR_F16 ? 0x1p-11 : type == TSR_F32 ? 0x1p-24 : 0x1p-53; }
static double tiny(tsr_dtype type) { return type == TSR_F16 ? 0x1p-25 : type == TSR_F32 ? 0x1p-150 : 0x1p-1074; }
static double range(tsr_dtype type) {
    return type == TSR_F16 ? 65504 : type == TSR_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
}

#endif
