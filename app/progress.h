/* How far a long command is: a bar on a terminal, elsewhere a line at most every 30 seconds, with share, rate and remaining time, on
 * stderr. One rank shows it. The clock is given, so that tests can set it. */
#ifndef TSR_APP_PROGRESS_H
#define TSR_APP_PROGRESS_H

#include <pthread.h>
#include <stdio.h>

#include "kernels/base.h"

typedef enum { TSR_PROGRESS_AUTO, TSR_PROGRESS_BAR, TSR_PROGRESS_PLAIN, TSR_PROGRESS_OFF } tsr_progress_mode;

tsr_status tsr_progress_parse(const char *name, tsr_progress_mode *mode); /* lists names on error */

typedef struct {
    FILE *to;                  /* not owned */
    tsr_progress_mode mode;    /* after open never AUTO */
    const char *what;          /* "multiply"; not owned */
    const char *unit;          /* "B" or "flop": the rate is shown in G<unit>/s; not owned */
    double total;              /* in units; 0: nothing to do */
    double (*clock)(void *);   /* seconds */
    void *clock_context;       /* not owned */
    double started, shown;     /* clock values; shown: of the last line or bar */
    bool drawn;                /* a bar is on the screen */
    pthread_mutex_t lock;
} tsr_progress;

/* AUTO becomes BAR when `to` is a terminal, PLAIN elsewhere. Ranks that show nothing pass OFF. */
void tsr_progress_open(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total, const char *unit, FILE *to);
/* The same with a clock of the caller's. */
void tsr_progress_open_with_clock(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total, const char *unit, FILE *to,
                                  double (*clock)(void *), void *clock_context);
/* `done` units of the total are done. Any thread. */
void tsr_progress_update(tsr_progress *progress, double done);
/* Ends the bar's line. */
void tsr_progress_close(tsr_progress *progress);

#endif
