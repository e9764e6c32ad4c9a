/* tessera info FILE (info_file.h). */
#include "app/info/info_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/pieces/pieces.h"
#include "io/record/record_read.h"
#include "io/stores.h"
#include "io/text/json.h"
#include "io/text/json_read.h"
#include "io/text/text.h"

/* ---- matrices -------------------------------------------------------------------------------- */

static void print_matrix(const tsr_store_desc *d, const char *path, tsr_info_json *json) {
    char storage[320], text[TSR_SHAPE_CHARS];
    const tsr_shape shape = tsr_store_shape(d);
    tsr_text_put(stdout, path);
    printf("  %s  ", tsr_shape_text(&shape, " x ", text, sizeof text));
    tsr_text_put(stdout, d->type_name);
    printf("  ");
    tsr_text_put(stdout, tsr_store_storage(d, storage, sizeof storage));
    printf("\n");
    tsr_info_json_matrix(json, d, path);
}

/* "label       words", broken within 80 columns. */
static void print_words(const char *label, const char *text) {
    char first[40];
    snprintf(first, sizeof first, "%-12s", label);
    tsr_text_print(stdout, first, 12, text);
}

/* The files that its elements are read from, and what of each. */
static void print_files(const tsr_store_desc *desc, const char *named, tsr_info_json *json) {
    char text[TSR_FILE_CHARS + TSR_PATH_CHARS + 160], matrix[40];
    if (strcmp(desc->name.file, named) != 0) print_words("lies in", desc->name.file);
    for (int64_t i = 0; desc->pieces && i < desc->pieces->count; i++) {
        const tsr_piece *piece = &desc->pieces->piece[i];
        const tsr_rect r = piece->rect;
        if (piece->filled) continue;
        snprintf(matrix, sizeof matrix, "matrix %" PRId64 ", ", piece->matrix);
        snprintf(text, sizeof text, "%s%s%s: %srows %" PRId64 " to %" PRId64 ", columns %" PRId64 " to %" PRId64,
                 piece->desc.name.file, piece->bytes ? "" : ":", piece->bytes ? "" : piece->desc.name.path,
                 desc->matrices > 1 ? matrix : "", r.row, r.row + r.rows - 1, r.col, r.col + r.cols - 1);
        print_words("reads", text);
        tsr_info_json_piece(json, piece);
    }
}

typedef struct {
    int64_t matrices, refused, runs;
    char **run_paths; /* owned: runs of them */
    bool failed;
    tsr_info_json *json;
} listing;

