/* A record as its caller holds it (context.h): the JSON, and what is found in it. */
#include "app/library/api/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/text/json_read.h"

struct tessera_record {
    char *warnings; /* owned */
    char json[];
};

typedef struct {
    const char *name;
    double number;
    bool found;
    char *text; /* owned */
} searched;

/* Members of the one object. */
static void look(void *context, const tsr_json_value *value) {
    searched *s = context;
    if (value->depth != 1 || s->found || strcmp(value->name, s->name) != 0) return;
    if (value->kind == TSR_JSON_NUMBER) s->number = strtod(value->text, NULL);
    else if (value->kind == TSR_JSON_TEXT) s->text = strdup(value->text);
    else return;
    s->found = true;
}

static tsr_status search(const tessera_record *record, const char *name, searched *s) {
    *s = (searched){.name = name};
    FILE *from = fmemopen((char *)record->json, strlen(record->json), "r"); /* only read */
    if (!from) return tsr_fail(TSR_ERR_MEMORY, "no memory to read a record: free some");
    const tsr_status status = tsr_json_read(from, "the record", look, s);
    fclose(from);
    return status;
}

tsr_status tsr_record_handle_make(const tsr_world *world, const char *json, tessera_record **record) {
    size_t bytes = world->rank == 0 && json ? strlen(json) : 0; /* 0: rank 0 has none */
    searched warnings = {0};
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_broadcast(world->comm, &bytes, sizeof bytes));
    tessera_record *made = bytes ? calloc(1, sizeof *made + bytes + 1) : NULL;
    if (!made) status = tsr_fail(TSR_ERR_MEMORY, "C is in place, but there was no memory for its record: free some");
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    if (world->rank == 0 && json) memcpy(made->json, json, bytes + 1);
    TSR_TRY_DONE(tsr_broadcast(world->comm, made->json, bytes));
    status = search(made, "warnings", &warnings);
    made->warnings = warnings.text;
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    *record = made;
    return TSR_OK;
done:
    tessera_record_free(made);
    return status;
}

const char *tessera_record_json(const tessera_record *record) { return record ? record->json : ""; }

const char *tessera_record_warnings(const tessera_record *record) {
    return record && record->warnings ? record->warnings : "";
}

int tessera_record_number(const tessera_record *record, const char *name, double *value) {
    searched s;
    tsr_message_set("");
    if (!record || !name || !value)
        return tsr_fail(TSR_ERR_USAGE, "tessera_record_number: a record, a name and a place are needed");
    TSR_TRY(search(record, name, &s));
    const bool number = s.found && !s.text;
    free(s.text);
    if (!number)
        return tsr_fail(TSR_ERR_NOT_FOUND, "a record has no number '%s': docs/record.md lists its members", name);
    *value = s.number;
    return TSR_OK;
}

void tessera_record_free(tessera_record *record) {
    if (record) free(record->warnings);
    free(record);
}
