/* The oracle of `bench accuracy` against sums that are known exactly and against a wider type, and the inputs it is
 * used on. */
#include "kernels/gemm/accuracy.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/fill/fill.h"
#include "tests/check.h"

enum { MOST_K = 4096 };

static double a[MOST_K], b[MOST_K];

/* Integers whose products and sums fit 63 bits, not a double's 53. */
static void check_integers(void) {
    for (int k = 0; k <= MOST_K; k = 2 * k + 1) {
        int64_t sum = 0, magnitude = 0;
        double absolute;
        for (int p = 0; p < k; p++) {
            a[p] = floor(0x1p25 * (tsr_fill_element(TSR_FILL_UNIFORM, 1, p, k) - 0.5));
            b[p] = floor(0x1p25 * (tsr_fill_element(TSR_FILL_UNIFORM, 2, p, k) - 0.25));
            sum += (int64_t)a[p] * (int64_t)b[p];
            magnitude += llabs((int64_t)a[p] * (int64_t)b[p]);
        }
        tsr_double_double found = tsr_oracle_dot(k, a, b, &absolute);
        CHECK(found.high == (double)sum, "k = %d: %.17g, not %.17g", k, found.high, (double)sum);
        CHECK((int64_t)found.low == sum - (int64_t)found.high, "k = %d: the rest is %g", k, found.low);
        CHECK(fabs(absolute - (double)magnitude) <= k * 0x1p-53 * (double)magnitude, "k = %d: %.17g, not %.17g", k,
              absolute, (double)magnitude);
    }
}

static void check_known(void) {
    const double ones[4] = {1, 1, 1, 1};
    const double far[2] = {0x1p80, 1};
    const double gone[4] = {0x1p90, 0x1p-30, 3, -0x1p90};
    const double lost[2] = {1 + 0x1p-40, -1};
    const double other[2] = {1 + 0x1p-40, 1 + 0x1p-39};
    double absolute;
    tsr_double_double found = tsr_oracle_dot(2, far, ones, &absolute);
    CHECK(found.high == 0x1p80 && found.low == 1, "%g + %g", found.high, found.low);
    found = tsr_oracle_dot(4, gone, ones, &absolute);
    CHECK(found.high == 3 + 0x1p-30 && found.low == 0, "%.17g + %g", found.high, found.low);
    found = tsr_oracle_dot(2, lost, other, &absolute); /* (1 + u)² - (1 + 2u) = u² */
    CHECK(found.high == 0x1p-80 && found.low == 0, "%g + %g", found.high, found.low);
}

static void fill(tsr_input input, double phi, tsr_dtype dtype, int64_t rows, int64_t cols, void *to, bool is_a) {
    tsr_view view = {to, {dtype, false}, rows, cols, cols};
    CHECK_OK(is_a ? tsr_input_fill_a(input, phi, view) : tsr_input_fill_b(input, phi, view));
}

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 wide_float; /* 113 bits */

static void check_wide_float(void) {
    for (int input = 0; input < TSR_INPUT_COUNT; input++) {
        fill((tsr_input)input, 3, TSR_F64, 1, MOST_K, a, true);
        fill((tsr_input)input, 3, TSR_F64, MOST_K, 1, b, false);
        wide_float exact = 0, magnitude = 0;
        double absolute, plain = 0;
        for (int p = 0; p < MOST_K; p++) {
            wide_float product = (wide_float)a[p] * (wide_float)b[p];
            exact += product;
            magnitude += product < 0 ? -product : product;
            plain += a[p] * b[p];
        }
        tsr_double_double found = tsr_oracle_dot(MOST_K, a, b, &absolute);
        double error = fabs((double)((wide_float)found.high + (wide_float)found.low - exact)),
               bound = MOST_K * 0x1p-92 * (double)magnitude;
        CHECK(error <= bound, "%s: error %g, bound %g", tsr_input_name((tsr_input)input), error, bound);
        double plain_error = fabs((double)((wide_float)plain - exact));
        const bool many = input != TSR_INPUT_SPARSE && input != TSR_INPUT_BANDED; /* terms to add up */
        CHECK(!many || plain_error > 100 * bound, "%s: a plain sum would pass, too: %g",
              tsr_input_name((tsr_input)input), plain_error);
        CHECK(fabs(absolute - (double)magnitude) <= MOST_K * 0x1p-52 * (double)magnitude, "%s: %g",
              tsr_input_name((tsr_input)input), absolute);
    }
}
#else
static void check_wide_float(void) {}
#endif

