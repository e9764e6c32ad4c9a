/* tessera_multiply_matrices by a program that knows no more than tessera.h: random layouts of small integers, whose
 * products are exact, and what is refused. On any number of ranks. */
#include "tests/app/library/calls.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* An element of the whole matrix; its imaginary part in complex ones. */
static int value(int role, int64_t row, int64_t col) { return (int)((row * 31 + col * 17 + role * 5) % 9) - 4; }
static int imaginary(int role, int64_t row, int64_t col) { return (int)((row * 13 + col * 29 + role) % 5) - 2; }

static int reals_of(const char *type) { return type[0] == 'c' ? 2 : 1; }
static int is_single(const char *type) { return strcmp(type, "f32") == 0 || strcmp(type, "c64") == 0; }

static double get(const char *type, const void *at, int part) {
    return is_single(type) ? ((const float *)at)[part] : ((const double *)at)[part];
}
static void put(const char *type, void *at, int part, double x) {
    if (is_single(type)) ((float *)at)[part] = (float)x;
    else ((double *)at)[part] = x;
}

/* The index in the matrix of a local one, along a side. */
static int64_t global(int64_t local, int64_t block, int parts, int first, int part) {
    return (local / block * parts + (part - first + parts) % parts) * block + local % block;
}

typedef struct {
    tessera_matrix m;
    int by_columns, role;
    int64_t rows, cols, ld; /* of the array, as the matrix has rows and columns */
    size_t element;
    int row, col; /* of this rank in the grid; -1: outside */
} matrix;

static void *at(const matrix *x, int64_t i, int64_t j) {
    return (char *)x->m.data + (size_t)(x->by_columns ? j * x->ld + i : i * x->ld + j) * x->element;
}

static int64_t count(int64_t length, int64_t block, int parts, int first, int part) {
    int64_t n = 0;
    for (int64_t i = 0; i < length; i++) n += (i / block + first) % parts == part;
    return n;
}

/* Every element that this rank has: with its index in the matrix. */
#define EACH(x, i, j, r, c)                                                                                            \
    for (int64_t i = 0; i < (x)->rows; i++)                                                                            \
        for (int64_t j = 0, r, c;                                                                                      \
             j < (x)->cols && (r = global(i, (x)->m.block_rows, (x)->m.grid_rows, (x)->m.first_row, (x)->row),         \
                              c = global(j, (x)->m.block_cols, (x)->m.grid_cols, (x)->m.first_col, (x)->col), 1);      \
             j++)

static matrix make(int role, const char *type, int64_t rows, int64_t cols, int by_columns) {
    matrix x = {.by_columns = by_columns, .role = role, .element = (size_t)reals_of(type) * (is_single(type) ? 4 : 8)};
    const int simple = below(4) == 0; /* each rank a block of rows */
    tessera_matrix *m = &x.m;
    *m = (tessera_matrix){.size = sizeof *m, .type = type, .part_row = simple ? 0 : below(5)};
    m->part_col = simple ? 0 : below(5);
    m->rows = m->part_row + rows + (simple ? 0 : below(5));
    m->cols = m->part_col + cols + (simple ? 0 : below(5));
    m->part_rows = rows;
    m->part_cols = cols;
    m->grid_rows = simple ? ranks : 1 + below(ranks);
    m->grid_cols = simple ? 1 : 1 + below(ranks / m->grid_rows);
    m->block_rows = simple ? (m->rows + ranks - 1) / ranks : 1 + below(9);
    m->block_cols = simple ? m->cols : 1 + below(9);
    m->first_row = simple ? 0 : below(m->grid_rows);
    m->first_col = simple ? 0 : below(m->grid_cols);
    m->ranks_by_columns = simple ? 0 : below(2);
    x.row = m->ranks_by_columns ? rank % m->grid_rows : rank / m->grid_cols;
    x.col = m->ranks_by_columns ? rank / m->grid_rows : rank % m->grid_cols;
    if (rank < m->grid_rows * m->grid_cols) {
        x.rows = count(m->rows, m->block_rows, m->grid_rows, m->first_row, x.row);
        x.cols = count(m->cols, m->block_cols, m->grid_cols, m->first_col, x.col);
    }
    const int64_t least = by_columns ? x.rows : x.cols;
    x.ld = (least ? least : 1) + (simple ? 0 : below(3));
    m->ld = x.ld;
    m->data = calloc((size_t)(x.ld * (by_columns ? x.cols : x.rows)) + 1, x.element);
    EACH(&x, i, j, r, c) {
        put(type, at(&x, i, j), 0, value(role, r, c));
        if (reals_of(type) == 2) put(type, at(&x, i, j), 1, imaginary(role, r, c));
    }
    if (simple) { /* all that is the default */
        m->grid_rows = m->grid_cols = 0;
        m->block_rows = m->block_cols = m->part_rows = m->part_cols = m->ld = 0;
    }
    return x;
}

