/* The check on complex products with NaN, Inf and sums that overflow: 1000 right ones pass, none of them unjudged, and
 * 1000 wrong ones fail. A, B and C0 are complex or real, alpha and beta complex or real, C complex or a real part.
 * `test_verify_complex SEED COUNT` tries others.
 *
 * What an entry may be follows from the definition, part by part: of each sum which non-finite values its terms make,
 * and which the finite ones may overflow to; then all that alpha and C0 make of these, in IEEE arithmetic. Nothing here
 * uses the check's own code. */
#include "app/verify/verify.h"
#include "tests/app/verify/made_numbers.h"

enum { EDGE = 14, AREA = EDGE * EDGE, PARTS = 2 };

typedef struct {
    bool there, complex, conjugated, transposed;
    double part[PARTS][AREA]; /* of op(it), before the conjugate is taken */
} matrix;

typedef struct {
    int m, n, k;
    tsr_dtype type; /* of all parts and sums */
    matrix a, b, c0, c;
    tsr_complex alpha, beta;
    bool huge; /* alpha is */
} complex_product;

/* ---- made ------------------------------------------------------------------------------------ */

static double part_of(const matrix *x, int at, int part) {
    if (part == 0) return x->part[0][at];
    return x->conjugated ? -x->part[1][at] : x->part[1][at];
}

static void fill(matrix *x, int rows, int cols, double size, tsr_dtype type) {
    for (int at = 0; at < rows * cols; at++)
        for (int part = 0; part < PARTS; part++) x->part[part][at] = below(5) == 0 ? 0 : held(size * normal(), type);
}

static void plant(matrix *x, int rows, int cols) {
    static const double values[] = {NAN, INFINITY, -INFINITY, INFINITY, -INFINITY};
    if (!x->there) return;
    x->part[x->complex ? below(2) : 0][below(rows * cols)] = values[below(5)];
}

/* Parts up to the largest number there is, which their magnitude leaves; sometimes one of them is small. */
static tsr_complex huge_factor(void) {
    static const double sizes[] = {0x1.fffffffffffffp1023, 1.7e308, 1e308, 3e307, 1e300, 1, 0};
    const double re = sizes[below(5)], im = sizes[below(7)];
    return (tsr_complex){below(2) ? re : -re, below(2) ? im : -im};
}

static tsr_complex factor(bool complex) {
    static const tsr_complex factors[] = {{1, 2}, {-0.5, 0.25}, {0, 1}, {0, -2}, {3, -1e-3}, {-1.5, -40}};
    return complex ? factors[below(6)] : (tsr_complex){below(2) ? 1 : -2.5, 0};
}

/* The terms of part `part` of element l of the sum (i, j): values that are added, and how many. */
static int terms_of(const complex_product *p, int i, int j, int l, int part, double terms[2]) {
    const int at = i * p->k + l, bt = l * p->n + j;
    const double ar = part_of(&p->a, at, 0), br = part_of(&p->b, bt, 0);
    if (p->a.complex && p->b.complex) {
        const double ai = part_of(&p->a, at, 1), bi = part_of(&p->b, bt, 1);
        terms[0] = part == 0 ? ar * br : ar * bi;
        terms[1] = part == 0 ? -(ai * bi) : ai * br;
        return 2;
    }
    if (part == 1 && !p->a.complex && !p->b.complex) return 0;
    terms[0] = part == 0 ? ar * br : p->a.complex ? part_of(&p->a, at, 1) * br : ar * part_of(&p->b, bt, 1);
    return 1;
}

static bool complex_sums(const complex_product *p) { return p->a.complex || p->b.complex; }

