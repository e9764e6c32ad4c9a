/* `exact` (kernels/gemm/exact/exact_rules.h) on one device, TSR_TEST_DEVICE: the error that it promises for data that
 * are hard in different ways, the same bytes however the product is cut and scaled, NaN, Inf and what is out of range,
 * and, where the device is not the CPU, the CPU's bytes. Products are made with their check, too: the same bytes, and
 * nothing is doubted. Exit code 77: there is no such device.
 * Usage: test_exact [PRODUCTS]   so many random ones beside the CPU's */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fill/fill.h"
#include "tests/kernels/gemm/exact/exact_products.h"

#if defined(TSR_EMULATE_CUDA) || defined(TSR_HAVE_CUDA)
#define ON_CUDA /* it may be: `exact` is there in products of quarters */
#endif
#ifdef TSR_EMULATE_CUDA
enum { QUARTERED = 4, FEW = 60 }; /* such products; rows or columns: two halves of the others are enough */
#else
enum { QUARTERED = 100, FEW = 600 };
#endif

/* ---- what it errs ---------------------------------------------------------------------------- */

/* Largest |ΔC| / (u·(|A||B|)) of some elements. */
static double error_of(const product *p) {
    double *a = malloc((size_t)p->k * sizeof *a), *b = malloc((size_t)p->k * sizeof *b);
    double worst = 0;
    CHECK(a && b, "no memory");
    for (int64_t sample = 0; sample < 200; sample++) {
        const int64_t i = sample * 7 % p->m, j = sample * 11 % p->n;
        double absolute;
        for (int64_t l = 0; l < p->k; l++) {
            a[l] = get(p->type, p->a, i * p->k + l);
            b[l] = get(p->type, p->b, l * p->n + j);
        }
        const tsr_double_double right = tsr_oracle_dot(p->k, a, b, &absolute);
        const double got = get(p->type, p->c, i * p->n + j);
        const double lost = fabs((got - right.high) - right.low);
        if (absolute == 0) CHECK(got == 0, "C[%ld][%ld] is %g and nothing meets", (long)i, (long)j, got);
        else worst = fmax(worst, lost / (tsr_dtype_roundoff(p->type) * absolute));
    }
    free(a);
    free(b);
    return worst;
}

static void test_error(const place *d, tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    for (int input = 0; input < TSR_INPUT_COUNT; input++)
        for (int wider = 0; wider <= (input == TSR_INPUT_WIDE); wider++) {
            const double phi = wider ? 2 : 0.5;
            product p = open_product(type, m, n, k);
            fill(&p, (tsr_input)input, phi);
            p.checked = (tsr_input)input == TSR_INPUT_WIDE;
            make(d, &p);
            const double error = error_of(&p), bound = fmax(4, sqrt((double)k));
            CHECK(error <= bound, "%s %s, phi %g, k = %ld: off by %.3g u of |A||B|, promised %.3g",
                  tsr_dtype_name(type), tsr_input_name((tsr_input)input), phi, (long)k, error, bound);
            close_product(&p);
        }
}

/* ---- the same bytes -------------------------------------------------------------------------- */

static void test_cuts(const place *d, tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    product p = open_product(type, m, n, k);
    void *whole = room(type, m * n);
    fill(&p, TSR_INPUT_WIDE, 2);
    p.checked = true;
    make(d, &p);
    p.checked = false;
    memcpy(whole, p.c, bytes_of(type, m * n));
    const int64_t cut_m = TSR_EXACT_BLOCK, cut_n = n > 2 * TSR_EXACT_BLOCK ? 2 * TSR_EXACT_BLOCK : TSR_EXACT_BLOCK;
    for (int64_t i = 0; i < m; i += cut_m)
        for (int64_t j = 0; j < n; j += cut_n)
            for (int64_t l = 0; l < k; l += TSR_EXACT_RANGE)
                make_part(d, &p, i, tsr_min(cut_m, m - i), j, tsr_min(cut_n, n - j), l, tsr_min(TSR_EXACT_RANGE, k - l),
                          l > 0);
    same_bytes(&p, whole, "cut");
    free(whole);
    close_product(&p);
}

