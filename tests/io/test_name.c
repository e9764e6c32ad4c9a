/* The forms of a matrix name, slices as numpy reads them, and what is wrong with bad ones. */
#define _GNU_SOURCE
#include "io/name.h"

#include "tests/io/scratch.h"

static void expect_with(const char *text, const char *file, const char *path, const char *slice) {
    tsr_matrix_name name;
    CHECK_OK(tsr_matrix_name_parse(text, &name));
    CHECK(strcmp(name.file, file) == 0, "'%s': file '%s'", text, name.file);
    CHECK(strcmp(name.path, path) == 0, "'%s': path '%s'", text, name.path);
    CHECK(strcmp(name.slice, slice) == 0, "'%s': slice '%s'", text, name.slice);
    CHECK(!name.sliced && !name.columns_first, "'%s': a slice was applied", text);
}

static void expect(const char *text, const char *file, const char *path) { expect_with(text, file, path, ""); }

static void refuse(const char *text, const char *what) {
    tsr_matrix_name name;
    memset(&name, 7, sizeof name);
    CHECK_FAILS(tsr_matrix_name_parse(text, &name), TSR_ERR_USAGE, what);
    CHECK(name.file[0] == 7, "'%s' set the output", text);
}

static void touch(const char *name) {
    FILE *made = fopen(in_scratch(name), "w");
    CHECK(made, "cannot make a file");
    fclose(made);
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
    expect("b.h5/../b.npy", "b.h5/../b.npy", "");
    expect("b.h5/g/../../c.h5/A", "b.h5/g/../../c.h5", "/A");
    expect("b.h5/..", "b.h5/..", "");
    expect("b.h5/..A/B..", "b.h5", "/..A/B..");
    expect("b.h5:/../A", "b.h5", "/../A");
    expect("b.h5:g/../A", "b.h5", "/g/../A");
    expect("./-", "./-", "");
    expect("x.h5:/A]", "x.h5", "/A]");
}

/* A path without its slash. */
static void test_without_slash(void) {
    expect("x.h5:A", "x.h5", "/A");
    expect("x.h5::A", "x.h5", "/A");
    expect("dir/x.hdf5:g/A/", "dir/x.hdf5", "/g/A");
    expect("x.h5:A:B", "x.h5", "/A:B");
    expect("x.h5/A:B", "x.h5", "/A:B");
    expect("a:b/x.h5:A", "a:b/x.h5", "/A");
    expect("host:out", "host:out", ""); /* neither a file nor called like one */
    expect_with("x.h5:A[:10]", "x.h5", "/A", "[:10]");
}

/* What is on disk decides where the file ends. */
static void test_on_disk(void) {
    char text[700];
    scratch_make();
    touch("data");
    snprintf(text, sizeof text, "%s/g/A", in_scratch("data"));
    expect(text, in_scratch("data"), "/g/A");
    CHECK(mkdir(in_scratch("folder.h5"), 0777) == 0, "mkdir");
    touch("folder.h5/y.h5");
    snprintf(text, sizeof text, "%s/A", in_scratch("folder.h5/y.h5"));
    expect(text, in_scratch("folder.h5/y.h5"), "/A");
    snprintf(text, sizeof text, "%s:A", in_scratch("data"));
    expect(text, in_scratch("data"), "/A");
    touch("data:A");
    expect(text, in_scratch("data:A"), "");
    snprintf(text, sizeof text, "%s:", in_scratch("data"));
    refuse(text, "name after ':' is missing");
    touch("g.h5"); /* a file is no folder: what is behind it is a dataset, however it is called */
    snprintf(text, sizeof text, "%s/x.h5", in_scratch("g.h5"));
    expect(text, in_scratch("g.h5"), "/x.h5");
    touch("odd[1:2,3:4]");
    expect(in_scratch("odd[1:2,3:4]"), in_scratch("odd[1:2,3:4]"), "");
    scratch_remove();
}

/* The slice is split off as text, whatever it says: a dataset may be called so. A slash behind it makes it part of
 * the path. */
