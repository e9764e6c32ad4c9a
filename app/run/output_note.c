/* What a person should know about the file that an output went into (output_note.h). */
#include "app/run/output_note.h"

#include <inttypes.h>
#include <stdio.h>

#include "io/describe/describe.h"
#include "kernels/base/base.h"

static void count(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    (void)desc;
    (void)path;
    *(int64_t *)context += refused == NULL;
}

void tsr_output_note(const tsr_output_spec *spec, const tsr_output *output) {
    int64_t matrices = 0;
    if (!tsr_store_kind_of(&spec->name)->several || spec->name.path[0] || !output->target_existed) return;
    if (tsr_describe_list(spec->describer, output->target, count, &matrices) != TSR_OK || matrices < 2) return;
    char text[2 * (TSR_FILE_CHARS + TSR_PATH_CHARS)], shown[4 * sizeof text];
    snprintf(text, sizeof text, "'%s' now holds %" PRId64 " matrices: name this one %s:%s", output->target, matrices,
             output->target, output->desc.name.path);
    fprintf(stderr, "tessera: note: %s\n", tsr_printable(text, shown, sizeof shown));
}
