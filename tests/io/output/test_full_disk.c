/* A full and a read-only output folder, on a small file system of the test's own in a mount namespace nobody else sees.
 * Skipped (77) where namespaces or mounts are not allowed. */
#define _GNU_SOURCE
#include "io/output/output_chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "io/files/raw_file.h"
#include "io/stores.h"
#include "tests/io/chunks/chunked.h"
#include "tests/io/chunks/mapped.h"

static bool mount_small(void) {
    int flags = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
    return unshare(flags) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", scratch, "tmpfs", 0, "size=4m") == 0;
}

static tsr_output_spec spec_of(const char *path, int64_t rows, bool force) {
    tsr_output_spec spec = {.rows = rows, .cols = 1024, .dtype = TSR_F32, .force = force};
    char text[700];
    snprintf(text, sizeof text, "%s:%s", in_scratch("c.h5"), path);
    CHECK_OK(tsr_matrix_name_parse(text, &spec.name));
    return spec;
}

static void make(const char *path, int64_t rows) {
    tsr_output_spec spec = spec_of(path, rows, false);
    tsr_output output;
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
}

static void check_kept(const char *before, size_t before_bytes) {
    size_t bytes;
    char *now = slurp(in_scratch("c.h5"), &bytes);
    CHECK(bytes == before_bytes && memcmp(now, before, bytes) == 0, "the target changed");
    free(now);
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* Fills the disk to the last byte. */
static void fill_disk(void) {
    static char zeros[65536];
    int fd = open(in_scratch("filler"), O_WRONLY | O_CREAT | O_APPEND, 0666);
    CHECK(fd >= 0, "filler");
    while (write(fd, zeros, sizeof zeros) > 0) {}
    CHECK(errno == ENOSPC, "the disk did not fill: %s", strerror(errno));
    close(fd);
}

/* Chunked outputs on a disk of 4 MiB with 1 MiB of it taken. Unlike plain ones they may be larger than it, when they
 * compress. */
static void test_chunks(const char *before, size_t bytes) {
    tsr_output output;
    tsr_store *store;
    tsr_output_spec spec = chunked_spec("c.h5", "/C", 1024, 512, 64, 512, PLAIN); /* 4 MiB */
    double *data = chunked_matrix(1024, 512);
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_SPACE, "the disk is too full");
    tsr_status status = TSR_OK;
    if (tsr_filter_gzip.apply) { /* which takes little off these numbers: the disk fills while they are written */
        CHECK_OK(tsr_compress_parse("--compress", "gzip:1", &spec.compress));
        store = begin_output(&spec, TSR_IO_AUTO, &output);
        for (int64_t row = 0; row < 1024 && status == TSR_OK; row += 64)
            status = store->ops->write(store, (tsr_rect){row, 0, 64, 512}, data + row * 512, 512);
        CHECK(status == TSR_ERR_SPACE && strstr(tsr_message(), "free some space") && strstr(tsr_message(), scratch),
              "%s: %s", tsr_status_text(status), tsr_message());
        drop_output(&output, store);
        check_kept(before, bytes);
    }

    /* 2.25 MiB: as encoded chunks they fit once, not twice, and need not */
    spec = chunked_spec("c.h5", "/C", 576, 512, 64, 512, PLAIN);
    store = begin_output(&spec, TSR_IO_AUTO, &output);
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 576, 512}, data, 512));
    CHECK_OK(place_alone(&output, store));
    drop_output(&output, store);
    check_kept(before, bytes);

    /* and where the disk fills before they are placed, placing fails: what a small chunk gives back is no block */
    enum { SMALL = 64 };
    spec = chunked_spec("c.h5", "/C", SMALL, 512, 1, 512, PLAIN);
    store = begin_output(&spec, TSR_IO_AUTO, &output);
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 64, 512}, data, 512));
    tsr_kept_chunk *chunks;
    tsr_chunk_size sizes[SMALL];
    int64_t count, addresses[SMALL];
    CHECK_OK(tsr_chunks_kept(store, &chunks, &count));
    CHECK(count == SMALL, "%lld chunks", (long long)count);
    for (int i = 0; i < SMALL; i++) sizes[i] = chunks[i].size;
    CHECK_OK(tsr_chunks_reserve(&output, sizes, addresses));
    fill_disk();
    CHECK_FAILS(tsr_chunks_place(store, chunks, count, addresses, NULL, NULL), TSR_ERR_SPACE, "free some space");
    drop_output(&output, store);
    CHECK(unlink(in_scratch("filler")) == 0, "unlink");
    check_kept(before, bytes);
    free(chunks);
    free(data);
}

