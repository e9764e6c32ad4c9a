/* One product from files to file (run.h). Every phase ends in agreement. While panels move there is none: the rank that
 * fails removes the unfinished output and ends the job. */
#include "app/library/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/library/inputs.h"
#include "app/library/place_chunks.h"
#include "app/library/run_state.h"
#include "app/verify/rounded.h"
#include "mpi/execute/memory/buffers.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/schedule/forecast.h"

/* ---- running --------------------------------------------------------------------------------- */

/* Other ranks may be waiting for this one inside communication. */
_Noreturn void tsr_run_give_up(tsr_run *run, tsr_status status) {
    const tsr_run_calls *calls = run->calls;
    while (atomic_exchange(&run->gives_up, true)) pause(); /* another thread ends the job, which may be why */
    if (calls->failing) calls->failing(calls->context);
    tsr_listener_end(&calls->progress);
    const bool removed = !tsr_run_in_memory(run, TSR_RUN_C) && tsr_output_discard(&run->output);
    tsr_transport_abandon(run->transport);
    if (calls->give_up) calls->give_up(calls->context, status, removed);
    tsr_abort(run->world, status);
}

/* ---- the watch ------------------------------------------------------------------------------- */

#define STALL_SECONDS 60     /* at least, where it is chosen */
#define STALL_STEPS 10       /* times the longest step that is predicted */
#define STALL_FILE_FACTOR 15 /* a file may take so many times longer */
#define SLOW_SECONDS 30      /* of work after which ranks are compared; no more than a stall takes */

static void stalled(void *context, const char *message) {
    tsr_message_set(message);
    tsr_run_give_up(context, TSR_ERR_STALLED);
}

/* Work on a phase goes on: that is a sign, too. */
static void phase_begins(void *context, const char *what, double total, const char *unit) {
    tsr_listener_begin(&((const tsr_run *)context)->calls->progress, what, total, unit);
}
static void phase_advances(void *context, double done, double under_way) {
    const tsr_run *run = context;
    tsr_signs_phase_moves(tsr_watch_signs(run->watch));
    tsr_listener_advance(&run->calls->progress, done, under_way);
}
static void phase_extends(void *context, double units) {
    tsr_listener_extend(&((const tsr_run *)context)->calls->progress, units);
}
static void phase_ends(void *context) { tsr_listener_end(&((const tsr_run *)context)->calls->progress); }

/* The longest step of all ranks that no file is part of. */
static tsr_status longest_step(const tsr_run *run, double *seconds) {
    tsr_forecast forecast;
    *seconds = 0;
    TSR_TRY(tsr_plan_forecast(&run->plan, tsr_run_team_rank(run), &forecast));
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (lane != TSR_LANE_READ && lane != TSR_LANE_WRITE) *seconds = fmax(*seconds, forecast.longest[lane]);
    return TSR_OK;
}

static tsr_status watch_over(tsr_run *run) {
    const tsr_run_limits *given = &run->limits;
    double longest = 0;
    run->progress = (tsr_listener){
        .context = run, .begin = phase_begins, .advance = phase_advances, .extend = phase_extends, .end = phase_ends};
    if (given->has_stall && given->stall_seconds <= 0) return TSR_OK;
    TSR_TRY(tsr_agree(run->world->comm, longest_step(run, &longest)));
    TSR_TRY(tsr_reduce_all(run->world->comm, &longest, 1, MPI_DOUBLE, MPI_MAX));
    const double least = given->has_stall ? given->stall_seconds : STALL_SECONDS;
    const tsr_watch_options options = {
        .limits = {.quiet = given->has_stall ? least : fmax(least, STALL_STEPS * longest),
                   .file_named = least,
                   .file = STALL_FILE_FACTOR * least,
                   .slow = fmin(SLOW_SECONDS, least),
                   .host = run->facts.kind == TSR_DEVICE_CPU},
        .stalled = stalled,
        .context = run};
    return tsr_watch_open(run->world, &options, &run->watch);
}

/* ---- the product ----------------------------------------------------------------------------- */

