/* The memory kernels: the arithmetic of coalescing, the access patterns, every kernel's result against the host's,
 * and checks that notice a wrong element. One source for builds without CUDA, the host emulation of CUDA, and a GPU. */
#include <math.h>

#include "kernels/fill/fill.h"
#include "kernels/memory/patterns.h"
#include "tests/kernels/device/device_under_test.h"

#ifdef TSR_EMULATE_CUDA
static const int64_t sizes[] = {32, 64, 96, 160};
#else
static const int64_t sizes[] = {32, 96, 1056, 4096};
#endif
enum { GUARD = 32 }; /* floats painted after out */

static double coalescing(int64_t first, int64_t step, int lanes, int64_t bytes) {
    int64_t at[TSR_MEMORY_WARP];
    for (int lane = 0; lane < lanes; lane++) at[lane] = first + lane * step;
    return tsr_coalescing(at, lanes, bytes);
}

static void check_coalescing(void) {
    CHECK(coalescing(0, 4, 32, 4) == 1, "sequential floats");
    CHECK(coalescing(4, 4, 32, 4) == 128.0 / 160, "five sectors");
    CHECK(coalescing(32, 4, 32, 4) == 1, "one sector on");
    CHECK(coalescing(0, 8, 32, 4) == 0.5, "every second float");
    CHECK(coalescing(0, 32, 32, 4) == 0.125, "a sector each");
    CHECK(coalescing(0, 4096, 32, 4) == 0.125, "a column");
    CHECK(coalescing(64, 0, 32, 4) == 4, "one float for all");
    CHECK(coalescing(0, 16, 32, 16) == 1, "16 bytes a lane");
    CHECK(coalescing(0, 1, 32, 1) == 1, "bytes");
    CHECK(coalescing(0, 8, 1, 8) == 0.25, "one double");
}

static void check_patterns(void) {
    enum { ROWS = 128, ELEMENTS = ROWS * TSR_MEMORY_STRIDE };
    /* each reads every element once */
    for (int pattern = TSR_PATTERN_SEQUENTIAL; pattern <= TSR_PATTERN_STRIDED; pattern++) {
        int reads[ELEMENTS] = {0};
        for (int64_t y = 0; y < TSR_MEMORY_STRIDE; y++)
            for (int64_t x = 0; x < ROWS; x++) {
                int64_t at = tsr_pattern_index((tsr_pattern)pattern, x, y, ROWS);
                CHECK(at >= 0 && at < ELEMENTS, "pattern %d reads %lld", pattern, (long long)at);
                reads[at]++;
            }
        for (int at = 0; at < ELEMENTS; at++)
            CHECK(reads[at] == 1, "pattern %d reads %d %d times", pattern, at, reads[at]);
    }
    for (int64_t x = 0; x < ROWS; x++)
        CHECK(tsr_pattern_index(TSR_PATTERN_BROADCAST, x, 2, ROWS) == (2 * ROWS + x) / 32, "broadcast %lld",
              (long long)x);
}

/* The degrees that the table states. */
static void check_degrees(void) {
    static const struct {
        const char *name;
        double load, store;
    } expected[] = {{"copy", 1, 1},
                    {"copy-wide", 0, 0},
                    {"transpose-read", 1, 0.125},
                    {"transpose-write", 0.125, 1},
                    {"transpose-ldg", 0.125, 1},
                    {"transpose-padded", 1, 1},
                    {"sequential", 1, 1},
                    {"permuted", 1, 1},
                    {"offset", 0.8, 1},
                    {"strided", 0.125, 1},
                    {"broadcast", 4, 1},
                    {"sum-grid", 0, 0}};
    int count, found = 0;
    const tsr_memory_kernel *const *kernels = tsr_memory_kernels(&count);
    for (int k = 0; k < count; k++)
        for (size_t e = 0; e < sizeof expected / sizeof *expected; e++) {
            if (strcmp(kernels[k]->name, expected[e].name) != 0) continue;
            CHECK(tsr_memory_load_coalescing(kernels[k], 64) == expected[e].load, "%s loads", kernels[k]->name);
            CHECK(tsr_memory_store_coalescing(kernels[k], 64) == expected[e].store, "%s stores", kernels[k]->name);
            found++;
        }
    CHECK(found == (count > 0 ? (int)(sizeof expected / sizeof *expected) : 0), "%d of the names are there", found);
}

