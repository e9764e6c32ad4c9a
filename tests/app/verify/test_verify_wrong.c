/* Freivalds' check (app/verify/verify.h) on products made up to fool it: 1200 wrong ones of ill-scaled data fail,
 * and as many right ones pass, with none left unjudged. `test_verify_wrong SEED COUNT` tries others.
 *
 * What is wrong enough to be found: an entry that is NaN, Inf or finite where it cannot be; or a finite one that is
 * off by λ·√n·SLACK of its own rounding bound (entry_of). λ·√n is what signs over n columns cost; SLACK covers
 * columns within a factor of 16 of each other, elements that differ within a column, and errors that hide behind the
 * row's largest. Where zeros, or few terms, make entries' own bounds differ within a row by more than any scaling of
 * columns can make up for, the row's largest bound relative to the scales counts. */
#include "app/verify/verify.h"
#include "tests/app/verify/made_products.h"

#define SLACK 64

typedef struct {
    double f64[ELEMENTS];
    float f32[ELEMENTS];
    uint16_t f16[ELEMENTS];
} memory;

/* rows × cols of values as a store, transposed if asked. */
static tsr_store *store_of(memory *to, const double *values, int rows, int cols, bool transpose, tsr_dtype type) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            const int at = transpose ? j * rows + i : i * cols + j;
            to->f64[at] = values[i * cols + j];
            to->f32[at] = (float)to->f64[at];
            to->f16[at] = tsr_half_encode(to->f64[at]);
        }
    void *data = type == TSR_F64 ? (void *)to->f64 : type == TSR_F32 ? (void *)to->f32 : (void *)to->f16;
    const int64_t r = transpose ? cols : rows, c = transpose ? rows : cols;
    tsr_store *store = NULL;
    CHECK_OK(tsr_memory_open((tsr_view){data, {type, false}, r, c, c}, &store));
    return store;
}

static tsr_verify_result check(const tsr_world *world, const product *p, tsr_triangle half, const double *c) {
    static memory a, b, c0;
    static memory made;
    tsr_verify_result result;
    tsr_verify_args args = {.a = store_of(&a, p->a, p->m, p->k, p->transpose_a, p->operands),
                            .b = store_of(&b, p->b, p->k, p->n, p->transpose_b, p->operands),
                            .c = store_of(&made, c, p->m, p->n, false, p->out),
                            .c0 = store_of(&c0, p->c0, p->m, p->n, false, p->operands),
                            .transpose_a = p->transpose_a,
                            .transpose_b = p->transpose_b,
                            .triangle = half,
                            .alpha = p->alpha,
                            .beta = p->beta,
                            .type = p->type,
                            .accuracy = p->accuracy,
                            .trials = 20,
                            .seed = random_bits(),
                            .threads = 2,
                            .buffer_bytes = 8 << 20,
                            .progress = NULL};
    CHECK_OK(tsr_verify_product(world, &args, &result));
    tsr_store_close(args.a);
    tsr_store_close(args.b);
    tsr_store_close(args.c);
    tsr_store_close(args.c0);
    return result;
}

/* ---- faults ---------------------------------------------------------------------------------- */

#define FAULTS(X)                                                                                                      \
    X(ENTRY, "an entry off by a little")                                                                               \
    X(COLUMN, "a column of zeros")                                                                                     \
    X(COLUMNS, "two columns changed places")                                                                           \
    X(ROWS, "two rows changed places")                                                                                 \
    X(BIT_A, "a bit flipped in a read of A")                                                                           \
    X(BIT_B, "a bit flipped in a read of B")                                                                           \
    X(PLANT_NAN, "NaN where none belongs")                                                                             \
    X(PLANT_INF, "Inf where none belongs")                                                                             \
    X(SIGN, "Inf of the other sign")                                                                                   \
    X(INF_FOR_NAN, "Inf for NaN")                                                                                      \
    X(NAN_FOR_INF, "NaN for Inf")                                                                                      \
    X(ZERO, "0 for NaN or Inf")                                                                                        \
    X(LARGEST, "the largest number for Inf")                                                                           \
    X(SLAB, "a part of k is missing")                                                                                  \
    X(BLOCK, "a block transposed")                                                                                     \
    X(STALE, "C of another A")                                                                                         \
    X(ALL_ZERO, "C is zero")                                                                                           \
    X(ADDED, "C0 added twice")

