/* Runs whose operands are in the memory of ranks: random layouts, parts, types, transposes, alpha and beta, compared
 * with sums of small integers, which are exact. */
#include "app/library/run.h"
#include "app/verify/verify.h"
#include "tests/check.h"

#define ROUNDS 60

static uint64_t state;

static int64_t below(int64_t limit) { /* the same on every rank */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* A matrix as the test sees it, and this rank's share. */
typedef struct {
    tsr_distributed matrix; /* as it is stored */
    tsr_deal seen;
    int64_t rows, cols; /* of the array */
    bool by_columns;
    int role;
    MPI_Win window;
} operand;

/* Element (row, col) of the whole matrix of that role: small integers, the imaginary part as well. */
static tsr_complex value(int role, int64_t row, int64_t col, bool complex) {
    const uint64_t x = (uint64_t)(row * 7919 + col * 104729 + role * 31) * 2654435761u;
    return (tsr_complex){(double)((int64_t)(x >> 20) % 7 - 3), complex ? (double)((int64_t)(x >> 27) % 5 - 2) : 0};
}

static tsr_complex get(tsr_dtype type, const void *at) {
    return tsr_element_to_complex((tsr_element){type, false}, at);
}

static void put(tsr_dtype type, void *at, tsr_complex x) {
    if (type == TSR_F32) *(float *)at = (float)x.re;
    else if (type == TSR_F64) *(double *)at = x.re;
    else if (type == TSR_C64) memcpy(at, (float[]){(float)x.re, (float)x.im}, 8);
    else memcpy(at, (double[]){x.re, x.im}, 16);
}

/* The index in the matrix of a local one. */
static int64_t global(const tsr_dealt *side, int64_t local, int part) {
    const int64_t turn = local / side->block, ahead = (part - side->first + side->parts) % side->parts;
    return (turn * side->parts + ahead) * side->block + local % side->block;
}

typedef void visitor(const operand *x, int64_t row, int64_t col, void *at, void *context);

/* Each element of this rank's array, by its place in the matrix as the test sees it. */
static void each(const operand *x, int rank, visitor *visit, void *context) {
    const tsr_deal *deal = &x->matrix.deal;
    int row, col;
    if (!tsr_deal_place(deal, rank, &row, &col) || (deal->shared && rank > 0 && visit && !context)) return;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            const int64_t r = global(&deal->rows, i, row), c = global(&deal->cols, j, col);
            void *at = (char *)x->matrix.data + (size_t)(i * x->matrix.ld + j) * tsr_dtype_bytes(x->matrix.dtype);
            visit(x, x->by_columns ? c : r, x->by_columns ? r : c, at, context);
        }
}

static void fill(const operand *x, int64_t row, int64_t col, void *at, void *context) {
    (void)context;
    put(x->matrix.dtype, at, value(x->role, row, col, tsr_dtype_is_complex(x->matrix.dtype)));
}

static void allocate(const tsr_world *w, operand *x) {
    const size_t bytes = (size_t)(x->rows * x->matrix.ld) * tsr_dtype_bytes(x->matrix.dtype);
    x->window = MPI_WIN_NULL;
    if (!x->matrix.deal.shared) {
        x->matrix.data = bytes ? calloc(1, bytes) : NULL;
        return;
    }
    MPI_Aint size;
    int unit;
    MPI_Win_allocate_shared(w->rank == 0 ? (MPI_Aint)bytes : 0, 1, MPI_INFO_NULL, w->comm, &x->matrix.data, &x->window);
    MPI_Win_shared_query(x->window, 0, &size, &unit, &x->matrix.data);
}

static void release(operand *x) {
    if (x->window != MPI_WIN_NULL) MPI_Win_free(&x->window);
    else free(x->matrix.data);
}

static tsr_dealt random_side(int64_t count, int parts, int64_t *start) {
    static const int64_t blocks[] = {1, 2, 5, 16, 100};
    const int64_t before = below(2) ? below(20) : 0, behind = below(2) ? below(20) : 0;
    *start = before;
    return (tsr_dealt){before + count + behind, blocks[below(5)], parts, (int)below(parts)};
}

