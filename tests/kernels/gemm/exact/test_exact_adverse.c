/* `exact` on one device, TSR_TEST_DEVICE, on operands that are made to break it, against exact sums of the tests' own:
 * lines of all sizes, one element that hides the others, errors of rounding that all have one sign, integers whose
 * residues and sums are as large as they can be, ties, sums of which nothing, or nearly nothing, is left, and bias.
 * Each check is tried on a wrong result, too. Exit code 77: there is no such device. */
#include "kernels/gemm/exact/exact_rules.h"
#include "tests/kernels/gemm/grade/made_by.h"

typedef struct {
    device_under_test on;
    const tsr_gemm_kernel *kernel;
    tsr_dtype type;
} place;

#ifdef TSR_EMULATE_CUDA /* which makes tiles of 256 x 256 whatever m and n are */
enum { LONG_K = 256, BIAS_EDGE = 64, BIAS_K = 128, EVERY = 2 };
#else
enum { LONG_K = TSR_EXACT_RANGE, BIAS_EDGE = 100, BIAS_K = 500, EVERY = 1 };
#endif

static known_product open_at(const place *at, int64_t m, int64_t n, int64_t k) {
    return known_open(at->type, at->type, m, n, k);
}
/* What blocks took: whether a loop made any element. */
static bool make(const place *at, known_product *p) {
    tsr_gemm_fallbacks counted;
    make_by(&at->on, at->kernel, p, &counted);
    return counted.levels[TSR_EXACT_LOOP] > 0 || counted.left > 0;
}

/* ---- checks, and that they see what is wrong ------------------------------------------------- */

static double neighbour(tsr_dtype type, double x) {
    return type == TSR_F64 ? nextafter(x, INFINITY) : (double)nextafterf((float)x, INFINITY);
}

/* What C is where lines lose nothing: each range's sum rounded once, these added in their order. */
static double value_of_ranges(const known_product *p, int64_t i, int64_t j) {
    double value = 0;
    for (int64_t l0 = 0; l0 < p->k; l0 += TSR_EXACT_RANGE) {
        exact_sum sum = {{0}};
        for (int64_t l = l0; l < tsr_min(l0 + TSR_EXACT_RANGE, p->k); l++)
            exact_add(&sum, p->a[i * p->k + l], p->b[l * p->n + j]);
        value = known_held(p->type, value + exact_rounded(sum, p->type));
    }
    return value;
}
/* The first element of C that is another; -1: there is none. */
static int64_t first_other(const known_product *p) {
    for (int64_t at = 0; at < p->m * p->n; at++)
        if (p->c[at] != value_of_ranges(p, at / p->n, at % p->n)) return at;
    return -1;
}
static void check_value(known_product *p, const char *what) {
    const int64_t other = first_other(p), middle = p->m * p->n / 2;
    CHECK(other < 0, "%s, %s, k = %ld: C[%ld][%ld] is %a, not %a", what, tsr_dtype_name(p->type), (long)p->k,
          (long)(other / p->n), (long)(other % p->n), p->c[other], value_of_ranges(p, other / p->n, other % p->n));
    p->c[middle] = neighbour(p->type, p->c[middle]);
    CHECK(first_other(p) == middle, "%s: a neighbour of the right number is not seen", what);
}