typedef enum {
#define X(name, what) name,
    FAULTS(X)
#undef X
        FAULT_COUNT
} fault;

static const char *const fault_names[] = {
#define X(name, what) what,
    FAULTS(X)
#undef X
};

/* A place where C is NaN (kind 0), Inf (1) or finite (2); -1: there is none. */
static int place(const product *p, int kind) {
    for (int tries = 0; tries < 200; tries++) {
        const int at = below(p->m * p->n);
        if (kind == (isnan(p->c[at]) ? 0 : isinf(p->c[at]) ? 1 : 2)) return at;
    }
    return -1;
}

static void put(const product *p, double *c, int kind, double value) {
    const int at = place(p, kind);
    if (at >= 0) c[at] = value;
}

static double flipped(double value, tsr_dtype type) {
    if (type == TSR_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits ^= UINT64_C(1) << below(64);
        memcpy(&value, &bits, sizeof bits);
        return value;
    }
    if (type == TSR_F16) return tsr_half_decode((uint16_t)(tsr_half_encode(value) ^ 1 << below(16)));
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits ^= UINT32_C(1) << below(32);
    memcpy(&single, &bits, sizeof bits);
    return single;
}

static void exchange(double *x, double *y) {
    const double other = *x;
    *x = *y;
    *y = other;
}

/* C as another product leaves it: q is p, but for what went wrong. */
static void of_other(product *q, double *c) {
    multiply(q);
    memcpy(c, q->c, sizeof q->c);
}

static void change_operand(const product *p, fault kind, double *c) {
    static product q;
    q = *p;
    if (kind == BIT_A) {
        double *x = &q.a[below(p->m * p->k)];
        *x = flipped(*x, p->operands);
    } else if (kind == BIT_B) {
        double *x = &q.b[below(p->k * p->n)];
        *x = flipped(*x, p->operands);
    } else if (kind == STALE) {
        for (int e = 0; e < p->m * p->k; e++) q.a[e] = -q.a[e];
    } else {
        q.beta *= 2;
    }
    of_other(&q, c);
}

/* c becomes p's C with a fault. */
static void spoil(const product *p, fault kind, double *c) {
    const int m = p->m;
    const int n = p->n;
    const int i = below(m);
    const int j = below(n);
    const int other_i = below(m);
    const int other_j = below(n);
    memcpy(c, p->c, sizeof p->c);
    switch (kind) {
    case ENTRY: {
        const allowed x = entry_of(p, i, j);
        if (x.finite && isfinite(c[i * n + j]))
            c[i * n + j] = held(
                (double)(x.value + (below(2) ? 1 : -1) * x.bound * sqrt(n) * 10 * SLACK * (1 + uniform())), p->out);
        break;
    }
    case COLUMN:
        for (int r = 0; r < m; r++) c[r * n + j] = 0;
        break;
    case COLUMNS:
        for (int r = 0; r < m; r++) exchange(&c[r * n + j], &c[r * n + other_j]);
        break;
    case ROWS:
        for (int q = 0; q < n; q++) exchange(&c[i * n + q], &c[other_i * n + q]);
        break;
    case PLANT_NAN: put(p, c, 2, NAN); break;
    case PLANT_INF: put(p, c, 2, below(2) ? INFINITY : -INFINITY); break;
    case SIGN: {
        const int at = place(p, 1);
        if (at >= 0) c[at] = -c[at];
        break;
    }
    case INF_FOR_NAN: put(p, c, 0, below(2) ? INFINITY : -INFINITY); break;
    case NAN_FOR_INF: put(p, c, 1, NAN); break;
    case ZERO: put(p, c, below(2), 0); break;
    case LARGEST: {
        const int at = place(p, 1);
        if (at >= 0) c[at] = (c[at] > 0 ? 1 : -1) * range(p->out) * (below(2) ? 1 : 0x1p-3);
        break;
    }
    case SLAB:
        for (int r = 0; r < m; r++)
            for (int q = 0; q < n; q++) c[r * n + q] = finished(p, r, q, add_up(p, r, q, p->k / 3 + 1));
        break;
    case BLOCK:
        for (int r = 0; r < m && r < n; r++)
            for (int q = 0; q < r; q++) exchange(&c[r * n + q], &c[q * n + r]);
        break;
    case ALL_ZERO: memset(c, 0, sizeof p->c); break;
    default: change_operand(p, kind, c); break;
    }
}

