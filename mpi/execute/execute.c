/* Lanes as threads (execute.h). A lane walks the whole schedule and does the steps that are its own; device lanes
 * keep one step in flight while they issue the next, so that a stream never runs dry between two steps that are both
 * ready. */
#include "mpi/execute/execute.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "mpi/execute/buffers.h"
#include "mpi/execute/clocks.h"
#include "mpi/execute/execute_step.h"
#include "mpi/execute/fallback.h"
#include "mpi/execute/load.h"
#include "mpi/execute/trace/ranges.h"
#include "mpi/schedule/forecast.h"

typedef struct {
    tsr_executor *executor;
    tsr_lane lane;
    bool asynchronous;
    bool started;
    pthread_t thread;
    tsr_stream *stream;
    tsr_event *begin[2], *end[2]; /* of the step in flight and of the one being issued */
    tsr_event *origin;            /* with a trace: ties the stream's clock to the host's */
    double origin_seconds;        /* tsr_now_seconds() when the origin was put on the idle stream */
    int turn;
    bool in_flight;
    tsr_step flying;
    double seconds, bytes, flops;
    int64_t tiles;
    tsr_kernel_share kernels[TSR_KERNELS_RAN]; /* by shapes alone: products that fall back the device counts */
} lane_state;

/* What the device counts, in pinned memory from x.doubtful on: that, and products that fell back, as of the last step
 * of the multiply lane's either turn. */
enum { DOUBTFUL, FELL_BACK, COUNTED = FELL_BACK + 2 };

struct tsr_executor {
    tsr_execution x;
    void **buffers;
    tsr_clocks clocks;
    tsr_ranges *ranges;       /* NULL: no profiler listens */
    tsr_check_counts checked; /* of the last run */
    lane_state lanes[TSR_LANE_COUNT];
    atomic_llong begun, done;      /* predicted nanoseconds of the steps that have begun, and of those done */
    atomic_bool draining;          /* x.stopped said so */
    bool all_stop[TSR_AXIS_COUNT]; /* all ranks of an axis know that one of them does; the exchange lane's */
    tsr_fallback fallback;
    bool has_compared;
    bool all_started;  /* under clocks.lock: no lane begins before it is known that all can */
    int lanes_done;    /* under clocks.lock */
    tsr_status status; /* of the first lane that failed; under clocks.lock */
    char message[1024];
};

static tsr_status walk(const tsr_executor *e, tsr_step_sink sink, void *context) {
    return e->x.plan->schedule->emit(e->x.plan, tsr_grid_rank(e->x.grid), sink, context);
}

/* ---- streams, events ------------------------------------------------------------------------- */

static bool lane_asynchronous(const tsr_execution *x, tsr_lane lane) {
    if (lane == TSR_LANE_READ || lane == TSR_LANE_WRITE) return false;
    return lane != TSR_LANE_EXCHANGE || x->transport->ops->asynchronous;
}

static tsr_status open_lane(tsr_executor *e, tsr_lane which) {
    lane_state *lane = &e->lanes[which];
    tsr_device *device = e->x.device;
    *lane = (lane_state){.executor = e, .lane = which, .asynchronous = lane_asynchronous(&e->x, which)};
    TSR_TRY(device->ops->stream_create(device, &lane->stream));
    for (int i = 0; i < 2 && lane->asynchronous; i++) {
        TSR_TRY(device->ops->event_create(device, &lane->begin[i]));
        TSR_TRY(device->ops->event_create(device, &lane->end[i]));
    }
    return e->x.trace && lane->asynchronous ? device->ops->event_create(device, &lane->origin) : TSR_OK;
}

/* Buffers of the plan may be another run's next (kept.h): nothing is left that uses them. */
static void close_lane(tsr_device *device, lane_state *lane) {
    if (lane->stream) (void)device->ops->stream_wait(device, lane->stream);
    for (int i = 0; i < 2; i++) {
        if (lane->begin[i]) device->ops->event_destroy(device, lane->begin[i]);
        if (lane->end[i]) device->ops->event_destroy(device, lane->end[i]);
    }
    if (lane->origin) device->ops->event_destroy(device, lane->origin);
    if (lane->stream) device->ops->stream_destroy(device, lane->stream);
}

