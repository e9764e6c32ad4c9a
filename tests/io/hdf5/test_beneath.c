/* Which files lie below a folder: names are followed first, and an open file counts by where it lies itself. */
#define _GNU_SOURCE /* nftw */
#include <fcntl.h>
#include <sys/stat.h>

#include "io/hdf5/external/beneath.h"
#include "tests/io/scratch.h"

static char root[TSR_FILE_CHARS];

static void make_file(const char *name) {
    FILE *file = fopen(in_scratch(name), "w");
    CHECK(file && fclose(file) == 0, "cannot make '%s'", name);
}

static void make_link(const char *to, const char *name) {
    CHECK(symlink(to, in_scratch(name)) == 0, "cannot make the link '%s'", name);
}

static void make_all(void) {
    static const char *const folders[] = {"data", "data/deep", "data2"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        CHECK(mkdir(in_scratch(folders[i]), 0700) == 0, "cannot make '%s'", folders[i]);
    static const char *const files[] = {"data/a", "data/deep/b", "data2/a", "out"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) make_file(files[i]);
    make_link("../out", "data/to_out");
    make_link("deep/b", "data/to_b");
    make_link("..", "data/up");
    make_link("data", "again");
    make_link("nothing", "data/dangling");
    CHECK(mkfifo(in_scratch("data/pipe"), 0600) == 0, "cannot make a pipe");
}

static void test_root(void) {
    char other[TSR_FILE_CHARS];
    CHECK_OK(tsr_beneath_root("", in_scratch("data/a"), root));
    CHECK_OK(tsr_beneath_root(in_scratch("data"), "anything", other));
    CHECK(strcmp(root, other) == 0, "'%s' is not '%s'", root, other);
    CHECK_OK(tsr_beneath_root(in_scratch("again/"), "anything", other));
    CHECK(strcmp(root, other) == 0, "'%s' is not '%s'", root, other);
    CHECK_OK(tsr_beneath_root("", in_scratch("data/to_b"), other)); /* of the file itself */
    CHECK(strlen(other) == strlen(root) + 5 && strcmp(other + strlen(root), "/deep") == 0, "'%s'", other);
    CHECK_OK(tsr_beneath_root("", "/etc", other));
    CHECK(strcmp(other, "/") == 0, "'%s'", other);
    CHECK_FAILS(tsr_beneath_root(in_scratch("nowhere"), "anything", other), TSR_ERR_NOT_FOUND, "nowhere");
    CHECK_FAILS(tsr_beneath_root("", in_scratch("data/nothing"), other), TSR_ERR_NOT_FOUND, "nothing");
}

static void test_paths(void) {
    static const char *const below[] = {"data/a",  "data/deep/b",     "data/to_b",
                                        "again/a", "data2/../data/a", "data/up/data/a"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) CHECK_OK(tsr_beneath_path(root, in_scratch(below[i])));
    static const char *const outside[] = {"out", "data/to_out", "data2/a", "data/../out", "data/up/out"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        CHECK_FAILS(tsr_beneath_path(root, in_scratch(outside[i])), TSR_ERR_FORMAT, "lies outside of");
        CHECK_OK(tsr_beneath_path("/", in_scratch(outside[i])));
    }
    CHECK_FAILS(tsr_beneath_path(root, in_scratch("data")), TSR_ERR_FORMAT, "lies outside of"); /* not below itself */
    CHECK_FAILS(tsr_beneath_path(root, in_scratch("data/deep")), TSR_ERR_FORMAT, "is not a regular file");
    CHECK_FAILS(tsr_beneath_path(root, in_scratch("data/pipe")), TSR_ERR_FORMAT, "is not a regular file");
    CHECK_FAILS(tsr_beneath_path(root, in_scratch("data/none")), TSR_ERR_NOT_FOUND, "none");
    CHECK_FAILS(tsr_beneath_path(root, in_scratch("data/dangling")), TSR_ERR_NOT_FOUND, "dangling");
}

/* A link that leads elsewhere after it was looked at: what was opened is what counts. */
static void test_swapped(void) {
    make_link("a", "data/swapped");
    CHECK_OK(tsr_beneath_path(root, in_scratch("data/swapped")));
    int good = open(in_scratch("data/swapped"), O_RDONLY);
    make_link("../out", "data/next");
    CHECK(rename(in_scratch("data/next"), in_scratch("data/swapped")) == 0, "cannot rename");
    int bad = open(in_scratch("data/swapped"), O_RDONLY);
    CHECK(good >= 0 && bad >= 0, "cannot open");
    CHECK_OK(tsr_beneath_open(root, "swapped", good));
    CHECK_FAILS(tsr_beneath_open(root, "swapped", bad), TSR_ERR_FORMAT, "'swapped' lies outside of");
    close(good);
    close(bad);
    CHECK_FAILS(tsr_beneath_open(root, "swapped", bad), TSR_ERR_IO, "cannot tell where");
}

int main(void) {
    scratch_make();
    make_all();
    test_root();
    test_paths();
    test_swapped();
    scratch_remove();
    return 0;
}
