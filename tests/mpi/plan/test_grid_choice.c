/* The choice of a grid against brute force over every grid, up to 4096 ranks: no grid is predicted to be noticeably
 * faster, and none as fast on as many ranks exchanges over 5 % fewer bytes. The cost model against counted steps,
 * and against what cannot be beaten. */
#include <math.h>

#include "mpi/plan/plan_private.h"
#include "mpi/schedule/forecast.h"
#include "tests/check.h"

#define AS_FAST 1.05
#define FEWER 1.05
#define COUNTS_MOST 12000000 /* of memory, for a plan of 4096 ranks; docs/scaling.md has the time measured */

static uint64_t state = 7;
static int64_t pick(int64_t low, int64_t high) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1));
}

static tsr_problem problem_of(int64_t m, int64_t n, int64_t k, tsr_dtype type) {
    tsr_operand a = {.rows = m, .cols = k, .element = {type, false}},
                b = {.rows = k, .cols = n, .element = {type, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem));
    return problem;
}

static tsr_resources gpus(int ranks, double memory_bytes) {
    tsr_resources res = {.ranks = ranks,
                         .device_exchange = true,
                         .device_limit = (size_t)memory_bytes,
                         .host_limit = (size_t)memory_bytes,
                         .multiple = 1};
    res.rates = tsr_rates_typical(true, true, TSR_F32, 1);
    return res;
}

static void in_nodes(tsr_rates *rates, int node) {
    rates->node_ranks = node;
    rates->network_bytes_per_second = 100e9;
    rates->network_latency_seconds = 5e-6;
    rates->node_read_bytes_per_second = 32e9;
    rates->node_write_bytes_per_second = 10e9;
    rates->all_read_bytes_per_second = 1000e9;
    rates->all_write_bytes_per_second = 500e9;
}

/* ---- brute force ----------------------------------------------------------------------------- */

typedef struct {
    double seconds, bytes;
    int p, q, r;
    int active;
} outcome;

static outcome outcome_of(const tsr_plan *plan) {
    tsr_prediction prediction;
    tsr_plan_predict(plan, &prediction);
    return (outcome){prediction.seconds,         prediction.lane_bytes[TSR_LANE_EXCHANGE], plan->p, plan->q, plan->r,
                     plan->p * plan->q * plan->r};
}

/* Every grid that fits; the caller frees. */
static outcome *every_grid(const tsr_problem *x, const tsr_resources *res, int *count) {
    int room = 0;
    outcome *all = NULL;
    *count = 0;
    for (int p = 1; p <= res->ranks && p <= x->m; p++)
        for (int q = 1; p * q <= res->ranks && q <= x->n; q++)
            for (int r = 1; p * q * r <= res->ranks && r <= x->k && (r == 1 || x->c_path != TSR_DATA_PATH_DEVICE);
                 r++) {
                tsr_plan plan;
                tsr_plan_begin(x, res, p, q, r, &plan);
                double seconds, bytes;
                tsr_plan_lower_bound(&plan, &seconds, &bytes);
                if (!tsr_plan_fit(&plan)) continue;
                outcome o = outcome_of(&plan);
                CHECK(seconds <= o.seconds * (1 + 1e-9) && bytes <= o.bytes * (1 + 1e-9) + 1,
                      "%d x %d x %d promised %g s, %g bytes and takes %g, %g", p, q, r, seconds, bytes, o.seconds,
                      o.bytes);
                if (*count == room) all = realloc(all, (size_t)(room = 2 * room + 64) * sizeof *all);
                CHECK(all, "no memory");
                all[(*count)++] = o;
            }
    return all;
}

