/* Products by `exact` on a device that test_exact.c makes: operands, parts of them, and what is counted of them. */
#ifndef TSR_TESTS_KERNELS_GEMM_EXACT_EXACT_PRODUCTS_H
#define TSR_TESTS_KERNELS_GEMM_EXACT_EXACT_PRODUCTS_H

#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/accuracy.h"
#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/gemm.h"
#include "tests/check.h"

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
    const tsr_gemm_kernel *kernel;
} place;

static place open_place(const char *device, tsr_dtype type) {
    place p = {0};
    tsr_device_facts facts;
    CHECK_OK(tsr_device_find(device, &p.ops));
    CHECK_OK(p.ops->open(0, &p.device));
    CHECK_OK(p.ops->use(p.device));
    CHECK_OK(p.ops->facts(p.device, &facts));
    CHECK_OK(p.ops->stream_create(p.device, &p.stream));
    CHECK_OK(tsr_gemm_find("exact", &facts, type, type, &p.kernel));
    return p;
}
static void close_place(place *p) {
    p->ops->stream_destroy(p->device, p->stream);
    p->ops->close(p->device);
}

/* A product in host memory, all of `type`; leading dimensions are the columns. */
typedef struct {
    tsr_dtype type;
    int64_t m, n, k;
    void *a, *b, *c;
    bool accumulate;
    bool checked; /* made once more, with the check */
} product;

static size_t bytes_of(tsr_dtype type, int64_t elements) { return (size_t)elements * tsr_dtype_bytes(type); }
static void *room(tsr_dtype type, int64_t elements) {
    void *at = calloc(1, bytes_of(type, tsr_max(elements, 1)));
    CHECK(at != NULL, "no memory");
    return at;
}
static product open_product(tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    return (product){type, m, n, k, room(type, m * k), room(type, k * n), room(type, m * n), false, false};
}
static void close_product(product *p) {
    free(p->a);
    free(p->b);
    free(p->c);
}
static double get(tsr_dtype type, const void *from, int64_t at) {
    return type == TSR_F64 ? ((const double *)from)[at] : (double)((const float *)from)[at];
}
static void put(tsr_dtype type, void *to, int64_t at, double value) {
    if (type == TSR_F64) ((double *)to)[at] = value;
    else ((float *)to)[at] = (float)value;
}

static void *copied(const place *d, tsr_dtype type, const void *from, int64_t elements) {
    void *at;
    CHECK_OK(d->ops->allocate(d->device, bytes_of(type, tsr_max(elements, 1)), &at));
    CHECK_OK(d->ops->upload(d->device, at, from, bytes_of(type, elements), d->stream));
    return at;
}

/* What a launch counts, in device memory. */
typedef struct {
    tsr_gemm_fallbacks made;
    tsr_check_counts checked;
} counts;

/* What the CPU takes for the product whose operands are at `host`. All rows are judged, in each range of k. */
static counts count_on_cpu(tsr_dtype type, tsr_gemm_args host) {
    counts by_cpu = {.checked = {.judged = (uint64_t)(tsr_ceil_div(host.k, TSR_EXACT_RANGE) * host.m)}};
    const tsr_gemm_kernel *cpu;
    const tsr_device_facts facts = {.kind = TSR_DEVICE_CPU};
    const size_t bytes = tsr_dtype_bytes(type);
    CHECK_OK(tsr_gemm_find("exact", &facts, type, type, &cpu));
    host.workspace = malloc(cpu->workspace_bytes(host.m, host.n, host.k) + 1);
    host.c = calloc((size_t)(host.m * host.ldc + 1), bytes);
    CHECK(host.workspace && host.c, "no memory");
    host.check.counts = NULL;
    host.fallbacks = &by_cpu.made;
    CHECK_OK(cpu->launch(NULL, NULL, &host));
    free(host.workspace);
    free(host.c);
    return by_cpu;
}

static uint64_t blocks_with_few; /* that elements left, of products without the last level */

/* What the device counted of a right product is what the CPU takes for it, and nothing is doubted. */
static void check_counts(tsr_dtype type, const counts *counted, const tsr_gemm_args *host, bool checks) {
    const counts by_cpu = count_on_cpu(type, *host);
    const tsr_check_counts nothing = {.judged = 0};
    const tsr_check_counts *checked = &counted->checked, *expected = checks ? &by_cpu.checked : &nothing;
    const int64_t blocks = tsr_ceil_div(host->m, TSR_EXACT_BLOCK) * tsr_ceil_div(host->n, TSR_EXACT_BLOCK) *
                           tsr_ceil_div(host->k, TSR_EXACT_RANGE);
    uint64_t all = 0;
    for (int level = 0; level < TSR_GEMM_LEVELS; level++) {
        all += counted->made.levels[level];
        CHECK(counted->made.levels[level] == by_cpu.made.levels[level], "%lld blocks at level %d, and %lld by the CPU",
              (long long)counted->made.levels[level], level, (long long)by_cpu.made.levels[level]);
    }
    CHECK(all == (uint64_t)blocks && counted->made.left == by_cpu.made.left,
          "%lld blocks of %lld, %lld elements left, and %lld by the CPU", (long long)all, (long long)blocks,
          (long long)counted->made.left, (long long)by_cpu.made.left);
    if (by_cpu.made.levels[TSR_EXACT_LAST] == 0 && by_cpu.made.left > 0)
        blocks_with_few += by_cpu.made.levels[TSR_EXACT_LAST - 1];
    CHECK(checked->doubtful == 0 && checked->wrong == 0,
          "%s, %lld x %lld x %lld: %lld rows of a right product are doubted", tsr_dtype_name(type), (long long)host->m,
          (long long)host->n, (long long)host->k, (long long)checked->doubtful);
    CHECK(checked->judged == expected->judged && checked->unjudged == expected->unjudged,
          "%s, %lld x %lld x %lld: %lld rows judged and %lld not, instead of %lld and %lld", tsr_dtype_name(type),
          (long long)host->m, (long long)host->n, (long long)host->k, (long long)checked->judged,
          (long long)checked->unjudged, (long long)expected->judged, (long long)expected->unjudged);
}

