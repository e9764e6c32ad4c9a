/* Reading and writing around the page cache (raw_file.h): 4 MiB pieces between the disk and the caller's memory
 * where both are aligned alike, and 1 MiB pieces over a bounce buffer, whole blocks around what is wanted, where
 * they are not. Threads and ranks that write one file of a memory-backed file system wait for each other in every
 * call; what they copy to a mapping of it does not. */
#define _GNU_SOURCE /* O_DIRECT, sync_file_range, madvise */
#include "io/files/raw_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/store.h"

#define TASK_BYTES ((int64_t)4 << 20)
#define BLOCK ((int64_t)TSR_RAW_BLOCK)
#define MAPPED_BYTES ((int64_t)256 << 10) /* fresh pages are still in the processor's cache when they are written */
#define SAMPLES 16                        /* of pages, when many may be held */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; systems before it answer EINVAL */
#endif

static int64_t block_down(int64_t at) { return at / BLOCK * BLOCK; }
static bool block_aligned(const void *memory) { return (uintptr_t)memory % TSR_RAW_BLOCK == 0; }

/* ---- opening --------------------------------------------------------------------------------- */

/* Memory-backed files are read where they are; on NFS direct and cached transfers of one file hinder each other. */
static long file_system(int fd) {
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 ? (long)fs.f_type : 0;
}

bool tsr_raw_in_memory(int fd) { return file_system(fd) == TMPFS_MAGIC; }

bool tsr_raw_on_disk(const char *path) {
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type != TMPFS_MAGIC;
}

tsr_status tsr_raw_open(const char *file, bool write, bool cached, int64_t offset, int64_t bytes, tsr_raw_file *raw) {
    int access = write ? O_RDWR | O_NOFOLLOW : O_RDONLY, fd = open(file, access | O_CLOEXEC);
    if (fd < 0)
        return tsr_fail(errno == ENOENT ? TSR_ERR_NOT_FOUND : TSR_ERR_IO,
                        "cannot open '%s' for %s: %s; every rank needs the file at this path", file,
                        write ? "writing" : "reading", strerror(errno));
    *raw = (tsr_raw_file){.name = file, .fd = fd, .direct_fd = -1, .map_offset = block_down(offset)};
    const long kind = file_system(fd);
    const bool in_memory = kind == TMPFS_MAGIC;
    if (bytes < (int64_t)TSR_RAW_DIRECT_MIN || (in_memory && !write) || sysconf(_SC_PAGESIZE) != TSR_RAW_BLOCK)
        return TSR_OK;
    if (!cached && !in_memory && kind != NFS_SUPER_MAGIC) raw->direct_fd = open(file, access | O_DIRECT | O_CLOEXEC);
    raw->map_bytes = (size_t)(offset + bytes - raw->map_offset);
    void *map =
        mmap(NULL, raw->map_bytes, in_memory ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, raw->map_offset);
    if (map == MAP_FAILED) return TSR_OK;
    raw->map = map;
    raw->mapped = in_memory;
    return TSR_OK;
}

void tsr_raw_close(tsr_raw_file *raw) {
    if (raw->map) munmap(raw->map, raw->map_bytes);
    if (raw->direct_fd >= 0) close(raw->direct_fd);
    close(raw->fd);
}

static bool direct_open(const tsr_raw_file *raw) { return raw->direct_fd >= 0 && !atomic_load(&raw->refused); }

/* ---- the page cache -------------------------------------------------------------------------- */

static bool in_map(const tsr_raw_file *raw, int64_t offset, size_t bytes) {
    return raw->map && offset >= raw->map_offset &&
           offset + (int64_t)bytes <= raw->map_offset + (int64_t)raw->map_bytes;
}

/* Of a file that is somebody else's and read-only the kernel says that all is held. */
bool tsr_raw_cached(const tsr_raw_file *raw, int64_t offset, size_t bytes) {
    unsigned char held[SAMPLES];
    int64_t first = block_down(offset) - raw->map_offset, end = offset + (int64_t)bytes - raw->map_offset;
    if (!in_map(raw, offset, bytes)) return true;
    int64_t pages = tsr_ceil_div(end - first, BLOCK);
    int64_t asked = tsr_min(pages, SAMPLES);
    int64_t found = 0;
    bool all = pages <= SAMPLES; /* in one call, else pages here and there */
    for (int64_t i = 0; i < (all ? 1 : asked); i++)
        if (mincore(raw->map + first + i * pages / asked * BLOCK, all ? (size_t)(pages * BLOCK) : TSR_RAW_BLOCK,
                    held + i) != 0)
            return true;
    for (int64_t i = 0; i < asked; i++) found += held[i] & 1;
    return 2 * found > asked;
}