/* The layout spelt out again, to walk by it. */
static void spell(matrix *x) {
    tessera_matrix *m = &x->m;
    if (m->grid_rows) return;
    m->grid_rows = ranks;
    m->grid_cols = 1;
    m->block_rows = (m->rows + ranks - 1) / ranks;
    m->block_cols = m->cols;
    m->part_rows = m->rows;
    m->part_cols = m->cols;
}

/* Part `part` of element (i, l) of op(x), in the part that is meant. */
static double of(const matrix *x, int transposed, int64_t i, int64_t l, int part) {
    const int64_t r = x->m.part_row + (transposed ? l : i), c = x->m.part_col + (transposed ? i : l);
    return part ? imaginary(x->role, r, c) : value(x->role, r, c);
}

/* `c0` NULL: it is what C held. */
static void check_product(const matrix *a, const matrix *b, const matrix *c0, matrix *c,
                          const tessera_multiply_options *o, int64_t k) {
    const char *type = c->m.type;
    const int complex = reals_of(type) == 2;
    EACH(c, i, j, r, col) {
        const int64_t m = r - c->m.part_row, n = col - c->m.part_col;
        const double old[2] = {value(c->role, r, col), complex ? imaginary(c->role, r, col) : 0};
        double sum[2] = {0, 0};
        const int meant = m >= 0 && m < c->m.part_rows && n >= 0 && n < c->m.part_cols;
        for (int64_t l = 0; l < k && meant; l++) {
            const double x[2] = {of(a, o->transpose_a, m, l, 0), complex ? of(a, o->transpose_a, m, l, 1) : 0};
            const double y[2] = {of(b, o->transpose_b, l, n, 0), complex ? of(b, o->transpose_b, l, n, 1) : 0};
            sum[0] += x[0] * y[0] - x[1] * y[1];
            sum[1] += x[0] * y[1] + x[1] * y[0];
        }
        for (int part = 0; part < 1 + complex; part++) {
            const double beta = o->has_beta ? o->beta[0] : 0, found = get(type, at(c, i, j), part);
            const double added = c0 && meant ? of(c0, 0, m, n, part) : old[part];
            const double right = meant ? o->alpha[0] * sum[part] + beta * added : old[part];
            CHECK(found == right, "%s (%lld, %lld), part %d: %g for %g", type, (long long)r, (long long)col, part,
                  found, right);
        }
    }
}