/* Rows and columns times powers of two: C is the same times these, to the bit. */
static void test_scales(const place *d, tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    const int most = type == TSR_F64 ? 300 : 25;
    product p = open_product(type, m, n, k);
    void *scaled = room(type, m * n);
    fill(&p, TSR_INPUT_NORMAL, 0);
    make(d, &p);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            put(type, scaled, i * n + j, ldexp(get(type, p.c, i * n + j), (int)(i * 37 % (2 * most)) - most + (j % 3)));
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            put(type, p.a, i * k + l, ldexp(get(type, p.a, i * k + l), (int)(i * 37 % (2 * most)) - most));
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < n; j++) put(type, p.b, l * n + j, ldexp(get(type, p.b, l * n + j), (int)(j % 3)));
    make(d, &p);
    same_bytes(&p, scaled, "scaled");
    free(scaled);
    close_product(&p);
}

/* Elements of a range in another order: the same integers. */
static void test_order(const place *d, tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    product p = open_product(type, m, n, k), turned = open_product(type, m, n, k);
    fill(&p, TSR_INPUT_WIDE, 0.5);
    const int64_t part = TSR_EXACT_PART;
    for (int64_t l = 0; l < k; l++) { /* parts keep their elements */
        const int64_t first = l / part * part;
        const int64_t to = first + (l - first + 31) % tsr_min(part, k - first);
        for (int64_t i = 0; i < m; i++) put(type, turned.a, i * k + to, get(type, p.a, i * k + l));
        for (int64_t j = 0; j < n; j++) put(type, turned.b, to * n + j, get(type, p.b, l * n + j));
    }
    make(d, &p);
    make(d, &turned);
    same_bytes(&p, turned.c, "in another order");
    close_product(&p);
    close_product(&turned);
}

/* ---- what is not a number, or out of range --------------------------------------------------- */

static void test_special(const place *d, tsr_dtype type) {
    const int64_t m = 150;
    const int64_t n = 140;
    const int64_t k = 70;
    const double huge = type == TSR_F64 ? DBL_MAX : FLT_MAX, tiny = type == TSR_F64 ? 0x1p-1074 : 0x1p-149;
    product p = open_product(type, m, n, k);
    fill(&p, TSR_INPUT_NORMAL, 0);
    p.checked = true;
    put(type, p.a, 3 * k + 5, NAN);
    put(type, p.a, 4 * k + 6, INFINITY);
    put(type, p.b, 6 * n + 9, 0); /* Inf·0 */
    put(type, p.b, 7 * n + 130, -INFINITY);
    for (int64_t l = 0; l < k; l++) {
        put(type, p.a, 5 * k + l, 0);
        put(type, p.a, 7 * k + l, tiny);
        put(type, p.a, 149 * k + l, huge);
        put(type, p.b, l * n + 20, 1 + (double)(l % 3));
        put(type, p.b, l * n + 21, l % 2 == 0 ? huge : -huge);
    }
    make(d, &p);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (long double)get(type, p.a, i * k + l) * (long double)get(type, p.b, l * n + j);
            const double right = type == TSR_F64 ? (double)sum : (double)(float)sum, got = get(type, p.c, i * n + j);
            const bool leaves = (j == 21 && i != 5) || (i == 149 && j != 20); /* a loop's partial sums the range */
            if (isnan(right) && !leaves) {
                const double nan = NAN;
                const float narrow = NAN;
                CHECK(memcmp((char *)p.c + bytes_of(type, i * n + j), type == TSR_F64 ? (void *)&nan : (void *)&narrow,
                             tsr_dtype_bytes(type)) == 0,
                      "C[%ld][%ld] is %g, not the one NaN", (long)i, (long)j, got);
            } else if (isinf(right) && !leaves) {
                CHECK(got == right, "C[%ld][%ld] is %g, not %g", (long)i, (long)j, got, right);
            } else if (i == 5) {
                CHECK(j == 130 || (got == 0 && !signbit(got)), "C[5][%ld] is %g", (long)j, got);
            } else if (!leaves) {
                CHECK(isfinite(got), "C[%ld][%ld] is %g, not %g", (long)i, (long)j, got, right);
            }
        }
    for (int64_t l = 0, sum = 0; l < k; l++) {
        sum += 1 + l % 3;
        if (l == k - 1)
            CHECK(get(type, p.c, 7 * n + 20) == (double)sum * tiny, "subnormal: %g", get(type, p.c, 7 * n + 20));
    }
    close_product(&p);
}

