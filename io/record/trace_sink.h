/* The steps of a run that was traced, on their way to whoever takes them: a file (trace_file.h), or a page. */
#ifndef TSR_IO_RECORD_TRACE_SINK_H
#define TSR_IO_RECORD_TRACE_SINK_H

#include "io/record/run_record.h"

/* One step. Nothing is owned. */
typedef struct {
    int rank;
    tsr_lane lane;
    const char *category;       /* "step": one of the plan's; "file": what follows them; "memory": redistributions */
    const char *kind, *operand; /* "read", "A" */
    int64_t begin_ns, end_ns;   /* since the run's first barrier */
    double bytes, flops;        /* as the lane's record counts them */
    tsr_rect tile;              /* of the operand; empty: not one tile */
    const char *kernel;         /* that multiplied; NULL: none */
} tsr_trace_line;

/* What the steps of a rank come to. Plain memory: gathered to rank 0. */
typedef struct {
    int64_t steps[TSR_LANE_COUNT];
    int64_t end_ns; /* of the last of them */
} tsr_trace_extent;

/* Who takes the steps when the run has ended, on rank 0. All zeros: nobody. */
typedef struct {
    void *context; /* handed to both; not owned */
    /* First what each rank did: `count` records and extents. Sets for each rank whether its steps are wanted. */
    tsr_status (*ranks)(void *context, const tsr_rank_record *ranks, const tsr_trace_extent *extents, int count,
                        bool *wanted);
    /* Then the steps of those, rank by rank, each rank's in the order in which they ended. */
    void (*step)(void *context, const tsr_trace_line *line);
} tsr_trace_sink;

#define TSR_TRACE_RANK_CHARS 256
/* "rank 0 on node1: NVIDIA H200 #0"; returns text. */
const char *tsr_trace_rank_name(const tsr_rank_record *rank, char text[TSR_TRACE_RANK_CHARS]);

#endif
