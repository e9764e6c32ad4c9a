/* What happens when the job is asked to stop, by any signal that ends a process (SIGTERM, SIGINT, SIGHUP, SIGQUIT,
 * SIGUSR1, SIGALRM, SIGXCPU, real-time signals, ..., as users, batch systems and limits send), or a rank crashes: the
 * unfinished files are removed, and nothing under the output's name has changed. Signals that were ignored when the
 * program began, as nohup does, stay ignored. */
#ifndef TSR_APP_INTERRUPT_H
#define TSR_APP_INTERRUPT_H

#include "app/library/api/job_log.h"

/* First of all, and again when MPI runs: which signals are ignored is noted, and holds from then on. What MPI loads may
 * handle them. */
void tsr_interrupt_note_ignored(void);
void tsr_interrupt_keep_ignored(void);
/* Before the first file is made, and as often as one likes. From here on a stop signal removes the files that this
 * process has made and not finished (io/files/unfinished.h), says so once a job on stderr, and ends the process with
 * TSR_ERR_STOPPED's exit code. A crash does so, too, and then ends it as crashes do. A closed pipe is an error of
 * whoever writes to it. */
void tsr_interrupt_watch(const tsr_world *world);
/* From here on it says so in the log, too, which stays the caller's, and until release where it is. */
void tsr_interrupt_log(const tsr_run_log *log);
/* From here on it removes the output's temporary file on this rank, too, unless it is `kept` for a later run. An output
 * that is in place by then is not taken back: the log and stderr say that it is there. */
void tsr_interrupt_guard(const tsr_output *output, bool kept);
/* While `drain`, a stop signal only notes that it came: tsr_interrupt_asked. 15 s after the first one, and with SIGALRM
 * at any time, the process ends as it does otherwise. */
void tsr_interrupt_drain(bool drain);
bool tsr_interrupt_asked(void);
/* Whoever fails asks first whether a stop signal is being handled in another thread, which may be why: then this does
 * not return. */
void tsr_interrupt_wait(void);
/* The output is published or discarded: stop signals end the process as usual again. */
void tsr_interrupt_release(void);
/* These functions for a run of the library. */
extern const tsr_guard tsr_interrupt_guards;
/* All is done and said; MPI and the libraries are left to end. A crash is theirs from here on: a warning says so, and
 * the process ends with `exit_code`. */
void tsr_interrupt_finish(int exit_code);

#endif
