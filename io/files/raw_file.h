/* Bytes of a file at offsets, as fast as its disk has them: large pieces that the page cache does not hold go around
 * it (O_DIRECT), as does what is written; small pieces go through it and are asked for ahead of time. File systems
 * that refuse O_DIRECT, NFS, and systems with other pages than 4 KiB read and write through the cache. Memory-backed
 * files are written through a mapping. Included by io/, its tests, and who counts the memory or the time of a
 * transfer. */
#ifndef TSR_IO_FILES_RAW_FILE_H
#define TSR_IO_FILES_RAW_FILE_H

#include <stdatomic.h>

#include "kernels/base/base.h"

#define TSR_RAW_BLOCK 4096                    /* offsets, lengths and memory of O_DIRECT are multiples of it */
#define TSR_RAW_DIRECT_MIN ((size_t)64 << 10) /* smaller pieces go through the page cache */
#define TSR_RAW_BOUNCE_BYTES                                                                                           \
    ((size_t)1 << 20) /* most memory of one transfer whose own memory is not aligned as the file is */

typedef struct {
    const char *name;    /* not owned; for messages */
    int fd, direct_fd;   /* direct_fd: the same file with O_DIRECT, -1 where that is refused or not wanted */
    atomic_bool refused; /* O_DIRECT failed on the way */
    char *map;           /* of the part: what the page cache holds is asked of it; NULL: not known, and taken as held */
    atomic_bool mapped;  /* what is written goes to `map`, which nobody touches otherwise: a memory-backed file */
    size_t map_bytes;
    int64_t map_offset;
} tsr_raw_file;

/* One thread's aligned memory for the pieces of one transfer: zero at first, allocated where it is needed. */
typedef struct {
    char *memory;
    size_t bytes;
} tsr_raw_bounce;

/* The part [offset, offset + bytes) of the file will be read or, with `write`, written. `cached`: always through the
 * page cache. */
tsr_status tsr_raw_open(const char *file, bool write, bool cached, int64_t offset, int64_t bytes, tsr_raw_file *raw);
void tsr_raw_close(tsr_raw_file *raw);

/* Safe from several threads, each with its own bounce, which tsr_raw_done frees. */
tsr_status tsr_raw_read(tsr_raw_file *raw, void *to, size_t bytes, int64_t offset, tsr_raw_bounce *bounce);
/* `direct`: whole blocks go around the page cache, the rest through it; of no meaning for memory-backed files. */
tsr_status tsr_raw_write(tsr_raw_file *raw, const void *from, size_t bytes, int64_t offset, bool direct,
                         tsr_raw_bounce *bounce);
void tsr_raw_done(tsr_raw_bounce *bounce);

/* Whether the open file is one of a memory-backed file system, and whether the file or folder at a path is one of
 * any other. */
bool tsr_raw_in_memory(int fd);
bool tsr_raw_on_disk(const char *path);
/* Whether the page cache holds more than half of the bytes (or nobody can tell). */
bool tsr_raw_cached(const tsr_raw_file *raw, int64_t offset, size_t bytes);
/* Asks for bytes that will be read soon. */
void tsr_raw_ahead(const tsr_raw_file *raw, int64_t offset, size_t bytes);
/* Written bytes start on their way to the disk; the sync at the end waits for what is left. Those of a mapping leave
 * the process's page tables. */
void tsr_raw_start_writing(const tsr_raw_file *raw, int64_t offset, int64_t bytes);
tsr_status tsr_raw_sync(const tsr_raw_file *raw);

#endif