/* The promise: max(4, √k)·u of |A||B|, and what a loop errs in fp64 where one made some of C. */
static void check_promise(known_product *p, bool loop, const char *what) {
    const double u = tsr_dtype_roundoff(p->type);
    const double factor = loop && p->type == TSR_F64 ? (double)p->k : fmax(4, sqrt((double)p->k));
    const double worst = known_worst(p) / u;
    CHECK(worst <= factor, "%s, %s, k = %ld: off by %.3g u of |A||B|, promised %.3g", what, tsr_dtype_name(p->type),
          (long)p->k, worst, factor);
    p->c[0] = known_held(p->type, p->c[0] + 2.1 * factor * u * (double)known_size(p, 0, 0));
    CHECK(known_worst(p) > factor * u, "%s: an element that is too far off is not seen", what);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void test_scaled(const place *at) {
    const int far = at->type == TSR_F64 ? 300 : 30;
    known_product p = open_at(at, 30, 20, 120);
    for (int64_t i = 0; i < p.m; i++) {
        const int power = (int)(i * 37 % (2 * far + 1)) - far;
        for (int64_t l = 0; l < p.k; l++) p.a[i * p.k + l] = ldexp(known_normal(), power);
    }
    for (int64_t j = 0; j < p.n; j++) {
        const int power = (int)(j * 53 % (2 * far + 1)) - far;
        for (int64_t l = 0; l < p.k; l++) p.b[l * p.n + j] = ldexp(known_normal(), power);
    }
    CHECK(!make(at, &p), "lines of normal numbers of one size each are for no loop");
    check_promise(&p, false, "scaled lines");
    known_close(&p);
}

/* One element of each row of A is 2^by times as large as the others. It meets 0 in every other column. */
static void test_dominated(const place *at) {
    const int by_f64[] = {2, 7, 12, 300, 900}, by_f32[] = {2, 7, 14, 60, 100};
    for (int which = 0; which < 5; which += EVERY) {
        const int by = at->type == TSR_F64 ? by_f64[which] : by_f32[which];
        known_product p = open_at(at, 20, 20, 120);
        for (int64_t e = 0; e < p.m * p.k; e++) p.a[e] = known_normal();
        for (int64_t e = 0; e < p.k * p.n; e++) p.b[e] = known_normal();
        for (int64_t i = 0; i < p.m; i++) {
            const int64_t l = i * 6;
            p.a[i * p.k + l] = ldexp(1 + known_uniform(), by);
            for (int64_t j = 0; j < p.n; j += 2) p.b[l * p.n + j] = 0;
        }
        const bool loop = make(at, &p);
        CHECK(which > 0 || !loop, "2^%d: a loop made some of it", by);
        CHECK(which < 3 || loop, "2^%d: no loop made any of it", by);
        check_promise(&p, loop, "one element dominates");
        known_close(&p);
    }
}

/* All elements of a line are the same, so that all its errors of rounding have one sign. */
static void test_aligned(const place *at) {
    const int64_t ks[] = {1, 16, 17, 120, LONG_K};
    const double all_ones = at->type == TSR_F64 ? 0x1.fffffffffffffp0 : 0x1.fffffep0;
    for (int which = 0; which < 5; which += EVERY) {
        known_product p = open_at(at, 24, 24, ks[which]);
        for (int64_t i = 0; i < p.m; i++) {
            const double x = i == 0 ? all_ones : 1 + known_uniform();
            for (int64_t l = 0; l < p.k; l++) p.a[i * p.k + l] = x;
        }
        for (int64_t j = 0; j < p.n; j++) {
            const double y = j == 0 ? all_ones : 1 + known_uniform();
            for (int64_t l = 0; l < p.k; l++) p.b[l * p.n + j] = y;
        }
        CHECK(!make(at, &p), "%ld elements of one size are for no loop", (long)p.k);
        check_promise(&p, false, "aligned errors");
        known_close(&p);
    }
}

/* ---- integers -------------------------------------------------------------------------------- */

/* The largest integer that level 0 leaves as it is in a line of k such, and that is p/2 modulo each of `count` moduli
 * from the first on. */
static double largest_with_residues(tsr_dtype type, int64_t k, int first, int count) {
    static const int moduli[] = TSR_EXACT_MODULI;
    const tsr_exact_natural limit = tsr_exact_limit(tsr_exact_moduli(type, 0));
    int64_t x = 0, step = 1;
    for (int i = first; i < first + count; i++) {
        while (x % moduli[i] != moduli[i] / 2) x += step;
        step *= moduli[i];
    }
    CHECK((tsr_exact_natural)x * (tsr_exact_natural)x * (tsr_exact_natural)k < limit / 4, "too many moduli at once");
    for (int64_t next = x;; next += step) { /* as long as the line's shift is 0 or more */
        const int exponent = ilogb((double)next) + 1;
        const uint64_t q = tsr_exact_quantum((double)next, tsr_exact_quantum_scale(exponent));
        if (tsr_exact_steps((uint64_t)k * q * q, limit) + TSR_EXACT_QUANTUM_BITS < exponent) break;
        x = next;
    }
    return (double)x;
}

/* Residues of p/2 in every place, modulo some moduli in each line and all of them in all lines, and sums that come near
 * what level 0 tells apart. `more`: elements beyond a range. */
static void test_residues(const place *at, int64_t more) {
    const int moduli = tsr_exact_moduli(at->type, 0), together = at->type == TSR_F64 ? 5 : 2;
    known_product p = open_at(at, 13, 14, LONG_K + more);
    for (int64_t line = 0; line < p.m + p.n; line++) {
        const int first = (int)tsr_min(line % 4 * together, moduli - together);
        const double x = largest_with_residues(at->type, LONG_K, first, together);
        for (int64_t l = 0; l < p.k; l++) {
            const double value = line % 3 == 1 || (line % 3 == 2 && l % 2) ? -x : x;
            if (line < p.m) p.a[line * p.k + l] = value;
            else p.b[l * p.n + line - p.m] = value;
        }
    }
    CHECK(!make(at, &p), "integers are for no loop");
    check_value(&p, "largest residues");
    known_close(&p);
}

/* As large a sum as level 0 tells apart from others: elements are a power of two, as many as fill it. */
static void test_fullest(const place *at) {
    const tsr_exact_natural limit = tsr_exact_limit(tsr_exact_moduli(at->type, 0));
    int power = 0;
    while ((limit >> 2 * power) > (tsr_exact_natural)LONG_K) power++;
    known_product p = open_at(at, 5, 6, (int64_t)(limit >> 2 * power));
    for (int64_t e = 0; e < p.m * p.k; e++) p.a[e] = ldexp(e / p.k % 2 ? 1 : -1, power);
    for (int64_t e = 0; e < p.k * p.n; e++) p.b[e] = ldexp(e % p.n % 3 ? 1 : -1, power);
    make(at, &p);
    check_value(&p, "sums that fill level 0");
    known_close(&p);
}

/* Sums halfway between two numbers, of which every other one has the even number below it. The last two rows add so
 * little to that, or take so little away, that fp64 does not hold it beside fp32's sums. */
static void test_ties(const place *at) {
    const int power = at->type == TSR_F64 ? 53 : 24;
    known_product p = open_at(at, 6, 20, 3);
    for (int64_t i = 0; i < p.m; i++) {
        double *row = p.a + i * p.k;
        row[0] = ldexp(i % 2 ? 1 : -1, power / 2);
        row[1] = i / 2 == i % 2 ? -1 : 1;
        row[2] = i < 4 ? 0 : i % 2 ? -0x1p-15 : 0x1p-15;
    }
    for (int64_t j = 0; j < p.n; j++) {
        const int scale = (int)(j % 2);
        p.b[j] = ldexp(1, power - power / 2 + scale);
        p.b[p.n + j] = (double)((j / 2 * 2 + 1) << scale);
        p.b[2 * p.n + j] = 0x1p-14;
    }
    make(at, &p);
    check_value(&p, "ties");
    known_close(&p);
}

/* Pairs that cancel, of integers and of any numbers; the integers leave 1 times an element. */
static void test_cancelling(const place *at) {
    const double most = at->type == TSR_F64 ? 0x1p46 : 0x1p19;
    for (int integers = 0; integers < 2; integers++) {
        known_product p = open_at(at, 20, 20, 120);
        for (int64_t e = 0; e < p.m * p.k; e++)
            p.a[e] = e % 2 == 1 ? p.a[e - 1] : integers ? rint(most * known_uniform()) + 1 : known_normal();
        for (int64_t l = 0; l < p.k; l++)
            for (int64_t j = 0; j < p.n; j++)
                p.b[l * p.n + j] = l % 2 == 1 ? -p.b[(l - 1) * p.n + j]
                                   : integers ? rint(most * known_uniform()) + 1
                                              : known_normal();
        for (int64_t j = 0; j < p.n; j++) p.b[j] += integers ? j % 3 : 0;
        CHECK(!make(at, &p), "numbers of one size are for no loop");
        for (int64_t i = 0; i < p.m; i++)
            for (int64_t j = 0; j < p.n; j++)
                CHECK(p.c[i * p.n + j] == (integers ? (double)(j % 3) * p.a[i * p.k] : 0), "%s: %a is left at %ld, %ld",
                      tsr_dtype_name(at->type), p.c[i * p.n + j], (long)i, (long)j);
        check_value(&p, "pairs that cancel");
        known_close(&p);
    }
}

/* Of sums that cancel but for one unit in the last place of one element. */
static void test_last_place(const place *at) {
    known_product p = open_at(at, 20, 20, 120);
    for (int64_t e = 0; e < p.m * p.k; e++) p.a[e] = e % 2 == 1 ? p.a[e - 1] : known_normal();
    for (int64_t l = 0; l < p.k; l++)
        for (int64_t j = 0; j < p.n; j++) {
            const double before = l > 0 ? p.b[(l - 1) * p.n + j] : 0;
            p.b[l * p.n + j] = l % 2 == 0       ? known_held(at->type, known_normal())
                               : l == 2 * j + 1 ? -neighbour(at->type, before)
                                                : -before;
        }
    check_promise(&p, make(at, &p), "all cancels but a last place");
    known_close(&p);
}

/* ---- bias ------------------------------------------------------------------------------------ */

/* How many times its own deviation the mean of errors is, in units of |A||B|. Errors of a row, and of a column, have
 * its rounding in common: the deviation is that of their means. */
static double bias_of(const known_product *p) {
    double mean = 0;
    double of_rows = 0;
    double of_columns = 0;
    double *errors = known_room(p->m * p->n, sizeof *errors), *lines = known_room(p->m + p->n, sizeof *lines);
    for (int64_t at = 0; at < p->m * p->n; at++) {
        const int64_t i = at / p->n, j = at % p->n;
        errors[at] = (double)(exact_rest(known_sum(p, i, j), p->c[at]) / known_size(p, i, j));
        mean += errors[at] / (double)(p->m * p->n);
        lines[i] += errors[at] / (double)p->n;
        lines[p->m + j] += errors[at] / (double)p->m;
    }
    for (int64_t i = 0; i < p->m; i++) of_rows += (lines[i] - mean) * (lines[i] - mean);
    for (int64_t j = 0; j < p->n; j++) of_columns += (lines[p->m + j] - mean) * (lines[p->m + j] - mean);
    free(errors);
    free(lines);
    return fabs(mean) / sqrt(of_rows / (double)(p->m * p->m) + of_columns / (double)(p->n * p->n));
}

/* The same product of integers that are cut towards zero, of as many bits. */
static void make_cut(const place *at, known_product *p) {
    const double scale = at->type == TSR_F64 ? 0x1p50 : 0x1p22;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            __int128 sum = 0;
            for (int64_t l = 0; l < p->k; l++)
                sum += (__int128)(int64_t)(p->a[i * p->k + l] * scale) * (int64_t)(p->b[l * p->n + j] * scale);
            p->c[i * p->n + j] = known_held(at->type, (double)sum / (scale * scale));
        }
}

