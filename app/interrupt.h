/* What happens when the job is asked to stop (SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, as users, batch
 * systems and limits do) or a rank must give up while others communicate: the unfinished output is removed, and
 * nothing under its final name has changed. A signal that was ignored when the program began, as nohup does, stays
 * ignored. */
#ifndef TSR_APP_INTERRUPT_H
#define TSR_APP_INTERRUPT_H

#include "io/output.h"
#include "io/run_log.h"
#include "mpi/grid.h"

/* First of all, and again when MPI runs: which signals are ignored is noted, and holds from then on. What MPI loads may
 * handle them. */
void tsr_interrupt_note_ignored(void);
void tsr_interrupt_keep_ignored(void);
/* From here on a stop signal says so in the log (which stays the caller's, and until release where it is) and once a
 * job on stderr, and ends the process with TSR_ERR_STOPPED's exit code. */
void tsr_interrupt_log(const tsr_world *world, const tsr_run_log *log);
/* From here on it removes the output's temporary file, too. An output that is in place by then is not taken back:
 * the log and stderr say that it is there. */
void tsr_interrupt_guard(const tsr_world *world, const tsr_output *output);
/* The output is published or discarded: stop signals end the process as usual again. */
void tsr_interrupt_release(void);

#endif
