/* The direct path: a contiguous dataset is bytes at an offset of its file, read with pread and written with pwrite by every rank and
 * thread without HDF5. Elements come and go in the file's byte order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/hdf5_util.h"

typedef struct {
    tsr_store base;
    int fd;
    bool writable;
} direct_store;

/* ---- whole transfers ------------------------------------------------------------------------------------------- */

static tsr_status read_bytes(const direct_store *s, char *to, size_t bytes, int64_t offset) {
    while (bytes > 0) {
        ssize_t got = pread(s->fd, to, bytes < TSR_TRANSFER_BYTES_MAX ? bytes : TSR_TRANSFER_BYTES_MAX, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return tsr_fail(TSR_ERR_IO, "reading %zu bytes at byte %lld of '%s' failed: %s; check the disk and the file system", bytes,
                            (long long)offset, s->base.desc.name.file, strerror(errno));
        if (got == 0)
            return tsr_fail(TSR_ERR_IO, "'%s' ends at byte %lld, %zu bytes early: it was cut short while being read; copy it again",
                            s->base.desc.name.file, (long long)offset, bytes);
        to += got;
        bytes -= (size_t)got;
        offset += got;
    }
    return TSR_OK;
}

static tsr_status write_failed(const direct_store *s, size_t bytes, int64_t offset, int error) {
    bool space = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return tsr_fail(space ? TSR_ERR_SPACE : TSR_ERR_IO, "writing %zu bytes at byte %lld of '%s' failed: %s; %s", bytes, (long long)offset,
                    s->base.desc.name.file, strerror(error),
                    space ? "free some space or choose another folder" : "check the disk and the file system");
}

static tsr_status write_bytes(const direct_store *s, const char *from, size_t bytes, int64_t offset) {
    while (bytes > 0) {
        ssize_t put = pwrite(s->fd, from, bytes < TSR_TRANSFER_BYTES_MAX ? bytes : TSR_TRANSFER_BYTES_MAX, offset);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return write_failed(s, bytes, offset, put < 0 ? errno : ENOSPC);
        from += put;
        bytes -= (size_t)put;
        offset += put;
    }
    return TSR_OK;
}

/* ---- rectangles ------------------------------------------------------------------------------------------------ */

tsr_status tsr_store_check_rect(const tsr_store_desc *desc, tsr_rect rect, int64_t ld) {
    if (rect.row >= 0 && rect.col >= 0 && rect.rows >= 0 && rect.cols >= 0 && rect.row <= desc->rows - rect.rows &&
        rect.col <= desc->cols - rect.cols && (ld >= rect.cols || tsr_rect_empty(rect)))
        return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE, "rectangle of %lldx%lld at (%lld, %lld) with rows of %lld is not inside '%s:%s' of %lldx%lld", (long long)rect.rows,
                    (long long)rect.cols, (long long)rect.row, (long long)rect.col, (long long)ld, desc->name.file, desc->name.path,
                    (long long)desc->rows, (long long)desc->cols);
}

/* A rectangle as equal segments of bytes: one segment when its rows follow each other in the file and in memory. */
typedef struct {
    int64_t segments;
    size_t bytes;          /* of one segment */
    int64_t file_offset;   /* of the first */
    int64_t file_step;     /* from one to the next, bytes */
    size_t memory_step;
} segments;

static segments cut(const tsr_store_desc *desc, tsr_rect rect, int64_t ld) {
    int64_t element = (int64_t)tsr_dtype_bytes(desc->element.dtype);
    segments cut = {
        .segments = rect.rows,
        .bytes = (size_t)(rect.cols * element),
        .file_offset = desc->offset + ((desc->row0 + rect.row) * desc->dataset_cols + desc->col0 + rect.col) * element,
        .file_step = desc->dataset_cols * element,
        .memory_step = (size_t)(ld * element),
    };
    if (rect.cols == desc->dataset_cols && ld == rect.cols) {
        cut.segments = 1;
        cut.bytes *= (size_t)rect.rows;
    }
    return cut;
}

static tsr_status direct_read(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    const direct_store *s = (const direct_store *)store;
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    segments c = cut(&store->desc, rect, ld);
    for (int64_t i = 0; i < c.segments; i++) TSR_TRY(read_bytes(s, (char *)to + (size_t)i * c.memory_step, c.bytes, c.file_offset + i * c.file_step));
    return TSR_OK;
}

static tsr_status direct_write(tsr_store *store, tsr_rect rect, const void *from, int64_t ld) {
    const direct_store *s = (const direct_store *)store;
    if (!s->writable) return tsr_fail(TSR_ERR_USAGE, "'%s' was opened for reading only", store->desc.name.file);
    TSR_TRY(tsr_store_check_rect(&store->desc, rect, ld));
    if (tsr_rect_empty(rect)) return TSR_OK;
    segments c = cut(&store->desc, rect, ld);
    for (int64_t i = 0; i < c.segments; i++)
        TSR_TRY(write_bytes(s, (const char *)from + (size_t)i * c.memory_step, c.bytes, c.file_offset + i * c.file_step));
    return TSR_OK;
}

static tsr_status direct_sync(tsr_store *store) {
    const direct_store *s = (const direct_store *)store;
    if (!s->writable || fsync(s->fd) == 0) return TSR_OK;
    return write_failed(s, 0, 0, errno);
}

static void direct_close(tsr_store *store) {
    close(((direct_store *)store)->fd);
    free(store);
}

static const tsr_store_ops direct_ops = {"direct", direct_read, direct_write, direct_sync, direct_close, NULL};

tsr_status tsr_direct_open(const tsr_store_desc *desc, bool write, tsr_store **store) {
    direct_store *s = malloc(sizeof *s);
    if (!s) return tsr_fail(TSR_ERR_MEMORY, "no memory to open '%s'", desc->name.file);
    *s = (direct_store){.base = {&direct_ops, *desc}, .writable = write};
    s->fd = open(desc->name.file, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (s->fd < 0) {
        int error = errno;
        free(s);
        return tsr_fail(error == ENOENT ? TSR_ERR_NOT_FOUND : TSR_ERR_IO, "cannot open '%s' for %s: %s; every rank needs the file at this path",
                        desc->name.file, write ? "writing" : "reading", strerror(error));
    }
    *store = &s->base;
    return TSR_OK;
}
