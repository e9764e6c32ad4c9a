/* The kernel contract (kernels/gemm/gemm.h) for every kernel of one device, TSR_TEST_DEVICE: host kernels, CUDA kernels
 * in the host emulation, CUDA kernels on a GPU. Every product is checked element by element against sums taken here:
 * in 64-bit integers where the result must be exact, in long double where a bound must hold. Exit code 77: there is
 * no such device.
 * Usage: test_gemm_contract [KERNEL [quick]]   all kernels, or those of this name; quick: a few shapes, for
 * sanitizers. */
#include <math.h>

#include "kernels/base/half.h"
#include "kernels/fill/fill.h"
#include "kernels/gemm/gemm.h"
#include "tests/check.h"
#ifdef TSR_EMULATE_CUDA
#include "kernels/device/cuda_emulation.h"
#endif

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

/* Small integers: every sum is exact, so the bits are known. C is NaN where it must not be read. */
static void check_exact(const setup *s, int64_t m, int64_t n, int64_t k, layout l, bool accumulate) {
    product p = product_open(s, m, n, k, l);
    matrix_fill(&p.a, TSR_FILL_INTEGER, 1);
    matrix_fill(&p.b, TSR_FILL_INTEGER, 2);
    if (accumulate) matrix_fill(&p.c, TSR_FILL_INTEGER, 3);
    matrix result = multiply(s, &p, accumulate);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            int64_t sum = accumulate ? (int64_t)get(&p.c, at(&p.c, i, j)) : 0;
            for (int64_t q = 0; q < k; q++)
                sum += (int64_t)get(&p.a, at(&p.a, i, q)) * (int64_t)get(&p.b, at(&p.b, q, j));
            double got = get(&result, at(&p.c, i, j));
            CHECK(got == (double)sum, "%s %s %ldx%ldx%ld pad %ld accumulate %d: C[%ld][%ld] = %g, not %ld",
                  s->kernel->name, tsr_dtype_name(s->kernel->input), (long)m, (long)n, (long)k, (long)l.pad, accumulate,
                  (long)i, (long)j, got, (long)sum);
        }
    }
    const bool few = few_meet(s, &p);
    check_fallbacks(s, &p, few, few);
    free(result.host);
    product_close(s, &p);
}

/* Real data: within the stated bound, and the same bits when run again. */
static void check_bound(const setup *s, int64_t m, int64_t n, int64_t k, layout l, tsr_fill_kind kind,
                        bool accumulate) {
    product p = product_open(s, m, n, k, l);
    matrix_fill(&p.a, kind, 4);
    matrix_fill(&p.b, kind, 5);
    if (accumulate) matrix_fill(&p.c, kind, 6);
    matrix first = multiply(s, &p, accumulate), second = multiply(s, &p, accumulate);
    CHECK(memcmp(first.host, second.host, p.c.elements * p.c.bytes) == 0,
          "%s %s %ldx%ldx%ld: other bits the second time", s->kernel->name, tsr_dtype_name(s->kernel->input), (long)m,
          (long)n, (long)k);
    const long double unit = s->kernel->type == TSR_F32 ? 0x1p-24L : 0x1p-53L;
    const long double bound = tsr_gemm_error_bound(s->kernel, k);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0, sizes = 0;
            for (int64_t q = 0; q < k; q++) {
                long double term = (long double)get(&p.a, at(&p.a, i, q)) * get(&p.b, at(&p.b, q, j));
                sum += term;
                sizes += fabsl(term);
            }
            if (accumulate) sum += get(&p.c, at(&p.c, i, j));
            long double allowed = bound * sizes + (accumulate ? unit * (fabsl(sum) + bound * sizes) : 0);
            double got = get(&first, at(&p.c, i, j));
            CHECK(fabsl(got - sum) <= allowed,
                  "%s %s %ldx%ldx%ld accumulate %d: C[%ld][%ld] = %.17g, should be %.17Lg ± %.3Lg", s->kernel->name,
                  tsr_dtype_name(s->kernel->input), (long)m, (long)n, (long)k, accumulate, (long)i, (long)j, got, sum,
                  allowed);
        }
    }
    free(first.host);
    free(second.host);
    product_close(s, &p);
}

