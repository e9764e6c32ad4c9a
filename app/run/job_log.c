/* The log of a job (job_log.h). */
#include "app/run/job_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/interrupt.h"
#include "app/options.h"

tsr_status tsr_job_log_open(const tsr_world *world, const char *file, const char *command, tsr_run_log *log) {
    char started[TSR_STARTED_CHARS] = "";
    tsr_interrupt_watch(world);
    if (world->rank == 0) tsr_run_log_now(started);
    TSR_TRY(tsr_broadcast(world->comm, started, sizeof started));
    tsr_status status = tsr_run_log_prepare(file, command, started, world->rank, world->ranks, log);
    status = tsr_agree(world->comm, status); /* before the file says "running", which nobody would end */
    if (status == TSR_OK) status = tsr_agree(world->comm, world->rank == 0 ? tsr_run_log_start(log) : TSR_OK);
    if (status == TSR_OK && file) tsr_interrupt_log(log);
    else if (status != TSR_OK) tsr_run_log_free(log);
    return status;
}

bool tsr_job_log_done(const tsr_world *world, tsr_run_log *log, const char *what,
                      void (*members)(const void *context, FILE *to), const void *context) {
    const bool done = tsr_run_log_done(log, members, context) == TSR_OK;
    if (!done && tsr_text_file_is_output(log->file)) {
        log->unsaid = true; /* tsr_job_said fails */
        atomic_store(&log->finished, true);
    } else if (!done) {
        tsr_warn(world->warnings, "%s is in place, but %s: %s", what,
                 log->special ? "its log was not written" : "the log still says that the run is under way",
                 tsr_message());
    }
    tsr_interrupt_release();
    return done;
}

tsr_status tsr_job_said(const tsr_run_log *log, const char *what) {
    if (fflush(stdout) == 0 && !ferror(stdout) && !log->unsaid) return TSR_OK;
    return tsr_fail(TSR_ERR_IO,
                    "%s is in place, but standard output could not be written: check where it goes, such as a full "
                    "disk",
                    what);
}

void tsr_job_log_give_up(const tsr_world *world, tsr_run_log *log, tsr_status status) {
    char message[2400];
    const char *text = *tsr_message() ? tsr_message() : tsr_status_text(status);
    tsr_interrupt_wait();
    if (log->special) return; /* its reader may be waited for */
    if (world->ranks > 1) snprintf(message, sizeof message, "rank %d on %s: %s", world->rank, world->host, text);
    else snprintf(message, sizeof message, "%s", text);
    (void)tsr_run_log_fail(log, status, message);
}

void tsr_job_log_close(const tsr_world *world, tsr_run_log *log, tsr_status status) {
    tsr_interrupt_wait();
    if (status != TSR_OK && world->rank == 0) {
        const char *text = *tsr_message() ? tsr_message() : tsr_status_text(status);
        if (tsr_run_log_fail(log, status, text) != TSR_OK)
            tsr_warn(world->warnings, "the log '%s' could not be replaced: it does not say that this run failed",
                     tsr_text_file_is_output(log->file) ? "-" : log->file);
    }
    tsr_interrupt_release();
    tsr_run_log_free(log);
}

const char *tsr_job_log_find(int argc, char **argv) {
    const char *file = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--dry-run") == 0) return NULL;
        if (!file) file = tsr_option_value(argv, i, "--log");
    }
    return file;
}

void tsr_job_log_refuse(const tsr_world *world, const char *file, int argc, char **argv, tsr_status status) {
    if (!file || world->rank != 0) return;
    tsr_interrupt_watch(world);
    char *command = tsr_command_line(argc, argv);
    tsr_run_log_refuse(file, command ? command : "tessera", world->ranks, status);
    free(command);
}
