/* One multiplication from files to file (multiply.h). Every phase ends in agreement: before the first panel moves, a failure on one rank is a failure
 * of all, reported once; while panels move, the failing rank removes the unfinished output and ends the job. */
#include "app/multiply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/interrupt.h"
#include "app/job_log.h"
#include "app/multiply_job.h"
#include "app/output_note.h"
#include "app/place_chunks.h"
#include "app/verify.h"
#include "mpi/buffers.h"

/* ---- getting ready -------------------------------------------------------------------------------------------------- */

static tsr_status open_stores(tsr_job *j) {
    tsr_io_mode io = j->settings->io;
    const void *comm = &j->grid.ranks;
    /* Opening through MPI-IO is collective: a rank that fails must not leave the others in the next one. */
    if (j->problem.k > 0) {
        TSR_TRY(tsr_agree(j->grid.ranks, tsr_hdf5_open(&j->from.a, io, comm, &j->io_used, &j->a)));
        TSR_TRY(tsr_agree(j->grid.ranks, tsr_hdf5_open(&j->from.b, io, comm, NULL, &j->b)));
    }
    if (j->problem.add_c0) TSR_TRY(tsr_agree(j->grid.ranks, tsr_hdf5_open(&j->from.c0, io, comm, NULL, &j->c0)));
    return tsr_output_open(&j->output, io, comm, &j->c);
}

int tsr_job_cores(const tsr_job *j) {
    const int most = j->settings->threads;
    return most > 0 ? (int)tsr_min(most, j->world->cores) : j->world->cores;
}

int tsr_job_io_threads(const tsr_job *j) {
    const int asked = j->settings->io_threads, most = j->settings->threads;
    if (asked > 0) return most > 0 ? (int)tsr_min(asked, most) : asked;
    return (int)tsr_max(1, tsr_min(8, tsr_job_cores(j) / 2));
}

static void show_progress(void *context, double done, double under_way) {
    tsr_job *j = context;
    tsr_progress_update(&j->progress, done * j->progress.total, under_way * j->progress.total);
    tsr_run_log_progress(j->log, done);
}

static void open_progress(tsr_job *j, const char *what, double total, const char *unit) {
    const tsr_progress_mode mode = j->world->rank == 0 ? j->settings->progress : TSR_PROGRESS_OFF;
    tsr_progress_open(&j->progress, mode, what, total, unit, stderr);
}

tsr_status tsr_job_open_trace(tsr_job *j) {
    tsr_forecast forecast;
    if (!j->settings->trace) return TSR_OK;
    TSR_TRY(tsr_plan_forecast(&j->plan, tsr_grid_rank(&j->grid), &forecast));
    return tsr_trace_open(forecast.steps, &j->trace);
}

static tsr_status open_executor(tsr_job *j) {
    TSR_TRY(tsr_job_open_trace(j));
    tsr_execution x = {.plan = &j->plan,
                       .grid = &j->grid,
                       .device = j->device,
                       .kernel = j->kernel,
                       .transport = j->transport,
                       .a = j->a,
                       .b = j->b,
                       .c0 = j->c0,
                       .c = j->c,
                       .io_threads = tsr_job_io_threads(j),
                       .buffers = j->buffers,
                       .trace = j->trace,
                       .progress = show_progress,
                       .progress_context = j};
    j->buffers = NULL;
    return tsr_executor_open(&x, &j->executor);
}

static tsr_status allocate_output(void *context) { return tsr_output_allocate(&((const tsr_job *)context)->output); }

static tsr_status create_output(void *context) {
    tsr_job *j = context;
    TSR_TRY(tsr_output_begin(&j->spec, &j->output));
    tsr_interrupt_guard(j->world, &j->output);
    if (!j->output.in_memory) return tsr_output_allocate(&j->output);
    tsr_task_start(&j->allocation, allocate_output, j);
    return TSR_OK;
}

static tsr_status allocate(void *context) {
    tsr_job *j = context;
    TSR_TRY(j->device->ops->use(j->device));
    return tsr_buffers_open(&j->plan, j->device, &j->buffers);
}

tsr_status tsr_job_connect(tsr_job *j) {
    MPI_Comm comm = j->world->comm;
    TSR_TRY(tsr_agree(comm, tsr_grid_open(j->world, j->plan.p, j->plan.q, j->plan.r, &j->grid)));
    return tsr_agree(comm, j->grid.active ? j->transport_ops->open(&j->grid, j->device, &j->transport) : TSR_OK);
}