static void test_slice_text(void) {
    expect_with("x.h5[0:10,2:3]", "x.h5", "", "[0:10,2:3]");
    expect_with("x.h5:/A[ :10 ]", "x.h5", "/A", "[ :10 ]");
    expect_with("x.h5:/A[0]", "x.h5", "/A", "[0]");
    expect_with("x.h5:/A[0][:,1:2]", "x.h5", "/A[0]", "[:,1:2]");
    expect("x.h5:/A[0]/", "x.h5", "/A[0]");
    expect("x.h5:/A[0]/B", "x.h5", "/A[0]/B");
}

static tsr_status slice(const char *text, bool columns_first, int64_t rows, int64_t cols, tsr_matrix_name *name) {
    *name = (tsr_matrix_name){.file = "x.h5", .path = "/A", .columns_first = columns_first};
    snprintf(name->slice, sizeof name->slice, "%s", text);
    return tsr_matrix_name_slice(name, 2, NULL, rows, cols);
}

/* Of 20 rows and 10 columns. */
static void test_slices(void) {
    static const struct {
        const char *text;
        int64_t row0, row1, col0;
        int64_t col1;
    } cases[] = {{"[0:10,2:3]", 0, 10, 2, 3},
                 {"[:,:]", 0, 20, 0, 10},
                 {"[5:,:7]", 5, 20, 0, 7},
                 {"[:10]", 0, 10, 0, 10},
                 {"[-10:, :]", 10, 20, 0, 10},
                 {"[-4:-2,-1:]", 16, 18, 9, 10},
                 {"[ 1 : 3 , 4 : 5 ]", 1, 3, 4, 5},
                 {"[...]", 0, 20, 0, 10},
                 {"[..., 3:4]", 0, 20, 3, 4},
                 {"[2:3, ...]", 2, 3, 0, 10},
                 {"[2:3,...,3:4]", 2, 3, 3, 4},
                 {"[...,2:3,3:4]", 2, 3, 3, 4},
                 {"[2:3,]", 2, 3, 0, 10},
                 {"[::1,0:5:1]", 0, 20, 0, 5},
                 {"[::,::]", 0, 20, 0, 10},
                 {"[+1:+2,:]", 1, 2, 0, 10},
                 {"[0:99,-99:99]", 0, 20, 0, 10},
                 {"[0:9223372036854775807,:]", 0, 20, 0, 10},
                 {"[-9223372036854775808:99999999999999999999]", 0, 20, 0, 10},
                 {"[3:3,0:0]", 3, 3, 0, 0},
                 {"[20:20,-1:-1]", 20, 20, 9, 9}};
    tsr_matrix_name name;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(slice(cases[i].text, false, 20, 10, &name));
        CHECK(name.sliced && !name.slice[0], "'%s' was not applied", cases[i].text);
        CHECK(name.row0 == cases[i].row0 && name.row1 == cases[i].row1 && name.col0 == cases[i].col0 &&
                  name.col1 == cases[i].col1,
              "'%s': %lld:%lld,%lld:%lld", cases[i].text, (long long)name.row0, (long long)name.row1,
              (long long)name.col0, (long long)name.col1);
        CHECK_OK(slice(cases[i].text, true, 10, 20, &name)); /* the transpose is stored */
        CHECK(name.col0 == cases[i].row0 && name.col1 == cases[i].row1 && name.row0 == cases[i].col0 &&
                  name.row1 == cases[i].col1,
              "'%s' of columns: %lld:%lld,%lld:%lld", cases[i].text, (long long)name.row0, (long long)name.row1,
              (long long)name.col0, (long long)name.col1);
    }
    CHECK_OK(slice("", false, 20, 10, &name));
    CHECK(!name.sliced, "no slice was applied");
    CHECK_OK(slice("[5:9,-3:]", false, 0, 10, &name)); /* nothing is there anyway */
    CHECK(name.row0 == 0 && name.row1 == 0 && name.col0 == 7 && name.col1 == 10, "of no rows");
}

