/* An output's life: appears whole or not at all, whatever happens on the way. */
#define _GNU_SOURCE
#include "io/files/raw_file.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output.h"

#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/io/output/unfinished.h"

static tsr_output_spec spec_of(const char *file, const char *path, int64_t rows, int64_t cols, bool force) {
    tsr_output_spec spec = {.rows = rows, .cols = cols, .dtype = TSR_F32, .force = force};
    char text[700];
    snprintf(text, sizeof text, "%s%s%s", in_scratch(file), path[0] ? ":" : "", path);
    CHECK_OK(tsr_matrix_name_parse(text, &spec.name));
    return spec;
}

/* A whole run whose every element is `value`. */
static void run(const char *file, const char *path, int64_t rows, int64_t cols, bool force, float value) {
    tsr_output_spec spec = spec_of(file, path, rows, cols, force);
    tsr_output output;
    CHECK_OK(tsr_output_check(&spec, NULL));
    tsr_store *store = begin_output(&spec, TSR_IO_AUTO, &output);
    float *data = malloc((size_t)(rows * cols + 1) * sizeof *data);
    for (int64_t i = 0; i < rows * cols; i++) data[i] = value;
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, rows, cols}, data, cols));
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    CHECK_OK(tsr_output_publish(&output, NULL, "test command"));
    free(data);
}

/* The dataset's last element; its shape must be rows × cols. */
static float last_element(const char *file, const char *path, int64_t rows, int64_t cols) {
    tsr_output_spec spec = spec_of(file, path, rows, cols, false);
    tsr_store_desc desc;
    tsr_store *store;
    float value = -1;
    CHECK_OK(tsr_hdf5_describe(&spec.name, &desc));
    CHECK(desc.rows == rows && desc.cols == cols, "%s is %lldx%lld", path, (long long)desc.rows, (long long)desc.cols);
    CHECK(desc.hdf5.layout == TSR_LAYOUT_CONTIGUOUS && desc.offset >= 0, "%s cannot be read directly", path);
    CHECK_OK(tsr_store_open(&desc, TSR_IO_DIRECT, NULL, NULL, &store));
    if (rows * cols > 0) CHECK_OK(store->ops->read(store, (tsr_rect){rows - 1, cols - 1, 1, 1}, &value, 1));
    tsr_store_close(store);
    return value;
}

static void test_life(void) {
    run("c.h5", "", 5, 7, false, 1);
    CHECK(last_element("c.h5", "", 5, 7) == 1, "wrong data");
    CHECK(last_element("c.h5", "/C", 5, 7) == 1, "the default path is not /C");
    tsr_output output;
    tsr_output_spec spec = spec_of("c.h5", "", 2, 2, false);
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_EXISTS, "--force");
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_EXISTS, "--force");
    run("c.h5", "", 2, 3, true, 2);
    CHECK(last_element("c.h5", "", 2, 3) == 2, "not replaced");
    run("c.h5", "/deep/er/D", 300, 1000, false, 3);
    CHECK(last_element("c.h5", "/C", 2, 3) == 2, "the other dataset is lost");
    CHECK(last_element("c.h5", "/deep/er/D", 300, 1000) == 3, "wrong data");
    run("c.h5", "/deep/er/D", 4, 4, true, 4);
    CHECK(last_element("c.h5", "/C", 2, 3) == 2 && last_element("c.h5", "/deep/er/D", 4, 4) == 4,
          "replacing in a shared file");
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* Whether its bytes go to a disk, which wants larger pieces. */
static void test_on_disk(void) {
    char name[100];
    const char *const folders[] = {"/dev/shm", scratch};
    for (int i = 0; i < 2; i++) {
        tsr_output_spec spec = {.rows = 3, .cols = 4, .dtype = TSR_F32};
        tsr_output output;
        snprintf(name, sizeof name, "%s/tessera-%d.h5", folders[i], (int)getpid());
        CHECK_OK(tsr_matrix_name_parse(name, &spec.name));
        CHECK_OK(tsr_output_create(&spec, &output));
        CHECK(output.desc.on_disk == tsr_raw_on_disk(folders[i]), "%s: on a disk: %d", name, output.desc.on_disk);
        tsr_output_discard(&output);
        close(output.lock_fd);
    }
    CHECK(!tsr_raw_on_disk("/dev/shm"), "both are on a disk");
}