void tsr_raw_ahead(const tsr_raw_file *raw, int64_t offset, size_t bytes) {
    (void)posix_fadvise(raw->fd, offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

void tsr_raw_start_writing(const tsr_raw_file *raw, int64_t offset, int64_t bytes) {
    const int64_t first = block_down(offset);
    if (!atomic_load(&raw->mapped)) (void)sync_file_range(raw->fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
    else if (in_map(raw, offset, (size_t)bytes))
        (void)madvise(raw->map + (first - raw->map_offset), (size_t)(offset + bytes - first), MADV_DONTNEED);
}

/* ---- bounce buffers -------------------------------------------------------------------------- */

/* Room for `bytes` and the blocks at both ends, as far as one piece goes. NULL without memory: the page cache does
 * it then. */
static char *bounce_for(tsr_raw_bounce *bounce, size_t bytes) {
    size_t need = (size_t)tsr_min(tsr_round_up((int64_t)bytes, BLOCK) + BLOCK, (int64_t)TSR_RAW_BOUNCE_BYTES);
    if (bounce->bytes >= need) return bounce->memory;
    tsr_raw_done(bounce);
    bounce->memory = aligned_alloc(TSR_RAW_BLOCK, need);
    if (bounce->memory) bounce->bytes = need;
    return bounce->memory;
}

void tsr_raw_done(tsr_raw_bounce *bounce) {
    free(bounce->memory);
    *bounce = (tsr_raw_bounce){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

static ssize_t read_direct_once(tsr_raw_file *raw, void *to, size_t bytes, int64_t offset) {
    ssize_t got;
    do got = pread(raw->direct_fd, to, bytes, offset);
    while (got < 0 && errno == EINTR);
    if (got < 0) atomic_store(&raw->refused, true); /* a failing disk fails the other way, too, which then says so */
    return got;
}

/* Up to one piece around the page cache; how many bytes of it came, 0 where that way is closed. */
static size_t read_direct(tsr_raw_file *raw, char *to, size_t bytes, int64_t offset, tsr_raw_bounce *bounce) {
    if (offset % BLOCK == 0 && block_aligned(to) && bytes >= TSR_RAW_BLOCK) {
        size_t whole = (size_t)tsr_min((int64_t)bytes / BLOCK * BLOCK, TASK_BYTES);
        return (size_t)tsr_max(0, read_direct_once(raw, to, whole, offset));
    }
    char *memory = bounce_for(bounce, bytes);
    if (!memory) return 0;
    int64_t skip = offset % BLOCK;
    size_t whole = (size_t)tsr_min(tsr_round_up(skip + (int64_t)bytes, BLOCK), (int64_t)bounce->bytes);
    int64_t got = read_direct_once(raw, memory, whole, offset - skip) - skip;
    if (got <= 0) return 0;
    size_t useful = (size_t)tsr_min(got, (int64_t)bytes);
    memcpy(to, memory + skip, useful);
    return useful;
}

static tsr_status read_cached(const tsr_raw_file *raw, char *to, size_t bytes, int64_t offset, size_t *read) {
    ssize_t got;
    do got = pread(raw->fd, to, bytes, offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return tsr_fail(TSR_ERR_IO,
                        "reading %zu bytes at byte %lld of '%s' failed: %s; check the disk and the file system", bytes,
                        (long long)offset, raw->name, strerror(errno));
    if (got == 0)
        return tsr_fail(TSR_ERR_IO,
                        "'%s' ends at byte %lld, %zu bytes early: it was cut short while being read; copy it again",
                        raw->name, (long long)offset, bytes);
    *read = (size_t)got;
    return TSR_OK;
}

/* Large pieces around the page cache when it does not hold them; where that way is closed, through it while the next
 * is on its way from the disk. */
tsr_status tsr_raw_read(tsr_raw_file *raw, void *to, size_t bytes, int64_t offset, tsr_raw_bounce *bounce) {
    bool large = bytes >= TSR_RAW_DIRECT_MIN;
    for (size_t done = 0, got; done < bytes; done += got) {
        char *at = (char *)to + done;
        int64_t from = offset + (int64_t)done, left = (int64_t)(bytes - done);
        size_t task = (size_t)tsr_min(left, TASK_BYTES), next = (size_t)tsr_min(left - (int64_t)task, TASK_BYTES);
        bool direct = large && direct_open(raw);
        got = direct && !tsr_raw_cached(raw, from, task) ? read_direct(raw, at, task, from, bounce) : 0;
        if (got > 0) continue;
        if (!direct && next > 0 && !tsr_raw_cached(raw, from + (int64_t)task, next))
            tsr_raw_ahead(raw, from + (int64_t)task, next);
        TSR_TRY(read_cached(raw, at, task, from, &got));
    }
    return TSR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static tsr_status write_failed(const tsr_raw_file *raw, size_t bytes, int64_t offset, int error) {
    return tsr_fail(tsr_write_status(error), "writing %zu bytes at byte %lld of '%s' failed: %s; %s", bytes,
                    (long long)offset, raw->name, strerror(error), tsr_write_advice(error));
}

/* Up to one piece of whole blocks around the page cache; how many bytes went, 0 where that way is closed. */
static size_t write_direct(tsr_raw_file *raw, const char *from, size_t bytes, int64_t offset, tsr_raw_bounce *bounce) {
    size_t whole = (size_t)tsr_min((int64_t)bytes / BLOCK * BLOCK, TASK_BYTES);
    if (!block_aligned(from)) {
        char *memory = bounce_for(bounce, whole);
        if (!memory) return 0;
        whole = (size_t)tsr_min((int64_t)whole, (int64_t)bounce->bytes);
        from = memcpy(memory, from, whole);
    }
    ssize_t put;
    do put = pwrite(raw->direct_fd, from, whole, offset);
    while (put < 0 && errno == EINTR);
    if (put <= 0) atomic_store(&raw->refused, true); /* a full disk is full the other way, too, which then says so */
    return (size_t)tsr_max(0, put);
}

static tsr_status write_cached(const tsr_raw_file *raw, const char *from, size_t bytes, int64_t offset,
                               size_t *written) {
    ssize_t put;
    do put = pwrite(raw->fd, from, bytes < TSR_TRANSFER_BYTES_MAX ? bytes : TSR_TRANSFER_BYTES_MAX, offset);
    while (put < 0 && errno == EINTR);
    if (put <= 0) return write_failed(raw, bytes, offset, put < 0 ? errno : ENOSPC);
    *written = (size_t)put;
    return TSR_OK;
}

/* Up to one piece to the mapping; how many bytes went, 0 where that way is closed. Its pages are asked for first: a
 * file system without room for them answers that, where touching them would be a signal. */
static size_t write_mapped(tsr_raw_file *raw, const char *from, size_t bytes, int64_t offset) {
    const size_t piece = (size_t)tsr_min((int64_t)bytes, MAPPED_BYTES), skip = (size_t)(offset % BLOCK);
    if (!in_map(raw, offset, piece)) return 0;
    char *to = raw->map + (offset - raw->map_offset);
    if (madvise(to - skip, skip + piece, MADV_POPULATE_WRITE) != 0) {
        atomic_store(&raw->mapped, false); /* a full file system is full the other way, too, which then says so */
        return 0;
    }
    memcpy(to, from, piece);
    return piece;
}

tsr_status tsr_raw_write(tsr_raw_file *raw, const void *from, size_t bytes, int64_t offset, bool direct,
                         tsr_raw_bounce *bounce) {
    for (size_t done = 0, put; done < bytes; done += put) {
        const char *at = (const char *)from + done;
        int64_t to = offset + (int64_t)done;
        size_t left = bytes - done, part = left;
        bool around = direct && direct_open(raw);
        put = atomic_load(&raw->mapped) ? write_mapped(raw, at, left, to) : 0;
        if (put > 0) continue;
        if (around && to % BLOCK != 0) part = (size_t)tsr_min((int64_t)left, BLOCK - to % BLOCK);
        else if (around && left >= TSR_RAW_BLOCK) put = write_direct(raw, at, left, to, bounce);
        if (put == 0) TSR_TRY(write_cached(raw, at, part, to, &put));
    }
    return TSR_OK;
}

tsr_status tsr_raw_sync(const tsr_raw_file *raw) {
    return fsync(raw->fd) == 0 ? TSR_OK : write_failed(raw, 0, 0, errno);
}