/* A mapping of a file that the disk has no room for fails as a write does, and is no signal; what fits is written. */
static void test_mapping(void) {
    enum { BYTES = 6 << 20 };
    char *data = malloc(BYTES);
    memset(data, 7, BYTES);
    int fd = open(in_scratch("sparse"), O_RDWR | O_CREAT, 0666);
    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0, "sparse");
    tsr_raw_bounce bounce = {0};
    tsr_raw_file raw;
    CHECK_OK(tsr_raw_open(in_scratch("sparse"), true, false, 0, BYTES, &raw));
    CHECK_OK(tsr_raw_write(&raw, data, 1 << 20, 0, true, &bounce));
    CHECK(raw.mapped == populates(), "a memory-backed file is not written through a mapping");
    CHECK_FAILS(tsr_raw_write(&raw, data, BYTES, 0, true, &bounce), TSR_ERR_SPACE, "free some space");
    char back = 0;
    CHECK(pread(fd, &back, 1, (1 << 20) - 1) == 1 && back == 7, "what fits was not written");
    tsr_raw_done(&bounce);
    tsr_raw_close(&raw);
    CHECK(close(fd) == 0 && unlink(in_scratch("sparse")) == 0, "unlink");
    free(data);
}

int main(void) {
    tsr_stores_start(); /* as the program does: HDF5 ends badly at exit after a write that failed */
    signal(SIGXFSZ, SIG_IGN);
    scratch_make();
    if (!mount_small()) {
        rmdir(scratch);
        fprintf(stderr, "skipped: no right to mount a small file system\n");
        return 77;
    }
    size_t bytes;
    tsr_output output;
    make("/C", 256); /* 1 MiB of 4 */
    char *before = slurp(in_scratch("c.h5"), &bytes);

    /* too large for the disk at all: refused by arithmetic */
    tsr_output_spec spec = spec_of("/C", 2048, true);
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_SPACE, "free some space");
    check_kept(before, bytes);

    test_chunks(before, bytes);
    test_mapping();

    /* the copy fits and the dataset alone would fit, not both: refused when bytes are allocated */
    spec = spec_of("/D", 700, false);
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_SPACE, "");
    check_kept(before, bytes);

    /* the disk fills between create and publish: the target survives, whatever publish can still write */
    spec = spec_of("/C", 200, true);
    CHECK_OK(tsr_output_create(&spec, &output));
    fill_disk();
    char command[60000];
    memset(command, 'x', sizeof command - 1);
    command[sizeof command - 1] = '\0';
    CHECK_FAILS(tsr_output_publish(&output, NULL, command), TSR_ERR_SPACE, "");
    check_kept(before, bytes);

    /* full from the beginning (the failed run gave its space back) */
    fill_disk();
    spec = spec_of("/C", 1, true);
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_SPACE, "");
    check_kept(before, bytes);
    CHECK(unlink(in_scratch("filler")) == 0, "unlink");

    CHECK(mount("none", scratch, NULL, MS_REMOUNT | MS_RDONLY | MS_BIND, NULL) == 0 ||
              mount("none", scratch, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0,
          "remount: %s", strerror(errno));
    spec = spec_of("/D", 1, false);
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_IO, "Read-only file system");
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_IO, "choose another folder");
    check_kept(before, bytes);
    free(before);
    umount2(scratch, MNT_DETACH);
    rmdir(scratch);
    return 0;
}