/* Root of the mean square of `count` elements `step` apart. */
static double level(const double *data, int count, int step) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += data[i * step] * data[i * step];
    return sqrt(sum / count);
}

static void check_inputs(void) {
    enum { SIZE = 64, K = 64 };
    static double twice[SIZE * K], again[SIZE * K];
    static float single[SIZE * K];
    for (int input = 0; input < TSR_INPUT_COUNT; input++)
        for (int is_a = 0; is_a < 2; is_a++) {
            tsr_input parsed;
            CHECK_OK(tsr_input_parse(tsr_input_name((tsr_input)input), &parsed));
            CHECK((int)parsed == input, "%d", (int)parsed);
            fill((tsr_input)input, 2, TSR_F64, SIZE, K, twice, is_a);
            fill((tsr_input)input, 2, TSR_F64, SIZE, K, again, is_a);
            fill((tsr_input)input, 2, TSR_F32, SIZE, K, single, is_a);
            CHECK(memcmp(twice, again, sizeof twice) == 0, "%s differs from run to run", tsr_input_name(parsed));
            for (int i = 0; i < SIZE * K; i++)
                CHECK(single[i] == (float)twice[i] && isfinite(single[i]), "%s: element %d", tsr_input_name(parsed), i);
        }
    fill(TSR_INPUT_NORMAL, 0, TSR_F64, SIZE, K, twice, true);
    fill(TSR_INPUT_WIDE, 0, TSR_F64, SIZE, K, again, true);
    CHECK(memcmp(twice, again, sizeof twice) == 0, "wide with phi = 0 is not normal");
    fill(TSR_INPUT_WIDE, 4, TSR_F64, SIZE, K, again, true);
    CHECK(level(again, SIZE * K, 1) > 100 * level(twice, SIZE * K, 1), "wide with phi = 4 is not wide");
    for (int side = 0; side < 2; side++) {
        int sparse = 0;
        int banded = 0;
        int outside = 0;
        fill(TSR_INPUT_SPARSE, 0, TSR_F64, SIZE, K, twice, side == 0);
        fill(TSR_INPUT_BANDED, 0, TSR_F64, SIZE, K, again, side == 0);
        for (int i = 0; i < SIZE * K; i++) {
            const int line = side == 0 ? i / K : i % K, along = side == 0 ? i % K : i / K;
            const int lines = side == 0 ? SIZE : K,
                      length = side == 0 ? K : SIZE; /* rows of A (SIZE x K), columns of B (SIZE x K) */
            sparse += twice[i] != 0;
            banded += again[i] != 0;
            outside += again[i] != 0 && abs(line * length / lines - along) > 25;
        }
        CHECK(sparse > 0 && sparse < SIZE * K / 30, "%d of %d elements of a sparse matrix", sparse, SIZE * K);
        CHECK(banded > 0 && outside == 0, "%d elements of a banded matrix, %d outside the band", banded, outside);
    }
    fill(TSR_INPUT_GRADED, 0, TSR_F64, SIZE, K, twice, true);
    CHECK(level(twice, 8, 1) > 1000 * level(twice + K - 8, 8, 1), "rows of A are not graded");
    CHECK(level(twice, 8, K) > 1000 * level(twice + (SIZE - 8) * K, 8, K), "columns of A are not graded");
}

static void check_cancelling(void) {
    for (int k = 1; k <= 129; k += 16) {
        double absolute;
        fill(TSR_INPUT_CANCELLING, 0, TSR_F64, 1, k, a, true);
        fill(TSR_INPUT_CANCELLING, 0, TSR_F64, k, 1, b, false);
        tsr_double_double found = tsr_oracle_dot(k, a, b, &absolute);
        CHECK(absolute > 0 && (k == 1 || fabs(found.high) < 0x1p-9 * absolute), "k = %d: %g of %g left", k, found.high,
              absolute);
    }
}

int main(void) {
    tsr_input input;
    float value;
    check_integers();
    check_known();
    check_wide_float();
    check_inputs();
    check_cancelling();
    CHECK_FAILS(tsr_input_parse("zipf", &input), TSR_ERR_USAGE, "cancelling");
    CHECK_FAILS(tsr_input_fill_a(TSR_INPUT_NORMAL, 0, (tsr_view){&value, {TSR_I32, false}, 1, 1, 1}),
                TSR_ERR_UNSUPPORTED, "i32");
    return 0;
}
