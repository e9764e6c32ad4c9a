/* The timeline of a run as Chrome trace JSON, which Perfetto and chrome://tracing open: a process (pid) a rank, a
 * row (tid) a lane, a complete event ("X") a step, microseconds with three decimals. Counters ("C") are the rates of
 * lanes, arrows ("s", "f") lead from a step to the one that uses what it made. Written event by event, whole or not at
 * all. */
#ifndef TSR_IO_RECORD_TRACE_FILE_H
#define TSR_IO_RECORD_TRACE_FILE_H

#include "io/record/trace_sink.h"
#include "io/text/text_file.h"

#define TSR_TRACE_HEAD "{\"displayTimeUnit\": \"ms\"" /* how a trace begins */

typedef struct {
    tsr_text_file file;
    bool first;        /* no event yet */
    int error;         /* errno of the first write that failed */
    int64_t begins_ns; /* when the run begins: the start-up comes before it */
    int64_t arrows;    /* so far */
} tsr_trace_file;

/* Whether the file could be written now. Leaves nothing behind. */
tsr_status tsr_trace_file_check(const char *file);
/* `file` must live until it is closed. `startup`: seconds of its parts, which stand before the run in a row of rank 0;
 * NULL: none. */
tsr_status tsr_trace_file_open(const char *file, const char *command, const double *startup, tsr_trace_file *opened);
/* The names of a rank and its lanes, and its memory. Errors of this and the next show when the file is closed. */
void tsr_trace_file_rank(tsr_trace_file *trace, const tsr_rank_record *rank);
/* The step, and its lane's rate while it runs. */
void tsr_trace_file_line(tsr_trace_file *trace, const tsr_trace_line *line);
/* What `from` made is used by `to`; of both the rank, lane and begin count. */
void tsr_trace_file_arrow(tsr_trace_file *trace, const tsr_trace_line *from, const tsr_trace_line *to);
/* With `complete` the file gets its name; without it, or where a write failed, nothing is left. TSR_OK only when the
 * file is there whole. */
tsr_status tsr_trace_file_close(tsr_trace_file *trace, bool complete);

#endif
