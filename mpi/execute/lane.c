/* One lane (execute.h): walks the whole schedule and does the steps that are its own. Device lanes keep one step in
 * flight while they issue the next, so that a stream never runs dry between two steps that are both ready. */
#include "mpi/execute/executor_private.h"
#include "mpi/schedule/forecast.h"

/* ---- streams, events ------------------------------------------------------------------------- */

static bool lane_asynchronous(const tsr_execution *x, tsr_lane lane) {
    if (lane == TSR_LANE_READ || lane == TSR_LANE_WRITE) return false;
    return lane != TSR_LANE_EXCHANGE || x->transport->ops->asynchronous;
}

tsr_status tsr_lane_open(tsr_executor *e, tsr_lane which) {
    tsr_lane_state *lane = &e->lanes[which];
    tsr_device *device = e->x.device;
    *lane = (tsr_lane_state){.executor = e, .lane = which, .asynchronous = lane_asynchronous(&e->x, which)};
    TSR_TRY(device->ops->stream_create(device, &lane->stream));
    for (int i = 0; i < 2 && lane->asynchronous; i++) {
        TSR_TRY(device->ops->event_create(device, &lane->begin[i]));
        TSR_TRY(device->ops->event_create(device, &lane->end[i]));
    }
    return e->x.trace && lane->asynchronous ? device->ops->event_create(device, &lane->origin) : TSR_OK;
}

/* Buffers of the plan may be another run's next (kept.h): nothing is left that uses them. */
void tsr_lane_close(tsr_device *device, tsr_lane_state *lane) {
    if (lane->stream) (void)device->ops->stream_wait(device, lane->stream);
    for (int i = 0; i < 2; i++) {
        if (lane->begin[i]) device->ops->event_destroy(device, lane->begin[i]);
        if (lane->end[i]) device->ops->event_destroy(device, lane->end[i]);
    }
    if (lane->origin) device->ops->event_destroy(device, lane->origin);
    if (lane->stream) device->ops->stream_destroy(device, lane->stream);
}

/* ---- one lane -------------------------------------------------------------------------------- */

/* The kernel that makes a step's products. */
static const tsr_gemm_kernel *kernel_of(const tsr_gemm_kernel *kernel, const tsr_step *step) {
    return tsr_gemm_making(kernel, step->batch, step->m, step->n, step->k);
}

static const tsr_gemm_kernel *traced_kernel(const tsr_execution *x, const tsr_step *step) {
    return step->kind == TSR_STEP_MULTIPLY ? kernel_of(x->kernel, step) : NULL;
}

static long long predicted_ns(const tsr_executor *e, const tsr_step *step) {
    return (long long)(1e9 * tsr_lane_seconds(e->x.plan, step->lane, step->lane_bytes, step->flops));
}

static void lane_done(tsr_lane_state *lane, const tsr_step *step, double seconds) {
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
static tsr_status trace_origin(tsr_lane_state *lane) {
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
static tsr_status trace_landed(tsr_lane_state *lane, int flying) {
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
static tsr_status lane_land(tsr_lane_state *lane) {
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
static tsr_status run_step(tsr_lane_state *lane, const tsr_step *step) {
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
static void look_back(const tsr_lane_state *lane, const tsr_step *step) {
    tsr_execution *x = &lane->executor->x;
    if (step->kind == TSR_STEP_MULTIPLY && x->doubtful[TSR_COUNT_FELL_BACK + lane->turn] > 0)
        x->fallback_workspace = tsr_fallback_room(&lane->executor->fallback);
}
static tsr_status note_fallbacks(const tsr_lane_state *lane, const tsr_step *step) {
    const tsr_execution *x = &lane->executor->x;
    uint64_t *to = x->doubtful + TSR_COUNT_FELL_BACK + lane->turn;
    if (step->kind != TSR_STEP_MULTIPLY || lane->executor->fallback.bytes == 0) return TSR_OK;
    return x->device->ops->download(x->device, to, &x->counters->fallbacks.products, sizeof *to, lane->stream);
}

static tsr_status lane_issue(tsr_lane_state *lane, const tsr_step *step) {
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
    tsr_lane_state *lane = context;
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

void *tsr_lane_thread(void *context) {
    tsr_lane_state *lane = context;
    tsr_executor *e = lane->executor;
    tsr_status status = all_have_started(e) ? e->x.device->ops->use(e->x.device) : TSR_ERR_STOPPED;
    if (status == TSR_OK && lane->origin) status = trace_origin(lane);
    tsr_ranges_thread(e->ranges, lane->lane);
    if (status == TSR_OK) status = tsr_executor_walk(e, lane_step, lane);
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
