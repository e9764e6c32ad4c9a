/* The log of a command (app/library/api/job_log.h): what its command line and its output have to do with it. */
#ifndef TSR_APP_RUN_JOB_LOG_H
#define TSR_APP_RUN_JOB_LOG_H

#include "app/library/api/job_log.h"

/* Local, rank 0, after the last words: TSR_ERR_IO where standard output did not take them, or not the log. */
tsr_status tsr_job_said(const tsr_run_log *log, const char *what);
/* Local. The FILE of --log FILE or --log=FILE in a command line that could not be read to its end; NULL: none,
 * or a dry run, which has no log. */
const char *tsr_job_log_find(int argc, char **argv);
/* Local: says in the log, on rank 0, that the command line was refused; `file` NULL: there is none, or it is what was
 * refused. */
void tsr_job_log_refuse(const tsr_world *world, const char *file, int argc, char **argv, tsr_status status);

#endif
