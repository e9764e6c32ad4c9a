/* Reproducible sums (tsr_gemm_reproducible) of every kernel of one device, TSR_TEST_DEVICE, that has them: an element
 * of C has the same bits however C is cut, and k at multiples of the range, and in a batch; and it is right. k alone
 * chooses who makes it. Who has no such sums is refused. Exit code 77: there is no such device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/half.h"
#include "kernels/gemm/gemm.h"
#include "tests/check.h"

/* In the place of TSR_GEMM_RANGE. On a GPU so long that every kernel would cut it, of a C of more rows than a tile. */
#ifndef TSR_TEST_RANGE
#define TSR_TEST_RANGE 64
#endif
enum { RANGE = TSR_TEST_RANGE, M = RANGE > 64 ? 200 : 70, N = 50, K = 2 * RANGE + 22 };

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
    tsr_device_facts facts;
} place;

/* Operands on the device, A (M × K) and B (K × N), and as numbers on the host; C0 (M × N). */
typedef struct {
    const tsr_gemm_kernel *kernel;
    void *a, *b, *c, *workspace;
    double left[M * K], right[K * N];
    unsigned char c0[M * N * sizeof(double)], got[M * N * sizeof(double)];
} product;

static double get(tsr_dtype type, const void *from, int64_t at) {
    switch (type) {
    case TSR_F16: return tsr_half_decode(((const uint16_t *)from)[at]);
    case TSR_BF16: return tsr_bf16_decode(((const uint16_t *)from)[at]);
    case TSR_F32: return ((const float *)from)[at];
    default: return ((const double *)from)[at];
    }
}
static void put(tsr_dtype type, void *to, int64_t at, double value) {
    switch (type) {
    case TSR_F16: ((uint16_t *)to)[at] = tsr_half_encode(value); break;
    case TSR_BF16: ((uint16_t *)to)[at] = tsr_bf16_encode(value); break;
    case TSR_F32: ((float *)to)[at] = (float)value; break;
    default: ((double *)to)[at] = value;
    }
}

/* Real numbers from -2 to 2, of `type`; `numbers` is what they became. */
static void draw(tsr_dtype type, uint64_t seed, int64_t count, void *to, double *numbers) {
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)((seed + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-51 - 2;
        put(type, to, i, x * (1 + 0.25 * sin((double)i)));
        if (numbers) numbers[i] = get(type, to, i);
    }
}

static void *on_device(const place *d, const void *from, size_t bytes) {
    void *at;
    CHECK_OK(d->ops->allocate(d->device, bytes, &at));
    CHECK_OK(d->ops->upload(d->device, at, from, bytes, d->stream));
    CHECK_OK(d->ops->stream_wait(d->device, d->stream));
    return at;
}

static void open_product(const place *d, const tsr_gemm_kernel *kernel, product *p) {
    const size_t bytes = tsr_dtype_bytes(kernel->input);
    static unsigned char a[M * K * sizeof(double)], b[K * N * sizeof(double)];
    const size_t room = kernel->workspace_bytes ? kernel->workspace_bytes(M, N, K) : 0;
    p->kernel = kernel;
    draw(kernel->input, 1, M * K, a, p->left);
    draw(kernel->input, 2, K * N, b, p->right);
    draw(kernel->type, 3, M * N, p->c0, NULL);
    p->a = on_device(d, a, M * K * bytes);
    p->b = on_device(d, b, K * N * bytes);
    p->c = on_device(d, p->c0, M * N * tsr_dtype_bytes(kernel->type));
    p->workspace = NULL;
    if (room > 0) CHECK_OK(d->ops->allocate(d->device, room, &p->workspace));
}
static void close_product(const place *d, product *p) {
    d->ops->release(d->device, p->a);
    d->ops->release(d->device, p->b);
    d->ops->release(d->device, p->c);
    if (p->workspace) d->ops->release(d->device, p->workspace);
}

/* C before the product: C0. */
static void start(const place *d, product *p) {
    CHECK_OK(d->ops->upload(d->device, p->c, p->c0, M * N * tsr_dtype_bytes(p->kernel->type), d->stream));
}
/* This part of C, over k from `from` to before `to`. */
static void make(const place *d, product *p, const tsr_gemm_kernel *kernel, tsr_rect part, int64_t from, int64_t to,
                 bool accumulate) {
    const int64_t in = (int64_t)tsr_dtype_bytes(kernel->input), out = (int64_t)tsr_dtype_bytes(kernel->type);
    const tsr_gemm_args args = {.m = part.rows,
                                .n = part.cols,
                                .k = to - from,
                                .a = (char *)p->a + (part.row * K + from) * in,
                                .lda = K,
                                .b = (char *)p->b + (from * N + part.col) * in,
                                .ldb = N,
                                .c = (char *)p->c + (part.row * N + part.col) * out,
                                .ldc = N,
                                .accumulate = accumulate,
                                .workspace = p->workspace};
    CHECK_OK(tsr_gemm_launch(kernel, d->device, d->stream, &args));
}
static void take(const place *d, product *p, void *to) {
    CHECK_OK(d->ops->download(d->device, to, p->c, M * N * tsr_dtype_bytes(p->kernel->type), d->stream));
    CHECK_OK(d->ops->stream_wait(d->device, d->stream));
}

