/* Bytes of files around the page cache, through it and through a mapping are the same for every alignment of offset,
 * length and memory; what refuses O_DIRECT is read and written through the cache; and a file that ends early says
 * so. */
#define _GNU_SOURCE /* O_DIRECT */
#include "io/files/raw_file.h"

#include <fcntl.h>
#include <time.h>

#include "io/store_direct.h"
#include "tests/io/chunks/mapped.h"
#include "tests/io/scratch.h"

enum { FILE_BYTES = (3 << 20) + 1234, ROOM = FILE_BYTES + 3 * 4096 };

static unsigned char pattern(int64_t at) { return (unsigned char)(at * 2654435761u >> 13); }

static void make_file(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0, "cannot make '%s'", name);
    unsigned char *data = malloc(FILE_BYTES);
    for (int64_t i = 0; i < FILE_BYTES; i++) data[i] = pattern(i);
    CHECK(write(fd, data, FILE_BYTES) == FILE_BYTES && fsync(fd) == 0, "cannot write '%s'", name);
    free(data);
    close(fd);
}

/* Whether the page cache gave the file up. */
static bool drop_cache(const tsr_raw_file *raw) {
    CHECK(fsync(raw->fd) == 0 && posix_fadvise(raw->fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "cannot drop the cache");
    return raw->map && !tsr_raw_cached(raw, 0, FILE_BYTES);
}

static unsigned char *memory(void) {
    unsigned char *m = aligned_alloc(4096, (ROOM + 4095) / 4096 * 4096);
    CHECK(m != NULL, "no memory");
    return m;
}

static void check_bytes(const unsigned char *at, int64_t offset, int64_t bytes, const char *what) {
    CHECK(at[-1] == 0xee && at[bytes] == 0xee, "%s wrote beside %lld bytes of offset %lld", what, (long long)bytes,
          (long long)offset);
    for (int64_t i = 0; i < bytes; i++)
        CHECK(at[i] == pattern(offset + i), "%s: byte %lld of %lld from %lld", what, (long long)i, (long long)bytes,
              (long long)offset);
}

static const int64_t offsets[] = {0, 1, 512, 4095, 4096, 70001, 1 << 20},
                     lengths[] = {1, 4095, 65535, 65536, 65537, (1 << 20) + 3, (2 << 20) + 5000, FILE_BYTES};
static const int memories[] = {4096, 4096 + 8, 4096 + 512, 1};
#define EACH(i, list) for (size_t i = 0; i < sizeof list / sizeof *list; i++)

/* Of the shortest length that goes around the cache, and one of several pieces, every alignment of memory; of others
 * one after the other. */
static bool worth_it(size_t o, size_t l, size_t m) {
    return lengths[l] == 65536 || lengths[l] == (1 << 20) + 3 || (o + l) % 4 == m;
}

/* Whether the file system takes O_DIRECT at open and refuses it later. */
static bool refuses_later(void) {
    tsr_raw_bounce bounce = {0};
    tsr_raw_file raw;
    unsigned char *from = memory();
    memset(from, 0, TSR_RAW_BLOCK);
    make_file(in_scratch("probe"));
    CHECK_OK(tsr_raw_open(in_scratch("probe"), true, false, 0, FILE_BYTES, &raw));
    CHECK_OK(tsr_raw_write(&raw, from, TSR_RAW_BLOCK, 0, true, &bounce));
    bool refused = raw.refused;
    tsr_raw_close(&raw);
    free(from);
    return refused;
}

static void test_reading(bool refuses) {
    const char *name = in_scratch("read");
    unsigned char *to = memory();
    tsr_raw_file raw;
    make_file(name);
    CHECK_OK(tsr_raw_open(name, false, false, 0, FILE_BYTES, &raw));
    bool drops = drop_cache(&raw) && raw.direct_fd >= 0 && !refuses;
    EACH(o, offsets) EACH(l, lengths) EACH(m, memories) {
        if (!worth_it(o, l, m)) continue;
        int64_t bytes = tsr_min(lengths[l], FILE_BYTES - offsets[o]);
        tsr_raw_bounce bounce = {0};
        drop_cache(&raw);
        memset(to, 0xee, ROOM);
        CHECK_OK(tsr_raw_read(&raw, to + memories[m], (size_t)bytes, offsets[o], &bounce));
        check_bytes(to + memories[m], offsets[o], bytes, "reading");
        CHECK(bounce.bytes <= TSR_RAW_BOUNCE_BYTES, "%zu bytes to bounce", bounce.bytes);
        if (drops && bytes >= (int64_t)TSR_RAW_DIRECT_MIN)
            CHECK(!tsr_raw_cached(&raw, 0, FILE_BYTES), "%lld bytes went through the cache", (long long)bytes);
        tsr_raw_done(&bounce);
    }
    CHECK(!raw.refused || refuses, "O_DIRECT was refused");
    tsr_raw_ahead(&raw, 0, FILE_BYTES);
    struct timespec moment = {0, 10 * 1000 * 1000};
    for (int tries = 0; !tsr_raw_cached(&raw, 0, FILE_BYTES); tries++) {
        CHECK(tries < 1000, "what was asked for does not come");
        nanosleep(&moment, NULL);
    }
    tsr_raw_bounce bounce = {0};
    memset(to, 0xee, ROOM);
    CHECK_OK(tsr_raw_read(&raw, to + 1, FILE_BYTES, 0, &bounce));
    check_bytes(to + 1, 0, FILE_BYTES, "reading what is cached");
    CHECK(!raw.map || bounce.memory == NULL, "what is cached went around the cache");
    tsr_raw_close(&raw);
    free(to);
}

/* Neighbours of what is written keep their bytes. in_memory: the file is memory-backed, where it is written through
 * a mapping whose pages do not stay. */
static void test_writing(const char *name, bool in_memory, bool refuses) {
    unsigned char *from = memory(), *back = memory();
    for (int direct = 0; direct < 2; direct++) EACH(o, offsets) EACH(l, lengths) EACH(m, memories) {
            if (!worth_it(o, l, m)) continue;
            int64_t bytes = tsr_min(lengths[l], FILE_BYTES - 1 - offsets[o]);
            tsr_raw_bounce bounce = {0};
            tsr_raw_file raw;
            int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
            memset(from, 0xee, ROOM);
            CHECK(fd >= 0 && pwrite(fd, from, FILE_BYTES, 0) == FILE_BYTES, "cannot prepare '%s'", name);
            CHECK_OK(tsr_raw_open(name, true, false, 0, FILE_BYTES, &raw));
            memset(from, 0x55, ROOM); /* what lies around in memory is not what lies around in the file */
            for (int64_t i = 0; i < bytes; i++) from[memories[m] + i] = pattern(offsets[o] + i);
            CHECK_OK(tsr_raw_write(&raw, from + memories[m], (size_t)bytes, offsets[o], direct == 1, &bounce));
            if (in_memory) CHECK(raw.direct_fd == -1 && raw.mapped == populates(), "mapped: %d", (int)raw.mapped);
            if (raw.mapped)
                CHECK(mapped_kib(name) * 1024 >= bytes, "%ld KiB mapped for %lld bytes", mapped_kib(name),
                      (long long)bytes);
            tsr_raw_start_writing(&raw, offsets[o], bytes);
            if (raw.mapped) CHECK(mapped_kib(name) == 0, "%ld KiB stay mapped", mapped_kib(name));
            /* once a length: the page cache and what went around it agree anyway */
            if (o == 0 && (o + l) % 4 == m) CHECK_OK(tsr_raw_sync(&raw));
            CHECK(!raw.refused || refuses, "O_DIRECT was refused");
            back[0] = 0xee;
            CHECK(pread(fd, back + 1, FILE_BYTES, 0) == FILE_BYTES, "the file has another size");
            check_bytes(back + 1 + offsets[o], offsets[o], bytes, "writing");
            tsr_raw_done(&bounce);
            tsr_raw_close(&raw);
            close(fd);
        }
    free(from);
    free(back);
}

/* Not every file can be opened with O_DIRECT, and where it can, it may still be refused on the way. */
static void test_refused(void) {
    const char *name = in_scratch("refused");
    unsigned char *to = memory(), start[64];
    tsr_raw_bounce bounce = {0};
    tsr_raw_file raw;
    int fd = open("/proc/version", O_RDONLY);
    CHECK(fd >= 0 && pread(fd, start, sizeof start, 0) == sizeof start, "/proc/version");
    close(fd);
    CHECK_OK(tsr_raw_open("/proc/version", false, false, 0, 1 << 20, &raw));
    CHECK(raw.direct_fd == -1 && !raw.map, "/proc takes O_DIRECT");
    CHECK_OK(tsr_raw_read(&raw, to, sizeof start, 0, &bounce));
    CHECK(memcmp(to, start, sizeof start) == 0, "another version");
    CHECK_FAILS(tsr_raw_read(&raw, to, 1 << 20, 0, &bounce), TSR_ERR_IO, "cut short");
    tsr_raw_close(&raw);

    make_file(name);
    CHECK_OK(tsr_raw_open(name, true, false, 0, FILE_BYTES, &raw));
    if (raw.direct_fd >= 0) {
        close(raw.direct_fd);
        raw.direct_fd = open(name, O_WRONLY);
        bool dropped = drop_cache(&raw);
        memset(to, 0xee, ROOM);
        CHECK_OK(tsr_raw_read(&raw, to + 1, FILE_BYTES, 0, &bounce));
        check_bytes(to + 1, 0, FILE_BYTES, "reading after a refusal");
        CHECK(raw.refused == dropped, "refused: %d", (int)raw.refused);
        close(raw.direct_fd);
        raw.direct_fd = open(name, O_RDONLY);
        raw.refused = false;
        for (int64_t i = 0; i < FILE_BYTES; i++) to[i] = pattern(i + 1);
        CHECK_OK(tsr_raw_write(&raw, to, FILE_BYTES, 0, true, &bounce));
        CHECK(raw.refused, "a file open for reading was written");
        CHECK_OK(tsr_raw_read(&raw, to + 1, 1 << 20, 0, &bounce));
        CHECK(to[1] == pattern(1) && to[1 << 20] == pattern(1 << 20), "writing after a refusal");
    }
    tsr_raw_done(&bounce);
    tsr_raw_close(&raw);
    CHECK_FAILS(tsr_raw_open(in_scratch("nowhere"), false, false, 0, 1, &raw), TSR_ERR_NOT_FOUND, "No such file");
    free(to);
}

/* Rows of a rectangle that are no whole row of the file, through a store: what they are is there, and their pages do
 * not stay. */
static void test_store_in_memory(const char *name) {
    enum { ROWS = 300, COLS = 1000, WIDTH = 333 }; /* of 4 bytes */
    tsr_store_desc desc = {.rows = ROWS,
                           .cols = COLS,
                           .dataset_rows = ROWS,
                           .dataset_cols = COLS,
                           .element = {TSR_F32, false},
                           .offset = 2048};
    snprintf(desc.name.file, sizeof desc.name.file, "%s", name);
    float *from = malloc(sizeof(float) * ROWS * WIDTH), back = 0;
    for (int64_t i = 0; i < ROWS * WIDTH; i++) from[i] = (float)i;
    tsr_store *store;
    CHECK_OK(tsr_direct_open(&desc, true, &store));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 500, ROWS, WIDTH}, from, WIDTH));
    if (populates()) CHECK(mapped_kib(name) == 0, "%ld KiB stay mapped", mapped_kib(name));
    for (int64_t row = 0; row < ROWS; row += 13) {
        CHECK_OK(store->ops->read(store, (tsr_rect){row, 500 + WIDTH - 1, 1, 1}, &back, 1));
        CHECK(back == from[row * WIDTH + WIDTH - 1], "row %lld ends with %g", (long long)row, (double)back);
    }
    tsr_store_close(store);
    free(from);
}