static operand make_operand(const tsr_world *w, int role, int64_t rows, int64_t cols, tsr_dtype type, bool by_columns,
                            bool shared) {
    operand x = {.role = role, .by_columns = by_columns, .matrix = {.dtype = type}};
    const int p = shared ? 1 : 1 + (int)below(w->ranks), q = shared ? 1 : 1 + (int)below(w->ranks / p);
    x.seen.part = (tsr_rect){.rows = rows, .cols = cols};
    x.seen.rows = random_side(rows, p, &x.seen.part.row);
    x.seen.cols = random_side(cols, q, &x.seen.part.col);
    x.seen.ranks_by_columns = below(2);
    x.seen.shared = shared;
    x.matrix.deal = by_columns ? tsr_deal_transposed(x.seen) : x.seen;
    tsr_deal_local(&x.matrix.deal, w->rank, &x.rows, &x.cols);
    x.matrix.ld = x.cols + below(3);
    allocate(w, &x);
    each(&x, w->rank, fill, NULL);
    return x;
}

typedef struct {
    const operand *a, *b;
    bool transpose_a, transpose_b, conjugate_a, conjugate_b;
    double alpha, beta;
    int64_t k;
} expected;

static tsr_complex element(const operand *x, int64_t row, int64_t col, bool transpose, bool conjugate) {
    const tsr_rect *part = &x->seen.part;
    tsr_complex v = value(x->role, part->row + (transpose ? col : row), part->col + (transpose ? row : col),
                          tsr_dtype_is_complex(x->matrix.dtype));
    if (conjugate) v.im = -v.im;
    return v;
}

static void compare(const operand *c, int64_t row, int64_t col, void *at, void *context) {
    const expected *e = context;
    const tsr_rect *part = &c->seen.part;
    const bool complex = tsr_dtype_is_complex(c->matrix.dtype);
    const int64_t i = row - part->row, j = col - part->col;
    const tsr_complex got = get(c->matrix.dtype, at);
    tsr_complex sum = {0, 0}, want = value(c->role, row, col, complex);
    if (i >= 0 && j >= 0 && i < part->rows && j < part->cols) {
        for (int64_t l = 0; l < e->k; l++) {
            const tsr_complex a = element(e->a, i, l, e->transpose_a, e->conjugate_a);
            const tsr_complex b = element(e->b, l, j, e->transpose_b, e->conjugate_b);
            sum.re += a.re * b.re - a.im * b.im;
            sum.im += a.re * b.im + a.im * b.re;
        }
        want.re = e->alpha * sum.re + (e->beta != 0 ? e->beta * want.re : 0);
        want.im = e->alpha * sum.im + (e->beta != 0 ? e->beta * want.im : 0);
    }
    CHECK(got.re == want.re && got.im == want.im, "C(%lld, %lld) is %g%+gi, and should be %g%+gi", (long long)row,
          (long long)col, got.re, got.im, want.re, want.im);
}

typedef struct {
    const operand *spoilt; /* C, of which an element becomes wrong before the check; NULL: none */
    int rank;
    int published;
    double seconds, bytes;
    char a[64], c[64];
} told;

static tsr_status published(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output) {
    told *t = context;
    (void)spec;
    (void)output;
    t->published++;
    t->seconds = record->redistribute_seconds;
    t->bytes = record->redistribute_bytes;
    snprintf(t->a, sizeof t->a, "%.60s", record->a.name);
    snprintf(t->c, sizeof t->c, "%.60s", record->c.name);
    return TSR_OK;
}

/* An element somewhere in the part that is meant. */
static void spoil_one(const operand *c, int64_t row, int64_t col, void *at, void *context) {
    const tsr_rect *part = &c->seen.part;
    const int64_t *chosen = context;
    if (row != part->row + chosen[0] % part->rows || col != part->col + chosen[1] % part->cols) return;
    tsr_complex x = get(c->matrix.dtype, at);
    if (chosen[2] && tsr_dtype_is_complex(c->matrix.dtype)) x.im += 1;
    else x.re += 1;
    put(c->matrix.dtype, at, x);
}

static void spoil(void *context, const char *stage) {
    const told *t = context;
    int64_t chosen[3] = {(int64_t)(state >> 20), (int64_t)(state >> 30), (int64_t)(state >> 40) % 2};
    if (!t->spoilt || strcmp(stage, "check") != 0) return;
    if (!t->spoilt->matrix.deal.shared || t->rank == 0) each(t->spoilt, t->rank, spoil_one, chosen);
    if (t->spoilt->matrix.deal.shared) MPI_Barrier(MPI_COMM_WORLD);
}

