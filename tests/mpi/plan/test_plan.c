/* Plans for 1 to 64 ranks, of every schedule, drawn at random and simulated in one process (walk.h): whole matrices,
 * Gram matrices, stacks of small products. Memory stays within the limits, and the model counts the bytes. */
#include <math.h>

#include "mpi/plan/predict.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"
#include "tests/mpi/plan/walk.h"

/* summa.c; tests/mpi/schedule/ring.c, in this test's registry */
extern const tsr_schedule_ops tsr_schedule_summa, tsr_schedule_ring;

static uint64_t state = 1;
static int64_t pick(int64_t low, int64_t high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

static tsr_problem some_problem(void) {
    static const int64_t edges[] = {0, 1, 2, 13, 31, 32, 33, 61, 64};
    static const tsr_element types[] = {{TSR_F32, false}, {TSR_F64, false}, {TSR_F16, false}, {TSR_F32, true},
                                        {TSR_I32, false}, {TSR_U8, false},  {TSR_C64, false}, {TSR_C128, true}};
    int64_t m = edges[pick(0, 8)];
    int64_t n = edges[pick(0, 8)];
    int64_t k = edges[pick(0, 8)];
    bool ta = pick(0, 1), tb = pick(0, 1);
    tsr_operand a = {.rows = ta ? k : m, .cols = ta ? m : k, .element = types[pick(0, 7)], .transpose = ta};
    tsr_operand b = {.rows = tb ? n : k, .cols = tb ? k : n, .element = types[pick(0, 7)], .transpose = tb};
    tsr_operand c0 = {.rows = m, .cols = n, .element = types[pick(0, 7)]};
    tsr_problem problem;
    bool add = pick(0, 2) == 0;
    CHECK_OK(
        tsr_problem_make(a, b, add ? &c0 : NULL, tsr_real(pick(0, 9) == 0 ? 0 : 1), tsr_real(add ? 2 : 0), &problem));
    if (pick(0, 1)) {
        problem.operand[TSR_OPERAND_A].path = (tsr_data_path)pick(0, 2);
        problem.operand[TSR_OPERAND_B].path = (tsr_data_path)pick(0, 2);
        problem.c_path = pick(0, 1) ? TSR_DATA_PATH_MAPPED : TSR_DATA_PATH_HOST;
    }
    if (problem.alpha == 1 && !add && pick(0, 3) == 0) problem.c_path = TSR_DATA_PATH_DEVICE;
    if (pick(0, 2) == 0) {
        problem.unit_m = pick(1, 20);
        problem.unit_n = pick(1, 20);
    }
    problem.operand[TSR_OPERAND_A].on_disk = pick(0, 1);
    problem.operand[TSR_OPERAND_B].on_disk = pick(0, 1);
    problem.c_on_disk = pick(0, 1);
    problem.c0_on_disk = pick(0, 1);
    for (int i = 0; i < TSR_OPERANDS; i++) problem.operand[i].copied = !problem.operand[i].on_disk && pick(0, 1);
    return problem;
}

static tsr_resources some_resources(void) {
    tsr_resources res = {.ranks = (int)pick(1, 64),
                         .host_memory = pick(0, 1),
                         .device_limit = (size_t)1 << pick(6, 26),
                         .host_limit = (size_t)1 << pick(6, 26),
                         .panel = pick(0, 1) ? 0 : pick(1, 40),
                         .multiple = pick(0, 4) == 0 ? 16 : 1,
                         .edge = pick(0, 16)};
    res.device_exchange = !res.host_memory && pick(0, 1);
    if (pick(0, 1)) res.portion_bytes = (size_t)1 << pick(4, 12);
    res.rates = tsr_rates_typical(!res.host_memory, res.device_exchange, TSR_F32, 1);
    /* so that bytes count beside steps */
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) res.rates.lane[lane] *= pow(10, -(double)pick(4, 8));
    if (pick(0, 1)) {
        res.grid[0] = (int)pick(1, res.ranks);
        res.grid[1] = (int)pick(1, res.ranks / res.grid[0]);
        res.grid[2] = (int)pick(1, res.ranks / (res.grid[0] * res.grid[1]));
    }
    return res;
}

/* The same as a Gram matrix of its first operand. */
static tsr_problem some_gram(void) {
    tsr_problem problem = some_problem();
    tsr_operand a = problem.operand[TSR_OPERAND_A], b = a;
    const tsr_problem other = problem;
    b.transpose = !a.transpose;
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(other.alpha), tsr_real(0), &problem));
    if (tsr_problem_complex(&problem)) return some_gram();
    problem.unit_m = other.unit_m;
    problem.unit_n = other.unit_n;
    problem.c_path = other.c_path;
    problem.c_on_disk = other.c_on_disk;
    CHECK_OK(tsr_problem_take_gram(&problem, (tsr_triangle)pick(0, 2)));
    return problem;
}

