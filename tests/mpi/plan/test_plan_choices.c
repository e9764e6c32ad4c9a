/* What plans are made for the asking: grids, panels and cuts of known cases, types, refusals and their advice. */
#include <math.h>

#include "mpi/plan/predict.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"

/* Of a Gram matrix that stays on GPUs, where k is not split, every rank makes about as many products as the others. */
static void test_gram_balance(void) {
    const int64_t n = 32768;
    tsr_operand a = {.rows = n, .cols = n, .element = {TSR_F32, false}, .path = TSR_DATA_PATH_DEVICE}, b = a;
    b.transpose = true;
    for (int ranks = 2; ranks <= 8; ranks++) {
        tsr_problem problem;
        tsr_plan plan;
        tsr_prediction prediction;
        tsr_resources res = {.ranks = ranks,
                             .device_limit = (size_t)120 << 30,
                             .host_limit = (size_t)120 << 30,
                             .multiple = 1,
                             .device_exchange = true};
        double most = 0;
        double all = 0;
        res.rates = tsr_rates_typical(true, true, TSR_F32, ranks);
        CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem));
        problem.c_path = TSR_DATA_PATH_DEVICE;
        CHECK_OK(tsr_problem_take_gram(&problem, TSR_TRIANGLE_FULL));
        CHECK_OK(tsr_plan_make(&problem, &res, &plan));
        for (int rank = 0; rank < ranks; rank++) {
            tsr_forecast one = {0};
            if (rank < plan.p * plan.q * plan.r) CHECK_OK(tsr_plan_forecast(&plan, rank, &one));
            most = fmax(most, one.flops);
            all += one.flops;
        }
        tsr_plan_predict(&plan, &prediction);
        if (getenv("TSR_TEST_SHOW"))
            printf("%d ranks: %d x %d x %d, %lld x %lld super-blocks, most %.3f of the mean, all %.3f of a general "
                   "product, predicted %.3f of most\n",
                   ranks, plan.p, plan.q, plan.r, (long long)plan.blocks_m, (long long)plan.blocks_n,
                   most / all * ranks, all / tsr_problem_flops(&problem), prediction.flops / most);
        CHECK(most * ranks <= 1.05 * all, "%d ranks as %d x %d: the busiest makes %.3f of the mean", ranks, plan.p,
              plan.q, most * ranks / all);
        CHECK(fabs(prediction.flops - most) <= 0.05 * most, "%d ranks: %g flops predicted of %g", ranks,
              prediction.flops, most);
    }
}

static void test_refusals(void) {
    tsr_operand a = {.rows = 3, .cols = 4, .element = {TSR_F32, false}};
    tsr_operand b = {.rows = 5, .cols = 6, .element = {TSR_F32, false}};
    tsr_operand c0 = {.rows = 3, .cols = 7, .element = {TSR_F32, false}};
    tsr_problem problem;
    CHECK_FAILS(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem), TSR_ERR_SHAPE, "3 x 4");
    b.rows = 4;
    CHECK_FAILS(tsr_problem_make(a, b, &c0, tsr_real(1), tsr_real(1), &problem), TSR_ERR_SHAPE, "C0");
    CHECK_FAILS(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(1), &problem), TSR_ERR_USAGE, "--add");
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem));
    tsr_resources res = {.ranks = 3,
                         .host_memory = true,
                         .device_limit = 1 << 30,
                         .host_limit = 1 << 30,
                         .grid = {2, 2, 1},
                         .multiple = 1};
    res.rates = tsr_rates_typical(false, false, TSR_F32, 1);
    tsr_plan plan;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "needs 4 ranks");
    res.grid[0] = res.grid[1] = 1;
    res.grid[2] = 2;
    problem.c_path = TSR_DATA_PATH_DEVICE;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "r is 2");
    res.grid[2] = 1;
    problem.alpha = 2;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_USAGE, "alpha is 2");
    problem.alpha = 1;
    problem.c_path = TSR_DATA_PATH_HOST;
    res.host_limit = 10;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_LIMIT, "--host-memory");
    res.host_limit = 1 << 30;
    res.device_limit = 10;
    CHECK_FAILS(tsr_plan_make(&problem, &res, &plan), TSR_ERR_LIMIT, "--memory");
}

