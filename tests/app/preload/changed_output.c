/* Loaded before the C library (LD_PRELOAD): bit TSR_CHANGE_BIT of an unfinished output is changed, TSR_CHANGE_COUNT
 * times (1). TSR_CHANGE_AT=write: in what is written, on its way to the file; =sync: in the file, when rank 0 brings it
 * to stable storage. =read: in what is read of a file a.*, on its way to the device, after TSR_CHANGE_SKIP times (0)
 * that are left as they are; with TSR_CHANGE_EVERY in one of so many times. The file TSR_CHANGE_READS receives a line
 * of how many bytes of unfinished outputs each rank has read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int left = -1;

static const char *setting(const char *name, const char *usual) {
    const char *text = getenv(name);
    return text ? text : usual;
}

static int is_output(int fd) {
    char link[64], name[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t chars = readlink(link, name, sizeof name - 1);
    return chars > 4 && strstr(name, ".tessera-") && strcmp(name + chars - 4, ".tmp") == 0;
}

static int is_a(int fd) {
    char link[64], name[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, name, sizeof name - 1) > 0 && strstr(name, "/a.");
}

static int wanted(const char *when, int fd) {
    if (strcmp(setting("TSR_CHANGE_AT", ""), when) != 0) return 0;
    if (strcmp(when, "read") == 0 ? !is_a(fd) : !is_output(fd)) return 0;
    const int rank = atoi(setting("OMPI_COMM_WORLD_RANK", "0"));
    if (rank > 0 && strcmp(when, "sync") == 0) return 0; /* twice is not at all */
    if (left < 0) left = atoi(setting("TSR_CHANGE_COUNT", "1"));
    return left > 0;
}

static ssize_t write_changed(ssize_t (*next)(int, const void *, size_t, off_t), int fd, const void *from, size_t bytes,
                             off_t offset) {
    const long long bit = atoll(setting("TSR_CHANGE_BIT", "0")), at = bit / 8 - offset;
    if (at < 0 || at >= (long long)bytes || !wanted("write", fd)) return next(fd, from, bytes, offset);
    void *memory = NULL; /* as aligned as what goes around the page cache */
    if (posix_memalign(&memory, 4096, bytes) != 0) abort();
    unsigned char *copy = memory;
    memcpy(copy, from, bytes);
    copy[at] ^= (unsigned char)(1 << bit % 8);
    const ssize_t put = next(fd, copy, bytes, offset);
    if (put > at) left--;
    free(memory);
    return put;
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset) {
    ssize_t (*next)(int, const void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pwrite");
    return write_changed(next, fd, from, bytes, offset);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t offset) {
    ssize_t (*next)(int, const void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pwrite64");
    return write_changed(next, fd, from, bytes, offset);
}

static atomic_llong bytes_read;

__attribute__((destructor)) static void report(void) {
    const char *name = getenv("TSR_CHANGE_READS");
    FILE *to = name && bytes_read > 0 ? fopen(name, "a") : NULL;
    if (!to) return;
    fprintf(to, "%lld\n", (long long)bytes_read);
    fclose(to);
}

static ssize_t read_changed(int fd, unsigned char *to, ssize_t got, off_t offset) {
    if (got > 0 && is_output(fd)) bytes_read += got;
    const long long bit = atoll(setting("TSR_CHANGE_BIT", "0")), at = bit / 8 - offset;
    static int passed;
    if (at < 0 || at >= got || !wanted("read", fd)) return got;
    if (passed++ < atoi(setting("TSR_CHANGE_SKIP", "0"))) return got;
    if ((passed - 1) % atoi(setting("TSR_CHANGE_EVERY", "1")) != 0) return got;
    to[at] ^= (unsigned char)(1 << bit % 8);
    left--;
    return got;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread");
    return read_changed(fd, to, next(fd, to, bytes, offset), offset);
}

ssize_t pread64(int fd, void *to, size_t bytes, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    return read_changed(fd, to, next(fd, to, bytes, offset), offset);
}

int fsync(int fd) {
    int (*next)(int);
    ssize_t (*put)(int, const void *, size_t, off_t);
    const long long bit = atoll(setting("TSR_CHANGE_BIT", "0"));
    unsigned char byte;
    *(void **)&next = dlsym(RTLD_NEXT, "fsync");
    *(void **)&put = dlsym(RTLD_NEXT, "pwrite");
    if (wanted("sync", fd) && pread(fd, &byte, 1, bit / 8) == 1) {
        byte ^= (unsigned char)(1 << bit % 8);
        if (put(fd, &byte, 1, bit / 8) == 1) left--;
    }
    return next(fd);
}
