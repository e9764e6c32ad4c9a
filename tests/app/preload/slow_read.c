/* Loaded before the C library (LD_PRELOAD). Each read that tessera-describe makes of slow.h5 takes TSR_SLOW_READ
 * milliseconds, as on a file system of many users. The first read of its data on rank 1 takes TSR_SLOW_DATA, and the
 * first time that rank 0 brings an unfinished file to stable storage TSR_SLOW_SYNC. Each read of its data takes
 * TSR_SLOW_EACH on rank 1, and a fifth of that on others; each of less than 1024 bytes, such as a piece of a row, takes
 * TSR_SLOW_PIECE microseconds on every rank, while there is a file TSR_SLOW_WHILE. Each time that rank 0 removes an
 * unfinished file takes TSR_SLOW_REMOVAL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(const char *milliseconds) {
    const int all = milliseconds ? atoi(milliseconds) : 0;
    const struct timespec pause = {all / 1000, 1000000L * (all % 1000)};
    nanosleep(&pause, NULL);
}

static void wait_each(const char *count, long microseconds) {
    const long all = count ? atoi(count) * microseconds : 0;
    const struct timespec pause = {all / 1000000, 1000L * (all % 1000000)};
    if (all > 0) nanosleep(&pause, NULL);
}

static int is_of(int fd, const char *wanted) {
    char link[64], name[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof name - 1) > 0 && strstr(name, wanted) != NULL;
}

static int is_rank(const char *wanted) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank && strcmp(rank, wanted) == 0;
}

static void before_read(int fd, size_t bytes) {
    static atomic_int reads;
    if (strcmp(program_invocation_short_name, "tessera-describe") == 0) {
        if (is_of(fd, "/slow.h5")) wait_for_disk(getenv("TSR_SLOW_READ"));
    } else if (bytes < 1024 && getenv("TSR_SLOW_WHILE")) {
        if (is_of(fd, "/slow.h5") && access(getenv("TSR_SLOW_WHILE"), F_OK) == 0)
            wait_each(getenv("TSR_SLOW_PIECE"), 1);
    } else if (bytes >= 1024 && is_of(fd, "/slow.h5")) {
        if (is_rank("1") && atomic_fetch_add(&reads, 1) == 0) wait_for_disk(getenv("TSR_SLOW_DATA"));
        wait_each(getenv("TSR_SLOW_EACH"), is_rank("1") ? 1000 : 200);
    }
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread");
    before_read(fd, bytes);
    return next(fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    before_read(fd, bytes);
    return next(fd, to, bytes, offset);
}

static void before_sync(int fd) {
    static atomic_int syncs;
    if (is_rank("0") && is_of(fd, ".tessera") && atomic_fetch_add(&syncs, 1) == 0)
        wait_for_disk(getenv("TSR_SLOW_SYNC"));
}

int fsync(int fd) {
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "fsync");
    before_sync(fd);
    return next(fd);
}

int fdatasync(int fd) {
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "fdatasync");
    before_sync(fd);
    return next(fd);
}

int unlink(const char *file) {
    int (*next)(const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "unlink");
    if (is_rank("0") && strstr(file, ".tessera-")) wait_for_disk(getenv("TSR_SLOW_REMOVAL"));
    return next(file);
}