typedef struct {
    int made, refused, pieces; /* plans whose steps multiply panels in pieces */
    int bands, growing, kept_b, kept_host[TSR_OPERANDS];
    int parts, as_cut; /* for runs that go on later; of them those cut again as before */
} plan_counts;

static void check_limits(const tsr_plan *plan, const tsr_resources *res) {
    const double limit =
        (double)(res->host_memory && res->device_limit < res->host_limit ? res->device_limit : res->host_limit);
    CHECK(plan->device_bytes <= (double)res->device_limit && plan->host_bytes <= limit,
          "device %g of %zu, host %g of %g", plan->device_bytes, res->device_limit, plan->host_bytes, limit);
    CHECK(plan->p * plan->q * plan->r <= res->ranks, "%d x %d x %d on %d ranks", plan->p, plan->q, plan->r, res->ranks);
}

/* Products of all ranks beyond one for each panel that SUMMA multiplies. */
static bool in_pieces(const tsr_plan *plan) {
    tsr_plan whole = *plan;
    tsr_forecast one, other;
    int64_t more = 0;
    whole.schedule = &tsr_schedule_summa;
    for (int rank = 0; rank < plan->p * plan->q * plan->r; rank++) {
        CHECK_OK(tsr_plan_forecast(plan, rank, &one));
        CHECK_OK(tsr_plan_forecast(&whole, rank, &other));
        more += one.tiles - other.tiles;
    }
    return more > 0;
}

static void plan_once(const tsr_problem *problem, const tsr_resources *res, plan_counts *n) {
    tsr_plan plan;
    tsr_status status = tsr_plan_make(problem, res, &plan);
    if (status == TSR_ERR_LIMIT) {
        CHECK(strstr(tsr_message(), "memory") && strstr(tsr_message(), "or more"), "message was: %s", tsr_message());
        n->refused++;
        return;
    }
    CHECK(status == TSR_OK, "%s", tsr_message());
    CHECK(!res->schedule || plan.schedule == res->schedule, "planned for %s", plan.schedule->name);
    check_limits(&plan, res);
    tsr_test_simulate(&plan);
    tsr_test_simulate_comparison(&plan);
    tsr_test_simulate_left(&plan, state >> 33);
    tsr_resources parts = *res; /* as one that goes on later, and with its cut again */
    tsr_plan first, again;
    parts.parts = true;
    if (state >> 40 & 3 || problem->batch > 1 || problem->c_path == TSR_DATA_PATH_DEVICE) parts.parts = false;
    if (parts.parts && tsr_plan_make(problem, &parts, &first) == TSR_OK) {
        tsr_test_simulate_left(&first, state >> 33);
        parts.cut_m = first.block_m;
        parts.cut_n = first.block_n;
        CHECK_OK(tsr_plan_make(problem, &parts, &again));
        CHECK(again.block_m <= first.block_m && again.block_n <= first.block_n, "%lld x %lld, cut to %lld x %lld",
              (long long)again.block_m, (long long)again.block_n, (long long)first.block_m, (long long)first.block_n);
        tsr_test_simulate_left(&again, state >> 35);
        n->parts++;
        n->as_cut += again.block_m == first.block_m && again.block_n == first.block_n;
    }
    const tsr_operand_plan *a = &plan.operand[TSR_OPERAND_A], *b = &plan.operand[TSR_OPERAND_B];
    n->made++;
    n->pieces += in_pieces(&plan);
    n->bands += a->keep == TSR_KEEP_BAND;
    n->growing += tsr_plan_grows(&plan) && plan.blocks_m > 1 && plan.blocks_n > 1;
    n->kept_b += a->keep == TSR_KEEP_NONE && b->keep == TSR_KEEP_ALL;
    for (int i = 0; i < TSR_OPERANDS; i++) n->kept_host[i] += plan.operand[i].keep_host;
}

static void test_random_plans(const tsr_schedule_ops *schedule) {
    plan_counts n = {0};
    state = 1;
    for (int i = 0; i < SOME_OF(4000); i++) {
        tsr_problem problem = some_problem();
        tsr_resources res = some_resources();
        res.schedule = schedule;
        if (problem.c_path == TSR_DATA_PATH_DEVICE) res.grid[2] = res.grid[0] > 0;
        plan_once(&problem, &res, &n);
    }
    const int ways[] = {n.bands, n.growing, n.kept_b, n.kept_host[TSR_OPERAND_A], n.kept_host[TSR_OPERAND_B]};
    for (int i = 0; i < 5; i++)
        CHECK(ways[i] > SOME_OF(10), "way %d of keeping panels was taken %d times: the cases no longer cover it", i,
              ways[i]);
    CHECK(n.parts > SOME_OF(50) && 10 * n.as_cut > 9 * n.parts, "%d plans of parts, %d cut as before", n.parts,
          n.as_cut);
    CHECK(n.made > SOME_OF(1000) && n.refused > SOME_OF(10),
          "%d plans made, %d refused: the cases no longer cover both", n.made, n.refused);
    CHECK(schedule != &tsr_schedule_ring || n.pieces > SOME_OF(50), "%d plans multiply in pieces", n.pieces);
}

