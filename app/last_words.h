/* What a command says of its job at the end, beside what the library says: of standard output, of a command line that
 * was refused, of the file that its output went into. */
#ifndef TSR_APP_LAST_WORDS_H
#define TSR_APP_LAST_WORDS_H

#include "app/library/api/job_log.h"

/* Local, rank 0, after the last words: TSR_ERR_IO where standard output did not take them, or not the log. */
tsr_status tsr_job_said(const tsr_run_log *log, const char *what);
/* Local, rank 0, after the output was published. One line on stderr where nobody named the dataset and its file, which
 * was there before, now holds several matrices: its name alone no longer means one. */
void tsr_output_note(const tsr_output_spec *spec, const tsr_output *output);
/* Local. The FILE of --log FILE or --log=FILE in a command line that could not be read to its end; NULL: none,
 * or a dry run, which has no log. */
const char *tsr_job_log_find(int argc, char **argv);
/* Local: says in the log, on rank 0, that the command line was refused; `file` NULL: there is none, or it is what was
 * refused. */
void tsr_job_log_refuse(const tsr_world *world, const char *file, int argc, char **argv, tsr_status status);

#endif
