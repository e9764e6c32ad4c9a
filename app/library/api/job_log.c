/* The log of a job (job_log.h). */
#include "app/library/api/job_log.h"

/* Before the process ends. */
static void say_failed(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, tsr_status status) {
    char message[2400];
    const char *text = *tsr_message() ? tsr_message() : tsr_status_text(status);
    if (guard && guard->wait) guard->wait();
    if (log->special) return; /* its reader may be waited for */
    if (world->ranks > 1) snprintf(message, sizeof message, "rank %d on %s: %s", world->rank, world->host, text);
    else snprintf(message, sizeof message, "%s", text);
    (void)tsr_run_log_fail(log, status, message);
}

/* A failure that all know of is rank 0's to tell. */
static void leave(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, tsr_status status) {
    if (tsr_ends_job(world, status)) {
        tsr_job_log_give_up(world, guard, log, status);
    } else if (status != TSR_OK && world->rank == 0) {
        const char *text = *tsr_message() ? tsr_message() : tsr_status_text(status);
        if (tsr_run_log_fail(log, status, text) != TSR_OK)
            tsr_warn(world->warnings, "the log '%s' could not be replaced: it does not say that this run failed",
                     tsr_text_file_is_output(log->file) ? "-" : log->file);
        if (status == TSR_ERR_MPI && log->in_place) (void)tsr_output_in_place(status, "the output is");
    }
}

tsr_status tsr_job_log_open(const tsr_world *world, const tsr_guard *guard, const char *file, const char *command,
                            tsr_run_log *log) {
    char started[TSR_STARTED_CHARS] = "";
    if (guard && guard->watch) guard->watch(world);
    if (world->rank == 0) tsr_run_log_now(started);
    TSR_TRY(tsr_broadcast(world->comm, started, sizeof started));
    tsr_status status = tsr_run_log_prepare(file, command, started, world->rank, world->ranks, log);
    status = tsr_agree(world->comm, status); /* before the file says "running", which nobody would end */
    if (status == TSR_OK && file && guard && guard->log) guard->log(log); /* whoever is ended from here on says so */
    if (status == TSR_OK) {
        if (world->rank == 0) status = tsr_run_log_start(log);
        if (status != TSR_OK) atomic_store(&log->finished, true); /* there is none that could say how this ended */
        status = tsr_agree(world->comm, status);
    }
    if (status != TSR_OK) tsr_job_log_close(world, guard, log, status);
    return status;
}

bool tsr_job_log_done(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, const char *what,
                      void (*members)(const void *context, FILE *to), const void *context) {
    log->in_place = true;
    const bool done = tsr_run_log_done(log, members, context) == TSR_OK;
    if (!done && tsr_text_file_is_output(log->file)) {
        log->unsaid = true; /* tsr_job_said fails */
        atomic_store(&log->finished, true);
    } else if (!done) {
        tsr_warn(world->warnings, "%s is in place, but %s: %s", what,
                 log->special ? "its log was not written" : "the log still says that the run is under way",
                 tsr_message());
    }
    if (guard && guard->release) guard->release();
    return done;
}

void tsr_job_log_give_up(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, tsr_status status) {
    say_failed(world, guard, log, status);
    if (log->in_place || (guard && guard->is_in_place && guard->is_in_place()))
        (void)tsr_output_in_place(status, "the output is");
}

void tsr_job_log_close(const tsr_world *world, const tsr_guard *guard, tsr_run_log *log, tsr_status status) {
    if (guard && guard->wait) guard->wait();
    leave(world, guard, log, status);
    if (guard && guard->release) guard->release();
    tsr_run_log_free(log);
}