/* Products whose ranges of k are added in their order, by ranks that split k. */
static void test_ordered_plans(void) {
    plan_counts n = {0};
    int chains = 0;
    state = 5;
    for (int i = 0; i < SOME_OF(6000); i++) {
        tsr_problem problem = i % 4 == 0 ? some_gram() : some_problem();
        tsr_resources res = some_resources();
        tsr_plan plan;
        if (problem.c_path == TSR_DATA_PATH_DEVICE) continue;
        tsr_problem_fix_blocks(&problem, 2 * pick(1, 8), 2 * pick(1, 8));
        res.schedule = &tsr_schedule_summa;
        res.multiple = 1;
        if (res.panel > 0) res.panel = tsr_round_up(res.panel, problem.blocks.k);
        res.grid[2] = (int)tsr_min(res.grid[2], tsr_max(1, tsr_ceil_div(problem.k, problem.blocks.k)));
        plan_once(&problem, &res, &n);
        chains += tsr_plan_make(&problem, &res, &plan) == TSR_OK && tsr_plan_chains(&plan);
    }
    CHECK(chains > SOME_OF(300) && n.made > SOME_OF(1000) && n.refused > SOME_OF(10),
          "%d of %d plans hand on sums, %d refused", chains, n.made, n.refused);
}

static void test_gram_plans(const tsr_schedule_ops *schedule) {
    plan_counts n = {0};
    state = 7;
    for (int i = 0; i < SOME_OF(3000); i++) {
        tsr_problem problem = some_gram();
        tsr_resources res = some_resources();
        res.schedule = schedule;
        if (pick(0, 1)) res.grid[0] = res.grid[1] = res.grid[0] > 0; /* B is made of A */
        if (res.grid[0] > 0 && res.grid[1] == 0) res.grid[1] = 1;
        if (res.grid[0] > 0 && res.grid[2] == 0) res.grid[2] = 1;
        if (problem.c_path == TSR_DATA_PATH_DEVICE) res.grid[2] = res.grid[0] > 0;
        plan_once(&problem, &res, &n);
    }
    const int ways[] = {n.bands, n.kept_host[TSR_OPERAND_A], n.made - n.bands, n.refused};
    for (int i = 0; i < 4; i++) CHECK(ways[i] > SOME_OF(10), "Gram matrices go way %d %d times", i, ways[i]);
    CHECK(n.kept_host[TSR_OPERAND_B] == 0, "B is kept on the host, though it is made of A");
}

static tsr_operand stack_operand(int64_t rows, int64_t cols) {
    static const tsr_element types[] = {{TSR_F32, false}, {TSR_F64, false}, {TSR_F32, true}, {TSR_I16, false}};
    tsr_operand x = {.rows = rows, .cols = cols, .element = types[pick(0, 3)], .transpose = pick(0, 1)};
    if (x.transpose) {
        x.rows = cols;
        x.cols = rows;
    }
    return x;
}

/* Of each product all is read once, by one rank; a matrix for all, once by each. The model counts the bytes. */
static void check_stack_plan(const tsr_plan *plan) {
    tsr_prediction prediction;
    tsr_forecast most = {0};
    const int ranks = plan->p;
    for (int rank = 0; rank < ranks; rank++) {
        tsr_forecast one;
        CHECK_OK(tsr_plan_forecast(plan, rank, &one));
        CHECK(one.tiles >= 1 && one.tiles <= plan->blocks_m, "rank %d has %lld launches", rank, (long long)one.tiles);
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
            most.lane_bytes[lane] = fmax(most.lane_bytes[lane], one.lane_bytes[lane]);
    }
    tsr_plan_predict(plan, &prediction);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (lane != TSR_LANE_MULTIPLY && (lane != TSR_LANE_DOWNLOAD || !plan->resources.host_memory))
            CHECK(fabs(prediction.lane_bytes[lane] - most.lane_bytes[lane]) <= 1e-9 * most.lane_bytes[lane],
                  "the %s lane: %g bytes predicted, %g are moved", tsr_lane_name((tsr_lane)lane),
                  prediction.lane_bytes[lane], most.lane_bytes[lane]);
    CHECK(prediction.seconds > 0 && isfinite(prediction.seconds), "%g s", prediction.seconds);
    CHECK(tsr_exchange_bound(&plan->problem, ranks) == 0, "products of a stack have nothing to exchange");
}

