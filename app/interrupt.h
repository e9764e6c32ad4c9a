/* What happens when the job is asked to stop (SIGTERM, SIGINT, SIGHUP) or a rank must give up while others communicate: the
 * unfinished output is removed, and nothing under its final name has changed. */
#ifndef TSR_APP_INTERRUPT_H
#define TSR_APP_INTERRUPT_H

#include "io/output.h"
#include "mpi/grid.h"

/* From here on a stop signal removes the output's temporary file, says so once a job, and ends the process with
 * TSR_ERR_STOPPED's exit code. */
void tsr_interrupt_guard(const tsr_world *world, const tsr_output *output);
/* The output is published or discarded: stop signals end the process as usual again. */
void tsr_interrupt_release(void);

#endif
