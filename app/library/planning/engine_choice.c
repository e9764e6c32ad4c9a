/* With what a run multiplies (run_state.h): device, kernel, transport and plan, the same on every rank. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/planning/reproducible.h"
#include "app/library/run_state.h"
#include "kernels/device/host_memory.h"
#include "mpi/ranks/rank_device.h"

/* A rank's part of a length: whether it is a multiple of 8 is the length's own affair. */
static int64_t part_of(int64_t length, double share) {
    int64_t part = (int64_t)ceil((double)length / share);
    return length % 8 == 0 ? tsr_round_up(part, 8) : part;
}

/* Order of kernels for devices that differ. What auto takes by measurement alone was the fastest of all. */
static int order_of(const tsr_gemm_kernel *kernel) { return kernel->speed_rank > 0 ? kernel->speed_rank : INT_MAX; }

/* One plan holds for all ranks, so all take one kernel: of the fastest ones for GPUs that differ, the slowest. */
static tsr_status choose_kernel(tsr_run *run, tsr_status status) {
    MPI_Comm comm = run->world->comm;
    const tsr_problem *x = &run->problem;
    const bool stack = x->batch > 1; /* its products are shared whole */
    const bool any = strcmp(run->engine.kernel, "auto") == 0;
    const double share = stack ? 1 : cbrt((double)run->world->ranks);
    const double flops = tsr_run_flops(run) * (double)tsr_run_rounds(run);
    const tsr_extents all = tsr_problem_real_product(x);
    run->request = (tsr_gemm_request){.a = tsr_dtype_part(x->operand[TSR_OPERAND_A].element.dtype),
                                      .b = tsr_dtype_part(x->operand[TSR_OPERAND_B].element.dtype),
                                      .type = x->type,
                                      .accuracy = run->engine.accuracy,
                                      .m = part_of(stack ? tsr_problem_product_rows(x) : all.m, share),
                                      .n = part_of(all.n, share),
                                      .k = part_of(all.k, share),
                                      /* none, where k or alpha is 0, are few: 0 would stand for many */
                                      .flops = fmax(1, flops / run->world->ranks),
                                      .batch = stack ? tsr_ceil_div(x->batch, run->world->ranks) : 1};
    struct {
        int speed, rank;
    } slowest = {0, run->world->rank};
    struct {
        char name[64];
        tsr_dtype input;
    } choice = {"", x->type};
    if (status == TSR_OK) status = tsr_gemm_choose(run->engine.kernel, &run->facts, &run->request, &run->kernel);
    TSR_TRY(tsr_agree(comm, status));
    slowest.speed = order_of(run->kernel);
    snprintf(choice.name, sizeof choice.name, "%s", run->kernel->name);
    choice.input = run->kernel->input;
    TSR_TRY(tsr_reduce_all(comm, &slowest, 1, MPI_2INT, MPI_MINLOC));
    TSR_TRY(TSR_MPI(MPI_Bcast(&choice, sizeof choice, MPI_BYTE, slowest.rank, comm)));
    run->problem.input = choice.input;
    status = tsr_gemm_find(choice.name, &run->facts, choice.input, x->type, &run->kernel);
    if (status == TSR_OK && any) run->kernel = tsr_gemm_for_auto(run->kernel);
    if (status == TSR_OK && run->engine.reproducible) status = tsr_reproducible_take(&run->kernel, &run->reproducible);
    if (status == TSR_OK && run->kernel->prepare) status = run->kernel->prepare(run->threads);
    return tsr_agree(comm, status);
}

/* Ranks that share a GPU take turns on it: that works, and is rarely what was meant. */
static tsr_status warn_of_sharing(const tsr_run *run) {
    int most = run->facts.kind == TSR_DEVICE_CUDA ? run->shared : 1;
    TSR_TRY(tsr_reduce_all(run->world->comm, &most, 1, MPI_INT, MPI_MAX));
    if (most > 1)
        tsr_warn(run->world->warnings, "up to %d ranks share a GPU and its memory; one rank a GPU is faster", most);
    return TSR_OK;
}

/* What a rank's GPU says of itself, where it speaks against it, or is asked for and is nothing. */
typedef struct {
    char text[640]; /* "": all is well */
} doubt;

_Static_assert(TSR_HEALTH_CHARS <= TSR_RANK_TEXT_CHARS, "a record holds what a GPU says of itself");

#define MOST_DOUBTS 8 /* that are told one by one */

/* Rank 0, of all ranks; those of one GPU count once. */
static void warn_of_doubts(const tsr_run *run, const doubt *all) {
    int told = 0, more = 0;
    for (int i = 0; i < run->world->ranks; i++) {
        bool known = all[i].text[0] == '\0';
        for (int j = 0; j < i && !known; j++) known = strcmp(all[i].text, all[j].text) == 0;
        if (known) continue;
        if (told++ < MOST_DOUBTS) tsr_warn(run->world->warnings, "%s", all[i].text);
        else more++;
    }
    if (more > 0)
        tsr_warn(run->world->warnings, "%d GPUs more are in doubt: the record's table of ranks has all", more);
}