static void compare(const tsr_problem *problem, const tsr_resources *res) {
    tsr_plan plan, fewest;
    int count;
    if (tsr_plan_make(problem, res, &plan) != TSR_OK) return;
    plan.copies_panels = false; /* the grid was chosen as if panels were exchanged */
    tsr_plan_fewest_bytes(&plan, &fewest);
    outcome *all = every_grid(problem, res, &count);
    outcome chosen = outcome_of(&plan);
    outcome least = outcome_of(&fewest);
    outcome fastest = {.seconds = INFINITY};
    for (int i = 0; i < count; i++)
        if (all[i].seconds < fastest.seconds || (all[i].seconds == fastest.seconds && all[i].active > fastest.active))
            fastest = all[i];
    CHECK(chosen.seconds <= AS_FAST * fastest.seconds * (1 + 1e-9), "the fastest grid takes %g s, the choice %g",
          fastest.seconds, chosen.seconds);
    CHECK(least.bytes < chosen.bytes || (least.p == chosen.p && least.q == chosen.q && least.r == chosen.r),
          "%d x %d x %d exchanges no fewer bytes than %d x %d x %d", least.p, least.q, least.r, chosen.p, chosen.q,
          chosen.r);
    CHECK(least.active >= chosen.active, "fewest bytes on %d ranks, the choice on %d", least.active, chosen.active);
    for (int i = 0; i < count; i++) {
        const outcome *o = &all[i];
        if (o->seconds <= AS_FAST * fastest.seconds && o->active >= fastest.active)
            CHECK(chosen.bytes <= FEWER * o->bytes, "%d x %d x %d exchanges %g bytes, the choice %g", o->p, o->q, o->r,
                  o->bytes, chosen.bytes);
        if (o->active >= chosen.active)
            CHECK(least.bytes <= o->bytes, "%d x %d x %d exchanges %g bytes, the fewest are said to be %g", o->p, o->q,
                  o->r, o->bytes, least.bytes);
    }
    free(all);
}

/* The same factor, stored the other way round. */
static tsr_operand transposed(tsr_operand x) {
    const int64_t rows = x.rows;
    x.rows = x.cols;
    x.cols = rows;
    x.transpose = true;
    return x;
}

/* Whatever else may be: transports, host memory, paths, chunks. */
static void vary(tsr_problem *problem, tsr_resources *res) {
    res->device_exchange = pick(0, 1);
    res->host_limit = (size_t)pow(2, (double)pick(20, 40));
    res->host_memory = pick(0, 4) == 0;
    res->rates = tsr_rates_typical(!res->host_memory, res->device_exchange, TSR_F32, 8);
    problem->operand[TSR_OPERAND_A].path = (tsr_data_path)pick(0, 2);
    problem->operand[TSR_OPERAND_B].path = (tsr_data_path)pick(0, 2);
    problem->c_path = (tsr_data_path)pick(0, 2);
    if (pick(0, 1)) {
        problem->unit_m = pick(1, tsr_max(1, problem->m / 2));
        problem->unit_n = pick(1, tsr_max(1, problem->n / 2));
    }
    if (pick(0, 3) == 0) {
        problem->unit_m = tsr_max(1, problem->m);
        problem->unit_n = tsr_max(1, problem->n);
    }
    problem->operand[TSR_OPERAND_A].on_disk = pick(0, 1);
    problem->operand[TSR_OPERAND_B].on_disk = pick(0, 1);
    problem->c0_on_disk = pick(0, 1);
    problem->c_on_disk = pick(0, 1);
    if (pick(0, 1)) problem->operand[TSR_OPERAND_A] = transposed(problem->operand[TSR_OPERAND_A]);
    if (pick(0, 1)) problem->operand[TSR_OPERAND_B] = transposed(problem->operand[TSR_OPERAND_B]);
}