static tsr_run_options options_of(void) {
    return (tsr_run_options){.product = {.alpha = tsr_real(1)},
                             .engine = {.device = "cpu", .kernel = "auto", .transport = "auto"},
                             .limits = {.memory = {.percent = 10}, .host_memory = {.percent = 10}, .threads = 1},
                             .command = "test",
                             .started = "now"};
}

/* One run; `kind` 0: dealt out, 1: shared by all. */
static void test_product(const tsr_world *w, int kind) {
    static const tsr_dtype types[] = {TSR_F32, TSR_F64, TSR_C64, TSR_C128};
    const tsr_dtype type = types[below(4)];
    const bool complex = tsr_dtype_is_complex(type), columns = below(2);
    const int64_t m = 1 + below(90), n = 1 + below(90);
    expected e = {.k = 1 + below(90), .transpose_a = below(2), .transpose_b = below(2)};
    e.alpha = (double)below(4);
    e.beta = (double)(below(3) - 1);
    e.conjugate_a = complex && below(2);
    e.conjugate_b = complex && below(2);
    operand a = make_operand(w, 1, e.transpose_a ? e.k : m, e.transpose_a ? m : e.k, type, columns, kind == 1);
    operand b = make_operand(w, 2, e.transpose_b ? n : e.k, e.transpose_b ? e.k : n, type, columns, kind == 1);
    operand c = make_operand(w, 3, m, n, type, columns, kind == 1);
    MPI_Barrier(w->comm);
    tsr_run_options o = options_of();
    o.product = (tsr_run_product){.memory_a = &a.matrix,
                                  .memory_b = &b.matrix,
                                  .memory_c = &c.matrix,
                                  .transpose_a = e.transpose_a,
                                  .transpose_b = e.transpose_b,
                                  .conjugate_a = e.conjugate_a,
                                  .conjugate_b = e.conjugate_b,
                                  .alpha = tsr_real(e.alpha),
                                  .beta = tsr_real(e.beta),
                                  .order = columns ? TSR_ORDER_COL : TSR_ORDER_ROW};
    o.trials = below(2) ? 20 : 0;
    told t = {.spoilt = o.trials && below(2) ? &c : NULL, .rank = w->rank};
    const tsr_run_calls calls = {.context = &t, .stage = spoil, .published = published};
    if (t.spoilt) {
        CHECK(tsr_run_multiply(w, &o, &calls) == TSR_ERR_CHECK, "a wrong element of %lld x %lld passed", (long long)m,
              (long long)n);
        if (w->rank == 0) CHECK(strstr(tsr_message(), "FAILED: 1 of"), "%s", tsr_message());
        CHECK(t.published == 0, "a wrong product was published");
        goto done;
    }
    CHECK_OK(tsr_run_multiply(w, &o, &calls));
    CHECK(t.published == (w->rank == 0), "rank %d was told %d times", w->rank, t.published);
    const char *name = kind == 1 ? "memory (shared)" : "memory (block-cyclic";
    if (w->rank == 0) CHECK(strncmp(t.a, name, strlen(name)) == 0 && strncmp(t.c, name, strlen(name)) == 0, "%s", t.c);
    if (kind == 1 && o.trials == 0)
        CHECK(t.seconds == 0 && t.bytes == 0, "shared memory was moved: %g s, %g bytes", t.seconds, t.bytes);
    e.a = &a;
    e.b = &b;
    each(&c, w->rank, compare, &e);
done:
    MPI_Barrier(w->comm);
    release(&a);
    release(&b);
    release(&c);
}

/* C has more rows than the check judges at a time, and a wrong one among the last. */
static void test_blocks(const tsr_world *w) {
    enum { TRIALS = 64 };
    const int64_t m = tsr_verify_block(INT64_MAX, TRIALS) + 1001;
    const bool transpose = w->ranks % 2 == 1, complex = w->ranks % 4 == 2;
    const tsr_dtype type = complex ? TSR_C64 : TSR_F32;
    operand a = make_operand(w, 1, transpose ? 2 : m, transpose ? m : 2, type, false, false);
    operand b = make_operand(w, 2, 2, 1, TSR_F32, false, false);
    operand c = make_operand(w, 3, m, 1, type, false, false);
    tsr_run_options o = options_of();
    o.product.memory_a = &a.matrix;
    o.product.memory_b = &b.matrix;
    o.product.memory_c = &c.matrix;
    o.product.transpose_a = transpose;
    o.product.beta = tsr_real(complex ? 2 : 0);
    o.trials = TRIALS;
    told t = {.rank = w->rank};
    const tsr_run_calls calls = {.context = &t, .stage = spoil, .published = published};
    CHECK_OK(tsr_run_multiply(w, &o, &calls));
    t.spoilt = &c;
    state = (uint64_t)(m - 2) << 20;
    CHECK(tsr_run_multiply(w, &o, &calls) == TSR_ERR_CHECK, "a wrong element passed");
    release(&a);
    release(&b);
    release(&c);
}

