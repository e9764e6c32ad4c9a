/* The JSON of `tessera info` (info_json.h). */
#include "app/info/info_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "io/stores.h"
#include "io/text/json.h"

static const char *const names[TSR_INFO_LISTS] = {"matrices", "others",  "reads",     "runs",
                                                  "lanes",    "devices", "unfinished"};

tsr_status tsr_info_json_begin(tsr_info_json *json) {
    *json = (tsr_info_json){.more = open_memstream(&json->more_text, &json->more_chars)};
    bool all = json->more != NULL;
    for (int i = 0; i < TSR_INFO_LISTS; i++) {
        json->list[i] = open_memstream(&json->text[i], &json->chars[i]);
        all = all && json->list[i];
    }
    return all ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for the JSON of info: free some");
}

void tsr_info_json_free(tsr_info_json *json) {
    if (json->more) fclose(json->more);
    free(json->more_text);
    for (int i = 0; i < TSR_INFO_LISTS; i++) {
        if (json->list[i]) fclose(json->list[i]);
        free(json->text[i]);
    }
    *json = (tsr_info_json){0};
}

FILE *tsr_info_json_entry(tsr_info_json *json, tsr_info_list list) {
    FILE *to = json->list[list];
    fflush(to);
    fputs(json->chars[list] > 0 ? ",\n    " : "\n    ", to);
    return to;
}

void tsr_info_json_matrix(tsr_info_json *json, const tsr_store_desc *desc, const char *path) {
    if (!json) return;
    char storage[320];
    FILE *to = tsr_info_json_entry(json, TSR_INFO_MATRICES);
    const tsr_shape shape = tsr_store_shape(desc);
    fputs("{\"path\": ", to);
    tsr_json_string(to, path);
    fputs(", \"shape\": [", to);
    for (int i = 0; i < shape.dimensions; i++) fprintf(to, "%s%" PRId64, i ? ", " : "", shape.size[i]);
    fputs("], \"type\": ", to);
    tsr_json_string(to, desc->type_name);
    fprintf(to, ", \"bytes\": %" PRId64 ", \"storage\": ", tsr_store_bytes(desc));
    tsr_json_string(to, tsr_store_storage(desc, storage, sizeof storage));
    fputs("}", to);
}

void tsr_info_json_other(tsr_info_json *json, const char *path, const char *why) {
    if (!json) return;
    FILE *to = tsr_info_json_entry(json, TSR_INFO_OTHERS);
    fputs("{\"path\": ", to);
    tsr_json_string(to, path);
    fputs(", \"why\": ", to);
    tsr_json_string(to, why);
    fputs("}", to);
}

void tsr_info_json_piece(tsr_info_json *json, const tsr_piece *piece) {
    if (!json) return;
    const tsr_rect r = piece->rect;
    FILE *to = tsr_info_json_entry(json, TSR_INFO_READS);
    fputs("{\"file\": ", to);
    tsr_json_string(to, piece->desc.name.file);
    fputs(", \"path\": ", to);
    if (piece->bytes) fputs("null", to);
    else tsr_json_string(to, piece->desc.name.path);
    fprintf(to,
            ", \"matrix\": %" PRId64 ", \"rows\": [%" PRId64 ", %" PRId64 "], \"columns\": [%" PRId64 ", %" PRId64 "]}",
            piece->matrix, r.row, r.row + r.rows, r.col, r.col + r.cols);
}

void tsr_info_json_run(tsr_info_json *json, const char *path, const tsr_run_record *run) {
    if (!json) return;
    FILE *to = tsr_info_json_entry(json, TSR_INFO_RUNS);
    fputs("{\"path\": ", to);
    tsr_json_string(to, path);
    fprintf(to, ", \"record\": {\n  \"format\": %d", TSR_RECORD_FORMAT);
    tsr_record_write_members(run, to);
    fputs("\n}}", to);
}

tsr_status tsr_info_json_write(tsr_info_json *json, const char *file, FILE *to) {
    fprintf(to, "{\n  \"format\": %d,\n  \"version\": \"%s\",\n  \"file\": ", TSR_RECORD_FORMAT, TSR_VERSION);
    if (file) tsr_json_string(to, file);
    else fputs("null", to);
    bool whole = fflush(json->more) == 0 && !ferror(json->more);
    for (int i = 0; i < TSR_INFO_LISTS; i++) {
        whole = fflush(json->list[i]) == 0 && !ferror(json->list[i]) && whole;
        fprintf(to, ",\n  \"%s\": [%s%s]", names[i], json->chars[i] ? json->text[i] : "", json->chars[i] ? "\n  " : "");
    }
    fprintf(to, "%s\n}\n", json->more_chars ? json->more_text : "");
    return whole ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for the JSON of info: free some");
}
