/* A report of what runs and measurements left behind: one HTML page that needs nothing else, or a page of text. Local,
 * on one rank. */
#ifndef TSR_APP_REPORT_REPORT_H
#define TSR_APP_REPORT_REPORT_H

#include "app/report/report_trace.h"
#include "io/describe/describe.h"
#include "io/record/record_read.h"

/* What can be shown: code, how the page calls it. */
#define TSR_REPORT_LIST(X)                                                                                             \
    X(RUN, "run")   /* the record of a run, in an HDF5 file or a log */                                                \
    X(GEMM, "gemm") /* as the next three: bench NAME --json */                                                         \
    X(MEMORY, "memory")                                                                                                \
    X(ACCURACY, "accuracy")                                                                                            \
    X(MULTIPLY, "multiply") /* which has the record of its fastest run, too */                                         \
    X(PLAN, "plan")         /* plan --json */

typedef enum {
#define X(code, name) TSR_REPORT_##code,
    TSR_REPORT_LIST(X)
#undef X
        TSR_REPORT_KINDS
} tsr_report_kind;

const char *tsr_report_kind_name(tsr_report_kind kind);

typedef struct {
    tsr_report_kind kind;
    char *name;             /* owned: "C.h5:/C.run", "run.json" */
    bool has_record;        /* RUN, MULTIPLY */
    tsr_kept_record record; /* owned */
    /* what a rank's lanes could reach: bytes/s, flop/s to multiply; all 0: what the record's plan counted on */
    double ceilings[TSR_LANE_COUNT];
    char *json; /* owned: what the file holds, valid JSON; NULL for RUN */
} tsr_report_item;

/* All zeros: empty. */
typedef struct {
    tsr_report_item *items; /* owned: count of them */
    int count;
    bool has_trace;
    tsr_report_trace trace;
    const char *machine; /* the file that ceilings come from; NULL: records; not owned */
} tsr_report;

/* Adds what the file holds: every run of an HDF5 file, or the named one; a log; JSON of bench or plan. `text`:
 * FILE[:/path]. TSR_ERR_NOT_FOUND for a file that holds none of these. */
tsr_status tsr_report_add(tsr_report *report, tsr_describer *describer, const char *text);
/* Adds a copy of a record that is in memory. */
tsr_status tsr_report_add_record(tsr_report *report, const char *name, const tsr_run_record *record);
/* The timeline that --trace wrote; one a report. TSR_ERR_USAGE where it is of none of the runs added so far. */
tsr_status tsr_report_add_trace(tsr_report *report, const char *file);
/* Ceilings of the runs added so far come from this machine file (mpi/plan/machine.h), which must live as long as the
 * report. TSR_ERR_USAGE where there is no run. */
tsr_status tsr_report_add_machine(tsr_report *report, const char *file);
/* What a run told `taken`, of the run of that command: none where it holds no step. The report's from here on. */
tsr_status tsr_report_add_timeline(tsr_report *report, tsr_report_trace *taken, const char *command);
void tsr_report_free(tsr_report *report);

/* The page as a file, which is there whole or not at all (io/text/text_file.h). */
tsr_status tsr_report_write_page(const tsr_report *report, const char *file);
/* At most 80 columns, but for names that are longer. */
tsr_status tsr_report_print(const tsr_report *report, FILE *to);

/* ---- for the files of this room -------------------------------------------------------------- */

#define TSR_REPORT_SENTENCE 512
/* report_words.c: the run in one sentence: what was multiplied, seconds, speed, share of the limit, what set it. */
const char *tsr_report_sentence(const tsr_run_record *record, char text[TSR_REPORT_SENTENCE]);
/* "950 us", "71.7 ms", "1.23 s", "2 min 3 s" */
const char *tsr_report_seconds(double seconds, char text[32]);
const char *tsr_report_speed(double gflops, char text[32]); /* "12.3 GFLOP/s" */
/* "NVIDIA H200" of "NVIDIA H200 #0 (0000:18:00.0)" */
const char *tsr_report_device(const tsr_rank_record *rank, char text[96]);
/* What records of earlier versions do not say, each as a phrase. Calls `each` for every one. */
void tsr_report_lacks(const tsr_run_record *record, void (*each)(void *context, const char *what), void *context);
/* "label       words", within 80 columns. */
void tsr_report_words(FILE *to, const char *label, const char *text);
/* A bar of `columns` at most, for `value` of `most`; ends without a newline. */
void tsr_report_bar(FILE *to, double value, double most, int columns);
void tsr_report_print_trace(const tsr_report_trace *trace, FILE *to);    /* report_print_trace.c */
tsr_status tsr_report_print_json(const tsr_report_item *item, FILE *to); /* report_print_bench.c */

#endif
