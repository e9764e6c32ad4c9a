/* What a report is made of, from files (report.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/report.h"
#include "io/stores.h"
#include "io/text/json_read.h"
#include "mpi/plan/machine.h"

#define FILE_MOST ((size_t)256 << 20)

static const char *const kinds[] = {
#define X(code, name) name,
    TSR_REPORT_LIST(X)
#undef X
};

const char *tsr_report_kind_name(tsr_report_kind kind) { return kinds[kind]; }

static tsr_status no_memory(const char *name) {
    return tsr_fail(TSR_ERR_MEMORY, "no memory for the report of '%s'; free some", name);
}

static void free_item(tsr_report_item *item) {
    free(item->name);
    free(item->json);
    tsr_record_free(&item->record);
}

/* Takes what the item owns, whatever comes. */
static tsr_status add_item(tsr_report *report, const char *name, tsr_report_item item) {
    tsr_report_item *items = realloc(report->items, ((size_t)report->count + 1) * sizeof *items);
    if (items) report->items = items;
    item.name = strdup(name);
    if (!items || !item.name) {
        free_item(&item);
        return no_memory(name);
    }
    report->items[report->count++] = item;
    return TSR_OK;
}

void tsr_report_free(tsr_report *report) {
    for (int i = 0; i < report->count; i++) free_item(&report->items[i]);
    free(report->items);
    tsr_report_trace_free(&report->trace);
    *report = (tsr_report){.count = 0};
}

/* ---- records --------------------------------------------------------------------------------- */

static tsr_status add_kept(tsr_report *report, const char *name, tsr_kept_record record) {
    return add_item(report, name, (tsr_report_item){.kind = TSR_REPORT_RUN, .has_record = true, .record = record});
}

tsr_status tsr_report_add_record(tsr_report *report, const char *name, const tsr_run_record *record) {
    tsr_kept_record kept;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    tsr_status status = to ? tsr_record_write_json(record, to) : no_memory(name);
    if (to && fclose(to) != 0 && status == TSR_OK) status = no_memory(name);
    if (status == TSR_OK) status = tsr_record_read_json_text(text, name, &kept);
    free(text);
    return status == TSR_OK ? add_kept(report, name, kept) : status;
}

static tsr_status add_run(tsr_report *report, tsr_describer *describer, const char *file, const char *path) {
    tsr_kept_record record;
    char name[TSR_FILE_CHARS + TSR_PATH_CHARS + 8];
    TSR_TRY(tsr_describe_run(describer, file, path, &record));
    snprintf(name, sizeof name, "%s:%s", file, path);
    return add_kept(report, name, record);
}

/* The matrix's run where the path is a matrix's. */
static tsr_status add_named(tsr_report *report, tsr_describer *describer, const tsr_matrix_name *name) {
    char run[TSR_PATH_CHARS + 8];
    snprintf(run, sizeof run, "%s.run", name->path);
    if (strlen(run) < TSR_PATH_CHARS && add_run(report, describer, name->file, run) == TSR_OK) return TSR_OK;
    return add_run(report, describer, name->file, name->path);
}

typedef struct {
    char **paths; /* owned: count of them */
    int count;
    bool failed;
} path_list;

static void keep_path(void *context, const char *path) {
    path_list *list = context;
    char **paths = realloc(list->paths, ((size_t)list->count + 1) * sizeof *paths);
    char *copy = strdup(path);
    if (paths) list->paths = paths;
    if (paths && copy) list->paths[list->count++] = copy;
    else {
        list->failed = true;
        free(copy);
    }
}

