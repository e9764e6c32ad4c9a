/* Plans whose launches are cut at blocks of C and ranges of k (tsr_problem_fix_blocks): thousands at random, each step
 * of all ranks looked at. Every launch begins and ends at a block, or at the end of C and k, and every element of C
 * gets all of k. Where one rank has it, its parts come in their order, from 0 on. Where ranks split it each range stays
 * apart, and all ranks of a place hand on the same rows. */
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
    int64_t *begun;                   /* m × n: k that a launch at this first element has */
    int64_t *summed;                  /* m × n: k that this element has */
    uint64_t *ranges;                 /* m × n: a bit for each range that this element has, where they stay apart */
    int64_t launches, passes, passed; /* steps, and reals of a rank */
    int rank;
} walk;

static bool at_block(int64_t at, int64_t block, int64_t end) { return at % block == 0 || at == end; }

/* The sums of a rank that splits k, added to those that it was handed. */
static void see_pass(walk *w, const tsr_step *step) {
    const tsr_plan *plan = w->plan;
    const int64_t ranges = tsr_ceil_div(tsr_plan_ks(plan, w->rank % plan->r).count, plan->problem.blocks.k);
    const size_t real = tsr_dtype_bytes(plan->problem.type);
    CHECK(tsr_plan_chains(plan) && step->batch == ranges, "%lld of %lld ranges are added", (long long)step->batch,
          (long long)ranges);
    CHECK(step->slots[0].offset + ((size_t)((ranges - 1) * step->stride_c + step->count)) * real <=
                  plan->slots[TSR_SLOT_SUM].bytes &&
              (size_t)step->count * real <= plan->slots[TSR_SLOT_PART].bytes,
          "%lld reals of %lld ranges at %zu do not fit", (long long)step->count, (long long)ranges,
          step->slots[0].offset);
    w->passes++;
    w->passed += step->count;
}

/* Where in k a launch begins whose sums stay apart: that is its place in the buffer. */
static int64_t begins_apart(walk *w, const tsr_step *step) {
    const tsr_problem *x = &w->plan->problem;
    const size_t own = (size_t)(step->count * step->ld) * tsr_dtype_bytes(x->type), sums = tsr_plan_sums_bytes(w->plan);
    const int64_t number = (int64_t)((step->slots[2].offset - own) / sums);
    const int64_t from = tsr_plan_ks(w->plan, w->rank % w->plan->r).start + number * x->blocks.k;
    CHECK(!step->accumulate && step->opens + step->closes > 0 && number < tsr_plan_apart(w->plan), "range %lld of %lld",
          (long long)number, (long long)tsr_plan_apart(w->plan));
    for (int64_t i = step->rect.row; i < step->rect.row + step->rect.rows; i++)
        for (int64_t j = step->rect.col; j < step->rect.col + step->rect.cols; j++) {
            uint64_t *has = &w->ranges[i * x->n + j];
            const uint64_t bit = UINT64_C(1) << from / x->blocks.k;
            CHECK(!(*has & bit), "element (%lld, %lld) has k = %lld twice", (long long)i, (long long)j,
                  (long long)from);
            *has |= bit;
        }
    return from;
}

static int64_t begins(walk *w, const tsr_step *step, int64_t k) {
    const tsr_rect c = step->rect;
    int64_t *begun = &w->begun[c.row * w->plan->problem.n + c.col];
    const int64_t from = step->accumulate ? *begun : 0;
    CHECK(step->accumulate == (*begun > 0), "the launch at (%lld, %lld) has %lld of k and %s", (long long)c.row,
          (long long)c.col, (long long)*begun, step->accumulate ? "adds" : "begins again");
    *begun = from + k;
    return from;
}

static tsr_status see(void *context, const tsr_step *step) {
    walk *w = context;
    const tsr_problem *x = &w->plan->problem;
    const tsr_rect c = step->rect;
    const bool chains = tsr_plan_chains(w->plan);
    CHECK(step->kind != TSR_STEP_REDUCE, "ranks add in no order");
    CHECK(step->kind != TSR_STEP_WRITE || !chains || w->rank % w->plan->r == w->plan->r - 1, "rank %d writes", w->rank);
    if (step->kind == TSR_STEP_PASS) see_pass(w, step);
    if (step->kind != TSR_STEP_MULTIPLY) return TSR_OK;
    const int64_t k = step->k / tsr_problem_reals(x).k;
    const int64_t from = chains ? begins_apart(w, step) : begins(w, step, k);
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
    w.ranges = calloc((size_t)elements + 1, sizeof *w.ranges);
    int64_t first[2] = {0, 0};
    for (w.rank = 0; w.rank < plan->p * plan->q * plan->r; w.rank++) {
        w.passes = w.passed = 0;
        CHECK_OK(plan->schedule->emit(plan, w.rank, see, &w));
        if (w.rank % plan->r == 0) memcpy(first, (int64_t[]){w.passes, w.passed}, sizeof first);
        CHECK(w.passes == first[0] && w.passed == first[1] && (w.passes > 0) <= tsr_plan_chains(plan),
              "rank %d hands on %lld times, the first of its chain %lld", w.rank, (long long)w.passes,
              (long long)first[0]);
    }
    for (int64_t i = 0; i < elements; i++) {
        const bool above = x->gram && i % x->n > i / x->n;
        CHECK(w.summed[i] == x->k || (above && w.summed[i] == 0), "element %lld has %lld of k = %lld", (long long)i,
              (long long)w.summed[i], (long long)x->k);
    }
    free(w.begun);
    free(w.summed);
    free(w.ranges);
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
    tsr_problem_fix_blocks(&x, pick(0, 3) > 0 ? 2 * pick(1, 10) : 1, 2 * pick(1, 16));
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
        res.grid[2] = (int)pick(1, res.ranks / res.grid[0] / res.grid[1]);
    }
    return res;
}