/* Of a complex product the real part, in a C of reals. */
static void check_real_part(void) {
    const double a[] = {1, 2, 3, -1}, b[] = {2, 1, -1, 4}; /* 1 x 2 and 2 x 1 */
    double c = 0;
    const tessera_matrix left = {.size = sizeof left,
                                 .type = "c128",
                                 .data = (void *)a,
                                 .rows = 1,
                                 .cols = 2,
                                 .block_rows = 1,
                                 .grid_rows = 1,
                                 .grid_cols = 1};
    tessera_matrix right = left;
    tessera_multiply_options o = tessera_multiply_defaults();
    right.data = (void *)b;
    right.rows = 2;
    right.cols = 1;
    right.block_rows = 2;
    tessera_matrix into = right;
    into.type = "f64";
    into.data = &c;
    into.rows = 1;
    CHECK(tessera_multiply_matrices(tessera, &left, &right, &into, &o, NULL) == TESSERA_ERR_USAGE, "c128 into f64");
    o.real_part = 1;
    CHECK(tessera_multiply_matrices(tessera, &left, &right, &into, &o, NULL) == TESSERA_OK, "%s", tessera_message());
    CHECK(c == (rank == 0 ? 1 : 0), "%g", c); /* (1 + 2i)(2 + i) + (3 - i)(-1 + 4i) = 1 + 18i */
}

static void check_round(void) {
    static const char *const types[] = {"f32", "f64", "c64", "c128"};
    const char *type = types[below(4)];
    const int64_t m = 1 + below(40);
    const int64_t n = 1 + below(40);
    const int64_t k = 1 + below(40);
    const int by_columns = below(2);
    tessera_multiply_options o = tessera_multiply_defaults();
    o.order = by_columns ? "col" : NULL;
    o.transpose_a = below(2);
    o.transpose_b = below(2);
    o.alpha[0] = 1 + below(3);
    o.has_beta = below(2);
    o.beta[0] = below(4) - 1;
    o.device = "cpu";
    o.trials = below(2) ? 5 : 0;
    matrix a = make(1, type, o.transpose_a ? k : m, o.transpose_a ? m : k, by_columns);
    matrix b = make(2, type, o.transpose_b ? n : k, o.transpose_b ? k : n, by_columns);
    matrix c = make(3, type, m, n, by_columns);
    matrix c0 = make(4, type, m, n, by_columns);
    const int beside = o.has_beta && below(2);
    o.add_matrix = beside ? &c0.m : NULL;
    tessera_record *record;
    const int status = tessera_multiply_matrices(tessera, &a.m, &b.m, &c.m, &o, &record);
    CHECK(status == TESSERA_OK, "%s", tessera_message());
    double seconds = -1;
    CHECK(tessera_record_number(record, "seconds", &seconds) == TESSERA_OK && seconds > 0, "%g", seconds);
    CHECK(!strstr(tessera_record_json(record), "\"check\": \"PASSED") == (o.trials == 0), "%s",
          tessera_record_json(record));
    tessera_record_free(record);
    spell(&a);
    spell(&b);
    spell(&c);
    spell(&c0);
    check_product(&a, &b, beside ? &c0 : NULL, &c, &o, k);
    EACH(&c0, i, j, r, col) CHECK(get(type, at(&c0, i, j), 0) == value(4, r, col), "C0 has changed");
    free(a.m.data);
    free(b.m.data);
    free(c.m.data);
    free(c0.m.data);
}

/* All in one window that every rank reaches: nothing is moved. */
static void check_shared(void) {
    enum { SIDE = 48 };
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    double *all, moved = -1;
    tessera_record *record;
    MPI_Win_allocate_shared(rank == 0 ? 3 * SIDE * SIDE * 8 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &all);
    for (int i = rank; i < 2 * SIDE * SIDE; i += ranks) all[i] = i % 5 - 2;
    MPI_Barrier(MPI_COMM_WORLD);
    tessera_matrix x[3];
    for (int i = 0; i < 3; i++)
        x[i] = (tessera_matrix){
            .size = sizeof x[i], .type = "f64", .data = all + i * SIDE * SIDE, .rows = SIDE, .cols = SIDE, .shared = 1};
    tessera_multiply_options o = tessera_multiply_defaults();
    o.report = "/dev/null";
    CHECK(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], &o, &record) == TESSERA_OK, "%s", tessera_message());
    CHECK(tessera_record_number(record, "redistribute_bytes", &moved) == TESSERA_ERR_NOT_FOUND, "%g B", moved);
    tessera_record_free(record);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int l = 0; l < SIDE; l++) sum += all[i * SIDE + l] * all[SIDE * SIDE + l * SIDE + j];
            CHECK(all[2 * SIDE * SIDE + i * SIDE + j] == sum, "(%d, %d)", i, j);
        }
    MPI_Win_free(&window);
}