/* The output is made and memory allocated while the ranks connect: each takes about as long as the others. Only the room for a memory-backed output, page by page,
 * takes longer for large ones: it is taken while the run goes on. */
static tsr_status prepare_parts(tsr_job *j) {
    tsr_task output = {0}, memory = {0};
    bool first = j->world->rank == 0;
    if (first) tsr_task_start(&output, create_output, j);
    if (j->world->rank < j->plan.p * j->plan.q * j->plan.r) tsr_task_start(&memory, allocate, j);
    tsr_status status = tsr_job_connect(j);
    tsr_job_mark(j, TSR_STARTUP_TRANSPORT);
    tsr_task_wait(&output);
    tsr_job_mark(j, TSR_STARTUP_FILES);
    tsr_task_wait(&memory);
    tsr_job_mark(j, TSR_STARTUP_ALLOCATION);
    TSR_TRY(status);
    TSR_TRY(tsr_share(j->world->comm, tsr_task_status(&output), &j->output, sizeof j->output));
    if (!first) tsr_interrupt_guard(j->world, &j->output);
    return tsr_agree(j->world->comm, tsr_task_status(&memory));
}

static tsr_status prepare(tsr_job *j) {
    MPI_Comm comm = j->world->comm;
    if (j->settings->io == TSR_IO_MPIO && !j->world->threads)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "--io mpio needs an MPI library with MPI_THREAD_MULTIPLE: use --io direct");
    TSR_TRY(prepare_parts(j));
    tsr_job_mark(j, TSR_STARTUP_ALLOCATION);
    TSR_TRY(tsr_agree(comm, j->grid.active ? open_stores(j) : TSR_OK));
    tsr_job_mark(j, TSR_STARTUP_FILES);
    double flops = 2.0 * (double)j->problem.m * (double)j->problem.n * (double)j->problem.k;
    open_progress(j, "multiply", flops, "FLOP");
    tsr_status status = j->grid.active ? open_executor(j) : TSR_OK;
    if (status == TSR_OK && tsr_task_done(&j->allocation))
        status = tsr_task_status(&j->allocation); /* else settle() asks */
    TSR_TRY(tsr_agree(comm, status));
    tsr_job_mark(j, TSR_STARTUP_ALLOCATION);
    return TSR_OK;
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

/* Other ranks may be waiting for this one inside communication. */
static _Noreturn void give_up(tsr_job *j, tsr_status status) {
    tsr_progress_close(&j->progress);
    tsr_output_discard(&j->output);
    tsr_job_log_give_up(j->world, j->log, status);
    tsr_abort(j->world, status);
}

/* Collective over the active ranks with --io mpio. */
static void close_inputs(tsr_job *j) {
    tsr_store_close(j->a), tsr_store_close(j->b), tsr_store_close(j->c0);
    j->a = j->b = j->c0 = NULL;
}

/* Chunks are placed by all ranks together, with memory for their lists, and with a progress of their own. */
static tsr_status before_placing(tsr_job *j, tsr_status status) {
    TSR_TRY(tsr_agree(j->world->comm, status));
    tsr_run_log_stage(j->log, "place chunks");
    tsr_executor_close(j->executor);
    j->executor = NULL;
    close_inputs(j);
    double bytes = (double)j->problem.m * (double)j->problem.n * (double)tsr_dtype_bytes(j->problem.out);
    tsr_progress_close(&j->progress);
    open_progress(j, "place chunks", bytes, "B");
    return TSR_OK;
}

/* What the executor wrote to stable storage: chunks first to their places in the file, where rank 0 alone writes and the others wait for it. */
static tsr_status settle(tsr_job *j) {
    double start = tsr_now_seconds(), waited = 0;
    TSR_TRY(tsr_place_chunks(j->world, &j->output, j->c, &j->progress));
    if (j->world->rank != 0) waited = tsr_now_seconds() - start;
    TSR_TRY(tsr_task_status(&j->allocation));
    if (!j->grid.active) return TSR_OK;
    tsr_status status = j->c->ops->sync(j->c);
    double end = tsr_now_seconds();
    j->mine.lane_seconds[TSR_LANE_WRITE] += end - start - waited;
    if (j->trace) tsr_trace_sync(j->trace, start + waited, end);
    return status;
}