static const tsr_rect ALL = {0, 0, M, N};

static void check_right(const product *p, const tsr_gemm_kernel *kernel, bool accumulate) {
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            long double sum = accumulate ? (long double)get(kernel->type, p->c0, i * N + j) : 0, size = fabsl(sum);
            for (int64_t l = 0; l < K; l++) {
                sum += (long double)p->left[i * K + l] * (long double)p->right[l * N + j];
                size += fabsl((long double)p->left[i * K + l] * (long double)p->right[l * N + j]);
            }
            const double off = fabs((double)((long double)get(kernel->type, p->got, i * N + j) - sum));
            const double bound = (tsr_gemm_error_bound(kernel, K) + tsr_dtype_roundoff(kernel->type)) * (double)size;
            CHECK(off <= bound, "%s: element (%lld, %lld) is off by %g of %g", kernel->name, (long long)i, (long long)j,
                  off, bound);
        }
}

/* The kernel as it makes sums with ranges of RANGE. */
static tsr_gemm_kernel with_short_ranges(const tsr_gemm_kernel *kernel) {
    tsr_gemm_kernel own;
    CHECK_OK(tsr_gemm_reproducible(kernel, &own));
    CHECK(own.range == TSR_GEMM_RANGE && !own.batched && !own.predicated, "%s", own.name);
    CHECK(!own.fallback || own.fallback->launch_reproducible, "%s has a fallback without reproducible sums", own.name);
    own.range = RANGE;
    return own;
}

/* In the whole, in parts, with C0 or without; and what one launch does for a range at a time. */
static void check_cuts(const place *d, const tsr_gemm_kernel *kernel, bool accumulate) {
    const tsr_rect parts[] = {{0, 0, 1, N}, {1, 0, 40, 7}, {41, 0, M - 41, 7}, {1, 7, M - 1, N - 7}};
    const tsr_gemm_kernel own = with_short_ranges(kernel);
    const size_t bytes = M * N * tsr_dtype_bytes(kernel->type);
    unsigned char other[M * N * sizeof(double)];
    static product p;
    open_product(d, kernel, &p);
    start(d, &p);
    make(d, &p, &own, ALL, 0, K, accumulate);
    take(d, &p, p.got);
    check_right(&p, &own, accumulate);

    start(d, &p);
    for (int i = 0; i < 4; i++) {
        make(d, &p, &own, parts[i], 0, RANGE, accumulate);
        make(d, &p, &own, parts[i], RANGE, K, true);
    }
    take(d, &p, other);
    CHECK(memcmp(p.got, other, bytes) == 0, "%s, %s: other bits in parts than in the whole", own.name,
          tsr_dtype_name(own.input));

    /* what ranks that split k do: sums of ranges, each by itself, are added in C's type */
    unsigned char sum[M * N * sizeof(double)];
    memcpy(sum, p.c0, bytes);
    for (int64_t from = 0; from < K; from += RANGE) {
        make(d, &p, &own, ALL, from, tsr_min(from + RANGE, K), false);
        take(d, &p, other);
        for (int64_t i = 0; i < M * N; i++) {
            const double before = accumulate || from > 0 ? get(own.type, sum, i) : 0;
            put(own.type, sum, i, before + get(own.type, other, i)); /* fp32: 53 bits, then 24, round as once */
        }
    }
    CHECK(memcmp(p.got, sum, bytes) == 0, "%s, %s: ranges that are added elsewhere have other bits", own.name,
          tsr_dtype_name(own.input));

    /* cut elsewhere the bits are others: this can fail */
    start(d, &p);
    make(d, &p, &own, ALL, 0, 33, accumulate);
    make(d, &p, &own, ALL, 33, K, true);
    take(d, &p, other);
    CHECK(memcmp(p.got, other, bytes) != 0, "%s: no bits changed where k was cut elsewhere", own.name);
    close_product(d, &p);
}

/* Without k C is zeros, or stays. */
static void check_no_depth(const place *d, const tsr_gemm_kernel *kernel) {
    const tsr_gemm_kernel own = with_short_ranges(kernel);
    const size_t bytes = M * N * tsr_dtype_bytes(kernel->type);
    static product p;
    open_product(d, kernel, &p);
    start(d, &p);
    make(d, &p, &own, ALL, 0, 0, true);
    take(d, &p, p.got);
    CHECK(memcmp(p.got, p.c0, bytes) == 0, "%s: no k changes C", own.name);
    make(d, &p, &own, ALL, 0, 0, false);
    take(d, &p, p.got);
    for (int64_t i = 0; i < M * N; i++)
        CHECK(get(own.type, p.got, i) == 0, "%s: element %lld is %g", own.name, (long long)i, get(own.type, p.got, i));
    close_product(d, &p);
}