void tsr_executor_close(tsr_executor *e) {
    if (!e) return;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) close_lane(e->x.device, &e->lanes[lane]);
    tsr_crew_close(e->x.readers);
    tsr_crew_close(e->x.writers);
    tsr_clocks_close(&e->clocks);
    tsr_ranges_close(e->ranges);
    tsr_kept_return(e->x.kept, e->x.device, TSR_KEPT_DEVICE, e->x.counters);
    tsr_kept_return(e->x.kept, e->x.device, TSR_KEPT_HOST, e->x.doubtful);
    tsr_fallback_close(&e->fallback);
    tsr_buffers_close(e->x.plan, e->x.device, e->x.kept, e->buffers);
    free(e);
}

tsr_status tsr_executor_open(const tsr_execution *execution, tsr_executor **executor) {
    tsr_executor *e = calloc(1, sizeof *e);
    if (!e) return tsr_fail(TSR_ERR_MEMORY, "no memory for an executor");
    e->x = *execution;
    e->buffers = execution->buffers;
    e->fallback = tsr_fallback_of(execution->plan, execution->device, execution->kernel);
    e->ranges = tsr_ranges_open();
    tsr_status status;
    TSR_TRY_DONE(execution->device->ops->use(execution->device));
    if (!e->buffers) TSR_TRY_DONE(tsr_buffers_open(execution->plan, execution->device, execution->kept, &e->buffers));
    TSR_TRY_DONE(tsr_kept_take(execution->kept, execution->device, TSR_KEPT_DEVICE, sizeof *e->x.counters,
                               (void **)&e->x.counters));
    TSR_TRY_DONE(tsr_kept_take(execution->kept, execution->device, TSR_KEPT_HOST, COUNTED * sizeof *e->x.doubtful,
                               (void **)&e->x.doubtful));
    TSR_TRY_DONE(tsr_crew_open(&e->x.readers));
    TSR_TRY_DONE(tsr_crew_open(&e->x.writers));
    TSR_TRY_DONE(tsr_clocks_open(execution->plan->buffers, &e->clocks));
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) TSR_TRY_DONE(open_lane(e, (tsr_lane)lane));
    *executor = e;
    return TSR_OK;
done:
    tsr_executor_close(e);
    return status;
}

/* ---- progress -------------------------------------------------------------------------------- */

static long long predicted_ns(const tsr_executor *e, const tsr_step *step) {
    return (long long)(1e9 * tsr_lane_seconds(e->x.plan, step->lane, step->lane_bytes, step->flops));
}

static double predicted_run(const tsr_plan *plan, const tsr_forecast *forecast) {
    double seconds = 0;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        seconds += tsr_lane_seconds(plan, (tsr_lane)lane, forecast->lane_bytes[lane], forecast->flops);
    return seconds;
}

static void ask_to_stop(tsr_executor *e) {
    if (e->x.stopped && e->x.stopped(e->x.progress_context)) atomic_store(&e->draining, true);
}

/* `seconds`: of all steps, as predicted. */
static void look_around(tsr_executor *e, double seconds) {
    ask_to_stop(e);
    if (!e->x.progress) return;
    const double done = (double)atomic_load(&e->done) / 1e9, begun = (double)atomic_load(&e->begun) / 1e9;
    if (seconds > 0) e->x.progress(e->x.progress_context, done / seconds, (begun - done) / seconds);
}

/* ---- one lane -------------------------------------------------------------------------------- */

/* The kernel that makes a step's products. */
static const tsr_gemm_kernel *kernel_of(const tsr_gemm_kernel *kernel, const tsr_step *step) {
    return tsr_gemm_making(kernel, step->batch, step->m, step->n, step->k);
}

static const tsr_gemm_kernel *traced_kernel(const tsr_execution *x, const tsr_step *step) {
    return step->kind == TSR_STEP_MULTIPLY ? kernel_of(x->kernel, step) : NULL;
}