static tsr_problem typed(tsr_dtype a, tsr_dtype b, int64_t k, double alpha, double beta, tsr_dtype c0) {
    const tsr_operand to_a = {.rows = 2, .cols = k, .element = {a, false}},
                      to_b = {.rows = k, .cols = 3, .element = {b, false}};
    const tsr_operand to_c0 = {.rows = 2, .cols = 3, .element = {c0, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(to_a, to_b, &to_c0, tsr_real(alpha), tsr_real(beta), &problem));
    return problem;
}

#define FAR ((int64_t)1 << 40)

typedef struct {
    tsr_dtype a, b;
    int64_t k;
    double alpha, beta;
    tsr_dtype c0;
    enum { F32, WIDENED, F64 } made; /* in fp64 for the sums' sake; for an operand's */
    bool inexact;                    /* even so */
} typed_case;

static const typed_case typed_cases[] = {
    {TSR_F32, TSR_F32, FAR, 1, 0, TSR_F32, F32, false},       {TSR_F16, TSR_BF16, FAR, 1, 0, TSR_F32, F32, false},
    {TSR_F64, TSR_U8, 1, 1, 0, TSR_F32, F64, false},          {TSR_I16, TSR_F32, FAR, 1, 0, TSR_F32, F32, false},
    {TSR_F16, TSR_I32, FAR, 1, 0, TSR_F32, F64, false},       {TSR_F32, TSR_F32, 9, 1, 1, TSR_I64, F32, false},
    {TSR_U8, TSR_U8, 258, 1, 0, TSR_F32, F32, false},         {TSR_U8, TSR_U8, 259, 1, 0, TSR_F32, WIDENED, false},
    {TSR_I8, TSR_I8, 1024, -1, 0, TSR_F32, F32, false},       {TSR_I8, TSR_I8, 1025, 0.5, 0, TSR_F32, WIDENED, false},
    {TSR_I8, TSR_I8, 1024, -1.5, 0, TSR_F32, WIDENED, false}, {TSR_U16, TSR_I16, 1, 1, 0, TSR_F32, WIDENED, false},
    {TSR_U8, TSR_U8, 9, 1, 1, TSR_F64, F32, false},           {TSR_U8, TSR_U8, 9, 1, 1, TSR_I8, F32, false},
    {TSR_U8, TSR_U8, 9, 1, -1, TSR_U32, WIDENED, false},      {TSR_U8, TSR_U8, 9, 0, 300, TSR_U16, WIDENED, false},
    {TSR_U8, TSR_U8, FAR, 0, 0, TSR_U16, F32, false},         {TSR_U8, TSR_U8, FAR, 1, 0, TSR_F32, WIDENED, true},
    {TSR_I32, TSR_U8, 1 << 14, 1, 0, TSR_F32, F64, false},    {TSR_I32, TSR_I32, 1, 1, 0, TSR_F32, F64, true},
    {TSR_I64, TSR_U8, 1, 1, 0, TSR_F32, F64, true},           {TSR_U8, TSR_U8, 1, 1, 1, TSR_I64, WIDENED, true}};

static void check_case(int i, const typed_case *one) {
    char why[512];
    tsr_problem problem = typed(one->a, one->b, one->k, one->alpha, one->beta, one->c0);
    const tsr_dtype made = one->made == F32 ? TSR_F32 : TSR_F64;
    const bool widened = one->made == WIDENED;
    CHECK(problem.type == made && problem.out == made && problem.input == made, "case %d is made in %s, C is %s", i,
          tsr_dtype_name(problem.type), tsr_dtype_name(problem.out));
    CHECK(tsr_problem_widened(&problem, why) == widened && !why[0] == !widened, "case %d: '%s'", i, why);
    CHECK(tsr_problem_inexact(&problem, why) == one->inexact && !why[0] == !one->inexact, "case %d: '%s'", i, why);
    /* As f32: made in f64 only where an operand asks for it, and said to be inexact where sums wanted it. */
    tsr_problem_store_as(&problem, TSR_F32);
    CHECK(problem.out == TSR_F32 && problem.type == (one->made == F64 ? TSR_F64 : TSR_F32), "case %d as f32", i);
    CHECK(!tsr_problem_widened(&problem, why), "case %d as f32: '%s'", i, why);
    if (widened) {
        CHECK(tsr_problem_inexact(&problem, why), "case %d as f32 is exact", i);
        CHECK(strstr(why, "f32 holds whole numbers up to 2^24"), "case %d as f32: '%s'", i, why);
        CHECK(!strstr(why, "--type f64") == one->inexact, "case %d as f32: '%s'", i, why);
    }
    tsr_problem_store_as(&problem, TSR_F64);
    CHECK(problem.out == TSR_F64 && problem.type == TSR_F64 && problem.input == TSR_F64, "case %d as f64", i);
}

/* In what a product is made, and what is said of it: by the types alone, or for what sums of integers may come to. */
static void test_types(void) {
    char why[512];
    for (int i = 0; i < (int)(sizeof typed_cases / sizeof *typed_cases); i++) check_case(i, &typed_cases[i]);
    tsr_problem problem = typed(TSR_U8, TSR_U8, 1, 1, 0, TSR_F32);
    tsr_problem_store_as(&problem, TSR_F16);
    CHECK(problem.type == TSR_F32 && tsr_problem_inexact(&problem, why), "f16: '%s'", why);
    CHECK(strstr(why, "f16 holds whole numbers up to 2^11"), "f16: '%s'", why);
    problem = typed(TSR_U64, TSR_I64, INT64_MAX, -1e300, 1e300, TSR_U64); /* the longest text */
    CHECK(tsr_problem_inexact(&problem, why) && strstr(why, "stay below that") && strlen(why) < 300, "'%s'", why);
}

/* What --memory in the refusal says must really work. */
static void test_advice(void) {
    tsr_operand a = {.rows = 1000, .cols = 1000, .element = {TSR_F32, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &problem));
    for (size_t limit = 1; limit <= 16; limit *= 16) { /* less than one sum, and more */
        tsr_resources res = {
            .ranks = 1, .device_limit = limit, .host_limit = (size_t)1 << 40, .multiple = 1, .grid = {1, 1, 1}};
        res.rates = tsr_rates_typical(true, false, TSR_F32, 1);
        tsr_plan plan;
        CHECK(tsr_plan_make(&problem, &res, &plan) == TSR_ERR_LIMIT, "%zu bytes were enough", limit);
        const char *at = strstr(tsr_message(), "--memory ");
        CHECK(at, "message was: %s", tsr_message());
        res.device_limit = strtoull(at + 9, NULL, 10);
        CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    }
}

static void test_large(void) {
    tsr_operand a = {.rows = (int64_t)1 << 20, .cols = (int64_t)1 << 20, .element = {TSR_F64, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &problem));
    tsr_resources res = {.ranks = 64,
                         .device_exchange = true,
                         .device_limit = (size_t)120 << 30,
                         .host_limit = (size_t)64 << 30,
                         .multiple = 1};
    res.rates = tsr_rates_typical(true, true, TSR_F64, 1);
    tsr_plan plan;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.p * plan.q * plan.r == 64, "a large product leaves ranks idle: %d x %d x %d", plan.p, plan.q, plan.r);
    tsr_forecast forecast;
    double flops = 0;
    for (int rank = 0; rank < 64; rank++) {
        CHECK_OK(tsr_plan_forecast(&plan, rank, &forecast));
        flops += forecast.flops;
    }
    CHECK(flops == 2.0 * 1048576.0 * 1048576.0 * 1048576.0, "%g flops", flops);
}

