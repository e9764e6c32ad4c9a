/* Loaded before the C library (LD_PRELOAD): each read that tessera-describe makes of slow.h5 takes TSR_SLOW_READ
 * milliseconds, as on a file system of many users. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(int fd) {
    const char *milliseconds = getenv("TSR_SLOW_READ"), *wanted = "/slow.h5";
    char link[64], name[1024] = "";
    if (!milliseconds || strcmp(program_invocation_short_name, "tessera-describe") != 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t chars = readlink(link, name, sizeof name - 1), end = (ssize_t)strlen(wanted);
    if (chars < end || strcmp(name + chars - end, wanted) != 0) return;
    const struct timespec pause = {0, 1000000L * atoi(milliseconds)};
    nanosleep(&pause, NULL);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread");
    wait_for_disk(fd);
    return next(fd, to, bytes, offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    wait_for_disk(fd);
    return next(fd, to, bytes, offset);
}