static void lane_done(lane_state *lane, const tsr_step *step, double seconds) {
    lane->seconds += seconds;
    lane->bytes += step->lane_bytes;
    lane->flops += step->flops;
    if (step->kind == TSR_STEP_MULTIPLY) {
        lane->tiles++;
        tsr_kernels_add(lane->kernels, kernel_of(lane->executor->x.kernel, step)->name, step->flops);
    }
    atomic_fetch_add(&lane->executor->done, predicted_ns(lane->executor, step));
    tsr_signs_step_done(lane->executor->x.signs, step, seconds);
    tsr_clocks_advance(&lane->executor->clocks, step);
}

/* The first record on a stream may take longer than later ones: the second counts. */
static tsr_status trace_origin(lane_state *lane) {
    tsr_device *device = lane->executor->x.device;
    for (int i = 0; i < 2; i++) {
        lane->origin_seconds = tsr_now_seconds();
        TSR_TRY(device->ops->event_record(device, lane->origin, lane->stream));
        TSR_TRY(device->ops->event_wait(device, lane->origin));
    }
    return TSR_OK;
}

/* Both times from the origin, so that rounding (a GPU's differences of events are floats) keeps the order in which
 * the stream reached the events. */
static tsr_status trace_landed(lane_state *lane, int flying) {
    const tsr_execution *x = &lane->executor->x;
    double begin, end;
    if (!x->trace) return TSR_OK;
    TSR_TRY(x->device->ops->event_seconds(x->device, lane->origin, lane->begin[flying], &begin));
    TSR_TRY(x->device->ops->event_seconds(x->device, lane->origin, lane->end[flying], &end));
    tsr_trace_step(x->trace, &lane->flying, traced_kernel(x, &lane->flying), lane->origin_seconds + begin,
                   lane->origin_seconds + end);
    return TSR_OK;
}

/* Waits for the step in flight, which is the one issued before `turn`. */
static tsr_status lane_land(lane_state *lane) {
    if (!lane->in_flight) return TSR_OK;
    tsr_device *device = lane->executor->x.device;
    int flying = lane->turn ^ 1;
    double seconds;
    TSR_TRY(device->ops->event_wait(device, lane->end[flying]));
    TSR_TRY(device->ops->event_seconds(device, lane->begin[flying], lane->end[flying], &seconds));
    TSR_TRY(trace_landed(lane, flying));
    lane->in_flight = false;
    lane_done(lane, &lane->flying, seconds);
    return TSR_OK;
}

/* Where what was written stays: ranks that are to exchange something do so if none of them was asked to stop. What a
 * rank sends was made before it was asked, and so all that it came from. Whoever learns of it here stops, too, and they
 * exchange nothing more. Ranks whose sums are added learn what the check of one of them doubts: its product has been
 * checked by now. */
static tsr_status agree_to_go_on(tsr_executor *e, const tsr_step *step, bool *go_on) {
    const tsr_axis shared = step->operand == TSR_OPERAND_A ? TSR_AXIS_COLS : TSR_AXIS_ROWS;
    const tsr_axis axis = step->kind == TSR_STEP_REDUCE ? TSR_AXIS_DEPTH : shared;
    enum { STOPS, DOUBTS, ANSWERS };
    int any[ANSWERS] = {atomic_load(&e->draining), axis == TSR_AXIS_DEPTH && *e->x.doubtful > 0};
    if (!e->all_stop[axis])
        TSR_TRY(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, any, ANSWERS, MPI_INT, MPI_MAX, tsr_axis_comm(e->x.grid, axis))));
    e->all_stop[axis] = any[STOPS] != 0;
    if (any[STOPS]) atomic_store(&e->draining, true);
    if (any[DOUBTS]) atomic_store(&e->x.others_doubt, true);
    *go_on = !any[STOPS];
    return TSR_OK;
}

/* The same of ranks that hand on sums: nobody waits for those behind, so each tells the next one alone. What a rank
 * that stops is still handed, it takes. */