static void test_shapes(void) {
    run("z.h5", "/a", 0, 5, false, 0);
    run("z.h5", "/b", 5, 0, false, 0);
    run("z.h5", "/c", 0, 0, false, 0);
    run("z.h5", "/d", 1, 1, false, 6);
    CHECK(last_element("z.h5", "/a", 0, 5) == -1 && last_element("z.h5", "/b", 5, 0) == -1 &&
              last_element("z.h5", "/c", 0, 0) == -1,
          "empty ones");
    CHECK(last_element("z.h5", "/d", 1, 1) == 6, "1x1");
    tsr_output_spec spec = spec_of("big.h5", "", 1024, 512, false);
    tsr_output output;
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK(output.desc.offset % (1 << 20) == 0, "2 MB dataset at byte %lld", (long long)output.desc.offset);
    struct stat st;
    CHECK(stat(output.desc.name.file, &st) == 0 && st.st_size >= output.desc.offset + (2 << 20), "not full length");
    CHECK(st.st_blocks * 512 >= 2 << 20, "not allocated: %lld blocks", (long long)st.st_blocks);
    drop_output(&output, NULL);
    CHECK(access(in_scratch("big.h5"), F_OK) != 0 && access(output.desc.name.file, F_OK) != 0, "something is left");
    spec.rows = -1;
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_SHAPE, "negative");
    spec.rows = INT64_MAX;
    CHECK(tsr_output_check(&spec, NULL) == TSR_ERR_LIMIT, "2^63 rows passed");
}

/* Before publish the file cannot be taken for a result. */
static void test_incomplete(void) {
    tsr_output_spec spec = spec_of("i.h5", "", 2, 2, false);
    tsr_output output;
    tsr_store_desc desc;
    CHECK_OK(tsr_output_create(&spec, &output));
    tsr_matrix_name name = {.sliced = false};
    snprintf(name.file, sizeof name.file, "%s", output.desc.name.file);
    CHECK_FAILS(tsr_hdf5_describe(&name, &desc), TSR_ERR_FORMAT, "incomplete");
    tsr_output other;
    CHECK_FAILS(tsr_output_create(&spec, &other), TSR_ERR_EXISTS, "another run is writing");
    CHECK(access(output.desc.name.file, F_OK) == 0, "the living run's file was removed");
    drop_output(&output, NULL);
}

/* A run killed between create and publish. */
static void write_row(const tsr_output_spec *spec) {
    tsr_output output;
    tsr_store *store = begin_output(spec, TSR_IO_DIRECT, &output);
    const float data[100] = {9};
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 1, 100}, data, 100));
}
static void kill_run(const char *file, const char *path, bool force) {
    const tsr_output_spec spec = spec_of(file, path, 100, 100, force);
    kill_after(write_row, &spec);
}

static void test_killed(void) {
    run("k.h5", "/C", 3, 3, false, 1);
    size_t before_bytes, after_bytes;
    char *before = slurp(in_scratch("k.h5"), &before_bytes);
    kill_run("k.h5", "/C", true);
    kill_run("k.h5", "/D", false);
    char *after = slurp(in_scratch("k.h5"), &after_bytes);
    CHECK(before_bytes == after_bytes && memcmp(before, after, before_bytes) == 0, "a killed run changed the target");
    CHECK(count_ending(scratch, ".tmp") == 1, "%d temporary files: the second run should have removed the first's",
          count_ending(scratch, ".tmp"));
    kill_run("new.h5", "/C", false);
    CHECK(access(in_scratch("new.h5"), F_OK) != 0, "a killed run made its target");
    run("new.h5", "/C", 2, 2, false, 5);
    run("k.h5", "/D", 2, 2, false, 5);
    CHECK(count_ending(scratch, ".tmp") == 0, "what killed runs left is still there");
    CHECK(last_element("k.h5", "/C", 3, 3) == 1 && last_element("k.h5", "/D", 2, 2) == 5, "wrong data");
    free(before);
    free(after);
}

static void put_text(const char *file, const char *text) {
    FILE *to = fopen(file, "w");
    CHECK(to && fputs(text, to) >= 0 && fclose(to) == 0, "cannot make '%s'", file);
}

