/* Events of a rank and their way to rank 0 (trace.h). */
#include "mpi/execute/trace/trace.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "io/record/trace_file.h"

#define PIECE_EVENTS 4096
#define COUNT_TAG 32201
#define EVENTS_TAG 32202

struct tsr_trace {
    double origin; /* tsr_now_seconds() of the run's beginning */
    int64_t room;
    bool paused;
    atomic_llong count; /* asked for; may exceed room */
    tsr_trace_event *events;
};

/* ---- keeping --------------------------------------------------------------------------------- */

double tsr_trace_bytes(int64_t steps) { return ((double)steps + 1 + PIECE_EVENTS) * (double)sizeof(tsr_trace_event); }

tsr_status tsr_trace_open(int64_t steps, tsr_trace **trace) {
    tsr_trace *made = calloc(1, sizeof *made);
    tsr_trace_event *events =
        tsr_trace_bytes(steps) < (double)SIZE_MAX / 2 ? malloc(((size_t)steps + 1) * sizeof *events) : NULL;
    if (!made || !events) {
        char text[32];
        free(made);
        free(events);
        return tsr_fail(TSR_ERR_MEMORY,
                        "no memory (%s) for a trace of %lld steps: run without --trace, or with a larger --panel",
                        tsr_format_bytes(tsr_trace_bytes(steps), text), (long long)steps);
    }
    made->room = steps + 1;
    made->events = events;
    *trace = made;
    return TSR_OK;
}

void tsr_trace_close(tsr_trace *trace) {
    if (!trace) return;
    free(trace->events);
    free(trace);
}

void tsr_trace_start(tsr_trace *trace) {
    atomic_store(&trace->count, 0);
    trace->origin = tsr_now_seconds();
}

static int64_t nanoseconds(const tsr_trace *trace, double seconds) {
    return tsr_max(0, llround((seconds - trace->origin) * 1e9));
}

static void add(tsr_trace *trace, tsr_trace_event event) {
    int64_t at = atomic_fetch_add(&trace->count, 1);
    if (at < trace->room) trace->events[at] = event;
}

static int16_t number_of(const tsr_gemm_kernel *kernel) {
    int count;
    const tsr_gemm_kernel *const *all = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++)
        if (all[i] == kernel) return (int16_t)i;
    return -1;
}

/* Which of a step's buffers hold what it uses, and which what it makes (mpi/schedule/schedule.h). */
static void note_buffers(const tsr_step *step, tsr_trace_event *event) {
    static const struct {
        int uses[2], makes;
    } roles[] = {
        [TSR_STEP_READ] = {{-1, -1}, 0},     [TSR_STEP_UPLOAD] = {{0, -1}, 1},    [TSR_STEP_COPY_IN] = {{-1, -1}, 0},
        [TSR_STEP_GENERATE] = {{-1, -1}, 0}, [TSR_STEP_GATHER] = {{0, -1}, 0},    [TSR_STEP_PACK] = {{0, -1}, 1},
        [TSR_STEP_ZERO] = {{-1, -1}, 0},     [TSR_STEP_MULTIPLY] = {{0, 1}, 2},   [TSR_STEP_REDUCE] = {{0, -1}, 1},
        [TSR_STEP_FINISH] = {{0, 2}, 1},     [TSR_STEP_TRANSPOSE] = {{0, -1}, 1}, [TSR_STEP_MIRROR] = {{0, -1}, 0},
        [TSR_STEP_DOWNLOAD] = {{0, -1}, 1},  [TSR_STEP_COPY_OUT] = {{0, -1}, -1}, [TSR_STEP_WRITE] = {{0, -1}, -1},
        [TSR_STEP_ADD_UP] = {{0, 1}, 2},     [TSR_STEP_JUDGE] = {{0, -1}, -1},    [TSR_STEP_PASS] = {{0, -1}, 1}};
    for (int i = 0; i < 2; i++) {
        const int slot = roles[step->kind].uses[i];
        event->uses[i] = slot < 0 ? -1 : step->slots[slot].buffer;
    }
    const int made = roles[step->kind].makes;
    event->makes = made < 0 ? -1 : step->slots[made].buffer;
}