/* Memory-backed files are read where they are, and written through a mapping; a file that is kept in the cache is
 * read from there. */
static void test_not_wanted(void) {
    tsr_raw_file raw;
    char shared[] = "/dev/shm/tessera-test-XXXXXX";
    int fd = mkstemp(shared);
    if (fd >= 0) {
        CHECK(ftruncate(fd, FILE_BYTES) == 0, "ftruncate");
        CHECK(tsr_raw_in_memory(fd) && !tsr_raw_on_disk(shared), "a memory-backed file on a disk");
        CHECK_OK(tsr_raw_open(shared, false, false, 0, FILE_BYTES, &raw));
        CHECK(raw.direct_fd == -1 && !raw.map, "a memory-backed file is opened with O_DIRECT, or mapped");
        tsr_raw_close(&raw);
        test_writing(shared, true, false);
        test_store_in_memory(shared);
        close(fd);
        unlink(shared);
    }
    CHECK_OK(tsr_raw_open(in_scratch("read"), false, true, 0, FILE_BYTES, &raw));
    CHECK(raw.direct_fd == -1, "a file to keep is opened with O_DIRECT");
    tsr_raw_close(&raw);
}

static void test_on_disk(void) {
    CHECK(tsr_raw_on_disk("/proc"), "a file system other than tmpfs is memory");
    CHECK(!tsr_raw_on_disk("/nowhere/at/all"), "what is not there is on a disk");
}