static void test_bias(const place *at) {
    known_product p = open_at(at, BIAS_EDGE, BIAS_EDGE, BIAS_K);
    for (int64_t e = 0; e < p.m * p.k; e++) p.a[e] = known_uniform();
    for (int64_t e = 0; e < p.k * p.n; e++) p.b[e] = known_uniform();
    make(at, &p);
    const double bias = bias_of(&p);
    CHECK(bias < 4, "%s, positive data: the mean error is %.3g times its deviation", tsr_dtype_name(at->type), bias);
    make_cut(at, &p);
    CHECK(bias_of(&p) > 8, "%s: cut integers are not seen: %.3g", tsr_dtype_name(at->type), bias_of(&p));
    known_close(&p);
}

int main(void) {
    for (int type = 0; type < 2; type++) {
        place at = {.on = test_open(), .type = type == 0 ? TSR_F64 : TSR_F32};
        tsr_device_facts facts;
        CHECK_OK(at.on.ops->facts(at.on.device, &facts));
        CHECK_OK(tsr_gemm_find("exact", &facts, at.type, at.type, &at.kernel));
        test_scaled(&at);
        test_dominated(&at);
        test_aligned(&at);
        test_residues(&at, 0);
#ifndef TSR_EMULATE_CUDA
        test_residues(&at, 1);
#endif
        test_fullest(&at);
        test_ties(&at);
        test_cancelling(&at);
        test_last_place(&at);
        test_bias(&at);
        test_close(&at.on);
    }
    return 0;
}