static void test_choice(void) {
    for (int i = 0; i < 300; i++) {
        tsr_problem problem = problem_of(pick(1, 1 << pick(1, 20)), pick(1, 1 << pick(1, 20)),
                                         pick(1, 1 << pick(1, 20)), pick(0, 1) ? TSR_F32 : TSR_F64);
        tsr_resources res = gpus((int)pick(1, 100), pow(2, (double)pick(20, 37)));
        if (pick(0, 1)) in_nodes(&res.rates, (int)pick(1, 8));
        if (i % 2) vary(&problem, &res);
        compare(&problem, &res);
    }
    static const int64_t shapes[][3] = {{1000000, 1000000, 1000000}, {65536, 65536, 65536}, {2000000, 512, 512},
                                        {512, 3000001, 700},         {4096, 4096, 1000000}, {65536, 65536, 1024}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tsr_problem problem = problem_of(shapes[i][0], shapes[i][1], shapes[i][2], TSR_F32);
        tsr_resources res = gpus(i % 2 ? 4096 : 1000, 64e9);
        if (i % 3) in_nodes(&res.rates, 4);
        compare(&problem, &res);
    }
}

/* ---- the model and what is counted ----------------------------------------------------------- */

/* Lanes that carry bytes: the model's busiest rank moves what the busiest counted rank does, up to the rows that do
 * not divide. */
static void test_counted(void) {
    for (int i = 0; i < 200; i++) {
        tsr_problem problem = problem_of(pick(500, 4000), pick(500, 4000), pick(500, 4000), TSR_F32);
        tsr_resources res = gpus((int)pick(1, 24), pow(2, (double)pick(19, 30)));
        res.device_exchange = pick(0, 1);
        tsr_plan plan;
        if (tsr_plan_make(&problem, &res, &plan) != TSR_OK) continue;
        tsr_prediction model;
        tsr_plan_predict(&plan, &model);
        tsr_forecast most = {0}, one;
        for (int rank = 0; rank < plan.p * plan.q * plan.r; rank++) {
            CHECK_OK(tsr_plan_forecast(&plan, rank, &one));
            for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
                most.lane_bytes[lane] = fmax(most.lane_bytes[lane], one.lane_bytes[lane]);
            most.flops = fmax(most.flops, one.flops);
        }
        CHECK(fabs(model.flops - most.flops) <= 0.01 * most.flops, "%g flops counted, %g by the model", most.flops,
              model.flops);
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
            if (lane == TSR_LANE_MULTIPLY) continue;
            double counted = most.lane_bytes[lane], said = model.lane_bytes[lane];
            CHECK(said >= 0.9 * counted && said <= 1.1 * counted,
                  "%s: %g bytes counted, %g by the model; %d x %d x %d, blocks %lld x %lld, panel %lld",
                  tsr_lane_name((tsr_lane)lane), counted, said, plan.p, plan.q, plan.r, (long long)plan.blocks_m,
                  (long long)plan.blocks_n, (long long)plan.panel);
        }
    }
}

/* No plan beats the lower bound; the known cases of the theorem give its values. */
static void test_bound(void) {
    tsr_problem cube = problem_of(1000, 1000, 1000, TSR_F32);
    tsr_problem tall = problem_of(8000, 10, 20, TSR_F32);
    tsr_problem plate = problem_of(1000, 1000, 10, TSR_F32);
    CHECK(tsr_exchange_bound(&cube, 1) == 0, "%g", tsr_exchange_bound(&cube, 1));
    CHECK(fabs(tsr_exchange_bound(&cube, 64) / 4 - (3 * 1e6 / 16 - 3 * 1e6 / 64)) < 1, "%g",
          tsr_exchange_bound(&cube, 64));
    /* all of the small matrix */
    CHECK(fabs(tsr_exchange_bound(&tall, 16) / 4 - (200 - 200.0 / 16)) < 1e-6, "%g", tsr_exchange_bound(&tall, 16));
    /* 2·sqrt(mnk²/P) */
    CHECK(fabs(tsr_exchange_bound(&plate, 100) / 4 - (2 * 1e3 - 2e4 / 100)) < 1e-6, "%g",
          tsr_exchange_bound(&plate, 100));
    for (int i = 0; i < 2000; i++) {
        tsr_problem problem = problem_of(pick(1, 1 << pick(1, 20)), pick(1, 1 << pick(1, 20)),
                                         pick(1, 1 << pick(1, 20)), pick(0, 1) ? TSR_F16 : TSR_F32);
        tsr_resources res = gpus((int)pick(1, 16), pow(2, (double)pick(20, 37)));
        tsr_plan plan;
        if (tsr_plan_make(&problem, &res, &plan) != TSR_OK) continue;
        outcome o = outcome_of(&plan);
        double bound = tsr_exchange_bound(&problem, o.active);
        CHECK(o.bytes >= bound * (1 - 1e-9) - 1e-3, "%g bytes exchanged, %g at least on %d ranks", o.bytes, bound,
              o.active);
    }
}

