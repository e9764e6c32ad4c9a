/* tessera report: what runs and measurements left behind, as a page to look at. */
#include <string.h>

#include "app/commands/command.h"
#include "app/report/report.h"
#include "app/tessera_options.h"
#include "io/text/text_file.h"

#define NAMES_MOST 64
#define PAGE "report.html"

typedef struct {
    const char *names[NAMES_MOST];
    int count;
    const char *output, *trace, *machine, *external;
    bool text;
} report_options;

#define AT(member) offsetof(report_options, member)

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "Write the page here (" PAGE "); - is standard output",
     .initial = PAGE,
     .read = tsr_read_text,
     .field = AT(output)},
    {.name = "text", .help = "Print it, 80 columns wide, and write no page", .read = tsr_read_flag, .field = AT(text)},
    {.shared = &tsr_option_trace, .help = "The timeline that the run wrote with --trace", .field = AT(trace)},
    {.shared = &tsr_option_machine,
     .help = "Ceilings of lanes and roofline by this description, as plan takes it, and not by what the run counted on",
     .field = AT(machine)},
    {.shared = &tsr_option_plugins},
    {.shared = &tsr_option_external, .field = AT(external)},
    {0}};

static tsr_status take_name(void *to, int number, const char *text) {
    report_options *o = to;
    o->names[number] = text;
    o->count = number + 1;
    return TSR_OK;
}

static tsr_status check(void *to) {
    const report_options *o = to;
    if (o->count == 0)
        return tsr_fail(TSR_ERR_USAGE, "report: name what a run left: tessera report C.h5, or its --log");
    if (o->text && strcmp(o->output, PAGE) != 0)
        return tsr_fail(TSR_ERR_USAGE, "--text prints to standard output: leave it out, or -o %s", o->output);
    if (o->text) return TSR_OK;
    bool same =
        (o->trace && tsr_same_file(o->output, o->trace)) || (o->machine && tsr_same_file(o->output, o->machine));
    for (int i = 0; i < o->count; i++) same = same || tsr_same_file(o->output, o->names[i]);
    if (!same) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "-o %s would overwrite what the report is of: give it a file of its own", o->output);
}

static const tsr_options command = {
    .options = options,
    .arguments = "FILE[:/path]...",
    .what = "Writes one HTML page of runs: lanes, ranks, limits, timeline, memory. It needs no network and no other "
            "file. FILE is a product, a run's --log, or the --json of bench or plan. Several are compared.",
    .most_arguments = NAMES_MOST,
    .argument = take_name,
    .check = check};

static void help(const char *part) {
    (void)part;
    tsr_options_help(&command, "tessera report",
                     "tessera report C.h5 --trace trace.json -o report.html\n"
                     "  tessera report before.json after.json\n  tessera report run.json --text");
}

/* Local, on rank 0. */
static tsr_status show(tsr_describer *describer, const report_options *o) {
    tsr_report report = {.count = 0};
    tsr_status status = TSR_OK;
    describer->external = o->external;
    for (int i = 0; i < o->count && status == TSR_OK; i++) status = tsr_report_add(&report, describer, o->names[i]);
    if (status == TSR_OK && o->machine) status = tsr_report_add_machine(&report, o->machine);
    if (status == TSR_OK && o->trace) status = tsr_report_add_trace(&report, o->trace);
    if (status == TSR_OK)
        status = o->text ? tsr_report_print(&report, stdout) : tsr_report_write_page(&report, o->output);
    tsr_report_free(&report);
    return status;
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    report_options o = {.count = 0};
    TSR_TRY(tsr_agree(world->comm, tsr_options_parse(&command, argc, argv, &o)));
    if (!o.text) TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(&o.output)));
    const bool writes = !o.text && !tsr_text_file_is_special(o.output);
    if (writes) TSR_TRY(tsr_agree(world->comm, tsr_world_check_launcher(world)));
    return tsr_agree(world->comm, world->rank == 0 ? show(world->describer, &o) : TSR_OK);
}

const tsr_command tsr_cmd_report = {
    .name = "report",
    .what = "what a run left behind, as a page to look at or as text",
    .run = run,
    .help = help,
    .options = &command,
    .alone = true,
    .reads = true,
};