/* ---- cancelled while the product is checked -------------------------------------------------- */

static int cancel_check(void *seen, const tessera_progress *at) {
    if (strcmp(at->stage, "check") != 0 && strcmp(at->stage, "verify") != 0) return 0;
    *(int *)seen = 1;
    return rank == ranks - 1;
}

/* A check of seconds, whose product is nothing. */
static void check_cancel(void) {
    enum { SIDE = 5000, DEPTH = 2 };
    const int64_t rows = (SIDE + ranks - 1) / ranks;
    int seen = 0;
    float *a = calloc((size_t)(rows * DEPTH), sizeof *a);
    float *b = calloc(SIDE * DEPTH, sizeof *b);
    float *c = malloc((size_t)(rows * SIDE) * sizeof *c);
    const tessera_matrix left = {.size = sizeof left, .type = "f32", .data = a, .rows = SIDE, .cols = DEPTH};
    const tessera_matrix right = {.size = sizeof right, .type = "f32", .data = b, .rows = DEPTH, .cols = SIDE};
    const tessera_matrix into = {.size = sizeof into, .type = "f32", .data = c, .rows = SIDE, .cols = SIDE};
    tessera_multiply_options o = tessera_multiply_defaults();
    for (int64_t i = 0; i < rows * DEPTH; i++) a[i] = (float)(i % 7 + 1);
    for (int64_t i = 0; i < SIDE * DEPTH; i++) b[i] = (float)(i % 5 + 1);
    o.trials = 64;
    o.threads = 1;
    o.progress = cancel_check;
    o.progress_context = &seen;
    const int status = tessera_multiply_matrices(tessera, &left, &right, &into, &o, NULL);
    CHECK(status == TESSERA_ERR_STOPPED && seen && strstr(tessera_message(), "cancelled"), "%d, %d: %s", status, seen,
          tessera_message());
    free(a);
    free(b);
    free(c);
}

/* ---- what is moved --------------------------------------------------------------------------- */

static double in_bytes(double number, const char *unit) {
    return number * (unit[0] == 'k' ? 1e3 : unit[0] == 'M' ? 1e6 : 1);
}

/* Of the plan's lines on redistribution: bytes of all ranks, and how many operands. */
static double planned_moves(const char *plan, int *operands) {
    double all = 0;
    *operands = 0;
    for (const char *at = plan; (at = strstr(at, "redistribute ")); at++) {
        char name[8] = "", unit[2][8] = {""};
        double most = 0;
        double one = 0;
        if (sscanf(at, "redistribute %7s in exchange: %lf %2[kMB] into the busiest rank, %lf %2[kMB] of all", name,
                   &most, unit[0], &one, unit[1]) != 5)
            continue;
        CHECK(strchr("ABC", name[0]) && most > 0 && in_bytes(most, unit[0]) <= 1.01 * in_bytes(one, unit[1]), "%.60s",
              at);
        all += in_bytes(one, unit[1]);
        ++*operands;
    }
    return all;
}

/* Of the trace's events, all in the exchange lane, which is the third. */
static double traced_moves(const char *file, int *events) {
    char line[4096];
    FILE *from = fopen(file, "r");
    double all = 0;
    *events = 0;
    CHECK(from, "no trace '%s'", file);
    while (fgets(line, sizeof line, from)) {
        const char *name = strstr(line, "\"name\": \"redistribute "), *bytes = strstr(line, "\"bytes\": ");
        if (!name) continue;
        CHECK(bytes && strstr(line, "\"tid\": 2,") && strstr(line, "\"cat\": \"memory\""), "%s", line);
        all += atof(bytes + strlen("\"bytes\": "));
        ++*events;
    }
    fclose(from);
    return all;
}

