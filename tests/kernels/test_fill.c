/* Generated matrices: the published vectors of Philox4x32-10 (Random123, kat_vectors), independence of how a matrix is cut,
 * and the distributions' moments. */
#include <math.h>

#include "kernels/fill.h"
#include "kernels/philox.h"
#include "tests/check.h"

static void check_known_answers(void) {
    const struct {
        uint32_t counter[4], key[2], random[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (int v = 0; v < 3; v++) {
        uint32_t words[4];
        memcpy(words, vectors[v].counter, sizeof words);
        tsr_philox4x32_10(words, vectors[v].key[0], vectors[v].key[1]);
        for (int w = 0; w < 4; w++) CHECK(words[w] == vectors[v].random[w], "vector %d word %d is %08x", v, w, words[w]);
    }
    /* counter (i, j) = (0, 0) and seed 0 meet the first vector */
    CHECK(tsr_fill_element(TSR_FILL_UNIFORM, 0, 0, 0) == (double)(0x6627e8d5e169c58d >> 11) * 0x1p-53, "uniform");
}

static void check_names(void) {
    tsr_fill_kind kind = TSR_FILL_UNIFORM;
    for (int i = TSR_FILL_UNIFORM; i <= TSR_FILL_IDENTITY; i++) {
        CHECK_OK(tsr_fill_parse(tsr_fill_name((tsr_fill_kind)i), &kind));
        CHECK((int)kind == i, "%s", tsr_fill_name(kind));
    }
    CHECK_FAILS(tsr_fill_parse("gauss", &kind), TSR_ERR_USAGE, "normal");
    CHECK_FAILS(tsr_fill_parse("", &kind), TSR_ERR_USAGE, "normal");
}

/* Any part of a matrix is the same as that part of the whole, and nothing around it is touched. */
static void check_parts(tsr_dtype dtype) {
    enum { ROWS = 9, COLS = 11, PART_ROWS = 4, PART_COLS = 5, LD = 7 };
    unsigned char whole[ROWS * COLS * 8], part[PART_ROWS * LD * 8];
    size_t bytes = tsr_dtype_bytes(dtype);
    for (int kind = TSR_FILL_UNIFORM; kind <= TSR_FILL_IDENTITY; kind++) {
        memset(part, 0xa5, sizeof part);
        CHECK_OK(tsr_fill_host((tsr_fill_kind)kind, 42, 100, 99, (tsr_view){whole, {dtype, false}, ROWS, COLS, COLS}));
        CHECK_OK(tsr_fill_host((tsr_fill_kind)kind, 42, 103, 102, (tsr_view){part, {dtype, false}, PART_ROWS, PART_COLS, LD}));
        for (int i = 0; i < PART_ROWS; i++) {
            CHECK(memcmp(part + (size_t)(i * LD) * bytes, whole + (size_t)((i + 3) * COLS + 3) * bytes, PART_COLS * bytes) == 0, "kind %d row %d",
                  kind, i);
            for (size_t at = (size_t)(i * LD + PART_COLS) * bytes; at < (size_t)((i + 1) * LD) * bytes; at++)
                CHECK(part[at] == 0xa5, "kind %d: byte %zu beyond row %d written", kind, at, i);
        }
    }
}

static void check_moments(void) {
    enum { N = 400 };
    double sum = 0, squares = 0, uniform_sum = 0, product = 0;
    int counts[9] = {0};
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) {
            double normal = tsr_fill_element(TSR_FILL_NORMAL, 7, i, j), uniform = tsr_fill_element(TSR_FILL_UNIFORM, 7, i, j);
            double integer = tsr_fill_element(TSR_FILL_INTEGER, 7, i, j);
            CHECK(isfinite(normal) && uniform >= 0 && uniform < 1, "%g %g", normal, uniform);
            CHECK(integer == floor(integer) && fabs(integer) <= 4, "%g", integer);
            CHECK(tsr_fill_element(TSR_FILL_IDENTITY, 7, i, j) == (i == j), "identity");
            sum += normal, squares += normal * normal, uniform_sum += uniform;
            product += normal * tsr_fill_element(TSR_FILL_NORMAL, 8, i, j);
            counts[(int)integer + 4]++;
        }
    const double n = (double)N * N; /* five standard deviations each */
    CHECK(fabs(sum / n) < 5 / sqrt(n) && fabs(squares / n - 1) < 5 * sqrt(2 / n), "mean %g, variance %g", sum / n, squares / n);
    CHECK(fabs(uniform_sum / n - 0.5) < 5 * sqrt(1 / (12 * n)), "mean %g", uniform_sum / n);
    CHECK(fabs(product / n) < 5 / sqrt(n), "seeds correlate: %g", product / n);
    for (int v = 0; v < 9; v++) CHECK(fabs(counts[v] - n / 9) < 5 * sqrt(n / 9), "%d occurs %d times", v - 4, counts[v]);
}

int main(void) {
    check_known_answers();
    check_names();
    for (int dtype = 0; dtype < TSR_DTYPE_COUNT; dtype++) check_parts((tsr_dtype)dtype);
    check_moments();
    CHECK(tsr_fill_element(TSR_FILL_UNIFORM, 1, (int64_t)1 << 32, 0) != tsr_fill_element(TSR_FILL_UNIFORM, 1, 0, 0), "high words of i unused");
    CHECK(tsr_fill_element(TSR_FILL_UNIFORM, 1, 1, 2) != tsr_fill_element(TSR_FILL_UNIFORM, 1, 2, 1), "i and j alike");
    CHECK_FAILS(tsr_fill_host(TSR_FILL_UNIFORM, 1, 0, 0, (tsr_view){NULL, {TSR_F32, true}, 0, 0, 0}), TSR_ERR_UNSUPPORTED, "byte order");
    return 0;
}