/* Collective over the active ranks with --io mpio. */
void tsr_run_close_inputs(tsr_run *run) {
    tsr_store **stores[3] = {&run->a, &run->b, &run->c0};
    for (int i = 0; i < 3; i++) {
        if (*stores[i]) run->read_overflows[i] = (*stores[i])->overflows;
        tsr_store_close(*stores[i]);
        *stores[i] = NULL;
    }
}

/* Products that each matrix of an operand takes part in. */
static int64_t products_of_one(const tsr_run *run, const tsr_store_desc *operand) {
    return tsr_run_rounds(run) / (run->problem.batch > 1 ? 1 : tsr_max(1, operand->matrices));
}

/* What was read and is more than its type here can hold. Collective. */
static tsr_status count_read_overflows(tsr_run *run) {
    const tsr_store_desc *from[3] = {&run->from.a, &run->from.b, &run->from.c0};
    const int64_t reads[3] = {tsr_plan_reads(&run->plan, TSR_OPERAND_A) * products_of_one(run, from[0]),
                              tsr_plan_reads(&run->plan, TSR_OPERAND_B) * products_of_one(run, from[1]), 1};
    for (int i = 0; i < 3; i++) TSR_TRY(tsr_rounded_count(run->world, from[i], run->read_overflows[i], reads[i]));
    return TSR_OK;
}

/* Chunks are placed by all ranks together, with memory for their lists, and with a progress of their own. */
static tsr_status before_placing(tsr_run *run, tsr_status status) {
    TSR_TRY(tsr_agree(run->world->comm, status));
    tsr_run_stage(run, "place chunks");
    tsr_run_close_executor(run);
    tsr_run_close_inputs(run);
    const double bytes = (double)tsr_store_bytes(&run->output.desc);
    tsr_listener_end(&run->calls->progress);
    tsr_listener_begin(&run->calls->progress, "place chunks", bytes, "B");
    return TSR_OK;
}

/* Brings what the executor wrote to stable storage. Chunks go to their places in the file first. */
static tsr_status sync_output(tsr_run *run) {
    double start = tsr_now_seconds();
    tsr_run_phase(run, TSR_PHASE_PLACE);
    const tsr_left_chunks left = {run->resume.parts, run->resume.count};
    tsr_status status = tsr_place_chunks(run->world, &run->output, run->c, &left, &run->progress);
    tsr_run_phase_done(run);
    TSR_TRY(status);
    TSR_TRY(tsr_task_status(&run->allocation));
    if (!run->grid.active) return TSR_OK;
    tsr_run_phase(run, TSR_PHASE_SYNC);
    status = run->c->ops->sync(run->c);
    tsr_run_phase_done(run);
    double end = tsr_now_seconds();
    run->mine.lane_seconds[TSR_LANE_WRITE] += end - start;
    if (run->trace) tsr_trace_sync(run->trace, start, end);
    return status;
}

/* Elements that C's type cannot hold: a wider type does. */
static void warn_of_overflows(const tsr_run *run) {
    const tsr_problem *x = &run->problem;
    const tsr_dtype out = tsr_dtype_part(x->out);
    tsr_dtype wider = tsr_dtype_widest(x->type, out) == out ? tsr_dtype_wider(out) : x->type;
    if (tsr_dtype_is_complex(x->out)) wider = tsr_dtype_complex_of(wider);
    char count[64] = ""; /* of a Gram matrix those of its mirror are not counted */
    if (!x->gram)
        snprintf(count, sizeof count, "%lld of %lld ", (long long)run->overflows,
                 (long long)(x->m * x->n * tsr_run_rounds(run)));
    tsr_warn(run->world->warnings, "%selements of C overflowed %s and are Inf: use --type %s", count,
             tsr_dtype_name(x->out), tsr_dtype_name(wider));
}