static tsr_status hear_and_tell(tsr_executor *e) {
    const tsr_grid *grid = e->x.grid;
    enum { STOPS, DOUBTS, WORDS, TAG = 1 };
    int said[WORDS];
    if (grid->depth > 0 && !e->x.before_stopped) {
        TSR_TRY(TSR_MPI(MPI_Recv(said, WORDS, MPI_INT, grid->depth - 1, TAG, grid->across_depth, MPI_STATUS_IGNORE)));
        e->x.before_stopped = said[STOPS] != 0;
        if (said[STOPS]) atomic_store(&e->draining, true);
        if (said[DOUBTS]) atomic_store(&e->x.others_doubt, true);
    }
    if (e->x.has_stopped) return TSR_OK;
    e->x.has_stopped = atomic_load(&e->draining);
    said[STOPS] = e->x.has_stopped;
    said[DOUBTS] = *e->x.doubtful > 0 || atomic_load(&e->x.others_doubt);
    if (grid->depth + 1 == grid->r) return TSR_OK;
    return TSR_MPI(MPI_Send(said, WORDS, MPI_INT, grid->depth + 1, TAG, grid->across_depth));
}

/* Of a run that is to stop only what other ranks wait for. */
static tsr_status run_step(lane_state *lane, const tsr_step *step) {
    tsr_executor *e = lane->executor;
    const bool passes = step->kind == TSR_STEP_PASS;
    const bool together = step->kind == TSR_STEP_GATHER || step->kind == TSR_STEP_REDUCE;
    bool go_on = passes || together || !atomic_load(&e->draining);
    if (together && e->x.written) TSR_TRY(agree_to_go_on(e, step, &go_on));
    if (passes && e->x.written) TSR_TRY(hear_and_tell(e));
    if (!go_on) return TSR_OK;
    tsr_range_begin(e->ranges, step);
    const tsr_status status = tsr_step_run(&e->x, e->buffers, lane->stream, step);
    tsr_range_end(e->ranges);
    return status;
}

/* Whether products fall back decides how later ones do (gemm.h). So that a run is the same each time, a step knows what
 * was so when the one before it was issued: that one may have landed meanwhile, or not. */
static void look_back(const lane_state *lane, const tsr_step *step) {
    tsr_execution *x = &lane->executor->x;
    if (step->kind == TSR_STEP_MULTIPLY && x->doubtful[FELL_BACK + lane->turn] > 0)
        x->fallback_workspace = tsr_fallback_room(&lane->executor->fallback);
}
static tsr_status note_fallbacks(const lane_state *lane, const tsr_step *step) {
    const tsr_execution *x = &lane->executor->x;
    uint64_t *to = x->doubtful + FELL_BACK + lane->turn;
    if (step->kind != TSR_STEP_MULTIPLY || lane->executor->fallback.bytes == 0) return TSR_OK;
    return x->device->ops->download(x->device, to, &x->counters->fallbacks.products, sizeof *to, lane->stream);
}

static tsr_status lane_issue(lane_state *lane, const tsr_step *step) {
    tsr_executor *e = lane->executor;
    tsr_device *device = e->x.device;
    atomic_fetch_add(&e->begun, predicted_ns(e, step));
    tsr_signs_step(e->x.signs, step);
    if (!lane->asynchronous) {
        double start = tsr_now_seconds();
        TSR_TRY(run_step(lane, step));
        double end = tsr_now_seconds();
        if (e->x.trace) tsr_trace_step(e->x.trace, step, traced_kernel(&e->x, step), start, end);
        lane_done(lane, step, end - start);
        return TSR_OK;
    }
    look_back(lane, step);
    TSR_TRY(device->ops->event_record(device, lane->begin[lane->turn], lane->stream));
    TSR_TRY(run_step(lane, step));
    TSR_TRY(note_fallbacks(lane, step));
    TSR_TRY(device->ops->event_record(device, lane->end[lane->turn], lane->stream));
    TSR_TRY(lane_land(lane));
    lane->flying = *step;
    lane->in_flight = true;
    lane->turn ^= 1;
    return TSR_OK;
}

static tsr_status lane_step(void *context, const tsr_step *step) {
    lane_state *lane = context;
    if (step->lane != lane->lane) return TSR_OK;
    tsr_clocks *clocks = &lane->executor->clocks;
    if (!tsr_clocks_ready(clocks, step)) {
        TSR_TRY(lane_land(lane)); /* nothing more to issue for now: what is done must not wait to be seen */
        if (!tsr_clocks_wait(clocks, step)) return TSR_ERR_STOPPED;
    }
    return lane_issue(lane, step);
}

