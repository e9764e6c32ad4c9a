/* A folder of a test's own, removed with everything in it by scratch_remove. */
#ifndef TSR_TESTS_IO_SCRATCH_H
#define TSR_TESTS_IO_SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

static char scratch[256];

static inline void scratch_make(void) {
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/tessera-test-XXXXXX", base ? base : "/tmp");
    CHECK(mkdtemp(scratch) != NULL, "cannot make '%s'", scratch);
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void scratch_remove(void) { nftw(scratch, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* scratch/name, in one of four buffers used in turn. */
static inline const char *in_scratch(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* How many entries of `folder` end in `ending`. */
static inline int count_ending(const char *folder, const char *ending) {
    int count = 0;
    DIR *open = opendir(folder);
    CHECK(open != NULL, "cannot list '%s'", folder);
    for (struct dirent *e; (e = readdir(open));) {
        size_t chars = strlen(e->d_name), wanted = strlen(ending);
        count += chars >= wanted && strcmp(e->d_name + chars - wanted, ending) == 0;
    }
    closedir(open);
    return count;
}

/* The whole file; the caller frees it. */
static inline char *slurp(const char *file, size_t *bytes) {
    FILE *from = fopen(file, "rb");
    CHECK(from != NULL, "cannot read '%s'", file);
    fseek(from, 0, SEEK_END);
    *bytes = (size_t)ftell(from);
    rewind(from);
    char *data = malloc(*bytes + 1);
    CHECK(data && fread(data, 1, *bytes, from) == *bytes, "short read of '%s'", file);
    data[*bytes] = '\0';
    fclose(from);
    return data;
}

#endif