/* Of all ranks; and rows of products that the check passed over, unless C is to be verified, which judges them. */
static tsr_status count_infinite(tsr_run *run) {
    const tsr_dtype type = tsr_dtype_part(run->problem.type), wider = tsr_dtype_wider(type);
    int64_t counts[] = {run->mine.overflows, run->mine.rows_unjudged};
    TSR_TRY(tsr_reduce_all(run->world->comm, counts, 2, MPI_INT64_T, MPI_SUM));
    run->overflows = counts[0];
    if (counts[0] > 0) warn_of_overflows(run);
    if (counts[0] > 0 || counts[1] == 0 || run->trials > 0) return TSR_OK;
    tsr_warn(run->world->warnings,
             "%lld rows of products hold NaN or Inf and were not checked: A or B has some, or sums are too large for "
             "%s%s%s",
             (long long)counts[1], tsr_dtype_name(type), wider != type ? ", for which there is --type " : "",
             wider != type ? tsr_dtype_name(wider) : "");
    return TSR_OK;
}

void tsr_run_select(tsr_run *run, int64_t product) {
    const tsr_products *shape = &run->products;
    if (run->problem.batch > 1) return; /* the plan reads them all */
    if (run->a) tsr_store_select(run->a, tsr_shapes_matrix(shape, &run->a->desc, product));
    if (run->b) tsr_store_select(run->b, tsr_shapes_matrix(shape, &run->b->desc, product));
    if (run->c0) tsr_store_select(run->c0, product);
    tsr_store_select(run->c, product);
}

/* Collective over the world for its clocks. */
static tsr_status start_trace(tsr_run *run) {
    if (run->traced) TSR_TRY(TSR_MPI(MPI_Barrier(run->world->comm)));
    if (run->trace) tsr_trace_start(run->trace);
    return TSR_OK;
}

/* One after the other, those of this rank's team. */
static tsr_status multiply_products(tsr_run *run) {
    const tsr_span mine = tsr_run_share(run);
    if (!run->grid.active) return TSR_OK;
    for (run->products_done = 0; run->products_done < mine.count; run->products_done++) {
        bool nothing;
        tsr_run_select(run, mine.start + run->products_done);
        TSR_TRY(tsr_run_leave_out(run, &nothing));
        if (nothing) continue;
        TSR_TRY(tsr_executor_run(run->executor, &run->mine));
        if (run->engine.check) TSR_TRY(tsr_run_note_checked(run, mine.start + run->products_done));
    }
    return tsr_run_make_doubtful_again(run);
}

static tsr_status multiply(tsr_run *run) {
    tsr_status status = TSR_OK;
    run->first_read = run->startup_marked;
    tsr_run_stage(run, "multiply");
    TSR_TRY(start_trace(run));
    TSR_TRY(tsr_run_fetch_memory(run));
    tsr_run_populate(run);
    status = multiply_products(run);
    tsr_run_populated(run);
    const bool finished = status == TSR_OK || status == TSR_ERR_CHECK; /* the team agreed on the latter */
    /* Before C is put together: what was read belongs together. Where it does not, that is why reading failed. */
    const tsr_status unchanged = tsr_inputs_unchanged((tsr_store *const[]){run->a, run->b, run->c0}, 3);
    if (unchanged != TSR_OK) status = unchanged;
    if (status == TSR_OK) status = tsr_run_commit_parts(run);
    if (!finished && run->plan.p * run->plan.q * run->plan.r > 1) tsr_run_give_up(run, status);
    if (status == TSR_OK) status = tsr_run_go_on(run);
    if (status == TSR_OK && run->calls->multiplied) run->calls->multiplied(run->calls->context, 1);
    if (tsr_output_chunks(&run->output) > 0) status = before_placing(run, status);
    if (status == TSR_OK) status = sync_output(run);
    status = tsr_agree(run->world->comm, status);
    if (status == TSR_OK) status = tsr_run_return_memory(run);
    run->seconds = tsr_now_seconds() - run->first_read;
    tsr_listener_end(&run->calls->progress);
    TSR_TRY(status);
    /* Ranks do not begin at once: only the longest span is as long as any rank's busiest lane. */
    TSR_TRY(tsr_reduce_all(run->world->comm, &run->seconds, 1, MPI_DOUBLE, MPI_MAX));
    return count_infinite(run);
}

/* ---- publication ----------------------------------------------------------------------------- */

/* The message of what fails at the end says that C is, or may be, in place. */
static tsr_status tell_of_c(const tsr_run *run, tsr_status status, const char *what) {
    return status == TSR_OK || tsr_run_in_memory(run, TSR_RUN_C) ? status : tsr_output_in_place(status, what);
}