/* Elements that C's type cannot hold, of all ranks: a wider type does. */
static tsr_status count_overflows(tsr_job *j) {
    const tsr_problem *x = &j->problem;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&j->mine.overflows, &j->overflows, 1, MPI_INT64_T, MPI_SUM, j->world->comm)));
    if (j->overflows == 0) return TSR_OK;
    const tsr_dtype wider = x->out == TSR_F16 ? x->type : TSR_F64;
    tsr_warn(j->world->warnings, "%lld of %lld elements of C overflowed %s and are Inf: use --type %s",
             (long long)j->overflows, (long long)(x->m * x->n), tsr_dtype_name(x->out), tsr_dtype_name(wider));
    return TSR_OK;
}

static tsr_status run(tsr_job *j) {
    tsr_status status = TSR_OK;
    j->first_read = j->startup_marked;
    tsr_run_log_stage(j->log, "multiply");
    if (j->grid.active) status = tsr_executor_run(j->executor, &j->mine);
    if (status != TSR_OK && j->plan.p * j->plan.q * j->plan.r > 1) give_up(j, status);
    if (status == TSR_OK) tsr_run_log_progress(j->log, 1);
    if (tsr_output_chunks(&j->output) > 0) status = before_placing(j, status);
    if (status == TSR_OK) status = settle(j);
    status = tsr_agree(j->world->comm, status);
    j->seconds = tsr_now_seconds() - j->first_read;
    tsr_progress_close(&j->progress);
    TSR_TRY(status);
    /* Ranks do not begin at once: only the longest span is as long as any rank's busiest lane. */
    TSR_TRY(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, &j->seconds, 1, MPI_DOUBLE, MPI_MAX, j->world->comm)));
    return count_overflows(j);
}

/* PASSED does not stand alone where elements overflowed: the check cannot judge what their values were. */
static void format_check(tsr_job *j, const tsr_verify_result *result) {
    char text[300];
    const size_t passed = strlen("PASSED");
    tsr_verify_format(result, text, sizeof text);
    if (!result->passed || j->overflows == 0) snprintf(j->check, sizeof j->check, "%s", text);
    else
        snprintf(j->check, sizeof j->check, "PASSED (overflowed elements not judged: %lld)%s", (long long)j->overflows,
                 text + passed);
}

static tsr_status check(tsr_job *j) {
    snprintf(j->check, sizeof j->check, "not run");
    if (!j->settings->verify) return TSR_OK;
    tsr_run_log_stage(j->log, "check");
    MPI_Comm comm = j->world->comm;
    /* Ranks the grid leaves idle help to check, and --io mpio opened files for the active ones only: open all anew. */
    tsr_store *a = NULL, *b = NULL, *c0 = NULL, *c = NULL;
    tsr_status status = tsr_hdf5_open(&j->from.a, TSR_IO_AUTO, NULL, NULL, &a);
    if (status == TSR_OK) status = tsr_hdf5_open(&j->from.b, TSR_IO_AUTO, NULL, NULL, &b);
    if (status == TSR_OK && j->problem.add_c0) status = tsr_hdf5_open(&j->from.c0, TSR_IO_AUTO, NULL, NULL, &c0);
    if (status == TSR_OK) status = tsr_hdf5_open(&j->output.desc, TSR_IO_AUTO, NULL, NULL, &c);
    status = tsr_agree(comm, status);
    tsr_verify_result result = {0};
    if (status == TSR_OK) {
        const tsr_problem *x = &j->problem;
        tsr_verify_args args = {
            .a = a, .b = b, .c = c, .c0 = c0,
            .transpose_a = j->transpose_a, .transpose_b = j->transpose_b,
            .alpha = j->settings->alpha, .beta = j->settings->beta, .type = x->type,
            .accuracy = tsr_gemm_loss(j->kernel, x->a.element.dtype, x->b.element.dtype),
            .trials = (int)j->settings->trials, .seed = (uint64_t)time(NULL),
            .threads = tsr_job_cores(j), .progress = j->settings->progress,
            .buffer_bytes = tsr_min((int64_t)j->plan.resources.host_limit / 4 + 1, 256 << 20)};
        status = tsr_broadcast(comm, &args.seed, sizeof args.seed);
        if (status == TSR_OK) status = tsr_verify_product(j->world, &args, &result);
    }
    tsr_store_close(a), tsr_store_close(b), tsr_store_close(c0), tsr_store_close(c);
    TSR_TRY(status);
    format_check(j, &result);
    if (result.passed) return TSR_OK;
    return tsr_fail(TSR_ERR_CHECK, "%s; nothing was written under the output's name", j->check);
}

/* ---- the record ----------------------------------------------------------------------------------------------------- */

