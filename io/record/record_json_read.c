/* Records in JSON logs (record_read.h): the members of the one object are the run's fields, those of the objects in
 * `ranks` each rank's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/record/record_read.h"
#include "io/text/json_read.h"

typedef struct {
    tsr_found_fields run, *ranks; /* owned: rank_count of them */
    int rank_count, rank_room;
    bool in_ranks, failed;
    const char *member; /* of the outermost object, which is the record; NULL: that is it itself */
    bool inside;        /* of the member */
} collector;

static void add_rank(collector *c) {
    if (c->rank_count == c->rank_room) {
        int room = c->rank_room ? 2 * c->rank_room : 16;
        tsr_found_fields *ranks = realloc(c->ranks, (size_t)room * sizeof *ranks);
        if (!ranks) {
            c->failed = true;
            return;
        }
        c->ranks = ranks;
        c->rank_room = room;
    }
    c->ranks[c->rank_count++] = (tsr_found_fields){0};
}

static void take_value(tsr_found_fields *to, const tsr_json_value *value) {
    if (value->kind == TSR_JSON_TEXT) tsr_found_text(to, value->name, value->text);
    else if (value->kind == TSR_JSON_NUMBER)
        tsr_found_number(to, value->name, strtoll(value->text, NULL, 10), strtod(value->text, NULL));
    else if (strcmp(value->text, "null") == 0)
        tsr_found_number(to, value->name, 0, NAN); /* as numbers that are none are written */
    else tsr_found_number(to, value->name, *value->text == 't', *value->text == 't');
}

static void collect(void *context, const tsr_json_value *value) {
    collector *c = context;
    bool list = value->kind == TSR_JSON_ARRAY || value->kind == TSR_JSON_OBJECT || value->kind == TSR_JSON_END;
    if (value->depth == 1 && list) c->in_ranks = value->kind == TSR_JSON_ARRAY && strcmp(value->name, "ranks") == 0;
    else if (value->depth == 1) take_value(&c->run, value);
    else if (value->depth == 2 && c->in_ranks && value->kind == TSR_JSON_OBJECT) add_rank(c);
    else if (value->depth == 3 && c->in_ranks && !list && c->rank_count > 0 && !c->failed)
        take_value(&c->ranks[c->rank_count - 1], value);
}

/* The values of a member as if that stood alone. */
static void collect_member(void *context, const tsr_json_value *value) {
    collector *c = context;
    const bool begins = value->depth == 1 && value->kind == TSR_JSON_OBJECT && strcmp(value->name, c->member) == 0;
    if (value->depth == 1) c->inside = begins;
    if (!c->inside || value->depth < 2) return;
    tsr_json_value moved = *value;
    moved.depth--;
    collect(c, &moved);
}

static bool has(const tsr_found_fields *found, const char *name) {
    for (int i = 0; i < found->count; i++)
        if (strcmp(found->fields[i].name, name) == 0) return true;
    return false;
}

static tsr_status take_collected(collector *c, const char *name, tsr_status status, tsr_kept_record *record) {
    if (status == TSR_OK && c->failed)
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for the record in '%s'; free some", name);
    const bool is_product = has(&c->run, "command") && has(&c->run, "rank_count") && has(&c->run, "seconds") &&
                            !has(&c->run, "distribution"); /* which generate logs */
    if (status == TSR_OK && !is_product)
        status = tsr_fail(TSR_ERR_NOT_FOUND, "'%s' is not the log of a finished multiplication", name);
    if (status == TSR_OK) status = tsr_record_take(&c->run, c->ranks, c->rank_count, record);
    for (int i = 0; i < c->rank_count; i++) tsr_found_clear(&c->ranks[i]);
    free(c->ranks);
    tsr_found_clear(&c->run);
    return status;
}

tsr_status tsr_record_read_json(const char *file, tsr_kept_record *record) {
    collector c = {.in_ranks = false};
    return take_collected(&c, file, tsr_json_read_file(file, collect, &c), record);
}

tsr_status tsr_record_read_json_member(const char *text, const char *name, const char *member,
                                       tsr_kept_record *record) {
    collector c = {.member = member};
    FILE *from = fmemopen((char *)text, strlen(text), "r"); /* only read */
    if (!from) return tsr_fail(TSR_ERR_MEMORY, "no memory for the record in '%s'; free some", name);
    const tsr_status status = tsr_json_read(from, name, member ? collect_member : collect, &c);
    fclose(from);
    return take_collected(&c, name, status, record);
}

tsr_status tsr_record_read_json_text(const char *text, const char *name, tsr_kept_record *record) {
    return tsr_record_read_json_member(text, name, NULL, record);
}
