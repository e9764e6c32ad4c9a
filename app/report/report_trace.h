/* A trace (io/record/trace_file.h) as a report shows it: so many events that a page holds them, of so many ranks that
 * one can look at them. Local. */
#ifndef TSR_APP_REPORT_REPORT_TRACE_H
#define TSR_APP_REPORT_REPORT_TRACE_H

#include "io/record/trace_sink.h"

#define TSR_REPORT_RANKS 64     /* shown; of more the slowest, the median and the fastest */
#define TSR_REPORT_EVENTS 10000 /* shown; of more those that follow each other are joined */
#define TSR_REPORT_LABELS 96    /* kinds of steps */

/* One step, or several of a lane that follow each other. Microseconds since the run's beginning. */
typedef struct {
    double begin, end, busy;
    double bytes, flops;
    int64_t steps;
    int64_t tile[4]; /* of the operand: first row and column, rows, columns; -1: not said */
    int rank, lane, label;
} tsr_report_event;

typedef struct {
    int rank;
    char name[TSR_TRACE_RANK_CHARS];
    double end; /* of its last step, microseconds */
    int64_t steps, lane_steps[TSR_LANE_COUNT];
    int64_t last[TSR_LANE_COUNT]; /* event of the lane that came last; -1: none */
    bool shown;
} tsr_report_row;

typedef struct {
    char *file, *command; /* owned */
    tsr_report_row *rows; /* owned: ranks of them */
    int ranks, row_room, shown;
    int64_t allowed;          /* events of a lane */
    tsr_report_event *events; /* owned: count of them, lane by lane in the order of the file */
    int64_t count, room;
    int64_t steps; /* in the file */
    char labels[TSR_REPORT_LABELS][32];
    int label_count;
    double end;  /* of the last step */
    bool failed; /* there was no memory */
} tsr_report_trace;

/* TSR_ERR_NOT_FOUND for JSON that is no trace, or one without a step; TSR_ERR_FORMAT for what is no JSON. */
tsr_status tsr_report_trace_read(const char *file, tsr_report_trace *trace);
/* The same of a run's own steps: an empty trace takes them. Without a step it stays without rows that are shown. */
tsr_trace_sink tsr_report_trace_sink(tsr_report_trace *trace);
void tsr_report_trace_free(tsr_report_trace *trace);

/* ---- for the files of this room: first all rows with their counts, then the events of those that are shown ---- */

/* A row for a rank, called "rank N"; its number, or -1 and `failed`. */
int tsr_report_trace_row(tsr_report_trace *trace, int rank);
/* Which rows are shown, and in how many events. TSR_ERR_MEMORY, where adding rows failed, too. */
tsr_status tsr_report_trace_choose(tsr_report_trace *trace);
/* A step of a row; its label is made of the two texts. */
void tsr_report_trace_keep(tsr_report_trace *trace, int row, const tsr_report_event *event, const char *kind,
                           const char *operand);

#endif