static void describe_source(const tsr_matrix_name *name, int64_t rows, int64_t cols, const char *type, tsr_source_record *source) {
    tsr_matrix_name stored = *name;
    stored.columns_first = false;
    tsr_matrix_name_text(&stored, source->name, sizeof source->name);
    source->rows = rows, source->cols = cols;
    snprintf(source->type, sizeof source->type, "%s", type);
}

void tsr_job_versions(const tsr_job *j, char *text, size_t chars) {
    char hdf5[64], transports[256];
    snprintf(text, chars, "tessera %s, %s, %s", TSR_VERSION, tsr_hdf5_version(hdf5, sizeof hdf5), tsr_transport_versions(transports, sizeof transports));
    size_t at = strlen(text);
    if (j->facts.kind == TSR_DEVICE_CUDA && at < chars)
        snprintf(text + at, chars - at, ", CUDA %d.%d (driver %d.%d)", j->facts.runtime_version / 1000, j->facts.runtime_version % 1000 / 10,
                 j->facts.driver_version / 1000, j->facts.driver_version % 1000 / 10);
}

static void fill_run_record(const tsr_job *j, const tsr_rank_record *ranks, tsr_run_record *record) {
    const tsr_multiply_settings *s = j->settings;
    const tsr_problem *x = &j->problem;
    bool swap = s->order == TSR_ORDER_COL;
    const tsr_store_desc *a = swap ? &j->from.b : &j->from.a, *b = swap ? &j->from.a : &j->from.b, *c0 = &j->from.c0;
    int64_t k = x->a.transpose ? x->a.rows : x->a.cols;
    *record = (tsr_run_record){
        .command = s->command, .transpose_a = s->transpose_a, .transpose_b = s->transpose_b, .alpha = s->alpha, .beta = s->beta,
        .m = swap ? x->n : x->m, .n = swap ? x->m : x->n, .k = k, .ranks = j->world->ranks,
        .grid = {swap ? j->plan.q : j->plan.p, swap ? j->plan.p : j->plan.q, j->plan.r},
        .super_blocks = {swap ? j->plan.blocks_n : j->plan.blocks_m, swap ? j->plan.blocks_m : j->plan.blocks_n}, .panel = j->plan.panel, .seconds = j->seconds,
        .setup_seconds = j->first_read - j->world->started_seconds, .rank_records = ranks};
    memcpy(record->startup_seconds, j->startup_seconds, sizeof record->startup_seconds);
    memcpy(record->started, j->log->started, sizeof record->started);
    describe_source(&a->name, a->rows, a->cols, a->type_name, &record->a);
    describe_source(&b->name, b->rows, b->cols, b->type_name, &record->b);
    if (x->add_c0) describe_source(&c0->name, c0->rows, c0->cols, c0->type_name, &record->c0);
    tsr_matrix_name target = j->output.desc.name;
    memcpy(target.file, j->output.target, sizeof target.file);
    describe_source(&target, x->m, x->n, tsr_dtype_name(x->out), &record->c);
    snprintf(record->kernel, sizeof record->kernel, "%s", j->kernel->name);
    snprintf(record->accuracy, sizeof record->accuracy, "%s", tsr_accuracy_name(tsr_gemm_loss(j->kernel, x->a.element.dtype, x->b.element.dtype)));
    snprintf(record->input, sizeof record->input, "%s", tsr_dtype_name(x->input));
    snprintf(record->type, sizeof record->type, "%s", tsr_dtype_name(x->type));
    snprintf(record->transport, sizeof record->transport, "%s", j->transport_ops->name);
    snprintf(record->io, sizeof record->io, "%s", tsr_io_mode_name(x->k > 0 ? j->io_used : s->io));
    tsr_job_versions(j, record->versions, sizeof record->versions);
    snprintf(record->check, sizeof record->check, "%s", j->check);
    record->warnings = j->world->warnings ? j->world->warnings->text : NULL;
    record->gflops = 2.0 * (double)x->m * (double)x->n * (double)k / record->seconds / 1e9;
}

void tsr_job_describe_rank(tsr_job *j) {
    tsr_rank_record *r = &j->mine;
    bool active = j->grid.active, swap = j->settings->order == TSR_ORDER_COL;
    r->rank = j->world->rank;
    r->row = !active ? -1 : swap ? j->grid.col : j->grid.row, r->col = !active ? -1 : swap ? j->grid.row : j->grid.col, r->depth = active ? j->grid.depth : -1;
    snprintf(r->host, sizeof r->host, "%s", j->world->host);
    r->cores = j->world->cores, r->threads = j->threads, r->io_threads = tsr_job_io_threads(j);
    if (j->facts.kind == TSR_DEVICE_CUDA)
        snprintf(r->device, sizeof r->device, "%.48s #%d (%s)", j->facts.name, j->facts.ordinal, j->facts.bus_id);
    else
        snprintf(r->device, sizeof r->device, "%.95s", j->facts.name);
}