/* side × side × side in fp32; A, B and C go the same way. */
static tsr_problem square(int64_t side, tsr_data_path path) {
    tsr_operand a = {.rows = side, .cols = side, .element = {TSR_F32, false}, .path = path};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, a, NULL, tsr_real(1), tsr_real(0), &problem));
    problem.c_path = path;
    return problem;
}

/* Devices with room, that exchange panels among them, at typical rates. */
static tsr_resources gpus(int ranks) {
    return (tsr_resources){.ranks = ranks,
                           .device_exchange = true,
                           .device_limit = (size_t)100 << 30,
                           .host_limit = (size_t)64 << 30,
                           .multiple = 1,
                           .rates = tsr_rates_typical(true, true, TSR_F32, 1)};
}

/* Files as slow to write as to read, on devices with room for all of A and B: C is cut so that most of it is written
 * while the rest is read. Without room it is not cut further than it must be. */
static void test_writing_while_reading(void) {
    tsr_problem problem = square(49152, TSR_DATA_PATH_HOST);
    tsr_resources res = gpus(4);
    tsr_plan plan;
    tsr_prediction prediction;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    tsr_plan_predict(&plan, &prediction);
    const double read = prediction.lane_seconds[TSR_LANE_READ], write = prediction.lane_seconds[TSR_LANE_WRITE];
    CHECK(plan.operand[TSR_OPERAND_A].keep == TSR_KEEP_ALL && plan.operand[TSR_OPERAND_B].keep == TSR_KEEP_ALL &&
              plan.blocks_m > 2 && plan.blocks_n > 2,
          "%lld x %lld super-blocks", (long long)plan.blocks_m, (long long)plan.blocks_n);
    CHECK(prediction.seconds < 0.8 * (read + write) && prediction.seconds > fmax(read, write),
          "%g s, %g to read and %g to write", prediction.seconds, read, write);
    /* 2 x 2 x 1 and 1 x 2 x 2 exchange as many bytes and take as long */
    problem.operand[TSR_OPERAND_A].path = problem.operand[TSR_OPERAND_B].path = problem.c_path = TSR_DATA_PATH_MAPPED;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.r == 1 && plan.p == 2 && plan.q == 2, "grid %d x %d x %d", plan.p, plan.q, plan.r);
    problem.c_path = TSR_DATA_PATH_DEVICE; /* nothing leaves */
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.blocks_m == 1 && plan.blocks_n == 1, "C stays, and is cut into %lld x %lld", (long long)plan.blocks_m,
          (long long)plan.blocks_n);
}

