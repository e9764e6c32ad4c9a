/* From a run's plan to an open executor (run_state.h). Every phase ends in agreement: before the first panel moves, a
 * failure on one rank is a failure of all, reported once. */
#include <stdlib.h>
#include <string.h>

#include "app/library/inputs.h"
#include "app/library/run_state.h"
#include "io/describe/describe.h"
#include "io/output/output_chunks.h"
#include "io/stores.h"
#include "mpi/execute/load.h"
#include "mpi/execute/memory/buffers.h"
#include "mpi/schedule/forecast.h"

/* As the plan reads or writes it: the matrices of a stack one below the other. */
static tsr_store_desc as_planned(const tsr_run *run, const tsr_store_desc *desc) {
    tsr_store_desc planned = *desc;
    if (run->problem.batch > 1 && desc->matrices > 1) tsr_store_join(&planned);
    return planned;
}

static tsr_status open_input(tsr_run *run, int which, const tsr_store_desc *desc, tsr_store **store) {
    if (tsr_run_in_memory(run, which)) return tsr_holdings_open(&run->memory[which].holdings, desc, store);
    return tsr_store_open(desc, run->io, &run->grid.ranks, which == TSR_RUN_C0 ? NULL : &run->io_used, store);
}

static tsr_status open_stores(tsr_run *run) {
    const tsr_store_desc a = as_planned(run, &run->from.a), b = as_planned(run, &run->from.b);
    const tsr_store_desc c0 = as_planned(run, &run->from.c0);
    tsr_output output = run->output;
    output.desc = as_planned(run, &run->output.desc);
    /* Opening through MPI-IO is collective: a rank that fails must not leave the others in the next one. */
    if (run->problem.k > 0) {
        TSR_TRY(tsr_agree(run->grid.ranks, open_input(run, TSR_RUN_A, &a, &run->a)));
        if (!tsr_plan_shares(&run->plan)) TSR_TRY(tsr_agree(run->grid.ranks, open_input(run, TSR_RUN_B, &b, &run->b)));
    }
    if (run->problem.add_c0)
        TSR_TRY(tsr_agree(run->grid.ranks, open_input(run, tsr_run_place_of_c0(run), &c0, &run->c0)));
    if (tsr_run_in_memory(run, TSR_RUN_C))
        return tsr_holdings_open(&run->memory[TSR_RUN_C].holdings, &output.desc, &run->c);
    TSR_TRY(tsr_output_open(&output, run->io, &run->grid.ranks, &run->c));
    return tsr_run_sum_up_writes(run);
}

tsr_status tsr_run_open_inputs(tsr_run *run) {
    const tsr_store_desc a = as_planned(run, &run->from.a), b = as_planned(run, &run->from.b);
    TSR_TRY(tsr_agree(run->grid.ranks, tsr_store_open(&a, run->io, &run->grid.ranks, NULL, &run->a)));
    return tsr_agree(run->grid.ranks, tsr_store_open(&b, run->io, &run->grid.ranks, NULL, &run->b));
}

tsr_status tsr_run_open_written(tsr_run *run) {
    const tsr_store_desc c = as_planned(run, &run->output.desc);
    run->read_back = (tsr_digest){.parts = 0};
    TSR_TRY(tsr_run_open_inputs(run));
    TSR_TRY(tsr_store_open(&c, TSR_IO_AUTO, NULL, NULL, &run->c));
    return tsr_run_compares_written(run) ? tsr_digest_reads(run->c, &run->read_back) : TSR_OK;
}

int tsr_run_cores(const tsr_run *run) {
    const int most = run->limits.threads;
    return most > 0 ? (int)tsr_min(most, run->world->cores) : run->world->cores;
}

int tsr_run_io_threads(const tsr_run *run) {
    const int asked = run->limits.io_threads, most = run->limits.threads;
    if (asked > 0) return most > 0 ? (int)tsr_min(asked, most) : asked;
    return (int)tsr_max(1, tsr_min(8, tsr_run_cores(run) / 2));
}

