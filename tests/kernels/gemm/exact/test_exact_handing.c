/* `exact` as `auto` takes it: what is handed over has the bits of the other kernel, everything else those of `exact`,
 * to the last bit, on the device that TSR_TEST_DEVICE names. Exit code 77: there is none. */
#include <math.h>
#include <string.h>

#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/registry.h"
#include "tests/kernels/device/device_under_test.h"
#include "tests/kernels/gemm/grade/known_product.h"

typedef struct {
    tsr_dtype type;
    int64_t m, n, k;
    int64_t pad; /* elements from the end of a row to the next */
    bool accumulate;
    double *a, *b; /* rows are as long as they stand on the device */
} product;

static double element(int64_t l, int64_t from, int64_t to) {
    return known_normal() * (l >= from && l < to ? exp(8 * known_normal()) : 1);
}

/* Normal numbers; in columns `from` to `to` of A, and rows of B, such that no level holds. */
static product make(tsr_dtype type, int64_t m, int64_t n, int64_t k, int64_t from, int64_t to, bool accumulate) {
    product p = {.type = type, .m = m, .n = n, .k = k, .pad = m % 2, .accumulate = accumulate};
    p.a = known_room(m * (k + p.pad), sizeof *p.a);
    p.b = known_room(k * (n + p.pad), sizeof *p.b);
    for (int64_t at = 0; at < m * (k + p.pad); at++) p.a[at] = element(at % (k + p.pad), from, to);
    for (int64_t at = 0; at < k * (n + p.pad); at++) p.b[at] = element(at / (n + p.pad), from, to);
    return p;
}
static void drop(product *p) {
    free(p->a);
    free(p->b);
}

/* C by one kernel, or by two of which the second one adds what is from `cut` of k on, under a predicate if there is
 * one: m × (n + pad) elements, to be freed. */
static void *made_if(const device_under_test *on, const product *p, const tsr_gemm_kernel *first, int64_t cut,
                     const tsr_gemm_kernel *second, const unsigned *predicate, tsr_gemm_fallbacks *counted) {
    const size_t bytes = tsr_dtype_bytes(p->type), bytes_c = (size_t)(p->m * (p->n + p->pad)) * bytes;
    void *a = known_elements(p->type, p->a, p->m * (p->k + p->pad));
    void *b = known_elements(p->type, p->b, p->k * (p->n + p->pad));
    void *c = known_room(p->m * (p->n + p->pad), bytes);
    for (int64_t at = 0; at < p->m * (p->n + p->pad); at++) tsr_element_store(p->type, c, at, p->accumulate ? 3 : NAN);
    char *on_a = test_upload(on, a, (size_t)(p->m * (p->k + p->pad)) * bytes);
    char *on_b = test_upload(on, b, (size_t)(p->k * (p->n + p->pad)) * bytes);
    void *on_c = test_upload(on, c, bytes_c), *workspace = NULL;
    unsigned *on_predicate = predicate ? test_upload(on, predicate, sizeof *predicate) : NULL;
    memset(counted, 0, sizeof *counted);
    tsr_gemm_fallbacks *on_counted = test_upload(on, counted, sizeof *counted);
    for (int part = 0; part < 2; part++) {
        const tsr_gemm_kernel *kernel = part == 0 ? first : second;
        const int64_t from = part == 0 ? 0 : cut, to = part == 0 ? cut : p->k;
        if (from == to) continue;
        const size_t room = kernel->workspace_bytes(p->m, p->n, to - from);
        CHECK_OK(on->ops->allocate(on->device, tsr_max(room, 1), &workspace));
        CHECK_OK(on->ops->fill_bytes(on->device, workspace, 0xff, tsr_min(room, 1 << 20), on->stream));
        const tsr_gemm_args args = {.m = p->m,
                                    .n = p->n,
                                    .k = to - from,
                                    .a = on_a + (size_t)from * bytes,
                                    .lda = p->k + p->pad,
                                    .b = on_b + (size_t)(from * (p->n + p->pad)) * bytes,
                                    .ldb = p->n + p->pad,
                                    .c = on_c,
                                    .ldc = p->n + p->pad,
                                    .accumulate = p->accumulate || part > 0,
                                    .workspace = workspace,
                                    .fallbacks = on_counted,
                                    .predicate = on_predicate};
        CHECK_OK(kernel->launch(on->device, on->stream, &args)); /* whatever would serve the shape */
        CHECK_OK(on->ops->stream_wait(on->device, on->stream));
        on->ops->release(on->device, workspace);
    }
    test_download(on, c, on_c, bytes_c);
    test_download(on, counted, on_counted, sizeof *counted);
    on->ops->release(on->device, on_a);
    on->ops->release(on->device, on_b);
    on->ops->release(on->device, on_predicate);
    free(a);
    free(b);
    return c;
}
static void *made_by(const device_under_test *on, const product *p, const tsr_gemm_kernel *first, int64_t cut,
                     const tsr_gemm_kernel *second, tsr_gemm_fallbacks *counted) {
    return made_if(on, p, first, cut, second, NULL, counted);
}