/* Blocks that go round: what the plan says will be moved is moved, and record and trace have it as exchange. */
static void check_moves(void) {
    enum { SIDE = 240 };
    char grid[32], trace[64], *plan;
    tessera_matrix x[3];
    double moved = 0;
    double predicted = 0;
    double busiest = 0;
    tessera_record *record;
    tessera_multiply_options o = tessera_multiply_defaults();
    for (int i = 0; i < 3; i++) {
        x[i] = (tessera_matrix){.size = sizeof x[i],
                                .type = "f64",
                                .rows = SIDE,
                                .cols = SIDE,
                                .block_rows = 7,
                                .block_cols = SIDE,
                                .grid_rows = ranks,
                                .grid_cols = 1};
        x[i].data = calloc(SIDE * SIDE, sizeof(double));
    }
    snprintf(grid, sizeof grid, "1x%dx1", ranks);
    snprintf(trace, sizeof trace, "/tmp/tessera_test_matrices_%d.json", (int)getpid());
    MPI_Bcast(trace, sizeof trace, MPI_CHAR, 0, MPI_COMM_WORLD);
    o.grid = grid;
    o.has_beta = 1;
    o.beta[0] = 1;
    o.device = "cpu";
    CHECK(tessera_plan_matrices(tessera, &x[0], &x[1], &x[2], &o, &plan) == TESSERA_OK, "%s", tessera_message());
    CHECK((plan != NULL) == (rank == 0), "a plan elsewhere than on rank 0");
    o.trace = trace;
    CHECK(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], &o, &record) == TESSERA_OK, "%s", tessera_message());
    const int status = tessera_record_number(record, "redistribute_bytes", &moved);
    CHECK(status == (ranks > 1 ? TESSERA_OK : TESSERA_ERR_NOT_FOUND), "%g bytes were moved", moved);
    CHECK(tessera_record_number(record, "predicted_exchange_seconds", &predicted) == TESSERA_OK, "no prediction");
    CHECK(tessera_record_number(record, "expected_exchange_GBps", &busiest) == TESSERA_OK, "no rate");
    if (plan) {
        int operands, events;
        const double planned = planned_moves(plan, &operands), traced = traced_moves(trace, &events);
        CHECK(operands == (ranks > 1 ? 4 : 0) && events == operands * ranks, "%d operands, %d events", operands,
              events);
        CHECK(fabs(planned - moved) <= 0.01 * moved, "%g bytes planned, %g moved", planned, moved);
        CHECK(traced == moved, "%g bytes traced, %g moved", traced, moved);
        CHECK(predicted >= moved / ranks / busiest / 1e9, "%g s predicted for exchange", predicted);
        CHECK((strstr(plan, "redistribute   takes ") != NULL) == (ranks > 1), "%s", plan);
        remove(trace);
    }
    tessera_record_free(record);
    tessera_free(plan);
    for (int i = 0; i < 3; i++) free(x[i].data);
    CHECK(tessera_plan_matrices(tessera, &x[0], NULL, &x[2], &o, &plan) == TESSERA_ERR_USAGE && !plan &&
              strstr(tessera_message(), "B is NULL"),
          "%s", tessera_message());
    CHECK(tessera_plan_matrices(NULL, &x[0], &x[1], &x[2], &o, &plan) == TESSERA_ERR_USAGE, "no context");
}

/* ---- a call within a call -------------------------------------------------------------------- */

static int call_again(void *given, const tessera_progress *at) {
    const tessera_matrix *x = given;
    (void)at;
    CHECK_FAILS(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], NULL, NULL), TESSERA_ERR_USAGE, "under way");
    return 0;
}

