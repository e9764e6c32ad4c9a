/* The kernel contract (kernels/gemm/gemm.h) for every kernel of one device, TSR_TEST_DEVICE: host kernels, CUDA kernels
 * in the host emulation, CUDA kernels on a GPU. Every product is checked element by element against sums taken here:
 * in 64-bit integers where the result must be exact, in long double where a bound must hold. Exit code 77: there is
 * no such device.
 * Usage: test_gemm_contract [KERNEL [quick]]   all kernels, or those of this name; quick: a few shapes, for
 * sanitizers. */
#include "tests/kernels/gemm/contract_batches.h"
#ifdef TSR_EMULATE_CUDA
#include "kernels/device/cuda_emulation.h"
#endif

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
#ifdef TSR_EMULATE_CUDA
    const int64_t long_k = 499; /* an element of C costs a whole tile of them */
#else
    const int64_t long_k = 997;
#endif
    for (int i = 0; i < count; i++) check_shape(s, ms[i], 5, 7, LAYOUTS[i % LAYOUT_COUNT]);
    for (int i = 0; i < count; i++) check_shape(s, 7, ns[i], 5, LAYOUTS[(i + 1) % LAYOUT_COUNT]);
    for (int i = 0; i < deep; i++) check_shape(s, 5, 7, ks[i], LAYOUTS[(i + 2) % LAYOUT_COUNT]);
    for (int i = 0; i < LAYOUT_COUNT; i++) {
        check_shape(s, tm, tn, 2 * tk, LAYOUTS[i]);
        check_shape(s, tm + 1, tn + 1, tk + 1, LAYOUTS[i]);
    }
    check_shape(s, 307, 3, 11, LAYOUTS[1]);
    check_shape(s, 3, 307, 11, LAYOUTS[2]);
    check_shape(s, 3, 5, long_k, LAYOUTS[0]);
    check_shape(s, tm + 1, 5, long_k, LAYOUTS[1]);
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
