/* Where `auto` takes `exact`, with speeds that are made up (TSR_GEMM_SPEED_TABLE): for large products in fp64, not for
 * short or thin ones, and with another kernel to hand over to. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/speeds.h"
#include "tests/check.h"

static tsr_device_facts gpu(int arch, const char *code) {
    tsr_device_facts facts = {.kind = TSR_DEVICE_CUDA, .name = "a GPU", .arch = arch};
    snprintf(facts.code, sizeof facts.code, "%s", code);
    return facts;
}
static tsr_gemm_request request_of(tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    return (tsr_gemm_request){.a = type, .b = type, .type = type, .m = m, .n = n, .k = k};
}
static const tsr_gemm_kernel *chosen(const char *name, const tsr_device_facts *facts, tsr_gemm_request request) {
    const tsr_gemm_kernel *kernel = NULL;
    CHECK_OK(tsr_gemm_choose(name, facts, &request, &kernel));
    return kernel;
}
static bool is_exact(const tsr_gemm_kernel *kernel) { return strcmp(kernel->name, "exact") == 0; }

static bool is_there(const char *name, tsr_dtype type) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++)
        if (kernels[i]->device == TSR_DEVICE_CUDA && kernels[i]->type == type && strcmp(kernels[i]->name, name) == 0)
            return true;
    return false;
}

/* Speeds are those of the table, for squares; other shapes have conversion and the last step to pay for. */
static void check_speeds(const tsr_gemm_kernel *kernel, const tsr_device_facts *facts) {
    for (int i = 0; i < TSR_GEMM_SPEED_SIZES; i++) {
        const int64_t edge = TSR_GEMM_SPEED_SMALLEST << i;
        const double square = tsr_gemm_speed(kernel, facts, edge, edge, edge);
        CHECK(fabs(square / 1e12 / tsr_gemm_speeds[0].round[i] - 1) < 1e-9, "%ld: %g", (long)edge, square);
    }
    const double square = tsr_gemm_speed(kernel, facts, 8192, 8192, 8192);
    const double flat = tsr_gemm_speed(kernel, facts, 32768, 32768, 512);
    const double thin = tsr_gemm_speed(kernel, facts, 512, 32768, 32768);
    const double turned = tsr_gemm_speed(kernel, facts, 32768, 512, 32768);
    const double nothing = tsr_gemm_speed(kernel, facts, 8192, 8192, 0);
    CHECK(flat < 0.6 * square && flat > 0.3 * square, "short: %g of %g", flat, square);
    CHECK(thin < 0.7 * square && thin > 0.3 * square && turned == thin, "thin: %g and %g of %g", thin, turned, square);
    CHECK(nothing > 0 && nothing <= square, "nothing: %g", nothing);
    /* flop/s, so a product of half of k takes more than half as long: it has as many last steps */
    const double all = 1 / tsr_gemm_speed(kernel, facts, 16384, 16384, 2048);
    const double half = 1 / tsr_gemm_speed(kernel, facts, 16384, 16384, 1024);
    CHECK(half > 1.1 * all, "half of k: %g and %g", half, all);
}

