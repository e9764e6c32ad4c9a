/* Loaded before the C library (LD_PRELOAD): the system takes a second to find that the disk has no room for a file, as memory-backed file systems may. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    (void)fd, (void)mode, (void)offset, (void)bytes;
    sleep(1);
    errno = ENOSPC;
    return -1;
}
