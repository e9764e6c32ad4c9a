/* Generated matrices: the published vectors of Philox4x32-10 (Random123, kat_vectors), independence of how a matrix
 * is cut, the distributions' moments, and the device's fill beside the host's. One source for the CPU, the host
 * emulation of CUDA, and a GPU. */
#include <math.h>

#include "kernels/fill/fill.h"
#include "kernels/fill/philox.h"
#include "tests/kernels/device/device_under_test.h"

static void check_known_answers(void) {
    const struct {
        uint32_t counter[4], key[2], random[4];
    } vectors[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                   {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                    {0xffffffff, 0xffffffff},
                    {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                   {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                    {0xa4093822, 0x299f31d0},
                    {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (int v = 0; v < 3; v++) {
        uint32_t words[4];
        memcpy(words, vectors[v].counter, sizeof words);
        tsr_philox4x32_10(words, vectors[v].key[0], vectors[v].key[1]);
        for (int w = 0; w < 4; w++)
            CHECK(words[w] == vectors[v].random[w], "vector %d word %d is %08x", v, w, words[w]);
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
    unsigned char whole[ROWS * COLS * TSR_ELEMENT_BYTES_MAX], part[PART_ROWS * LD * TSR_ELEMENT_BYTES_MAX];
    size_t bytes = tsr_dtype_bytes(dtype);
    for (int kind = TSR_FILL_UNIFORM; kind <= TSR_FILL_IDENTITY; kind++) {
        memset(part, 0xa5, sizeof part);
        CHECK_OK(tsr_fill_host((tsr_fill_kind)kind, 42, 100, 99, (tsr_view){whole, {dtype, false}, ROWS, COLS, COLS}));
        CHECK_OK(tsr_fill_host((tsr_fill_kind)kind, 42, 103, 102,
                               (tsr_view){part, {dtype, false}, PART_ROWS, PART_COLS, LD}));
        for (int i = 0; i < PART_ROWS; i++) {
            CHECK(memcmp(part + (size_t)(i * LD) * bytes, whole + (size_t)((i + 3) * COLS + 3) * bytes,
                         PART_COLS * bytes) == 0,
                  "kind %d row %d", kind, i);
            for (size_t at = (size_t)(i * LD + PART_COLS) * bytes; at < (size_t)((i + 1) * LD) * bytes; at++)
                CHECK(part[at] == 0xa5, "kind %d: byte %zu beyond row %d written", kind, at, i);
        }
    }
}

static void check_moments(void) {
    enum { N = 400 };
    double sum = 0;
    double squares = 0;
    double uniform_sum = 0;
    double product = 0;
    int counts[9] = {0};
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) {
            double normal = tsr_fill_element(TSR_FILL_NORMAL, 7, i, j),
                   uniform = tsr_fill_element(TSR_FILL_UNIFORM, 7, i, j);
            double integer = tsr_fill_element(TSR_FILL_INTEGER, 7, i, j);
            CHECK(isfinite(normal) && uniform >= 0 && uniform < 1, "%g %g", normal, uniform);
            CHECK(integer == floor(integer) && fabs(integer) <= 4, "%g", integer);
            CHECK(tsr_fill_element(TSR_FILL_IDENTITY, 7, i, j) == (i == j), "identity");
            sum += normal;
            squares += normal * normal;
            uniform_sum += uniform;
            product += normal * tsr_fill_element(TSR_FILL_NORMAL, 8, i, j);
            counts[(int)integer + 4]++;
        }
    const double n = (double)N * N; /* five standard deviations each */
    CHECK(fabs(sum / n) < 5 / sqrt(n) && fabs(squares / n - 1) < 5 * sqrt(2 / n), "mean %g, variance %g", sum / n,
          squares / n);
    CHECK(fabs(uniform_sum / n - 0.5) < 5 * sqrt(1 / (12 * n)), "mean %g", uniform_sum / n);
    CHECK(fabs(product / n) < 5 / sqrt(n), "seeds correlate: %g", product / n);
    for (int v = 0; v < 9; v++)
        CHECK(fabs(counts[v] - n / 9) < 5 * sqrt(n / 9), "%d occurs %d times", v - 4, counts[v]);
}

/* ---- the device's fill beside the host's ----------------------------------------------------- */

enum { GUARD = 64 }; /* bytes before and after the matrix */

/* Equal to the bit; numbers of the normal distribution, stored in `dtype`, within the last bits of logarithm and
 * cosine or, where rounded, one step. */
static void check_same(tsr_fill_kind kind, tsr_view host, tsr_view device) {
    host.cols *= tsr_dtype_parts(host.element.dtype); /* each part by itself */
    host.ld *= tsr_dtype_parts(host.element.dtype);
    host.element.dtype = device.element.dtype = tsr_dtype_part(host.element.dtype);
    const size_t bytes = tsr_dtype_bytes(host.element.dtype);
    for (int64_t at = 0; at < host.rows * host.ld; at++) {
        const char *expected = (const char *)host.data + (size_t)at * bytes,
                   *got = (const char *)device.data + (size_t)at * bytes;
        if (kind != TSR_FILL_NORMAL || at % host.ld >= host.cols) {
            CHECK(memcmp(expected, got, bytes) == 0, "%s %s: element %lld differs", tsr_fill_name(kind),
                  tsr_dtype_name(host.element.dtype), (long long)at);
            continue;
        }
        static const double steps[TSR_DTYPE_COUNT] = {
            [TSR_F16] = 0x1p-10, [TSR_BF16] = 0x1p-7, [TSR_F32] = 0x1p-23, [TSR_F64] = 0x1p-48};
        const double a = tsr_element_to_double(host.element, expected);
        const double b = tsr_element_to_double(device.element, got);
        const double step = steps[host.element.dtype];
        CHECK(fabs(a - b) <= (step > 0 ? step * fabs(a) + 0x1p-40 : 1), "normal %s: %.17g and %.17g",
              tsr_dtype_name(host.element.dtype), a, b);
    }
}

static void check_device(const device_under_test *under, tsr_dtype dtype, tsr_rect part, int64_t ld) {
    const tsr_fill_ops *fills = tsr_fill_find(under->ops->kind);
    CHECK(fills != NULL, "no fill for %s", under->ops->name);
    const size_t bytes = (size_t)(part.rows * ld) * tsr_dtype_bytes(dtype), all = bytes + 2 * GUARD;
    unsigned char *expected = malloc(all), *got = malloc(all);
    CHECK(expected != NULL && got != NULL, "no memory");
    for (int kind = TSR_FILL_UNIFORM; kind <= TSR_FILL_IDENTITY; kind++) {
        memset(expected, 0xa5, all);
        unsigned char *device = test_upload(under, expected, all);
        tsr_view host = {expected + GUARD, {dtype, false}, part.rows, part.cols, ld};
        tsr_view there = host;
        tsr_view back = host;
        there.data = device + GUARD;
        back.data = got + GUARD;
        CHECK_OK(tsr_fill_host((tsr_fill_kind)kind, 77, part.row, part.col, host));
        CHECK_OK(fills->fill(under->device, under->stream, (tsr_fill_kind)kind, 77, part.row, part.col, there));
        test_download(under, got, device, all);
        check_same((tsr_fill_kind)kind, host, back);
        CHECK(memcmp(got, expected, GUARD) == 0 && memcmp(got + all - GUARD, expected + all - GUARD, GUARD) == 0,
              "%s %s: bytes around it written", tsr_fill_name((tsr_fill_kind)kind), tsr_dtype_name(dtype));
    }
    free(expected);
    free(got);
}

static void check_devices(void) {
    device_under_test under = test_open();
    for (int dtype = 0; dtype < TSR_DTYPE_COUNT; dtype++) {
        check_device(&under, (tsr_dtype)dtype, (tsr_rect){5, 0, 37, 45}, 45);
        check_device(&under, (tsr_dtype)dtype, (tsr_rect){0, 0, 131, 259}, 260); /* more than a block makes at a time */
        /* high words of i and j */
        check_device(&under, (tsr_dtype)dtype, (tsr_rect){((int64_t)1 << 33) - 2, ((int64_t)1 << 33) - 1, 9, 70}, 75);
    }
    const tsr_fill_ops *fills = tsr_fill_find(under.ops->kind);
    CHECK_OK(fills->fill(under.device, under.stream, TSR_FILL_UNIFORM, 1, 0, 0,
                         (tsr_view){NULL, {TSR_F32, false}, 0, 5, 5}));
    CHECK_FAILS(
        fills->fill(under.device, under.stream, TSR_FILL_UNIFORM, 1, 0, 0, (tsr_view){NULL, {TSR_F32, true}, 2, 2, 2}),
        TSR_ERR_UNSUPPORTED, "byte order");
    CHECK_FAILS(
        fills->fill(under.device, under.stream, TSR_FILL_UNIFORM, 1, 0, 0, (tsr_view){NULL, {TSR_F32, false}, 2, 3, 2}),
        TSR_ERR_SHAPE, "ld");
    test_close(&under);
}

/* Complex elements: real parts are the even columns of a real matrix, imaginary ones the odd columns. */
static void check_complex(void) {
    float complex[3][8], reals[3][8];
    const tsr_view to = {complex, {TSR_C64, false}, 3, 4, 4}, as_reals = {reals, {TSR_F32, false}, 3, 8, 8};
    CHECK_OK(tsr_fill_host(TSR_FILL_UNIFORM, 5, 2, 7, to));
    CHECK_OK(tsr_fill_host(TSR_FILL_UNIFORM, 5, 2, 14, as_reals));
    CHECK(memcmp(complex, reals, sizeof reals) == 0, "parts");
    CHECK_OK(tsr_fill_host(TSR_FILL_IDENTITY, 5, 1, 0, to));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 8; j++) CHECK(complex[i][j] == (j == 2 * (i + 1) ? 1 : 0), "identity %d %d", i, j);
}

int main(void) {
    check_known_answers();
    check_complex();
    check_names();
    for (int dtype = 0; dtype < TSR_DTYPE_COUNT; dtype++) check_parts((tsr_dtype)dtype);
    check_moments();
    CHECK(tsr_fill_element(TSR_FILL_UNIFORM, 1, (int64_t)1 << 32, 0) != tsr_fill_element(TSR_FILL_UNIFORM, 1, 0, 0),
          "high words of i unused");
    CHECK(tsr_fill_element(TSR_FILL_UNIFORM, 1, 1, 2) != tsr_fill_element(TSR_FILL_UNIFORM, 1, 2, 1), "i and j alike");
    CHECK_FAILS(tsr_fill_host(TSR_FILL_UNIFORM, 1, 0, 0, (tsr_view){NULL, {TSR_F32, true}, 0, 0, 0}),
                TSR_ERR_UNSUPPORTED, "byte order");
    CHECK_FAILS(tsr_fill_host(TSR_FILL_UNIFORM, 1, 0, 0, (tsr_view){NULL, {TSR_F32, false}, 2, 3, 2}), TSR_ERR_SHAPE,
                "ld");
    check_devices();
    return 0;
}