/* Waits until all lanes have their threads; false when one cannot have it. */
static bool all_have_started(tsr_executor *e) {
    pthread_mutex_lock(&e->clocks.lock);
    while (!e->all_started && !e->clocks.stopped) pthread_cond_wait(&e->clocks.moved, &e->clocks.lock);
    const bool all = e->all_started;
    pthread_mutex_unlock(&e->clocks.lock);
    return all;
}

static void *lane_thread(void *context) {
    lane_state *lane = context;
    tsr_executor *e = lane->executor;
    tsr_status status = all_have_started(e) ? e->x.device->ops->use(e->x.device) : TSR_ERR_STOPPED;
    if (status == TSR_OK && lane->origin) status = trace_origin(lane);
    tsr_ranges_thread(e->ranges, lane->lane);
    if (status == TSR_OK) status = walk(e, lane_step, lane);
    if (status == TSR_OK) status = lane_land(lane);

    pthread_mutex_lock(&e->clocks.lock);
    if (status != TSR_OK && e->status == TSR_OK && !e->clocks.stopped) {
        e->status = status;
        snprintf(e->message, sizeof e->message, "%s", tsr_message());
    }
    e->lanes_done++;
    pthread_cond_broadcast(&e->clocks.moved);
    pthread_mutex_unlock(&e->clocks.lock);
    return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

static struct timespec soon(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 200 * 1000 * 1000;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    return at;
}

/* What no lane is told: it waits. */
static tsr_status look_at_ranks(const tsr_executor *e) {
    tsr_transport *transport = e->x.transport;
    return transport && transport->ops->look ? transport->ops->look(transport) : TSR_OK;
}

/* Until every lane has ended or one has failed; reports progress meanwhile. `seconds`: of all steps, as
 * predicted. */
static tsr_status watch(tsr_executor *e, double seconds) {
    pthread_mutex_lock(&e->clocks.lock);
    while (e->status == TSR_OK && e->lanes_done < TSR_LANE_COUNT) {
        struct timespec until = soon();
        pthread_cond_timedwait(&e->clocks.moved, &e->clocks.lock, &until);
        pthread_mutex_unlock(&e->clocks.lock);
        look_around(e, seconds);
        const tsr_status lost = look_at_ranks(e);
        pthread_mutex_lock(&e->clocks.lock);
        if (lost == TSR_OK || e->status != TSR_OK) continue;
        e->status = lost;
        snprintf(e->message, sizeof e->message, "%s", tsr_message());
    }
    tsr_status status = e->status;
    if (status != TSR_OK) tsr_message_set(e->message);
    pthread_mutex_unlock(&e->clocks.lock);
    return status;
}

/* As before the first run. */
static void begin_anew(tsr_executor *e) {
    memset(e->clocks.clock, 0, (size_t)e->x.plan->buffers * sizeof *e->clocks.clock);
    atomic_store(&e->begun, 0);
    atomic_store(&e->done, 0);
    atomic_store(&e->draining, false);
    memset(e->all_stop, 0, sizeof e->all_stop);
    e->x.before_stopped = e->x.has_stopped = false;
    ask_to_stop(e);
    e->all_started = false;
    e->lanes_done = 0;
    for (int i = 0; i < TSR_LANE_COUNT; i++) {
        lane_state *lane = &e->lanes[i];
        lane->started = false;
        lane->seconds = lane->bytes = lane->flops = 0;
        lane->tiles = 0;
        memset(lane->kernels, 0, sizeof lane->kernels);
    }
}

_Static_assert(TSR_EXACT_KINDS == TSR_GEMM_LEVELS, "a record holds what is counted");

/* The counters that kernels add to, before the lanes start and after they have ended. */
static tsr_status clear_counters(tsr_executor *e) {
    tsr_stream *stream = e->lanes[TSR_LANE_MULTIPLY].stream;
    memset(e->x.doubtful, 0, COUNTED * sizeof *e->x.doubtful);
    e->x.fallback_workspace = NULL;
    atomic_store(&e->x.others_doubt, false);
    e->checked = (tsr_check_counts){.judged = 0};
    TSR_TRY(e->x.device->ops->fill_bytes(e->x.device, e->x.counters, 0, sizeof *e->x.counters, stream));
    return e->x.device->ops->stream_wait(e->x.device, stream);
}
static tsr_status read_counters(tsr_executor *e, tsr_rank_record *record) {
    tsr_stream *stream = e->lanes[TSR_LANE_MULTIPLY].stream;
    const tsr_gemm_kernel *kernel = e->x.kernel;
    tsr_counters counted;
    TSR_TRY(e->x.device->ops->download(e->x.device, &counted, e->x.counters, sizeof counted, stream));
    TSR_TRY(e->x.device->ops->stream_wait(e->x.device, stream));
    const tsr_gemm_fallbacks *fallbacks = &counted.fallbacks;
    record->fallbacks += (int64_t)fallbacks->products;
    record->few += (int64_t)fallbacks->few;
    for (int i = 0; i < TSR_GEMM_LEVELS; i++) record->exact_blocks[i] += (int64_t)fallbacks->levels[i];
    record->exact_left += (int64_t)fallbacks->left;
    record->overflows += (int64_t)counted.overflows;
    e->checked = counted.check;
    if (!kernel->fallback) return TSR_OK;
    const tsr_gemm_kernel *fallback = kernel->fallback, *last = fallback->fallback;
    tsr_kernels_move(record->kernels, kernel->name, fallback->name, 2 * (double)fallbacks->multiply_adds);
    if (last) tsr_kernels_move(record->kernels, fallback->name, last->name, 2 * (double)fallbacks->passed);
    return TSR_OK;
}

static void fill_record(const tsr_executor *e, double wall, tsr_rank_record *record) {
    for (int i = 0; i < TSR_LANE_COUNT; i++) {
        record->lane_seconds[i] += e->lanes[i].seconds;
        record->lane_bytes[i] += e->lanes[i].bytes;
        record->flops += e->lanes[i].flops;
        record->tiles += e->lanes[i].tiles;
        for (int ran = 0; ran < TSR_KERNELS_RAN; ran++)
            if (e->lanes[i].kernels[ran].name[0])
                tsr_kernels_add(record->kernels, e->lanes[i].kernels[ran].name, e->lanes[i].kernels[ran].flops);
    }
    record->kernel_seconds += e->lanes[TSR_LANE_MULTIPLY].seconds;
    record->wall_seconds += wall;
    record->device_bytes = e->x.plan->device_bytes + (e->fallback.memory ? (double)e->fallback.bytes : 0);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) record->host_peak_bytes = (double)usage.ru_maxrss * 1024;
}