static void check_shapes(const tsr_device_facts *facts) {
    static const struct {
        int64_t m, n, k;
        bool exact;
    } shapes[] = {{8192, 8192, 8192, true},    {4096, 4096, 4096, true},   {4095, 4095, 4095, true},
                  {30000, 30000, 30000, true}, {8192, 8192, 65536, true},  {16384, 8192, 4096, true},
                  {32768, 32768, 512, false},  {512, 32768, 32768, false}, {32768, 512, 32768, false},
                  {1024, 1024, 100000, false}, {2048, 2048, 2048, false},  {100, 100, 100, false},
                  {1, 100000, 100000, false},  {100000, 100000, 1, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t m = shapes[i].m;
        const int64_t n = shapes[i].n;
        const int64_t k = shapes[i].k;
        const tsr_gemm_kernel *kernel = chosen("auto", facts, request_of(TSR_F64, m, n, k));
        CHECK(is_exact(kernel) == shapes[i].exact, "%s for %ld x %ld x %ld", kernel->name, (long)m, (long)n, (long)k);
        if (!is_exact(kernel)) continue;
        CHECK(kernel->fallback && kernel->substitute && !kernel->launch_reproducible && !kernel->checks,
              "auto takes the kernel that makes all");
        CHECK(tsr_gemm_serving(kernel, m, n, k) == kernel, "%ld x %ld x %ld is left to %s", (long)m, (long)n, (long)k,
              tsr_gemm_serving(kernel, m, n, k)->name);
        CHECK(!is_exact(tsr_gemm_serving(kernel, m, n, 512)), "short panels of %ld x %ld are not left", (long)m,
              (long)n);
    }
}

/* What stands for `exact` under auto, beside what it stands for. */
static void check_pair(const tsr_gemm_kernel *exact) {
    const tsr_gemm_kernel *own = exact->for_auto, *other = own->fallback;
    CHECK(!exact->fallback && !exact->substitute && !own->for_auto,
          "exact asked for by name leaves products to others");
    CHECK(strcmp(own->name, exact->name) == 0 && own->type == exact->type && own->input == exact->input &&
              own->accuracy == exact->accuracy && own->error_factor >= exact->error_factor,
          "auto takes another kernel");
    CHECK(other->predicated && other->type == exact->type && other->accuracy == exact->accuracy &&
              other->min_arch == own->min_arch && other->max_arch == own->max_arch &&
              tsr_gemm_error_bound(other, 5000) <= tsr_gemm_error_bound(own, 5000),
          "%s cannot stand for exact", other->name);
    static const int64_t edges[] = {1, 127, 600, 4096, 14335, 14336, 20000, 40000};
    for (int i = 0; i < 512; i++) {
        const int64_t m = edges[i / 64];
        const int64_t n = edges[i / 8 % 8];
        const int64_t k = edges[i % 8];
        const size_t room = own->workspace_bytes(m, n, k);
        CHECK(room >= exact->workspace_bytes(m, n, k) && room >= other->workspace_bytes(m, n, k),
              "%zu bytes for %ld x %ld x %ld", room, (long)m, (long)n, (long)k);
        for (int edge = 0; edge < 3; edge++) {
            const size_t less =
                own->workspace_bytes(edge == 0 ? m / 2 : m, edge == 1 ? n / 2 : n, edge == 2 ? k / 2 : k);
            CHECK(less <= room, "%zu bytes for less than %ld x %ld x %ld", less, (long)m, (long)n, (long)k);
        }
    }
}

static void check_texts(const tsr_gemm_kernel *own, const tsr_device_facts *facts) {
    char text[TSR_GEMM_TEXT], want[TSR_GEMM_TEXT];
    const tsr_gemm_request request = request_of(TSR_F64, 8192, 8192, 8192);
    tsr_gemm_explain_choice("auto", facts, &request, own, text);
    CHECK(strcmp(text, "auto -> exact (fastest as measured, 76 TFLOP/s at about 8192 x 8192 x 8192)") == 0, "%s", text);
    snprintf(want, sizeof want, "exact, or %s where the device finds data that take longer here", own->fallback->name);
    CHECK(strcmp(tsr_gemm_explain(own, 1, 8192, 8192, 8192, text), want) == 0, "%s", text);
    snprintf(want, sizeof want, "exact -> %s (350/m + 350/n + 500/k + 1600^3/(m*n*k) > 0.53)", own->fallback->name);
    CHECK(strcmp(tsr_gemm_explain(own, 1, 8192, 8192, 512, text), want) == 0, "%s", text);
}

int main(void) {
    const tsr_device_facts h200 = gpu(90, "90a"), portable = gpu(90, "80");
    const tsr_device_facts older = gpu(80, "80"), newer = gpu(100, "100a");
    const tsr_gemm_request large = request_of(TSR_F64, 8192, 8192, 8192);
    if (!is_there("exact", TSR_F64)) return 0; /* a build without CUDA */
    const bool hopper = is_there("dmma", TSR_F64);
    const tsr_gemm_kernel *exact = chosen("exact", &h200, large), *own = exact->for_auto;
    CHECK(strcmp(own->fallback->name, hopper ? "dmma" : "simt") == 0, "%s", own->fallback->name);
    check_pair(exact);
    check_pair(chosen("exact", &h200, request_of(TSR_F32, 8192, 8192, 8192)));
    check_speeds(exact, &h200);
    check_shapes(&h200);
    check_texts(own, &h200);
    CHECK(!is_exact(chosen("auto", &older, large)) && !is_exact(chosen("auto", &portable, large)),
          "exact where nobody measured it");
    CHECK(is_exact(chosen("auto", &newer, large)) == !hopper, "exact, and its fallback does not run there");
    const tsr_gemm_kernel *single = chosen("auto", &h200, request_of(TSR_F32, 8192, 8192, 8192));
    CHECK(strcmp(single->name, hopper ? "split3" : "exact") == 0, "fp32: %s", single->name);
    return 0;
}