int tsr_run_write_threads(const tsr_run *run) {
    const bool encodes = run->spec.chunk_rows > 0 && run->limits.io_threads == 0;
    return encodes ? (int)tsr_min(TSR_ENCODERS_MAX, tsr_run_cores(run)) : tsr_run_io_threads(run);
}

/* `done`, `under_way`: shares of this rank's products. */
static void advance(void *context, double done, double under_way) {
    const tsr_run *run = context;
    const double mine = (double)tsr_run_share(run).count, before = (double)run->products_done;
    const double flops = tsr_run_flops(run) * (double)tsr_run_rounds(run); /* the other teams are about as far */
    const double share = (before + done) / mine;
    tsr_listener_advance(&run->calls->progress, share * flops, under_way / mine * flops);
    if (run->calls->multiplied) run->calls->multiplied(run->calls->context, share);
}

static bool stopped(void *context) { return tsr_run_stopped(context); }

static tsr_status written(void *context, tsr_rect rect, uint32_t sum) { return tsr_run_note_part(context, rect, sum); }

tsr_status tsr_run_open_trace(tsr_run *run) {
    tsr_forecast forecast;
    if (!run->traced) return TSR_OK;
    TSR_TRY(tsr_plan_forecast(&run->plan, tsr_grid_rank(&run->grid), &forecast));
    return tsr_trace_open(tsr_run_trace_steps(run, forecast.steps * tsr_run_share(run).count), &run->trace);
}

static tsr_status allocate(void *context) {
    tsr_run *run = context;
    TSR_TRY(run->device->ops->use(run->device));
    TSR_TRY(tsr_buffers_open(&run->plan, run->device, run->world->kept, &run->buffers));
    return tsr_kernels_load(&run->plan, tsr_run_team_rank(run), run->device, run->kernel, tsr_run_kernel_checks(run),
                            run->world->kept, run->buffers);
}

tsr_status tsr_run_open_executor(tsr_run *run) {
    if (!run->buffers) TSR_TRY(allocate(run));
    tsr_execution x = {.plan = &run->plan,
                       .grid = &run->grid,
                       .device = run->device,
                       .kernel = run->kernel,
                       .kernel_checks = tsr_run_kernel_checks(run),
                       .transport = run->transport,
                       .a = run->a,
                       .b = run->b,
                       .c0 = run->c0,
                       .c = run->c,
                       .io_threads = tsr_run_io_threads(run),
                       .write_threads = tsr_run_write_threads(run),
                       .buffers = run->buffers,
                       .kept = run->world->kept,
                       .trace = run->trace,
                       .signs = tsr_watch_signs(run->watch),
                       .progress = advance,
                       .written = run->resume.asked ? written : NULL,
                       .stopped = stopped,
                       .progress_context = run};
    run->buffers = NULL;
    return tsr_executor_open(&x, &run->executor);
}

void tsr_run_close_executor(tsr_run *run) {
    tsr_executor_close(run->executor);
    run->executor = NULL;
}

static tsr_status open_executor(tsr_run *run) {
    TSR_TRY(tsr_run_open_trace(run));
    return tsr_run_open_executor(run);
}

static tsr_status allocate_output(void *context) {
    tsr_run *run = context;
    tsr_run_phase(run, TSR_PHASE_ALLOCATE);
    const tsr_status status = tsr_output_allocate(&run->output);
    tsr_run_phase_done(run);
    return status;
}

static void announce_output(const tsr_run *run) {
    if (run->calls->output_made) run->calls->output_made(run->calls->context, &run->output);
}

/* What describes the dimension of an input that becomes one of C's; `dropped`: C lacks it. */
static void find_carried(tsr_run *run, const tsr_store_desc *desc, bool rows, bool dropped, bool attributes,
                         tsr_carried *carried) {
    tsr_carried_question question = {.file = desc->name.file,
                                     .path = desc->name.path,
                                     .from_end = rows && !desc->cols_missing ? 2 : 1,
                                     .length = rows ? desc->dataset_rows : desc->dataset_cols,
                                     .first = rows ? desc->row0 : desc->col0,
                                     .count = rows ? desc->rows : desc->cols,
                                     .attributes = attributes};
    if (rows && run->spec.joined) { /* all of its matrices one below the other, and C's */
        question.first = 0;
        question.length = question.count = run->spec.rows;
    }
    if (dropped || (rows ? desc->rows_missing : desc->cols_missing)) question.from_end = TSR_CARRIED_NO_DIMENSION;
    if (tsr_store_kind_of(&desc->name)->carries) tsr_describe_carried(run->world->describer, &question, carried);
}

