/* What a person should know about the file that an output went into (output_note.h). */
#include "app/output_note.h"

#include <inttypes.h>
#include <stdio.h>

static void count(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    (void)desc, (void)path;
    *(int64_t *)context += refused == NULL;
}

void tsr_output_note(const tsr_output_spec *spec, const tsr_output *output) {
    int64_t matrices = 0;
    if (spec->name.path[0] || !output->target_existed) return;
    if (tsr_hdf5_list(output->target, count, &matrices) != TSR_OK || matrices < 2) return;
    fprintf(stderr, "tessera: note: '%s' now holds %" PRId64 " matrices: name this one %s:%s\n", output->target,
            matrices, output->target, output->desc.name.path);
}