/* What is made under auto has the bits of `first` up to `cut` of k, and then of `second`; handed: elements of k. */
static void check(const device_under_test *on, const char *what, const product *p, const tsr_gemm_kernel *first,
                  int64_t cut, const tsr_gemm_kernel *second, int64_t handed) {
    const tsr_gemm_kernel *own = p->type == TSR_F64 ? &tsr_gemm_exact_auto_f64 : &tsr_gemm_exact_auto_f32;
    tsr_gemm_fallbacks counted, ignored;
    void *got = made_by(on, p, own, p->k, NULL, &counted), *want = made_by(on, p, first, cut, second, &ignored);
    CHECK(memcmp(got, want, (size_t)(p->m * (p->n + p->pad)) * tsr_dtype_bytes(p->type)) == 0,
          "%s, %s: other bits than %s and %s make", what, tsr_dtype_name(p->type), first->name,
          second ? second->name : "none");
    const uint64_t adds = (uint64_t)(p->m * p->n * handed);
    CHECK(counted.products == (handed > 0) && counted.multiply_adds == adds && counted.few == 0,
          "%s, %s: %d products were handed over, %g multiply-adds", what, tsr_dtype_name(p->type),
          (int)counted.products, (double)counted.multiply_adds);
    const uint64_t blocks = (uint64_t)(tsr_ceil_div(p->m, TSR_EXACT_BLOCK) * tsr_ceil_div(p->n, TSR_EXACT_BLOCK));
    const uint64_t ranges = (uint64_t)(tsr_ceil_div(p->k, TSR_EXACT_RANGE) - tsr_ceil_div(handed, TSR_EXACT_RANGE));
    uint64_t levels = 0;
    for (int i = 0; i < TSR_GEMM_LEVELS; i++) levels += counted.levels[i];
    CHECK(levels == ranges * blocks, "%s, %s: %d blocks at some level", what, tsr_dtype_name(p->type), (int)levels);
    free(got);
    free(want);
}

/* Behind `split3`: nothing at all where that holds the operands, else the bits of `like`, and what is passed on. */
static void check_behind(const device_under_test *on, const char *what, const product *p, const tsr_gemm_kernel *like,
                         bool passes) {
    const size_t bytes = (size_t)(p->m * (p->n + p->pad)) * sizeof(float);
    for (unsigned predicate = 0; predicate < 2; predicate++) {
        tsr_gemm_fallbacks counted, ignored;
        const unsigned never = 0;
        void *got = made_if(on, p, &tsr_gemm_exact_behind_f32, p->k, NULL, &predicate, &counted);
        const tsr_gemm_kernel *makes = predicate ? like : tsr_gemm_exact_behind_f32.fallback;
        void *want = made_if(on, p, makes, p->k, NULL, predicate ? NULL : &never, &ignored);
        CHECK(memcmp(got, want, bytes) == 0, "%s, predicate %u: other bits than %s makes", what, predicate,
              makes->name);
        const uint64_t blocks = (uint64_t)(tsr_ceil_div(p->m, TSR_EXACT_BLOCK) * tsr_ceil_div(p->n, TSR_EXACT_BLOCK));
        const uint64_t passed = passes && predicate ? (uint64_t)(p->m * p->n * p->k) : 0;
        uint64_t levels = 0;
        for (int i = 0; i < TSR_GEMM_LEVELS; i++) levels += counted.levels[i];
        CHECK(counted.products == 0 && counted.multiply_adds == 0 && counted.passed == passed,
              "%s, predicate %u: %g multiply-adds passed on", what, predicate, (double)counted.passed);
        CHECK(levels == (predicate && !passes ? blocks : 0), "%s, predicate %u: %d blocks at some level", what,
              predicate, (int)levels);
        free(got);
        free(want);
    }
}

static void check_all_behind(const device_under_test *on) {
    const tsr_gemm_kernel *behind = &tsr_gemm_exact_behind_f32, *small = tsr_gemm_serving(behind, 512, 512, 512);
    CHECK(behind->predicated && small == behind->fallback && small->predicated, "%s makes small products", small->name);
    CHECK(tsr_gemm_serving(behind, 4096, 4096, 4096) == behind, "large ones are not its own");
    product normal = make(TSR_F32, 32, 31, 1024, 0, 0, true), endless = make(TSR_F32, 131, 67, 300, 0, 300, false);
    check_behind(on, "normal", &normal, &tsr_gemm_exact_f32, false);
    check_behind(on, "endless", &endless, behind->fallback, true);
    drop(&normal);
    drop(&endless);
}

static void check_type(const device_under_test *on, tsr_dtype type) {
    const bool f64 = type == TSR_F64;
    const tsr_gemm_kernel *exact = f64 ? &tsr_gemm_exact_f64 : &tsr_gemm_exact_f32;
    const tsr_gemm_kernel *own = f64 ? &tsr_gemm_exact_auto_f64 : &tsr_gemm_exact_auto_f32;
    const tsr_gemm_kernel *other = own->fallback;
    for (int accumulate = !f64; accumulate < 2; accumulate++) {
        product normal = make(type, accumulate ? 32 : 131, 31, 1024, 0, 0, accumulate);
        check(on, "normal", &normal, exact, normal.k, NULL, 0);
        drop(&normal);
        product endless = make(type, accumulate ? 32 : 131, 67, 300, 0, 300, accumulate);
        check(on, "endless", &endless, other, endless.k, NULL, endless.k);
        CHECK(!own->fallback->fallback, "a chain");
        drop(&endless);
    }
    if (!f64) return;
    /* ranges of k are decided one by one */
    product both = make(type, 31, 30, TSR_EXACT_RANGE + 1000, 0, TSR_EXACT_RANGE, false);
    check(on, "endless, then normal", &both, other, TSR_EXACT_RANGE, exact, TSR_EXACT_RANGE);
    drop(&both);
    /* by name nothing is handed over */
    product endless = make(type, 40, 40, 100, 0, 100, false);
    tsr_gemm_fallbacks counted;
    free(made_by(on, &endless, exact, endless.k, NULL, &counted));
    CHECK(counted.products == 0 && counted.levels[TSR_EXACT_LOOP] == 1, "%s hands over", exact->name);
    drop(&endless);
}

int main(void) {
    device_under_test on = test_open();
    check_type(&on, TSR_F64);
    check_type(&on, TSR_F32);
    check_all_behind(&on);
    test_close(&on);
    return 0;
}