void tsr_trace_pause(tsr_trace *trace, bool paused) { trace->paused = paused; }

void tsr_trace_step(tsr_trace *trace, const tsr_step *step, const tsr_gemm_kernel *kernel, double begin_seconds,
                    double end_seconds) {
    if (trace->paused) return;
    tsr_trace_event event = {.begin_ns = nanoseconds(trace, begin_seconds),
                             .end_ns = nanoseconds(trace, end_seconds),
                             .bytes = step->lane_bytes,
                             .flops = step->flops,
                             .tile = step->rect,
                             .lane = (int16_t)step->lane,
                             .kind = (int16_t)step->kind,
                             .operand = (int16_t)tsr_step_operand(step),
                             .kernel = number_of(kernel)};
    note_buffers(step, &event);
    add(trace, event);
}

void tsr_trace_sync(tsr_trace *trace, double begin_seconds, double end_seconds) {
    add(trace, (tsr_trace_event){.begin_ns = nanoseconds(trace, begin_seconds),
                                 .end_ns = nanoseconds(trace, end_seconds),
                                 .lane = TSR_LANE_WRITE,
                                 .kind = TSR_TRACE_SYNC,
                                 .operand = TSR_OPERAND_C,
                                 .kernel = -1,
                                 .uses = {-1, -1},
                                 .makes = -1});
}

void tsr_trace_redistribution(tsr_trace *trace, tsr_operand_name operand, double bytes, double begin_seconds,
                              double end_seconds) {
    add(trace, (tsr_trace_event){.begin_ns = nanoseconds(trace, begin_seconds),
                                 .end_ns = nanoseconds(trace, end_seconds),
                                 .bytes = bytes,
                                 .lane = TSR_LANE_EXCHANGE,
                                 .kind = TSR_TRACE_REDISTRIBUTE,
                                 .operand = (int16_t)operand,
                                 .kernel = -1,
                                 .uses = {-1, -1},
                                 .makes = -1});
}

