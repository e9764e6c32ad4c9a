/* Bytes of a file at a place, however many calls that takes. */
#ifndef TSR_IO_FILES_FILE_BYTES_H
#define TSR_IO_FILES_FILE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernels/base/base.h"

/* Local. How many of the bytes the file has there: fewer only where it ends. -1 with errno. */
ssize_t tsr_read_at(int fd, void *to, size_t bytes, int64_t offset);

/* Local. 0, or an errno: ENOSPC where the file takes no more. */
int tsr_write_at(int fd, const void *from, size_t bytes, int64_t offset);

/* Local. Opens a regular file for reading, or says what else it is. The caller closes *fd. *bytes: the file's size. */
tsr_status tsr_plain_file_open(const char *file, int *fd, int64_t *bytes);

#endif
