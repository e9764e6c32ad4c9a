/* What the parts of a multiplication need alone, on all ranks at once: the kernel on the largest product it gets,
 * and making A and B where they are made on the device. Measured after the runs, in memory of its own; where there
 * is not enough of it the report says so. */
#include <math.h>
#include <stdio.h>

#include "app/bench/bench.h"
#include "app/bench/bench_multiply.h"
#include "app/bench/bench_product.h"
#include "mpi/schedule/schedule.h"

/* The largest part a rank has of a super-block, over its whole k, or as much of it as memory holds. */
static tsr_status choose_product(const tsr_bench_multiply_run *b, tsr_bench_product *p) {
    const tsr_run *j = &b->job;
    const tsr_gemm_kernel *kernel = j->kernel;
    const double input = (double)tsr_dtype_bytes(kernel->input), type = (double)tsr_dtype_bytes(j->problem.type);
    tsr_device_facts facts;
    p->input = kernel->input;
    const tsr_extents reals = tsr_problem_reals(&j->problem);
    p->m = tsr_round_up(tsr_plan_local_m(&j->plan), kernel->multiple) * reals.m;
    p->n = tsr_round_up(tsr_plan_local_n(&j->plan), kernel->multiple) * reals.n;
    p->k = tsr_round_up(tsr_ceil_div(b->o->shape.k, j->plan.r), kernel->multiple) * reals.k;
    TSR_TRY(j->device->ops->facts(j->device, &facts));
    const double room =
        0.8 * (double)facts.memory_free_bytes / (facts.kind == TSR_DEVICE_CUDA ? j->shared : b->world->local_ranks) -
        type * (double)p->m * (double)p->n;
    while (p->k > kernel->multiple) {
        const size_t workspace = kernel->workspace_bytes ? kernel->workspace_bytes(p->m, p->n, p->k) : 0;
        if (input * (double)p->k * (double)(p->m + p->n) + (double)workspace <= room) break;
        p->k = tsr_round_up(p->k / 2, kernel->multiple);
    }
    return TSR_OK;
}

/* ---- making A and B -------------------------------------------------------------------------- */

typedef struct {
    const tsr_bench_multiply_run *b;
    tsr_stream *stream;
    void *memory;
    int64_t elements; /* of the largest step: what memory holds */
} making;

/* read: where the device is the host */
static bool makes(const tsr_step *step) { return step->kind == TSR_STEP_GENERATE || step->kind == TSR_STEP_READ; }

static tsr_status measure_step(void *context, const tsr_step *step) {
    making *m = context;
    if (makes(step)) m->elements = tsr_max(m->elements, tsr_rect_elements(step->rect));
    return TSR_OK;
}

static tsr_status make_step(void *context, const tsr_step *step) {
    const making *m = context;
    tsr_device *device = m->b->job.device;
    const tsr_bench_multiply_options *o = m->b->o;
    if (!makes(step) || tsr_rect_empty(step->rect)) return TSR_OK;
    const uint64_t seed = step->operand == TSR_OPERAND_A ? TSR_BENCH_SEED_A : TSR_BENCH_SEED_B;
    const tsr_view to = {m->memory, {o->type, false}, step->rect.rows, step->rect.cols, step->rect.cols};
    return tsr_fill_find(device->ops->kind)->fill(device, m->stream, o->fill, seed, step->rect.row, step->rect.col, to);
}

/* Everything of A and B that this rank makes in a run, piece by piece. */
static tsr_status make_all(void *context) {
    const tsr_run *j = &((const making *)context)->b->job;
    return j->plan.schedule->emit(&j->plan, tsr_grid_rank(&j->grid), make_step, context);
}

static tsr_status open_making(making *m, tsr_bench_clock *clock) {
    const tsr_run *j = &m->b->job;
    TSR_TRY(j->plan.schedule->emit(&j->plan, tsr_grid_rank(&j->grid), measure_step, m));
    TSR_TRY(tsr_bench_clock_open(j->device, clock));
    m->stream = clock->stream;
    return j->device->ops->allocate(j->device, (size_t)m->elements * tsr_dtype_bytes(m->b->o->type), &m->memory);
}

/* ---- both, on all ranks ---------------------------------------------------------------------- */

/* Collective: whether all ranks could; rank 0 keeps why not. A failure here is no failure of the run, which is
 * measured and checked. */
static bool all_could(tsr_bench_multiply_run *b, tsr_status mine) {
    if (tsr_agree(b->world->comm, mine) == TSR_OK) return true;
    snprintf(b->alone.why, sizeof b->alone.why, "%s", tsr_message());
    tsr_message_set("");
    return false;
}

static tsr_status measure_kernel(tsr_bench_multiply_run *b) {
    tsr_run *j = &b->job;
    const bool active = j->grid.active;
    tsr_bench_product product = {0};
    double median, best = INFINITY, mine = 0;
    double least;
    int64_t repeats;
    /* before any rank takes of what is free */
    bool could = all_could(b, active ? choose_product(b, &product) : TSR_OK);
    b->alone.m = product.m;
    b->alone.n = product.n;
    b->alone.k = product.k;
    const double flops = 2.0 * (double)product.m * (double)product.n * (double)product.k;
    /* all begin together */
    if (could) could = all_could(b, active ? tsr_bench_product_open(j->device, &product) : TSR_OK);
    if (could)
        could = all_could(
            b, active ? tsr_bench_product_time(&product, j->kernel, b->o->repeat, &median, &best, &repeats) : TSR_OK);
    tsr_bench_product_close(&product);
    b->alone.gflops = b->alone.slowest = NAN;
    if (!could) return TSR_OK;
    if (active) mine = flops / best / 1e9;
    least = active ? mine : INFINITY;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&mine, &b->alone.gflops, 1, MPI_DOUBLE, MPI_SUM, b->world->comm)));
    return TSR_MPI(MPI_Allreduce(&least, &b->alone.slowest, 1, MPI_DOUBLE, MPI_MIN, b->world->comm));
}

static tsr_status measure_making(tsr_bench_multiply_run *b) {
    const tsr_run *j = &b->job;
    making m = {.b = b};
    tsr_bench_clock clock = {0};
    double median, best = 0;
    int64_t repeats;
    bool could = all_could(b, j->grid.active ? open_making(&m, &clock) : TSR_OK);
    if (could)
        could = all_could(
            b, j->grid.active ? tsr_bench_time(&clock, make_all, &m, b->o->repeat, &median, &best, &repeats) : TSR_OK);
    if (j->grid.active) j->device->ops->release(j->device, m.memory);
    tsr_bench_clock_close(&clock);
    return could ? TSR_MPI(MPI_Allreduce(&best, &b->alone.making_seconds, 1, MPI_DOUBLE, MPI_MAX, b->world->comm))
                 : TSR_OK;
}

tsr_status tsr_bench_alone_run(tsr_bench_multiply_run *b) {
    b->alone.making_seconds = NAN;
    TSR_TRY(measure_kernel(b));
    return b->o->memory ? TSR_OK : measure_making(b);
}
