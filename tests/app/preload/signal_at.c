/* Loaded before the C library (LD_PRELOAD): raises signal TSR_SIGNAL once, on rank TSR_SIGNAL_RANK, in the call named
 * TSR_SIGNAL_AT of a file whose name holds TSR_SIGNAL_FILE: "open" (one that is made), "spill" (mkostemps), "copy",
 * "allocate", "rename", "sync", "sync folder". It comes when the call has done its work; in both of "sync" before.
 * With TSR_SIGNAL_OTHER it goes to the process, which has other threads, and the call returns a tenth of a second
 * later. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_flag raised = ATOMIC_FLAG_INIT;

#define NEXT(name) (*(void **)&next = dlsym(RTLD_NEXT, name))

static int is_this_rank(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *wanted = getenv("TSR_SIGNAL_RANK");
    return !rank || !wanted || strcmp(rank, wanted) == 0;
}

static void at(const char *call, const char *file) {
    const char *number = getenv("TSR_SIGNAL");
    const char *where = getenv("TSR_SIGNAL_AT");
    const char *part = getenv("TSR_SIGNAL_FILE");
    if (!number || !where || !part || strcmp(where, call) != 0 || !strstr(file, part) || !is_this_rank()) return;
    if (atomic_flag_test_and_set(&raised)) return;
    if (!getenv("TSR_SIGNAL_OTHER")) {
        raise(atoi(number));
        return;
    }
    kill(getpid(), atoi(number));
    usleep(100000);
}

static void at_fd(const char *call, int fd) {
    char link[64], name[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) > 0) at(call, name);
}

static int opened(const char *name, const char *file, int flags, unsigned mode) {
    int (*next)(const char *, int, ...);
    const char *where = getenv("TSR_SIGNAL_AT");
    NEXT(name);
    if ((flags & O_TMPFILE) == O_TMPFILE && where && strcmp(where, "spill") == 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    const int fd = next(file, flags, mode);
    if (fd >= 0 && (flags & O_CREAT)) at("open", file);
    return fd;
}

#define MODE(flags)                                                                                                    \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    const unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, unsigned) : 0;                                  \
    va_end(more)

int open(const char *file, int flags, ...) {
    MODE(flags);
    return opened("open", file, flags, mode);
}

int open64(const char *file, int flags, ...) {
    MODE(flags);
    return opened("open64", file, flags, mode);
}

FILE *fopen(const char *file, const char *how) {
    FILE *(*next)(const char *, const char *);
    NEXT("fopen");
    FILE *to = next(file, how);
    if (to && how[0] == 'w') at("open", file);
    return to;
}

int mkostemps(char *name, int suffix_chars, int flags) {
    int (*next)(char *, int, int);
    NEXT("mkostemps");
    const int fd = next(name, suffix_chars, flags);
    if (fd >= 0) at("spill", name);
    return fd;
}

ssize_t copy_file_range(int from, off64_t *in, int to, off64_t *out, size_t bytes, unsigned flags) {
    ssize_t (*next)(int, off64_t *, int, off64_t *, size_t, unsigned);
    NEXT("copy_file_range");
    const ssize_t copied = next(from, in, to, out, bytes, flags);
    at_fd("copy", to);
    return copied;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    int (*next)(int, int, off_t, off_t);
    NEXT("fallocate");
    const int result = next(fd, mode, offset, bytes);
    at_fd("allocate", fd);
    return result;
}

int fsync(int fd) {
    int (*next)(int);
    struct stat st;
    NEXT("fsync");
    at_fd(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? "sync folder" : "sync", fd);
    return next(fd);
}

int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *);
    NEXT("rename");
    const int result = next(from, to);
    at("rename", to);
    return result;
}