/* NaN, infinities of both signs, infinity times zero, and sums that overflow: each element is NaN, ±Inf or finite as
 * IEEE says. */
static void check_special(const setup *s, int64_t m, int64_t n, int64_t k, layout l) {
    product p = product_open(s, m, n, k, l);
    const bool overflows = s->kernel->input != TSR_F16; /* sums of halves stay in the range of fp32 */
    const double huge = !overflows ? 60000 : s->kernel->type == TSR_F32 ? 3e38 : 1.7e308;
    matrix_fill(&p.a, TSR_FILL_UNIFORM, 7);
    matrix_fill(&p.b, TSR_FILL_NORMAL, 8);
    put(&p.a, at(&p.a, 0, k / 2), NAN);
    put(&p.a, at(&p.a, 1, k - 1), INFINITY);
    put(&p.a, at(&p.a, 2, 0), -INFINITY);
    put(&p.a, at(&p.a, 3, 1), INFINITY);
    put(&p.a, at(&p.a, 3, 2), -INFINITY);
    for (int64_t q = 0; q < k; q++) put(&p.a, at(&p.a, 4, q), huge);
    for (int64_t q = 0; q < k; q++) put(&p.b, at(&p.b, q, 0), 1); /* row 4, column 0 overflows */
    put(&p.b, at(&p.b, k - 1, 1), 0);                             /* row 1, column 1: infinity times zero */
    put(&p.b, at(&p.b, 3, 2), INFINITY);
    put(&p.b, at(&p.b, 4, 3), NAN);
    matrix result = multiply(s, &p, false);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (i == 4 && j != 0) continue; /* huge terms of either sign: order decides */
            long double sum = 0;
            for (int64_t q = 0; q < k; q++) sum += (long double)get(&p.a, at(&p.a, i, q)) * get(&p.b, at(&p.b, q, j));
            double want = i == 4 && overflows ? INFINITY : (double)sum, got = get(&result, at(&p.c, i, j));
            bool same = isnan(want) ? isnan(got) : isinf(want) ? got == want : isfinite(got);
            CHECK(same, "%s %s: C[%ld][%ld] = %g, IEEE says %g", s->kernel->name, tsr_dtype_name(s->kernel->input),
                  (long)i, (long)j, got, want);
        }
    }
    check_fallbacks(s, &p, s->kernel->fallback != NULL,
                    0); /* `split3`, the one kernel whose parts hold no NaN and no Inf */
    free(result.host);
    product_close(s, &p);
}

/* Operands of which few elements meet: diagonal, banded, and 1 % of elements at random. A times the identity is A,
 * bit for bit, in IEEE arithmetic; the others are as exact as a plain loop: 2·u·(|A||B|) for up to three terms. */
static void check_sparse(const setup *s, int64_t edge, layout l, int way) {
    product p = product_open(s, edge, edge, edge, l);
    matrix_fill(&p.a, TSR_FILL_NORMAL, 12);
    matrix_fill(&p.b, TSR_FILL_NORMAL, 13);
    for (int64_t i = 0; i < edge; i++)
        for (int64_t j = 0; j < edge; j++) {
            const int64_t off = i > j ? i - j : j - i;
            if (way == 0) put(&p.b, at(&p.b, i, j), i == j);
            if (way == 1 && off > 1) put(&p.a, at(&p.a, i, j), 0);
            if (way == 2 && (i * 131 + j * 17) % 101 != 0) {
                put(&p.a, at(&p.a, i, j), 0);
                put(&p.b, at(&p.b, i, j), 0);
            }
        }
    matrix result = multiply(s, &p, false);
    const double unit = s->kernel->type == TSR_F32 ? 0x1p-24 : 0x1p-53;
    for (int64_t i = 0; i < edge; i++)
        for (int64_t j = 0; j < edge; j++) {
            long double sum = 0, sizes = 0;
            int terms = 0;
            for (int64_t q = 0; q < edge; q++) {
                const long double term = (long double)get(&p.a, at(&p.a, i, q)) * get(&p.b, at(&p.b, q, j));
                sum += term;
                sizes += fabsl(term);
                terms += term != 0;
            }
            const long double allowed = way == 0 ? 0 : terms <= 1 ? unit * sizes : 2 * unit * terms * sizes;
            const double got = get(&result, at(&p.c, i, j));
            CHECK(fabsl(got - sum) <= allowed, "%s way %d: C[%ld][%ld] = %.17g, should be %.17Lg ± %.3Lg",
                  s->kernel->name, way, (long)i, (long)j, got, sum, allowed);
        }
    if (s->kernel->fallback) check_fallbacks(s, &p, 1, 1);
    free(result.host);
    product_close(s, &p);
}