static tsr_status start_lanes(tsr_executor *e) {
    for (int i = 0; i < TSR_LANE_COUNT; i++) {
        lane_state *lane = &e->lanes[i];
        lane->started = pthread_create(&lane->thread, NULL, lane_thread, lane) == 0;
        if (!lane->started)
            return tsr_fail(TSR_ERR_MEMORY,
                            "could not start the thread of the %s lane: raise the limit on processes (ulimit -u) or "
                            "on address space (ulimit -v)",
                            tsr_lane_name((tsr_lane)i));
    }
    pthread_mutex_lock(&e->clocks.lock);
    e->all_started = true;
    pthread_cond_broadcast(&e->clocks.moved);
    pthread_mutex_unlock(&e->clocks.lock);
    return TSR_OK;
}

tsr_status tsr_executor_run(tsr_executor *e, tsr_rank_record *record) {
    const tsr_grid *grid = e->x.grid;
    tsr_forecast forecast;
    TSR_TRY(tsr_plan_forecast(e->x.plan, tsr_grid_rank(grid), &forecast));
    begin_anew(e);
    TSR_TRY(clear_counters(e));
    double start = tsr_now_seconds();
    tsr_status status = start_lanes(e);
    if (status == TSR_OK) status = watch(e, predicted_run(e->x.plan, &forecast));
    bool alone = grid->p * grid->q * grid->r == 1;
    if (status != TSR_OK && !alone) return status; /* lanes may hang in communication: only an abort helps */
    if (status != TSR_OK) tsr_clocks_stop(&e->clocks);
    for (int i = 0; i < TSR_LANE_COUNT; i++)
        if (e->lanes[i].started) pthread_join(e->lanes[i].thread, NULL);
    fill_record(e, tsr_now_seconds() - start, record);
    return status == TSR_OK ? read_counters(e, record) : status;
}