/* Collective. Rank 0 has published C, or not; others may get here while it does. */
static tsr_status agree_on_publication(const tsr_run *run, tsr_status status) {
    const tsr_status agreed = tsr_agree(run->world->comm, status);
    if (run->world->rank > 0) return agreed == TSR_ERR_MPI ? tell_of_c(run, agreed, "C may be") : agreed;
    return status == TSR_OK ? tell_of_c(run, agreed, "C is") : agreed;
}

/* Gathers the records, writes them beside C and gives C its name. Rank 0 does the work; all learn how it went. */
static tsr_status publish(tsr_run *run, const tsr_run_options *options) {
    const tsr_run_calls *calls = run->calls;
    const tsr_world *world = run->world;
    tsr_rank_record *ranks = NULL;
    tsr_run_record record;
    tsr_status status = TSR_OK;
    bool in_place = false;
    tsr_run_stage(run, "publish");
    TSR_TRY_DONE(tsr_run_gather_ranks(run, &ranks));
    if (world->rank == 0) {
        tsr_run_fill_record(run, options, ranks, &record);
        tsr_run_phase(run, TSR_PHASE_PUBLISH);
        if (!tsr_run_in_memory(run, TSR_RUN_C)) status = tsr_output_publish(&run->output, &record, options->command);
        tsr_run_phase_done(run);
    }
    TSR_TRY_DONE(agree_on_publication(run, status));
    in_place = true;
    if (run->trace_file) {
        tsr_run_stage(run, "trace");
        TSR_TRY_DONE(
            tsr_trace_save(run->trace, world->comm, ranks, record.startup_seconds, run->trace_file, options->command));
    }
    if (run->traced && calls->steps.step) {
        tsr_run_stage(run, "trace");
        TSR_TRY_DONE(tsr_trace_tell(run->trace, world->comm, ranks, &calls->steps));
    }
    if (world->rank == 0 && calls->published)
        status = calls->published(calls->context, &record, &run->spec, &run->output);
    status = tsr_agree(world->comm, status);
done:
    free(ranks);
    return in_place ? tell_of_c(run, status, "C is") : status;
}

/* ---- the whole run --------------------------------------------------------------------------- */

static tsr_run begin(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls) {
    tsr_run run = {.world = world,
                   .calls = calls,
                   .engine = options->engine,
                   .limits = options->limits,
                   .io = options->io,
                   .trials = options->trials,
                   .products = {.count = 1},
                   .resume = {.asked = options->target.resume},
                   .teams = 1,
                   .written = {.lock = PTHREAD_MUTEX_INITIALIZER},
                   .startup_marked = world->started_seconds};
    tsr_run_trace(&run, options->trace, calls->steps.step);
    tsr_run_mark(&run, TSR_STARTUP_MPI);
    if (world->describer) world->describer->external = options->external;
    return run;
}

/* The device opens while rank 0 looks into the files. */
static tsr_status plan(tsr_run *run, const tsr_run_options *options) {
    tsr_device_opening opening;
    tsr_device_begin(run->world, run->engine.device, &opening);
    tsr_status described = tsr_run_describe(run, options);
    if (described != TSR_OK || run->resume.complete) tsr_device_give_up(&opening);
    TSR_TRY(described);
    if (run->resume.complete) return TSR_OK;
    tsr_run_mark(run, TSR_STARTUP_FILES);
    tsr_run_explain_types(run, &options->product);
    return tsr_run_choose(run, &opening);
}

static tsr_status produce(tsr_run *run, const tsr_run_options *options) {
    TSR_TRY(watch_over(run));
    TSR_TRY(tsr_run_prepare(run));
    TSR_TRY(tsr_agree(run->world->comm, tsr_run_go_on(run)));
    TSR_TRY(multiply(run));
    const double multiplied = tsr_now_seconds();
    TSR_TRY(tsr_run_check_written(run));
    tsr_run_close_inputs(run);
    TSR_TRY(count_read_overflows(run));
    TSR_TRY(tsr_run_check_files(run, options));
    if (run->trials > 0) run->check_seconds = tsr_now_seconds() - multiplied;
    tsr_status status = tsr_agree(run->world->comm, tsr_run_go_on(run));
    if (status == TSR_OK) status = publish(run, options);
    tsr_run_close_executor(run);
    return status;
}