/* Calls that tsr_gemm_launch must refuse, and leave C alone. */
static void check_refusals(const setup *s) {
    const int64_t edge = s->kernel->multiple;
    product p = product_open(s, 2 * edge, 2 * edge, 2 * edge, (layout){.pad = 1});
    for (int which = 0; which < 6; which++) {
        tsr_gemm_args args = arguments(&p, false);
        const char *text = "ld";
        if (which == 0) args.lda = args.k - 1;
        if (which == 1) args.ldb = args.n - 1;
        if (which == 2) args.ldc = args.n - 1;
        if (which == 3) {
            args.m = -1;
            text = "negative";
        }
        if (which == 4) {
            args.a = NULL;
            text = "no memory";
        }
        if (which == 5) {
            args.k--;
            text = "multiples";
        }
        if (which == 5 && edge == 1) continue;
        CHECK_FAILS(tsr_gemm_launch(s->kernel, s->device, s->stream, &args), TSR_ERR_SHAPE, text);
    }
    product_close(s, &p);
}

/* The first `rows` rows of x as `batch` matrices of `each` rows, `apart` elements from one to the next in memory of
 * their own; one alone, for all, where `apart` is 0. */
static matrix stack_open(const setup *s, const matrix *x, int64_t batch, int64_t each, int64_t apart) {
    matrix y = *x;
    y.before = 0;
    y.elements = (batch - 1) * apart + each * x->ld;
    y.host = malloc(tsr_max(y.elements, 1) * y.bytes);
    CHECK(y.host != NULL, "no memory");
    for (int64_t e = 0; e < y.elements; e++) put(&y, e, NAN);
    for (int64_t p = 0; p < (apart > 0 ? batch : 1); p++)
        for (int64_t e = 0; e < each * x->ld; e++)
            put(&y, p * apart + e, e % x->ld < x->cols ? get(x, at(x, p * each + e / x->ld, e % x->ld)) : NAN);
    CHECK_OK(s->ops->allocate(s->device, y.elements * y.bytes, &y.memory));
    y.data = y.memory;
    upload(s, &y);
    return y;
}

/* Several products in a launch, `gap` elements between their matrices: each must be what it is alone, bit for bit as
 * sums of integers are exact, and what lies between must stay. common: of A (1), of B (2), one matrix for all. */
