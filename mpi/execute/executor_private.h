/* An executor and its lanes, for execute.c and lane.c alone. */
#ifndef TSR_MPI_EXECUTE_EXECUTOR_PRIVATE_H
#define TSR_MPI_EXECUTE_EXECUTOR_PRIVATE_H

#include <stdatomic.h>

#include "mpi/execute/clocks.h"
#include "mpi/execute/execute_step.h"
#include "mpi/execute/fallback.h"
#include "mpi/execute/trace/ranges.h"

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
} tsr_lane_state;

/* What the device counts, in pinned memory from x.doubtful on: that, and products that fell back, as of the last step
 * of the multiply lane's either turn. */
enum { TSR_COUNT_DOUBTFUL, TSR_COUNT_FELL_BACK, TSR_COUNTS = TSR_COUNT_FELL_BACK + 2 };

struct tsr_executor {
    tsr_execution x;
    void **buffers;
    tsr_clocks clocks;
    tsr_ranges *ranges;       /* NULL: no profiler listens */
    tsr_check_counts checked; /* of the last run */
    tsr_lane_state lanes[TSR_LANE_COUNT];
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

/* All steps of this rank, in the schedule's order. */
static inline tsr_status tsr_executor_walk(const tsr_executor *e, tsr_step_sink sink, void *context) {
    return e->x.plan->schedule->emit(e->x.plan, tsr_grid_rank(e->x.grid), sink, context);
}

/* A lane's stream and events; what was opened of it is to be closed, also after a failure. */
tsr_status tsr_lane_open(tsr_executor *e, tsr_lane which);
void tsr_lane_close(tsr_device *device, tsr_lane_state *lane);
/* The start routine of its thread; context: the tsr_lane_state. Waits until all lanes have started. */
void *tsr_lane_thread(void *context);

#endif