/* The dimension of an input's dataset that is dimension `d` of C's stack; -1 where that is broadcast. */
static int lead_of(const tsr_run *run, const tsr_matrix_name *name, int d) {
    const tsr_products *p = &run->products;
    int own[TSR_LEADS_MAX], count = 0;
    for (int lead = 0; lead < tsr_leads_of(name->dimensions); lead++)
        if (!name->lead_dropped[lead]) own[count++] = lead;
    const int at = d - (p->stack_dimensions - count);
    if (at < 0 || name->lead1[own[at]] - name->lead0[own[at]] != p->stack[d]) return -1;
    return own[at];
}

/* What describes dimension `d` of C's stack: A's, or B's where A is broadcast or has nothing to say. */
static void find_carried_lead(tsr_run *run, int d) {
    const tsr_store_desc *first = run->swapped ? &run->from.b : &run->from.a;
    const tsr_store_desc *second = run->swapped ? &run->from.a : &run->from.b;
    tsr_carried *carried = &run->carried[d];
    for (int i = 0; i < 2 && carried->scale_count == 0 && !carried->label[0] && !carried->left_out[0]; i++) {
        const tsr_store_desc *desc = i == 0 ? first : second;
        const int lead = lead_of(run, &desc->name, d);
        if (lead < 0 || !tsr_store_kind_of(&desc->name)->carries) continue;
        const tsr_carried_question question = {.file = desc->name.file,
                                               .path = desc->name.path,
                                               .from_end = desc->name.dimensions - lead,
                                               .length = desc->lead_size[lead],
                                               .first = desc->name.lead0[lead],
                                               .count = run->products.stack[d]};
        run->carried_of[d] = desc;
        tsr_describe_carried(run->world->describer, &question, carried);
    }
}

static void carry(tsr_run *run) {
    const tsr_products *p = &run->products;
    const int leads = run->spec.stack_dimensions;
    if (!tsr_store_kind_of(&run->spec.name)->carries) return;
    run->carried = calloc((size_t)leads + 2, sizeof *run->carried);
    if (!run->carried) return;
    for (int d = 0; d < leads; d++) find_carried_lead(run, d);
    run->carried_of[leads] = &run->from.a;
    run->carried_of[leads + 1] = &run->from.b;
    find_carried(run, &run->from.a, !p->transpose_left, p->row_dropped, run->attributes && !run->swapped,
                 &run->carried[leads]);
    find_carried(run, &run->from.b, p->transpose_right, p->col_dropped, run->attributes && run->swapped,
                 &run->carried[leads + 1]);
    run->spec.carried = run->carried;
}

/* A line for each thing that does not go with C. */
static void warn_of_left_out(tsr_run *run) {
    for (int d = 0; run->carried && d < run->spec.stack_dimensions + 2; d++) {
        char name[TSR_FILE_CHARS + TSR_PATH_CHARS + TSR_SLICE_CHARS];
        if (run->carried_of[d]) tsr_matrix_name_text(&run->carried_of[d]->name, name, sizeof name);
        for (char *line = run->carried[d].left_out; *line; line += strcspn(line, "\n"), line += *line == '\n')
            tsr_warn(run->world->warnings, "'%s': %.*s", name, (int)strcspn(line, "\n"), line);
        tsr_carried_free(&run->carried[d]);
    }
    free(run->carried);
    run->carried = run->spec.carried = NULL;
}

