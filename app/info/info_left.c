/* What runs with --resume left beside a file (info_left.h). */
#include "app/info/info_left.h"

#include <inttypes.h>
#include <stdio.h>

#include "io/output/resume/resume.h"
#include "io/text/json.h"

typedef struct {
    tsr_info_json *json; /* NULL: none is wanted */
    int count;
} listing;

static void write_entry(tsr_info_json *json, const tsr_leftover *left) {
    FILE *to = tsr_info_json_entry(json, TSR_INFO_UNFINISHED);
    fputs("{\"path\": ", to);
    tsr_json_string(to, left->path);
    fputs(", \"file\": ", to);
    tsr_json_string(to, left->file);
    fprintf(to, ", \"parts\": %" PRId64 ", \"bytes\": %" PRId64 ", \"of_bytes\": %" PRId64 ", \"busy\": %s}",
            left->parts, left->bytes, left->of_bytes, left->busy ? "true" : "false");
}

static void show(void *context, const tsr_leftover *left) {
    char file[4 * TSR_FILE_CHARS], path[4 * TSR_PATH_CHARS], whole[32], all[32];
    listing *listed = context;
    listed->count++;
    if (listed->json) write_entry(listed->json, left);
    printf("unfinished %s, %s of %s in %" PRId64 " part%s%s: %s\n", tsr_printable(left->path, path, sizeof path),
           tsr_format_bytes((double)left->bytes, whole), tsr_format_bytes((double)left->of_bytes, all), left->parts,
           left->parts == 1 ? "" : "s",
           left->busy ? ", a job goes on with it" : ", multiply --resume goes on with it, --force removes it",
           tsr_printable(left->file, file, sizeof file));
}

int tsr_info_left(const char *text, tsr_info_json *json) {
    tsr_matrix_name name;
    listing listed = {.json = json};
    if (tsr_matrix_name_parse(text, &name) == TSR_OK) (void)tsr_resume_list(name.file, show, &listed);
    else tsr_message_set(""); /* whoever looks into the file says it */
    return listed.count;
}
