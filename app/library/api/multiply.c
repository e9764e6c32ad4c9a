/* tessera_multiply and tessera_plan: one run (run.h) in a thread of its own, in which what belongs to threads may
 * change: signals that are blocked, the GPU in use. The caller's thread waits, tells its caller how far the run is, and
 * passes a cancellation on. The program's call runs in the thread that calls: it hears of the run itself, stops by
 * signals and cancels nothing. */
#define _GNU_SOURCE /* open_memstream, clocks */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/library/api/context.h"
#include "app/library/api/dry_run.h"
#include "app/library/options/multiply_options.h"
#include "app/library/options/sized.h"
#include "app/report/report.h"
#include "io/text/text_file.h"
#include "kernels/gemm/cpu/blas.h"
#include "mpi/execute/task.h"
#include "mpi/ranks/cores.h"

#define TICK_SECONDS 0.1

typedef struct {
    tessera_context *context;
    const tsr_caller *caller; /* a table of nothing where the context has none */
    tsr_world world;          /* the context's, with the warnings and the clock of this call */
    tsr_warnings warnings;
    tsr_multiply_call read;
    bool plans;  /* no more than that, */
    bool shapes; /* or what C is, in: */
    tsr_run_shape shape;
    bool complete; /* nothing was left to do */
    bool keeps;    /* the record is wanted */
    char *text;    /* rank 0: of the plan, or of the record; owned until it is handed out */
    size_t text_bytes;
    tsr_run_log log;
    tsr_report_trace timeline; /* rank 0, with a report */
    tsr_spread spread;
    /* For the caller's thread, under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    tessera_progress at;
    bool ended;
    tsr_status status;
    char message[2048];
} call;

static atomic_flag busy = ATOMIC_FLAG_INIT; /* a call is under way in this process */

/* ---- what the run tells ---------------------------------------------------------------------- */

static void stage(void *context, const char *name) {
    call *x = context;
    const tsr_guard *guard = x->caller->guard;
    /* what was multiplied is recorded when a stop signal comes; before and after it C stays as it is */
    if (x->read.run.target.resume && guard && guard->drain) guard->drain(strcmp(name, "multiply") == 0);
    tsr_run_log_stage(&x->log, name);
    pthread_mutex_lock(&x->lock);
    x->at.stage = name;
    pthread_mutex_unlock(&x->lock);
}

static void multiplied(void *context, double share) { tsr_run_log_progress(&((call *)context)->log, share); }

static void begin(void *context, const char *what, double total, const char *unit) {
    call *x = context;
    pthread_mutex_lock(&x->lock);
    x->at.stage = what;
    x->at.done = 0;
    x->at.total = total;
    x->at.unit = unit;
    pthread_mutex_unlock(&x->lock);
}

static void advance(void *context, double done, double under_way) {
    call *x = context;
    (void)under_way;
    pthread_mutex_lock(&x->lock);
    x->at.done = done;
    pthread_mutex_unlock(&x->lock);
}

static void extend(void *context, double units) {
    call *x = context;
    pthread_mutex_lock(&x->lock);
    x->at.total += units;
    pthread_mutex_unlock(&x->lock);
}

static void end(void *context) {
    call *x = context;
    pthread_mutex_lock(&x->lock);
    x->at.done = x->at.total;
    pthread_mutex_unlock(&x->lock);
}

static void note(void *context, const char *text) {
    const tsr_caller *caller = ((const call *)context)->caller;
    if (caller->note) caller->note(caller->context, text);
}

static bool stopped(void *context) {
    const call *x = context;
    const tsr_guard *guard = x->caller->guard;
    const bool asked = x->read.run.target.resume && guard && guard->asked && guard->asked();
    return asked || atomic_load(&x->context->cancelled);
}

static tsr_status planned(void *context, const struct tsr_run *run) {
    call *x = context;
    if (x->world.rank != 0) return TSR_OK;
    FILE *to = open_memstream(&x->text, &x->text_bytes);
    if (!to) return tsr_fail(TSR_ERR_MEMORY, "no memory for the plan's text: free some");
    const tsr_status status = tsr_dry_run_print(run, to);
    if (fclose(to) != 0 && status == TSR_OK)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for the plan's text: free some");
    return status;
}

static void output_made(void *context, const tsr_output *output) {
    const call *x = context;
    const tsr_guard *guard = x->caller->guard;
    if (guard && guard->output) guard->output(output, x->read.run.target.resume);
}

static void failing(void *context) {
    const tsr_guard *guard = ((const call *)context)->caller->guard;
    if (guard && guard->wait) guard->wait();
}

/* Where the caller's function returns, tsr_abort follows. */
static void give_up(void *context, tsr_status status, bool removed) {
    call *x = context;
    const tessera_context *t = x->context;
    tsr_job_log_give_up(&x->world, x->caller->guard, &x->log, status);
    if (!removed && x->world.ranks > x->world.local_ranks) sleep(1); /* one on another node did, speaks and aborts */
    if (t->abort_job) t->abort_job(t->abort_context, tsr_status_exit_code(status), tsr_message());
}

static tsr_status write_report(call *x, const tsr_run_record *record) {
    tsr_report report = {.count = 0};
    tsr_status status = tsr_report_add_record(&report, record->c.name, record);
    if (status == TSR_OK) status = tsr_report_add_timeline(&report, &x->timeline, record->command);
    if (status == TSR_OK) status = tsr_report_write_page(&report, x->read.given.report);
    tsr_report_free(&report);
    return status;
}

/* C is in place, whatever happens here: without memory for its text there is no record. The log says "done" once all
 * is. */
static tsr_status published(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output) {
    call *x = context;
    FILE *to = x->keeps ? open_memstream(&x->text, &x->text_bytes) : NULL;
    if (to) (void)tsr_record_write_json(record, to);
    if (to) fclose(to);
    const tsr_caller *caller = x->caller;
    if (x->read.given.report) TSR_TRY(write_report(x, record));
    const bool logged = tsr_job_log_done(&x->world, caller->guard, &x->log, "C", tsr_record_write_members, record);
    return caller->published ? caller->published(caller->context, record, spec, output, &x->log, logged) : TSR_OK;
}

/* An earlier call made C: there is no record of this one. */
static void complete(void *context, const char *text) {
    call *x = context;
    x->complete = true;
    if (x->world.rank == 0 && x->caller->note) x->caller->note(x->caller->context, text);
    if (x->world.rank == 0) (void)tsr_job_log_done(&x->world, x->caller->guard, &x->log, "C", NULL, text);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Whether what comes at the end can be written. A run has written to its log. */
static tsr_status check_files(const call *x) {
    const char *file = x->plans ? x->read.log : x->read.given.report;
    return file ? tsr_text_file_check(x->plans ? "log" : "report", file) : TSR_OK;
}

static tsr_status run(call *x) {
    const tsr_listener progress = {x, begin, advance, extend, end};
    const tsr_run_calls calls = {.context = x,
                                 .progress = x->context->caller ? x->caller->progress : progress,
                                 .stage = stage,
                                 .multiplied = multiplied,
                                 .stopped = stopped,
                                 .note = note,
                                 .planned = planned,
                                 .output_made = output_made,
                                 .failing = failing,
                                 .give_up = give_up,
                                 .complete = complete,
                                 .steps = x->read.given.report ? tsr_report_trace_sink(&x->timeline)
                                                               : (tsr_trace_sink){NULL},
                                 .published = published};
    tsr_run_options *options = &x->read.run;
    const char *log = x->read.log;
    TSR_TRY(tsr_job_log_open(&x->world, x->caller->guard, x->plans ? NULL : log, options->command, &x->log));
    options->started = x->log.started;
    tsr_status status = tsr_agree(x->world.comm, x->world.rank == 0 ? check_files(x) : TSR_OK);
    if (status == TSR_OK && x->shapes) status = tsr_run_find_shape(&x->world, options, &calls, &x->shape);
    else if (status == TSR_OK)
        status = x->plans ? tsr_run_plan(&x->world, options, &calls) : tsr_run_multiply(&x->world, options, &calls);
    tsr_job_log_close(&x->world, x->caller->guard, &x->log, status);
    return status;
}

static void *run_thread(void *context) {
    call *x = context;
    tsr_world_go_home(&x->world);
    const tsr_status status = run(x);
    pthread_mutex_lock(&x->lock);
    x->status = status;
    snprintf(x->message, sizeof x->message, "%s", tsr_message());
    x->ended = true;
    pthread_cond_signal(&x->moved);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* Without a thread, as well as it goes: nobody is told, and the caller's thread is where it was afterwards. */
static void run_here(call *x) {
    tsr_cores before;
    const bool known = tsr_cores_mine(&before);
    run_thread(x);
    if (known) (void)tsr_cores_keep_thread_to(&before);
}

/* Waits a moment, or until the run has ended. */
static bool wait_a_tick(call *x, tessera_progress *at) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(TICK_SECONDS * 1e9);
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&x->lock);
    int error = 0;
    while (!x->ended && error == 0) error = pthread_cond_timedwait(&x->moved, &x->lock, &until);
    const bool ended = x->ended;
    *at = x->at;
    pthread_mutex_unlock(&x->lock);
    at->seconds = tsr_now_seconds() - x->world.started_seconds;
    return ended;
}

/* A failure to pass on a cancellation is none of the run. */
static void watch(call *x) {
    const tessera_multiply_options *o = &x->read.given;
    tessera_progress at;
    for (bool ended = false; !ended;) {
        ended = wait_a_tick(x, &at);
        if (o->progress && o->progress(o->progress_context, &at) != 0) tessera_cancel(x->context);
        if (x->world.threads && !ended) (void)tsr_spread_step(&x->spread, &x->context->cancelled);
    }
}

/* Collective. */
static tsr_status run_and_watch(call *x) {
    pthread_condattr_t clock;
    pthread_t thread;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&x->moved, &clock);
    tsr_spread_open(&x->world, &x->spread);
    tsr_blas_enter();
    atomic_store(&x->context->running, true);
    if (tsr_thread_start(&thread, run_thread, x)) {
        watch(x);
        pthread_join(thread, NULL);
    } else {
        run_here(x);
    }
    atomic_store(&x->context->running, false);
    tsr_blas_leave();
    pthread_cond_destroy(&x->moved);
    pthread_condattr_destroy(&clock);
    tsr_message_set(x->message);
    if (tsr_ends_job(&x->world, x->status)) return x->status;
    const tsr_status spread = tsr_spread_close(&x->spread);
    if (tsr_ends_job(&x->world, spread)) return spread; /* also where all know that the run failed */
    return x->status != TSR_OK ? x->status : spread;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void take_world(call *x) {
    static const tsr_caller nobody;
    tessera_context *t = x->context;
    x->caller = t->caller ? t->caller : &nobody;
    x->world = t->world;
    x->at = (tessera_progress){.size = sizeof x->at, .stage = "start-up", .unit = ""};
    if (t->caller) return; /* the program's, which began before */
    x->world.started_seconds = tsr_now_seconds();
    x->warnings.silent = x->world.rank == 0;
    x->world.warnings = &x->warnings;
    x->world.describer = &t->describer;
}

/* What is multiplied: names of A, B and C, or matrices. */
typedef struct {
    const char *name[TSR_CALL_OPERANDS];
    const tessera_matrix *matrix[TSR_CALL_OPERANDS];
    bool matrices;
} operands;

/* Where what comes of a call goes; what is not asked for is NULL. */
typedef struct {
    char **text; /* rank 0's: of the plan */
    tessera_record **record;
    tsr_run_shape *shape;
} results;

/* Collective. What the options say, agreed on. */
static tsr_status read_call(call *x, const operands *given, const tessera_multiply_options *options) {
    const tsr_caller *caller = x->caller;
    tsr_call_operands of = {.rank = x->world.rank, .ranks = x->world.ranks, .without_c = x->shapes};
    memcpy(of.name, given->name, sizeof of.name);
    tsr_status status = given->matrices ? tsr_call_operands_take(given->matrix, &of) : TSR_OK;
    if (status == TSR_OK) status = tsr_multiply_call_read(&of, options, x->context->caller != NULL, &x->read);
    status = tsr_agree(x->world.comm, status);
    if (status != TSR_OK && !x->plans && caller->refused) caller->refused(caller->context, x->read.log, status);
    return status;
}

/* Collective. Multiplies, unless a plan or a shape is asked for. */
static tsr_status make_call(tessera_context *t, const char *function, const operands *of,
                            const tessera_multiply_options *options, results to) {
    tsr_message_set("");
    if (to.text) *to.text = NULL;
    if (to.record) *to.record = NULL;
    if (!t) return tsr_fail(TSR_ERR_USAGE, "%s: there is no context: tessera_open makes one", function);
    if (atomic_flag_test_and_set(&busy)) /* which may speak to other ranks just now: this one alone hears of it */
        return tsr_fail(TSR_ERR_USAGE, "another call is under way in this process: wait for it");
    call *x = calloc(1, sizeof *x);
    tsr_status status = TSR_OK;
    if (x) pthread_mutex_init(&x->lock, NULL);
    else status = tsr_fail(TSR_ERR_MEMORY, "no memory for a call: free some");
    TSR_TRY_DONE(tsr_agree(t->world.comm, status));
    x->context = t;
    x->shapes = to.shape != NULL;
    x->plans = to.text || to.shape;
    x->keeps = to.record != NULL;
    atomic_store(&t->cancelled, false);
    take_world(x);
    TSR_TRY_DONE(read_call(x, of, options));
    TSR_TRY_DONE(t->caller ? run(x) : run_and_watch(x));
    if (to.record && !x->complete) TSR_TRY_DONE(tsr_record_handle_make(&x->world, x->text, to.record));
    if (to.shape) *to.shape = x->shape;
    if (to.text) {
        *to.text = x->text;
        x->text = NULL;
    }
done:
    if (x && x->world.describer) {
        tsr_describer_close(x->world.describer);
        x->world.describer->external = NULL; /* was the caller's */
    }
    if (x) pthread_mutex_destroy(&x->lock);
    if (x) tsr_report_trace_free(&x->timeline);
    if (x) free(x->text);
    free(x);
    atomic_flag_clear(&busy);
    status = tsr_share_message(t->world.comm, status);
    if (tsr_ends_job(&t->world, status)) tsr_context_end_job(t, status);
    return status;
}

int tessera_multiply(tessera_context *t, const char *a, const char *b, const char *c,
                     const tessera_multiply_options *options, tessera_record **record) {
    return make_call(t, __func__, &(operands){.name = {a, b, c}}, options, (results){.record = record});
}

int tessera_multiply_matrices(tessera_context *t, const tessera_matrix *a, const tessera_matrix *b,
                              const tessera_matrix *c, const tessera_multiply_options *options,
                              tessera_record **record) {
    return make_call(t, __func__, &(operands){.matrix = {a, b, c}, .matrices = true}, options,
                     (results){.record = record});
}

static tsr_status no_text(const char *function) {
    return tsr_fail(TSR_ERR_USAGE, "%s: there is no place for its text: give one", function);
}

int tessera_plan(tessera_context *t, const char *a, const char *b, const char *c,
                 const tessera_multiply_options *options, char **text) {
    if (!text) return no_text(__func__);
    return make_call(t, __func__, &(operands){.name = {a, b, c}}, options, (results){.text = text});
}

int tessera_plan_matrices(tessera_context *t, const tessera_matrix *a, const tessera_matrix *b, const tessera_matrix *c,
                          const tessera_multiply_options *options, char **text) {
    if (!text) return no_text(__func__);
    return make_call(t, __func__, &(operands){.matrix = {a, b, c}, .matrices = true}, options, (results){.text = text});
}

int tessera_describe_product(tessera_context *t, const tessera_matrix *a, const tessera_matrix *b,
                             const tessera_multiply_options *options, tessera_matrix *c, int *dimensions) {
    tessera_matrix found = {.size = sizeof found};
    tsr_run_shape shape;
    tsr_message_set("");
    if (!c) return tsr_fail(TSR_ERR_USAGE, "%s: C is NULL, and is to be described: give one", __func__);
    TSR_TRY(tsr_sized_take("tessera_matrix", c, &found, sizeof found));
    TSR_TRY(
        make_call(t, __func__, &(operands){.matrix = {a, b}, .matrices = true}, options, (results){.shape = &shape}));
    memcpy(t->stack, shape.stack, sizeof t->stack);
    found.size = c->size;
    found.type = tsr_dtype_name(shape.dtype);
    found.rows = shape.rows;
    found.cols = shape.cols;
    found.stack_dimensions = shape.stack_dimensions;
    found.stack = shape.stack_dimensions > 0 ? t->stack : NULL;
    memcpy(c, &found, c->size < sizeof found ? c->size : sizeof found);
    if (dimensions) *dimensions = shape.dimensions;
    return TSR_OK;
}

void tessera_free(char *text) { free(text); }