/* Integers are exact at any size that C's type holds, though nearly all of a sum cancels. */
static void test_integers(const place *d, tsr_dtype type, int64_t m, int64_t n, int64_t k) {
    const int64_t most = type == TSR_F64 ? (int64_t)1 << 40 : 1 << 20;
    product p = open_product(type, m, n, k);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            put(type, p.a, i * k + l,
                (double)(((i * 7919 + l / 2 * 104729) % (2 * most) - most) & ~(int64_t)(most >> 20)));
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < n; j++)
            put(type, p.b, l * n + j, (double)((l % 2 == 0 ? 1 : -1) * ((j * 31 + l / 2 * 17) % 1000) + (l == k - 1)));
    make(d, &p);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            __int128 sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (__int128)(int64_t)get(type, p.a, i * k + l) * (int64_t)get(type, p.b, l * n + j);
            const double right = type == TSR_F64 ? (double)sum : (double)(float)sum;
            CHECK(get(type, p.c, i * n + j) == right, "C[%ld][%ld] is %.17g, not %.17g", (long)i, (long)j,
                  get(type, p.c, i * n + j), right);
        }
    close_product(&p);
}

/* Adding to C is one addition; no k leaves C. */
static void test_accumulate(const place *d, tsr_dtype type) {
    const int64_t m = 131;
    const int64_t n = 40;
    const int64_t k = 300;
    product p = open_product(type, m, n, k);
    void *sum = room(type, m * n);
    fill(&p, TSR_INPUT_UNIFORM, 0);
    make(d, &p);
    for (int64_t at = 0; at < m * n; at++) {
        const double c = get(type, p.c, at), old = 1e3 / (double)(at + 1);
        put(type, sum, at, type == TSR_F64 ? old + c : (double)((float)old + (float)c));
        put(type, p.c, at, old);
    }
    p.accumulate = p.checked = true;
    make(d, &p);
    same_bytes(&p, sum, "added");
    make_part(d, &p, 0, m, 0, n, 0, 0, true);
    same_bytes(&p, sum, "no k");
    free(sum);
    close_product(&p);
}

/* ---- levels, which the CPU and all devices decide alike -------------------------------------- */

/* The level that a product of lines alike needs. */
static int level_of(tsr_dtype type, double phi, int64_t k, bool sparse) {
    tsr_exact_natural limits[TSR_EXACT_LEVELS];
    tsr_exact_proof proofs[2];
    int met = 0;
    double scale[2], *x[2];
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        limits[level] = tsr_exact_limit(tsr_exact_moduli(type, level));
    for (int side = 0; side < 2; side++) {
        tsr_exact_line line = {.exponent = TSR_EXACT_EMPTY, .lowest = TSR_EXACT_WHOLE};
        x[side] = malloc((size_t)k * sizeof(double));
        for (int64_t l = 0; l < k; l++) {
            const double normal = tsr_fill_element(TSR_FILL_NORMAL, 5 + (uint64_t)side, 0, l);
            x[side][l] = sparse && l % 50 != side
                             ? 0
                             : normal * exp(phi * tsr_fill_element(TSR_FILL_NORMAL, 15 + (uint64_t)side, 0, l));
            line.exponent = tsr_max(line.exponent, tsr_exact_exponent(type, x[side][l]));
            line.lowest = tsr_min(line.lowest, tsr_exact_lowest(x[side][l]));
            line.count += x[side][l] != 0;
        }
        for (int64_t l = 0; l < k; l++) { /* one part for all: as good */
            const uint64_t q = tsr_exact_quantum(x[side][l], tsr_exact_quantum_scale(line.exponent));
            line.sum += q;
            line.squares += q * q;
        }
        scale[side] = tsr_exact_magnitude_scale(type, line.exponent, tsr_exact_grain(line));
        proofs[side] = tsr_exact_prove(type, line, limits);
    }
    for (int64_t l = 0; l < k; l++)
        met += tsr_exact_magnitude(x[0][l], scale[0]) * tsr_exact_magnitude(x[1][l], scale[1]);
    free(x[0]);
    free(x[1]);
    return tsr_exact_level(&proofs[0], &proofs[1], k, tsr_exact_allowed(type, k), met);
}