static void check_stack(const setup *s, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t gap, int common,
                        bool accumulate) {
    const int64_t edge = s->kernel->multiple;
    const layout rows = gap % 2 ? LAYOUTS[1] : LAYOUTS[0];
    m = tsr_round_up(m, edge);
    n = tsr_round_up(n, edge);
    k = tsr_round_up(k, edge);
    product p = product_open(s, batch * m, n, k, rows);
    matrix b_rows = matrix_open(s, s->kernel->input, batch * k, n, rows, false);
    matrix_fill(&p.a, TSR_FILL_INTEGER, 21);
    matrix_fill(&b_rows, TSR_FILL_INTEGER, 22);
    matrix_fill(&p.c, TSR_FILL_INTEGER, 23);
    const int64_t apart_a = common == 1 ? 0 : m * p.a.ld + gap;
    const int64_t apart_b = common == 2 ? 0 : k * b_rows.ld + gap;
    const int64_t apart_c = m * p.c.ld + gap;
    matrix a = stack_open(s, &p.a, batch, m, apart_a);
    matrix b = stack_open(s, &b_rows, batch, k, apart_b);
    matrix c = stack_open(s, &p.c, batch, m, apart_c);
    const tsr_gemm_args args = {.m = m,
                                .n = n,
                                .k = k,
                                .a = a.data,
                                .lda = a.ld,
                                .b = b.data,
                                .ldb = b.ld,
                                .c = c.data,
                                .ldc = c.ld,
                                .accumulate = accumulate,
                                .batch = batch,
                                .stride_a = apart_a,
                                .stride_b = apart_b,
                                .stride_c = apart_c,
                                .workspace = p.workspace,
                                .fallbacks = p.fallbacks};
    CHECK_OK(tsr_gemm_launch(s->kernel, s->device, s->stream, &args));
    matrix result = download(s, &c);
    for (int64_t e = 0; e < c.elements; e++) {
        const int64_t which = e / apart_c;
        const int64_t row = e % apart_c / c.ld;
        const int64_t col = e % apart_c % c.ld;
        const double before = get(&c, e), got = get(&result, e);
        if (row >= m || col >= n) {
            CHECK(memcmp(c.host + e * c.bytes, result.host + e * c.bytes, c.bytes) == 0,
                  "%s %s: wrote between the products of a batch, at element %ld", s->kernel->name,
                  tsr_dtype_name(s->kernel->input), (long)e);
            continue;
        }
        double sum = accumulate ? before : 0;
        for (int64_t q = 0; q < k; q++)
            sum += get(&a, which * apart_a + row * a.ld + q) * get(&b, which * apart_b + q * b.ld + col);
        CHECK(got == sum, "%s %s batch of %ldx%ldx%ld gap %ld common %d accumulate %d: C%ld[%ld][%ld] = %g, not %g",
              s->kernel->name, tsr_dtype_name(s->kernel->input), (long)m, (long)n, (long)k, (long)gap, common,
              accumulate, (long)which, (long)row, (long)col, got, sum);
    }
    free(result.host);
    matrix_close(s, &a);
    matrix_close(s, &b);
    matrix_close(s, &c);
    matrix_close(s, &b_rows);
    product_close(s, &p);
}

static void check_batch(const setup *s, int64_t m, int64_t n, int64_t k, int64_t gap, int common, bool accumulate) {
    check_stack(s, 3, m, n, k, gap, common, accumulate);
}

/* Small, odd and empty ones, tiles that are whole and not, aligned and not. */
static void check_batches(const setup *s) {
    check_batch(s, 17, 13, 19, 0, 0, false);
    check_batch(s, 17, 13, 19, 7, 1, true);
    check_batch(s, 5, 33, 8, 1, 2, false);
    check_batch(s, 65, 70, 40, 64, 0, true);
    check_batch(s, 32, 64, 48, 16, 2, true);
    check_batch(s, 3, 4, 0, 3, 0, false);
    check_batch(s, 0, 4, 3, 1, 0, false);
}

/* Batches that tsr_gemm_launch must refuse. */
static void check_batch_refusals(const setup *s) {
    const int64_t edge = 2 * s->kernel->multiple;
    product p = product_open(s, 2 * edge, edge, edge, (layout){.pad = 1});
    const unsigned always = 1;
    for (int which = 0; which < 4; which++) {
        tsr_gemm_args args = arguments(&p, false);
        args.m = edge;
        args.batch = 2;
        args.stride_c = edge * args.ldc;
        const char *text = "negative";
        if (which == 0) args.batch = -1;
        if (which == 1) args.stride_a = -1;
        if (which == 2) {
            args.stride_c = (edge - 1) * args.ldc + edge - 1;
            text = "stride_c";
        }
        if (which == 3) {
            args.predicate = &always;
            text = "predicate";
        }
        CHECK_FAILS(tsr_gemm_launch(s->kernel, s->device, s->stream, &args),
                    which == 3 ? TSR_ERR_UNSUPPORTED : TSR_ERR_SHAPE, text);
    }
    product_close(s, &p);
}

/* One shape in one layout, all the ways. Kernels for multiples only get the next multiple. */
static void check_shape(const setup *s, int64_t m, int64_t n, int64_t k, layout l) {
    const int64_t edge = s->kernel->multiple;
    m = tsr_round_up(m, edge);
    n = tsr_round_up(n, edge);
    k = tsr_round_up(k, edge);
    check_exact(s, m, n, k, l, false);
    check_exact(s, m, n, k, l, true);
    check_bound(s, m, n, k, l, TSR_FILL_NORMAL, (m + n + k) % 2 == 1);
}

