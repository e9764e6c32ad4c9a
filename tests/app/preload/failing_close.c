/* Loaded before the C library (LD_PRELOAD): whoever closes fail.h5 is told that this failed, as a network's file system
 * may say. TSR_CLOSES_FAILED names a file that gets a byte for each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_meant(int fd) {
    static const char wanted[] = "/fail.h5";
    char link[64], name[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t chars = readlink(link, name, sizeof name - 1);
    return chars >= (ssize_t)strlen(wanted) && strcmp(name + chars - strlen(wanted), wanted) == 0;
}

int close(int fd) {
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "close");
    const char *count = getenv("TSR_CLOSES_FAILED");
    if (!count || !is_meant(fd)) return next(fd);
    const int counted = open(count, O_WRONLY | O_CREAT | O_APPEND, 0666);
    (void)!write(counted, "x", 1);
    next(counted);
    next(fd);
    errno = EIO;
    return -1;
}
