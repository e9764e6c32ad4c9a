/* tessera multiply as its user sees it: one run of app/library with its log, progress, signals and output. */
#ifndef TSR_APP_RUN_MULTIPLY_H
#define TSR_APP_RUN_MULTIPLY_H

#include "app/library/run.h"
#include "app/progress.h"

typedef struct {
    tsr_run_options run; /* but for `started` */
    const char *log;     /* JSON file, NULL: none */
    const char *report;  /* HTML page (app/report), NULL: none */
    tsr_progress_mode progress;
    bool quiet;   /* no summary */
    bool ranks;   /* the table of ranks, too */
    bool dry_run; /* show the plan, touch no data */
} tsr_multiply_settings;

/* Collective. Prints the run's summary (or with dry_run the plan) on rank 0. TSR_ERR_CHECK when the check finds the
 * product wrong: then nothing is published. */
tsr_status tsr_multiply(const tsr_world *world, const tsr_multiply_settings *settings);

#endif
