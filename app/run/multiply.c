/* One run of app/library as a command (multiply.h): what it tells is shown, logged and made known to the handler of
 * stop signals. */
#include "app/run/multiply.h"

#include <stdio.h>
#include <unistd.h>

#include "app/interrupt.h"
#include "app/library/api/dry_run.h"
#include "app/report/report.h"
#include "app/run/job_log.h"
#include "app/run/output_note.h"
#include "io/text/text_file.h"

typedef struct {
    const tsr_world *world;
    const tsr_multiply_settings *settings;
    tsr_run_log log;
    tsr_report_trace timeline; /* rank 0, with a report */
} shown_run;

/* ---- what the run tells ---------------------------------------------------------------------- */

static void stage(void *context, const char *name) { tsr_run_log_stage(&((shown_run *)context)->log, name); }

static void multiplied(void *context, double share) { tsr_run_log_progress(&((shown_run *)context)->log, share); }

static void note(void *context, const char *text) {
    const tsr_multiply_settings *s = ((const shown_run *)context)->settings;
    if (s->quiet && !s->dry_run) return;
    printf("%s\n", text);
    fflush(stdout); /* what takes long comes after */
}

static tsr_status planned(void *context, const struct tsr_run *run) {
    (void)context;
    return tsr_dry_run_print(run, stdout);
}

static void output_made(void *context, const tsr_output *output) {
    (void)context;
    tsr_interrupt_guard(output);
}

static void failing(void *context) {
    (void)context;
    tsr_interrupt_wait();
}

static void give_up(void *context, tsr_status status, bool removed) {
    shown_run *r = context;
    tsr_job_log_give_up(r->world, &tsr_interrupt_guards, &r->log, status);
    if (!removed && r->world->ranks > r->world->local_ranks) sleep(1); /* one on another node did, speaks and aborts */
}

static tsr_status write_report(shown_run *r, const tsr_run_record *record) {
    const tsr_multiply_settings *s = r->settings;
    tsr_report report = {.count = 0};
    tsr_status status = tsr_report_add_record(&report, record->c.name, record);
    if (status == TSR_OK) status = tsr_report_add_timeline(&report, &r->timeline, record->command);
    if (status == TSR_OK) status = tsr_report_write_page(&report, s->report);
    tsr_report_free(&report);
    return status;
}

static tsr_status published(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output) {
    shown_run *r = context;
    const tsr_multiply_settings *s = r->settings;
    const bool logged =
        tsr_job_log_done(r->world, &tsr_interrupt_guards, &r->log, "C", tsr_record_write_members, record);
    if (s->ranks) {
        tsr_record_print_ranks(record, stdout);
        putchar('\n');
    }
    if (!s->quiet) {
        tsr_record_print(record, logged ? s->log : NULL, stdout);
        tsr_output_note(spec, output);
    }
    const tsr_status said = tsr_job_said(&r->log, "C");
    return said == TSR_OK && s->report ? write_report(r, record) : said;
}

/* ---- the run --------------------------------------------------------------------------------- */

static tsr_status run(shown_run *r) {
    const tsr_world *world = r->world;
    const tsr_multiply_settings *s = r->settings;
    tsr_progress_display display = {.mode = world->rank == 0 ? s->progress : TSR_PROGRESS_OFF};
    const tsr_run_calls calls = {.context = r,
                                 .progress = tsr_progress_listener(&display),
                                 .stage = stage,
                                 .multiplied = multiplied,
                                 .note = note,
                                 .planned = planned,
                                 .output_made = output_made,
                                 .failing = failing,
                                 .give_up = give_up,
                                 .steps = s->report ? tsr_report_trace_sink(&r->timeline) : (tsr_trace_sink){NULL},
                                 .published = published};
    tsr_run_options options = s->run;
    options.started = r->log.started;
    const bool reports = s->report && !s->dry_run && world->rank == 0;
    TSR_TRY(tsr_agree(world->comm, reports ? tsr_text_file_check("report", s->report) : TSR_OK));
    if (!s->dry_run) return tsr_run_multiply(world, &options, &calls);
    const bool checks = s->log && world->rank == 0; /* any other run has written to it */
    TSR_TRY(tsr_agree(world->comm, checks ? tsr_text_file_check("log", s->log) : TSR_OK));
    return tsr_run_plan(world, &options, &calls);
}

tsr_status tsr_multiply(const tsr_world *world, const tsr_multiply_settings *settings) {
    shown_run r = {.world = world, .settings = settings};
    const char *log = settings->dry_run ? NULL : settings->log;
    TSR_TRY(tsr_job_log_open(world, &tsr_interrupt_guards, log, settings->run.command, &r.log));
    const tsr_status status = run(&r);
    tsr_job_log_close(world, &tsr_interrupt_guards, &r.log, status);
    tsr_report_trace_free(&r.timeline);
    return status;
}