typedef struct {
    int64_t m, n, k;
} sizes;

/* The kernel's own tile, or a small one where it has none. */
static sizes tile_of(const setup *s) {
    tsr_gemm_shape tile = {0};
    if (s->kernel->shape) CHECK_OK(s->kernel->shape(s->device, 100, 100, 100, &tile));
    return (sizes){tile.tile_m > 1 ? tile.tile_m : 16, tile.tile_n > 1 ? tile.tile_n : 16,
                   tile.tile_k > 1 ? tile.tile_k : 16};
}

/* 0, 1, t - 1, t, t + 1 and a prime along every dimension, tall, wide and deep, around the kernel's own tile. */
static void check_shapes(const setup *s) {
    const sizes tile = tile_of(s);
    const int64_t tm = tile.m;
    const int64_t tn = tile.n;
    const int64_t tk = tile.k;
    const int64_t edge = s->kernel->multiple;
    const int64_t ms[] = {0, 1, tm - 1, tm, tm + 1, 37};
    const int64_t ns[] = {0, 1, tn - 1, tn, tn + 1, 41};
    const int64_t ks[] = {0, 1, tk - 1, tk, tk + 1, 2 * tk, 43};
    const int count = 6, deep = 7;
    for (int i = 0; i < count; i++) check_shape(s, ms[i], 5, 7, LAYOUTS[i % LAYOUT_COUNT]);
    for (int i = 0; i < count; i++) check_shape(s, 7, ns[i], 5, LAYOUTS[(i + 1) % LAYOUT_COUNT]);
    for (int i = 0; i < deep; i++) check_shape(s, 5, 7, ks[i], LAYOUTS[(i + 2) % LAYOUT_COUNT]);
    for (int i = 0; i < LAYOUT_COUNT; i++) {
        check_shape(s, tm, tn, 2 * tk, LAYOUTS[i]);
        check_shape(s, tm + 1, tn + 1, tk + 1, LAYOUTS[i]);
    }
    check_shape(s, 307, 3, 11, LAYOUTS[1]);
    check_shape(s, 3, 307, 11, LAYOUTS[2]);
    check_shape(s, 3, 5, 997, LAYOUTS[0]);
    check_shape(s, tm + 1, 5, 997, LAYOUTS[1]);
#ifdef TSR_EMULATE_CUDA
    if (!s->kernel->workspace_bytes) return; /* it has no place to prepare anything in */
#endif
    /* so wide that kernels may prepare A in another way */
    for (int i = 0; i < 2; i++) check_shape(s, 3, 3083, tk + 1, LAYOUTS[i]);
    check_exact(s, tsr_round_up(3, edge), tsr_round_up(3083, edge), tsr_round_up(300, edge), LAYOUTS[1], false);
}

#ifndef TSR_EMULATE_CUDA
/* A product too large to be made again here: small integers, and every row and column of C adds up to what A and B
 * say. */
static void check_sums(const setup *s, int64_t m, int64_t n, int64_t k, layout l, bool accumulate) {
    product p = product_open(s, m, n, k, l);
    matrix_fill(&p.a, TSR_FILL_INTEGER, 9);
    matrix_fill(&p.b, TSR_FILL_INTEGER, 10);
    if (accumulate) matrix_fill(&p.c, TSR_FILL_INTEGER, 11);
    /* sums of A's columns, B's rows */
    int64_t *rows = calloc((size_t)(m + n + 2 * k), sizeof *rows);
    int64_t *cols = rows + m;
    int64_t *of_a = cols + n;
    int64_t *of_b = of_a + k;
    CHECK(rows != NULL, "no memory");
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < k; q++) of_a[q] += (int64_t)get(&p.a, at(&p.a, i, q));
    for (int64_t q = 0; q < k; q++) {
        for (int64_t j = 0; j < n; j++) {
            of_b[q] += (int64_t)get(&p.b, at(&p.b, q, j));
            cols[j] += of_a[q] * (int64_t)get(&p.b, at(&p.b, q, j));
        }
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < k; q++) rows[i] += (int64_t)get(&p.a, at(&p.a, i, q)) * of_b[q];
    matrix result = multiply(s, &p, accumulate);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            const int64_t made =
                (int64_t)get(&result, at(&p.c, i, j)) - (accumulate ? (int64_t)get(&p.c, at(&p.c, i, j)) : 0);
            rows[i] -= made;
            cols[j] -= made;
        }
    }
    for (int64_t i = 0; i < m + n; i++)
        CHECK(rows[i] == 0, "%s %s %ldx%ldx%ld accumulate %d: %s %ld of C adds up to %ld too little", s->kernel->name,
              tsr_dtype_name(s->kernel->input), (long)m, (long)n, (long)k, accumulate, i < m ? "row" : "column",
              (long)(i < m ? i : i - m), (long)rows[i]);
    free(result.host);
    free(rows);
    product_close(s, &p);
}

