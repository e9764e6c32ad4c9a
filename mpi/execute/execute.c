/* One run of a plan: its lanes are threads (lane.c), which it starts, watches and counts. */
#include "mpi/execute/execute.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "mpi/execute/executor_private.h"
#include "mpi/execute/load.h"
#include "mpi/execute/memory/buffers.h"
#include "mpi/schedule/forecast.h"

void tsr_executor_close(tsr_executor *e) {
    if (!e) return;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) tsr_lane_close(e->x.device, &e->lanes[lane]);
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
    TSR_TRY_DONE(tsr_kept_take(execution->kept, execution->device, TSR_KEPT_HOST, TSR_COUNTS * sizeof *e->x.doubtful,
                               (void **)&e->x.doubtful));
    TSR_TRY_DONE(tsr_crew_open(&e->x.readers));
    TSR_TRY_DONE(tsr_crew_open(&e->x.writers));
    TSR_TRY_DONE(tsr_clocks_open(execution->plan->buffers, &e->clocks));
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) TSR_TRY_DONE(tsr_lane_open(e, (tsr_lane)lane));
    *executor = e;
    return TSR_OK;
done:
    tsr_executor_close(e);
    return status;
}

/* ---- progress -------------------------------------------------------------------------------- */

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
        tsr_lane_state *lane = &e->lanes[i];
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
    memset(e->x.doubtful, 0, TSR_COUNTS * sizeof *e->x.doubtful);
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
        tsr_lane_state *lane = &e->lanes[i];
        lane->started = pthread_create(&lane->thread, NULL, tsr_lane_thread, lane) == 0;
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
    TSR_TRY(tsr_executor_walk(e, see_buffer, &found));
    if (found.sum.buffer < 0)
        return tsr_fail(TSR_ERR_USAGE, "%lld elements at (%lld, %lld) of C lie in no part of this rank",
                        (long long)row.cols, (long long)row.row, (long long)row.col);
    const int64_t at = (row.row - found.part.row) * found.ld + (row.col - found.part.col) * reals;
    const char *from = (const char *)e->buffers[found.sum.buffer] + found.sum.offset + (size_t)at * element;
    TSR_TRY(device->ops->use(device));
    TSR_TRY(device->ops->download(device, to, from, (size_t)(row.cols * reals) * element, stream));
    return device->ops->stream_wait(device, stream);
}
