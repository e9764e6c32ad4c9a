/* Plans whose launches are cut at blocks of C and ranges of k (tsr_problem_fix_blocks): thousands at random, each step
 * of all ranks looked at. Every launch begins and ends at a block, or at the end of C and k. The parts of k come in
 * their order, from 0 on, all of it on one rank, and every element of C gets all of it. */
#include <math.h>

#include "mpi/schedule/done.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"

extern const tsr_schedule_ops tsr_schedule_summa;

static uint64_t state = 3;
static int64_t pick(int64_t low, int64_t high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

/* ---- looking at steps ------------------------------------------------------------------------ */

typedef struct {
    const tsr_plan *plan;
    int64_t *begun;  /* m × n: k that a launch at this first element has */
    int64_t *summed; /* m × n: k that this element has */
    int64_t launches;
} walk;

static bool at_block(int64_t at, int64_t block, int64_t end) { return at % block == 0 || at == end; }

static tsr_status see(void *context, const tsr_step *step) {
    walk *w = context;
    const tsr_problem *x = &w->plan->problem;
    const tsr_rect c = step->rect;
    if (step->kind != TSR_STEP_MULTIPLY) return TSR_OK;
    const int64_t k = step->k / tsr_problem_reals(x).k;
    int64_t *begun = &w->begun[c.row * x->n + c.col];
    const int64_t from = step->accumulate ? *begun : 0;
    CHECK(step->accumulate == (*begun > 0), "the launch at (%lld, %lld) has %lld of k and %s", (long long)c.row,
          (long long)c.col, (long long)*begun, step->accumulate ? "adds" : "begins again");
    *begun = from + k;
    CHECK(from % x->blocks.k == 0 && at_block(from + k, x->blocks.k, x->k),
          "k from %lld to %lld of %lld, ranges of %lld", (long long)from, (long long)(from + k), (long long)x->k,
          (long long)x->blocks.k);
    CHECK(c.col % x->blocks.n == 0 && at_block(c.col + c.cols, x->blocks.n, x->n),
          "columns %lld to %lld of %lld, blocks of %lld", (long long)c.col, (long long)(c.col + c.cols),
          (long long)x->n, (long long)x->blocks.n);
    if (x->batch < 2)
        CHECK(c.row % x->blocks.m == 0 && at_block(c.row + c.rows, x->blocks.m, x->m),
              "rows %lld to %lld of %lld, blocks of %lld", (long long)c.row, (long long)(c.row + c.rows),
              (long long)x->m, (long long)x->blocks.m);
    else
        CHECK(c.row % tsr_problem_product_rows(x) == 0 && step->m == tsr_problem_product_rows(x),
              "rows from %lld on: no whole products", (long long)c.row);
    for (int64_t i = c.row; i < c.row + c.rows; i++)
        for (int64_t j = c.col; j < c.col + c.cols; j++) w->summed[i * x->n + j] += k;
    w->launches++;
    return TSR_OK;
}

/* Returns how many launches all ranks make. */
static int64_t look_at(const tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    const int64_t elements = x->m * x->n;
    walk w = {.plan = plan};
    w.begun = calloc((size_t)elements + 1, sizeof *w.begun);
    w.summed = calloc((size_t)elements + 1, sizeof *w.summed);
    CHECK(plan->r == 1, "k is shared by %d ranks", plan->r);
    for (int rank = 0; rank < plan->p * plan->q; rank++) CHECK_OK(plan->schedule->emit(plan, rank, see, &w));
    for (int64_t i = 0; i < elements; i++) {
        const bool above = x->gram && i % x->n > i / x->n;
        CHECK(w.summed[i] == x->k || (above && w.summed[i] == 0), "element %lld has %lld of k = %lld", (long long)i,
              (long long)w.summed[i], (long long)x->k);
    }
    free(w.begun);
    free(w.summed);
    return w.launches;
}

/* ---- plans at random ------------------------------------------------------------------------- */

typedef enum { PLAIN, GRAM, STACK } kind_of_problem;

static tsr_operand some_operand(int64_t rows, int64_t cols) {
    static const tsr_dtype types[] = {TSR_F32, TSR_F64, TSR_F16, TSR_BF16, TSR_I16, TSR_C64, TSR_C128};
    const bool transpose = pick(0, 1);
    return (tsr_operand){.rows = transpose ? cols : rows,
                         .cols = transpose ? rows : cols,
                         .element = {types[pick(0, 6)], pick(0, 3) == 0},
                         .transpose = transpose,
                         .path = pick(0, 1) ? TSR_DATA_PATH_HOST : (tsr_data_path)pick(0, 2)};
}

static tsr_problem some_problem(kind_of_problem kind) {
    const int64_t m = pick(1, 70), k = pick(1, 90);
    const int64_t n = kind == GRAM ? m : pick(1, 70);
    tsr_operand a = some_operand(m, k), b = some_operand(k, n);
    tsr_problem x;
    if (kind != PLAIN) a.element.dtype = b.element.dtype = pick(0, 1) ? TSR_F64 : TSR_F16;
    if (kind == GRAM) {
        b = a;
        b.transpose = !a.transpose;
    }
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &x));
    if (pick(0, 2) == 0 && kind != STACK) { /* chunks of C, which may be larger than it */
        x.unit_m = pick(1, 80);
        x.unit_n = pick(1, 30);
    }
    if (kind == GRAM) CHECK_OK(tsr_problem_take_gram(&x, (tsr_triangle)pick(0, 2)));
    const int64_t chunk_m = tsr_min(x.unit_m, m), chunk_n = tsr_min(x.unit_n, n);
    tsr_problem_fix_blocks(&x, 2 * pick(1, 10), 2 * pick(1, 16));
    CHECK((x.unit_m == m || (x.unit_m % x.blocks.m == 0 && x.unit_m % chunk_m == 0)) &&
              (x.unit_n == n || (x.unit_n % x.blocks.n == 0 && x.unit_n % chunk_n == 0)),
          "units %lld x %lld of chunks %lld x %lld", (long long)x.unit_m, (long long)x.unit_n, (long long)chunk_m,
          (long long)chunk_n);
    if (kind == STACK) tsr_problem_stack(&x, pick(2, 20));
    return x;
}