/* alpha·sum + beta·c0, part by part. */
static void finish(const complex_product *p, int at, const double sum[PARTS], double out[PARTS]) {
    const bool turned = p->alpha.im != 0, sums = complex_sums(p);
    out[0] = p->alpha.re * sum[0] - (turned && sums ? p->alpha.im * sum[1] : 0);
    out[1] = (sums ? p->alpha.re * sum[1] : 0) + (turned ? p->alpha.im * sum[0] : 0);
    if (!p->c0.there) return;
    const double *re = p->c0.part[0], *im = p->c0.part[1];
    const bool both = p->beta.im != 0 && p->c0.complex;
    out[0] += p->beta.re * re[at] - (both ? p->beta.im * im[at] : 0);
    out[1] += (p->c0.complex ? p->beta.re * im[at] : 0) + (p->beta.im != 0 ? p->beta.im * re[at] : 0);
}

static void multiply_complex(complex_product *p) {
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) {
            double sum[PARTS] = {0, 0}, out[PARTS];
            for (int part = 0; part < PARTS; part++)
                for (int l = 0; l < p->k; l++) {
                    double terms[2];
                    const int count = terms_of(p, i, j, l, part, terms);
                    for (int t = 0; t < count; t++) sum[part] = held(sum[part] + held(terms[t], p->type), p->type);
                }
            finish(p, i * p->n + j, sum, out);
            for (int part = 0; part < PARTS; part++) p->c.part[part][i * p->n + j] = held(out[part], p->type);
        }
}

static void make_complex(complex_product *p, uint64_t seed) {
    random_state = seed;
    *p = (complex_product){.m = 1 + below(EDGE), .n = 1 + below(EDGE), .k = 1 + below(EDGE)};
    p->type = below(2) ? TSR_F32 : TSR_F64;
    p->a = (matrix){.there = true, .complex = below(3) > 0, .conjugated = below(3) == 0, .transposed = below(2)};
    p->b = (matrix){.there = true, .complex = below(3) > 0, .conjugated = below(3) == 0, .transposed = below(2)};
    p->c0 = (matrix){.there = below(2), .complex = below(2)};
    p->huge = below(4) == 0;
    p->alpha = p->huge ? huge_factor() : factor(below(2));
    p->beta = p->c0.there ? factor(below(2)) : (tsr_complex){0, 0};
    const bool complex = p->alpha.im != 0 || p->beta.im != 0 || p->c0.complex || complex_sums(p);
    p->c = (matrix){.there = true, .complex = complex && below(6) > 0};
    const double root = sqrt(range(p->type)) / 8;
    const bool large = below(5) == 0;
    fill(&p->a, p->m, p->k, large ? root : 1, p->type);
    fill(&p->b, p->k, p->n, large ? root : below(4) == 0 ? range(p->type) / 1e3 : 1, p->type);
    fill(&p->c0, p->m, p->n, 1, p->type);
    if (p->huge) { /* sums that such an alpha brings back into the range, or beyond it */
        const double sum = pow(10, p->type == TSR_F32 ? -10 : -290 - below(21)), of_a = sqrt(sum);
        fill(&p->a, p->m, p->k, of_a, p->type);
        fill(&p->b, p->k, p->n, sum / of_a, p->type);
    }
    if (!p->huge && !large && p->b.part[0][0] * p->b.part[0][0] > 1e30) fill(&p->a, p->m, p->k, 1e-20, p->type);
    for (int some = below(5); some > 0; some--) {
        const int which = below(3);
        if (which == 0) plant(&p->a, p->m, p->k);
        else if (which == 1) plant(&p->b, p->k, p->n);
        else plant(&p->c0, p->m, p->n);
    }
    multiply_complex(p);
}

/* ---- checked --------------------------------------------------------------------------------- */

typedef struct {
    double f64[PARTS * AREA];
    float f32[PARTS * AREA];
} memory;

static tsr_store *store_of(memory *to, const matrix *x, int rows, int cols, tsr_dtype type) {
    const int parts = x->complex ? 2 : 1;
    const int64_t r = x->transposed ? cols : rows, c = x->transposed ? rows : cols;
    if (!x->there) return NULL;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            for (int part = 0; part < parts; part++) {
                const int at = (x->transposed ? j * rows + i : i * cols + j) * parts + part;
                to->f64[at] = x->part[part][i * cols + j];
                to->f32[at] = (float)to->f64[at];
            }
    const tsr_dtype of = parts == 1 ? type : type == TSR_F32 ? TSR_C64 : TSR_C128;
    void *data = type == TSR_F64 ? (void *)to->f64 : (void *)to->f32;
    tsr_store *store = NULL;
    CHECK_OK(tsr_memory_open((tsr_view){data, {of, false}, r, c, c}, &store));
    return store;
}

