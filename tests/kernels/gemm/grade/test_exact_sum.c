/* The tests' own sums (exact_sum.h) against integers of 128 bits, and numbers that are known at both ends of the range
 * of fp64 and fp32. */
#include <float.h>

#include "tests/kernels/gemm/grade/known_product.h"

static exact_sum sum_of(int count, const double *a, const double *b) {
    exact_sum sum = {{0}};
    for (int l = 0; l < count; l++) exact_add(&sum, a[l], b[l]);
    return sum;
}

static void check_integers(void) {
    double a[300], b[300];
    for (int round = 0; round < 2000; round++) {
        const int count = 1 + (int)known_drawn(300), scale = (int)known_drawn(1000) - 500;
        __int128 sum = 0;
        for (int l = 0; l < count; l++) {
            const int64_t x = (int64_t)(known_uniform() * 0x1p53) - ((int64_t)1 << 52);
            const int64_t y = (int64_t)(known_uniform() * 0x1p53) - ((int64_t)1 << 52);
            sum += (__int128)x * y;
            a[l] = ldexp((double)x, scale);
            b[l] = ldexp((double)y, -scale);
        }
        const exact_sum found = sum_of(count, a, b);
        CHECK(exact_rounded(found, TSR_F64) == (double)sum, "%g, not %g", exact_rounded(found, TSR_F64), (double)sum);
        CHECK(exact_rounded(found, TSR_F32) == (double)(float)sum, "fp32: %g", exact_rounded(found, TSR_F32));
        const double got = (double)sum + (double)known_drawn(1u << 30);
        const long double rest = exact_rest(found, got), want = (long double)(sum - (__int128)got);
        CHECK(fabsl(rest - want) <= 0x1p-62L * fabsl(want), "%Lg apart, not %Lg", rest, want);
    }
}

typedef struct {
    double a[3], b[3], f64, f32;
} known_case;
static const known_case cases[] = {
    {{1, 0x1p-60, 0}, {1, 1, 0}, 1, 1},
    {{1, 0x1p-53, 0}, {1, 1, 0}, 1, 1},                                    /* a tie, to even */
    {{1 + 0x1p-52, 0x1p-53, 0}, {1, 1, 0}, 1 + 0x1p-51, 1},                /* the other one */
    {{1, 0x1p-53, 0x1p-537}, {1, 1, 0x1p-537}, 1 + 0x1p-52, 1},            /* more than a tie */
    {{1, 0x1p-24, 0x1p-537}, {1, 1, 0x1p-537}, 1 + 0x1p-24, 1 + 0x1p-23},  /* rounded once, not twice */
    {{DBL_MAX, -DBL_MAX, 0x1p-1074}, {DBL_MAX, DBL_MAX, 1}, 0x1p-1074, 0}, /* all but the least cancels */
    {{-DBL_MAX, 0x1p1000, 0}, {1, -1, 0}, -INFINITY, -INFINITY},           /* out of range */
    {{DBL_MAX, 0x1p969, 0}, {1, 1, 0}, DBL_MAX, INFINITY},                 /* the largest that rounds into it */
    {{0x1p-1074, -0x1p-1074, 0}, {0x1p-1074, 0x1p-1074, 0}, 0, 0},         /* nothing is left of nearly nothing */
    {{0x1p-1074, 0x1p-600, 0}, {0.5, 0x1p-600, 0}, 0x1p-1074, 0},          /* more than half of the least */
    {{0x1p-1074, 0, 0}, {-0.5, 0, 0}, 0, 0},                               /* half of it, to even */
    {{0x1p-75, 0x1p-149, 0}, {0x1p-75, 0.25, 0}, 0x1.8p-150, 0x1p-149},    /* the same of fp32 */
    {{0x1.fffffep127, 0x1p103, 0}, {1, 1, 0}, 0x1.ffffffp127, INFINITY},   /* half beyond the largest of fp32 */
    {{-0x1p-1000, 3, 0}, {0x1p-1000, -0x1p-1074, 0}, -0x1.8p-1073, 0},     /* negative, and subnormal */
};

int main(void) {
    check_integers();
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const exact_sum found = sum_of(3, cases[i].a, cases[i].b);
        const double f64 = exact_rounded(found, TSR_F64), f32 = exact_rounded(found, TSR_F32);
        CHECK(f64 == cases[i].f64 && f32 == cases[i].f32, "case %d: %a and %a, not %a and %a", i, f64, f32,
              cases[i].f64, cases[i].f32);
    }
    return 0;
}