static tsr_resources some_resources(const tsr_problem *x) {
    tsr_resources res = {.ranks = (int)pick(1, 24),
                         .host_memory = pick(0, 1),
                         .device_limit = (size_t)1 << pick(12, 24),
                         .host_limit = (size_t)1 << pick(12, 24),
                         .panel = x->batch > 1 || pick(0, 1) ? 0 : x->blocks.k * pick(1, 4),
                         .multiple = 1,
                         .edge = pick(0, 16),
                         .schedule = &tsr_schedule_summa};
    res.device_exchange = !res.host_memory && pick(0, 1);
    res.rates = tsr_rates_typical(!res.host_memory, res.device_exchange, TSR_F32, 1);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) res.rates.lane[lane] *= pow(10, -(double)pick(4, 8));
    if (pick(0, 1) && x->batch < 2) {
        res.grid[0] = (int)pick(1, res.ranks);
        res.grid[1] = (int)pick(1, res.ranks / res.grid[0]);
        res.grid[2] = 1;
    }
    return res;
}

static void test_launches(kind_of_problem kind, int plans) {
    int made = 0;
    int refused = 0;
    int shared = 0;
    int panels = 0;
    int64_t launches = 0;
    for (int i = 0; i < plans; i++) {
        const tsr_problem x = some_problem(kind);
        tsr_resources res = some_resources(&x);
        tsr_plan plan, parts;
        const tsr_status status = tsr_plan_make(&x, &res, &plan);
        if (status == TSR_ERR_LIMIT) {
            CHECK(strstr(tsr_message(), res.panel > x.blocks.k ? "or --panel" : "--reproducible takes"),
                  "message was: %s", tsr_message());
            refused++;
            continue;
        }
        CHECK(status == TSR_OK, "%s", tsr_message());
        launches += look_at(&plan);
        made++;
        shared += plan.p * plan.q > 1;
        panels += plan.panel < x.k;
        res.parts = true; /* of a run that goes on later, and cut again as that was */
        if (x.batch > 1 || tsr_plan_make(&x, &res, &parts) != TSR_OK) continue;
        look_at(&parts);
        res.cut_m = parts.block_m;
        res.cut_n = parts.block_n;
        res.ranks = (int)pick(res.grid[0] > 0 ? res.ranks : 1, 24);
        if (tsr_plan_make(&x, &res, &plan) == TSR_OK) look_at(&plan);
    }
    CHECK(made > plans / 2 && refused > plans / 100 && shared > plans / 10 && launches > 2 * made,
          "%d plans made, %d refused, %d of several ranks, %lld launches: the cases no longer cover it", made, refused,
          shared, (long long)launches);
    CHECK(kind == STACK || panels > plans / 10, "%d plans cut k", panels);
}

