/* What the helper is asked, and what is believed of its answers (describe.h). */
#include "io/describe/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/describe/carried.h"
#include "io/describe/describe_wire.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/external/beneath.h"
#include "io/hdf5/hdf5_memory.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output_private.h"

#define CHUNK_SECONDS 40e-6 /* of computing, more for each chunk that is looked up: it takes some 2e-6 */

static void put_ask(tsr_wire *question, int64_t what) { tsr_wire_number(question, &what, 0, TSR_ASK_COUNT - 1, ""); }

tsr_status tsr_describe_take_status(tsr_wire *answer) {
    int64_t status = TSR_OK;
    const char *message;
    tsr_wire_number(answer, &status, 0, TSR_STATUS_COUNT - 1, "how it went");
    tsr_wire_long_text(answer, &message, "its message");
    if (status == TSR_OK || answer->wrong) return TSR_OK;
    if (tsr_status_exit_code((tsr_status)status) > tsr_status_exit_code(TSR_ERR_USAGE)) answer->wrong = "how it went";
    return tsr_fail((tsr_status)status, "%s", message);
}

/* ---- what is asked --------------------------------------------------------------------------- */

/* The helper says which file it has described: this process must find the same one, and goes by what it finds. `root`:
 * the folder that the file must be below; "": any. */
static tsr_status look_too(const char *file, const char *root, tsr_file_state *state) {
    tsr_file_state now;
    int fd = -1;
    state->known = true;
    TSR_TRY(tsr_file_state_open(file, state, &fd));
    tsr_status status = tsr_file_state_check(fd, file, state, &now);
    if (status == TSR_OK && *root) status = tsr_beneath_open(root, file, fd);
    close(fd);
    if (status == TSR_OK) *state = now;
    return status;
}

/* The folder of other files that an input may name; "" where it may name none. */
static tsr_status find_root(const tsr_describer *d, const char *file, char root[TSR_FILE_CHARS]) {
    root[0] = '\0';
    return d && d->external ? tsr_beneath_root(d->external, file, root) : TSR_OK;
}

/* What a person named may lie anywhere. */
static const char *root_of(const tsr_store_desc *found, const tsr_matrix_name *name, const char *root) {
    return strcmp(found->name.file, name->file) == 0 ? "" : root;
}

/* What the helper says of the file that it was led to from another one is believed where that file may be read. */
static const char *led_wrong(const tsr_store_desc *found, const tsr_matrix_name *name, const char *root,
                             int64_t *file_bytes) {
    if (strcmp(found->name.file, name->file) == 0) return NULL;
    if (!*root || tsr_beneath_path(root, found->name.file) != TSR_OK) return "its file";
    return tsr_h5_probe(found->name.file, file_bytes, NULL) == TSR_OK ? NULL : "its file";
}

tsr_status tsr_describe(tsr_describer *d, const tsr_matrix_name *name, tsr_store_desc *desc) {
    tsr_wire question = {.data = NULL}, answer;
    tsr_matrix_name asked = *name;
    tsr_store_desc found;
    char root[TSR_FILE_CHARS];
    int64_t file_bytes;
    bool called_so = false;
    if (!d) return tsr_hdf5_describe(name, desc);
    TSR_TRY(tsr_h5_probe(name->file, &file_bytes, NULL));
    TSR_TRY(find_root(d, name->file, root));
    memset(&found, 0, sizeof found);
    put_ask(&question, TSR_ASK_DESCRIBE);
    tsr_wire_name(&question, &asked);
    tsr_wire_text(&question, root, sizeof root, "");
    tsr_status status = tsr_describer_ask(d, name->file, TSR_DESCRIBE_SECONDS, &question, &answer);
    if (status != TSR_OK) goto done;
    status = tsr_describe_take_status(&answer);
    if (status == TSR_OK) {
        tsr_wire_bool(&answer, &called_so, "its name");
        tsr_wire_text(&answer, found.name.file, sizeof found.name.file, "its file");
        tsr_wire_desc(&answer, &found);
        if (!answer.wrong) answer.wrong = led_wrong(&found, name, root, &file_bytes);
        if (!answer.wrong) answer.wrong = tsr_desc_wrong(&found, file_bytes, false);
        if (called_so && !*name->slice) answer.wrong = "its name";
    }
    if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, name->file, answer.wrong);
    if (status == TSR_OK) status = look_too(found.name.file, root_of(&found, name, root), &found.file_state);
    if (status == TSR_OK) status = tsr_hdf5_take_part(name, called_so, &found);
    memcpy(found.hdf5.root, root, sizeof root);
    if (status == TSR_OK) *desc = found;
done:
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

static void take_places(tsr_wire *answer, const tsr_store_desc *desc, tsr_chunk_index *index) {
    const size_t chunk = (size_t)tsr_chunk_elements(desc) * tsr_dtype_bytes(desc->element.dtype);
    for (int64_t c = 0; c < tsr_chunk_index_count(index->range) && !answer->wrong; c++) {
        tsr_wire_place(answer, &index->places[c]);
        if (!answer->wrong) answer->wrong = tsr_chunk_place_wrong(&index->places[c], chunk, desc->file_state.bytes);
    }
}