static tsr_status gather_doubts(const tsr_run *run, const doubt *mine) {
    const tsr_world *world = run->world;
    int some = mine->text[0] != '\0';
    doubt *all = NULL;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_reduce_all(world->comm, &some, 1, MPI_INT, MPI_MAX));
    if (!some) return TSR_OK;
    if (world->rank == 0 && !(all = calloc((size_t)world->ranks, sizeof *all)))
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for what %d GPUs say of themselves", world->ranks);
    TSR_TRY(tsr_agree(world->comm, status));
    status = TSR_MPI(MPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0, world->comm));
    if (all && status == TSR_OK) warn_of_doubts(run, all);
    free(all);
    return status;
}

/* A GPU is looked at before it is trusted with hours: a warning of each that is in doubt, or with --healthy an
 * error. What cannot be read is worth a warning where somebody asked. */
static tsr_status look_at_health(tsr_run *run, const tsr_gpu_readings *readings) {
    const tsr_world *world = run->world;
    const bool asked = run->engine.healthy;
    doubt mine = {""};
    tsr_status status = TSR_OK;
    if (run->facts.kind == TSR_DEVICE_CUDA) {
        const tsr_gpu_verdict verdict = tsr_gpu_judge(readings, run->mine.health);
        if (verdict == TSR_GPU_DOUBTFUL || (verdict == TSR_GPU_UNKNOWN && asked))
            snprintf(mine.text, sizeof mine.text, "the health of %s (%s) on host %s is %s", run->facts.name,
                     run->facts.bus_id, world->host, run->mine.health);
        if (verdict == TSR_GPU_DOUBTFUL && asked)
            status = tsr_fail(TSR_ERR_DEVICE,
                              "%s: reset it (nvidia-smi --gpu-reset), take another, or leave out --healthy", mine.text);
    }
    TSR_TRY(tsr_agree(world->comm, status));
    return gather_doubts(run, &mine);
}

/* How the plan reads a file whose disk may be slower than memory. Panels along stored columns take a piece of every
 * row, too short for a disk, so the page cache gets what follows, too; a file that is read many times stays there.
 * Either takes a quarter of what is free at most. */
static void hint_reading(tsr_store_desc *desc, bool along_columns, int64_t reads, int64_t host_free) {
    const int64_t many = 4;
    const int64_t window = 256 << 10;
    const int64_t page = 4096;
    int64_t rows = tsr_max(1, desc->rows), bytes = rows * desc->cols * (int64_t)tsr_dtype_bytes(desc->element.dtype);
    desc->keep_cached = reads >= many && bytes <= host_free / 4;
    if (along_columns) desc->row_ahead_bytes = tsr_min(window, host_free / 4 / rows / page * page);
}

static void hint_readings(tsr_run *run) {
    tsr_host_memory host;
    tsr_host_memory_find("", &host);
    const double taken = run->plan.host_bytes * run->world->local_ranks; /* by the plans of this node's ranks */
    const int64_t left = (int64_t)fmax(0, (double)host.available - taken);
    hint_reading(&run->from.a, !run->products.transpose_left, tsr_plan_reads(&run->plan, TSR_OPERAND_A), left);
    hint_reading(&run->from.b, run->products.transpose_right, tsr_plan_reads(&run->plan, TSR_OPERAND_B), left);
}

/* How long the products last on so many teams, if a product is made by n ranks in 1/n of the time. */
static double team_time(const tsr_run *run, int teams) {
    const int members = run->world->ranks / teams;
    const int64_t products = tsr_ceil_div(tsr_run_rounds(run), teams);
    return (double)products / members;
}

/* Several products are shared out to teams of ranks, as many as last no longer than 1.25 of the shortest time: ranks of
 * a team exchange panels, and whole products need none of that. */
static void choose_teams(tsr_run *run) {
    const int ranks = run->world->ranks, *grid = run->engine.grid;
    const double together = grid[0] > 0 ? (double)grid[0] * grid[1] * grid[2] : 1; /* asked for */
    double shortest = INFINITY;
    int most = 1;
    for (int teams = 1; teams <= tsr_run_rounds(run) && teams * together <= fmax(ranks, together); teams++) {
        shortest = fmin(shortest, team_time(run, teams));
        most = teams;
    }
    while (most > 1 && team_time(run, most) > 1.25 * shortest) most--;
    run->teams = most;
    run->team_ranks = ranks / most;
}

tsr_status tsr_run_choose(tsr_run *run, tsr_device_opening *opening) {
    opening->threads = run->limits.threads;
    TSR_TRY(tsr_device_end(run->world, opening, &run->device, &run->shared));
    run->threads = opening->threads;
    tsr_status status = run->device->ops->facts(run->device, &run->facts);
    TSR_TRY(tsr_agree(run->world->comm, status));
    TSR_TRY(look_at_health(run, &opening->health));
    TSR_TRY(choose_kernel(run, status));
    TSR_TRY(warn_of_sharing(run));
    tsr_run_mark(run, TSR_STARTUP_DEVICE);
    TSR_TRY(tsr_transport_choose(run->world, run->engine.transport, &run->facts, run->shared, &run->transport_ops));
    tsr_run_mark(run, TSR_STARTUP_TRANSPORT);
    choose_teams(run);
    TSR_TRY(tsr_run_pin_memory(run));
    TSR_TRY(tsr_run_make_plan(run));
    hint_readings(run);
    tsr_run_mark(run, TSR_STARTUP_PLAN);
    return TSR_OK;
}