/* More ranks on an axis never take longer to multiply; more ranks to choose from never make a plan slower than its
 * choice among equals allows; nothing is quicker than its slowest lane. */
static void test_monotone(void) {
    static const int64_t shapes[][3] = {
        {100000, 100000, 100000}, {2000000, 512, 512}, {4096, 4096, 1000000}, {777, 1001, 50021}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tsr_problem problem = problem_of(shapes[i][0], shapes[i][1], shapes[i][2], TSR_F32);
        double before = INFINITY, multiply[3] = {INFINITY, INFINITY, INFINITY};
        for (int ranks = 1; ranks <= 1024; ranks *= 2) {
            tsr_resources res = gpus(ranks, 120e9);
            in_nodes(&res.rates, 4);
            tsr_plan plan;
            tsr_prediction prediction;
            CHECK_OK(tsr_plan_make(&problem, &res, &plan));
            tsr_plan_predict(&plan, &prediction);
            CHECK(prediction.seconds <= before * AS_FAST, "%d ranks take %g s, half of them %g", ranks,
                  prediction.seconds, before);
            before = fmin(before, prediction.seconds);
            for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
                CHECK(prediction.seconds >= prediction.lane_seconds[lane], "%g s in all, %g s to %s",
                      prediction.seconds, prediction.lane_seconds[lane], tsr_lane_name((tsr_lane)lane));
            for (int axis = 0; axis < 3; axis++) {
                int parts[3] = {1, 1, 1};
                parts[axis] = ranks;
                tsr_plan_begin(&problem, &res, parts[0], parts[1], parts[2], &plan);
                tsr_plan_predict(&plan, &prediction);
                CHECK(prediction.lane_seconds[TSR_LANE_MULTIPLY] <= multiply[axis],
                      "%d ranks on axis %d multiply for %g s, half of them for %g", ranks, axis,
                      prediction.lane_seconds[TSR_LANE_MULTIPLY], multiply[axis]);
                multiply[axis] = prediction.lane_seconds[TSR_LANE_MULTIPLY];
            }
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static double exchange_seconds(const tsr_problem *problem, const tsr_resources *res, int p, int q, int r) {
    tsr_plan plan;
    tsr_prediction prediction;
    tsr_plan_begin(problem, res, p, q, r, &plan);
    tsr_plan_predict(&plan, &prediction);
    return prediction.lane_seconds[TSR_LANE_EXCHANGE];
}

/* 16 ranks in nodes of 4: a group inside a node costs as if the network were not there, one across nodes shares the
 * node's network. */
static void test_nodes(void) {
    tsr_problem problem = problem_of(16384, 16384, 16384, TSR_F32);
    tsr_resources one = gpus(16, 64e9), four = one;
    in_nodes(&four.rates, 4);
    double bytes = 16384.0 * 16384.0 * 4;
    four.rates.network_latency_seconds = 0;
    CHECK(exchange_seconds(&problem, &four, 1, 4, 1) == exchange_seconds(&problem, &one, 1, 4, 1),
          "a row of one node uses the network");
    CHECK(exchange_seconds(&problem, &four, 4, 1, 1) == exchange_seconds(&problem, &one, 4, 1, 1),
          "four ranks are one node");
    /* 4 x 4: rows in a node over its links; columns across nodes, four groups a node at 100 GB/s: 3/4 of B's quarter
     * each */
    double row = bytes / 4 * 3 / 4 / one.rates.lane[TSR_LANE_EXCHANGE], column = 4 * bytes / 4 * 3 / 4 / 100e9;
    double seconds = exchange_seconds(&problem, &four, 4, 4, 1);
    CHECK(fabs(seconds - row - column) < 1e-9, "%g s, not %g + %g", seconds, row, column);
    /* 1 x 16: one group through all nodes */
    seconds = exchange_seconds(&problem, &four, 1, 16, 1);
    CHECK(fabs(seconds - bytes * 15 / 16 / 100e9) < 1e-9, "%g s over one row", seconds);
    four.rates.network_latency_seconds = 1;
    CHECK(fabs(exchange_seconds(&problem, &four, 1, 16, 1) - seconds - 3) < 1e-6,
          "one panel crosses from node to node three times");
}

static void test_files(void) {
    tsr_problem problem = problem_of(16384, 16384, 16384, TSR_F32);
    tsr_resources res = gpus(16, 64e9);
    tsr_plan plan;
    tsr_prediction prediction;
    res.rates.lane[TSR_LANE_READ] = 32e9;
    res.rates.lane[TSR_LANE_WRITE] = 10e9;
    in_nodes(&res.rates, 4);
    tsr_plan_begin(&problem, &res, 4, 4, 1, &plan);
    tsr_plan_predict(&plan, &prediction);
    double c = 16384.0 * 16384.0 * 4;
    CHECK(fabs(prediction.lane_seconds[TSR_LANE_READ] - 2 * c / 4 / 32e9) < 1e-9, "%g s: the nodes' reading",
          prediction.lane_seconds[TSR_LANE_READ]);
    CHECK(fabs(prediction.lane_seconds[TSR_LANE_WRITE] - c / 4 / 10e9) < 1e-9, "%g s: the nodes' writing",
          prediction.lane_seconds[TSR_LANE_WRITE]);
    plan.resources.rates.all_read_bytes_per_second = 40e9;
    plan.resources.rates.all_write_bytes_per_second = 8e9;
    tsr_plan_predict(&plan, &prediction);
    CHECK(fabs(prediction.lane_seconds[TSR_LANE_READ] - 2 * c / 40e9) < 1e-9, "%g s: the file system's reading",
          prediction.lane_seconds[TSR_LANE_READ]);
    CHECK(fabs(prediction.lane_seconds[TSR_LANE_WRITE] - c / 8e9) < 1e-9, "%g s: the file system's writing",
          prediction.lane_seconds[TSR_LANE_WRITE]);
}

/* The planner asks once each time it counts a plan's memory: what it does most. */
static int64_t memory_counts;
static size_t count_memory(int64_t m, int64_t n, int64_t k) {
    (void)m;
    (void)n;
    (void)k;
    memory_counts++;
    return 0;
}

/* With little memory every grid needs many super-blocks: the slowest choice there is. */
static void test_tight(void) {
    tsr_problem problem = problem_of(1000000, 1000000, 1000000, TSR_F32);
    tsr_resources res = gpus(4096, 8388608);
    tsr_plan plan;
    res.workspace_bytes = count_memory;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(memory_counts > 0 && memory_counts < COUNTS_MOST, "memory is counted %lld times for a plan of 4096 ranks",
          (long long)memory_counts);
    CHECK(plan.device_bytes <= 8388608 && plan.p * plan.q * plan.r > 2048, "%g bytes on %d x %d x %d",
          plan.device_bytes, plan.p, plan.q, plan.r);
}

int main(void) {
    test_bound();
    test_nodes();
    test_files();
    test_monotone();
    test_counted();
    test_choice();
    test_tight();
    return 0;
}