/* Files on a disk: C in bands of whole rows, which can be written while A is read; where a slow kernel leaves the
 * disk time, in squares as from memory. Pieces of rows are read slowly, and written when nothing is read. */
static void test_on_disk(void) {
    tsr_problem problem = square(24576, TSR_DATA_PATH_HOST);
    tsr_resources res = gpus(2);
    res.rates.lane[TSR_LANE_MULTIPLY] = 200e12;
    tsr_plan memory, disk, forced;
    tsr_prediction from_memory, from_disk, cut;
    CHECK_OK(tsr_plan_make(&problem, &res, &memory));
    tsr_plan_predict(&memory, &from_memory);
    problem.operand[TSR_OPERAND_A].on_disk = problem.operand[TSR_OPERAND_B].on_disk = problem.c_on_disk = true;
    CHECK_OK(tsr_plan_make(&problem, &res, &disk));
    tsr_plan_predict(&disk, &from_disk);
    CHECK(memory.blocks_n > 2, "%lld super-blocks across in memory", (long long)memory.blocks_n);
    CHECK(disk.q == 1 && disk.blocks_n == 1 && disk.blocks_m > 4 && disk.operand[TSR_OPERAND_B].keep == TSR_KEEP_ALL,
          "grid %d x %d x %d, %lld x %lld super-blocks on a disk", disk.p, disk.q, disk.r, (long long)disk.blocks_m,
          (long long)disk.blocks_n);
    const double *lanes = from_disk.lane_seconds;
    CHECK(lanes[TSR_LANE_WRITE] < 1.01 * from_memory.lane_seconds[TSR_LANE_WRITE] &&
              from_disk.seconds < lanes[TSR_LANE_READ] + lanes[TSR_LANE_WRITE],
          "%g s, of which %g to read and %g to write", from_disk.seconds, lanes[TSR_LANE_READ], lanes[TSR_LANE_WRITE]);
    CHECK(lanes[TSR_LANE_READ] > from_memory.lane_seconds[TSR_LANE_READ],
          "pieces of %lld elements are read as fast as whole rows", (long long)disk.panel);
    /* halves of rows */
    res.grid[0] = 1;
    res.grid[1] = 2;
    res.grid[2] = 1;
    CHECK_OK(tsr_plan_make(&problem, &res, &forced));
    tsr_plan_predict(&forced, &cut);
    CHECK(cut.seconds >= cut.lane_seconds[TSR_LANE_READ] + cut.lane_seconds[TSR_LANE_WRITE],
          "%g s with %g to read and %g to write", cut.seconds, cut.lane_seconds[TSR_LANE_READ],
          cut.lane_seconds[TSR_LANE_WRITE]);
    res.grid[0] = res.grid[1] = res.grid[2] = 0;
    res.rates.lane[TSR_LANE_MULTIPLY] = 8e12;
    CHECK_OK(tsr_plan_make(&problem, &res, &disk));
    CHECK(disk.blocks_m > 1 && disk.blocks_n > 1, "a slow kernel waits for all of B: %lld x %lld super-blocks",
          (long long)disk.blocks_m, (long long)disk.blocks_n);
}

static double shallow(int64_t m, int64_t n, int64_t k) { return 1 + 100.0 / (double)(m + n) + 4000.0 / (double)k; }

/* A kernel that is slow where k is short: its steps count for what they take, and are deeper where products bound the
 * run. */
