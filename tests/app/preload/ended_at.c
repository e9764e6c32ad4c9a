/* Loaded before the C library (LD_PRELOAD): sends TSR_END_SIGNAL to this process (SIGKILL where it is not set), on rank
 * TSR_END_RANK (0), in the call number TSR_END_CALL (from 1) of those that change files beside an output, whose names
 * hold ".tessera-". The call does its work before, but where TSR_END_TORN is set a write only the first half of it. The
 * file TSR_END_REPORT receives how many such calls there were, when the process ends by itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;

static long number(const char *name, long usual) {
    const char *text = getenv(name);
    return text ? atol(text) : usual;
}

static int is_meant(const char *name) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return strstr(name, ".tessera-") && atol(rank ? rank : "0") == number("TSR_END_RANK", 0);
}

/* Whether this call is the one. */
static int is_it(const char *name) {
    return is_meant(name) && atomic_fetch_add(&calls, 1) + 1 == number("TSR_END_CALL", 0);
}

static int is_it_fd(int fd) {
    char link[64], name[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof name - 1) > 0 && is_it(name);
}

static void end(void) { kill(getpid(), (int)number("TSR_END_SIGNAL", SIGKILL)); }

__attribute__((destructor)) static void report(void) {
    const char *name = getenv("TSR_END_REPORT");
    FILE *to = name && calls > 0 ? fopen(name, "w") : NULL;
    if (!to) return;
    fprintf(to, "%ld\n", (long)calls);
    fclose(to);
}

#define NEXT(type, name, ...)                                                                                          \
    type (*next)(__VA_ARGS__);                                                                                         \
    *(void **)&next = dlsym(RTLD_NEXT, name)

static ssize_t write_at(const char *name, int fd, const void *from, size_t bytes, off_t offset) {
    NEXT(ssize_t, name, int, const void *, size_t, off_t);
    const int it = is_it_fd(fd);
    const ssize_t written = next(fd, from, it && getenv("TSR_END_TORN") ? bytes / 2 : bytes, offset);
    if (it) end();
    return written;
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset) {
    return write_at("pwrite", fd, from, bytes, offset);
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t offset) {
    return write_at("pwrite64", fd, from, bytes, offset);
}

static int sync_fd(const char *name, int fd) {
    NEXT(int, name, int);
    const int it = is_it_fd(fd), result = next(fd);
    if (it) end();
    return result;
}

int fsync(int fd) { return sync_fd("fsync", fd); }
int fdatasync(int fd) { return sync_fd("fdatasync", fd); }

static int cut(const char *name, int fd, off_t bytes) {
    NEXT(int, name, int, off_t);
    const int it = is_it_fd(fd), result = next(fd, bytes);
    if (it) end();
    return result;
}

int ftruncate(int fd, off_t bytes) { return cut("ftruncate", fd, bytes); }
int ftruncate64(int fd, off_t bytes) { return cut("ftruncate64", fd, bytes); }

int rename(const char *from, const char *to) {
    NEXT(int, "rename", const char *, const char *);
    const int it = is_it(from), result = next(from, to);
    if (it) end();
    return result;
}

int unlink(const char *name) {
    NEXT(int, "unlink", const char *);
    const int it = is_it(name), result = next(name);
    if (it) end();
    return result;
}
