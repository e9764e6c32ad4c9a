/* One product by the executor, on the ranks of a job, and what must hold of it: for test_execute.c. */
#ifndef TSR_TESTS_MPI_EXECUTE_ONE_PRODUCT_H
#define TSR_TESTS_MPI_EXECUTE_ONE_PRODUCT_H

#include <hdf5.h>
#include <math.h>
#include <unistd.h>

#include "io/hdf5/access/hdf5_type.h"
#include "io/hdf5/store_hdf5.h"
#ifdef TSR_EMULATE_CUDA
#include "kernels/device/cuda_emulation.h"
#endif
#include "mpi/execute/execute.h"
#include "mpi/execute/load.h"
#include "mpi/execute/memory/buffers.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"
#include "tests/check.h"
#include "tests/splitmix64.h"

/* What no product here can be: C starts full of it on every rank, and every element must be overwritten by exactly
 * one rank. */
#define UNWRITTEN 1.0e5

/* Where A and B come from. */
typedef enum { GENERATED, CONTIGUOUS, CHUNKED, COMPRESSED, MEMORY } file_layout;

typedef struct {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    tsr_dtype type_a, type_b;
    double alpha, beta;
    int64_t panel;
    size_t memory;
    bool any_memory; /* more of it where that is too little */
    int grid[3];
    file_layout layout; /* of A and B */
    bool direct;        /* generated or in memory: made on the device or copied from there */
    tsr_data_path c_path;
    bool exchange; /* where device memory is host memory: exchanged on the device */
    bool padded;   /* by a kernel that wants whole tiles, where the device has one */
    int64_t edge;  /* of super-blocks that memory does not ask for */
    bool gram;     /* B is A transposed */
    tsr_triangle triangle;
    int64_t unit;    /* C is cut at multiples of; 0: 1 */
    int64_t range;   /* ranges of k are added in their order; 0: as they come */
    bool roomy_host; /* where device memory is not the host's, this has room for all that is read */
} setup;

/* Communicators take long to make: each grid is opened once a transport. */
typedef struct {
    tsr_grid grid;
    tsr_transport *transport; /* NULL on ranks the grid leaves idle */
} opened;

typedef struct {
    tsr_world world;
    tsr_device *device;
    tsr_device_facts facts;
    int shared;
    const tsr_transport_ops *ops;
    bool each;     /* kernels in turn */
    bool emulated; /* the device's memory is the host's, but is treated as if it were not */
    opened grids[64];
    int grids_count;
    int runs;
    int growing, bands, kept_host, mapped;
    int grams[4]; /* Gram matrices of kept panels, of kept files, on several ranks, summed over ranks */
    int pieces, made, on_device, wider; /* runs that took these ways */
    int chains, portions;               /* the same: ranks handed on sums; panels went to the device in portions */
    char folder[64];                    /* for files */
    tsr_store_desc files[2];            /* A and B of this run, where they are files */
    void *memory[2];                    /* or in memory */
} bench;

static double at(uint64_t seed, int64_t i, int64_t j) { return tsr_fill_element(TSR_FILL_INTEGER, seed, i, j); }

/* What makes A, or B. */
static uint64_t seed_of(const setup *s, int which) { return which == 0 || s->gram ? 1 : 2; }

/* The half of a Gram matrix that is left out. */
static bool is_zero(const setup *s, int64_t i, int64_t j) {
    return (s->triangle == TSR_TRIANGLE_LOWER && j > i) || (s->triangle == TSR_TRIANGLE_UPPER && j < i);
}

/* op(A)'s rows, or op(B)'s columns, of k elements each. */
static double *lines(const setup *s, int which) {
    const int64_t count = which == 0 ? s->m : s->n;
    double *made = malloc((size_t)(count * s->k + 1) * sizeof *made);
    CHECK(made, "no memory");
    for (int64_t i = 0; i < count * s->k; i++) {
        const int64_t line = i / s->k, l = i % s->k;
        const bool across = which == 0 ? s->transpose_a : !s->transpose_b;
        made[i] = across ? at(seed_of(s, which), l, line) : at(seed_of(s, which), line, l);
    }
    return made;
}

static double expected(const setup *s, const double *a, const double *b, int64_t i, int64_t j) {
    double sum = 0;
    if (is_zero(s, i, j)) return 0;
    for (int64_t l = 0; l < s->k; l++) sum += a[i * s->k + l] * b[j * s->k + l];
    return s->alpha * sum + (s->beta != 0 ? s->beta * at(3, i, j) : 0);
}

