/* The kernel that makes a product, by shape: as it was before every kernel had its `substitute`, for shapes around each
 * bound; what any kernel's substitutes must be; and what a reader is told. */
#include <inttypes.h>

#include "kernels/gemm/registry.h"
#include "tests/check.h"

#define ASKED 5
/* Kernels with substitutes. `hash`: of the names that serve all shapes of `edges`. */
static const struct {
    const char *name;
    tsr_dtype type;
    uint64_t hash;
} asked[ASKED] = {
    {.name = "simt", .type = TSR_F32, .hash = 0x25de1fab7a43c6bf},
    {.name = "simt", .type = TSR_F64, .hash = 0xd105534de410c9af},
    {.name = "split3", .type = TSR_F32, .hash = 0xb13eb12d48ceb767},
    {.name = "dmma", .type = TSR_F64, .hash = 0xa8df1ab43d8fc335},
    {.name = "tf32", .type = TSR_F32, .hash = 0x1ab1a19e48fe74fd},
};

/* m, n, k, and the kernel that made the product where each of `asked` was asked for. Written by a program that was
 * linked with version 0.1.0's kernels, its redirects inside launches included. */
static const struct {
    int64_t m, n, k;
    const char *made_by[ASKED];
} expected[] = {
    {1, 1, 0, {"checked", "checked", "checked", "coarse", "coarse"}},
    {64, 64, 0, {"tiled", "tiled", "tiled", "coarse", "coarse"}},
    {33, 33, 0, {"checked", "checked", "checked", "coarse", "coarse"}},
    {1, 1, 1, {"checked", "checked", "checked", "coarse", "coarse"}},
    {32, 32, 32, {"tiled", "tiled", "tiled", "coarse", "coarse"}},
    {33, 32, 32, {"checked", "checked", "checked", "coarse", "coarse"}},
    {64, 64, 64, {"tiled", "tiled", "tiled", "coarse", "tf32"}},
    {65, 64, 64, {"checked", "checked", "checked", "coarse", "tf32"}},
    {63, 64, 64, {"checked", "checked", "checked", "coarse", "tf32"}},
    {64, 64, 63, {"checked", "checked", "checked", "coarse", "coarse"}},
    {128, 128, 128, {"tiled", "tiled", "tiled", "dmma", "tf32"}},
    {100, 100, 16, {"checked", "checked", "checked", "coarse", "coarse"}},
    {100, 100, 17, {"checked", "checked", "checked", "coarse", "coarse"}},
    {110, 110, 80, {"checked", "checked", "checked", "coarse", "tf32"}},
    {112, 112, 80, {"checked", "checked", "checked", "dmma", "tf32"}},
    {111, 112, 80, {"checked", "checked", "checked", "coarse", "tf32"}},
    {112, 112, 81, {"checked", "checked", "checked", "dmma", "tf32"}},
    {8192, 8192, 16, {"simt", "simt", "simt", "coarse", "tf32"}},
    {8192, 8192, 17, {"simt", "simt", "simt", "dmma", "tf32"}},
    {4096, 4096, 63, {"simt", "simt", "simt", "dmma", "tf32"}},
    {4096, 4096, 64, {"simt", "simt", "simt", "dmma", "tf32"}},
    {4096, 4096, 32, {"simt", "simt", "simt", "dmma", "tf32"}},
    {320, 320, 320, {"tiled", "tiled", "tiled", "dmma", "tf32"}},
    {321, 320, 320, {"checked", "checked", "checked", "dmma", "tf32"}},
    {329, 329, 329, {"checked", "checked", "checked", "dmma", "tf32"}},
    {330, 330, 330, {"checked", "simt", "checked", "dmma", "tf32"}},
    {352, 352, 352, {"tiled", "simt", "tiled", "dmma", "tf32"}},
    {352, 320, 320, {"tiled", "simt", "tiled", "dmma", "tf32"}},
    {330, 330, 329, {"checked", "checked", "checked", "dmma", "tf32"}},
    {439, 439, 439, {"checked", "simt", "checked", "dmma", "tf32"}},
    {440, 440, 440, {"simt", "simt", "simt", "dmma", "tf32"}},
    {416, 416, 416, {"tiled", "simt", "tiled", "dmma", "tf32"}},
    {448, 448, 416, {"tiled", "simt", "tiled", "dmma", "tf32"}},
    {1, 100000, 100, {"checked", "checked", "checked", "dmma", "tf32"}},
    {1, 100000, 352, {"checked", "simt", "checked", "dmma", "tf32"}},
    {1, 100000, 1000, {"simt", "simt", "simt", "dmma", "tf32"}},
    {100000, 1, 439, {"checked", "simt", "checked", "dmma", "tf32"}},
    {100000, 1, 440, {"simt", "simt", "simt", "dmma", "tf32"}},
    {512, 512, 512, {"simt", "simt", "simt", "dmma", "tf32"}},
    {1024, 1024, 1024, {"simt", "simt", "simt", "dmma", "tf32"}},
    {1099, 1099, 1099, {"simt", "simt", "simt", "dmma", "tf32"}},
    {1100, 1100, 1100, {"simt", "simt", "split3", "dmma", "tf32"}},
    {1101, 1101, 1101, {"simt", "simt", "split3", "dmma", "tf32"}},
    {319, 319, 100000, {"simt", "simt", "simt", "dmma", "tf32"}},
    {320, 320, 100000, {"simt", "simt", "split3", "dmma", "tf32"}},
    {321, 320, 100000, {"simt", "simt", "split3", "dmma", "tf32"}},
    {160, 8192, 8192, {"simt", "simt", "simt", "dmma", "tf32"}},
    {161, 8192, 8192, {"simt", "simt", "simt", "dmma", "tf32"}},
    {163, 8192, 8192, {"simt", "simt", "simt", "dmma", "tf32"}},
    {164, 8192, 8192, {"simt", "simt", "split3", "dmma", "tf32"}},
    {2048, 2048, 2048, {"simt", "simt", "split3", "dmma", "tf32"}},
    {8192, 8192, 8192, {"simt", "simt", "split3", "dmma", "tf32"}},
    {100000, 100000, 64, {"simt", "simt", "split3", "dmma", "tf32"}},
    {256, 256, 100000, {"simt", "simt", "simt", "dmma", "tf32"}},
    {1, 1, 100000, {"simt", "simt", "simt", "dmma", "tf32"}},
    {1, 4096, 4096, {"simt", "simt", "simt", "dmma", "tf32"}},
    {4096, 1, 4096, {"simt", "simt", "simt", "dmma", "tf32"}},
    {8192, 8192, 268435456, {"simt", "simt", "split3", "dmma", "tf32"}},
    {8192, 8192, 268435457, {"coarse", "coarse", "split3", "dmma", "tf32"}},
    {1, 1073741824, 512, {"simt", "simt", "simt", "dmma", "tf32"}},
    {1, 1073741825, 512, {"coarse", "coarse", "coarse", "dmma", "coarse"}},
    {1073741825, 1, 512, {"simt", "simt", "simt", "dmma", "coarse"}},
    {8192, 8192, 1073741825, {"coarse", "coarse", "split3", "dmma", "coarse"}},
    {4096, 1073741824, 4096, {"simt", "simt", "split3", "dmma", "tf32"}},
    {4096, 1073741825, 4096, {"coarse", "coarse", "split3", "dmma", "coarse"}},
    {4096, 2147483391, 4096, {"coarse", "coarse", "split3", "dmma", "coarse"}},
    {4096, 2147483392, 4096, {"coarse", "coarse", "split3", "coarse", "coarse"}},
    {1000000, 1000000, 64, {"simt", "simt", "split3", "dmma", "tf32"}},
    {8000000, 8000000, 4096, {"simt", "simt", "split3", "coarse", "coarse"}},
    {5700000, 5700000, 100, {"simt", "simt", "split3", "dmma", "tf32"}},
    {6000000, 6000000, 100, {"simt", "simt", "split3", "coarse", "coarse"}},
    {1073741824, 1073741824, 1024, {"simt", "simt", "split3", "coarse", "coarse"}},
    {3000000000, 1, 1, {"simt", "simt", "simt", "coarse", "coarse"}},
    {3000000000, 3000000000, 3000000000, {"coarse", "coarse", "split3", "coarse", "coarse"}},
};

