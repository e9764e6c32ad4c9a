/* The log of a command (job_log.h). */
#include "app/run/job_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/interrupt.h"
#include "app/options.h"

tsr_status tsr_job_said(const tsr_run_log *log, const char *what) {
    if (fflush(stdout) == 0 && !ferror(stdout) && !log->unsaid) return TSR_OK;
    return tsr_fail(TSR_ERR_IO,
                    "%s is in place, but standard output could not be written: check where it goes, such as a full "
                    "disk",
                    what);
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
