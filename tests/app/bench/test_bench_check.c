/* The check of `tessera bench multiply`: right products pass, one wrong element on the lattice is found and named,
 * errors beyond the bound count, and NaN never passes. And the operands refuse ranks that share no memory. */
#include <math.h>

#include "app/bench/bench_check.h"
#include "app/bench/bench_operands.h"
#include "tests/check.h"

enum { M = 40, N = 30, K = 77, ROW = 5, COL = 3 }; /* the part of C: M × N from (ROW, COL) on */

typedef struct {
    double c[M][N];
    tsr_dtype type;
    bool failing;
} product;

static tsr_status fetch(void *context, tsr_rect row, void *to) {
    const product *p = context;
    if (p->failing) return tsr_fail(TSR_ERR_DEVICE, "planted");
    CHECK(row.row >= ROW && row.row < ROW + M && row.col == COL && row.rows == 1 && row.cols == N, "row %lld",
          (long long)row.row);
    for (int j = 0; j < N; j++) {
        if (p->type == TSR_F64) ((double *)to)[j] = p->c[row.row - ROW][j];
        else ((float *)to)[j] = (float)p->c[row.row - ROW][j];
    }
    return TSR_OK;
}

static double held(tsr_dtype input, tsr_fill_kind fill, uint64_t seed, int64_t i, int64_t j) {
    double bytes = 0;
    CHECK_OK(tsr_fill_host(fill, seed, i, j, (tsr_view){&bytes, {input, false}, 1, 1, 1}));
    return tsr_element_to_double((tsr_element){input, false}, &bytes);
}

static void multiply(const tsr_bench_expected *e, product *p) {
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            p->c[i][j] = 0;
            for (int l = 0; l < K; l++)
                p->c[i][j] +=
                    held(e->input, e->fill, e->seed_a, ROW + i, l) * held(e->input, e->fill, e->seed_b, l, COL + j);
        }
    p->type = e->type;
}

static tsr_bench_verdict verdict_of(const tsr_bench_expected *e, product *p, int64_t side) {
    tsr_bench_verdict v = {0};
    CHECK_OK(tsr_bench_check_part(e, (tsr_rect){ROW, COL, M, N}, side, fetch, p, &v));
    return v;
}

static void check_type(tsr_dtype input, tsr_dtype type) {
    tsr_bench_expected e = {TSR_FILL_INTEGER, 4, 9, input, type, K, 0, false, false};
    static product p;
    multiply(&e, &p);
    tsr_bench_verdict v = verdict_of(&e, &p, TSR_BENCH_LATTICE);
    CHECK(v.elements == TSR_BENCH_LATTICE * TSR_BENCH_LATTICE && v.wrong == 0 && v.worst == 0, "%lld wrong",
          (long long)v.wrong);
    const struct {
        int row, col;
        double by;
    } errors[] = {{0, 0, 1}, {M - 1, N - 1, -1}, {0, N - 1, NAN}, {M - 1, 0, INFINITY}};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        double *at = &p.c[errors[i].row][errors[i].col], right = *at;
        *at += errors[i].by;
        v = verdict_of(&e, &p, 2);
        CHECK(v.elements == 4 && v.wrong == 1 && v.row == ROW + errors[i].row && v.col == COL + errors[i].col,
              "error %zu: %lld wrong, at %lld, %lld", i, (long long)v.wrong, (long long)v.row, (long long)v.col);
        CHECK(v.wanted == right && !(v.worst == 0), "error %zu: %g wanted", i, v.wanted);
        *at = right;
    }
}

static void check_bound(void) {
    tsr_bench_expected e = {TSR_FILL_UNIFORM, 4, 9, TSR_F64, TSR_F64, K, 1e-10, false, false};
    static product p;
    multiply(&e, &p);
    CHECK(verdict_of(&e, &p, TSR_BENCH_LATTICE).wrong == 0, "sums in order");
    p.c[M - 1][0] *= 1 + 2e-10; /* uniform in [0, 1): |A||B| is C itself */
    tsr_bench_verdict v = verdict_of(&e, &p, TSR_BENCH_LATTICE);
    CHECK(v.wrong == 1 && v.worst > 1.9e-10 && v.worst < 2.1e-10, "%lld wrong, worst %g", (long long)v.wrong, v.worst);
    e.bound = 1e-9;
    CHECK(verdict_of(&e, &p, TSR_BENCH_LATTICE).wrong == 0, "within the bound");
    e.seed_b = 10;
    CHECK(verdict_of(&e, &p, 3).wrong == 9, "another B");
    p.failing = true;
    CHECK_FAILS(tsr_bench_check_part(&e, (tsr_rect){ROW, COL, M, N}, 2, fetch, &p, &v), TSR_ERR_DEVICE, "planted");
}

int main(void) {
    check_type(TSR_F32, TSR_F32);
    check_type(TSR_F64, TSR_F64);
    check_type(TSR_BF16, TSR_F32);
    check_bound();
    tsr_bench_verdict none = {0};
    const tsr_bench_expected e = {TSR_FILL_UNIFORM, 1, 2, TSR_F32, TSR_F32, 0, 0, false, false};
    CHECK_OK(tsr_bench_check_part(&e, (tsr_rect){0, 0, 0, 5}, 2, fetch, NULL, &none));
    CHECK(none.elements == 0, "nothing to look at");
    const tsr_world two_nodes = {.ranks = 2, .local_ranks = 1};
    tsr_bench_operands operands = {.m = 2, .n = 2, .k = 2, .input = TSR_F32, .type = TSR_F32, .memory = true};
    CHECK_FAILS(tsr_bench_operands_open(&two_nodes, &operands), TSR_ERR_UNSUPPORTED, "several nodes");
    tsr_bench_operands_close(&operands);
    return 0;
}
