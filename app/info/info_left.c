/* What runs with --resume left beside a file (info_left.h). */
#include "app/info/info_left.h"

#include <inttypes.h>
#include <stdio.h>

#include "io/output/resume.h"

static void show(void *context, const tsr_leftover *left) {
    char file[4 * TSR_FILE_CHARS], path[4 * TSR_PATH_CHARS], whole[32], all[32];
    int *count = context;
    ++*count;
    printf("unfinished %s, %s of %s in %" PRId64 " part%s%s: %s\n", tsr_printable(left->path, path, sizeof path),
           tsr_format_bytes((double)left->bytes, whole), tsr_format_bytes((double)left->of_bytes, all), left->parts,
           left->parts == 1 ? "" : "s",
           left->busy ? ", a job goes on with it" : ", multiply --resume goes on with it, --force removes it",
           tsr_printable(left->file, file, sizeof file));
}

int tsr_info_left(const char *text) {
    tsr_matrix_name name;
    int count = 0;
    if (tsr_matrix_name_parse(text, &name) == TSR_OK) (void)tsr_resume_list(name.file, show, &count);
    else tsr_message_set(""); /* whoever looks into the file says it */
    return count;
}
