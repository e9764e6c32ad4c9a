/* Matrices of a product in host memory and on a device, and one launch of a kernel: for test_gemm_contract.c and
 * contract_batches.h. */
#ifndef TSR_TESTS_KERNELS_GEMM_CONTRACT_PRODUCTS_H
#define TSR_TESTS_KERNELS_GEMM_CONTRACT_PRODUCTS_H

#include <math.h>

#include "kernels/base/half.h"
#include "kernels/fill/fill.h"
#include "kernels/gemm/gemm.h"
#include "tests/check.h"

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
    const tsr_gemm_kernel *kernel;
} setup;

/* A matrix in host memory and its copy on the device. `before` elements stand in front of element (0, 0) and as many
 * after the last:
 * guards for C, a shifted base for A and B, which end with their last element so that a sanitizer sees reads beyond
 * it. */
typedef struct {
    tsr_dtype type;
    size_t bytes; /* an element */
    int64_t rows, cols, ld;
    int64_t before, elements;
    unsigned char *host;
    void *memory;
    void *data; /* element (0, 0) on the device */
} matrix;

/* How rows and bases lie in memory. */
typedef struct {
    int64_t pad;    /* columns between cols and ld */
    bool round;     /* ld rounded up to 16 elements instead */
    int64_t before; /* elements in front */
} layout;

static const layout LAYOUTS[] = {{.pad = 0}, {.pad = 3, .before = 1}, {.round = true}};
enum { LAYOUT_COUNT = sizeof LAYOUTS / sizeof *LAYOUTS };

static double get(const matrix *x, int64_t index) {
    const void *from = x->host + index * x->bytes;
    switch (x->type) {
    case TSR_F16: return tsr_half_decode(*(const uint16_t *)from);
    case TSR_BF16: return tsr_bf16_decode(*(const uint16_t *)from);
    case TSR_F32: return *(const float *)from;
    default: return *(const double *)from;
    }
}
static void put(matrix *x, int64_t index, double value) {
    void *to = x->host + index * x->bytes;
    switch (x->type) {
    case TSR_F16: *(uint16_t *)to = tsr_half_encode(value); break;
    case TSR_BF16: *(uint16_t *)to = tsr_bf16_encode(value); break;
    case TSR_F32: *(float *)to = (float)value; break;
    default: *(double *)to = value; break;
    }
}
static int64_t at(const matrix *x, int64_t i, int64_t j) { return x->before + i * x->ld + j; }

static matrix matrix_open(const setup *s, tsr_dtype type, int64_t rows, int64_t cols, layout l, bool guard) {
    matrix x = {.type = type, .bytes = tsr_dtype_bytes(type), .rows = rows, .cols = cols, .before = l.before};
    x.ld = l.round ? tsr_round_up(tsr_max(cols, 1), 16) : cols + l.pad;
    int64_t body = guard ? rows * x.ld : rows > 0 ? (rows - 1) * x.ld + cols : 0;
    x.elements = x.before + body + (guard ? x.before + x.ld : 0);
    x.host = malloc(tsr_max(x.elements, 1) * x.bytes);
    CHECK(x.host != NULL, "no memory");
    for (int64_t i = 0; i < x.elements; i++) put(&x, i, NAN); /* whatever is not filled later must not be used */
    CHECK_OK(s->ops->allocate(s->device, x.elements * x.bytes, &x.memory));
    x.data = (unsigned char *)x.memory + x.before * x.bytes;
    return x;
}

static void matrix_close(const setup *s, matrix *x) {
    s->ops->release(s->device, x->memory);
    free(x->host);
}

static void matrix_fill(matrix *x, tsr_fill_kind kind, uint64_t seed) {
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) put(x, at(x, i, j), tsr_fill_element(kind, seed, i, j));
}

static void upload(const setup *s, const matrix *x) {
    CHECK_OK(s->ops->upload(s->device, x->memory, x->host, x->elements * x->bytes, s->stream));
}

/* What the device holds of x, beside its host copy; free it. */
static matrix download(const setup *s, const matrix *x) {
    matrix y = *x;
    y.host = malloc(tsr_max(x->elements, 1) * x->bytes);
    CHECK(y.host != NULL, "no memory");
    CHECK_OK(s->ops->download(s->device, y.host, x->memory, x->elements * x->bytes, s->stream));
    CHECK_OK(s->ops->stream_wait(s->device, s->stream));
    return y;
}

typedef struct {
    matrix a, b, c;
    int64_t m, n, k;
    void *workspace;
    tsr_gemm_fallbacks *fallbacks; /* on the device */
} product;

