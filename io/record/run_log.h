/* The file of --log while its run is under way: one JSON object that says how the run stands. At the start it is
 * replaced by a record with status "running", at the end by the final one, each whole or not at all. What is killed in
 * between leaves "running", and never an earlier run's success. Fields that every such record has:
 *   format     TSR_RECORD_FORMAT
 *   status     "running", "done", "failed", "check failed", "stopped"
 *   exit_code  of the program; null while it runs
 *   message    what went wrong, "" where nothing did
 *   stage      where the run is, or was when it ended: "start-up", "multiply", ...
 *   progress   share of the products made by then, 0 to 1, on the rank that wrote this
 * Behind them the command line, when it began and on how many ranks, and for "done" all of the run's record.
 *
 * Any rank may write the end; the first one stands: a failure or a stop replaces the file only where that still holds
 * this run's "running". Where the file is gone rank 0 makes it anew; another rank does not, because its node may never
 * have had it.
 *
 * A log that says "done" is never replaced: the output has its name. Where the run fails after that, because standard
 * output cannot be written, the program's exit code is not 0, and the log goes on saying "done", exit code 0, with all
 * of the run's record.
 *
 * A pipe or a terminal gets one record, the final one of a run that ends by agreement of all ranks. It gets none where
 * a stop signal ends the run, or a rank gives up while others communicate: writing might wait for a reader. Nor where
 * nobody reads the pipe (text_file.h): C is in place by then, and the run ends with a warning. */
#ifndef TSR_IO_RECORD_RUN_LOG_H
#define TSR_IO_RECORD_RUN_LOG_H

#include <stdatomic.h>
#include <stdio.h>

#include "io/text/text_file.h"

#define TSR_STARTED_CHARS 40

typedef struct {
    const char *file;                    /* NULL: no log, and nothing here does anything; not owned */
    bool special;                        /* a pipe, a terminal, a device */
    bool first;                          /* rank 0 */
    char started[TSR_STARTED_CHARS];     /* when the run began, also without a file */
    atomic_bool finished;                /* this rank writes no more: a final record is there, or none began */
    bool in_place;                       /* the output has its name */
    bool unsaid;                         /* it was to go to standard output, which did not take it */
    char *about;                         /* the members about the run, for every record but that of "done" */
    char *running;                       /* the first record */
    char temporary[TSR_TEMPORARY_CHARS]; /* where a signal handler writes */
    _Atomic(const char *) stage;
    atomic_int progress; /* millionths */
} tsr_run_log;

/* The time now, ISO 8601, UTC. */
void tsr_run_log_now(char started[TSR_STARTED_CHARS]);

/* Local. Writes nothing. The same arguments on every rank but for `rank`; `file` must live until the log is freed,
 * NULL: none. On failure there is nothing to free, and freeing is no mistake. */
tsr_status tsr_run_log_prepare(const char *file, const char *command, const char *started, int rank, int ranks,
                               tsr_run_log *log);
/* Local, one rank: "running". Fails where the file cannot be written, and then leaves it as it was. */
tsr_status tsr_run_log_start(const tsr_run_log *log);
/* Local, any thread. `stage` is static text without characters that JSON escapes; done in [0, 1]. */
void tsr_run_log_stage(tsr_run_log *log, const char *stage);
void tsr_run_log_progress(tsr_run_log *log, double done);
/* Local. The final record of a status that is not TSR_OK, unless there is one. Keeps the thread's message, whether
 * it can be written or not. */
tsr_status tsr_run_log_fail(tsr_run_log *log, tsr_status status, const char *message);
/* Local. The final record of a run that is done, whatever the file holds. `members` writes what belongs to it, each as
 * ",\n  \"name\": value". NULL: an earlier run did all of it, as the text `context` says, and there is no record. */
tsr_status tsr_run_log_done(tsr_run_log *log, void (*members)(const void *context, FILE *to), const void *context);
/* Local. The end of a run that a signal ends: TSR_ERR_STOPPED, or the status of the rank that ends the job. Calls only
 * what a signal handler may, which has removed unfinished files first. `message` is static text without characters that
 * JSON escapes, in three parts. */
void tsr_run_log_stop(const tsr_run_log *log, tsr_status status, const char *const message[3]);
void tsr_run_log_free(tsr_run_log *log);

/* Local. Whether the file is there and a log that a run left, one of 0.1.0 too. */
bool tsr_run_log_found(const char *file);
/* Local. For a command line that was refused: the final record, where `file` is empty or a log that an earlier run
 * left. Nothing else is replaced, and none is made. Keeps the thread's message. */
void tsr_run_log_refuse(const char *file, const char *command, int ranks, tsr_status status);

#endif
