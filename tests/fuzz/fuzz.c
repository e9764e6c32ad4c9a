/* Files, seeds and bytes of the harnesses (fuzz.h). */
#define _GNU_SOURCE /* nftw */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/io/scratch.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    scratch_make();
    atexit(scratch_remove);
    fuzz_start();
    if (!getenv("TSR_FUZZ_SEEDS")) return 0;
    fuzz_seeds();
    exit(0);
}

void fuzz_seed(const char *name, const void *data, size_t bytes) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", getenv("TSR_FUZZ_SEEDS"), name);
    FILE *to = fopen(path, "wb");
    CHECK(to && fwrite(data, 1, bytes, to) == bytes && fclose(to) == 0, "cannot write '%s'", path);
}

const char *fuzz_file(const char *name) { return in_scratch(name); }

const char *fuzz_write(const char *name, const void *data, size_t bytes) {
    const char *path = in_scratch(name);
    const struct timespec long_ago[2] = {{1000000000, 0}, {1000000000, 0}}; /* what is new is waited for */
    FILE *to = fopen(path, "wb");
    CHECK(to && fwrite(data, 1, bytes, to) == bytes && fclose(to) == 0, "cannot write '%s'", path);
    CHECK(utimensat(AT_FDCWD, path, long_ago, 0) == 0, "cannot set the time of '%s'", path);
    return path;
}

void fuzz_take(fuzz_bytes *from, void *to, size_t bytes) {
    const size_t some = bytes < from->left ? bytes : from->left;
    memset(to, 0, bytes);
    if (some > 0) memcpy(to, from->at, some);
    from->at += some;
    from->left -= some;
}