/* all: C of every rank, added up. */
static void check_elements(const bench *b, const setup *s, const tsr_plan *plan, const double *all) {
    double *left = lines(s, 0), *right = lines(s, 1);
    for (int64_t i = 0; i < s->m * s->n; i++) {
        if (s->gram && tsr_plan_keeps_c(plan) && i % s->n > i / s->n) continue; /* only half of it is there */
        const double got = all[i] - (b->world.ranks - 1) * UNWRITTEN;
        const double want = expected(s, left, right, i / s->n, i % s->n);
        CHECK(got == want, "C[%lld,%lld] is %g, not %g (m %lld n %lld k %lld grid %dx%dx%d panel %lld transport %s)",
              (long long)(i / s->n), (long long)(i % s->n), got, want, (long long)s->m, (long long)s->n,
              (long long)s->k, plan->p, plan->q, plan->r, (long long)plan->panel, b->ops->name);
    }
    free(left);
    free(right);
}

static void check_product(const bench *b, const setup *s, const tsr_plan *plan, const double *mine) {
    int64_t count = s->m * s->n;
    double *all = calloc((size_t)count + 1, sizeof *all);
    CHECK(all, "no memory");
    CHECK_OK(TSR_MPI(MPI_Reduce(mine, all, (int)count, MPI_DOUBLE, MPI_SUM, 0, b->world.comm)));
    if (b->world.rank == 0) check_elements(b, s, plan, all);
    free(all);
}

static void check_record(const tsr_plan *plan, const tsr_grid *grid, const tsr_rank_record *record) {
    tsr_forecast forecast;
    CHECK_OK(tsr_plan_forecast(plan, tsr_grid_rank(grid), &forecast));
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        CHECK(record->lane_bytes[lane] == forecast.lane_bytes[lane], "the %s lane moved %g bytes, %g were forecast",
              tsr_lane_name((tsr_lane)lane), record->lane_bytes[lane], forecast.lane_bytes[lane]);
    CHECK(record->flops == forecast.flops && record->tiles == forecast.tiles,
          "%g flops in %lld tiles, forecast %g in %lld", record->flops, (long long)record->tiles, forecast.flops,
          (long long)forecast.tiles);
}

/* ---- A and B in files ------------------------------------------------------------------------ */

/* Element (i, j) is at(seed, i, j), stored as `type`: in the other byte order and compressed, chunked, or plain. */
static void write_file(const char *name, uint64_t seed, int64_t rows, int64_t cols, tsr_dtype type,
                       file_layout layout) {
    double *values = malloc((size_t)(rows * cols) * sizeof *values);
    CHECK(values, "no memory");
    for (int64_t i = 0; i < rows * cols; i++) values[i] = at(seed, i / cols, i % cols);
    hsize_t extent[2] = {(hsize_t)rows, (hsize_t)cols},
            chunk[2] = {(hsize_t)tsr_min(rows, 17), (hsize_t)tsr_min(cols, 23)};
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(2, extent, NULL);
    hid_t element = tsr_h5_memory_type(type, TSR_FIELDS_R_I), how = H5Pcreate(H5P_DATASET_CREATE);
    if (layout != CONTIGUOUS) CHECK(H5Pset_chunk(how, 2, chunk) >= 0, "chunks");
    if (layout == COMPRESSED)
        CHECK(H5Pset_shuffle(how) >= 0 && H5Pset_deflate(how, 1) >= 0 && H5Tset_order(element, H5T_ORDER_BE) >= 0,
              "filters");
    hid_t data = H5Dcreate2(file, "M", element, space, H5P_DEFAULT, how, H5P_DEFAULT);
    CHECK(data >= 0 && H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0,
          "%s was not written", name);
    H5Dclose(data);
    H5Pclose(how);
    H5Tclose(element);
    H5Sclose(space);
    CHECK(H5Fclose(file) >= 0, "%s was not closed", name);
    free(values);
}

/* Collective. Rank 0 writes A and B of the run, all describe them. */
static void make_files(bench *b, const setup *s, tsr_operand *a, tsr_operand *bb) {
    tsr_operand *operands[2] = {a, bb};
    for (int i = 0; i < 2; i++) {
        char name[80];
        tsr_matrix_name parsed;
        snprintf(name, sizeof name, "%s/%c.h5", b->folder, 'a' + i);
        if (b->world.rank == 0)
            write_file(name, seed_of(s, i), operands[i]->rows, operands[i]->cols, operands[i]->element.dtype,
                       s->layout);
        MPI_Barrier(b->world.comm);
        CHECK_OK(tsr_matrix_name_parse(name, &parsed));
        CHECK_OK(tsr_hdf5_describe(&parsed, &b->files[i]));
        operands[i]->element = tsr_store_element(&b->files[i], TSR_IO_AUTO);
    }
}