static tsr_status create_output(void *context) {
    tsr_run *run = context;
    if (!run->resume.unfinished || run->spec.chunk_rows > 0) carry(run); /* what is made anew */
    if (run->resume.unfinished) TSR_TRY(tsr_run_take_left(run));
    else TSR_TRY(tsr_output_begin(&run->spec, &run->output));
    announce_output(run);
    if (!run->output.in_memory) return allocate_output(run);
    tsr_task_start(&run->allocation, allocate_output, run);
    return TSR_OK;
}

/* Consecutive ranks are a team. Those that are left over are one, too, which multiplies nothing. */
static tsr_status open_team(tsr_run *run) {
    run->team = *run->world;
    if (run->teams <= 1) return TSR_OK;
    run->team.rank = tsr_run_team_rank(run);
    run->team.ranks = run->team_ranks;
    run->team.kept_grid = NULL; /* its communicator goes with this run */
    return TSR_MPI(
        MPI_Comm_split(run->world->comm, run->world->rank / run->team_ranks, run->world->rank, &run->team.comm));
}

tsr_status tsr_run_connect(tsr_run *run) {
    MPI_Comm comm = run->world->comm;
    TSR_TRY(tsr_agree(comm, open_team(run)));
    TSR_TRY(tsr_agree(comm, tsr_grid_open(&run->team, run->plan.p, run->plan.q, run->plan.r, &run->grid)));
    return tsr_agree(comm,
                     run->grid.active ? run->transport_ops->open(&run->grid, run->device, &run->transport) : TSR_OK);
}

/* The output is made and memory allocated while the ranks connect: each takes about as long as the others. Only the
 * room for a memory-backed output, page by page, takes longer for large ones: it is taken while the run goes on. */
static tsr_status prepare_parts(tsr_run *run) {
    tsr_task output = {0}, memory = {0};
    bool first = run->world->rank == 0;
    const bool file = !tsr_run_in_memory(run, TSR_RUN_C);
    if (first && file) tsr_task_start(&output, create_output, run);
    if (tsr_run_team_rank(run) < run->plan.p * run->plan.q * run->plan.r) tsr_task_start(&memory, allocate, run);
    tsr_status status = tsr_run_connect(run);
    tsr_run_mark(run, TSR_STARTUP_TRANSPORT);
    tsr_task_wait(&output);
    tsr_describer_close(run->world->describer); /* all is known */
    tsr_run_mark(run, TSR_STARTUP_FILES);
    tsr_task_wait(&memory);
    tsr_run_mark(run, TSR_STARTUP_ALLOCATION);
    warn_of_left_out(run);
    TSR_TRY(status);
    TSR_TRY(tsr_share(run->world->comm, tsr_task_status(&output), &run->output, sizeof run->output));
    if (!first && file) announce_output(run);
    tsr_output_warn(&run->output, run->world->warnings);
    return tsr_agree(run->world->comm, tsr_task_status(&memory));
}

tsr_status tsr_run_prepare(tsr_run *run) {
    MPI_Comm comm = run->world->comm;
    if (run->io == TSR_IO_MPIO && !run->world->threads)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "--io mpio needs an MPI library with MPI_THREAD_MULTIPLE: use --io direct");
    TSR_TRY(prepare_parts(run));
    TSR_TRY(tsr_run_allocate_holdings(run));
    tsr_run_mark(run, TSR_STARTUP_ALLOCATION);
    TSR_TRY(tsr_agree(comm, run->grid.active ? open_stores(run) : TSR_OK));
    TSR_TRY(tsr_run_keep_parts(run));
    tsr_run_mark(run, TSR_STARTUP_FILES);
    tsr_listener_begin(&run->calls->progress, "multiply", tsr_run_flops(run) * (double)tsr_run_rounds(run), "FLOP");
    tsr_status status = run->grid.active ? open_executor(run) : TSR_OK;
    if (status == TSR_OK && tsr_task_done(&run->allocation))
        status = tsr_task_status(&run->allocation); /* else it is asked for when C is synced */
    TSR_TRY(tsr_agree(comm, status));
    tsr_run_mark(run, TSR_STARTUP_ALLOCATION);
    return TSR_OK;
}