/* ---- what is refused, and what is found ------------------------------------------------------ */

static tsr_problem square(int64_t edge) {
    const tsr_operand a = {.rows = edge, .cols = edge, .element = {TSR_F64, false}};
    tsr_problem x;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &x));
    tsr_problem_fix_blocks(&x, 128, 16384);
    return x;
}

static void test_refusals(void) {
    const tsr_problem x = square(40000);
    tsr_resources res = {.ranks = 4,
                         .host_memory = true,
                         .device_limit = (size_t)8 << 30,
                         .host_limit = (size_t)8 << 30,
                         .multiple = 1,
                         .grid = {2, 1, 2}};
    tsr_plan plan;
    res.rates = tsr_rates_typical(false, false, TSR_F64, 1);
    CHECK_FAILS(tsr_plan_make(&x, &res, &plan), TSR_ERR_USAGE, "use --grid 2x1x1");
    res.grid[2] = 1;
    res.panel = 16385;
    CHECK_FAILS(tsr_plan_make(&x, &res, &plan), TSR_ERR_USAGE, "use --panel 32768");
    res.panel = 40000;
    CHECK_OK(tsr_plan_make(&x, &res, &plan));
    res.device_limit = 1 << 20;
    CHECK_FAILS(tsr_plan_make(&x, &res, &plan), TSR_ERR_LIMIT, "or --panel 16384");
    res.device_limit = (size_t)8 << 30;
    res.panel = 0;
    /* need, have, and the setting that fits */
    res.device_limit = 1 << 20;
    CHECK_FAILS(tsr_plan_make(&x, &res, &plan), TSR_ERR_LIMIT, "--reproducible takes 16384 of k at once");
    const char *use = strstr(tsr_message(), "use --memory ");
    CHECK(use && strstr(tsr_message(), "has 1"), "message was: %s", tsr_message());
    res.device_limit = (size_t)strtoull(use + strlen("use --memory "), NULL, 10);
    CHECK_OK(tsr_plan_make(&x, &res, &plan));
    res.device_limit--;
    CHECK_FAILS(tsr_plan_make(&x, &res, &plan), TSR_ERR_LIMIT, "--memory");
}

static tsr_status ignore(void *context, const tsr_step *step) {
    (void)context;
    (void)step;
    return TSR_OK;
}

/* A plan that was cut elsewhere is not run. */
static void test_wrong_cuts(void) {
    const tsr_problem x = square(33000);
    tsr_resources res = {.ranks = 1,
                         .host_memory = true,
                         .device_limit = (size_t)64 << 30,
                         .host_limit = (size_t)64 << 30,
                         .multiple = 1,
                         .schedule = &tsr_schedule_summa};
    tsr_plan plan;
    res.rates = tsr_rates_typical(false, false, TSR_F64, 1);
    CHECK_OK(tsr_plan_make(&x, &res, &plan));
    CHECK_OK(plan.schedule->emit(&plan, 0, ignore, NULL));
    plan.panel = 8192;
    CHECK_FAILS(plan.schedule->emit(&plan, 0, ignore, NULL), TSR_FAILURE, "within a block of C");
    CHECK_OK(tsr_plan_make(&x, &res, &plan));
    plan.block_m = 1000;
    plan.blocks_m = 33;
    CHECK_FAILS(plan.schedule->emit(&plan, 0, ignore, NULL), TSR_FAILURE, "within a block of C");
    const tsr_rect part = {128, 256, 128, 32744};
    CHECK(tsr_problem_keeps_blocks(&x, part, 16384, 33000), "an allowed part is refused");
    CHECK(!tsr_problem_keeps_blocks(&x, part, 16384, 32999), "k ends within a range");
    CHECK(!tsr_problem_keeps_blocks(&x, part, 1, 16384), "k begins within a range");
    CHECK(!tsr_problem_keeps_blocks(&x, (tsr_rect){127, 256, 128, 128}, 0, 33000), "rows begin within a block");
    CHECK(!tsr_problem_keeps_blocks(&x, (tsr_rect){128, 256, 128, 100}, 0, 33000), "columns end within a block");
}

int main(void) {
    test_launches(PLAIN, 3000);
    test_launches(GRAM, 2000);
    test_launches(STACK, 800);
    test_refusals();
    test_wrong_cuts();
    return 0;
}
