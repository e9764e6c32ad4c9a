/* A trace (io/record/trace_file.h) as a report shows it: so many events that a page holds them, of so many ranks that
 * one can look at them. Local. */
#ifndef TSR_APP_REPORT_REPORT_TRACE_H
#define TSR_APP_REPORT_REPORT_TRACE_H

#include "io/record/lanes.h"
#include "kernels/base/base.h"

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
    char name[256]; /* "rank 0 on node1: NVIDIA H200 #0" */
    double end;     /* of its last step, microseconds */
    int64_t steps;
    bool shown;
} tsr_report_row;

typedef struct {
    char *file, *command; /* owned */
    tsr_report_row *rows; /* owned: ranks of them */
    int ranks, shown;
    tsr_report_event *events; /* owned: count of them, lane by lane in the order of the file */
    int64_t count, room;
    int64_t steps; /* in the file */
    char labels[TSR_REPORT_LABELS][32];
    int label_count;
    double end; /* of the last step */
} tsr_report_trace;

/* TSR_ERR_NOT_FOUND for JSON that is no trace, or one without a step; TSR_ERR_FORMAT for what is no JSON. */
tsr_status tsr_report_trace_read(const char *file, tsr_report_trace *trace);
void tsr_report_trace_free(tsr_report_trace *trace);

#endif