/* After a failure that all agreed on only what is this rank's own is released: collective things go with the process.
 * Else the status of closing what is collective. */
static tsr_status release(tsr_run *run, tsr_status status) {
    tsr_status closed = TSR_OK;
    if (status == TSR_OK) closed = tsr_watch_close(run->watch);
    else tsr_watch_leave(run->watch);
    tsr_run_leave_resume(run, status);
    tsr_trace_close(run->trace);
    free(run->doubtful);
    tsr_written_close(&run->written);
    tsr_run_leave_chunks(run);
    tsr_run_leave_pieces(run);
    tsr_run_leave_memory(run);
    if (status != TSR_OK) {
        tsr_task_wait(&run->allocation);
        if (run->world->rank == 0 && !tsr_run_in_memory(run, TSR_RUN_C)) tsr_output_leave(&run->output);
        tsr_buffers_close(&run->plan, run->device, run->world->kept, run->buffers);
        return status;
    }
    if (run->grid.active) run->transport_ops->close(run->transport);
    run->transport = NULL;
    if (closed == TSR_OK) closed = tsr_grid_close(&run->grid);
    if (closed == TSR_OK && run->teams > 1) closed = TSR_MPI(MPI_Comm_free(&run->team.comm));
    run->device->ops->close(run->device);
    return closed;
}

/* Nothing was begun: the plan failed, or C is there. */
static tsr_status leave_early(tsr_run *run, const tsr_run_options *options, tsr_status status) {
    char text[TSR_FILE_CHARS + 64];
    const bool more = run->trials > 0 || options->target.digest || run->traced;
    if (status == TSR_OK && more)
        tsr_warn(run->world->warnings,
                 "'%s' was complete: no check, digest, trace or report was made of it; tessera verify checks it",
                 run->spec.name.file);
    if (status == TSR_OK && run->calls->complete) {
        snprintf(text, sizeof text, "'%s' is complete: nothing is left to do", run->spec.name.file);
        run->calls->complete(run->calls->context, text);
    }
    tsr_run_leave_resume(run, status);
    if (status != TSR_OK) return status;
    tsr_run_leave_memory(run);
    tsr_run_leave_chunks(run);
    tsr_run_leave_pieces(run);
    return TSR_OK;
}

tsr_status tsr_run_multiply(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls) {
    tsr_run run = begin(world, options, calls);
    const tsr_status planned = tsr_agree(world->comm, plan(&run, options));
    if (tsr_ends_job(world, planned)) tsr_run_give_up(&run, planned);
    if (planned != TSR_OK || run.resume.complete) return leave_early(&run, options, planned);
    tsr_status status = produce(&run, options);
    if (!tsr_ends_job(world, status)) status = release(&run, status);
    if (tsr_ends_job(world, status)) tsr_run_give_up(&run, status);
    if (status == TSR_ERR_STOPPED) tsr_run_say_kept(&run);
    return tsr_agree(world->comm, status);
}

tsr_status tsr_run_plan(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls) {
    tsr_run run = begin(world, options, calls);
    run.resume.dry = true;
    TSR_TRY(tsr_agree(world->comm, plan(&run, options)));
    tsr_status status = tsr_run_forecast_moves(&run);
    if (status == TSR_OK && calls->planned) status = calls->planned(calls->context, &run);
    tsr_run_leave_memory(&run);
    run.device->ops->close(run.device);
    tsr_run_leave_chunks(&run);
    tsr_run_leave_pieces(&run);
    return tsr_agree(world->comm, status);
}

tsr_status tsr_run_find_shape(const tsr_world *world, const tsr_run_options *options, const tsr_run_calls *calls,
                              tsr_run_shape *shape) {
    tsr_run run = begin(world, options, calls);
    return tsr_agree(world->comm, tsr_run_describe_shape(&run, &options->product, shape));
}