/* ---- what must be found ---------------------------------------------------------------------- */

/* What rounding may cost (i, j) if every row of op(B) were as large as its largest element, the scales taken away. */
static double leveled(const product *p, int i, int j, double own) {
    double most = 0;
    for (int q = 0; q < p->n; q++) most = fmax(most, entry_of(p, i, q).bound / p->cols[q]);
    double sum = 0,
           u = unit(p->type) * (2 + 4 * sqrt(p->k)) + (p->accuracy == TSR_ACCURACY_IEEE ? 0 : 0x1p-7) + unit(p->out);
    for (int l = 0; l < p->k; l++) {
        double largest = 0;
        for (int q = 0; q < p->n; q++) largest = fmax(largest, fabs(p->b[l * p->n + q]) / p->cols[q]);
        sum += fabs(p->a[i * p->k + l]) * largest;
    }
    return fmax(own, 64 * p->cols[j] * fmax(u * fabs(p->alpha) * sum, most));
}

static bool wrong_enough_at(const product *p, int i, int j, double c) {
    const double lambda = sqrt(2 * log(2.0 * p->m * 20 / 1e-9));
    const allowed x = entry_of(p, i, j);
    double error;
    if (!may_be(&x, c, &error)) return true;
    if (error <= lambda * sqrt(p->n) * SLACK * x.bound) return false;
    if ((p->k < 8 || p->n < 8) && (p->pattern == SPARSE || p->pattern == BANDED)) return false;
    if (p->k >= 8 && (p->pattern == DENSE || p->pattern == NON_FINITE)) return true;
    return error > lambda * sqrt(p->n) * SLACK * leveled(p, i, j, x.bound);
}

static bool wrong_enough(const product *p, const double *c) {
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++)
            if (wrong_enough_at(p, i, j, c[i * p->n + j])) return true;
    return false;
}

static const char *text_of(const tsr_verify_result *result) {
    static char text[512];
    tsr_verify_format(result, text, sizeof text);
    return text;
}

#define PLACE "product %llu: pattern %d, %d x %d x %d, types %d %d %d, accuracy %d, alpha %g, beta %g: %s"
#define PLACED(p, seed, result)                                                                                        \
    (unsigned long long)(seed), (p)->pattern, (p)->m, (p)->n, (p)->k, (p)->operands, (p)->type, (p)->out,              \
        (p)->accuracy, (p)->alpha, (p)->beta, text_of(result)

/* ---- halves of symmetric products ------------------------------------------------------------- */

/* A matrix times its own transpose, as large in rows as in columns. */
static void make_symmetric(product *p, uint64_t number) {
    make_product(p, number);
    p->n = p->m;
    p->beta = 0;
    for (int j = 0; j < p->m; j++) {
        const double row = p->rows[j]; /* of both factors: its square is of the size that others have */
        p->rows[j] = p->cols[j] = sqrt(row);
        for (int l = 0; l < p->k; l++) {
            double *a = &p->a[j * p->k + l];
            *a = p->b[l * p->n + j] = held(*a / p->along[l] / p->rows[j], p->operands);
        }
    }
    multiply(p);
}