static void print_listed(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    listing *list = context;
    if (refused) {
        list->refused++;
        tsr_text_put(stdout, path);
        printf("  cannot be multiplied: ");
        tsr_text_put(stdout, refused);
        printf("\n");
        tsr_info_json_other(list->json, path, refused);
    } else {
        list->matrices++;
        print_matrix(desc, path, list->json);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Each begins a line. */
static void print_warnings(const char *text) {
    char one[2048];
    for (const char *label = "warnings"; *text; label = "") {
        const int chars = (int)strcspn(text, "\n");
        snprintf(one, sizeof one, "%.*s", chars, text);
        print_words(label, one);
        text += chars + (text[chars] == '\n');
    }
}

static void print_record(const char *where, const tsr_kept_record *record, bool ranks) {
    const tsr_run_record *r = &record->run;
    char text[TSR_FILE_CHARS + TSR_PATH_CHARS + 256];
    bool others = false;
    for (int i = 1; i < r->ranks; i++) others |= strcmp(r->rank_records[i].host, r->rank_records[0].host) != 0;
    snprintf(text, sizeof text, "%s, started %s, on host %s%s", where, *r->started ? r->started : "at an unknown time",
             r->ranks > 0 ? r->rank_records[0].host : "unknown", others ? " and others" : "");
    print_words("run", text);
    if (*record->command) print_words("command", record->command);
    tsr_record_print(r, NULL, stdout);
    print_warnings(record->warnings);
    if (ranks) tsr_record_print_ranks(r, stdout);
}

/* One of several. */
static void print_short(const char *path, const tsr_run_record *r) {
    tsr_text_put(stdout, path);
    printf("  the run of %s: %" PRId64 " x %" PRId64 " x %" PRId64 " (m x n x k), %.3f s, %.4g TFLOP/s, check %.*s\n",
           r->started, r->m, r->n, r->k, r->seconds, r->gflops / 1e3, (int)strcspn(r->check, ",:"), r->check);
}

static void keep_path(void *context, const char *path) {
    listing *list = context;
    char **paths = realloc(list->run_paths, ((size_t)list->runs + 1) * sizeof *paths);
    char *copy = strdup(path);
    if (paths) list->run_paths = paths;
    if (paths && copy) paths[list->runs++] = copy;
    else {
        list->failed = true;
        free(copy);
    }
}

static tsr_status print_run(tsr_describer *describer, const char *file, const char *path, bool whole, bool ranks,
                            tsr_info_json *json) {
    tsr_kept_record record;
    TSR_TRY(tsr_describe_run(describer, file, path, &record));
    if (whole) print_record(path, &record, ranks);
    else print_short(path, &record.run);
    tsr_info_json_run(json, path, &record.run);
    tsr_record_free(&record);
    return TSR_OK;
}

/* ---- a file of HDF5 -------------------------------------------------------------------------- */

static void print_count(const char *before, int64_t count, const char *one, const char *several) {
    printf("%s%" PRId64 " %s", before, count, count == 1 ? one : several);
}

static tsr_status print_listing(tsr_describer *describer, const char *file, bool ranks, tsr_info_json *json) {
    listing list = {.json = json};
    tsr_status status = tsr_describe_list(describer, file, print_listed, &list);
    if (status == TSR_OK) status = tsr_describe_runs(describer, file, keep_path, &list);
    if (status == TSR_OK && list.failed)
        status = tsr_fail(TSR_ERR_MEMORY, "no memory to list the runs of '%s'; free some", file);
    bool whole = list.runs == 1 || ranks;
    for (int64_t i = 0; i < list.runs && status == TSR_OK; i++) {
        if (whole) printf("\n");
        status = print_run(describer, file, list.run_paths[i], whole, ranks, json);
    }
    if (status == TSR_OK) {
        if (whole) printf("\n");
        tsr_text_put(stdout, file);
        printf(": ");
        print_count("", list.matrices, "matrix", "matrices");
        if (list.refused > 0) print_count(", ", list.refused, "other dataset", "other datasets");
        if (list.runs > 0) print_count(", ", list.runs, "run", "runs");
        printf("\n");
    }
    for (int64_t i = 0; i < list.runs; i++) free(list.run_paths[i]);
    free(list.run_paths);
    return status;
}

/* A matrix, and the run that made it, where the file has one of it. */
static tsr_status print_named(tsr_describer *describer, const tsr_matrix_name *name, bool ranks, tsr_info_json *json) {
    tsr_store_desc desc;
    tsr_kept_record record;
    char run[TSR_PATH_CHARS + 8];
    if (*name->path && tsr_describe_run(describer, name->file, name->path, &record) == TSR_OK) {
        print_record(name->path, &record, ranks);
        tsr_info_json_run(json, name->path, &record.run);
        tsr_record_free(&record);
        return TSR_OK;
    }
    TSR_TRY(tsr_store_describe(describer, name, &desc));
    print_matrix(&desc, desc.name.path, json);
    TSR_TRY(tsr_describe_pieces(describer, &desc));
    print_files(&desc, name->file, json);
    tsr_pieces_leave(desc.pieces);
    snprintf(run, sizeof run, "%s.run", desc.name.path);
    if (strlen(run) >= TSR_PATH_CHARS || tsr_describe_run(describer, name->file, run, &record) != TSR_OK) return TSR_OK;
    printf("\n");
    print_record(run, &record, ranks);
    tsr_info_json_run(json, run, &record.run);
    tsr_record_free(&record);
    return TSR_OK;
}

/* The file is one matrix. */
static tsr_status print_only(const tsr_matrix_name *name, tsr_info_json *json) {
    const tsr_store_kind *kind = tsr_store_kind_of(name);
    tsr_store_desc desc;
    tsr_matrix_name as_stored = *name;
    as_stored.columns_first = kind->columns_first && kind->columns_first(name);
    TSR_TRY(tsr_store_describe(NULL, &as_stored, &desc));
    print_matrix(&desc, desc.name.file, json);
    if (as_stored.columns_first)
        print_words("order", "Fortran: this is its transpose, as it is stored; multiply takes it with --order col");
    return TSR_OK;
}

/* ---- JSON: logs, traces, and what else the program writes ------------------------------------ */

typedef struct {
    bool trace, in_events;
    char command[1024];
    /* the event that is being read */
    bool step;
    int64_t rank, lane;
    double begin, took; /* microseconds */
    /* what all of them come to */
    int64_t ranks, steps[TSR_LANE_COUNT];
    double busy[TSR_LANE_COUNT], first, last;
} trace_reader;

static void end_event(trace_reader *t) {
    t->ranks = tsr_max(t->ranks, t->rank + 1);
    if (!t->step || t->lane < 0 || t->lane >= TSR_LANE_COUNT) return;
    int64_t all = 0;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) all += t->steps[lane];
    t->steps[t->lane]++;
    t->busy[t->lane] += t->took * 1e-6;
    t->first = all == 0 || t->begin < t->first ? t->begin : t->first;
    t->last = all == 0 || t->begin + t->took > t->last ? t->begin + t->took : t->last;
}

static void read_event(trace_reader *t, const tsr_json_value *v) {
    if (strcmp(v->name, "ph") == 0) t->step = strcmp(v->text, "X") == 0;
    else if (strcmp(v->name, "pid") == 0) t->rank = strtoll(v->text, NULL, 10);
    else if (strcmp(v->name, "tid") == 0) t->lane = strtoll(v->text, NULL, 10);
    else if (strcmp(v->name, "ts") == 0) t->begin = strtod(v->text, NULL);
    else if (strcmp(v->name, "dur") == 0) t->took = strtod(v->text, NULL);
}

static void collect_trace(void *context, const tsr_json_value *v) {
    trace_reader *t = context;
    bool list = v->kind == TSR_JSON_ARRAY || v->kind == TSR_JSON_OBJECT || v->kind == TSR_JSON_END;
    if (v->depth == 1 && list) {
        t->in_events = v->kind == TSR_JSON_ARRAY && strcmp(v->name, "traceEvents") == 0;
        t->trace |= t->in_events;
    } else if (v->depth == 2 && t->in_events && v->kind == TSR_JSON_OBJECT) {
        t->step = false;
        t->rank = t->lane = -1;
        t->begin = t->took = 0;
    } else if (v->depth == 2 && t->in_events && v->kind == TSR_JSON_END) {
        end_event(t);
    } else if (v->depth == 3 && t->in_events && !list) {
        read_event(t, v);
    } else if (v->depth == 2 && !t->in_events && v->kind == TSR_JSON_TEXT && strcmp(v->name, "command") == 0) {
        snprintf(t->command, sizeof t->command, "%s", v->text);
    }
}

static void write_trace(tsr_info_json *json, const trace_reader *t) {
    fprintf(json->more, ",\n  \"ranks\": %" PRId64 ",\n  \"seconds\": %.9g,\n  \"command\": ", t->ranks,
            (t->last - t->first) * 1e-6);
    tsr_json_string(json->more, t->command);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (t->steps[lane] > 0)
            fprintf(tsr_info_json_entry(json, TSR_INFO_LANES),
                    "{\"lane\": \"%s\", \"steps\": %" PRId64 ", \"seconds\": %.9g}", tsr_lane_name((tsr_lane)lane),
                    t->steps[lane], t->busy[lane]);
}

static void print_trace(const char *file, const trace_reader *t) {
    char text[TSR_FILE_CHARS + 160];
    snprintf(text, sizeof text, "%s: %" PRId64 " rank%s, %.6g s; Perfetto (https://ui.perfetto.dev) shows it", file,
             t->ranks, t->ranks == 1 ? "" : "s", (t->last - t->first) * 1e-6);
    print_words("trace", text);
    if (*t->command) print_words("command", t->command);
    printf("\n%-10s%10s%16s\n", "lane", "steps", "s, of all ranks");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (t->steps[lane] > 0)
            printf("%-10s%10" PRId64 "%16.6g\n", tsr_lane_name((tsr_lane)lane), t->steps[lane], t->busy[lane]);
}

/* Members of the outermost object, lists by their length. */
typedef struct {
    char name[64];
    int64_t entries;
} member_printer;

static void print_member(void *context, const tsr_json_value *v) {
    member_printer *p = context;
    bool list = v->kind == TSR_JSON_ARRAY || v->kind == TSR_JSON_OBJECT;
    if (v->depth == 2 && v->kind != TSR_JSON_END) p->entries++;
    if (v->depth != 1) return;
    if (list) {
        tsr_printable(v->name, p->name, sizeof p->name);
        p->entries = 0;
    } else if (v->kind == TSR_JSON_END) {
        printf("%-24s", p->name);
        print_count("", p->entries, "entry\n", "entries\n");
    } else {
        char first[80], member[256];
        snprintf(first, sizeof first, "%-24s", tsr_printable(v->name, member, sizeof member));
        tsr_text_print(stdout, first, 24, v->text);
    }
}

static tsr_status print_json(const char *file, bool ranks, tsr_info_json *json) {
    tsr_kept_record record;
    trace_reader trace = {.trace = false};
    member_printer members = {.entries = 0};
    tsr_status status = tsr_record_read_json(file, &record);
    if (status == TSR_OK) {
        print_record(file, &record, ranks);
        tsr_info_json_run(json, file, &record.run);
        tsr_record_free(&record);
    }
    if (status != TSR_ERR_NOT_FOUND) return status;
    TSR_TRY(tsr_json_read_file(file, collect_trace, &trace));
    if (!trace.trace) return tsr_json_read_file(file, print_member, &members);
    print_trace(file, &trace);
    if (json) write_trace(json, &trace);
    return TSR_OK;
}

tsr_status tsr_info_file(tsr_describer *describer, const char *text, bool ranks, tsr_info_json *json) {
    tsr_matrix_name name;
    TSR_TRY(tsr_matrix_name_parse(text, &name));
    if (!tsr_store_kind_of(&name)->several) return print_only(&name, json);
    if (*name.path || *name.slice) return print_named(describer, &name, ranks, json);
    if (tsr_json_is(name.file)) return print_json(name.file, ranks, json);
    return print_listing(describer, name.file, ranks, json);
}