tsr_status tsr_executor_compare(tsr_executor *e, const tsr_comparison *comparison, tsr_rank_record *record,
                                tsr_check_counts *found) {
    if (!e->has_compared)
        TSR_TRY(tsr_kernels_load(e->x.plan, tsr_grid_rank(e->x.grid), e->x.device, e->x.kernel, e->x.kernel_checks,
                                 e->x.kept, e->buffers));
    e->has_compared = true;
    tsr_execution made = e->x;
    e->x.a = comparison->a;
    e->x.b = comparison->b;
    e->x.c = comparison->c;
    e->x.check_seed = comparison->seed;
    e->x.progress = NULL;
    e->x.written = NULL;
    e->x.io_threads = comparison->io_threads;
    const tsr_status status = tsr_executor_run(e, record);
    *found = e->checked;
    e->x.a = made.a;
    e->x.b = made.b;
    e->x.c = made.c;
    e->x.check_seed = made.check_seed;
    e->x.io_threads = made.io_threads;
    e->x.progress = made.progress;
    e->x.written = made.written;
    return status;
}

const tsr_check_counts *tsr_executor_checked(const tsr_executor *executor) { return &executor->checked; }

/* ---- C where it stays on the device ---------------------------------------------------------- */

typedef struct {
    tsr_rect row, part;
    tsr_slot_use sum; /* buffer -1: not found */
    int64_t ld;
} buffer_search;

static tsr_status see_buffer(void *context, const tsr_step *step) {
    buffer_search *s = context;
    const tsr_rect *part = &step->rect, *row = &s->row;
    const bool begins = step->kind == TSR_STEP_ZERO || (step->kind == TSR_STEP_MULTIPLY && !step->accumulate);
    if (!begins || row->row < part->row || row->row >= part->row + part->rows || row->col < part->col ||
        row->col + row->cols > part->col + part->cols)
        return TSR_OK;
    s->part = *part;
    s->ld = step->ld;
    s->sum = step->slots[step->kind == TSR_STEP_ZERO ? 0 : 2];
    return TSR_OK;
}

tsr_status tsr_executor_fetch(tsr_executor *e, tsr_rect row, void *to) {
    tsr_device *device = e->x.device;
    tsr_stream *stream = e->lanes[TSR_LANE_DOWNLOAD].stream;
    const size_t element = tsr_dtype_bytes(e->x.plan->problem.type); /* a real */
    const tsr_form form = tsr_problem_sums(&e->x.plan->problem);
    const int64_t reals = tsr_form_cols(form);
    buffer_search found = {.row = row, .sum = {.buffer = -1}};
    if (!tsr_plan_keeps_c(e->x.plan))
        return tsr_fail(TSR_ERR_USAGE, "C left the device: plan it for TSR_DATA_PATH_DEVICE");
    if (form == TSR_FORM_ROWS)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "sums of a complex A and a real B are no elements of C: finish them");
    TSR_TRY(walk(e, see_buffer, &found));
    if (found.sum.buffer < 0)
        return tsr_fail(TSR_ERR_USAGE, "%lld elements at (%lld, %lld) of C lie in no part of this rank",
                        (long long)row.cols, (long long)row.row, (long long)row.col);
    const int64_t at = (row.row - found.part.row) * found.ld + (row.col - found.part.col) * reals;
    const char *from = (const char *)e->buffers[found.sum.buffer] + found.sum.offset + (size_t)at * element;
    TSR_TRY(device->ops->use(device));
    TSR_TRY(device->ops->download(device, to, from, (size_t)(row.cols * reals) * element, stream));
    return device->ops->stream_wait(device, stream);
}
