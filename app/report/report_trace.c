/* Traces for reports (report_trace.h). The file is read twice: first for how much there is of each rank, then for what
 * is shown of it, so that memory does not grow with the file. */
#include "app/report/report_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/text/json_read.h"

#define RANKS_MOST 65536

typedef struct {
    int64_t steps[TSR_LANE_COUNT];
    int64_t last[TSR_LANE_COUNT]; /* event of the lane that came last; -1: none */
} lanes_of;

typedef struct {
    tsr_report_trace *trace;
    lanes_of *lanes; /* owned: one a row */
    int row_room, row;
    bool is_trace, in_events, second, failed;
    double begins;   /* when the run does, in microseconds; 0.1.0: 0 */
    int64_t allowed; /* events of a lane */
    /* the event that is being read */
    bool step, names_process;
    tsr_report_event event;
    double pid, tid;
    char kind[32], operand[16], name[256];
} reader;

/* ---- ranks ----------------------------------------------------------------------------------- */

static int add_row(reader *r, int rank) {
    tsr_report_trace *t = r->trace;
    if (t->ranks == r->row_room) {
        const int room = r->row_room ? 2 * r->row_room : 64;
        tsr_report_row *rows = realloc(t->rows, (size_t)room * sizeof *rows);
        if (rows) t->rows = rows;
        lanes_of *lanes = realloc(r->lanes, (size_t)room * sizeof *lanes);
        if (lanes) r->lanes = lanes;
        r->failed = !rows || !lanes;
        if (r->failed) return -1;
        r->row_room = room;
    }
    t->rows[t->ranks] = (tsr_report_row){.rank = rank};
    snprintf(t->rows[t->ranks].name, sizeof t->rows->name, "rank %d", rank);
    r->lanes[t->ranks] = (lanes_of){{0}, {0}};
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) r->lanes[t->ranks].last[lane] = -1;
    return t->ranks++;
}

/* The row of the event's process, -1 where there is none for it. Traces are written rank by rank. */
static int find_row(reader *r) {
    const tsr_report_trace *t = r->trace;
    if (!(r->pid >= 0 && r->pid < RANKS_MOST) || r->failed) return -1;
    const int rank = (int)r->pid;
    if (rank < t->ranks && t->rows[rank].rank == rank) return rank;
    if (r->row < t->ranks && t->rows[r->row].rank == rank) return r->row;
    for (r->row = 0; r->row < t->ranks; r->row++)
        if (t->rows[r->row].rank == rank) return r->row;
    return r->second ? -1 : (r->row = add_row(r, rank));
}

/* ---- events ---------------------------------------------------------------------------------- */

static int label_of(tsr_report_trace *t, const char *kind, const char *operand) {
    char label[32];
    snprintf(label, sizeof label, "%.20s%s%.9s", kind, *operand ? " " : "", operand);
    for (int i = 0; i < t->label_count; i++)
        if (strcmp(t->labels[i], label) == 0) return i;
    if (t->label_count == TSR_REPORT_LABELS) return TSR_REPORT_LABELS - 1;
    memcpy(t->labels[t->label_count], label, sizeof label);
    return t->label_count++;
}

static void keep_event(reader *r, int row) {
    tsr_report_trace *t = r->trace;
    lanes_of *lanes = &r->lanes[row];
    const int lane = r->event.lane;
    const double bin = t->end / (double)r->allowed;
    tsr_report_event *last = lanes->last[lane] >= 0 ? &t->events[lanes->last[lane]] : NULL;
    if (lanes->steps[lane] > r->allowed && last && r->event.begin - last->begin < bin) {
        last->end = fmax(last->end, r->event.end);
        last->busy += r->event.busy;
        last->bytes += r->event.bytes;
        last->flops += r->event.flops;
        last->steps++;
        return;
    }
    if (t->count == t->room) {
        const int64_t room = t->room ? 2 * t->room : 1024;
        tsr_report_event *events = realloc(t->events, (size_t)room * sizeof *events);
        r->failed = !events;
        if (!events) return;
        t->events = events;
        t->room = room;
    }
    r->event.label = label_of(t, r->kind, r->operand);
    t->events[t->count] = r->event;
    lanes->last[lane] = t->count++;
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
        if (t->rows[row].shown) keep_event(r, row);
        return;
    }
    r->lanes[row].steps[e->lane]++;
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
    r->failed |= !r->trace->command;
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

/* ---- what is shown --------------------------------------------------------------------------- */

static int by_end(const void *a, const void *b) {
    const tsr_report_row *x = *(tsr_report_row *const *)a, *y = *(tsr_report_row *const *)b;
    return (x->end > y->end) - (x->end < y->end);
}

/* The fastest, the median and the slowest of those with steps; all where they are few. */
static tsr_status choose_rows(tsr_report_trace *t) {
    tsr_report_row **order = malloc(((size_t)t->ranks + 1) * sizeof *order);
    int count = 0;
    if (!order) return tsr_fail(TSR_ERR_MEMORY, "no memory for the %d ranks of '%s'; free some", t->ranks, t->file);
    for (int i = 0; i < t->ranks; i++)
        if (t->rows[i].steps > 0) order[count++] = &t->rows[i];
    qsort(order, (size_t)count, sizeof *order, by_end);
    for (int i = 0; i < count; i++)
        order[i]->shown = count <= TSR_REPORT_RANKS || i == 0 || i == count / 2 || i == count - 1;
    for (int i = 0; i < count; i++) t->shown += order[i]->shown;
    free(order);
    return TSR_OK;
}

static tsr_status check_trace(const reader *r) {
    const tsr_report_trace *t = r->trace;
    if (r->failed) return tsr_fail(TSR_ERR_MEMORY, "no memory for the trace '%s'; free some", t->file);
    if (!r->is_trace)
        return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' is no trace: name a file that --trace of tessera wrote", t->file);
    if (t->steps > 0) return TSR_OK;
    return tsr_fail(TSR_ERR_NOT_FOUND, "the trace '%s' holds no step of any lane: leave out --trace", t->file);
}

static tsr_status read_both(reader *r) {
    tsr_report_trace *t = r->trace;
    TSR_TRY(tsr_json_read_file(t->file, read_value, r));
    TSR_TRY(check_trace(r));
    TSR_TRY(choose_rows(t));
    r->second = true;
    r->row = 0;
    r->allowed = tsr_max(8, TSR_REPORT_EVENTS / (t->shown * TSR_LANE_COUNT));
    TSR_TRY(tsr_json_read_file(t->file, read_value, r));
    return check_trace(r);
}

tsr_status tsr_report_trace_read(const char *file, tsr_report_trace *trace) {
    tsr_report_trace made = {.file = strdup(file)};
    reader r = {.trace = &made};
    tsr_status status = TSR_OK;
    if (!made.file) status = tsr_fail(TSR_ERR_MEMORY, "no memory for the trace '%s'; free some", file);
    if (status == TSR_OK) status = read_both(&r);
    free(r.lanes);
    if (status == TSR_OK) *trace = made;
    else tsr_report_trace_free(&made);
    return status;
}

void tsr_report_trace_free(tsr_report_trace *trace) {
    free(trace->file);
    free(trace->command);
    free(trace->rows);
    free(trace->events);
    *trace = (tsr_report_trace){.count = 0};
}