static void test_launches(kind_of_problem kind, int plans) {
    int made = 0;
    int refused = 0;
    int shared = 0;
    int panels = 0;
    int split = 0;
    int64_t launches = 0;
    for (int i = 0; i < plans; i++) {
        const tsr_problem x = some_problem(kind);
        tsr_resources res = some_resources(&x);
        tsr_plan plan, parts;
        const int64_t ranges = tsr_ceil_div(x.k, x.blocks.k);
        tsr_status status = tsr_plan_make(&x, &res, &plan);
        if (res.grid[2] > ranges) {
            CHECK(status == TSR_ERR_USAGE && strstr(tsr_message(), "parts: use --grid"), "message was: %s",
                  tsr_message());
            res.grid[2] = (int)ranges;
            status = tsr_plan_make(&x, &res, &plan);
        }
        if (status == TSR_ERR_LIMIT) {
            const bool panel = strstr(tsr_message(), "or --panel") != NULL;
            CHECK(panel ? res.panel > x.blocks.k && res.grid[2] < 2
                        : strstr(tsr_message(), "--reproducible takes") != NULL,
                  "message was: %s", tsr_message());
            refused++;
            continue;
        }
        CHECK(status == TSR_OK, "%s", tsr_message());
        launches += look_at(&plan);
        made++;
        shared += plan.p * plan.q > 1;
        panels += plan.panel < x.k;
        split += plan.r > 1;
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
    CHECK(kind == STACK || (panels > plans / 10 && split > plans / 10), "%d plans cut k, %d split it", panels, split);
}

/* What ranks hand on, as the model has it and as their steps do. */
static void test_bytes(void) {
    const tsr_operand a = {.rows = 300, .cols = 100000, .element = {TSR_F64, false}},
                      b = {.rows = 100000, .cols = 200, .element = {TSR_F64, false}};
    tsr_problem x;
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &x));
    tsr_problem_fix_blocks(&x, 128, 16384);
    tsr_resources res = {.ranks = 8,
                         .host_memory = true,
                         .device_limit = (size_t)8 << 30,
                         .host_limit = (size_t)8 << 30,
                         .multiple = 1,
                         .grid = {1, 1, 3}};
    res.rates = tsr_rates_typical(false, false, TSR_F64, 1);
    tsr_plan plan;
    tsr_prediction prediction;
    CHECK_OK(tsr_plan_make(&x, &res, &plan));
    tsr_plan_predict(&plan, &prediction);
    CHECK(plan.panel == 16384 && tsr_plan_apart(&plan) == 3, "%lld ranges of %lld apart",
          (long long)tsr_plan_apart(&plan), (long long)plan.panel);
    for (int rank = 0; rank < 3; rank++) {
        tsr_forecast counted;
        CHECK_OK(tsr_plan_forecast(&plan, rank, &counted));
        const double handed = rank > 0 ? 300.0 * 200 * 8 : 0, written = rank == 2 ? 300.0 * 200 * 8 : 0;
        CHECK(counted.lane_bytes[TSR_LANE_EXCHANGE] == handed && counted.lane_bytes[TSR_LANE_WRITE] == written,
              "rank %d is handed %g bytes and writes %g", rank, counted.lane_bytes[TSR_LANE_EXCHANGE],
              counted.lane_bytes[TSR_LANE_WRITE]);
        if (rank < 2) continue;
        CHECK(prediction.lane_bytes[TSR_LANE_EXCHANGE] == handed && prediction.lane_bytes[TSR_LANE_WRITE] == written,
              "predicted: %g bytes handed, %g written", prediction.lane_bytes[TSR_LANE_EXCHANGE],
              prediction.lane_bytes[TSR_LANE_WRITE]);
    }
    memset(res.grid, 0, sizeof res.grid); /* k has 7 ranges, and C 3 x 2 blocks */
    CHECK_OK(tsr_plan_make(&x, &res, &plan));
    CHECK(plan.r > 1 && plan.p * plan.q * plan.r > 5, "%d x %d x %d of 8 ranks", plan.p, plan.q, plan.r);
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
                         .grid = {1, 1, 4}};
    tsr_plan plan;
    res.rates = tsr_rates_typical(false, false, TSR_F64, 1);
    CHECK_FAILS(tsr_plan_make(&x, &res, &plan), TSR_ERR_USAGE, "has 3 parts: use --grid 1x1x3");
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
    test_bytes();
    test_refusals();
    test_wrong_cuts();
    return 0;
}