tsr_status tsr_describe_chunks(tsr_describer *d, const tsr_store_desc *desc, tsr_chunk_index **index) {
    tsr_wire question = {.data = NULL}, answer;
    tsr_store_desc asked = *desc;
    tsr_chunk_range range = tsr_chunks_of_part(desc);
    tsr_chunk_index *found = NULL;
    bool wanted = tsr_decodes_chunks(desc);
    *index = NULL;
    if (!d || !desc->hdf5.standard || tsr_chunk_index_count(range) == 0 ||
        tsr_chunk_index_count(range) > TSR_CHUNK_INDEX_MAX)
        return TSR_OK;
    put_ask(&question, TSR_ASK_CHUNKS);
    tsr_wire_range(&question, &asked, &range, &wanted);
    const double seconds = TSR_DESCRIBE_SECONDS + CHUNK_SECONDS * (double)tsr_chunk_index_count(range);
    tsr_status status = tsr_describer_ask(d, desc->name.file, seconds, &question, &answer);
    if (status != TSR_OK) goto done;
    status = tsr_describe_take_status(&answer);
    if (status == TSR_OK && wanted) status = tsr_chunk_index_make(range, &found);
    if (found) take_places(&answer, desc, found);
    if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, desc->name.file, answer.wrong);
    if (status == TSR_OK) *index = found;
    else tsr_chunk_index_leave(found);
done:
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

/* One entry of a list; what is shown of it lives as long as the answer. */
typedef struct {
    tsr_store_desc desc;
    const char *path, *refused;
} entry;

/* False behind the last one. */
static bool take_entry(tsr_wire *answer, const char *file, int64_t file_bytes, entry *e) {
    bool more = false, refused = false;
    memset(e, 0, sizeof *e);
    tsr_wire_bool(answer, &more, "its list");
    if (!more || answer->wrong) return false;
    tsr_wire_desc(answer, &e->desc);
    tsr_wire_long_text(answer, &e->path, "a path");
    tsr_wire_bool(answer, &refused, "its list");
    tsr_wire_long_text(answer, &e->refused, "a reason");
    if (!answer->wrong && e->path[0] != '/') answer->wrong = "a path";
    if (!answer->wrong) answer->wrong = tsr_desc_wrong(&e->desc, file_bytes, refused);
    if (!refused) e->refused = NULL;
    snprintf(e->desc.name.file, sizeof e->desc.name.file, "%s", file);
    return answer->wrong == NULL;
}

tsr_status tsr_describe_list(tsr_describer *d, const char *file, tsr_list_sink sink, void *context) {
    if (!d) return tsr_hdf5_list(file, "", sink, context);
    tsr_wire question = {.data = NULL}, answer;
    char root[TSR_FILE_CHARS];
    const char *folder = root;
    int64_t file_bytes;
    entry e;
    TSR_TRY(tsr_h5_probe(file, &file_bytes, NULL));
    TSR_TRY(find_root(d, file, root));
    put_ask(&question, TSR_ASK_LIST);
    tsr_wire_long_text(&question, &file, "");
    tsr_wire_long_text(&question, &folder, "");
    tsr_status status = tsr_describer_ask(d, file, TSR_DESCRIBE_SECONDS, &question, &answer);
    if (status != TSR_OK) goto done;
    while (take_entry(&answer, file, file_bytes, &e)) /* all of it is checked before any is shown */
        ;
    status = tsr_describe_take_status(&answer);
    if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, file, answer.wrong);
    else
        for (answer.at = 0; take_entry(&answer, file, file_bytes, &e);) sink(context, &e.desc, e.path, e.refused);
done:
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

static bool take_path(tsr_wire *answer, const char **path) {
    bool more = false;
    tsr_wire_bool(answer, &more, "its list");
    if (!more || answer->wrong) return false;
    tsr_wire_long_text(answer, path, "a path");
    if (!answer->wrong && ((*path)[0] != '/' || strlen(*path) >= TSR_PATH_CHARS)) answer->wrong = "a path";
    return answer->wrong == NULL;
}

tsr_status tsr_describe_runs(tsr_describer *d, const char *file, void (*each)(void *context, const char *path),
                             void *context) {
    if (!d) return tsr_record_list_hdf5(file, each, context);
    tsr_wire question = {.data = NULL}, answer;
    const char *path;
    TSR_TRY(tsr_h5_probe(file, NULL, NULL));
    put_ask(&question, TSR_ASK_RUNS);
    tsr_wire_long_text(&question, &file, "");
    tsr_status status = tsr_describer_ask(d, file, TSR_DESCRIBE_SECONDS, &question, &answer);
    if (status != TSR_OK) goto done;
    while (take_path(&answer, &path))
        ;
    status = tsr_describe_take_status(&answer);
    if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, file, answer.wrong);
    else
        for (answer.at = 0; take_path(&answer, &path);) each(context, path);
done:
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

