/* Loaded before the C library (LD_PRELOAD): what the disk gives back of the file of encoded chunks, which has no name,
 * has bit TSR_FLIP_BIT changed, on the rank TSR_FLIP_RANK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_it(int fd) {
    char link[64], name[1024] = "";
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *wanted = getenv("TSR_FLIP_RANK");
    if (!wanted || strcmp(rank ? rank : "0", wanted) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof name - 1) > 0 && strstr(name, "tessera-cli-") && strstr(name, " (deleted)");
}

static ssize_t flip(int fd, unsigned char *to, ssize_t got, long long offset) {
    const long long bit = atoll(getenv("TSR_FLIP_BIT") ? getenv("TSR_FLIP_BIT") : "0"), at = bit / 8 - offset;
    if (at >= 0 && at < got && is_it(fd)) to[at] ^= (unsigned char)(1 << bit % 8);
    return got;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread");
    return flip(fd, to, next(fd, to, bytes, offset), offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    return flip(fd, to, next(fd, to, bytes, offset), offset);
}
