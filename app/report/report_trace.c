/* Timelines for reports (report_trace.h), from files (report_trace_read.c) or from a run itself: first how much there
 * is of each rank, then what is shown of it, so that memory does not grow with the steps. */
#include "app/report/report_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */

int tsr_report_trace_row(tsr_report_trace *t, int rank) {
    if (t->ranks == t->row_room) {
        const int room = t->row_room ? 2 * t->row_room : 64;
        tsr_report_row *rows = realloc(t->rows, (size_t)room * sizeof *rows);
        t->failed |= !rows;
        if (!rows) return -1;
        t->rows = rows;
        t->row_room = room;
    }
    tsr_report_row *row = &t->rows[t->ranks];
    *row = (tsr_report_row){.rank = rank};
    snprintf(row->name, sizeof row->name, "rank %d", rank);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) row->last[lane] = -1;
    return t->ranks++;
}

static int by_end(const void *a, const void *b) {
    const tsr_report_row *x = *(tsr_report_row *const *)a, *y = *(tsr_report_row *const *)b;
    return (x->end > y->end) - (x->end < y->end);
}

/* The fastest, the median and the slowest of those with steps; all where they are few. */
tsr_status tsr_report_trace_choose(tsr_report_trace *t) {
    tsr_report_row **order = t->failed ? NULL : malloc(((size_t)t->ranks + 1) * sizeof *order);
    int count = 0;
    if (!order) return tsr_fail(TSR_ERR_MEMORY, "no memory for a timeline of %d ranks; free some", t->ranks);
    for (int i = 0; i < t->ranks; i++)
        if (t->rows[i].steps > 0) order[count++] = &t->rows[i];
    qsort(order, (size_t)count, sizeof *order, by_end);
    for (int i = 0; i < count; i++)
        order[i]->shown = count <= TSR_REPORT_RANKS || i == 0 || i == count / 2 || i == count - 1;
    for (int i = 0; i < count; i++) t->shown += order[i]->shown;
    free(order);
    t->allowed = tsr_max(8, TSR_REPORT_EVENTS / (tsr_max(1, t->shown) * TSR_LANE_COUNT));
    return TSR_OK;
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

void tsr_report_trace_keep(tsr_report_trace *t, int row, const tsr_report_event *event, const char *kind,
                           const char *operand) {
    tsr_report_row *r = &t->rows[row];
    const int lane = event->lane;
    const double bin = t->end / (double)t->allowed;
    tsr_report_event *last = r->last[lane] >= 0 ? &t->events[r->last[lane]] : NULL;
    if (r->lane_steps[lane] > t->allowed && last && event->begin - last->begin < bin) {
        last->end = fmax(last->end, event->end);
        last->busy += event->busy;
        last->bytes += event->bytes;
        last->flops += event->flops;
        last->steps++;
        return;
    }
    if (t->count == t->room) {
        const int64_t room = t->room ? 2 * t->room : 1024;
        tsr_report_event *events = realloc(t->events, (size_t)room * sizeof *events);
        t->failed |= !events;
        if (!events) return;
        t->events = events;
        t->room = room;
    }
    t->events[t->count] = *event;
    t->events[t->count].label = label_of(t, kind, operand);
    r->last[lane] = t->count++;
}

void tsr_report_trace_free(tsr_report_trace *trace) {
    free(trace->file);
    free(trace->command);
    free(trace->rows);
    free(trace->events);
    *trace = (tsr_report_trace){.count = 0};
}

/* ---- from a run ------------------------------------------------------------------------------ */

/* One row a rank: the row of rank r is row r. */
static tsr_status take_ranks(void *context, const tsr_rank_record *ranks, const tsr_trace_extent *extents, int count,
                             bool *wanted) {
    tsr_report_trace *t = context;
    for (int i = 0; i < count && !t->failed; i++) {
        const int at = tsr_report_trace_row(t, i);
        if (at < 0) break;
        tsr_report_row *row = &t->rows[at];
        tsr_trace_rank_name(&ranks[i], row->name);
        row->end = (double)extents[i].end_ns * 1e-3;
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) row->steps += row->lane_steps[lane] = extents[i].steps[lane];
        t->steps += row->steps;
        t->end = fmax(t->end, row->end);
    }
    TSR_TRY(tsr_report_trace_choose(t));
    for (int i = 0; i < count; i++) wanted[i] = t->rows[i].shown;
    return TSR_OK;
}

static void take_step(void *context, const tsr_trace_line *line) {
    const tsr_rect *tile = &line->tile;
    const double begin = (double)line->begin_ns * 1e-3, end = (double)line->end_ns * 1e-3;
    tsr_report_event event = {.begin = begin,
                              .end = end,
                              .busy = end - begin,
                              .bytes = line->bytes,
                              .flops = line->flops,
                              .steps = 1,
                              .tile = {tile->row, tile->col, tile->rows, tile->cols},
                              .rank = line->rank,
                              .lane = (int)line->lane};
    if (tsr_rect_empty(*tile))
        for (int i = 0; i < 4; i++) event.tile[i] = -1;
    tsr_report_trace_keep(context, line->rank, &event, line->kind, line->operand);
}

tsr_trace_sink tsr_report_trace_sink(tsr_report_trace *trace) {
    return (tsr_trace_sink){.context = trace, .ranks = take_ranks, .step = take_step};
}
