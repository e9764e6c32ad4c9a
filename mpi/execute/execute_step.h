/* What each kind of step does (used by execute.c alone). */
#ifndef TSR_MPI_EXECUTE_EXECUTE_STEP_H
#define TSR_MPI_EXECUTE_EXECUTE_STEP_H

#include "mpi/execute/execute.h"
#include "mpi/schedule/schedule.h"

/* Does the step (read, write and host exchange: before it returns) or puts it on `stream`. buffers: the plan's, by
 * number. */
tsr_status tsr_step_run(const tsr_execution *x, void **buffers, tsr_stream *stream, const tsr_step *step);

#endif