static tsr_verify_result check(const tsr_world *world, const complex_product *p) {
    static memory a, b, c0, c;
    tsr_verify_result result;
    tsr_verify_args args = {.a = store_of(&a, &p->a, p->m, p->k, p->type),
                            .b = store_of(&b, &p->b, p->k, p->n, p->type),
                            .c = store_of(&c, &p->c, p->m, p->n, p->type),
                            .c0 = store_of(&c0, &p->c0, p->m, p->n, p->type),
                            .transpose_a = p->a.transposed,
                            .transpose_b = p->b.transposed,
                            .conjugate_a = p->a.conjugated,
                            .conjugate_b = p->b.conjugated,
                            .alpha = p->alpha.re,
                            .alpha_imag = p->alpha.im,
                            .beta = p->beta.re,
                            .beta_imag = p->beta.im,
                            .type = p->type,
                            .trials = 20,
                            .seed = random_bits(),
                            .threads = 2,
                            .buffer_bytes = 8 << 20};
    CHECK_OK(tsr_verify_product(world, &args, &result));
    tsr_store_close(args.a);
    tsr_store_close(args.b);
    tsr_store_close(args.c);
    if (args.c0) tsr_store_close(args.c0);
    return result;
}

/* ---- what an entry may be -------------------------------------------------------------------- */

typedef struct {
    double values[4]; /* a sum of this part may be */
    int count;
    double size; /* of its finite terms */
} sums;

static sums sums_of(const complex_product *p, int i, int j, int part) {
    long double plus = 0, minus = 0;
    bool up = false;
    bool down = false;
    bool nan = false;
    for (int l = 0; l < p->k; l++) {
        double terms[2];
        const int count = terms_of(p, i, j, l, part, terms);
        for (int t = 0; t < count; t++) {
            nan |= isnan(terms[t]);
            if (isinf(terms[t])) *(terms[t] > 0 ? &up : &down) = true;
            else if (terms[t] > 0) plus += terms[t];
            else if (terms[t] < 0) minus -= terms[t];
        }
    }
    const bool may_up = plus > 0.98 * range(p->type), may_down = minus > 0.98 * range(p->type);
    sums s = {.size = (double)(plus + minus)};
    if (!nan && !up && !down) s.values[s.count++] = (double)(plus - minus);
    if (!nan && !down && (up || may_up)) s.values[s.count++] = INFINITY;
    if (!nan && !up && (down || may_down)) s.values[s.count++] = -INFINITY;
    if (nan || ((up || may_up) && (down || may_down))) s.values[s.count++] = NAN;
    return s;
}

