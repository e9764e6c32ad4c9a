/* Loaded before the C library (LD_PRELOAD): the file TSR_CHANGE changes, at a moment that does not depend on how fast
 * anybody is.
 *   TSR_CHANGE_AT   "describe": as HDF5 locks it for the first time, which is before it reads what is in it
 *                   "open": as rank 1 opens it first, which is after rank 0 has described it
 *                   "output": as the output's temporary file is made, which is between description and opening
 *                   "around": as it is opened with O_DIRECT, which is after it was opened without
 *                   "check": as --verify opens C to read it, which is after it has opened what C is made of
 *                   "read": as a rank reads 4 KiB or more of it the TSR_CHANGE_COUNTth time; describing it reads less
 *   TSR_CHANGE_BY   "overwrite": its middle byte, in place; "grow": a byte more; "touch": the time alone;
 *                   "replace": FILE.new takes its name; "restore": FILE.new is written over it, and the time put back
 * and for rank 1 the system answers as another machine's would:
 *   TSR_OTHER_DEVICE  the file lies on a device of another number
 *   TSR_OTHER_INODE   the file is another
 *   TSR_OTHER_MACHINE its boot has another number
 *   TSR_NETWORK     (all ranks) it lies in a file system of that type
 *   TSR_STALE       for so many seconds from the first look on it was modified a second earlier */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static atomic_int reads;
static atomic_bool done;

static int is_rank_1(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank && strcmp(rank, "1") == 0;
}

static int is_set(const char *variable, const char *to) {
    const char *value = getenv(variable);
    return value && strcmp(value, to) == 0;
}

static int ends_with(const char *name, const char *end) {
    const size_t chars = strlen(name), last = end ? strlen(end) : 0;
    return last > 0 && chars >= last && strcmp(name + chars - last, end) == 0;
}

static int is_file(int fd) {
    char link[64], name[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) < 0) return 0;
    return ends_with(name, getenv("TSR_CHANGE"));
}

/* ---- changes --------------------------------------------------------------------------------- */

static int (*next_open(void))(const char *, int, ...) {
    int (*next)(const char *, int, ...);
    *(void **)&next = dlsym(RTLD_NEXT, "open");
    return next;
}

static void copy_over(const char *from, int to) {
    char buffer[4096];
    int fd = next_open()(from, O_RDONLY);
    off_t at = 0;
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0; at += got)
        if (pwrite(to, buffer, (size_t)got, at) != got) abort();
    close(fd);
}

static void change(void) {
    const char *file = getenv("TSR_CHANGE");
    char fresh[1024], byte;
    struct stat st;
    if (atomic_exchange(&done, true)) return;
    snprintf(fresh, sizeof fresh, "%s.new", file);
    if (is_set("TSR_CHANGE_BY", "replace")) {
        if (rename(fresh, file) != 0) abort();
        return;
    }
    int fd = next_open()(file, O_RDWR);
    if (fd < 0 || stat(file, &st) != 0) abort();
    if (is_set("TSR_CHANGE_BY", "overwrite")) {
        if (pread(fd, &byte, 1, st.st_size / 2) != 1) abort();
        byte ^= 1;
        if (pwrite(fd, &byte, 1, st.st_size / 2) != 1) abort();
    } else if (is_set("TSR_CHANGE_BY", "grow")) {
        if (pwrite(fd, "", 1, st.st_size) != 1) abort();
    } else if (is_set("TSR_CHANGE_BY", "touch")) {
        if (futimens(fd, NULL) != 0) abort();
    } else if (is_set("TSR_CHANGE_BY", "restore")) {
        const struct timespec times[2] = {st.st_atim, st.st_mtim};
        copy_over(fresh, fd);
        if (futimens(fd, times) != 0) abort();
    } else {
        abort();
    }
    close(fd);
}

/* ---- moments --------------------------------------------------------------------------------- */