static tsr_status add_all(tsr_report *report, tsr_describer *describer, const char *file) {
    path_list list = {.paths = NULL};
    tsr_status status = tsr_describe_runs(describer, file, keep_path, &list);
    if (status == TSR_OK && list.failed) status = no_memory(file);
    if (status == TSR_OK && list.count == 0)
        status = tsr_fail(TSR_ERR_NOT_FOUND,
                          "'%s' has no record of a run: name a file that tessera multiply wrote, or its --log", file);
    for (int i = 0; i < list.count && status == TSR_OK; i++) status = add_run(report, describer, file, list.paths[i]);
    for (int i = 0; i < list.count; i++) free(list.paths[i]);
    free(list.paths);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The file's text; the caller frees it. */
static tsr_status read_text(const char *file, char **text) {
    FILE *from = fopen(file, "re");
    if (!from) return tsr_fail(TSR_ERR_IO, "'%s' cannot be read: %s", file, strerror(errno));
    char *all = NULL;
    size_t bytes = 0;
    size_t room = 0;
    tsr_status status = TSR_OK;
    do {
        room = room ? 2 * room : 1 << 16;
        char *more = room <= FILE_MOST ? realloc(all, room + 1) : NULL;
        if (!more)
            status = room <= FILE_MOST ? no_memory(file)
                                       : tsr_fail(TSR_ERR_LIMIT,
                                                  "'%s' is larger than 256 MiB: too much for a page; "
                                                  "is it a trace? name it with --trace",
                                                  file);
        if (status != TSR_OK) break;
        all = more;
        bytes += fread(all + bytes, 1, room - bytes, from);
    } while (bytes == room);
    if (status == TSR_OK && ferror(from))
        status = tsr_fail(TSR_ERR_IO, "'%s' cannot be read: %s", file, strerror(errno));
    if (status == TSR_OK && memchr(all, 0, bytes))
        status = tsr_fail(TSR_ERR_FORMAT, "'%s' holds a zero byte; it is no JSON: make it anew", file);
    fclose(from);
    if (status != TSR_OK) {
        free(all);
        return status;
    }
    all[bytes] = '\0';
    *text = all;
    return TSR_OK;
}

/* The members of the outermost object that tell files apart. */
typedef struct {
    bool object, record, log, trace;
    bool kernels, type, copy, results;
    bool eps, tflops, machine, lanes;
    char status[32];
} members;

static void note_member(void *context, const tsr_json_value *v) {
    members *m = context;
    const struct {
        const char *name;
        bool *there, list; /* an object or an array */
    } known[] = {{"record", &m->record, true},    {"traceEvents", &m->trace, true}, {"kernels", &m->kernels, true},
                 {"results", &m->results, true},  {"lanes", &m->lanes, true},       {"type", &m->type, false},
                 {"copy_gbs", &m->copy, false},   {"eps", &m->eps, false},          {"tflops", &m->tflops, false},
                 {"machine", &m->machine, false}, {"status", &m->log, false}};
    const bool list = v->kind == TSR_JSON_OBJECT || v->kind == TSR_JSON_ARRAY;
    if (v->depth == 0 && v->kind == TSR_JSON_OBJECT) m->object = true;
    if (v->depth != 1 || v->kind == TSR_JSON_END) return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].list == list && strcmp(v->name, known[i].name) == 0) *known[i].there = true;
    if (strcmp(v->name, "status") == 0) tsr_printable(v->text, m->status, sizeof m->status);
}

static tsr_status find_members(const char *file, const char *text, members *found) {
    *found = (members){.object = false};
    FILE *from = *text ? fmemopen((char *)text, strlen(text), "r") : NULL; /* only read */
    if (!from) return tsr_fail(TSR_ERR_FORMAT, "'%s' is empty: make it anew", file);
    const tsr_status status = tsr_json_read(from, file, note_member, found);
    fclose(from);
    return status;
}

/* The kind that members show; TSR_REPORT_KINDS: none. */
static tsr_report_kind kind_of(const members *m) {
    if (!m->object) return TSR_REPORT_KINDS;
    if (m->record && m->tflops) return TSR_REPORT_MULTIPLY;
    if (m->kernels && m->copy) return TSR_REPORT_MEMORY;
    if (m->kernels && m->type) return TSR_REPORT_GEMM;
    if (m->results && m->eps) return TSR_REPORT_ACCURACY;
    if (m->machine && m->lanes) return TSR_REPORT_PLAN;
    return TSR_REPORT_KINDS;
}

static tsr_status refuse(const char *file, const members *m) {
    if (m->trace)
        return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' is a trace: name it with --trace, beside the run's record", file);
    if (m->log)
        return tsr_fail(TSR_ERR_NOT_FOUND,
                        "'%s' is the log of a run that says '%s' and has no record: only a run that made C has one",
                        file, m->status);
    return tsr_fail(TSR_ERR_NOT_FOUND,
                    "'%s' is neither the log of a run nor the JSON of bench or plan: name what tessera wrote", file);
}