/* What cannot be: every rank hears of it, and C stays as it is. */
static void test_refusals(const tsr_world *w) {
    static const tsr_run_calls nobody = {0};
    operand a = make_operand(w, 1, 20, 30, TSR_F64, false, false);
    operand b = make_operand(w, 2, 30, 10, TSR_F64, false, false);
    operand c = make_operand(w, 3, 20, 10, TSR_F64, false, false);
    operand d = make_operand(w, 3, 20, 11, TSR_F64, false, false);
    tsr_run_options good = options_of();
    good.product.memory_a = &a.matrix;
    good.product.memory_b = &b.matrix;
    good.product.memory_c = &c.matrix;
#define REFUSED(change, status, text)                                                                                  \
    do {                                                                                                               \
        tsr_run_options bad = good;                                                                                    \
        bad.change;                                                                                                    \
        tsr_message_set("");                                                                                           \
        CHECK(tsr_run_multiply(w, &bad, &nobody) == (status), "%s: %s", text, tsr_message());                          \
        if (w->rank == 0) CHECK(strstr(tsr_message(), text), "%s", tsr_message());                                     \
    } while (0)
    tsr_distributed wrong = c.matrix;
    wrong.deal.rows.first = 99;
    REFUSED(product.memory_c = &d.matrix, TSR_ERR_SHAPE, "20 x 11");
    REFUSED(product.transpose_a = true, TSR_ERR_SHAPE, "");
    REFUSED(product.memory_c = &wrong, TSR_ERR_SHAPE, "place 99");
    wrong = b.matrix;
    wrong.deal.rows.parts = 50;
    REFUSED(product.memory_b = &wrong, TSR_ERR_SHAPE, "B lies on a grid of 50x");
    CHECK_OK(tsr_run_multiply(w, &good, &nobody));
    release(&a);
    release(&b);
    release(&c);
    release(&d);
}

/* The limit counts what ranks hold: where the plan alone fits, and not beside that, nothing is multiplied. */
static void test_limit(const tsr_world *w) {
    static const tsr_run_calls nobody = {0};
    operand a = make_operand(w, 1, 400, 300, TSR_F64, false, false);
    operand b = make_operand(w, 2, 300, 500, TSR_F64, false, false);
    operand c = make_operand(w, 3, 400, 500, TSR_F64, false, false);
    tsr_run_options o = options_of();
    o.product.memory_a = &a.matrix;
    o.product.memory_b = &b.matrix;
    o.product.memory_c = &c.matrix;
    const double held = 8.0 * (400 * 300 + 300 * 500 + 400 * 500) / w->ranks;
    o.limits.host_memory.bytes = o.limits.memory.bytes = (size_t)(0.4 * held);
    tsr_message_set("");
    const tsr_status status = tsr_run_multiply(w, &o, &nobody);
    CHECK(status == TSR_ERR_LIMIT || w->ranks == 1, "%s", tsr_status_text(status));
    if (w->rank == 0 && w->ranks > 1)
        CHECK(strstr(tsr_message(), "holds of matrices in memory") || strstr(tsr_message(), "limit"), "%s",
              tsr_message());
    release(&a);
    release(&b);
    release(&c);
}

int main(int argc, char **argv) {
    tsr_world w = {.started_seconds = tsr_now_seconds()};
    CHECK_OK(tsr_world_open(&w));
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 100 + (uint64_t)w.ranks;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        state = seed * 1000 + i;
        test_product(&w, (int)(i % 4 == 3));
    }
    state = seed;
    test_refusals(&w);
    test_blocks(&w);
    test_limit(&w);
    tsr_world_close(&w);
    return 0;
}