static void test_levels(void) {
    for (int type = 0; type < 2; type++) {
        const tsr_dtype of = type == 0 ? TSR_F64 : TSR_F32;
        for (int64_t k = 1024; k <= TSR_EXACT_RANGE; k *= 2) {
            const int plain = level_of(of, 0, k, false), wide = level_of(of, 2, k, false);
            CHECK(plain == 0, "%s, k = %ld: normal data need level %d", tsr_dtype_name(of), (long)k, plain);
            CHECK(wide >= 1 && wide < TSR_EXACT_LOOP, "%s, k = %ld: wide data need level %d", tsr_dtype_name(of),
                  (long)k, wide);
        }
        CHECK(level_of(of, 8, 1000, true) == TSR_EXACT_LOOP, "nothing meets: proved by nothing");
    }
}

/* ---- beside the CPU -------------------------------------------------------------------------- */

static int64_t drawn(uint64_t *state, int64_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*state >> 33) % (uint64_t)below);
}

/* Keeps so many of a thousand elements. */
static void thin(tsr_dtype type, void *x, int64_t count, int64_t kept, uint64_t *state) {
    for (int64_t at = 0; at < count; at++)
        if (drawn(state, 1000) >= kept) put(type, x, at, 0);
}

/* C before the product: numbers that it is added to, or NaN. */
static void paint(product *p) {
    for (int64_t at = 0; at < p->m * p->n; at++) put(p->type, p->c, at, p->accumulate ? (double)(at % 17) / 3 : NAN);
}

/* Makes a product on the CPU, and on the device with the check: the same bytes. */
static void make_beside_cpu(const place *d, const place *cpu, product *p) {
    paint(p);
    make(cpu, p);
    void *right = room(p->type, p->m * p->n);
    memcpy(right, p->c, bytes_of(p->type, p->m * p->n));
    paint(p);
    p->checked = true;
    make(d, p);
    p->checked = false;
    same_bytes(p, right, "beside the CPU");
    free(right);
}

/* Rows and columns that meet in one element of k alone, smaller from product to product: few elements of C need the
 * last level, in blocks of which others do not. */
static void test_few(const place *d, const place *cpu, tsr_dtype type) {
    const int64_t m = 20;
    const int64_t n = 140;
    const int64_t k = 300;
    const int64_t rows[] = {3, 17}, columns[] = {5, 9, 131}; /* 4 elements of a block, and 2 */
    product p = open_product(type, m, n, k);
    fill(&p, TSR_INPUT_NORMAL, 0);
    for (int64_t l = 0; l < k; l++) {
        for (int i = 0; l >= k / 2 && i < 2; i++) put(type, p.a, rows[i] * k + l, 0);
        for (int j = 0; l < k / 2 && j < 3; j++) put(type, p.b, l * n + columns[j], 0);
    }
    for (int i = 0; i < 2; i++) put(type, p.a, rows[i] * k + 7, 1 / 3.0);
    for (int i = 0; i < 2; i++) put(type, p.a, rows[i] * k + 8, 0x1p-20 / 3); /* which no level has as an integer */
    for (int j = 0; j < 3; j++) put(type, p.b, (k - 1) * n + columns[j], 0x1p-20 / 3);
    blocks_with_few = 0;
    for (int step = 0; step < 6; step++) {
        for (int j = 0; j < 3; j++) put(type, p.b, 7 * n + columns[j], ldexp(4 / 3.0, -step));
        p.accumulate = step % 2;
        make_beside_cpu(d, cpu, &p);
    }
    CHECK(blocks_with_few > 0, "%s: no elements take the last level by themselves", tsr_dtype_name(type));
    close_product(&p);
}