static const int64_t edges[] = {0,
                                1,
                                2,
                                15,
                                16,
                                17,
                                31,
                                32,
                                33,
                                63,
                                64,
                                65,
                                79,
                                80,
                                81,
                                96,
                                128,
                                159,
                                160,
                                161,
                                256,
                                319,
                                320,
                                321,
                                329,
                                330,
                                331,
                                352,
                                439,
                                440,
                                441,
                                448,
                                512,
                                1000,
                                1024,
                                1099,
                                1100,
                                1101,
                                1120,
                                4096,
                                8192,
                                100000,
                                1 << 28,
                                (1 << 28) + 1,
                                1 << 30,
                                (1 << 30) + 1,
                                INT32_MAX - 256,
                                INT32_MAX - 255,
                                3000000000};
#define EDGES ((int)(sizeof edges / sizeof *edges))

/* In this build; NULL: it needs another. */
static const tsr_gemm_kernel *find(const char *name, tsr_dtype type) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(kernels[i]->name, name) == 0 && kernels[i]->input == type) return kernels[i];
    return NULL;
}

static void check_as_before(void) {
    for (int i = 0; i < ASKED; i++) {
        const tsr_gemm_kernel *kernel = find(asked[i].name, asked[i].type);
        uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
        if (!kernel) continue;
        for (size_t s = 0; s < sizeof expected / sizeof *expected; s++) {
            const int64_t m = expected[s].m;
            const int64_t n = expected[s].n;
            const int64_t k = expected[s].k;
            const char *name = tsr_gemm_serving(kernel, m, n, k)->name;
            CHECK(strcmp(name, expected[s].made_by[i]) == 0,
                  "%s makes %" PRId64 " x %" PRId64 " x %" PRId64 " for %s, and %s did", name, m, n, k, kernel->name,
                  expected[s].made_by[i]);
        }
        for (int at = 0; at < EDGES * EDGES * EDGES; at++) {
            const int64_t m = edges[at / EDGES / EDGES];
            const int64_t n = edges[at / EDGES % EDGES];
            const int64_t k = edges[at % EDGES];
            if (m == 0 || n == 0) continue;
            for (const char *name = tsr_gemm_serving(kernel, m, n, k)->name; *name; name++)
                hash = (hash ^ (uint64_t)*name) * UINT64_C(1099511628211);
        }
        CHECK(hash == asked[i].hash, "%s %s: other kernels than before: %016" PRIx64, kernel->name,
              tsr_dtype_name(kernel->type), hash);
    }
}