static void test_shape_cost(void) {
    tsr_problem problem = square(65536, TSR_DATA_PATH_HOST);
    tsr_resources res = gpus(1);
    tsr_plan usual, deeper, forced;
    tsr_prediction flat, costly, cut;
    res.device_limit = (size_t)140 << 30;
    CHECK_OK(tsr_plan_make(&problem, &res, &usual));
    tsr_plan_predict(&usual, &flat);
    res.shape_cost = shallow;
    CHECK_OK(tsr_plan_make(&problem, &res, &deeper));
    tsr_plan_predict(&deeper, &costly);
    res.panel = usual.panel;
    CHECK_OK(tsr_plan_make(&problem, &res, &forced));
    tsr_plan_predict(&forced, &cut);
    CHECK(deeper.panel > usual.panel && costly.seconds < cut.seconds && costly.seconds > flat.seconds,
          "panels of k = %lld and not %lld: %g s and not %g, %g for any kernel", (long long)deeper.panel,
          (long long)usual.panel, costly.seconds, cut.seconds, flat.seconds);
    problem = square(1024, TSR_DATA_PATH_HOST);
    tsr_problem_stack(&problem, 64); /* each product is one step, however they are grouped */
    res.panel = 0;
    CHECK_OK(tsr_plan_make(&problem, &res, &deeper));
    tsr_plan_predict(&deeper, &costly);
    res.shape_cost = NULL;
    CHECK_OK(tsr_plan_make(&problem, &res, &usual));
    tsr_plan_predict(&usual, &flat);
    CHECK(costly.seconds == flat.seconds, "a stack takes %g s and not %g", costly.seconds, flat.seconds);
}

/* Where nothing is read into host memory, one panel of all of k, which is added to no sums; as few as fit; and as
 * many as before where files are read. */
static void test_wide_panels(void) {
    const int64_t side = 32768;
    tsr_problem problem = square(side, TSR_DATA_PATH_DEVICE);
    tsr_resources res = gpus(1);
    tsr_plan plan;
    tsr_prediction wide, forced;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    tsr_plan_predict(&plan, &wide);
    CHECK(plan.panel == side && plan.slots[TSR_SLOT_PANEL_A].count == 1 && plan.slots[TSR_SLOT_PANEL_B].count == 1,
          "panels of k = %lld", (long long)plan.panel);
    res.panel = 2048;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    tsr_plan_predict(&plan, &forced);
    CHECK(plan.panel == 2048 && forced.seconds > wide.seconds, "%g s in 16 panels, %g in one", forced.seconds,
          wide.seconds);
    res.panel = 0;
    res.device_limit = (size_t)8 << 30;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.panel < side && plan.device_bytes <= (double)res.device_limit && plan.slots[TSR_SLOT_PANEL_A].count == 2,
          "panels of k = %lld in 8 GiB", (long long)plan.panel);
    res.device_limit = (size_t)100 << 30;
    problem.operand[TSR_OPERAND_A].path = problem.operand[TSR_OPERAND_B].path = problem.c_path = TSR_DATA_PATH_HOST;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    CHECK(plan.panel <= side / 8, "files are read in panels of k = %lld", (long long)plan.panel);
}

/* Matrices in the node's memory: each rank copies whole panels where a slow kernel leaves the time, and pieces of
 * them, which are exchanged, where none does. */
static void test_copies_panels(void) {
    const double bytes = 4.0 * 32768 * 32768;
    tsr_problem problem = square(32768, TSR_DATA_PATH_MAPPED);
    tsr_resources res = gpus(4);
    res.grid[0] = res.grid[1] = 2;
    res.grid[2] = 1;
    for (int way = 0; way < 4; way++) { /* a slow kernel, a fast one, files, host staging */
        tsr_plan plan;
        tsr_forecast rank;
        res.rates.lane[TSR_LANE_MULTIPLY] = way == 1 ? 900e12 : 50e12;
        res.device_exchange = way < 3;
        problem.operand[TSR_OPERAND_A].path = problem.operand[TSR_OPERAND_B].path =
            way == 2 ? TSR_DATA_PATH_HOST : TSR_DATA_PATH_MAPPED;
        CHECK_OK(tsr_plan_make(&problem, &res, &plan));
        CHECK_OK(tsr_plan_forecast(&plan, 3, &rank));
        const bool whole = way == 0 || way == 3, exchanged = way == 1 || way == 2;
        CHECK(plan.copies_panels == (way == 0), "way %d: copies_panels is %d", way, plan.copies_panels);
        CHECK(rank.lane_bytes[TSR_LANE_UPLOAD] == (whole ? bytes : bytes / 2), "way %d: %g bytes uploaded", way,
              rank.lane_bytes[TSR_LANE_UPLOAD]);
        CHECK((rank.lane_bytes[TSR_LANE_EXCHANGE] > 0) == exchanged, "way %d: %g bytes exchanged", way,
              rank.lane_bytes[TSR_LANE_EXCHANGE]);
    }
}

int main(void) {
    test_copies_panels();
    test_shape_cost();
    test_wide_panels();
    test_writing_while_reading();
    test_on_disk();
    test_refusals();
    test_types();
    test_advice();
    test_large();
    test_gram_balance();
    return 0;
}
