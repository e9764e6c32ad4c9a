/* The timeline of a run as Chrome trace JSON, which Perfetto and chrome://tracing open: a process (pid) a rank, a
 * row (tid) a lane, a complete event ("X") a step, microseconds with three decimals. Written event by event, whole
 * or not at all. */
#ifndef TSR_IO_RECORD_TRACE_FILE_H
#define TSR_IO_RECORD_TRACE_FILE_H

#include "io/record/run_record.h"
#include "io/text/text_file.h"

typedef struct {
    tsr_text_file file;
    bool first; /* no event yet */
    int error;  /* errno of the first write that failed */
} tsr_trace_file;

/* Nothing is owned. */
typedef struct {
    int rank;
    tsr_lane lane;
    const char *category;       /* "step": one of the plan's; "file": what follows them */
    const char *kind, *operand; /* "read", "A" */
    int64_t begin_ns, end_ns;   /* since the run's first barrier */
    double bytes, flops;        /* as the lane's record counts them */
} tsr_trace_line;

/* Whether the file could be written now. Leaves nothing behind. */
tsr_status tsr_trace_file_check(const char *file);
/* `file` must live until it is closed. */
tsr_status tsr_trace_file_open(const char *file, const char *command, tsr_trace_file *opened);
/* The names of a rank and its lanes. Errors of this and the next show when the file is closed. */
void tsr_trace_file_rank(tsr_trace_file *trace, const tsr_rank_record *rank);
void tsr_trace_file_line(tsr_trace_file *trace, const tsr_trace_line *line);
/* With `complete` the file gets its name; without it, or where a write failed, nothing is left. TSR_OK only when the
 * file is there whole. */
tsr_status tsr_trace_file_close(tsr_trace_file *trace, bool complete);

#endif
