/* Who makes the products that fall back, once some of a run did: a kernel made for the test notes what it is given. On
 * the emulated device, whose memory it reads itself. */
#include "io/store.h"
#include "io/stores.h"
#include "kernels/gemm/registry.h"
#include "mpi/execute/execute.h"
#include "mpi/plan/predict.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"

enum { EDGE = 8, STEPS = 9, PANEL = 5, ROOM = 1 << 16 };

static int falls_from; /* the first product that falls back; STEPS: none does */
static int made;       /* in this run */
static void *given[STEPS];

static tsr_status launch(tsr_device *device, tsr_stream *stream, const tsr_gemm_args *args) {
    if (tsr_device_loads_only()) return TSR_OK;
    CHECK(made < STEPS, "more products than panels");
    given[made] = args->fallback_workspace;
    if (made >= falls_from) args->fallbacks->products++;
    made++;
    return tsr_gemm_naive_f64.launch(device, stream, args);
}
static size_t room(int64_t m, int64_t n, int64_t k) {
    CHECK(m == EDGE && n == EDGE && k == PANEL, "room for %ld x %ld x %ld", (long)m, (long)n, (long)k);
    return ROOM;
}

static void run(const tsr_execution *x, const tsr_plan *plan, int from, bool has_room) {
    tsr_executor *executor;
    CHECK_OK(tsr_executor_open(x, &executor));
    for (int again = 0; again < 2; again++) { /* nothing is left of a run before */
        tsr_rank_record record = {0};
        falls_from = again ? STEPS : from;
        made = 0;
        CHECK_OK(tsr_executor_run(executor, &record));
        CHECK(made == STEPS && record.fallbacks == STEPS - falls_from, "%d products, %d fell back", made,
              (int)record.fallbacks);
        for (int i = 0; i < STEPS; i++)
            CHECK((given[i] != NULL) == (has_room && i >= falls_from + 2),
                  "run %d, product %d of %d, from %d on: room %p", again, i, STEPS, falls_from, given[i]);
        const double taken = has_room && from + 2 < STEPS ? ROOM : 0;
        CHECK(record.device_bytes == plan->device_bytes + taken, "%g bytes on the device, not %g", record.device_bytes,
              plan->device_bytes + taken);
    }
    tsr_executor_close(executor);
}

int main(void) {
    tsr_world world = {0};
    tsr_device *device;
    tsr_device_facts facts;
    tsr_grid grid;
    tsr_transport *transport;
    int shared;
    CHECK_OK(tsr_world_open(&world));
    CHECK_OK(tsr_device_choose(&world, "cuda", &device, &shared));
    CHECK_OK(device->ops->facts(device, &facts));
    CHECK_OK(tsr_grid_open(&world, 1, 1, 1, &grid));
    CHECK_OK(tsr_transport_host.open(&grid, device, &transport));
    const tsr_gemm_kernel last = tsr_gemm_naive_f64;
    tsr_gemm_kernel middle = last;
    tsr_gemm_kernel front = last;
    middle.fallback = &last;
    middle.workspace_bytes = room;
    front.fallback = &middle;
    front.launch = launch;

    const tsr_operand a = {.rows = EDGE, .cols = STEPS * PANEL, .element = {TSR_F64, false}};
    const tsr_operand b = {.rows = STEPS * PANEL, .cols = EDGE, .element = {TSR_F64, false}};
    tsr_problem problem;
    CHECK_OK(tsr_problem_make(a, b, NULL, tsr_real(1), tsr_real(0), &problem));
    problem.out = TSR_F64;
    problem.input = TSR_F64;
    tsr_resources res = {.ranks = 1,
                         .device_limit = 1 << 20,
                         .host_limit = 1 << 20,
                         .panel = PANEL,
                         .multiple = 1,
                         .grid = {1, 1, 1},
                         .schedule = tsr_schedules()[0],
                         .rates = tsr_rates_typical(true, false, TSR_F64, 1)};
    tsr_plan plan;
    CHECK_OK(tsr_plan_make(&problem, &res, &plan));
    double c[EDGE * EDGE];
    tsr_execution x = {.plan = &plan,
                       .grid = &grid,
                       .device = device,
                       .kernel = &front,
                       .transport = transport,
                       .io_threads = 1,
                       .write_threads = 1};
    CHECK_OK(tsr_generated_open(TSR_FILL_INTEGER, 1, a.rows, a.cols, TSR_F64, &x.a));
    CHECK_OK(tsr_generated_open(TSR_FILL_INTEGER, 2, b.rows, b.cols, TSR_F64, &x.b));
    CHECK_OK(tsr_memory_open((tsr_view){c, {TSR_F64, false}, EDGE, EDGE, EDGE}, &x.c));

    for (int from = 0; from <= STEPS; from++) run(&x, &plan, from, true);
    plan.resources.device_limit = (size_t)plan.device_bytes + ROOM; /* just enough */
    run(&x, &plan, 1, true);
    plan.resources.device_limit--;
    run(&x, &plan, 1, false);
    front.fallback = &last; /* no chain */
    run(&x, &plan, 1, false);

    tsr_store_close(x.a);
    tsr_store_close(x.b);
    tsr_store_close(x.c);
    tsr_transport_host.close(transport);
    CHECK_OK(tsr_grid_close(&grid));
    device->ops->close(device);
    tsr_world_close(&world);
    return 0;
}