/* Whether c may stand in a part of (i, j): 0 no, 1 yes, 2 that is not said. */
static int entry_may_be(const complex_product *p, int i, int j, int part, double c) {
    const sums re = sums_of(p, i, j, 0), im = sums_of(p, i, j, 1);
    const double u = unit(p->type);
    const long double size = hypotl(p->alpha.re, p->alpha.im);
    double largest = 0; /* of the row */
    for (int q = 0; q < p->n; q++)
        for (int of = 0; of < PARTS; of++) {
            const double s = sums_of(p, i, q, of).size;
            if (isfinite(s)) largest = fmax(largest, s);
        }
    for (int q = 0; q < p->n && p->c0.there; q++)
        for (int of = 0; of < PARTS; of++)
            if (isfinite(p->c0.part[of][i * p->n + q]))
                largest = fmax(largest, fabs(p->c0.part[of][i * p->n + q]) * 50);
    const long double bound =
        (u * (8 + 4 * sqrt(2 * p->k)) * (size + 1)) * largest + 40 * (1 + (p->huge ? p->k * size : 0)) * tiny(p->type);
    int answer = 0;
    for (int x = 0; x < re.count; x++)
        for (int y = 0; y < im.count; y++) {
            const double sum[PARTS] = {re.values[x], im.values[y]};
            double out[PARTS];
            finish(p, i * p->n + j, sum, out);
            const bool near = fabs(out[part]) > 0.98 * range(p->type);
            if (isnan(c) ? isnan(out[part]) : isinf(c) && (near || isinf(out[part])) && (c > 0) == (out[part] > 0))
                return 1;
            if (!isfinite(c) || !isfinite(out[part])) continue;
            const long double error = fabsl((long double)c - out[part]);
            const double lambda = sqrt(2 * log(2.0 * p->m * 20 / 1e-9));
            if (error <= bound) return 1;
            if (error <= lambda * sqrt(2 * p->n) * 64 * bound) answer = 2;
        }
    return answer;
}

static void spoil(complex_product *p, int at, int part) {
    static const double values[] = {NAN, INFINITY, -INFINITY, 0};
    double *c = &p->c.part[part][at];
    const int kind = below(6);
    if (kind < 4) *c = values[kind];
    else if (kind == 4) *c = -*c;
    else *c = held(isfinite(*c) ? *c + 1e6 * (fabs(*c) + 1) : range(p->type), p->type);
}

static const char *text_of(const tsr_verify_result *result) {
    static char text[512];
    tsr_verify_format(result, text, sizeof text);
    return text;
}

#define PLACE "product %llu: %d x %d x %d, type %d, complex a %d b %d c0 %d (%d) c %d, alpha %g%+gj, beta %g%+gj: %s"
#define PLACED(p, number, result)                                                                                      \
    (unsigned long long)(number), (p)->m, (p)->n, (p)->k, (p)->type, (p)->a.complex, (p)->b.complex, (p)->c0.complex,  \
        (p)->c0.there, (p)->c.complex, (p)->alpha.re, (p)->alpha.im, (p)->beta.re, (p)->beta.im, text_of(result)

int main(int argc, char **argv) {
    static complex_product p;
    tsr_world world;
    CHECK_OK(tsr_world_open(&world));
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 7;
    const int wanted = argc > 2 ? atoi(argv[2]) : 1000;
    int right = 0;
    int wrong = 0;
    int infinite = 0;
    int huge[2] = {0};
    for (uint64_t number = seed << 32; wrong < wanted || right < wanted; number++) {
        make_complex(&p, number);
        tsr_verify_result result = check(&world, &p);
        CHECK(result.passed && result.rows_unjudged == 0, "a right " PLACE, PLACED(&p, number, &result));
        right++;
        const int i = below(p.m), j = below(p.n);
        const int part = p.c.complex ? below(2) : 0, at = i * p.n + j;
        const double was = p.c.part[part][at];
        CHECK(entry_may_be(&p, i, j, part, was) != 0, "%g at (%d, %d) part %d of " PLACE, was, i, j, part,
              PLACED(&p, number, &result));
        spoil(&p, at, part);
        if (entry_may_be(&p, i, j, part, p.c.part[part][at]) != 0) continue;
        result = check(&world, &p);
        CHECK(!result.passed, "%g for %g at (%d, %d), part %d, of " PLACE, p.c.part[part][at], was, i, j, part,
              PLACED(&p, number, &result));
        wrong++;
        huge[isfinite(was)] += p.huge;
        infinite += !isfinite(was) || !isfinite(p.c.part[part][at]);
    }
    CHECK(wanted < 1000 || infinite > wanted / 3, "only %d wrong ones with NaN or Inf", infinite);
    CHECK(wanted < 1000 || (huge[0] > 50 && huge[1] > 50),
          "with a huge alpha only %d wrong ones for NaN or Inf and %d for numbers", huge[0], huge[1]);
    tsr_world_close(&world);
    return 0;
}