/* A wrong element anywhere has to be noticed: an element flipped in its lowest bits. */
static void check_check(const tsr_memory_kernel *kernel, int64_t n, const float *in, float *out) {
    const int64_t places[] = {0, n * n / 2 + 1, n * n - 1};
    int noticed = 0;
    for (int p = 0; p < 3; p++) {
        uint32_t word, other;
        memcpy(&word, &out[places[p]], sizeof word);
        other = word ^ 0x00400001u;
        memcpy(&out[places[p]], &other, sizeof other);
        tsr_status status = tsr_memory_check(kernel, n, in, out);
        CHECK(status == TSR_OK || status == TSR_ERR_CHECK, "%s", tsr_status_text(status));
        if (status == TSR_ERR_CHECK)
            CHECK(strstr(tsr_message(), kernel->name) != NULL, "message was: %s", tsr_message());
        noticed += status == TSR_ERR_CHECK;
        memcpy(&out[places[p]], &word, sizeof word);
    }
    CHECK(noticed == (kernel->result == TSR_MEMORY_SUM ? 1 : 3), "%s: %d of 3 wrong elements noticed", kernel->name,
          noticed);
}

static void check_kernel(const device_under_test *under, const tsr_memory_kernel *kernel, int64_t n, const float *in,
                         float *out) {
    const size_t bytes = (size_t)(n * n) * sizeof(float);
    memset(out, tsr_memory_paint(kernel), bytes);
    memset(out + n * n, 0xa5, GUARD * sizeof(float));
    tsr_memory_args args = {
        .n = n, .in = test_upload(under, in, bytes), .out = test_upload(under, out, bytes + GUARD * sizeof(float))};
    for (int repeat = 0; repeat < 2; repeat++) CHECK_OK(tsr_memory_launch(kernel, under->device, under->stream, &args));
    test_download(under, out, args.out, bytes + GUARD * sizeof(float));
    float *after = malloc(bytes);
    CHECK(after != NULL, "no memory");
    test_download(under, after, (void *)(uintptr_t)args.in, bytes);
    CHECK(memcmp(after, in, bytes) == 0, "%s wrote to its input", kernel->name);
    free(after);
    CHECK_OK(tsr_memory_check(kernel, n, in, out));
    for (size_t i = 0; i < GUARD * sizeof(float); i++)
        CHECK(((unsigned char *)(out + n * n))[i] == 0xa5, "%s, n = %lld: byte %zu after its output written",
              kernel->name, (long long)n, i);
    check_check(kernel, n, in, out);
}

static void check_kernels(const device_under_test *under) {
    int count;
    const tsr_memory_kernel *const *kernels = tsr_memory_kernels(&count);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s];
        float *in = malloc((size_t)(n * n) * sizeof *in), *out = malloc((size_t)(n * n + GUARD) * sizeof *out);
        CHECK(in != NULL && out != NULL, "no memory");
        CHECK_OK(tsr_fill_host(TSR_FILL_INTEGER, 3, 0, 0, (tsr_view){in, {TSR_F32, false}, n, n, n}));
        for (int k = 0; k < count; k++) check_kernel(under, kernels[k], n, in, out);
        free(in);
        free(out);
    }
    const tsr_memory_args odd = {.n = 33};
    if (count > 0)
        CHECK_FAILS(tsr_memory_launch(kernels[0], under->device, under->stream, &odd), TSR_ERR_SHAPE, "multiple of 32");
}

int main(void) {
    check_coalescing();
    check_patterns();
    check_degrees();
    device_under_test under = test_open();
    if (under.ops->kind == TSR_DEVICE_CUDA) check_kernels(&under);
    test_close(&under);
    return 0;
}
