/* The last words of a command (last_words.h). */
#include "app/last_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/interrupt.h"
#include "app/options.h"
#include "io/describe/describe.h"

tsr_status tsr_job_said(const tsr_run_log *log, const char *what) {
    if (fflush(stdout) == 0 && !ferror(stdout) && !log->unsaid) return TSR_OK;
    return tsr_fail(TSR_ERR_IO,
                    "%s is in place, but standard output could not be written: check where it goes, such as a full "
                    "disk",
                    what);
}

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

const char *tsr_job_log_find(int argc, char **argv) {
    const char *file = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--dry-run") == 0) return NULL;
        if (!file) file = tsr_option_value(argv, i, "--log");
    }
    return file;
}

void tsr_job_log_refuse(const tsr_world *world, const char *file, int argc, char **argv, tsr_status status) {
    if (!file || world->rank != 0) return;
    tsr_interrupt_watch(world);
    char *command = tsr_command_line(argc, argv);
    tsr_run_log_refuse(file, command ? command : "tessera", world->ranks, status);
    free(command);
}