/* More tiles than a device has multiprocessors, which may all, or the last of them, be cut along k; and long k,
 * where kernels may go another way. */
static void check_large(const setup *s) {
    const sizes tile = tile_of(s);
    const int64_t edge = s->kernel->multiple;
    check_shape(s, 140 * tile.m + 1, 8, 7, LAYOUTS[2]);
    check_shape(s, 7, 140 * tile.n + 1, 9, LAYOUTS[1]);
    check_exact(s, tsr_round_up(140 * tile.m + 1, edge), edge, tsr_round_up(40 * tile.k, edge), LAYOUTS[0], false);
    check_batch(s, tile.m + 1, tile.n + 1, 2 * tile.k + 1, 16, 0, true);
    check_batch(s, 2 * tile.m, tile.n, 5 * tile.k, 0, 2, false);
    /* so many whole tiles that those of 16-bit products go to `wgmma` */
    if (tsr_dtype_bytes(s->kernel->input) == 2 && s->kernel->batched)
        for (int i = 0; i < 2; i++) check_stack(s, 70, 256, 96 + i * 32, 64 + i * 64, 0, 0, i == 1);
    if (!s->kernel->workspace_bytes) return; /* it cuts nothing */
    check_exact(s, 129, 65, 2049, LAYOUTS[0], false);
    check_bound(s, 100, 67, 4099, LAYOUTS[2], TSR_FILL_UNIFORM, true);
    check_sums(s, 1000, 1000, 520, LAYOUTS[2], false); /* tiles that just fill the device */
    check_sums(s, 256, 250, 20000, LAYOUTS[1], true);
    check_sums(s, 300, 200, 5000, LAYOUTS[0], true); /* 11 slices and 4 of `wgmma` */
    check_sums(s, 500, 500, 3000, LAYOUTS[2], false);
    check_sums(s, 64, 300, 2049, LAYOUTS[2], false); /* few rows, and pieces of two tiles a block */
    check_sums(s, 1100, 1030, 257, LAYOUTS[1], true);
    check_sums(s, 1030, 1540, 2049, LAYOUTS[1], false);
    check_sums(s, 2304, 1023, 2049, LAYOUTS[2], true);
    check_sums(s, 4300, 1023, 2112, LAYOUTS[0], false);
    for (int i = 0; i < 2; i++) check_sums(s, 1030, 3100, 2049, LAYOUTS[i], i == 1);
}
#endif

static void check_kernel(const setup *s) {
    const int64_t edge = s->kernel->multiple;
    check_shapes(s);
    check_refusals(s);
    check_batches(s);
    check_batch_refusals(s);
    for (int i = 0; i < LAYOUT_COUNT; i++)
        check_special(s, tsr_round_up(19, edge), tsr_round_up(21, edge), tsr_round_up(131, edge), LAYOUTS[i]);
    if (s->kernel->accuracy == TSR_ACCURACY_IEEE)
        for (int way = 0; way < 3; way++) check_sparse(s, tsr_round_up(101, edge), LAYOUTS[way % LAYOUT_COUNT], way);
    /* A long sum of terms of one sign: where a bound that grows with k and one that does not part. */
    check_bound(s, edge, edge, tsr_round_up(5003, edge), LAYOUTS[0], TSR_FILL_UNIFORM, false);
#ifndef TSR_EMULATE_CUDA
    if (s->kernel->device == TSR_DEVICE_CUDA) check_large(s);
#endif
}

/* Little, for tools that make a kernel a thousand times slower: several tiles, one tile that is cut along k, NaN and
 * Inf. */