tsr_status tsr_describe_run(tsr_describer *d, const char *file, const char *path, tsr_kept_record *record) {
    if (!d) return tsr_record_read_hdf5(file, path, record);
    tsr_wire question = {.data = NULL}, answer;
    const char *text = "";
    TSR_TRY(tsr_h5_probe(file, NULL, NULL));
    put_ask(&question, TSR_ASK_RUN);
    tsr_wire_long_text(&question, &file, "");
    tsr_wire_long_text(&question, &path, "");
    tsr_status status = tsr_describer_ask(d, file, TSR_DESCRIBE_SECONDS, &question, &answer);
    if (status != TSR_OK) goto done;
    status = tsr_describe_take_status(&answer);
    if (status == TSR_OK) tsr_wire_long_text(&answer, &text, "its record");
    if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, file, answer.wrong);
    else if (status == TSR_OK && tsr_record_read_json_text(text, path, record) != TSR_OK)
        status = tsr_describer_distrust(d, file, "its record");
done:
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

/* ---- an output that is there already --------------------------------------------------------- */

void tsr_wire_existing(tsr_wire *wire, tsr_output_spec *spec, tsr_target *target,
                       tsr_matrix_name names[2 * TSR_SOURCES_MAX], char roles[TSR_SOURCES_MAX][16]) {
    int64_t count = wire->reading ? 0 : spec->source_count;
    tsr_wire_text(wire, target->file, sizeof target->file, "a file's name");
    tsr_wire_text(wire, target->path, sizeof target->path, "a path");
    tsr_wire_text(wire, target->run_path, sizeof target->run_path, "a path");
    tsr_wire_bool(wire, &spec->force, "force");
    tsr_wire_number(wire, &count, 0, TSR_SOURCES_MAX, "how much is read");
    spec->source_count = (int)count;
    for (int i = 0; i < spec->source_count; i++) {
        tsr_output_source *source = &spec->sources[i];
        tsr_wire_text(wire, roles[i], sizeof roles[i], "a role");
        tsr_wire_name(wire, &names[2 * i]);
        tsr_wire_name(wire, &names[2 * i + 1]);
        tsr_wire_bool(wire, &names[2 * i + 1].sliced, "a slice");
        tsr_wire_bool(wire, &source->replaceable, "a source");
        tsr_wire_bool(wire, &source->part, "a source");
        source->role = roles[i];
        source->asked = &names[2 * i];
        source->found = &names[2 * i + 1];
    }
}

/* A copy that tsr_wire_existing may read from. */
static void put_existing(tsr_wire *question, const tsr_output_spec *spec, const tsr_target *target) {
    tsr_output_spec spec_copy = *spec;
    tsr_target target_copy = *target;
    tsr_matrix_name names[2 * TSR_SOURCES_MAX];
    char roles[TSR_SOURCES_MAX][16];
    for (int i = 0; i < spec->source_count; i++) {
        snprintf(roles[i], sizeof roles[i], "%s", spec->sources[i].role);
        names[2 * i] = *spec->sources[i].asked;
        names[2 * i + 1] = *spec->sources[i].found;
    }
    tsr_wire_existing(question, &spec_copy, &target_copy, names, roles);
}

tsr_status tsr_describe_existing(const tsr_output_spec *spec, const tsr_target *target, bool *others) {
    if (!spec->describer) return tsr_existing_look(spec, target, others);
    tsr_wire question = {.data = NULL}, answer;
    bool more = false;
    put_ask(&question, TSR_ASK_EXISTING);
    put_existing(&question, spec, target);
    tsr_status status = tsr_describer_ask(spec->describer, target->file, TSR_DESCRIBE_SECONDS, &question, &answer);
    if (status != TSR_OK) goto done;
    status = tsr_describe_take_status(&answer);
    tsr_wire_bool(&answer, &more, "what it holds");
    if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(spec->describer, target->file, answer.wrong);
    if (status == TSR_OK) *others = more;
done:
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

/* ---- what goes with a matrix ----------------------------------------------------------------- */

static tsr_status ask_carried(tsr_describer *d, const tsr_carried_question *asked, tsr_carried *carried) {
    if (!d) return tsr_hdf5_carried(asked, carried);
    tsr_wire question = {.data = NULL}, answer;
    tsr_carried_question copy = *asked;
    put_ask(&question, TSR_ASK_CARRIED);
    tsr_wire_carried_question(&question, &copy);
    tsr_status status = tsr_describer_ask(d, asked->file, TSR_DESCRIBE_SECONDS, &question, &answer);
    if (status == TSR_OK) {
        status = tsr_describe_take_status(&answer);
        if (status == TSR_OK) tsr_wire_carried(&answer, carried);
        for (int64_t i = 0; i < carried->scale_count && asked->from_end > 0; i++)
            if (carried->scales[i].length != asked->count) answer.wrong = "the length of a scale";
        if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, asked->file, answer.wrong);
    }
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

void tsr_describe_carried(tsr_describer *d, const tsr_carried_question *question, tsr_carried *carried) {
    memset(carried, 0, sizeof *carried);
    if (ask_carried(d, question, carried) == TSR_OK) return;
    tsr_carried_free(carried);
    tsr_carried_note(carried, "its scales, labels and attributes are left out: %s", tsr_message());
    tsr_message_set("");
}
