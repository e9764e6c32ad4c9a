/* Which level `exact` takes for which data (kernels/gemm/exact/exact_rules.h), by the CPU's way, and that what it
 * proves is so: elements of C beside sums in twice double's precision, for data that come close to what is allowed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/accuracy.h"
#include "kernels/gemm/exact/exact.h"
#include "kernels/gemm/registry.h"
#include "tests/check.h"

static uint64_t state = 20261124;
static uint64_t drawn(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}
static double uniform(void) { return ((double)drawn(1u << 30) + 0.5) * 0x1p-30; }
static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

/* A product; A and B as fp64, rounded to `type`. */
typedef struct {
    tsr_dtype type;
    int64_t m, n, k;
    double *a, *b, *c; /* m × k, n × k: columns of B one after the other, m × n */
    struct {
        int64_t blocks[TSR_GEMM_LEVELS], left; /* see tsr_gemm_fallbacks */
    } census;
} product;

static void *room(int64_t count, size_t bytes) {
    void *at = calloc((size_t)count, bytes);
    CHECK(at, "no memory");
    return at;
}
static product open_product(tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    return (product){.type = type,
                     .m = m,
                     .n = n,
                     .k = k,
                     .a = room(m * k, sizeof(double)),
                     .b = room(n * k, sizeof(double)),
                     .c = room(m * n, sizeof(double))};
}
static void close_product(product *p) {
    free(p->a);
    free(p->b);
    free(p->c);
}
static double rounded(tsr_dtype type, double x) { return type == TSR_F64 ? x : (double)(float)x; }

static void make(product *p) {
    const size_t bytes = tsr_dtype_bytes(p->type);
    const tsr_gemm_kernel *kernel = p->type == TSR_F64 ? &tsr_gemm_exact_cpu_f64 : &tsr_gemm_exact_cpu_f32;
    void *a = room(p->m * p->k, bytes), *b = room(p->k * p->n, bytes);
    void *c = room(p->m * p->n, bytes);
    void *workspace = room(1, kernel->workspace_bytes(p->m, p->n, p->k));
    for (int64_t at = 0; at < p->m * p->k; at++) {
        p->a[at] = rounded(p->type, p->a[at]);
        if (p->type == TSR_F64) ((double *)a)[at] = p->a[at];
        else ((float *)a)[at] = (float)p->a[at];
    }
    for (int64_t at = 0; at < p->n * p->k; at++) {
        const int64_t to = at % p->k * p->n + at / p->k;
        p->b[at] = rounded(p->type, p->b[at]);
        if (p->type == TSR_F64) ((double *)b)[to] = p->b[at];
        else ((float *)b)[to] = (float)p->b[at];
    }
    tsr_gemm_fallbacks counted = {.products = 0};
    const tsr_gemm_args args = {.m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .a = a,
                                .lda = p->k,
                                .b = b,
                                .ldb = p->n,
                                .c = c,
                                .ldc = p->n,
                                .workspace = workspace,
                                .fallbacks = &counted};
    CHECK_OK(kernel->launch(NULL, NULL, &args));
    for (int level = 0; level < TSR_GEMM_LEVELS; level++) p->census.blocks[level] = (int64_t)counted.levels[level];
    p->census.left = (int64_t)counted.left;
    for (int64_t at = 0; at < p->m * p->n; at++)
        p->c[at] = p->type == TSR_F64 ? ((double *)c)[at] : (double)((float *)c)[at];
    free(a);
    free(b);
    free(c);
    free(workspace);
}