/* Rank 0: C has its name. */
static tsr_status say_done(tsr_job *j, const tsr_run_record *record) {
    const bool logged = tsr_job_log_done(j->world, j->log, "C", tsr_record_write_members, record);
    const char *log = logged ? j->settings->log : NULL;
    if (j->settings->ranks) tsr_record_print_ranks(record, stdout), putchar('\n');
    if (!j->settings->quiet) tsr_record_print(record, log, stdout), tsr_output_note(&j->spec, &j->output);
    return tsr_job_said("C");
}

/* Gathers the records, writes them beside C and gives C its name. Rank 0 does the work; all learn how it went. */
static tsr_status publish(tsr_job *j) {
    const tsr_world *world = j->world;
    tsr_rank_record *ranks = NULL;
    tsr_run_record record;
    tsr_status status = TSR_OK;
    tsr_run_log_stage(j->log, "publish");
    tsr_job_describe_rank(j);
    if (world->rank == 0) {
        ranks = calloc((size_t)world->ranks, sizeof *ranks);
        if (!ranks) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the records of %d ranks", world->ranks);
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Gather(&j->mine, sizeof j->mine, MPI_BYTE, ranks, sizeof j->mine, MPI_BYTE, 0, world->comm)));
    if (world->rank == 0) {
        fill_run_record(j, ranks, &record);
        status = tsr_output_publish(&j->output, &record, j->settings->command);
    }
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    if (j->settings->trace) {
        tsr_run_log_stage(j->log, "trace");
        TSR_TRY_DONE(tsr_trace_save(j->trace, world->comm, ranks, j->settings->trace, j->settings->command));
    }
    status = tsr_agree(world->comm, world->rank == 0 ? say_done(j, &record) : TSR_OK);
done:
    free(ranks);
    return status;
}

/* ---- the job --------------------------------------------------------------------------------------------------------- */

static tsr_status produce(tsr_job *j) {
    TSR_TRY(prepare(j));
    TSR_TRY(run(j));
    tsr_executor_close(j->executor);
    j->executor = NULL;
    close_inputs(j);
    tsr_store_close(j->c);
    j->c = NULL;
    TSR_TRY(check(j));
    return publish(j);
}

static tsr_status multiply(const tsr_world *world, const tsr_multiply_settings *settings, tsr_run_log *log) {
    tsr_job j = {.world = world, .settings = settings, .log = log, .startup_marked = world->started_seconds};
    tsr_job_mark(&j, TSR_STARTUP_MPI);
    tsr_device_opening opening;
    tsr_device_begin(world, settings->device, &opening);
    tsr_status described = tsr_job_describe(&j);
    if (described != TSR_OK) tsr_device_give_up(&opening);
    TSR_TRY(described);
    tsr_job_mark(&j, TSR_STARTUP_FILES);
    tsr_job_say_types(&j);
    TSR_TRY(tsr_job_choose(&j, &opening));
    if (settings->dry_run) {
        tsr_status shown = tsr_job_show_plan(&j);
        j.device->ops->close(j.device);
        return shown;
    }
    tsr_status status = produce(&j);
    tsr_trace_close(j.trace);
    if (status != TSR_OK) {
        /* All ranks agreed: only what is this rank's own is released, collective things go with the process. */
        tsr_task_wait(&j.allocation);
        if (world->rank == 0) tsr_output_discard(&j.output);
        tsr_buffers_close(&j.plan, j.device, j.buffers);
        return status;
    }
    if (j.grid.active) j.transport_ops->close(j.transport);
    tsr_grid_close(&j.grid);
    j.device->ops->close(j.device);
    return TSR_OK;
}

tsr_status tsr_multiply(const tsr_world *world, const tsr_multiply_settings *settings) {
    tsr_run_log log;
    TSR_TRY(tsr_job_log_open(world, settings->dry_run ? NULL : settings->log, settings->command, &log));
    tsr_status status = tsr_agree(world->comm, multiply(world, settings, &log));
    tsr_job_log_close(world, &log, status);
    return status;
}