static void open_memory(bench *b, const setup *s, int which, const tsr_operand *operand, tsr_store **store) {
    int64_t ld = operand->cols + 3;
    tsr_view view = {malloc((size_t)(operand->rows * ld + 1) * tsr_dtype_bytes(operand->element.dtype)),
                     operand->element, operand->rows, operand->cols, ld};
    CHECK(view.data, "no memory");
    CHECK_OK(tsr_fill_host(TSR_FILL_INTEGER, seed_of(s, which), 0, 0, view));
    b->memory[which] = view.data;
    CHECK_OK(tsr_memory_open(view, store));
}

static void open_operand(bench *b, const setup *s, int which, const tsr_operand *operand, tsr_store **store) {
    if (s->layout == MEMORY) open_memory(b, s, which, operand, store);
    else if (s->layout == GENERATED)
        CHECK_OK(tsr_generated_open(TSR_FILL_INTEGER, seed_of(s, which), operand->rows, operand->cols,
                                    operand->element.dtype, store));
    else CHECK_OK(tsr_store_open(&b->files[which], TSR_IO_AUTO, NULL, NULL, store));
}

/* ---- one run --------------------------------------------------------------------------------- */

/* Every step once, on its lane, inside the run; a lane's steps one after another; bytes and flops as the record has
 * them. */
static void check_trace(const tsr_trace *trace, const tsr_plan *plan, const tsr_grid *grid,
                        const tsr_rank_record *record) {
    tsr_forecast forecast;
    double bytes[TSR_LANE_COUNT] = {0};
    double flops = 0;
    double seconds[TSR_LANE_COUNT] = {0};
    int64_t count, last[TSR_LANE_COUNT] = {0};
    CHECK_OK(tsr_plan_forecast(plan, tsr_grid_rank(grid), &forecast));
    const tsr_trace_event *events = tsr_trace_events(trace, &count);
    CHECK(count == forecast.steps, "%lld events of %lld steps", (long long)count, (long long)forecast.steps);
    for (int64_t i = 0; i < count; i++) {
        const tsr_trace_event *e = &events[i];
        CHECK(e->lane >= 0 && e->lane < TSR_LANE_COUNT, "lane %d", (int)e->lane);
        CHECK(e->begin_ns >= last[e->lane] && e->end_ns >= e->begin_ns,
              "event %lld of the %s lane runs from %lld to %lld ns, the one before until %lld", (long long)i,
              tsr_lane_name((tsr_lane)e->lane), (long long)e->begin_ns, (long long)e->end_ns, (long long)last[e->lane]);
        CHECK((e->kind == TSR_STEP_MULTIPLY) == (e->flops > 0) || e->flops == 0, "step of kind %d with %g flops",
              (int)e->kind, e->flops);
        last[e->lane] = e->end_ns;
        bytes[e->lane] += e->bytes;
        flops += e->flops;
        seconds[e->lane] += (double)(e->end_ns - e->begin_ns) * 1e-9;
    }
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        CHECK(bytes[lane] == record->lane_bytes[lane], "the %s lane's events have %g bytes, its record %g",
              tsr_lane_name((tsr_lane)lane), bytes[lane], record->lane_bytes[lane]);
        CHECK(fabs(seconds[lane] - record->lane_seconds[lane]) < 1e-5 + 1e-3 * record->wall_seconds,
              "the %s lane's events took %g s, its record says %g", tsr_lane_name((tsr_lane)lane), seconds[lane],
              record->lane_seconds[lane]);
    }
    CHECK(flops == record->flops, "%g flops, the record has %g", flops, record->flops);
}

static opened *open_grid(bench *b, const tsr_plan *plan) {
    for (int i = 0; i < b->grids_count; i++) {
        opened *o = &b->grids[i];
        if (o->grid.p == plan->p && o->grid.q == plan->q && o->grid.r == plan->r) return o;
    }
    CHECK(b->grids_count < (int)(sizeof b->grids / sizeof *b->grids), "more grids than the test keeps");
    opened *o = &b->grids[b->grids_count++];
    *o = (opened){0};
    CHECK_OK(tsr_grid_open(&b->world, plan->p, plan->q, plan->r, &o->grid));
    if (o->grid.active) CHECK_OK(b->ops->open(&o->grid, b->device, &o->transport));
    return o;
}