/* Every step-th element is within what is promised, and 0 where nothing meets. */
static void check_error(const product *p, const char *what, int64_t step) {
    const double u = tsr_dtype_roundoff(p->type), f = fmax(4, sqrt((double)p->k));
    for (int64_t at = 0; at < p->m * p->n; at += step) {
        double absolute;
        const tsr_double_double right =
            tsr_oracle_dot(p->k, p->a + at / p->n * p->k, p->b + at % p->n * p->k, &absolute);
        const double lost = fabs((p->c[at] - right.high) - right.low);
        CHECK(lost <= f * u * absolute, "%s, %s, %ld x %ld x %ld: C[%ld][%ld] is %.17g, not %.17g: off by %.3g u of %g",
              what, tsr_dtype_name(p->type), (long)p->m, (long)p->n, (long)p->k, (long)(at / p->n), (long)(at % p->n),
              p->c[at], right.high, lost / (u * absolute), absolute);
    }
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* Element l of a row of A, or of a column of B. */
typedef struct {
    int64_t line, l, k;
    bool of_b;
} spot;
typedef double (*element)(spot s);

static double dense(spot s) {
    (void)s;
    return normal();
}
static double sparse(double part) { return uniform() < part ? normal() : 0; }
static double sparse_1(spot s) {
    (void)s;
    return sparse(0.01);
}
static double sparse_5(spot s) {
    (void)s;
    return sparse(0.05);
}
static double banded(spot s) { return llabs(s.line - s.l) <= 24 ? normal() : 0; }
static double identity(spot s) { return s.line == s.l; }
static double times_identity(spot s) { return s.of_b ? s.line == s.l : normal(); }
static double permutation(spot s) { return s.of_b ? normal() : s.l == (s.line * 37 + 5) % s.k; }
static double zero_rows(spot s) { return !s.of_b && s.line % 10 == 3 ? 0 : normal(); }
static double small_blocks(spot s) { return s.line / 48 == s.l / 48 ? normal() : 0; }
static double large_blocks(spot s) { return s.line / 200 == s.l / 200 ? normal() : 0; }
static double apart(spot s) { return (s.l < s.k / 2) == s.of_b ? normal() : 0; }
/* Every other line is apart from the others. */
static double partly_apart(spot s) { return s.line % 2 ? apart(s) : normal(); }
static double wide(spot s) {
    (void)s;
    const double x = normal();
    return x * exp(2 * normal());
}
static double endless(spot s) {
    (void)s;
    const double x = normal();
    return x * exp(8 * normal());
}

static void fill(product *p, element of) {
    for (int64_t at = 0; at < p->m * p->k; at++) p->a[at] = of((spot){at / p->k, at % p->k, p->k, false});
    for (int64_t at = 0; at < p->n * p->k; at++) p->b[at] = of((spot){at / p->k, at % p->k, p->k, true});
}

static void test_levels(tsr_dtype type) {
    static const struct {
        const char *what;
        element of;
        int least, most; /* levels */
    } cases[] = {{"dense", dense, 0, 0},
                 {"1 % of elements", sparse_1, 1, TSR_EXACT_LAST},
                 {"5 % of elements", sparse_5, 1, TSR_EXACT_LAST},
                 {"banded", banded, TSR_EXACT_LAST, TSR_EXACT_LAST},
                 {"the identity", identity, 0, 0},
                 {"times the identity", times_identity, TSR_EXACT_LAST, TSR_EXACT_LAST},
                 {"permuted", permutation, TSR_EXACT_LAST, TSR_EXACT_LAST},
                 {"rows of zeros", zero_rows, 0, 0},
                 {"small diagonal blocks", small_blocks, TSR_EXACT_LAST, TSR_EXACT_LAST},
                 {"large diagonal blocks", large_blocks, 0, TSR_EXACT_LAST},
                 {"nothing meets", apart, TSR_EXACT_LAST, TSR_EXACT_LAST},
                 {"much does not meet", partly_apart, TSR_EXACT_LAST, TSR_EXACT_LAST},
                 {"wide", wide, 1, TSR_EXACT_LAST},
                 {"without a scale", endless, TSR_EXACT_LOOP, TSR_EXACT_LOOP}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t k = 700; k <= 4200; k += 3500) {
            product p = open_product(type, TSR_EXACT_BLOCK, TSR_EXACT_BLOCK, k);
            fill(&p, cases[i].of);
            make(&p);
            for (int level = 0; level <= TSR_EXACT_LOOP; level++)
                CHECK(p.census.blocks[level] == 0 || (level >= cases[i].least && level <= cases[i].most),
                      "%s, %s, k = %ld: %ld blocks take level %d", cases[i].what, tsr_dtype_name(type), (long)k,
                      (long)p.census.blocks[level], level);
            CHECK(p.census.left <= TSR_EXACT_LEFT_MOST, "%s, %s, k = %ld: %ld elements are left", cases[i].what,
                  tsr_dtype_name(type), (long)k, (long)p.census.left);
            if (cases[i].of != endless) check_error(&p, cases[i].what, 7); /* a loop's error is another */
            close_product(&p);
        }
}

/* `graded` of docs/accuracy.md, which rises along k in B. */
static double graded(spot s) {
    const double along = (double)s.l / (double)s.k;
    return normal() * exp2(s.of_b ? 16 * along : -16 * along);
}
/* fp32 has moduli enough for it. With a short k some magnitudes do not meet. */
static void test_graded(void) {
    for (int64_t k = 2048; k <= TSR_EXACT_RANGE; k *= 2) {
        product p = open_product(TSR_F32, TSR_EXACT_BLOCK, TSR_EXACT_BLOCK, k);
        fill(&p, graded);
        make(&p);
        CHECK(p.census.blocks[TSR_EXACT_LOOP] == 0, "graded, k = %ld: the block takes the loop", (long)k);
        CHECK(p.census.left == 0, "graded, k = %ld: %ld elements are left", (long)k, (long)p.census.left);
        check_error(&p, "graded", 7);
        close_product(&p);
    }
}

/* ---- what only one term of the proof knows --------------------------------------------------- */

/* An element that rounding would take, beside one that meets nothing: it is left, and right to the last bit. */
static void test_lost(tsr_dtype type) {
    const int far = type == TSR_F64 ? 900 : 80; /* farther than that, what is scaled leaves the numbers at hand */
    for (int by = 1; by <= 2 * far; by += by < 80 ? 1 : 7)
        for (int side = 0; side < 2; side++) {
            product p = open_product(type, 5, 4, 40);
            double *small = side ? p.b : p.a, *other = side ? p.a : p.b;
            for (int64_t i = 0; i < (side ? p.n : p.m); i++) {
                small[i * p.k] = ldexp(1 / 3.0, by > far ? far : 0);
                small[i * p.k + 1] = ldexp(small[i * p.k], -by);
            }
            for (int64_t i = 0; i < (side ? p.m : p.n); i++) other[i * p.k + 1] = 5 / 7.0;
            make(&p);
            check_error(&p, "a small element alone", 1);
            if (by > (type == TSR_F64 ? 62 : 36))
                CHECK(p.census.left == p.m * p.n, "2^-%d of a line's largest: %ld elements are left", by,
                      (long)p.census.left);
            close_product(&p);
        }
}

/* Refused lines: what is in a block with them takes the loop. */
static void test_refused(tsr_dtype type) {
    product p = open_product(type, 150, 20, 60);
    fill(&p, sparse_5);
    p.a[3 * p.k + 7] = INFINITY;
    make(&p);
    CHECK(p.census.blocks[TSR_EXACT_LOOP] == 1, "one of two blocks has Inf: %ld take the loop",
          (long)p.census.blocks[TSR_EXACT_LOOP]);
    close_product(&p);
}

/* So many pairs of elements that are not weak meet as patterns can and cannot count, and one weak one or none. */
static void test_count(tsr_dtype type) {
    for (int pairs = TSR_EXACT_WEAK - 2; pairs <= TSR_EXACT_WEAK + 1; pairs++)
        for (int weak = 0; weak < 2; weak++) {
            product p = open_product(type, 2, 3, 16000);
            for (int64_t line = 0; line < p.m + p.n; line++) {
                double *x = line < p.m ? p.a + line * p.k : p.b + (line - p.m) * p.k;
                for (int64_t l = 0; l < pairs; l++) x[l] = drawn(2) ? 1 + (double)drawn(16) / 16 : -1;
                /* large elements that meet nothing, so that magnitudes prove nothing */
                for (int64_t l = line < p.m ? 1000 : 8000; l < (line < p.m ? 8000 : 15000); l++)
                    x[l] = (type == TSR_F64 ? 64 : 256) * (1 + sqrt(uniform()));
                x[line < p.m ? 1000 : 8000] = ldexp(1 / 3.0, -20); /* so that not all are integers */
                if (weak) x[pairs - 1] = ldexp(1 / 3.0, -60);
            }
            make(&p);
            check_error(&p, "many pairs", 1);
            const bool proved = pairs < TSR_EXACT_WEAK && !weak;
            CHECK(p.census.left == (proved ? 0 : p.m * p.n), "%s: %d pairs, %d weak: %ld elements are left",
                  tsr_dtype_name(type), pairs, weak, (long)p.census.left);
            close_product(&p);
        }
}

/* More elements than are left one by one take their block to the loop. */
static void test_most(tsr_dtype type) {
    for (int more = 0; more < 2; more++) {
        product p = open_product(type, 16 + more, TSR_EXACT_LEFT_MOST / 16, 30);
        for (int64_t i = 0; i < p.m; i++) {
            p.a[i * p.k] = 1 / 3.0;
            p.a[i * p.k + 1] = ldexp(1 / 3.0, -70);
        }
        for (int64_t j = 0; j < p.n; j++) p.b[j * p.k + 1] = 1 / 7.0;
        make(&p);
        CHECK(p.census.blocks[more ? TSR_EXACT_LOOP : TSR_EXACT_LAST] == 1 &&
                  p.census.left == (more ? 0 : TSR_EXACT_LEFT_MOST),
              "%ld elements: %ld are left", (long)(p.m * p.n), (long)p.census.left);
        check_error(&p, "left", 1);
        close_product(&p);
    }
}

/* A row and so many columns that meet in few elements of k alone, each of this size, in a block whose other elements of
 * C all hold level 0. */
enum { FEW_LINES = 32, FEW_DEPTH = 4096, FEW_ROW = 3 };
static const int few_columns[TSR_EXACT_FEW + 1] = {5, 9, 17, 30, 31};
static product make_few(tsr_dtype type, int columns, int meeting, double size) {
    product p = open_product(type, FEW_LINES, FEW_LINES, FEW_DEPTH);
    state = 20261130;
    fill(&p, dense);
    for (int64_t l = 0; l < FEW_DEPTH; l++) {
        const bool meets = l < FEW_DEPTH / 2 && l >= FEW_DEPTH / 2 - meeting;
        double *of_row = p.a + FEW_ROW * p.k + l;
        if (meets) *of_row = size;
        else if (l >= FEW_DEPTH / 2) *of_row = 0;
        for (int i = 0; i < columns; i++) {
            double *of_column = p.b + few_columns[i] * p.k + l;
            if (meets) *of_column = size;
            else if (l < FEW_DEPTH / 2) *of_column = 0;
        }
    }
    make(&p);
    return p;
}
/* Few elements that need the last level leave their block at the one below, and have the bits that they have in a block
 * of the last level. */
static void test_few(tsr_dtype type) {
    int tried = 0;
    for (int meeting = 1; meeting < 100; meeting += 1 + meeting / 2) {
        const double size = meeting == 1 ? 1 / 3.0 : 4 / 3.0;
        product many = make_few(type, TSR_EXACT_FEW + 1, meeting, size);
        for (int few = 1; many.census.blocks[TSR_EXACT_LAST] == 1 && few <= TSR_EXACT_FEW; few++) {
            product p = make_few(type, few, meeting, size);
            const int64_t at_last = p.census.blocks[TSR_EXACT_LAST]; /* where magnitudes prove none, patterns may */
            CHECK(at_last == 1 || (p.census.blocks[TSR_EXACT_LAST - 1] == 1 && p.census.left == few),
                  "%s, %d elements whose rows and columns meet %d times: %ld blocks take level %d, %ld elements are "
                  "left",
                  tsr_dtype_name(type), few, meeting, (long)p.census.blocks[TSR_EXACT_LAST - 1], TSR_EXACT_LAST - 1,
                  (long)p.census.left);
            for (int i = 0; i < few && !at_last; i++) {
                const int64_t at = FEW_ROW * p.n + few_columns[i];
                CHECK(p.c[at] == many.c[at], "%s: C[%d][%d] is %.17g, and %.17g in a block of the last level",
                      tsr_dtype_name(type), FEW_ROW, few_columns[i], p.c[at], many.c[at]);
            }
            check_error(&p, "few", 1);
            close_product(&p);
            tried += !at_last;
        }
        close_product(&many);
    }
    CHECK(tried >= TSR_EXACT_FEW, "%s: %d products with few elements that need the last level", tsr_dtype_name(type),
          tried);
}

/* ---- thousands of products that come close --------------------------------------------------- */

/* Elements as far below a line's largest as makes them just right or just wrong, whose fraction rounding changes by
 * half a unit, among zeros of many kinds. */
static double adverse(tsr_dtype type, double part, int spread) {
    const double unit = 1 + ldexp((double)(2 * drawn(1u << 20) + 1), type == TSR_F64 ? -52 : -23);
    if (uniform() >= part) return drawn(9) ? 0 : -0.0;
    return ldexp(drawn(2) ? unit : -unit, -(int)drawn((uint64_t)spread + 1));
}
static void test_adverse(tsr_dtype type, int count) {
    static const double parts[] = {0.02, 0.1, 0.3, 1};
    int64_t levels[TSR_EXACT_LEVELS + 1] = {0};
    int64_t left = 0, proved = 0;
    for (int i = 0; i < count; i++) {
        product p = open_product(type, 1 + (int64_t)drawn(12), 1 + (int64_t)drawn(12), 1 + (int64_t)drawn(400));
        const double part_a = parts[drawn(4)], part_b = parts[drawn(4)];
        const int spread_a = (int)drawn(type == TSR_F64 ? 30 : 34), spread_b = (int)drawn(type == TSR_F64 ? 30 : 34);
        for (int64_t at = 0; at < p.m * p.k; at++) p.a[at] = adverse(type, part_a, spread_a);
        for (int64_t at = 0; at < p.n * p.k; at++) p.b[at] = adverse(type, part_b, spread_b);
        make(&p);
        check_error(&p, "adverse", 1);
        for (int level = 0; level <= TSR_EXACT_LOOP; level++) levels[level] += p.census.blocks[level];
        left += p.census.left;
        if (p.census.blocks[TSR_EXACT_LAST] > 0) proved += p.m * p.n - p.census.left;
        close_product(&p);
    }
    for (int level = 0; level <= TSR_EXACT_LOOP; level++)
        CHECK(level == TSR_EXACT_LOOP || levels[level] > count / 50, "%s: %ld of %d take level %d: not tried enough",
              tsr_dtype_name(type), (long)levels[level], count, level);
    CHECK(left > count && proved > count, "%s: %ld elements are left, %ld proved: not tried enough",
          tsr_dtype_name(type), (long)left, (long)proved);
}

int main(void) {
    for (int type = 0; type < 2; type++) {
        const tsr_dtype of = type == 0 ? TSR_F64 : TSR_F32;
        test_levels(of);
        test_lost(of);
        test_refused(of);
        test_count(of);
        test_most(of);
        test_few(of);
        test_adverse(of, SOME_OF(2000));
    }
    test_graded();
    return 0;
}