static void refuse(const char *file, const char *path, bool force, tsr_status status, const char *text) {
    tsr_output_spec spec = spec_of(file, path, 2, 2, force);
    tsr_output output;
    CHECK_FAILS(tsr_output_check(&spec, NULL), status, text);
    CHECK_FAILS(tsr_output_create(&spec, &output), status, text);
}

static void test_refusals(void) {
    size_t bytes;
    put_text(in_scratch("notes.txt"), "keep me");
    refuse("notes.txt", "/C", true, TSR_ERR_FORMAT, "not an HDF5 file");
    char *kept = slurp(in_scratch("notes.txt"), &bytes);
    CHECK(strcmp(kept, "keep me") == 0, "the file was changed");
    free(kept);
    refuse("missing/c.h5", "", false, TSR_ERR_NOT_FOUND, "mkdir -p");
    refuse("notes.txt/c.h5", "/C", false, TSR_ERR_NOT_FOUND, "folder");
    CHECK(mkdir(in_scratch("folder.h5"), 0777) == 0, "mkdir");
    refuse("folder.h5", "", true, TSR_ERR_FORMAT, "folder.h5' is a folder: name a file in it");
    CHECK(mkfifo(in_scratch("pipe.h5"), 0600) == 0, "mkfifo");
    refuse("pipe.h5", "", true, TSR_ERR_FORMAT, "is a pipe, and matrices are written to regular files");
    CHECK(symlink("/dev/null", in_scratch("null.h5")) == 0, "symlink");
    refuse("null.h5", "", true, TSR_ERR_FORMAT, "'/dev/null' is a device");
    CHECK(symlink("circle.h5", in_scratch("circle.h5")) == 0, "symlink");
    refuse("circle.h5", "", false, TSR_ERR_NOT_FOUND, "circle.h5' is a symbolic link that leads in a circle");
    run("r.h5", "/g/C", 2, 2, false, 1);
    refuse("r.h5", "/g", true, TSR_ERR_EXISTS, "not a dataset");
    refuse("r.h5", "/g/C/D", true, TSR_ERR_EXISTS, "not a group");
    CHECK(symlink("nowhere.h5", in_scratch("dangling.h5")) == 0, "symlink");
    refuse("dangling.h5", "", false, TSR_ERR_NOT_FOUND, "symbolic link");
    tsr_output_spec spec = spec_of("s.h5", "", 2, 2, false);
    snprintf(spec.name.slice, sizeof spec.name.slice, "[0:1,:]");
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_USAGE, "slice");
    CHECK(count_ending(scratch, ".tmp") == 0, "a refusal left a temporary file");
}

/* A dataset that is read, under every name it has here and from another file. */
static void test_sources(void) {
    run("o.h5", "/g/A", 2, 2, false, 7);
    run("l.h5", "/D", 2, 2, false, 8);
    hid_t file = H5Fopen(in_scratch("o.h5"), H5F_ACC_RDWR, H5P_DEFAULT),
          other = H5Fopen(in_scratch("l.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    CHECK(H5Lcreate_hard(file, "/g/A", file, "/hard", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
              H5Lcreate_soft("/g", file, "/soft", H5P_DEFAULT, H5P_DEFAULT) >= 0,
          "links");
    CHECK(H5Lcreate_hard(file, "/g", file, "/X.run", H5P_DEFAULT, H5P_DEFAULT) >= 0, "a group under another name");
    CHECK(H5Lcreate_external("o.h5", "soft/A", other, "/out", H5P_DEFAULT, H5P_DEFAULT) >= 0, "external link");
    CHECK(H5Fclose(file) >= 0 && H5Fclose(other) >= 0, "close");
    static const struct {
        const char *file, *path;
    } targets[] = {{"o.h5", "/g/A"},  {"o.h5", "/hard"}, {"o.h5", "/soft/A"},
                   {"o.h5", "/soft"}, {"o.h5", "/X"},    {"l.h5", "/out"}};
    tsr_matrix_name asked = spec_of("o.h5", "/soft/A", 2, 2, false).name,
                    found = spec_of("o.h5", "/g/A", 2, 2, false).name;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        tsr_output_spec spec = spec_of(targets[i].file, targets[i].path, 2, 2, true);
        spec.sources[spec.source_count++] = (tsr_output_source){"A", &asked, &found, false, false, NULL};
        CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_USAGE, "would replace A ");
        spec.sources[0].replaceable = true; /* the dataset is, groups on the way to it are not */
        bool dataset = strcmp(targets[i].path, "/soft") != 0 && strcmp(targets[i].path, "/X") != 0;
        if (dataset) CHECK_OK(tsr_output_check(&spec, NULL));
        else CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_USAGE, "would replace A ");
        spec.sources[0].part = true;
        if (dataset) CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_USAGE, "the rest would be lost");
    }
    tsr_output_spec spec = spec_of("o.h5", "", 2, 2, true);
    spec.sources[spec.source_count++] = (tsr_output_source){"A", &asked, &found, true, false, NULL};
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_USAGE, "no dataset was named");
    snprintf(spec.name.path, sizeof spec.name.path, "/C");
    CHECK_OK(tsr_output_check(&spec, NULL));
    CHECK(last_element("o.h5", "/g/A", 2, 2) == 7, "a check changed the file");
}

