/* tessera_multiply_matrices with stacks, Gram matrices, elements of files' types, and names of files, by a program that
 * knows no more than tessera.h. Small integers, whose products are exact. On any number of ranks. */
#include "tests/app/library/calls.h"

#include <stdlib.h>

#ifndef TSR_TEST_DEVICE
#define TSR_TEST_DEVICE "cpu"
#endif

enum { MOST = 4096 };

static int value(int64_t i) { return (int)((i * 31 + i / 7) % 9) - 4; }

static int64_t count_of(int dimensions, const int64_t *stack) {
    int64_t count = 1;
    for (int d = 0; d < dimensions; d++) count *= stack[d];
    return count;
}

/* All of a stack on rank 0, or as many whole matrices on each rank. `data` has all of its elements. */
static tessera_matrix make(double *data, int64_t rows, int64_t cols, int dimensions, const int64_t *stack, int whole,
                           int by_columns) {
    const int64_t all = count_of(dimensions, stack), each = (all + ranks - 1) / ranks;
    tessera_matrix m = {.size = sizeof m,
                        .type = "f64",
                        .data = data,
                        .rows = rows,
                        .cols = cols,
                        .stack_dimensions = dimensions,
                        .stack = stack};
    if (whole) {
        m.grid_rows = m.grid_cols = 1;
        m.data = rank == 0 ? data : NULL;
    } else if (dimensions > 0) m.data = data + each * rank * rows * cols;
    else if (by_columns) { /* blocks of columns: the array goes on from rank to rank */ m.grid_rows = 1;
        m.grid_cols = ranks;
        m.data = data + (cols + ranks - 1) / ranks * rank * rows;
    } else m.data = data + (rows + ranks - 1) / ranks * rank * cols;
    return m;
}

static double at(const double *data, int64_t matrix, int64_t rows, int64_t cols, int by_columns, int64_t i, int64_t j) {
    return data[matrix * rows * cols + (by_columns ? j * rows + i : i * cols + j)];
}

/* Which matrix of an operand a product takes, of C's stack of 2 dimensions. */
static int64_t taken(int64_t product, const int64_t c[2], int dimensions, const int64_t *stack) {
    const int64_t index[2] = {product / c[1], product % c[1]};
    int64_t matrix = 0;
    for (int d = 0; d < dimensions; d++) {
        const int64_t own = index[2 - dimensions + d];
        matrix = matrix * stack[d] + (stack[d] == 1 ? 0 : own);
    }
    return matrix;
}

/* Stacks of A and B that go together, in either order, shared out in any way, with C0 and the check. */
static void check_round(void) {
    static const int64_t sizes[][2][2] = {{{3, 4}, {3, 4}}, {{1, 4}, {3, 1}}, {{3, 1}, {1, 4}},
                                          {{3, 4}, {1, 1}}, {{1, 1}, {3, 4}}, {{1, 5}, {1, 5}}};
    double a[MOST], b[MOST], c[MOST], found[MOST];
    const int which = below(6), by_columns = below(2);
    const int ta = below(2), tb = below(2);
    const int add = below(2);
    const int64_t m = 1 + below(9), n = 1 + below(9);
    const int64_t k = 1 + below(9);
    const int64_t *of_a = sizes[which][0], *of_b = sizes[which][1];
    const int drop_a = of_a[0] == 1 ? below(of_a[1] == 1 ? 3 : 2) : 0,
              drop_b = of_b[0] == 1 && drop_a == 0 ? below(2) : 0;
    const int64_t of_c[2] = {of_a[0] == 1 ? of_b[0] : of_a[0], of_a[1] == 1 ? of_b[1] : of_a[1]};
    tessera_multiply_options o = tessera_multiply_defaults();
    o.order = by_columns ? "col" : NULL;
    o.transpose_a = ta;
    o.transpose_b = tb;
    o.has_beta = add;
    o.beta[0] = 3;
    o.device = TSR_TEST_DEVICE;
    o.trials = below(2) ? 4 : 0;
    for (int i = 0; i < MOST; i++) {
        a[i] = value(i);
        b[i] = value(i + 3);
        c[i] = value(i + 5);
    }
    const tessera_matrix left = make(a, ta ? k : m, ta ? m : k, 2 - drop_a, of_a + drop_a, below(2), by_columns);
    const tessera_matrix right = make(b, tb ? n : k, tb ? k : n, 2 - drop_b, of_b + drop_b, below(2), by_columns);
    const tessera_matrix into = make(c, m, n, 2, of_c, 0, by_columns);
    const int status = tessera_multiply_matrices(tessera, &left, &right, &into, &o, NULL);
    const int64_t products = of_c[0] * of_c[1], each = (products + ranks - 1) / ranks;
    memset(found, 0, sizeof found);
    CHECK(status == TESSERA_OK, "%s", tessera_message());
    for (int64_t i = each * rank * m * n; i < each * (rank + 1) * m * n && i < products * m * n; i++) found[i] = c[i];
    MPI_Allreduce(MPI_IN_PLACE, found, MOST, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int64_t p = 0; p < products; p++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t of = p * m * n + (by_columns ? j * m + i : i * n + j);
                const int64_t x = taken(p, of_c, 2 - drop_a, of_a + drop_a);
                const int64_t y = taken(p, of_c, 2 - drop_b, of_b + drop_b);
                double sum = add ? 3 * value(of + 5) : 0;
                for (int64_t l = 0; l < k; l++)
                    sum += at(a, x, ta ? k : m, ta ? m : k, by_columns, ta ? l : i, ta ? i : l) *
                           at(b, y, tb ? n : k, tb ? k : n, by_columns, tb ? j : l, tb ? l : j);
                CHECK(found[of] == sum, "%d: product %lld (%lld, %lld): %g for %g", which, (long long)p, (long long)i,
                      (long long)j, found[of], sum);
            }
}

