/* Warnings of a run: what the run goes on with, and nobody should overlook. Each is said once, as a line
 * "tessera: warning: ...", and kept for the record. Rank 0 alone speaks: what another rank finds is brought there
 * first. */
#ifndef TSR_IO_TEXT_WARNINGS_H
#define TSR_IO_TEXT_WARNINGS_H

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    FILE *to;        /* where they are said: stderr on rank 0; NULL: nowhere */
    bool silent;     /* kept without being said; else without `to` this rank keeps none */
    char text[8192]; /* those said so far, a line each, with newlines between them */
} tsr_warnings;

/* Local, any thread. One line, no newline: what, values, what to do. Says and keeps it unless it was said before;
 * `warnings` may be NULL. What no longer fits the text is said, and not kept. */
void tsr_warn(tsr_warnings *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