/* Products of a batch: rows of A and C, each a product with all of B. */
static void check_batch(const place *d, const tsr_gemm_kernel *kernel) {
    const tsr_gemm_kernel own = with_short_ranges(kernel);
    const size_t bytes = M * N * tsr_dtype_bytes(kernel->type);
    unsigned char other[M * N * sizeof(double)];
    static product p;
    open_product(d, kernel, &p);
    make(d, &p, &own, ALL, 0, K, false);
    take(d, &p, p.got);
    const tsr_gemm_args args = {.m = M / 10,
                                .n = N,
                                .k = K,
                                .a = p.a,
                                .lda = K,
                                .b = p.b,
                                .ldb = N,
                                .c = p.c,
                                .ldc = N,
                                .batch = 10,
                                .stride_a = M / 10 * K,
                                .stride_c = M / 10 * N,
                                .workspace = p.workspace};
    start(d, &p);
    CHECK_OK(tsr_gemm_launch(&own, d->device, d->stream, &args));
    take(d, &p, other);
    CHECK(memcmp(p.got, other, bytes) == 0, "%s: other bits in a batch", own.name);
    tsr_gemm_args long_one = args;
    long_one.batch = 1;
    long_one.n = long_one.ldb = long_one.ldc = (INT64_C(1) << 30) + 1;
    CHECK_FAILS(tsr_gemm_launch(&own, d->device, d->stream, &long_one), TSR_ERR_LIMIT, "2^30 rows and columns");
    close_product(d, &p);
}

/* Of every kernel of the build, whatever it runs on. */
static void check_serving(const tsr_gemm_kernel *kernel) {
    static const int64_t depths[] = {0, 1, 16, 17, 63, 80, 81, 1000, TSR_GEMM_RANGE};
    static const int64_t sides[] = {1, 17, 128, 1000, 100000};
    tsr_gemm_kernel own;
    CHECK_OK(tsr_gemm_reproducible(kernel, &own));
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        for (int side = 0; side < 25; side++) {
            const tsr_gemm_kernel *here = tsr_gemm_serving(&own, sides[side / 5], sides[side % 5], depths[i]);
            const tsr_gemm_kernel *first = tsr_gemm_serving(&own, 1, 1, depths[i]);
            CHECK(depths[i] == 0 || strcmp(here->name, first->name) == 0, "%s makes k = %lld by %s or %s", own.name,
                  (long long)depths[i], here->name, first->name);
            CHECK(depths[i] == 0 || here->launch_reproducible, "%s has no reproducible sums", here->name);
        }
    CHECK(!tsr_gemm_serving_batch(&own, 9, 10, 10, 10), "%s: a batch in one launch", own.name);
}

static void check_refused(const tsr_gemm_kernel *kernel) {
    tsr_gemm_kernel own;
    CHECK_FAILS(tsr_gemm_reproducible(kernel, &own), TSR_ERR_USAGE, "depends on more than an element's row");
    CHECK(strstr(tsr_message(), kernel->name) && strstr(tsr_message(), "there are exact"), "%s", tsr_message());
    if (kernel->device == TSR_DEVICE_CPU) CHECK(strstr(tsr_message(), "exact, reference"), "%s", tsr_message());
}

int main(void) {
    place d;
    int count, devices, made = 0;
    char why[256];
    CHECK_OK(tsr_device_find(TSR_TEST_DEVICE, &d.ops));
    CHECK_OK(d.ops->count(&devices, why));
    if (devices == 0) {
        fprintf(stderr, "skipped: no GPU: %s\n", why);
        return 77;
    }
    CHECK_OK(d.ops->open(0, &d.device));
    CHECK_OK(d.ops->use(d.device));
    CHECK_OK(d.ops->facts(d.device, &d.facts));
    CHECK_OK(d.ops->stream_create(d.device, &d.stream));
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) {
        const tsr_gemm_kernel *kernel = kernels[i];
        if (!kernel->launch_reproducible) {
            check_refused(kernel);
            continue;
        }
        check_serving(kernel);
        if (kernel->device != d.facts.kind || !tsr_gemm_runs_on(kernel, d.facts.arch)) continue;
        check_cuts(&d, kernel, false);
        check_cuts(&d, kernel, true);
        check_batch(&d, kernel);
        check_no_depth(&d, kernel);
        made++;
    }
    CHECK(made >= 4, "%d kernels of this device have reproducible sums", made);
    d.ops->stream_destroy(d.device, d.stream);
    d.ops->close(d.device);
    return 0;
}