/* Integers and the other byte order. */
static void check_types(void) {
    const signed char a[4] = {1, -2, 3, 100};
    const unsigned char b[16] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff}; /* 1 2; 256 -1 */
    double c[4] = {0};
    const tessera_matrix left = {
        .size = sizeof left, .type = "i8", .data = (void *)a, .rows = 2, .cols = 2, .grid_rows = 1, .grid_cols = 1};
    tessera_matrix right = left, into = left;
    right.type = ">i32";
    right.data = (void *)b;
    into.type = "f64";
    into.data = c;
    CHECK(tessera_multiply_matrices(tessera, &left, &right, &into, NULL, NULL) == TESSERA_OK, "%s", tessera_message());
    const double wanted[4] = {-511, 4, 25603, -94};
    for (int i = 0; i < 4 && rank == 0; i++) CHECK(c[i] == wanted[i], "%d: %g for %g", i, c[i], wanted[i]);
}

static void check_gram(void) {
    enum { SIDE = 40, DEPTH = 9 };
    double a[SIDE * DEPTH], c[SIDE * SIDE], gram = 0;
    tessera_record *record;
    tessera_multiply_options o = tessera_multiply_defaults();
    for (int i = 0; i < SIDE * DEPTH; i++) a[i] = value(i);
    for (int i = 0; i < SIDE * SIDE; i++) c[i] = 1e300;
    const tessera_matrix x = make(a, SIDE, DEPTH, 0, NULL, 1, 0), into = make(c, SIDE, SIDE, 0, NULL, 1, 0);
    o.gram = 1;
    o.triangle = "lower";
    o.trials = 5;
    CHECK(tessera_multiply_matrices(tessera, &x, NULL, &into, &o, &record) == TESSERA_OK, "%s", tessera_message());
    CHECK(tessera_record_number(record, "gram", &gram) == TESSERA_OK && gram == 1, "%g", gram);
    tessera_record_free(record);
    for (int i = 0; i < SIDE && rank == 0; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int l = 0; l < DEPTH && j <= i; l++) sum += a[i * DEPTH + l] * a[j * DEPTH + l];
            CHECK(c[i * SIDE + j] == sum, "(%d, %d): %g for %g", i, j, c[i * SIDE + j], sum);
        }
}

/* What C will be, before there is an array for it: of any two stacks, of vectors, and with options. */
static void check_described(const tessera_matrix *a, const tessera_matrix *b, const tessera_multiply_options *o,
                            const char *type, int64_t rows, int64_t cols, int stack, int dimensions) {
    tessera_matrix c = {.size = sizeof c};
    int found = -1;
    CHECK_OK(tessera_describe_product(tessera, a, b, o, &c, &found));
    CHECK(strcmp(c.type, type) == 0, "%s for %s", c.type, type);
    CHECK(c.rows == rows && c.cols == cols, "%lld x %lld", (long long)c.rows, (long long)c.cols);
    CHECK(c.stack_dimensions == stack && found == dimensions, "%d, %d", c.stack_dimensions, found);
    for (int d = 0; d < stack; d++)
        CHECK(c.stack[d] == (d == 0 ? 3 : 4), "%d: %lld matrices", d, (long long)c.stack[d]);
}

