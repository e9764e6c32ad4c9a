/* Traces in files for reports (report_trace.h). The file is read twice, row by row and then event by event. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/report_trace.h"
#include "io/text/json_read.h"

#define RANKS_MOST 65536

typedef struct {
    tsr_report_trace *trace;
    int row; /* of the last event */
    bool is_trace, in_events, second;
    double begins; /* when the run does, in microseconds; 0.1.0: 0 */
    /* the event that is being read */
    bool step, names_process;
    tsr_report_event event;
    double pid, tid;
    char kind[32], operand[16], name[TSR_TRACE_RANK_CHARS];
} reader;

/* The row of the event's process, -1 where there is none for it. Traces are written rank by rank. */
static int find_row(reader *r) {
    const tsr_report_trace *t = r->trace;
    if (!(r->pid >= 0 && r->pid < RANKS_MOST) || t->failed) return -1;
    const int rank = (int)r->pid;
    if (rank < t->ranks && t->rows[rank].rank == rank) return rank;
    if (r->row < t->ranks && t->rows[r->row].rank == rank) return r->row;
    for (r->row = 0; r->row < t->ranks; r->row++)
        if (t->rows[r->row].rank == rank) return r->row;
    return r->second ? -1 : (r->row = tsr_report_trace_row(r->trace, rank));
}

static void end_event(reader *r) {
    const int row = find_row(r);
    if (row < 0) return;
    tsr_report_trace *t = r->trace;
    if (r->names_process && !r->second && *r->name) memcpy(t->rows[row].name, r->name, sizeof t->rows[row].name);
    if (!r->step || !(r->tid >= 0 && r->tid < TSR_LANE_COUNT)) return;
    tsr_report_event *e = &r->event;
    e->begin -= r->begins;
    if (!isfinite(e->begin) || !(e->busy >= 0) || !isfinite(e->busy)) return;
    e->rank = t->rows[row].rank;
    e->lane = (int)r->tid;
    e->end = e->begin + e->busy;
    e->steps = 1;
    if (r->second) {
        if (t->rows[row].shown) tsr_report_trace_keep(t, row, e, r->kind, r->operand);
        return;
    }
    t->rows[row].lane_steps[e->lane]++;
    t->rows[row].steps++;
    t->rows[row].end = fmax(t->rows[row].end, e->end);
    t->end = fmax(t->end, e->end);
    t->steps++;
}

static void begin_event(reader *r) {
    r->step = r->names_process = false;
    r->event = (tsr_report_event){.tile = {-1, -1, -1, -1}};
    r->pid = r->tid = -1;
    r->kind[0] = r->operand[0] = r->name[0] = '\0';
}

static void read_member(reader *r, const tsr_json_value *v) {
    const double number = v->kind == TSR_JSON_NUMBER ? strtod(v->text, NULL) : -1;
    if (strcmp(v->name, "ph") == 0) r->step = strcmp(v->text, "X") == 0;
    else if (strcmp(v->name, "name") == 0) r->names_process = strcmp(v->text, "process_name") == 0;
    else if (strcmp(v->name, "pid") == 0) r->pid = number;
    else if (strcmp(v->name, "tid") == 0) r->tid = number;
    else if (strcmp(v->name, "ts") == 0) r->event.begin = number;
    else if (strcmp(v->name, "dur") == 0) r->event.busy = number;
}

static void read_argument(reader *r, const tsr_json_value *v) {
    static const char *const tile[] = {"row", "col", "rows", "cols"};
    const double number = v->kind == TSR_JSON_NUMBER ? strtod(v->text, NULL) : 0;
    for (int i = 0; i < 4; i++)
        if (strcmp(v->name, tile[i]) == 0 && number >= 0 && number < 1e15) r->event.tile[i] = (int64_t)number;
    if (strcmp(v->name, "kind") == 0) tsr_printable(v->text, r->kind, sizeof r->kind);
    else if (strcmp(v->name, "operand") == 0) tsr_printable(v->text, r->operand, sizeof r->operand);
    else if (strcmp(v->name, "name") == 0) tsr_printable(v->text, r->name, sizeof r->name);
    else if (strcmp(v->name, "bytes") == 0) r->event.bytes = isfinite(number) ? number : 0;
    else if (strcmp(v->name, "flops") == 0) r->event.flops = isfinite(number) ? number : 0;
}

static void note_command(reader *r, const tsr_json_value *v) {
    if (r->second || r->trace->command) return;
    r->trace->command = strdup(v->text);
    r->trace->failed |= !r->trace->command;
}

static void read_value(void *context, const tsr_json_value *v) {
    reader *r = context;
    const bool list = v->kind == TSR_JSON_ARRAY || v->kind == TSR_JSON_OBJECT || v->kind == TSR_JSON_END;
    if (v->depth == 1 && list) {
        r->in_events = v->kind == TSR_JSON_ARRAY && strcmp(v->name, "traceEvents") == 0;
        r->is_trace |= r->in_events;
    } else if (v->depth == 2 && !r->in_events && v->kind == TSR_JSON_TEXT && strcmp(v->name, "command") == 0) {
        note_command(r, v);
    } else if (v->depth == 2 && !r->in_events && v->kind == TSR_JSON_NUMBER && strcmp(v->name, "run_begins") == 0) {
        r->begins = fmax(0, strtod(v->text, NULL));
    } else if (!r->in_events) {
        return;
    } else if (v->depth == 2 && v->kind == TSR_JSON_OBJECT) begin_event(r);
    else if (v->depth == 2 && v->kind == TSR_JSON_END) end_event(r);
    else if (v->depth == 3 && !list) read_member(r, v);
    else if (v->depth == 4 && !list) read_argument(r, v);
}

static tsr_status check_trace(const reader *r) {
    const tsr_report_trace *t = r->trace;
    if (t->failed) return tsr_fail(TSR_ERR_MEMORY, "no memory for the trace '%s'; free some", t->file);
    if (!r->is_trace)
        return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' is no trace: name a file that --trace of tessera wrote", t->file);
    if (t->steps > 0) return TSR_OK;
    return tsr_fail(TSR_ERR_NOT_FOUND, "the trace '%s' holds no step of any lane: leave out --trace", t->file);
}

static tsr_status read_both(reader *r) {
    tsr_report_trace *t = r->trace;
    TSR_TRY(tsr_json_read_file(t->file, read_value, r));
    TSR_TRY(check_trace(r));
    TSR_TRY(tsr_report_trace_choose(t));
    r->second = true;
    r->row = 0;
    TSR_TRY(tsr_json_read_file(t->file, read_value, r));
    return check_trace(r);
}

tsr_status tsr_report_trace_read(const char *file, tsr_report_trace *trace) {
    tsr_report_trace made = {.file = strdup(file)};
    reader r = {.trace = &made};
    tsr_status status = TSR_OK;
    if (!made.file) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the trace '%s'; free some", file);
    if (status == TSR_OK) status = read_both(&r);
    if (status == TSR_OK) *trace = made;
    else tsr_report_trace_free(&made);
    return status;
}
