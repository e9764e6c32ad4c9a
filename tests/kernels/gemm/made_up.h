/* A made-up /proc, /sys or root in a scratch folder, for functions that take one. */
#ifndef TSR_TESTS_KERNELS_GEMM_MADE_UP_H
#define TSR_TESTS_KERNELS_GEMM_MADE_UP_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

/* Writes text to folder/name and makes the folders between. */
static inline void put(const char *folder, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write '%s'", path);
}

/* Removes the folder and all in it. */
static inline void remove_made_up(const char *folder) {
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0, "%s", command);
}

#endif