static void check_descriptions(void) {
    static const int64_t some[2] = {3, 1}, others[2] = {1, 4};
    static const int64_t four[1] = {4};
    double data[MOST] = {0};
    const tessera_matrix left = make(data, 5, 2, 2, some, 1, 0);
    tessera_matrix right = make(data, 2, 6, 2, others, 1, 0);
    tessera_matrix vector = make(data, 2, 1, 0, NULL, 1, 0);
    tessera_matrix c = {.size = sizeof c.size};
    tessera_multiply_options o = tessera_multiply_defaults();
    check_described(&left, &right, NULL, "f64", 5, 6, 2, 4);
    right.stack_dimensions = 1;
    right.stack = four;
    check_described(&left, &right, &o, "f64", 5, 6, 2, 4);
    o.type = "c64";
    check_described(&left, &right, &o, "c64", 5, 6, 2, 4);
    o = tessera_multiply_defaults();
    o.order = "col";
    check_described(&left, &right, &o, "f64", 5, 6, 2, 4);
    o.alpha[1] = 1;
    check_described(&left, &right, &o, "c128", 5, 6, 2, 4);
    o = tessera_multiply_defaults();
    tessera_matrix one = make(data, 5, 2, 0, NULL, 1, 0);
    check_described(&one, &vector, &o, "f64", 5, 1, 0, 2);
    vector.vector = 1;
    check_described(&one, &vector, &o, "f64", 5, 1, 0, 1);
    check_described(&vector, &vector, &o, "f64", 1, 1, 0, 0);
    o.gram = 1;
    check_described(&one, NULL, &o, "f64", 5, 5, 0, 2);
    o = tessera_multiply_defaults();
    CHECK_FAILS(tessera_describe_product(tessera, &one, &one, &o, &c, NULL), TESSERA_ERR_SHAPE, "5 x 2");
    CHECK_FAILS(tessera_describe_product(tessera, &one, &vector, &o, NULL, NULL), TESSERA_ERR_USAGE, "C is NULL");
    CHECK_FAILS(tessera_describe_product(tessera, NULL, &vector, &o, &c, NULL), TESSERA_ERR_USAGE, "A is NULL");
    one.vector = 1;
    CHECK_FAILS(tessera_describe_product(tessera, &one, &vector, &o, &c, NULL), TESSERA_ERR_USAGE, "A is no vector");
    CHECK_OK(tessera_describe_product(tessera, &left, &right, &o, &c, NULL)); /* a struct that ends behind its size */
    CHECK(c.size == sizeof c.size && !c.type && c.rows == 0, "%lld rows where there is no place", (long long)c.rows);
}

static void check_refusals(void) {
    static const int64_t two[2] = {2, 2}, three[2] = {3, 2};
    static const int64_t less[2] = {-1, 2}, many[2] = {INT64_MAX, 4};
    double data[256] = {0};
    const tessera_matrix good = {
        .size = sizeof good, .type = "f64", .data = data, .rows = 4, .cols = 4, .stack_dimensions = 2, .stack = two};
    const tessera_matrix named = {.size = sizeof named, .name = "absent.h5"};
    tessera_matrix bad = good;
    tessera_multiply_options o = tessera_multiply_defaults();
    bad.stack = NULL;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_USAGE, "A is a stack, and there are no sizes");
    bad.stack = less;
    fails(&good, &bad, &good, NULL, TESSERA_ERR_SHAPE, "B is a stack of -1 matrices");
    bad.stack = many;
    fails(&good, &bad, &good, NULL, TESSERA_ERR_USAGE, "more rows than 63 bits count");
    bad.stack = three;
    fails(&good, &bad, &good, NULL, TESSERA_ERR_SHAPE, "do not go together");
    fails(&good, &good, &bad, NULL, TESSERA_ERR_SHAPE, "must have the product's shape");
    bad = good;
    bad.stack_dimensions = 31;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_USAGE, "a stack along 31 dimensions");
    bad = good;
    bad.part_row = 2;
    fails(&bad, &good, &good, NULL, TESSERA_ERR_SHAPE, "a part of it cannot be meant");
    bad = good;
    bad.type = ">f64";
    fails(&good, &good, &bad, NULL, TESSERA_ERR_USAGE, "this machine's byte order");
    bad.type = "i32";
    fails(&good, &good, &bad, NULL, TESSERA_ERR_USAGE, "--type i32");
    fails(NULL, &good, &good, NULL, TESSERA_ERR_USAGE, "A is NULL");
    fails(&named, &good, &good, NULL, TESSERA_ERR_NOT_FOUND, "absent.h5");
    o.gram = 1;
    fails(&good, &good, &good, &o, TESSERA_ERR_USAGE, "'B' is one matrix too many");
    o = tessera_multiply_defaults();
    o.resume = 1;
    fails(&good, &good, &named, &o, TESSERA_ERR_USAGE, "resume is an option of products of files");
    o = tessera_multiply_defaults();
    o.attributes = 1;
    fails(&good, &good, &named, &o, TESSERA_ERR_USAGE, "attributes is an option of products whose A is in a file");
    o = tessera_multiply_defaults();
    o.external = "";
    fails(&good, &good, &good, &o, TESSERA_ERR_USAGE, "external is an option of products of files");
    o = tessera_multiply_defaults();
    o.has_beta = 1;
    o.beta[0] = 1;
    fails(&good, &good, &named, &o, TESSERA_ERR_USAGE, "--beta scales C0");
}

int main(int argc, char **argv) {
    begin_calls(&argc, &argv, 5);
    for (int i = 0; i < 60; i++) check_round();
    check_types();
    check_gram();
    check_descriptions();
    check_refusals();
    end_calls();
    return 0;
}