static void same_bytes(const product *p, const void *c, const char *what) {
    for (int64_t at = 0; at < p->m * p->n; at++) {
        const size_t bytes = tsr_dtype_bytes(p->type);
        CHECK(memcmp((const char *)p->c + (size_t)at * bytes, (const char *)c + (size_t)at * bytes, bytes) == 0,
              "%s, %s %ld x %ld x %ld: C[%ld][%ld] is %.17g, not %.17g", what, tsr_dtype_name(p->type), (long)p->m,
              (long)p->n, (long)p->k, (long)(at / p->n), (long)(at % p->n), get(p->type, p->c, at),
              get(p->type, c, at));
    }
}

/* Makes rows i0 … i0 + rows and columns j0 … j0 + columns of C, from elements l0 … l0 + depth along k; where
 * p->checked with the check, too, which changes nothing. */
static void make_part(const place *d, product *p, int64_t i0, int64_t rows, int64_t j0, int64_t columns, int64_t l0,
                      int64_t depth, bool accumulate) {
    const size_t bytes = tsr_dtype_bytes(p->type);
    char *a = copied(d, p->type, p->a, p->m * p->k), *b = copied(d, p->type, p->b, p->k * p->n);
    char *c;
    CHECK_OK(d->ops->allocate(d->device, bytes_of(p->type, tsr_max(p->m * p->n, 1)), (void **)&c));
    void *workspace = NULL, *made[2] = {room(p->type, p->m * p->n), room(p->type, p->m * p->n)};
    const size_t room_bytes = d->kernel->workspace_bytes(rows, columns, depth);
    if (room_bytes > 0) CHECK_OK(d->ops->allocate(d->device, room_bytes, &workspace));
    counts *on_device, counted;
    CHECK_OK(d->ops->allocate(d->device, sizeof *on_device, (void **)&on_device));
    tsr_gemm_args args = {.m = rows,
                          .n = columns,
                          .k = depth,
                          .fallbacks = &on_device->made,
                          .a = a + (size_t)(i0 * p->k + l0) * bytes,
                          .lda = p->k,
                          .b = b + (size_t)(l0 * p->n + j0) * bytes,
                          .ldb = p->n,
                          .c = c + (size_t)(i0 * p->n + j0) * bytes,
                          .ldc = p->n,
                          .accumulate = accumulate,
                          .workspace = workspace};
    for (int checks = 0; checks <= p->checked; checks++) {
        CHECK_OK(d->ops->upload(d->device, c, p->c, bytes_of(p->type, p->m * p->n), d->stream));
        CHECK_OK(d->ops->fill_bytes(d->device, on_device, 0, sizeof *on_device, d->stream));
        if (workspace) CHECK_OK(d->ops->fill_bytes(d->device, workspace, 0xA5, room_bytes, d->stream));
        args.check.counts = checks ? &on_device->checked : NULL;
        CHECK_OK(tsr_gemm_launch(d->kernel, d->device, d->stream, &args));
        CHECK_OK(d->ops->download(d->device, made[checks], c, bytes_of(p->type, p->m * p->n), d->stream));
        CHECK_OK(d->ops->download(d->device, &counted, on_device, sizeof counted, d->stream));
        CHECK_OK(d->ops->stream_wait(d->device, d->stream));
    }
    memcpy(p->c, made[0], bytes_of(p->type, p->m * p->n));
    if (p->checked) same_bytes(p, made[1], "without the check and with it");
    tsr_gemm_args host = args;
    host.a = (const char *)p->a + (size_t)(i0 * p->k + l0) * bytes;
    host.b = (const char *)p->b + (size_t)(l0 * p->n + j0) * bytes;
    if (rows > 0 && columns > 0) check_counts(p->type, &counted, &host, p->checked);
    d->ops->release(d->device, on_device);
    d->ops->release(d->device, a);
    d->ops->release(d->device, b);
    d->ops->release(d->device, c);
    if (workspace) d->ops->release(d->device, workspace);
    free(made[0]);
    free(made[1]);
}
static void make(const place *d, product *p) { make_part(d, p, 0, p->m, 0, p->n, 0, p->k, p->accumulate); }

static void fill(product *p, tsr_input input, double phi) {
    const tsr_view a = {.data = p->a, .element = {.dtype = p->type}, .rows = p->m, .cols = p->k, .ld = p->k};
    const tsr_view b = {.data = p->b, .element = {.dtype = p->type}, .rows = p->k, .cols = p->n, .ld = p->n};
    CHECK_OK(tsr_input_fill_a(input, phi, a));
    CHECK_OK(tsr_input_fill_b(input, phi, b));
}

#endif