static void close_grids(bench *b) {
    for (int i = 0; i < b->grids_count; i++) {
        if (b->grids[i].transport) b->ops->close(b->grids[i].transport);
        tsr_grid_close(&b->grids[i].grid);
    }
    b->grids_count = 0;
}

static void fetch_row(tsr_executor *executor, const tsr_plan *plan, tsr_rect row, double *to) {
    double *sums = malloc((size_t)row.cols * sizeof *sums); /* floats in its front where the type is f32 */
    CHECK(sums, "no memory");
    CHECK_OK(tsr_executor_fetch(executor, row, sums));
    for (int64_t j = 0; j < row.cols; j++) {
        CHECK(to[j] == UNWRITTEN, "two parts of C overlap");
        to[j] = plan->problem.type == TSR_F32 ? ((float *)sums)[j] : sums[j];
    }
    free(sums);
}

static void fetch_block(tsr_executor *executor, const tsr_plan *plan, tsr_span rows, tsr_span cols, double *c) {
    for (int64_t row = rows.start; cols.count > 0 && row < rows.start + rows.count; row++) {
        const int64_t count = plan->problem.gram ? tsr_min(cols.count, row + 1 - cols.start) : cols.count;
        if (count > 0)
            fetch_row(executor, plan, (tsr_rect){row, cols.start, 1, count}, &c[row * plan->problem.n + cols.start]);
    }
}

static void fetch_all(tsr_executor *executor, const tsr_plan *plan, const tsr_grid *grid, double *c) {
    if (!tsr_plan_keeps_c(plan))
        CHECK_FAILS(tsr_executor_fetch(executor, (tsr_rect){0, 0, 1, 1}, c), TSR_ERR_USAGE, "TSR_DATA_PATH_DEVICE");
    for (int64_t i = 0; tsr_plan_keeps_c(plan) && i < plan->blocks_m; i++)
        for (int64_t j = 0; j < (plan->problem.gram ? i + 1 : plan->blocks_n); j++)
            fetch_block(executor, plan, tsr_plan_span(plan, TSR_OPERAND_A, i, grid->row),
                        tsr_plan_span(plan, TSR_OPERAND_B, j, grid->col), c);
}

#ifdef TSR_EMULATE_CUDA
/* Of runs whose kernels were loaded before: none was loaded by its first launch, but for those that make operands, or
 * add what another rank hands over. */
static void check_loaded(const bench *b) {
    const char *cold = tsr_emulation_cold(true);
    CHECK(b->runs % 4 == 0 || !cold || strstr(cold, "fill"), "run %d: kernel %s was not loaded before", b->runs, cold);
}
#else
static void check_loaded(const bench *b) { (void)b; }
#endif

static void execute(bench *b, const setup *s, const tsr_plan *plan, const tsr_gemm_kernel *kernel, double *c) {
    opened *o = open_grid(b, plan);
    if (!o->grid.active) return;
    tsr_rank_record record = {0};
    tsr_executor *executor;
    tsr_execution x = {.plan = plan,
                       .grid = &o->grid,
                       .device = b->device,
                       .kernel = kernel,
                       .transport = o->transport,
                       .io_threads = 2,
                       .write_threads = 2};
    open_operand(b, s, 0, &plan->problem.operand[TSR_OPERAND_A], &x.a);
    if (!tsr_plan_shares(plan)) open_operand(b, s, 1, &plan->problem.operand[TSR_OPERAND_B], &x.b);
    if (s->beta != 0) CHECK_OK(tsr_generated_open(TSR_FILL_INTEGER, 3, s->m, s->n, TSR_I16, &x.c0));
    CHECK_OK(tsr_memory_open((tsr_view){c, {TSR_F64, false}, s->m, s->n, s->n}, &x.c));
    if (b->runs % 2) { /* runs without one must work too */
        tsr_forecast forecast;
        CHECK_OK(tsr_plan_forecast(plan, tsr_grid_rank(&o->grid), &forecast));
        CHECK_OK(tsr_trace_open(forecast.steps, &x.trace));
    }
    if (b->runs % 4) { /* as runs do it; without it too */
        CHECK_OK(tsr_buffers_open(plan, b->device, NULL, &x.buffers));
        CHECK_OK(tsr_kernels_load(plan, tsr_grid_rank(&o->grid), b->device, kernel, false, NULL, x.buffers));
    }
    CHECK_OK(tsr_executor_open(&x, &executor));
    if (b->runs % 3 == 0 && !x.trace) { /* a run before, of which nothing may be left */
        CHECK_OK(tsr_executor_run(executor, &record));
        for (int64_t i = 0; i < s->m * s->n; i++) c[i] = UNWRITTEN;
        record = (tsr_rank_record){0};
    }
    CHECK_OK(tsr_executor_run(executor, &record));
    check_loaded(b);
    check_record(plan, &o->grid, &record);
    fetch_all(executor, plan, &o->grid, c);
    if (x.trace) check_trace(x.trace, plan, &o->grid, &record);
    tsr_executor_close(executor);
    tsr_trace_close(x.trace);
    tsr_store_close(x.a);
    tsr_store_close(x.b);
    tsr_store_close(x.c0);
    tsr_store_close(x.c);
    free(b->memory[0]);
    free(b->memory[1]);
    b->memory[0] = b->memory[1] = NULL;
}

