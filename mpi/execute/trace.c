/* Events of a rank and their way to rank 0 (trace.h). */
#include "mpi/execute/trace.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "io/record/trace_file.h"

#define PIECE_EVENTS 8192
#define COUNT_TAG 32201
#define EVENTS_TAG 32202

struct tsr_trace {
    double origin; /* tsr_now_seconds() of the run's beginning */
    int64_t room;
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

/* Steps that make or move C carry no operand of their own. */
static tsr_operand_name operand_of(const tsr_step *step) {
    switch (step->kind) {
    case TSR_STEP_ZERO:
    case TSR_STEP_MULTIPLY:
    case TSR_STEP_REDUCE:
    case TSR_STEP_FINISH:
    case TSR_STEP_TRANSPOSE:
    case TSR_STEP_MIRROR:
    case TSR_STEP_DOWNLOAD: return TSR_OPERAND_C;
    default: return step->operand;
    }
}

void tsr_trace_step(tsr_trace *trace, const tsr_step *step, double begin_seconds, double end_seconds) {
    add(trace, (tsr_trace_event){nanoseconds(trace, begin_seconds), nanoseconds(trace, end_seconds), step->lane_bytes,
                                 step->flops, (int32_t)step->lane, (int16_t)step->kind, (int16_t)operand_of(step)});
}

void tsr_trace_sync(tsr_trace *trace, double begin_seconds, double end_seconds) {
    add(trace, (tsr_trace_event){nanoseconds(trace, begin_seconds), nanoseconds(trace, end_seconds), 0, 0,
                                 TSR_LANE_WRITE, TSR_TRACE_SYNC, TSR_OPERAND_C});
}

const tsr_trace_event *tsr_trace_events(const tsr_trace *trace, int64_t *count) {
    *count = tsr_min(trace->room, atomic_load(&trace->count));
    return trace->events;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *kind_name(int kind) {
    return kind == TSR_TRACE_SYNC ? "sync" : tsr_step_kind_name((tsr_step_kind)kind);
}

static void write_events(tsr_trace_file *to, int rank, const tsr_trace_event *events, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const tsr_trace_event *e = &events[i];
        tsr_trace_line line = {rank,
                               /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without room there is no event */
                               (tsr_lane)e->lane, e->kind == TSR_TRACE_SYNC ? "file" : "step", kind_name(e->kind),
                               tsr_operand_text((tsr_operand_name)e->operand), e->begin_ns, e->end_ns, e->bytes,
                               e->flops};
        tsr_trace_file_line(to, &line);
    }
}

static tsr_status send_events(MPI_Comm comm, const tsr_trace_event *events, int64_t count) {
    TSR_TRY(TSR_MPI(MPI_Send(&count, 1, MPI_INT64_T, 0, COUNT_TAG, comm)));
    for (int64_t at = 0; at < count; at += PIECE_EVENTS) {
        int piece = (int)tsr_min(PIECE_EVENTS, count - at);
        TSR_TRY(TSR_MPI(MPI_Send(&events[at], piece * (int)sizeof *events, MPI_BYTE, 0, EVENTS_TAG, comm)));
    }
    return TSR_OK;
}

/* Takes all that the rank sends, also when the file cannot take any more of it. */
static tsr_status receive_events(MPI_Comm comm, int from, tsr_trace_event *piece_events, tsr_trace_file *to) {
    int64_t count = 0;
    TSR_TRY(TSR_MPI(MPI_Recv(&count, 1, MPI_INT64_T, from, COUNT_TAG, comm, MPI_STATUS_IGNORE)));
    for (int64_t at = 0; at < count; at += PIECE_EVENTS) {
        int piece = (int)tsr_min(PIECE_EVENTS, count - at);
        TSR_TRY(TSR_MPI(MPI_Recv(piece_events, piece * (int)sizeof *piece_events, MPI_BYTE, from, EVENTS_TAG, comm,
                                 MPI_STATUS_IGNORE)));
        write_events(to, from, piece_events, piece);
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
    write_events(to, mine_is, events, count);
    for (int rank = 1; rank < size; rank++) TSR_TRY(receive_events(comm, rank, piece, to));
    return TSR_OK;
}

static tsr_status check_whole(const tsr_trace *mine) {
    long long asked = mine ? atomic_load(&mine->count) : 0;
    if (!mine || asked <= mine->room) return TSR_OK;
    return tsr_fail(TSR_ERR_LIMIT, "the trace has room for %lld events and the run made %lld: nothing was written",
                    (long long)mine->room, asked);
}

tsr_status tsr_trace_save(const tsr_trace *mine, MPI_Comm comm, const tsr_rank_record *ranks, const char *file,
                          const char *command) {
    tsr_trace_file to;
    tsr_trace_event *piece = NULL;
    int rank;
    TSR_TRY(TSR_MPI(MPI_Comm_rank(comm, &rank)));
    TSR_TRY(tsr_agree(comm, check_whole(mine)));
    tsr_status status = TSR_OK;
    if (rank == 0) {
        piece = malloc(PIECE_EVENTS * sizeof *piece);
        status =
            piece ? tsr_trace_file_open(file, command, &to) : tsr_fail(TSR_ERR_MEMORY, "no memory to gather the trace");
    }
    TSR_TRY_DONE(tsr_agree(comm, status));
    if (rank == 0) {
        status = write_all(mine, comm, ranks, piece, &to);
        tsr_status closed = tsr_trace_file_close(&to, status == TSR_OK);
        if (status == TSR_OK) status = closed;
    } else {
        int64_t count = 0;
        const tsr_trace_event *events = mine ? tsr_trace_events(mine, &count) : NULL;
        status = send_events(comm, events, count);
    }
    status = tsr_agree(comm, status);
done:
    free(piece);
    return status;
}