/* The file a symbolic link names is replaced, not the link; permissions stay. */
static void test_link_and_mode(void) {
    struct stat st;
    run("real.h5", "", 2, 2, false, 1);
    CHECK(chmod(in_scratch("real.h5"), 0640) == 0 && symlink("real.h5", in_scratch("link.h5")) == 0, "set-up");
    run("link.h5", "", 3, 3, true, 2);
    CHECK(lstat(in_scratch("link.h5"), &st) == 0 && S_ISLNK(st.st_mode), "the link was replaced");
    CHECK(stat(in_scratch("real.h5"), &st) == 0 && (st.st_mode & 07777) == 0640, "mode %o", st.st_mode & 07777);
    CHECK(last_element("real.h5", "", 3, 3) == 2, "wrong data");
}

/* Another program writes the target while the run works: both results survive. */
static void test_changed_target(void) {
    char file[256]; /* as long as a name may be: those beside it are shorter */
    memset(file, 't', 255);
    file[255] = '\0';
    tsr_output_spec spec = spec_of(file, "/C", 2, 2, false);
    tsr_output output;
    size_t bytes;
    CHECK_OK(tsr_output_create(&spec, &output));
    put_text(in_scratch(file), "someone else's");
    CHECK_FAILS(tsr_output_publish(&output, NULL, "test"), TSR_ERR_EXISTS, "changed by another program");
    char *kept = slurp(in_scratch(file), &bytes);
    CHECK(strcmp(kept, "someone else's") == 0, "the other program's file was replaced");
    free(kept);
    char *name = strstr(tsr_message(), "complete in '");
    CHECK(name != NULL && strchr(name, '\'') != NULL, "%s", tsr_message());
    name += strlen("complete in '") + strlen(scratch) + 1;
    *strchr(name, '\'') = '\0';
    last_element(name, "/C", 2, 2);
}

/* The temporary file goes before publish: an error, and the target as it was. */
static void test_publish_fails(void) {
    run("p.h5", "", 2, 2, false, 1);
    tsr_output_spec spec = spec_of("p.h5", "", 2, 2, true);
    tsr_output output;
    CHECK_OK(tsr_output_create(&spec, &output));
    tsr_output_discard(&output);
    CHECK_FAILS(tsr_output_publish(&output, NULL, "test"), TSR_ERR_IO, "cannot open");
    CHECK(!strstr(tsr_message(), "--io"), "it was through HDF5 in any mode: %s", tsr_message());
    CHECK(last_element("p.h5", "", 2, 2) == 1, "the target changed");
}

static void test_size_limit(void) {
    struct rlimit old, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0, "getrlimit");
    small = old;
    small.rlim_cur = 100000;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0, "setrlimit");
    tsr_output_spec spec = spec_of("limit.h5", "", 1000, 1000, false);
    tsr_output output;
    CHECK_FAILS(tsr_output_create(&spec, &output), TSR_ERR_SPACE, "ulimit -f");
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    spec.rows = (int64_t)1 << 40;
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_SPACE, "free some space");
    CHECK(access(in_scratch("limit.h5"), F_OK) != 0 && count_ending(scratch, ".tmp") == 0, "something is left");
}

int main(void) {
    scratch_make();
    test_life();
    test_on_disk();
    test_shapes();
    test_incomplete();
    test_killed();
    test_refusals();
    test_sources();
    test_link_and_mode();
    test_changed_target();
    test_publish_fails();
    test_size_limit();
    scratch_remove();
    return 0;
}