/* All ranks count the same runs, so they take the same kernel. Small integers are exact in every type: any kernel
 * will do. */
static const tsr_gemm_kernel *choose_kernel(const bench *b, const setup *s, const tsr_problem *problem) {
    const tsr_gemm_request request = {problem->operand[TSR_OPERAND_A].element.dtype,
                                      problem->operand[TSR_OPERAND_B].element.dtype,
                                      problem->type,
                                      TSR_ACCURACY_IEEE,
                                      problem->m,
                                      problem->n,
                                      problem->k,
                                      0,
                                      1};
    const tsr_gemm_kernel *kernel;
    int count;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; (b->each || s->padded) && i < count; i++) {
        const tsr_gemm_kernel *candidate = kernels[(b->runs + i) % count];
        if (s->padded && candidate->multiple == 1) continue;
        const bool halves = request.a == TSR_F16 && request.b == TSR_F16;
        if (candidate->device == b->facts.kind && candidate->type == problem->type &&
            (candidate->input != TSR_F16 || halves) && tsr_gemm_runs_on(candidate, b->facts.arch))
            return b->runs % 2 ? tsr_gemm_for_auto(candidate) : candidate;
    }
    CHECK_OK(tsr_gemm_choose("auto", &b->facts, &request, &kernel));
    return kernel;
}

/* Each row of each block of a C that stays on the device is looked for among all steps. */
static bool is_slow_to_fetch(const tsr_plan *plan) {
    const int64_t rows = plan->problem.m * plan->blocks_n;
    const int64_t products = plan->blocks_m * plan->blocks_n * tsr_ceil_div(plan->problem.k, plan->panel);
    return tsr_plan_keeps_c(plan) && rows * products > 1000000;
}