/* So many products, of `rows` and `columns` at most and twice `deep` along k, or eight times that. */
static void test_beside_cpu(const place *d, const place *cpu, tsr_dtype type, int count, int64_t rows, int64_t columns,
                            int64_t deep) {
    uint64_t state = 20261124 + (uint64_t)type;
    for (int i = 0; i < count; i++) {
        product p = open_product(type, 1 + drawn(&state, rows), 1 + drawn(&state, columns),
                                 1 + drawn(&state, drawn(&state, 8) == 0 ? 8 * deep : 2 * deep));
        fill(&p, (tsr_input)drawn(&state, TSR_INPUT_COUNT), drawn(&state, 2) ? 0.5 : 2);
        if (i % 2 == 0) { /* to all ways that sparse elements take */
            const int64_t kept[] = {10, 30, 100, 400};
            thin(type, p.a, p.m * p.k, kept[drawn(&state, 4)], &state);
            thin(type, p.b, p.k * p.n, kept[drawn(&state, 4)], &state);
        }
        for (int64_t s = i % 2 == 0 ? 0 : drawn(&state, 4); s > 0; s--) {
            const double odd[] = {NAN, INFINITY, 0, 0x1p-140, 0x1p120, -0.0};
            put(type, p.a, drawn(&state, p.m * p.k), odd[drawn(&state, 6)]);
        }
        p.accumulate = drawn(&state, 2);
        make_beside_cpu(d, cpu, &p);
        close_product(&p);
    }
}

int main(int argc, char **argv) {
    const tsr_device_ops *ops;
    const bool cpu_alone = strcmp(TSR_TEST_DEVICE, "cpu") == 0;
    char why[256] = "";
    int devices = 0;
    CHECK_OK(tsr_device_find(TSR_TEST_DEVICE, &ops));
    CHECK_OK(ops->count(&devices, why));
    if (devices == 0) {
        fprintf(stderr, "skipped: no GPU: %s\n", why);
        return 77;
    }
#ifdef TSR_EMULATE_CUDA
    const int64_t edge = 90, depth = 300;
    const int usual = 6;
#else
    const int64_t edge = SOME_OF(300), depth = 2500;
    const int usual = 500;
#ifdef __SANITIZE_ADDRESS__ /* three times as slow: parts of one block, not two */
    const int64_t wide = TSR_EXACT_BLOCK + 2;
#else
    const int64_t wide = 2 * TSR_EXACT_BLOCK + 14;
#endif
#endif
    test_levels();
    for (int type = 0; type < 2; type++) {
        const tsr_dtype of = type == 0 ? TSR_F64 : TSR_F32;
        place d = open_place(TSR_TEST_DEVICE, of);
        test_error(&d, of, edge, edge / 2, depth);
        test_error(&d, of, 20, 30, 1);
        test_special(&d, of);
        test_scales(&d, of, 140, 50, 100);
        test_order(&d, of, 60, 50, 400);
        test_integers(&d, of, 140, 50, 120);
        test_accumulate(&d, of);
#ifndef TSR_EMULATE_CUDA
        test_cuts(&d, of, 140, wide, TSR_EXACT_RANGE + 500);
        test_error(&d, of, 9, 8, 2 * TSR_EXACT_RANGE + 1);
#else
        test_cuts(&d, of, 200, 150, 200);
#endif
        if (!cpu_alone) {
            place cpu = open_place("cpu", of);
            test_few(&d, &cpu, of);
            test_beside_cpu(&d, &cpu, of, argc > 1 ? atoi(argv[1]) : usual, edge, edge, edge);
#ifdef ON_CUDA
            d.kernel = of == TSR_F64 ? &tsr_gemm_quartered_f64 : &tsr_gemm_quartered_f32;
            test_beside_cpu(&d, &cpu, of, argc > 2 ? atoi(argv[2]) : QUARTERED, type == 0 ? 300 : FEW,
                            type == 0 ? FEW : 300, 20);
#endif
            close_place(&cpu);
        }
        close_place(&d);
    }
    return 0;
}
