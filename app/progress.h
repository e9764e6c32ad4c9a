/* How far a long command is, shown by one rank: a bar on the terminal, elsewhere a line every 30 seconds on stderr.
 * Both say share, rate over the last seconds, time elapsed and time left. Under mpirun stderr is a pipe: the bar goes
 * to the controlling terminal, where there is one and the job is in its foreground. The clock is given, so that tests
 * can set it. */
#ifndef TSR_APP_PROGRESS_H
#define TSR_APP_PROGRESS_H

#include <pthread.h>
#include <stdio.h>

#include "app/library/listener.h"
#include "kernels/base/base.h"

typedef enum { TSR_PROGRESS_AUTO, TSR_PROGRESS_BAR, TSR_PROGRESS_PLAIN, TSR_PROGRESS_OFF } tsr_progress_mode;

tsr_status tsr_progress_parse(const char *name, tsr_progress_mode *mode); /* lists names on error */

/* When how much was done. */
typedef struct {
    double at, done;
} tsr_progress_mark;

#define TSR_PROGRESS_MARKS 32

/* What is shown. */
typedef struct {
    const char *what, *unit;     /* not owned */
    double share, rate, elapsed; /* of the total, in units a second, seconds */
    double left;                 /* seconds; < 0: unknown */
} tsr_progress_view;

typedef struct {
    FILE *to;         /* of lines; not owned */
    int terminal;     /* a file descriptor for the bar; -1: none. Writing to it never waits */
    bool to_terminal; /* `to` is a terminal itself */
    tsr_progress_mode mode;
    const char *what;                            /* "multiply"; not owned */
    const char *unit;                            /* "B" or "FLOP": the rate is shown in G<unit>/s; not owned */
    double total;                                /* in units; 0: nothing to do */
    double (*clock)(void *);                     /* seconds */
    void *clock_context;                         /* not owned */
    double started, drawn, written;              /* clock values; of the last bar, and the last line */
    tsr_progress_mark last;                      /* the latest advance */
    tsr_progress_mark marks[TSR_PROGRESS_MARKS]; /* earlier ones: the newest at (marked - 1) % TSR_PROGRESS_MARKS */
    int64_t marked;
    double reached;       /* units, with what is thought to be done of steps under way; never falls */
    double left, left_at; /* seconds left, and when that was said */
    int columns;          /* of the bar on the screen; 0: none */
    pthread_mutex_t lock;
} tsr_progress;

/* Ranks that show nothing pass OFF. */
void tsr_progress_open(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total, const char *unit,
                       FILE *to);
/* The same with the terminal's file instead of /dev/tty (NULL: none), and a clock of the caller's. */
void tsr_progress_open_with_clock(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total,
                                  const char *unit, FILE *to, const char *terminal, double (*clock)(void *),
                                  void *clock_context);
/* `done` units of the total are done, and steps of `under_way` more have begun: these count at the rate measured so
 * far, and never for more than they are. Any thread. */
void tsr_progress_update(tsr_progress *progress, double done, double under_way);
/* There is more to do than was thought. */
void tsr_progress_extend(tsr_progress *progress, double units);
/* Takes the bar away. */
void tsr_progress_close(tsr_progress *progress);
/* The same in a signal handler, for whichever bar is on the terminal. */
void tsr_progress_wipe(void);

/* What app/library tells of its progress, shown: each piece of work has a bar of its own, on stderr. */
typedef struct {
    tsr_progress_mode mode; /* OFF on ranks that show nothing */
    tsr_progress bar;       /* of the piece under way */
} tsr_progress_display;

/* `display` is not owned and lives as long as the listener. */
tsr_listener tsr_progress_listener(tsr_progress_display *display);

/* The bar's line: at most columns - 1 characters, so that no terminal wraps it, with as many parts as fit. "" where not
 * even the share does. */
void tsr_progress_format(const tsr_progress_view *view, int columns, char *text, size_t chars);

#endif
