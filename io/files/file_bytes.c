/* Calls that move fewer bytes or are interrupted go on (file_bytes.h). */
#include "io/files/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t tsr_read_at(int fd, void *to, size_t bytes, int64_t offset) {
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = pread(fd, (char *)to + done, bytes - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int tsr_write_at(int fd, const void *from, size_t bytes, int64_t offset) {
    while (bytes > 0) {
        ssize_t put = pwrite(fd, from, bytes, offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : ENOSPC;
        from = (const char *)from + put;
        bytes -= (size_t)put;
        offset += put;
    }
    return 0;
}

tsr_status tsr_plain_file_open(const char *file, int *fd, int64_t *bytes) {
    struct stat st;
    if (stat(file, &st) != 0)
        return tsr_fail(errno == ENOENT || errno == ENOTDIR ? TSR_ERR_NOT_FOUND : TSR_ERR_IO,
                        "cannot open '%s': %s; check the file's name", file, strerror(errno));
    if (S_ISDIR(st.st_mode)) return tsr_fail(TSR_ERR_FORMAT, "'%s' is a directory; name a file in it", file);
    if (!S_ISREG(st.st_mode)) return tsr_fail(TSR_ERR_FORMAT, "'%s' is not a regular file; name a file on disk", file);
    *fd = open(file, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) return tsr_fail(TSR_ERR_IO, "cannot open '%s': %s; check its permissions", file, strerror(errno));
    *bytes = st.st_size;
    return TSR_OK;
}