static bool is_kept(tsr_triangle half, int i, int j) { return half == TSR_TRIANGLE_LOWER ? j <= i : j >= i; }

static void take_half(const product *p, tsr_triangle half, double *c) {
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++) c[i * p->n + j] = is_kept(half, i, j) ? p->c[i * p->n + j] : 0;
}

/* Right halves pass; one wrong element fails them, in either half. */
static void try_halves(const tsr_world *world, uint64_t seed, int wanted) {
    static product p;
    static double c[ELEMENTS];
    int of_half[2] = {0};
    for (uint64_t number = seed << 32 | 1u << 31; of_half[0] < wanted || of_half[1] < wanted; number++) {
        make_symmetric(&p, number);
        const tsr_triangle half = below(2) ? TSR_TRIANGLE_LOWER : TSR_TRIANGLE_UPPER;
        const int i = below(p.m), j = below(p.n);
        const bool kept = is_kept(half, i, j);
        take_half(&p, half, c);
        tsr_verify_result result = check(world, &p, half, c);
        CHECK(result.passed && result.rows_unjudged == 0, "a right half %d of " PLACE, half,
              PLACED(&p, number, &result));
        double *at = &c[i * p.n + j];
        const allowed x = entry_of(&p, i, j);
        if (!kept) *at = below(4) ? p.c[i * p.n + j] : below(2) ? NAN : ldexp(1, -10);
        else if (!x.finite || !isfinite(*at)) *at = isnan(*at) ? 0 : below(2) ? NAN : 0;
        else *at = held((double)(x.value + x.bound * p.n * 100 * SLACK * (1 + uniform())), p.out);
        const bool wrong = kept ? wrong_enough_at(&p, i, j, *at) : *at != 0;
        if (!wrong) continue;
        result = check(world, &p, half, c);
        CHECK(!result.passed, "%g at (%d, %d), half %d, of " PLACE, *at, i, j, half, PLACED(&p, number, &result));
        of_half[kept]++;
    }
}

int main(int argc, char **argv) {
    static product p;
    static double c[ELEMENTS];
    tsr_world world;
    CHECK_OK(tsr_world_open(&world));
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 12;
    const int wanted = argc > 2 ? atoi(argv[2]) : 1200;
    int right = 0;
    int wrong = 0;
    int of_fault[FAULT_COUNT] = {0};
    int of_pattern[PATTERNS] = {0};
    for (uint64_t number = seed << 32; wrong < wanted || right < wanted; number++) {
        make_product(&p, number);
        tsr_verify_result result = check(&world, &p, TSR_TRIANGLE_FULL, p.c);
        CHECK(result.passed && result.rows_unjudged == 0, "a right " PLACE, PLACED(&p, number, &result));
        right++;
        const fault kind = (fault)below(FAULT_COUNT);
        spoil(&p, kind, c);
        if (!wrong_enough(&p, c)) continue;
        result = check(&world, &p, TSR_TRIANGLE_FULL, c);
        CHECK(!result.passed && result.rows_failed > 0, "%s in " PLACE, fault_names[kind], PLACED(&p, number, &result));
        wrong++;
        of_fault[kind]++;
        of_pattern[p.pattern]++;
    }
    for (int f = 0; f < FAULT_COUNT && wanted >= 1000; f++)
        CHECK(of_fault[f] >= 5, "only %d with %s", of_fault[f], fault_names[f]);
    for (int f = 0; f < PATTERNS && wanted >= 1000; f++)
        CHECK(of_pattern[f] >= 50, "only %d of pattern %d", of_pattern[f], f);
    try_halves(&world, seed, wanted / 4);
    tsr_world_close(&world);
    return 0;
}
