/* The log of a job (io/record/run_log.h): opened by all ranks together, ended by whichever rank knows how the run
 * ended. */
#ifndef TSR_APP_RUN_JOB_LOG_H
#define TSR_APP_RUN_JOB_LOG_H

#include "io/record/run_log.h"
#include "mpi/ranks/world.h"

/* Collective, the same status on every rank. First of all stop signals and crashes are watched for. Rank 0 writes
 * "running", and from here on a stop signal is written down, too. `file` may be NULL; it must live until the log is
 * closed, and the log may not move. */
tsr_status tsr_job_log_open(const tsr_world *world, const char *file, const char *command, tsr_run_log *log);
/* Local. This rank fails while others may be inside communication: says so in the log, before tsr_abort. */
void tsr_job_log_give_up(const tsr_world *world, tsr_run_log *log, tsr_status status);
/* Local, rank 0: the output, "C", is in place. Writes the final record and ends the watch for stop signals. A log that
 * cannot be replaced goes on saying that the run is under way: a warning, no reason to fail. Returns false then. Where
 * it is to go to standard output tsr_job_said fails. */
bool tsr_job_log_done(const tsr_world *world, tsr_run_log *log, const char *what,
                      void (*members)(const void *context, FILE *to), const void *context);
/* Local, rank 0, after the last words: TSR_ERR_IO where standard output did not take them, or not the log. */
tsr_status tsr_job_said(const tsr_run_log *log, const char *what);
/* Collective, with the status all ranks agreed on. */
void tsr_job_log_close(const tsr_world *world, tsr_run_log *log, tsr_status status);

/* Local. The FILE of --log FILE or --log=FILE in a command line that could not be read to its end; NULL: none,
 * or a dry run, which has no log. */
const char *tsr_job_log_find(int argc, char **argv);
/* Local: says in the log, on rank 0, that the command line was refused; `file` NULL: there is none, or it is what was
 * refused. */
void tsr_job_log_refuse(const tsr_world *world, const char *file, int argc, char **argv, tsr_status status);

#endif