static product product_open(const setup *s, int64_t m, int64_t n, int64_t k, layout l) {
    product p = {.m = m, .n = n, .k = k};
    layout guarded = l;
    guarded.before += l.round ? 16 : 3;
    if (!l.round && l.pad == 0) guarded.before = 4 * (1 + l.before); /* keeps C aligned where A and B are */
    p.a = matrix_open(s, s->kernel->input, m, k, l, false);
    p.b = matrix_open(s, s->kernel->input, k, n, l, false);
    p.c = matrix_open(s, s->kernel->type, m, n, guarded, true);
    size_t bytes = s->kernel->workspace_bytes ? s->kernel->workspace_bytes(m, n, k) : 0;
    if (bytes > 0) CHECK_OK(s->ops->allocate(s->device, bytes, &p.workspace));
    CHECK_OK(s->ops->allocate(s->device, sizeof *p.fallbacks, (void **)&p.fallbacks));
    CHECK_OK(s->ops->fill_bytes(s->device, p.fallbacks, 0, sizeof *p.fallbacks, s->stream));
    return p;
}

static void product_close(const setup *s, product *p) {
    matrix_close(s, &p->a);
    matrix_close(s, &p->b);
    matrix_close(s, &p->c);
    s->ops->release(s->device, p->workspace);
    s->ops->release(s->device, p->fallbacks);
}

/* Products that the kernel's fallback made must be `expected`, `few` of them because few elements meet. */
static void check_fallbacks(const setup *s, const product *p, uint64_t expected, uint64_t few) {
    const uint64_t each = (uint64_t)(p->m * p->n * p->k);
    tsr_gemm_fallbacks counted;
    CHECK_OK(s->ops->download(s->device, &counted, p->fallbacks, sizeof counted, s->stream));
    CHECK_OK(s->ops->stream_wait(s->device, s->stream));
    CHECK(counted.products == expected && counted.few == few && counted.multiply_adds == expected * each,
          "%s %s %ldx%ldx%ld: %llu products (%llu of few, %llu multiply-adds) fell back, not %llu (%llu)",
          s->kernel->name, tsr_dtype_name(s->kernel->input), (long)p->m, (long)p->n, (long)p->k,
          (unsigned long long)counted.products, (unsigned long long)counted.few,
          (unsigned long long)counted.multiply_adds, (unsigned long long)expected, (unsigned long long)few);
    CHECK(expected == 0 || s->kernel->fallback, "%s has no fallback", s->kernel->name);
}

/* Zeros in that line of a matrix which has most of them, lines of zeros aside; lines are rows or columns. */
static int64_t most_zeros(const matrix *x, int64_t rows, int64_t cols, bool by_row) {
    const int64_t lines = by_row ? rows : cols, length = by_row ? cols : rows;
    int64_t most = 0;
    for (int64_t i = 0; i < lines; i++) {
        int64_t zeros = 0;
        for (int64_t q = 0; q < length; q++) zeros += get(x, at(x, by_row ? i : q, by_row ? q : i)) == 0;
        if (zeros < length) most = tsr_max(most, zeros);
    }
    return most;
}

/* Whether `split3` leaves a product of small integers to `simt`: fewer than 32 pairs of elements that are not zero
 * may meet. */
static bool few_meet(const setup *s, const product *p) {
    if (!s->kernel->fallback || p->m == 0 || p->n == 0) return false;
    if (tsr_gemm_serving(s->kernel, p->m, p->n, p->k) != s->kernel) return false;
    return p->k - most_zeros(&p->a, p->m, p->k, true) - most_zeros(&p->b, p->k, p->n, false) < 32;
}

static tsr_gemm_args arguments(const product *p, bool accumulate) {
    return (tsr_gemm_args){.m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .a = p->a.data,
                           .lda = p->a.ld,
                           .b = p->b.data,
                           .ldb = p->b.ld,
                           .c = p->c.data,
                           .ldc = p->c.ld,
                           .accumulate = accumulate,
                           .workspace = p->workspace,
                           .fallbacks = p->fallbacks};
}

/* Uploads a, b, c, multiplies, and returns what C's memory then holds; everything outside its m × n elements must be
 * as it was. */
static matrix multiply(const setup *s, product *p, bool accumulate) {
    upload(s, &p->a);
    upload(s, &p->b);
    upload(s, &p->c);
    tsr_gemm_args args = arguments(p, accumulate);
    CHECK_OK(tsr_gemm_launch(s->kernel, s->device, s->stream, &args));
    matrix result = download(s, &p->c);
    for (int64_t e = 0; e < p->c.elements; e++) {
        int64_t i = p->c.ld > 0 ? (e - p->c.before) / p->c.ld : 0, j = p->c.ld > 0 ? (e - p->c.before) % p->c.ld : 0;
        if (e >= p->c.before && i < p->m && j < p->n) continue;
        CHECK(memcmp(result.host + e * result.bytes, p->c.host + e * result.bytes, result.bytes) == 0,
              "%s %s %ldx%ldx%ld: wrote outside C, at row %ld column %ld", s->kernel->name,
              tsr_dtype_name(s->kernel->input), (long)p->m, (long)p->n, (long)p->k, (long)i, (long)j);
    }
    return result;
}

#endif