static void check_quickly(const setup *s) {
    const sizes tile = tile_of(s);
    const int64_t edge = s->kernel->multiple;
    const bool exact = strcmp(s->kernel->name, "exact") == 0; /* it cuts k at TSR_EXACT_RANGE alone */
    const int64_t deep = (exact ? 6 : 40) * tile.k;
    check_shape(s, tile.m + 1, tile.n + 1, 2 * tile.k + 1, LAYOUTS[1]);
    check_shape(s, 5, 7, deep, LAYOUTS[0]);
    check_exact(s, tsr_round_up(tile.m + 1, edge), edge, tsr_round_up(deep, edge), LAYOUTS[0], false);
    check_special(s, tsr_round_up(19, edge), tsr_round_up(21, edge), tsr_round_up(131, edge), LAYOUTS[2]);
    check_batch(s, 65, 70, 40, 64, 0, true);
    check_batch(s, 17, 13, 19, 7, 1, false);
}

#ifdef TSR_EMULATE_CUDA
/* Devices with other limits: grids too small for C, blocks too small for tiles of 32. */
static void check_limits(const setup *s) {
    tsr_cuda_emulation_limits *limits = tsr_cuda_emulation(), before = *limits;
    limits->grid_max[0] = 2;
    limits->grid_max[1] = 1;
    check_shape(s, 70, 97, 5, LAYOUTS[0]);
    check_shape(s, 131, 259, 3, LAYOUTS[1]);
    *limits = before;
    if (s->kernel->multiple > 1) return; /* its tile is fixed */
    limits->threads_block = 512;
    tsr_gemm_shape tile;
    CHECK_OK(s->kernel->shape(s->device, 33, 33, 33, &tile));
    CHECK(tile.threads <= 512, "%s: %d threads a block on a device of 512", s->kernel->name, tile.threads);
    check_shape(s, 33, 17, 18, LAYOUTS[1]);
    *limits = before;
}
#endif

static const tsr_gemm_kernel *under_test;

/* Products that another kernel would make faster are its own here. */
static tsr_gemm_substitute only_unable(int64_t m, int64_t n, int64_t k) {
    tsr_gemm_substitute other = {.kernel = NULL};
    if (under_test->substitute) other = under_test->substitute(m, n, k);
    return other.unable ? other : (tsr_gemm_substitute){.kernel = NULL};
}

int main(int argc, char **argv) {
    setup s = {0};
    int devices = 0;
    int count = 0;
    int checked = 0;
    char why[256] = "";
    CHECK_OK(tsr_device_find(TSR_TEST_DEVICE, &s.ops));
    CHECK_OK(s.ops->count(&devices, why));
    if (devices == 0) {
        fprintf(stderr, "skipped: no GPU: %s\n", why);
        return 77;
    }
    CHECK_OK(s.ops->open(0, &s.device));
    CHECK_OK(s.ops->use(s.device));
    CHECK_OK(s.ops->stream_create(s.device, &s.stream));
    tsr_device_facts facts;
    CHECK_OK(s.ops->facts(s.device, &facts));
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) {
        tsr_gemm_kernel alone = *kernels[i];
        under_test = kernels[i];
        alone.substitute = only_unable;
        s.kernel = &alone;
        if (s.kernel->device != s.ops->kind || !tsr_gemm_runs_on(s.kernel, facts.arch)) continue;
        if (argc > 1 && strcmp(argv[1], s.kernel->name) != 0) continue;
        bool quick = argc > 2 && strcmp(argv[2], "quick") == 0;
#ifdef TSR_EMULATE_CUDA
        quick = quick || strcmp(s.kernel->name, "exact") == 0; /* 20 launches a product: test_exact has its shapes */
#endif
        if (quick) {
            check_quickly(&s);
            checked++;
            continue;
        }
        check_kernel(&s);
#ifdef TSR_EMULATE_CUDA
        check_limits(&s);
#endif
        checked++;
    }
    CHECK(checked >= (argc > 1 ? 1 : 4), "only %d kernels for device '%s'", checked, TSR_TEST_DEVICE);
    s.ops->stream_destroy(s.device, s.stream);
    s.ops->close(s.device);
    return 0;
}