static void run_one(bench *b, const setup *s) {
    tsr_operand a = {.rows = s->transpose_a ? s->k : s->m,
                     .cols = s->transpose_a ? s->m : s->k,
                     .element = {s->type_a, false},
                     .transpose = s->transpose_a};
    tsr_operand bb = {.rows = s->transpose_b ? s->n : s->k,
                      .cols = s->transpose_b ? s->k : s->n,
                      .element = {s->type_b, false},
                      .transpose = s->transpose_b};
    tsr_operand c0 = {.rows = s->m, .cols = s->n, .element = {TSR_I16, false}};
    tsr_problem problem;
    if (s->layout != GENERATED && s->layout != MEMORY) make_files(b, s, &a, &bb);
    if (s->direct && s->layout == MEMORY) a.path = bb.path = TSR_DATA_PATH_MAPPED;
    if (s->direct && s->layout == GENERATED && tsr_fill_find(b->facts.kind)) a.path = bb.path = TSR_DATA_PATH_DEVICE;
    a.copied = bb.copied = b->runs % 3 == 0;
    CHECK_OK(tsr_problem_make(a, bb, &c0, tsr_real(s->alpha), tsr_real(s->beta), &problem));
    problem.out = TSR_F64; /* what the memory store holds */
    problem.c_path = s->c_path;
    if (s->unit > 0) problem.unit_m = problem.unit_n = s->unit;
    if (s->gram) CHECK_OK(tsr_problem_take_gram(&problem, s->triangle));
    tsr_resources res = {.ranks = b->world.ranks,
                         .host_memory = b->facts.host_memory,
                         .device_limit = s->memory,
                         .edge = s->edge,
                         .device_exchange = b->ops->device_memory || (s->exchange && b->emulated),
                         .host_limit = s->roomy_host ? (size_t)1 << 30 : s->memory,
                         .panel = s->panel,
                         .multiple = 1,
                         .portion_bytes = (size_t)512 << b->runs % 4,
                         .grid = {s->grid[0], s->grid[1], s->grid[2]}};
    if (s->range > 0) {
        tsr_problem_fix_blocks(&problem, 4, s->range);
        if (res.panel > 0) res.panel = tsr_round_up(res.panel, s->range);
        res.grid[2] = (int)tsr_min(res.grid[2], tsr_ceil_div(s->k, s->range));
    }
    int schedules = 0;
    while (tsr_schedules()[schedules]) schedules++;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is a schedule */
    res.schedule = tsr_schedules()[b->runs / 2 % schedules];
    res.rates = tsr_rates_typical(b->facts.kind == TSR_DEVICE_CUDA, b->ops->device_memory, problem.type, 1);
    /* bytes count, C's most */
    for (int lane = 0; lane < TSR_LANE_COUNT && s->edge > 0; lane++)
        res.rates.lane[lane] *= lane == TSR_LANE_DOWNLOAD ? 1e-8 : 1e-6;
    if (s->exchange) res.rates.lane[TSR_LANE_UPLOAD] *= 1e-6; /* too slow for every rank to copy all of it */
    const tsr_gemm_kernel *kernel = choose_kernel(b, s, &problem);
    problem.input = kernel->input;
    res.multiple = kernel->multiple;
    /* whole tiles have to fit */
    if (kernel->multiple > 1) {
        res.device_limit += (size_t)1 << 20;
        res.host_limit += (size_t)1 << 20;
    }
    if (kernel->workspace_bytes) { /* the limit is meant for matrices */
        res.workspace_bytes = kernel->workspace_bytes;
        const size_t room = kernel->workspace_bytes(tsr_max(1, s->m), tsr_max(1, s->n), tsr_max(1, s->k));
        res.device_limit += room;
        if (res.host_memory) res.host_limit += room;
    }
    tsr_plan plan;
    tsr_status status = tsr_plan_make(&problem, &res, &plan);
    for (int tries = 0; s->any_memory && tries < 10; tries++) {
        if (status != TSR_ERR_LIMIT && (status != TSR_OK || !is_slow_to_fetch(&plan))) break;
        res.device_limit *= 8;
        res.host_limit *= 8;
        status = tsr_plan_make(&problem, &res, &plan);
    }
    CHECK_OK(status);
    double *c = malloc((size_t)(s->m * s->n + 1) * sizeof *c);
    CHECK(c, "no memory");
    for (int64_t i = 0; i < s->m * s->n; i++) c[i] = UNWRITTEN;
    execute(b, s, &plan, kernel, c);
    check_product(b, s, &plan, c);
    free(c);
    b->runs++;
    b->grams[0] += problem.gram && plan.blocks_m > 1 && plan.operand[TSR_OPERAND_A].keep == TSR_KEEP_BAND;
    b->grams[1] += problem.gram && plan.blocks_m > 1 && plan.operand[TSR_OPERAND_A].keep_host;
    b->grams[2] += problem.gram && plan.p * plan.q > 1;
    b->grams[3] += problem.gram && plan.r > 1;
    b->growing += tsr_plan_grows(&plan) && plan.blocks_m > 1 && plan.blocks_n > 1;
    b->bands += plan.operand[TSR_OPERAND_A].keep == TSR_KEEP_BAND;
    b->kept_host += plan.operand[TSR_OPERAND_A].keep_host || plan.operand[TSR_OPERAND_B].keep_host;
    const bool mapped = tsr_plan_path(&plan, a.path) == TSR_DATA_PATH_MAPPED;
    b->mapped += mapped;
    b->pieces += mapped && tsr_plan_exchanges(&plan, a.path) && plan.q > 1;
    b->wider += kernel->multiple > 1 && !tsr_plan_finishes(&plan) && tsr_round_up(s->n, kernel->multiple) > s->n;
    b->made += tsr_plan_path(&plan, a.path) == TSR_DATA_PATH_DEVICE;
    b->on_device += tsr_plan_keeps_c(&plan);
    b->chains += tsr_plan_chains(&plan);
    b->portions += tsr_plan_reads_portions(&plan, TSR_OPERAND_A) && s->m > 0 && s->n > 0 && s->k > 0;
}

#endif