/* Stacks of small products, of which a rank makes as many at a time as fit. */
static void test_stacks(void) {
    int made = 0;
    int refused = 0;
    int grouped = 0;
    state = 7;
    for (int i = 0; i < SOME_OF(800); i++) {
        const int64_t m = pick(1, 20);
        const bool mirrored = pick(0, 3) == 0;
        const int64_t n = mirrored ? m : pick(1, 20);
        const int64_t k = pick(1, 20);
        tsr_operand a = stack_operand(m, k), b = stack_operand(k, n);
        tsr_operand c0 = {.rows = m, .cols = n, {TSR_F32, false}};
        const bool add = pick(0, 3) == 0 && !mirrored;
        tsr_problem problem;
        tsr_resources res = some_resources();
        tsr_plan plan;
        CHECK_OK(
            tsr_problem_make(a, b, add ? &c0 : NULL, (tsr_complex){1, 0}, (tsr_complex){add ? 2 : 0, 0}, &problem));
        problem.operand[pick(0, 1)].common = pick(0, 2) == 0 && !mirrored;
        for (int which = 0; which < TSR_OPERANDS; which++) problem.operand[which].copied = pick(0, 1);
        problem.mirrored = mirrored;
        tsr_problem_stack(&problem, pick(2, 40));
        CHECK(problem.m % problem.batch == 0 && tsr_problem_product_rows(&problem) == m, "%lld rows of %lld products",
              (long long)problem.m, (long long)problem.batch);
        res.multiple = 1;
        res.device_limit = (size_t)1 << pick(10, 18);
        res.host_limit = (size_t)1 << pick(10, 18);
        res.grid[0] = pick(0, 3) == 0 ? (int)tsr_min(res.ranks, pick(1, problem.batch)) : 0;
        res.grid[1] = res.grid[2] = res.grid[0] > 0;
        const tsr_status status = tsr_plan_make(&problem, &res, &plan);
        refused += status == TSR_ERR_LIMIT;
        if (status == TSR_ERR_LIMIT) continue;
        CHECK(status == TSR_OK, "%s", tsr_message());
        CHECK(plan.q == 1 && plan.r == 1 && (res.grid[0] == 0 || plan.p == res.grid[0]), "%d x %d x %d", plan.p, plan.q,
              plan.r);
        check_limits(&plan, &res);
        tsr_test_simulate(&plan);
        check_stack_plan(&plan);
        made++;
        grouped += plan.blocks_m > 2;
    }
    CHECK(made > SOME_OF(400) && refused > SOME_OF(50) && grouped > SOME_OF(20),
          "%d made, %d refused, %d in groups: the cases no longer cover it", made, refused, grouped);
    tsr_problem problem;
    tsr_plan plan;
    tsr_resources res = {.ranks = 4, .grid = {2, 2, 1}, .device_limit = 1 << 20, .host_limit = 1 << 20};
    const tsr_operand square = {.rows = 8, .cols = 8, .element = {TSR_F32, false}};
    CHECK_OK(tsr_problem_make(square, square, NULL, (tsr_complex){1, 0}, (tsr_complex){0, 0}, &problem));
    tsr_problem_stack(&problem, 9);
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "p x 1 x 1");
}

/* By name, and by itself. */
static void test_schedules(void) {
    const tsr_schedule_ops *found;
    tsr_problem problem = some_problem();
    CHECK_OK(tsr_schedule_find("auto", &found));
    CHECK(!found, "auto is %s", found->name);
    for (int i = 0; tsr_schedules()[i]; i++) {
        CHECK_OK(tsr_schedule_find(tsr_schedules()[i]->name, &found));
        CHECK(found == tsr_schedules()[i], "%s is another", found->name);
        test_random_plans(found);
        test_gram_plans(found);
    }
    CHECK_FAILS(tsr_schedule_find("rinq", &found), TSR_ERR_USAGE, "; did you mean 'ring'?");
    CHECK(!found, "an unknown name is a schedule");
    /* equals: the first */
    tsr_resources res = {.ranks = 4, .device_limit = 1 << 30, .host_limit = 1 << 30, .multiple = 1};
    tsr_plan plan;
    res.rates = tsr_rates_typical(true, false, TSR_F32, 1);
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.schedule == &tsr_schedule_summa, "planned for %s", plan.schedule->name);
}

int main(void) {
    test_ordered_plans();
    test_schedules();
    test_stacks();
    return 0;
}