static size_t workspace_of(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    return kernel->workspace_bytes ? kernel->workspace_bytes(m, n, k) : 0;
}

/* What makes a product in `kernel`'s place: as accurate, for the same types and devices, content with its workspace,
 * and named with a reason. */
static void check_serving(const tsr_gemm_kernel *kernel, int64_t m, int64_t n, int64_t k) {
    const tsr_gemm_kernel *other = tsr_gemm_serving(kernel, m, n, k);
    char text[TSR_GEMM_TEXT];
    tsr_gemm_explain(kernel, 1, m, n, k, text);
    CHECK(strstr(text, kernel->name) == text && strstr(text, other->name), "%s is served by %s: %s", kernel->name,
          other->name, text);
    CHECK((strstr(text, " -> ") != NULL) == (other != kernel), "%s", text);
    CHECK(strlen(text) < TSR_GEMM_TEXT - 1, "no room for: %s", text);
    if (other != kernel) {
        CHECK(other->device == kernel->device && other->input == kernel->input && other->type == kernel->type &&
                  other->accuracy <= kernel->accuracy && other->min_arch <= kernel->min_arch && other->max_arch == 0,
              "%s cannot stand for %s", other->name, kernel->name);
        CHECK(m % other->multiple == 0 && n % other->multiple == 0 && k % other->multiple == 0,
              "%s cannot make %" PRId64 " x %" PRId64 " x %" PRId64 " for %s", other->name, m, n, k, kernel->name);
    }
    if (m <= 100000 && n <= 100000 && k <= 100000)
        CHECK(workspace_of(other, m, n, k) <= workspace_of(kernel, m, n, k),
              "%s needs %zu bytes for %" PRId64 " x %" PRId64 " x %" PRId64 " and %s has %zu", other->name,
              workspace_of(other, m, n, k), m, n, k, kernel->name, workspace_of(kernel, m, n, k));
    if (other->fallback) /* it has packed operands in its workspace: the fallback must make the same product */
        CHECK(tsr_gemm_serving(other->fallback, m, n, k)->predicated, "the fallback of %s obeys no predicate",
              other->name);
}