const tsr_trace_event *tsr_trace_events(const tsr_trace *trace, int64_t *count) {
    *count = tsr_min(trace->room, atomic_load(&trace->count));
    return trace->events;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *category(int kind) {
    return kind == TSR_TRACE_REDISTRIBUTE ? "memory" : kind == TSR_TRACE_SYNC ? "file" : "step";
}

static const char *kind_name(int kind) {
    if (kind == TSR_TRACE_REDISTRIBUTE) return "redistribute";
    return kind == TSR_TRACE_SYNC ? "sync" : tsr_step_kind_name((tsr_step_kind)kind);
}

/* Of one rank, whose events come in pieces. */
typedef struct {
    tsr_trace_file *to;
    int rank;
    tsr_trace_event *made; /* by buffer: the step that made what it holds */
    int32_t buffers;
} rank_events;

static tsr_trace_line line_of(int rank, const tsr_trace_event *e) {
    int kernels;
    const tsr_gemm_kernel *const *all = tsr_gemm_kernels(&kernels);
    return (tsr_trace_line){.rank = rank,
                            .lane = (tsr_lane)e->lane,
                            .category = category(e->kind),
                            .kind = kind_name(e->kind),
                            .operand = tsr_operand_text((tsr_operand_name)e->operand),
                            .begin_ns = e->begin_ns,
                            .end_ns = e->end_ns,
                            .bytes = e->bytes,
                            .flops = e->flops,
                            .tile = e->tile,
                            .kernel = e->kernel >= 0 && e->kernel < kernels ? all[e->kernel]->name : NULL};
}

/* Room for this buffer's event; without memory for it there are no arrows from there. */
static void make_room(rank_events *r, int32_t buffer) {
    if (buffer < r->buffers) return;
    tsr_trace_event *made = realloc(r->made, ((size_t)buffer + 1) * sizeof *made);
    if (!made) return;
    for (int32_t i = r->buffers; i <= buffer; i++) made[i] = (tsr_trace_event){.makes = -1};
    r->made = made;
    r->buffers = buffer + 1;
}

/* A rank's events stand in the order in which steps ended: what a step uses was made by the last one that made it. */
static void write_events(void *context, const tsr_trace_event *events, int64_t count) {
    rank_events *r = context;
    for (int64_t i = 0; i < count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without room there is no event */
        const tsr_trace_event *e = &events[i];
        const tsr_trace_line line = line_of(r->rank, e);
        tsr_trace_file_line(r->to, &line);
        for (int use = 0; use < 2; use++) {
            const int32_t buffer = e->uses[use];
            if (buffer < 0 || buffer >= r->buffers || r->made[buffer].makes < 0) continue;
            const tsr_trace_line from = line_of(r->rank, &r->made[buffer]);
            tsr_trace_file_arrow(r->to, &from, &line);
        }
        if (e->makes < 0) continue;
        make_room(r, e->makes);
        if (e->makes < r->buffers) r->made[e->makes] = *e;
    }
}

static tsr_status send_events(const tsr_trace *mine, MPI_Comm comm) {
    int64_t count = 0;
    const tsr_trace_event *events = mine ? tsr_trace_events(mine, &count) : NULL;
    TSR_TRY(TSR_MPI(MPI_Send(&count, 1, MPI_INT64_T, 0, COUNT_TAG, comm)));
    for (int64_t at = 0; at < count; at += PIECE_EVENTS) {
        int piece = (int)tsr_min(PIECE_EVENTS, count - at);
        TSR_TRY(TSR_MPI(MPI_Send(&events[at], piece * (int)sizeof *events, MPI_BYTE, 0, EVENTS_TAG, comm)));
    }
    return TSR_OK;
}

/* Hands on all that the rank sends, a piece at a time. */
static tsr_status receive_events(MPI_Comm comm, int from, tsr_trace_event *piece_events,
                                 void (*take)(void *context, const tsr_trace_event *events, int64_t count),
                                 void *context) {
    int64_t count = 0;
    TSR_TRY(TSR_MPI(MPI_Recv(&count, 1, MPI_INT64_T, from, COUNT_TAG, comm, MPI_STATUS_IGNORE)));
    for (int64_t at = 0; at < count; at += PIECE_EVENTS) {
        int piece = (int)tsr_min(PIECE_EVENTS, count - at);
        TSR_TRY(TSR_MPI(MPI_Recv(piece_events, piece * (int)sizeof *piece_events, MPI_BYTE, from, EVENTS_TAG, comm,
                                 MPI_STATUS_IGNORE)));
        take(context, piece_events, piece);
    }
    return TSR_OK;
}

static tsr_status write_all(const tsr_trace *mine, MPI_Comm comm, const tsr_rank_record *ranks, tsr_trace_event *piece,
                            tsr_trace_file *to) {
    int size, mine_is;
    int64_t count = 0;
    TSR_TRY(TSR_MPI(MPI_Comm_size(comm, &size)));
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &mine_is)));
    for (int rank = 0; rank < size; rank++) tsr_trace_file_rank(to, &ranks[rank]);
    const tsr_trace_event *events = mine ? tsr_trace_events(mine, &count) : NULL;
    rank_events own = {.to = to, .rank = mine_is};
    write_events(&own, events, count);
    free(own.made);
    for (int rank = 1; rank < size; rank++) {
        rank_events theirs = {.to = to, .rank = rank};
        const tsr_status status = receive_events(comm, rank, piece, write_events, &theirs);
        free(theirs.made);
        TSR_TRY(status);
    }
    return TSR_OK;
}

static tsr_status check_whole(const tsr_trace *mine) {
    long long asked = mine ? atomic_load(&mine->count) : 0;
    if (!mine || asked <= mine->room) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT, "the trace has room for %lld events and the run made %lld: nothing was written",
                    (long long)mine->room, asked);
}