static void test_cut_short(void) {
    const char *name = in_scratch("cut");
    unsigned char *to = memory();
    tsr_raw_bounce bounce = {0};
    tsr_raw_file raw;
    for (int64_t length = 0; length <= 1 << 20; length += (1 << 19) + 100) {
        make_file(name);
        CHECK_OK(tsr_raw_open(name, false, false, 0, FILE_BYTES, &raw));
        CHECK(truncate(name, length) == 0, "truncate");
        drop_cache(&raw);
        CHECK_FAILS(tsr_raw_read(&raw, to, FILE_BYTES, 0, &bounce), TSR_ERR_IO, "cut short");
        char ends[64];
        snprintf(ends, sizeof ends, "ends at byte %lld", (long long)length);
        CHECK(strstr(tsr_message(), ends), "%s", tsr_message());
        tsr_raw_close(&raw);
    }
    tsr_raw_done(&bounce);
    free(to);
}

/* Panels of columns through a store: the same bytes at each width, and the columns that follow are asked for. */
static void test_columns(void) {
    enum { ROWS = 50, COLS = 8000 }; /* of 8 bytes */
    tsr_store_desc desc = {.rows = ROWS,
                           .cols = COLS,
                           .dataset_rows = ROWS,
                           .dataset_cols = COLS,
                           .element = {TSR_F64, false},
                           .offset = 2048};
    snprintf(desc.name.file, sizeof desc.name.file, "%s", in_scratch("read"));
    unsigned char *to = memory();
    static const int64_t widths[] = {1, 700, COLS / 2 + 1, COLS - 1, COLS};
    tsr_raw_file raw;
    CHECK_OK(tsr_raw_open(desc.name.file, false, false, 0, FILE_BYTES, &raw));
    for (int64_t ahead = 0; ahead <= 1 << 20; ahead += 1 << 19) EACH(w, widths) {
            tsr_store *store;
            desc.row_ahead_bytes = ahead;
            CHECK_OK(tsr_direct_open(&desc, false, &store));
            bool dropped = drop_cache(&raw);
            for (int64_t col = 0; col < COLS && (widths[w] > 1 || col < 3); col += widths[w]) {
                tsr_rect rect = {1, col, ROWS - 2, tsr_min(widths[w], COLS - col)};
                CHECK_OK(store->ops->read(store, rect, to, rect.cols));
                for (int64_t i = 0; i < rect.rows; i++)
                    for (int64_t b = 0; b < rect.cols * 8; b++)
                        CHECK(to[i * rect.cols * 8 + b] == pattern(2048 + ((i + 1) * COLS + col) * 8 + b),
                              "row %lld of %lld columns", (long long)i, (long long)rect.cols);
                struct timespec moment = {0, 10 * 1000 * 1000};
                for (int tries = 0;
                     dropped && ahead && widths[w] == 700 && !tsr_raw_cached(&raw, 2048 + COLS * 8, COLS * 8);
                     tries++) {
                    CHECK(tries < 1000, "the columns that follow do not come");
                    nanosleep(&moment, NULL);
                }
            }
            tsr_store_close(store);
        }
    tsr_raw_close(&raw);
    free(to);
}

int main(void) {
    scratch_make();
    bool refuses = refuses_later();
    test_reading(refuses);
    test_writing(in_scratch("written"), false, refuses);
    test_refused();
    test_not_wanted();
    test_on_disk();
    test_cut_short();
    test_columns();
    scratch_remove();
    return 0;
}
