/* The forms of a matrix name, slices, and what is wrong with bad ones. */
#define _GNU_SOURCE
#include "io/name.h"

#include "tests/io/scratch.h"

static void expect(const char *text, const char *file, const char *path) {
    tsr_matrix_name name;
    CHECK_OK(tsr_matrix_name_parse(text, &name));
    CHECK(strcmp(name.file, file) == 0, "'%s': file '%s'", text, name.file);
    CHECK(strcmp(name.path, path) == 0, "'%s': path '%s'", text, name.path);
    CHECK(!name.sliced && name.row0 == -1 && name.row1 == -1 && name.col0 == -1 && name.col1 == -1, "'%s' has a slice", text);
}

static void expect_slice(const char *text, const char *path, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    tsr_matrix_name name;
    CHECK_OK(tsr_matrix_name_parse(text, &name));
    CHECK(strcmp(name.file, "x.h5") == 0 && strcmp(name.path, path) == 0, "'%s': '%s' '%s'", text, name.file, name.path);
    CHECK(name.sliced && name.row0 == r0 && name.row1 == r1 && name.col0 == c0 && name.col1 == c1, "'%s': %lld:%lld,%lld:%lld", text,
          (long long)name.row0, (long long)name.row1, (long long)name.col0, (long long)name.col1);
}

static void refuse(const char *text, const char *what) {
    tsr_matrix_name name;
    memset(&name, 7, sizeof name);
    CHECK_FAILS(tsr_matrix_name_parse(text, &name), TSR_ERR_USAGE, what);
    CHECK(name.file[0] == 7, "'%s' set the output", text);
}

static void test_forms(void) {
    expect("x.h5", "x.h5", "");
    expect("dir/sub/x.h5", "dir/sub/x.h5", "");
    expect("x.h5:/", "x.h5", "");
    expect("x.h5:/A", "x.h5", "/A");
    expect("x.h5::/A", "x.h5", "/A");
    expect("/abs/x.h5:/g/h/A", "/abs/x.h5", "/g/h/A");
    expect("x.h5:/g//h/./A/", "x.h5", "/g/h/A");
    expect("x.h5/A", "x.h5", "/A");
    expect("dir/x.mat/A", "dir/x.mat", "/A");
    expect("./x.nc/g/A", "./x.nc", "/g/A");
    expect("no-ending", "no-ending", "");
    expect("x.h5:/A b", "x.h5", "/A b");
    expect("x.h5:/A:/B", "x.h5", "/A:/B");
    expect("a:b.h5", "a:b.h5", "");
}

/* What is on disk decides where the file ends. */
static void test_on_disk(void) {
    char text[700];
    scratch_make();
    FILE *made = fopen(in_scratch("data"), "w");
    CHECK(made, "cannot make a file");
    fclose(made);
    snprintf(text, sizeof text, "%s/g/A", in_scratch("data"));
    expect(text, in_scratch("data"), "/g/A");
    CHECK(mkdir(in_scratch("folder.h5"), 0777) == 0, "mkdir");
    made = fopen(in_scratch("folder.h5/y.h5"), "w");
    CHECK(made, "cannot make a file");
    fclose(made);
    snprintf(text, sizeof text, "%s/A", in_scratch("folder.h5/y.h5"));
    expect(text, in_scratch("folder.h5/y.h5"), "/A");
    snprintf(text, sizeof text, "%s:A", in_scratch("data"));
    refuse(text, "must begin with '/'");
    made = fopen(in_scratch("odd[1:2,3:4]"), "w");
    CHECK(made, "cannot make a file");
    fclose(made);
    expect(in_scratch("odd[1:2,3:4]"), in_scratch("odd[1:2,3:4]"), "");
    scratch_remove();
}

static void test_slices(void) {
    expect_slice("x.h5[0:10,2:3]", "", 0, 10, 2, 3);
    expect_slice("x.h5:/A[0:10,2:3]", "/A", 0, 10, 2, 3);
    expect_slice("x.h5/A[:,:]", "/A", -1, -1, -1, -1);
    expect_slice("x.h5::/A[5:,:7]", "/A", 5, -1, -1, 7);
    expect_slice("x.h5:/A[3:3,0:0]", "/A", 3, 3, 0, 0);
    expect_slice("x.h5:/A[0:9223372036854775807,:]", "/A", 0, INT64_MAX, -1, -1);
}

static void test_bad(void) {
    static const char *const slices[] = {"x.h5:/A[]", "x.h5:/A[1,2]", "x.h5:/A[1:2]", "x.h5:/A[1:2,3:4,5:6]", "x.h5:/A[-1:2,3:4]",
                                         "x.h5:/A[2:1,3:4]", "x.h5:/A[1:2,4:3]", "x.h5:/A[a:b,c:d]", "x.h5:/A[1:2, 3:4]",
                                         "x.h5:/A[0:9223372036854775808,:]", "x.h5:/A]"};
    for (size_t i = 0; i + 1 < sizeof slices / sizeof *slices; i++) refuse(slices[i], "cannot read the slice");
    expect("x.h5:/A]", "x.h5", "/A]");
    refuse("", "file's name is missing");
    refuse(":/A", "file's name is missing");
    refuse("[0:1,0:1]", "file's name is missing");
    refuse("x.h5:A", "must begin with '/'");
    refuse("x.h5:", "must begin with '/'");
    refuse("x.h5::", "must begin with '/'");
    char lengthy[3000];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    refuse(lengthy, "too long");
    lengthy[1200] = '\0';
    refuse(lengthy, "use a shorter path");
    memcpy(lengthy, "x.h5:/", 6);
    lengthy[700] = '\0';
    refuse(lengthy, "longer than");
}

int main(void) {
    test_forms();
    test_on_disk();
    test_slices();
    test_bad();
    return 0;
}