/* Before a file is opened; >= 0: what to give in its place. */
static int opening(const char *name, int flags) {
    if (is_rank_1() && getenv("TSR_OTHER_MACHINE") && ends_with(name, "/boot_id")) {
        int fd = memfd_create("boot_id", 0);
        if (fd >= 0 && (pwrite(fd, "another\n", 8, 0) != 8)) abort();
        return fd;
    }
    if (is_set("TSR_CHANGE_AT", "output") && (flags & O_CREAT) && strstr(name, ".tessera-")) change();
    if (is_set("TSR_CHANGE_AT", "check") && (flags & O_ACCMODE) == O_RDONLY && strstr(name, ".tessera-")) change();
    if (is_set("TSR_CHANGE_AT", "around") && (flags & O_DIRECT) && ends_with(name, getenv("TSR_CHANGE"))) change();
    if (is_set("TSR_CHANGE_AT", "open") && is_rank_1() && ends_with(name, getenv("TSR_CHANGE"))) change();
    return -1;
}

#define OPEN(call)                                                                                                     \
    int call(const char *name, int flags, ...) {                                                                       \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        const mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;          \
        va_end(more);                                                                                                  \
        const int fd = opening(name, flags);                                                                           \
        return fd >= 0 ? fd : next_open()(name, flags, mode);                                                          \
    }
OPEN(open)
OPEN(open64)

int flock(int fd, int operation) {
    int (*next)(int, int);
    *(void **)&next = dlsym(RTLD_NEXT, "flock");
    if (is_set("TSR_CHANGE_AT", "describe") && is_file(fd)) change();
    return next(fd, operation);
}

static void reading(int fd, size_t bytes) {
    if (bytes < 4096 || !is_set("TSR_CHANGE_AT", "read") || !is_file(fd)) return;
    if (atomic_fetch_add(&reads, 1) + 1 == atoi(getenv("TSR_CHANGE_COUNT"))) change();
}

#define PREAD(call)                                                                                                    \
    ssize_t call(int fd, void *to, size_t bytes, off_t offset) {                                                       \
        ssize_t (*next)(int, void *, size_t, off_t);                                                                   \
        *(void **)&next = dlsym(RTLD_NEXT, #call);                                                                     \
        reading(fd, bytes);                                                                                            \
        return next(fd, to, bytes, offset);                                                                            \
    }
PREAD(pread)
PREAD(pread64)

#define PREADV(call)                                                                                                   \
    ssize_t call(int fd, const struct iovec *to, int count, off_t offset) {                                            \
        ssize_t (*next)(int, const struct iovec *, int, off_t);                                                        \
        *(void **)&next = dlsym(RTLD_NEXT, #call);                                                                     \
        reading(fd, count > 0 ? to[0].iov_len : 0);                                                                    \
        return next(fd, to, count, offset);                                                                            \
    }
PREADV(preadv)
PREADV(preadv64)

/* ---- answers --------------------------------------------------------------------------------- */

static void pretend(int fd, struct stat *st) {
    static double first;
    struct timespec now;
    if (!is_rank_1() || !is_file(fd)) return;
    if (getenv("TSR_OTHER_DEVICE")) st->st_dev++;
    if (getenv("TSR_OTHER_INODE")) st->st_ino++;
    if (!getenv("TSR_STALE")) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (first == 0) first = seconds;
    if (seconds - first < atof(getenv("TSR_STALE"))) st->st_mtim.tv_sec--;
}

#define FSTAT(call, stat_type)                                                                                         \
    int call(int fd, struct stat_type *st) {                                                                           \
        int (*next)(int, struct stat_type *);                                                                          \
        *(void **)&next = dlsym(RTLD_NEXT, #call);                                                                     \
        const int result = next(fd, st);                                                                               \
        if (result == 0) pretend(fd, (struct stat *)st);                                                               \
        return result;                                                                                                 \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

#define FSTATFS(call, statfs_type)                                                                                     \
    int call(int fd, struct statfs_type *fs) {                                                                         \
        int (*next)(int, struct statfs_type *);                                                                        \
        *(void **)&next = dlsym(RTLD_NEXT, #call);                                                                     \
        const int result = next(fd, fs);                                                                               \
        if (result == 0 && getenv("TSR_NETWORK") && is_file(fd))                                                       \
            fs->f_type = (__typeof__(fs->f_type))strtol(getenv("TSR_NETWORK"), NULL, 16);                              \
        return result;                                                                                                 \
    }
FSTATFS(fstatfs, statfs)
FSTATFS(fstatfs64, statfs64)