static tsr_status add_json(tsr_report *report, const char *file) {
    members found;
    tsr_report_item item = {.json = NULL};
    tsr_status status = read_text(file, &item.json);
    if (status == TSR_OK) status = find_members(file, item.json, &found);
    if (status == TSR_OK) item.kind = kind_of(&found);
    if (status == TSR_OK && item.kind == TSR_REPORT_KINDS) {
        status = tsr_record_read_json_text(item.json, file, &item.record);
        if (status == TSR_ERR_NOT_FOUND) status = refuse(file, &found);
        item.kind = TSR_REPORT_RUN;
        item.has_record = status == TSR_OK;
        free(item.json);
        item.json = NULL;
    } else if (status == TSR_OK && item.kind == TSR_REPORT_MULTIPLY) {
        status = tsr_record_read_json_member(item.json, file, "record", &item.record);
        item.has_record = status == TSR_OK;
    }
    if (status == TSR_OK) return add_item(report, file, item);
    free_item(&item);
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

tsr_status tsr_report_add(tsr_report *report, tsr_describer *describer, const char *text) {
    tsr_matrix_name name;
    TSR_TRY(tsr_matrix_name_parse(text, &name));
    if (!tsr_store_kind_of(&name)->several)
        return tsr_fail(TSR_ERR_NOT_FOUND, "'%s' holds no record of a run: name the run's --log", name.file);
    if (*name.path) return add_named(report, describer, &name);
    return tsr_json_is(name.file) ? add_json(report, name.file) : add_all(report, describer, name.file);
}

/* Of another command than each of the runs; where one does not say its command nobody knows. */
static bool trace_is_of_others(const tsr_report *report) {
    bool told = false;
    for (int i = 0; i < report->count; i++) {
        const char *command = report->items[i].has_record ? report->items[i].record.run.command : NULL;
        if (!command || !*command) continue;
        if (!report->trace.command || strcmp(command, report->trace.command) == 0) return false;
        told = true;
    }
    return told;
}

tsr_status tsr_report_add_trace(tsr_report *report, const char *file) {
    TSR_TRY(tsr_report_trace_read(file, &report->trace));
    report->has_trace = true;
    if (trace_is_of_others(report))
        return tsr_fail(TSR_ERR_USAGE, "'%s' is the trace of another run (%.200s): name what that one left, too", file,
                        report->trace.command);
    return TSR_OK;
}

tsr_status tsr_report_add_timeline(tsr_report *report, tsr_report_trace *taken, const char *command) {
    if (taken->steps == 0) return TSR_OK;
    taken->command = strdup(command);
    if (taken->failed || !taken->command)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for the timeline of the report; free some");
    report->trace = *taken;
    report->has_trace = true;
    *taken = (tsr_report_trace){.count = 0};
    return TSR_OK;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static tsr_status add_ceilings(tsr_report_item *item, const tsr_machine *machine, const char *file) {
    const tsr_run_record *r = &item->record.run;
    tsr_dtype input;
    if (tsr_dtype_parse(r->input, &input) != TSR_OK)
        return tsr_fail(TSR_ERR_FORMAT, "'%s' does not say which type was multiplied: leave out --machine", item->name);
    return tsr_machine_ceilings(machine, file, (int)tsr_max(1, r->ranks), tsr_dtype_part(input), item->ceilings);
}

tsr_status tsr_report_add_machine(tsr_report *report, const char *file) {
    tsr_machine machine;
    int runs = 0;
    TSR_TRY(tsr_machine_read(file, &machine));
    for (int i = 0; i < report->count; i++) {
        if (!report->items[i].has_record) continue;
        TSR_TRY(add_ceilings(&report->items[i], &machine, file));
        runs++;
    }
    if (runs == 0) return tsr_fail(TSR_ERR_USAGE, "--machine %s: none of these files is a run: leave it out", file);
    report->machine = file;
    return TSR_OK;
}
