/* Whether a job stands still, and whose fault that is: a pure function of signs of life and of the time when they were
 * seen to change. Clocks of hosts are never compared. */
#ifndef TSR_MPI_WATCH_JUDGE_H
#define TSR_MPI_WATCH_JUDGE_H

#include "mpi/watch/signs.h"

/* Plain memory: nodes send it to each other. */
typedef struct {
    uint32_t beats;
    int32_t left;
    struct {
        uint32_t begun, ended;
        int32_t kind, operand;
        uint64_t busy_ns, units;
    } lane[TSR_WATCHED_LANES];
} tsr_signs_copy;

void tsr_signs_read(tsr_signs *signs, tsr_signs_copy *copy);

/* One rank as another sees it. Zero: never seen, which is not judged. Seconds are the observer's clock. */
typedef struct {
    bool seen;
    tsr_signs_copy signs;
    double beat_at;                                                    /* when the last beat was seen */
    double moved_at[TSR_WATCHED_LANES];                                /* when a step was last seen to begin or end */
    bool file_named[TSR_WATCHED_LANES], slow_named[TSR_WATCHED_LANES]; /* said once */
} tsr_watched;

/* All in seconds, > 0. */
typedef struct {
    double quiet;      /* a rank without a beat, a step of a device lane, an exchange while nobody makes a step */
    double file_named; /* a step or phase that waits for a file is named after this */
    double file;       /* ... and is a stall after this */
    double slow;       /* a lane that was busy for this long is compared with those of other ranks */
    bool host;         /* device lanes work on the CPU, whose speed is nobody's promise: the limits of files */
} tsr_watch_limits;

typedef enum {
    TSR_VERDICT_FINE,
    TSR_VERDICT_FILE, /* waits for a file for long: to be named */
    TSR_VERDICT_SLOW, /* a straggler: to be named */
    TSR_VERDICT_SILENT /* a stall: this rank gives no sign of life */,
    TSR_VERDICT_STEP, /* a stall: this step does not end */
    TSR_VERDICT_WAIT  /* a stall: this exchange waits, and nobody makes a step; lane -1: nobody does anything */
} tsr_verdict_kind;

typedef struct {
    tsr_verdict_kind kind;
    int rank, lane;      /* number among those judged */
    double seconds;      /* for how long */
    double rate, others; /* a straggler's bytes or flops a second, and the others' median */
    int waiting;         /* a stall: a rank whose exchange waits meanwhile; -1: none */
} tsr_verdict;

/* These signs were seen now. */
void tsr_watch_see(tsr_watched *rank, const tsr_signs_copy *signs, double now);
/* The observer itself did not run for so long: nobody is to blame for what it did not see. */
void tsr_watch_excuse(tsr_watched *ranks, int count, double seconds);
/* The gravest there is. What is to be named is named once: the rank's flag is set. */
tsr_verdict tsr_watch_judge(tsr_watched *ranks, int count, const tsr_watch_limits *limits, double now);
/* The same of whether this rank is alive alone. */
tsr_verdict tsr_watch_judge_beats(const tsr_watched *ranks, int count, const tsr_watch_limits *limits, double now);

/* "gather of A", "checking C". `to` has room for 64 characters. */
const char *tsr_watch_doing(const tsr_signs_copy *signs, int lane, char *to);

#endif