/* What makes a batch in one launch: one that stands for the kernel, where products are small. */
static void check_batched(void) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    char text[TSR_GEMM_TEXT];
    for (int i = 0; i < count; i++) {
        const tsr_gemm_kernel *kernel = kernels[i], *batched = kernel->batched;
        CHECK(!tsr_gemm_serving_batch(kernel, 1, 64, 64, 64) && !tsr_gemm_serving_batch(kernel, 0, 64, 64, 64),
              "%s: one product is no batch", kernel->name);
        CHECK(tsr_gemm_serving_batch(kernel, 2, 64, 64, 64) == batched, "%s", kernel->name);
        CHECK(tsr_gemm_serving_batch(kernel, 2, 640, 640, 641) == (batched == kernel ? kernel : NULL),
              "%s: large products are launched one by one", kernel->name);
        CHECK(strcmp(tsr_gemm_explain(kernel, 9, 2000, 2000, 2000, text), kernel->name) == 0 ||
                  !strstr(text, "a batch"),
              "%s", text);
        if (!batched) continue;
        CHECK(batched->device == kernel->device && batched->input == kernel->input && batched->type == kernel->type &&
                  batched->accuracy <= kernel->accuracy && batched->min_arch <= kernel->min_arch &&
                  batched->multiple == 1 && batched->batched == batched,
              "%s cannot stand for %s", batched->name, kernel->name);
        CHECK(batched == kernel || workspace_of(batched, 64, 64, 64) == 0, "%s needs a workspace", batched->name);
    }
}

static void check_substitutes(void) {
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++)
        for (int at = 0; at < EDGES * EDGES * EDGES; at++) {
            const int64_t m = edges[at / EDGES / EDGES];
            const int64_t n = edges[at / EDGES % EDGES];
            const int64_t k = edges[at % EDGES];
            if (m > 0 && n > 0) check_serving(kernels[i], m, n, k);
        }
}

static void check_text(const char *name, int64_t edge, const char *text) {
    char found[TSR_GEMM_TEXT];
    const tsr_gemm_kernel *kernel = find(name, TSR_F32);
    if (!kernel) return;
    tsr_gemm_explain(kernel, 1, edge, edge, edge, found);
    CHECK(strcmp(found, text) == 0, "%s", found);
}

static void check_texts(void) {
    char found[TSR_GEMM_TEXT];
    if (find("simt", TSR_F32))
        CHECK(strcmp(tsr_gemm_explain(find("simt", TSR_F32), 5, 64, 64, 64, found),
                     "simt -> batched (a batch, m*n*k <= 640^3)") == 0,
              "%s", found);
    check_text("blas", 100, "blas");
    check_text("simt", 1000, "simt");
    check_text("simt", 64, "simt -> tiled (m*n*k < 440^3, k < 440)");
    check_text("simt", 65, "simt -> tiled (m*n*k < 440^3, k < 440) -> checked (m, n or k is no multiple of 32)");
    check_text("split3", 1000, "split3 -> simt (m*n*k < 1100^3, k < 1100)");
    check_text("split3", 2000, "split3, or exact or simt where the device finds elements that it cannot hold");

    const tsr_device_facts cpu = {.kind = TSR_DEVICE_CPU, .name = "a CPU"},
                           gpu = {.kind = TSR_DEVICE_CUDA, .name = "a GPU", .arch = 90, .code = "90a"};
    const tsr_gemm_request request = {.a = TSR_F32, .b = TSR_F32, .type = TSR_F32, .m = 8192, .n = 8192, .k = 8192};
    const tsr_gemm_kernel *kernel = NULL;
    char text[TSR_GEMM_TEXT];
    CHECK_OK(tsr_gemm_choose("auto", &cpu, &request, &kernel));
    tsr_gemm_explain_choice("auto", &cpu, &request, kernel, text);
    CHECK(strcmp(text, "auto -> blas (by rank: nothing was measured on such a device)") == 0, "%s", text);
    tsr_gemm_explain_choice("auto", &cpu, &request, &tsr_gemm_reference_f32, text);
    CHECK(strstr(text, "auto -> reference (the choice of the rank"), "%s", text);
    tsr_gemm_explain_choice("blas", &cpu, &request, kernel, text);
    CHECK(strcmp(text, "blas, asked for by name") == 0, "%s", text);
    if (!find("simt", TSR_F32)) return;
    CHECK_OK(tsr_gemm_choose("auto", &gpu, &request, &kernel));
    tsr_gemm_explain_choice("auto", &gpu, &request, kernel, text);
    CHECK(strstr(text, "(fastest as measured, ") && strstr(text, "TFLOP/s at about 8192 x 8192 x 8192)"), "%s", text);
}

int main(void) {
    check_as_before();
    check_substitutes();
    check_batched();
    check_texts();
    return 0;
}