static void refuse_slice(const char *text, tsr_status status, const char *what) {
    tsr_matrix_name name;
    tsr_status got = slice(text, false, 20, 10, &name);
    CHECK(got == status && strstr(tsr_message(), what) && strstr(tsr_message(), "x.h5:/A["), "'%s': status %d: %s",
          text, got, tsr_message());
    CHECK(!name.sliced && strcmp(name.slice, text) == 0, "'%s' changed the name", text);
}

static void test_bad_slices(void) {
    static const char *const numbers[][2] = {{"[1,2]", "a single element; write 1:2 for a part of one row"},
                                             {"[-1,-1]", "a single element; write 19:20"},
                                             {"[20]", ": 20 is out of range of the 20 rows"},
                                             {"[-21]", ": -21 is out of range of the 20 rows"},
                                             {"[:,10]", ": 10 is out of range of the 10 columns"},
                                             {"[9223372036854775807]", "is out of range"},
                                             {"[-9223372036854775808]", "is out of range"},
                                             {"[99999999999999999999]", "is out of range"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        refuse_slice(numbers[i][0], TSR_ERR_USAGE, numbers[i][1]);
    static const char *const steps[] = {"[::2]", "[::2,:]", "[:,::-1]", "[0:10:3,:]", "[::0]"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) refuse_slice(steps[i], TSR_ERR_USAGE, "is not 1");
    static const char *const unreadable[] = {"[a:b,c:d]", "[1:2,x]",  "[1;2,:]",   "[1.5:2,:]",
                                             "[1:2:3:4]", "[- 1:2]",  "[,3:4]",    "[1:2,,3:4]",
                                             "[:]]",      "[None,:]", "[1:2 3,:]", "[0x1:2,:]"};
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++)
        refuse_slice(unreadable[i], TSR_ERR_USAGE,
                     strcmp(unreadable[i], "[1:2,,3:4]") == 0 ? "a part for rows and one for columns" : "cannot read");
    static const char *const parts[] = {"[]",          "[ ]",          "[:,:,:]", "[...,...]", "[1:2,3:4,5:6]",
                                        "[:,:,...,:]", "[:,:,:,:,:,:]"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        refuse_slice(parts[i], TSR_ERR_USAGE, "a part for rows and one for columns");
    static const char *const empty[][2] = {{"[2:1,3:4]", "'2:1' selects none of the 20 rows"},
                                           {"[1:2,4:3]", "none of the 10 columns"},
                                           {"[20:,:]", "none of the 20 rows"},
                                           {"[30:40,:]", "none of the 20 rows"},
                                           {"[:-20]", "none of the 20 rows"},
                                           {"[:,-1:-3]", "none of the 10 columns"},
                                           {"[21:21,:]", "none of the 20 rows"},
                                           {"[:0]", "none of the 20 rows"}};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) refuse_slice(empty[i][0], TSR_ERR_SHAPE, empty[i][1]);
}

/* A number drops its dimension, and a vector is left. */
static void test_vectors(void) {
    static const struct {
        const char *text;
        int64_t row0, row1, col0, col1;
        bool row_dropped, col_dropped;
        const char *shown;
    } cases[] = {{"[3]", 3, 4, 0, 10, true, false, "[3,0:10]"},      {"[3, :]", 3, 4, 0, 10, true, false, "[3,0:10]"},
                 {"[-1]", 19, 20, 0, 10, true, false, "[19,0:10]"},  {"[-20,2:4]", 0, 1, 2, 4, true, false, "[0,2:4]"},
                 {"[19]", 19, 20, 0, 10, true, false, "[19,0:10]"},  {"[:,2]", 0, 20, 2, 3, false, true, "[0:20,2]"},
                 {"[...,-10]", 0, 20, 0, 1, false, true, "[0:20,0]"}};
    tsr_matrix_name name;
    char text[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(slice(cases[i].text, false, 20, 10, &name));
        CHECK(name.row0 == cases[i].row0 && name.row1 == cases[i].row1 && name.col0 == cases[i].col0 &&
                  name.col1 == cases[i].col1 && name.row_dropped == cases[i].row_dropped &&
                  name.col_dropped == cases[i].col_dropped,
              "'%s': %lld:%lld,%lld:%lld", cases[i].text, (long long)name.row0, (long long)name.row1,
              (long long)name.col0, (long long)name.col1);
        tsr_matrix_name_text(&name, text, sizeof text);
        CHECK(strcmp(text + strlen("x.h5:/A"), cases[i].shown) == 0, "'%s' is shown as '%s'", cases[i].text, text);
        CHECK_OK(slice(cases[i].text, true, 10, 20, &name)); /* the transpose is stored */
        CHECK(name.col_dropped == cases[i].row_dropped && name.row_dropped == cases[i].col_dropped &&
                  name.col0 == cases[i].row0 && name.row0 == cases[i].col0,
              "'%s' of columns", cases[i].text);
    }
    name = (tsr_matrix_name){.file = "x.h5", .path = "/v", .slice = "[-3:5]", .columns_first = true};
    CHECK_OK(tsr_matrix_name_slice(&name, 1, NULL, 7, 1));
    tsr_matrix_name_text(&name, text, sizeof text);
    CHECK(name.row0 == 4 && name.row1 == 5 && name.col0 == 0 && name.col1 == 1 && strcmp(text, "x.h5:/v[4:5]") == 0,
          "one dimension is shown as '%s'", text);
    static const char *const bad[][2] = {{"[2]", "a single element; write 2:3 for a part of one element"},
                                         {"[0:1,0:1]", "a part for each dimension, and it has 1"},
                                         {"[7]", "7 is out of range of the 7 elements"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        name = (tsr_matrix_name){.file = "x.h5", .path = "/v"};
        snprintf(name.slice, sizeof name.slice, "%s", bad[i][0]);
        CHECK(tsr_matrix_name_slice(&name, 1, NULL, 7, 1) == TSR_ERR_USAGE && strstr(tsr_message(), bad[i][1]),
              "'%s': %s", bad[i][0], tsr_message());
    }
}

/* 3 × 5 matrices of 20 × 10: leads first, or last as who sees the transpose counts. */
static tsr_status slice_of_many(const char *text, bool columns_first, tsr_matrix_name *name) {
    static const int64_t size[] = {3, 5};
    *name = (tsr_matrix_name){.file = "x.h5", .path = "/A", .columns_first = columns_first};
    snprintf(name->slice, sizeof name->slice, "%s", text);
    return tsr_matrix_name_slice(name, 4, size, columns_first ? 10 : 20, columns_first ? 20 : 10);
}

static void test_many_dimensions(void) {
    static const struct {
        const char *text, *columns;             /* the same, leads first and last */
        int64_t lead0[2], lead1[2], row0, row1; /* 0 first */
        bool dropped[2];
        const char *shown, *shown_columns;
    } cases[] = {
        {"[1,2]", "[:,:,2,1]", {1, 2}, {2, 3}, 0, 20, {true, true}, "[1,2,0:20,0:10]", "[0:20,0:10,2,1]"},
        {"[0, 4, 3:7]", "[3:7,...,4,0]", {0, 4}, {1, 5}, 3, 7, {true, true}, "[0,4,3:7,0:10]", "[3:7,0:10,4,0]"},
        {"[-1,-5,:,:]", "[:,:,-5,-1]", {2, 0}, {3, 1}, 0, 20, {true, true}, "[2,0,0:20,0:10]", "[0:20,0:10,0,2]"},
        {"[2,0,-1:,...]", "[-1:,:,0,2]", {2, 0}, {3, 1}, 19, 20, {true, true}, "[2,0,19:20,0:10]", "[19:20,0:10,0,2]"},
        {"[...]", "[...]", {0, 0}, {3, 5}, 0, 20, {false, false}, "[0:3,0:5,0:20,0:10]", "[0:20,0:10,0:5,0:3]"},
        {"[1:,-2]", "[...,-2,1:]", {1, 3}, {3, 4}, 0, 20, {false, true}, "[1:3,3,0:20,0:10]", "[0:20,0:10,3,1:3]"},
        {"[0,1:2]", "[:,:,1:2,0]", {0, 1}, {1, 2}, 0, 20, {true, false}, "[0,1:2,0:20,0:10]", "[0:20,0:10,1:2,0]"}};
    tsr_matrix_name name;
    char text[200];
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const bool columns = i % 2 == 1;
        const char *slice = columns ? cases[i / 2].columns : cases[i / 2].text;
        const char *shown = columns ? cases[i / 2].shown_columns : cases[i / 2].shown;
        CHECK_OK(slice_of_many(slice, columns, &name));
        for (int d = 0; d < 2; d++)
            CHECK(name.lead0[d] == cases[i / 2].lead0[d] && name.lead1[d] == cases[i / 2].lead1[d] &&
                      name.lead_dropped[d] == cases[i / 2].dropped[d],
                  "'%s': %lld:%lld along dimension %d", slice, (long long)name.lead0[d], (long long)name.lead1[d], d);
        CHECK((columns ? name.col0 : name.row0) == cases[i / 2].row0 &&
                  (columns ? name.col1 : name.row1) == cases[i / 2].row1,
              "'%s': other rows", slice);
        tsr_matrix_name_text(&name, text, sizeof text);
        CHECK(strncmp(text, "x.h5:/A", 7) == 0 && strcmp(text + 7, shown) == 0, "'%s' is shown as '%s'", slice, text);
    }
    CHECK_OK(slice_of_many("[0,1,4]", false, &name));
    CHECK(name.row_dropped && name.row0 == 4, "a row of one of the matrices");
    static const struct {
        const char *text;
        tsr_status status;
        const char *says;
    } bad[] = {{"[0,:,1]", TSR_ERR_USAGE, "write 1:2 for matrices of one row"},
               {"[...,3]", TSR_ERR_USAGE, "write 3:4 for matrices of one column"},
               {"[0,0,1,2]", TSR_ERR_USAGE, "a single element"},
               {"[3,0]", TSR_ERR_USAGE, "3 is out of range of the 3 along dimension 1"},
               {"[0,-6]", TSR_ERR_USAGE, "-6 is out of range of the 5 along dimension 2"},
               {"[0,3:2]", TSR_ERR_SHAPE, "'3:2' selects none of the 5 along dimension 2"},
               {"[::2]", TSR_ERR_USAGE, "is not 1"},
               {"[0,x]", TSR_ERR_USAGE, "cannot read 'x'"},
               {"[0,0,:,:,:]", TSR_ERR_USAGE, "a part for each dimension, and it has 4"},
               {"[99999999999999999999,0]", TSR_ERR_USAGE, "out of range of the 3 along dimension 1"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tsr_status got = slice_of_many(bad[i].text, false, &name);
        CHECK(got == bad[i].status && strstr(tsr_message(), bad[i].says), "'%s': status %d: %s", bad[i].text, got,
              tsr_message());
        CHECK(!name.sliced && name.dimensions == 0, "'%s' changed the name", bad[i].text);
    }
}

static void test_bad(void) {
    refuse("", "file's name is missing");
    refuse(":/A", "file's name is missing");
    refuse("[0:1,0:1]", "file's name is missing");
    refuse("-", "name a file");
    refuse("x.h5:", "name after ':' is missing");
    refuse("x.h5::", "name after ':' is missing");
    refuse("x.h5:[0:1,:]", "name after ':' is missing");
    char lengthy[3000];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    refuse(lengthy, "too long");
    lengthy[1200] = '\0';
    refuse(lengthy, "use a shorter path");
    memcpy(lengthy, "x.h5:/", 6);
    lengthy[700] = '\0';
    refuse(lengthy, "longer than");
    memcpy(lengthy, "x.h5[", 5);
    lengthy[5 + TSR_SLICE_CHARS] = ']';
    lengthy[6 + TSR_SLICE_CHARS] = '\0';
    refuse(lengthy, "slice of");
}

int main(void) {
    test_forms();
    test_without_slash();
    test_on_disk();
    test_slice_text();
    test_slices();
    test_bad_slices();
    test_vectors();
    test_many_dimensions();
    test_bad();
    return 0;
}