/* It is refused on each rank by itself: it may not speak where the one under way speaks. */
static void check_again(void) {
    enum { SIDE = 6 };
    double data[3][SIDE * SIDE];
    tessera_matrix x[3];
    tessera_multiply_options o = tessera_multiply_defaults();
    for (int i = 0; i < 3; i++)
        x[i] = (tessera_matrix){.size = sizeof x[i], .type = "f64", .data = data[i], .rows = SIDE, .cols = SIDE};
    for (int i = 0; i < SIDE * SIDE; i++) data[0][i] = data[1][i] = 1;
    o.progress = rank == 0 ? call_again : NULL;
    o.progress_context = x;
    CHECK_OK(tessera_multiply_matrices(tessera, &x[0], &x[1], &x[2], &o, NULL));
    CHECK(data[2][0] == SIDE, "%g", data[2][0]);
}

static void check_refusals(void) {
    double data[64];
    for (int i = 0; i < 64; i++) data[i] = i;
    const tessera_matrix good = {.size = sizeof good, .type = "f64", .data = data, .rows = 4, .cols = 4};
    tessera_matrix bad = good;
    tessera_multiply_options o = tessera_multiply_defaults();
    fails(&good, NULL, &good, NULL, TESSERA_ERR_USAGE, "B is NULL");
    bad.type = NULL;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_USAGE, "A has no type");
    bad.type = "f65";
    fails(&bad, &good, &good, NULL, TESSERA_ERR_USAGE, "f65");
    bad = good;
    bad.size = 1;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_USAGE, "sizeof(tessera_matrix)");
    bad = good;
    bad.cols = 5;
    fails(&good, &bad, &good, NULL, TESSERA_ERR_SHAPE, "");
    bad = good;
    bad.rows = -1;
    fails(&good, &good, &bad, NULL, TESSERA_ERR_USAGE, "below 0");
    bad = good;
    bad.grid_rows = ranks + 1;
    bad.grid_cols = 1;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_SHAPE, "grid");
    bad = good;
    bad.part_row = 3;
    bad.part_rows = 2;
    bad.part_cols = 4;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_SHAPE, "A");
    bad = good;
    bad.data = NULL;
    fails(&good, &good, &bad, NULL, TESSERA_ERR_SHAPE, "no array");
    bad = good;
    bad.ld = 3;
    fails(&good, &bad, &good, NULL, TESSERA_ERR_SHAPE, "leading dimension");
    bad.ld = (int64_t)1 << 61;
    fails(&good, &bad, &good, NULL, TESSERA_ERR_LIMIT, "do not fit 63 bits");
    o.trials = 65;
    fails(&good, &good, &good, &o, TESSERA_ERR_USAGE, "--trials 65");
    o = tessera_multiply_defaults();
    o.add = "c0.h5";
    fails(&good, &good, &good, &o, TESSERA_ERR_NOT_FOUND, "c0.h5");
    o.add_matrix = &good;
    fails(&good, &good, &good, &o, TESSERA_ERR_USAGE, "give one of them");
    o.add = NULL;
    bad = good;
    bad.rows = 5;
    o.add_matrix = &bad;
    fails(&good, &good, &good, &o, TESSERA_ERR_SHAPE, "C0");
    bad.size = 2;
    fails(&good, &good, &good, &o, TESSERA_ERR_USAGE, "sizeof(tessera_matrix)");
    o.add_matrix = &good;
    o.gram = 1;
    fails(&good, NULL, &good, &o, TESSERA_ERR_USAGE, "C is symmetric, and C0 may not be");
}

int main(int argc, char **argv) {
    begin_calls(&argc, &argv, 15);
    for (int i = 0; i < 60; i++) check_round();
    check_shared();
    check_moves();
    check_real_part();
    check_cancel();
    check_again();
    check_refusals();
    end_calls();
    return 0;
}
