/* The log of a job (io/record/run_log.h): opened by all ranks together, ended by whichever rank knows how the run
 * ended. */
#ifndef TSR_APP_LIBRARY_API_JOB_LOG_H
#define TSR_APP_LIBRARY_API_JOB_LOG_H

#include "io/output/output.h"
#include "io/record/run_log.h"
#include "mpi/ranks/world.h"

/* Who may end this process meanwhile, as the program's handler of stop signals does: told what a run makes, and asked
 * by whoever fails. NULL, as each of its functions may be: nobody. */
typedef struct {
    void (*watch)(const tsr_world *world); /* a run begins */
    void (*log)(const tsr_run_log *log);   /* the log says "running" */
    /* The output's temporary file exists; `kept`: whatever happens, for a later run. */
    void (*output)(const tsr_output *output, bool kept);
    void (*wait)(void);    /* who fails asks first: does not return where the process ends */
    void (*release)(void); /* the run is over */
    /* While `drain`, who is asked to end the process leaves that to the run; and whether somebody was asked. */
    void (*drain)(bool drain);
    bool (*asked)(void);
    /* This process ends: removes the output's temporary file, where it is still there and not kept. True: the output is
     * in place. */
    bool (*is_in_place)(void);
} tsr_guard;

/* Collective, the same status on every rank. Rank 0 writes "running". `file` may be NULL; it must live until the log is
 * closed, and the log may not move. */
tsr_status tsr_job_log_open(const tsr_world *world, const tsr_guard *guard, const char *file, const char *command,
                            tsr_run_log *log);
/* Local. This rank fails while others may be inside communication: says so in the log, before tsr_abort. Where the
 * output is in place by then the log says so already, and the message does from here on. */
void tsr_job_log_give_up(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, tsr_status status);
/* Local, rank 0: the output, "C", is in place. Writes the final record and releases the guard. A log that
 * cannot be replaced goes on saying that the run is under way: a warning, no reason to fail. Returns false then. Where
 * it is to go to standard output tsr_job_said fails. */
bool tsr_job_log_done(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, const char *what,
                      void (*members)(const void *context, FILE *to), const void *context);
/* Collective, with the status all ranks agreed on. A rank that ends the job (tsr_ends_job) comes here alone. */
void tsr_job_log_close(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, tsr_status status);

#endif