tsr_status tsr_trace_save(const tsr_trace *mine, MPI_Comm comm, const tsr_rank_record *ranks, const double *startup,
                          const char *file, const char *command) {
    tsr_trace_file to;
    tsr_trace_event *piece = NULL;
    int rank;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &rank)));
    TSR_TRY(tsr_agree(comm, check_whole(mine)));
    tsr_status status = TSR_OK;
    if (rank == 0) {
        piece = malloc(PIECE_EVENTS * sizeof *piece);
        status = piece ? tsr_trace_file_open(file, command, startup, &to)
                       : tsr_fail(TSR_ERR_MEMORY, "no memory to gather the trace");
    }
    TSR_TRY_DONE(tsr_agree(comm, status));
    if (rank == 0) {
        status = write_all(mine, comm, ranks, piece, &to);
        tsr_status closed = tsr_trace_file_close(&to, status == TSR_OK);
        if (status == TSR_OK) status = closed;
    } else {
        status = send_events(mine, comm);
    }
    status = tsr_agree(comm, status);
done:
    free(piece);
    return status;
}

/* ---- handing over ---------------------------------------------------------------------------- */

typedef struct {
    const tsr_trace_sink *to;
    int rank;
} told_rank;

static void tell_events(void *context, const tsr_trace_event *events, int64_t count) {
    const told_rank *t = context;
    for (int64_t i = 0; i < count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without room there is no event */
        const tsr_trace_line line = line_of(t->rank, &events[i]);
        t->to->step(t->to->context, &line);
    }
}

static tsr_trace_extent extent_of(const tsr_trace *mine) {
    tsr_trace_extent extent = {.end_ns = 0};
    int64_t count = 0;
    const tsr_trace_event *events = mine ? tsr_trace_events(mine, &count) : NULL;
    for (int64_t i = 0; i < count; i++) {
        extent.steps[events[i].lane]++;
        extent.end_ns = tsr_max(extent.end_ns, events[i].end_ns);
    }
    return extent;
}

/* Rank 0's lists, one entry a rank. */
typedef struct {
    tsr_trace_extent *extents;
    bool *wanted;
    tsr_trace_event *piece;
} told;

static tsr_status open_told(int size, told *t) {
    t->extents = calloc((size_t)size, sizeof *t->extents);
    t->wanted = calloc((size_t)size, sizeof *t->wanted);
    t->piece = malloc(PIECE_EVENTS * sizeof *t->piece);
    if (t->extents && t->wanted && t->piece) return TSR_OK;
    return tsr_fail(TSR_ERR_MEMORY, "no memory to gather the steps of %d ranks: free some", size);
}

static tsr_status tell_all(const tsr_trace *mine, MPI_Comm comm, int size, const told *t, const tsr_trace_sink *to) {
    int64_t count = 0;
    const tsr_trace_event *events = mine ? tsr_trace_events(mine, &count) : NULL;
    if (t->wanted[0]) tell_events(&(told_rank){to, 0}, events, count);
    for (int rank = 1; rank < size; rank++)
        if (t->wanted[rank]) TSR_TRY(receive_events(comm, rank, t->piece, tell_events, &(told_rank){to, rank}));
    return TSR_OK;
}

tsr_status tsr_trace_tell(const tsr_trace *mine, MPI_Comm comm, const tsr_rank_record *ranks,
                          const tsr_trace_sink *to) {
    int rank, size;
    told t = {NULL};
    bool wanted = false;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &rank)));
    TSR_TRY(TSR_MPI(MPI_Comm_size(comm, &size)));
    tsr_status status = TSR_OK;
    TSR_TRY_DONE(tsr_agree(comm, rank == 0 ? open_told(size, &t) : TSR_OK));
    const tsr_trace_extent extent = extent_of(mine);
    TSR_TRY_DONE(TSR_MPI(MPI_Gather(&extent, sizeof extent, MPI_BYTE, t.extents, sizeof extent, MPI_BYTE, 0, comm)));
    TSR_TRY_DONE(tsr_agree(comm, rank == 0 ? to->ranks(to->context, ranks, t.extents, size, t.wanted) : TSR_OK));
    TSR_TRY_DONE(TSR_MPI(MPI_Scatter(t.wanted, 1, MPI_C_BOOL, &wanted, 1, MPI_C_BOOL, 0, comm)));
    if (rank == 0) status = tell_all(mine, comm, size, &t, to);
    else if (wanted) status = send_events(mine, comm);
    status = tsr_agree(comm, status);
done:
    free(t.extents);
    free(t.wanted);
    free(t.piece);
    return status;
}
