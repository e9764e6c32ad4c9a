/* The stores share one contract: rectangles of any shape and stride, empty ones, and refusal of what is outside. */
#define _GNU_SOURCE
#include "io/store.h"

#include <pthread.h>

#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output.h"
#include "tests/io/scratch.h"

enum { ROWS = 23, COLS = 17, GUARD = 99 };

static const tsr_rect rects[] = {{0, 0, ROWS, COLS}, {0, 0, 1, 1},    {ROWS - 1, COLS - 1, 1, 1},
                                 {3, 5, 7, 11},      {4, 0, 9, COLS}, {0, 6, ROWS, 1},
                                 {5, 5, 0, 3},       {5, 5, 3, 0},    {ROWS, COLS, 0, 0}};

static double expected(int64_t i, int64_t j) { return tsr_fill_element(TSR_FILL_INTEGER, 5, i, j); }

/* Reads every rectangle with three strides and looks at every element and at what is between the rows. */
static void check_reads(tsr_store *store, int64_t row0, int64_t col0) {
    for (size_t t = 0; t < sizeof rects / sizeof *rects; t++) {
        tsr_rect r = rects[t];
        if (r.row + r.rows > store->desc.rows || r.col + r.cols > store->desc.cols) continue;
        for (int64_t pad = 0; pad < 9; pad += 4) {
            double to[ROWS * (COLS + 9)];
            int64_t ld = r.cols + pad;
            for (size_t i = 0; i < sizeof to / sizeof *to; i++) to[i] = GUARD;
            CHECK_OK(store->ops->read(store, r, to, ld));
            for (int64_t i = 0; i < r.rows; i++)
                for (int64_t j = 0; j < ld; j++) {
                    double want = j < r.cols ? expected(row0 + r.row + i, col0 + r.col + j) : GUARD;
                    CHECK(to[i * ld + j] == want, "%s: rect %zu pad %d (%d,%d): %g, not %g", store->ops->name, t,
                          (int)pad, (int)i, (int)j, to[i * ld + j], want);
                }
            CHECK(to[r.rows * ld] == GUARD, "%s: rect %zu wrote behind its end", store->ops->name, t);
        }
    }
}

static void check_refusals(tsr_store *store) {
    static const tsr_rect outside[] = {{-1, 0, 1, 1},       {0, -1, 1, 1},       {ROWS, 0, 1, 1}, {0, COLS, 1, 1},
                                       {0, 0, ROWS + 1, 1}, {0, 0, 1, COLS + 1}, {0, 0, -1, 1},   {1, 0, INT64_MAX, 1}};
    double to[4 * COLS];
    for (size_t t = 0; t < sizeof outside / sizeof *outside; t++)
        CHECK_FAILS(store->ops->read(store, outside[t], to, COLS + 2), TSR_ERR_SHAPE, "is not inside");
    tsr_rect wide = {0, 0, 2, 4};
    CHECK_FAILS(store->ops->read(store, wide, to, 3), TSR_ERR_SHAPE, "rows of 3");
}

static void test_memory(void) {
    double data[ROWS * (COLS + 2)], piece[4] = {1, 2, 3, 4};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS + 2; j++) data[i * (COLS + 2) + j] = j < COLS ? expected(i, j) : GUARD;
    tsr_store *store;
    CHECK_OK(tsr_memory_open((tsr_view){data, {TSR_F64, false}, ROWS, COLS, COLS + 2}, &store));
    check_reads(store, 0, 0);
    check_refusals(store);
    CHECK_OK(store->ops->write(store, (tsr_rect){2, 3, 2, 2}, piece, 2));
    CHECK_OK(store->ops->sync(store));
    CHECK(data[2 * (COLS + 2) + 3] == 1 && data[3 * (COLS + 2) + 4] == 4, "the piece is not where it belongs");
    CHECK_FAILS(store->ops->write(store, (tsr_rect){ROWS - 1, 0, 2, 2}, piece, 2), TSR_ERR_SHAPE, "is not inside");
    tsr_store_close(store);
    CHECK_FAILS(tsr_memory_open((tsr_view){data, {TSR_F64, false}, 2, 5, 4}, &store), TSR_ERR_SHAPE, "rows of 4");
}

static void test_generated(void) {
    tsr_store *store;
    double piece[1] = {1};
    CHECK_OK(tsr_generated_open(TSR_FILL_INTEGER, 5, ROWS, COLS, TSR_F64, &store));
    CHECK(store->desc.rows == ROWS && store->desc.cols == COLS, "%lldx%lld", (long long)store->desc.rows,
          (long long)store->desc.cols);
    check_reads(store, 0, 0);
    check_refusals(store);
    CHECK_FAILS(store->ops->write(store, (tsr_rect){0, 0, 1, 1}, piece, 1), TSR_ERR_USAGE, "cannot be written");
    tsr_store_close(store);
    CHECK_FAILS(tsr_generated_open(TSR_FILL_INTEGER, 5, -1, 2, TSR_F64, &store), TSR_ERR_SHAPE, "0 or more");
}

/* Writes the matrix through a store of `mode`, in rectangles that tile it, and publishes it. */
static void write_file(const char *file, tsr_io_mode mode) {
    tsr_output output;
    tsr_output_spec spec = {.rows = ROWS, .cols = COLS, .dtype = TSR_F64, .force = true};
    tsr_store *store;
    CHECK_OK(tsr_matrix_name_parse(file, &spec.name));
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_open(&output, mode, NULL, &store));
    for (int64_t row = 0; row < ROWS; row += 9)
        for (int64_t col = 0; col < COLS; col += 5) {
            double piece[9 * 8];
            tsr_rect r = {row, col, tsr_min(9, ROWS - row), tsr_min(5, COLS - col)};
            for (int64_t i = 0; i < r.rows; i++)
                for (int64_t j = 0; j < r.cols; j++) piece[i * 8 + j] = expected(row + i, col + j);
            CHECK_OK(store->ops->write(store, r, piece, 8));
        }
    CHECK_FAILS(store->ops->write(store, (tsr_rect){ROWS, 0, 1, 1}, &store, 1), TSR_ERR_SHAPE, "is not inside");
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
}

static void read_file(const char *file, tsr_io_mode mode) {
    static const char *const slices[] = {"", "[3:20,2:]", "[7:7,:]", "[:,16:17]"};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        char text[700];
        tsr_matrix_name name;
        tsr_store_desc desc;
        tsr_store *store;
        tsr_io_mode used;
        double element = 0;
        snprintf(text, sizeof text, "%s:/C%s", file, slices[i]);
        CHECK_OK(tsr_matrix_name_parse(text, &name));
        tsr_message_set("");
        CHECK_OK(tsr_hdf5_describe(&name, &desc));
        CHECK(*tsr_message() == '\0', "'%s' was described, with the message '%s'", text, tsr_message());
        CHECK_OK(tsr_store_open(&desc, mode, NULL, &used, &store));
        CHECK(used == mode && strcmp(store->ops->name, tsr_io_mode_name(mode)) == 0, "mode %s", store->ops->name);
        check_reads(store, desc.row0, desc.col0);
        CHECK_FAILS(store->ops->read(store, (tsr_rect){desc.rows, 0, 1, 1}, &element, 1), TSR_ERR_SHAPE,
                    "is not inside");
        CHECK_FAILS(store->ops->write(store, (tsr_rect){0, 0, 1, 1}, &element, 1), TSR_ERR_USAGE, "reading only");
        tsr_store_close(store);
    }
}

static void test_files(void) {
    static const tsr_io_mode modes[] = {TSR_IO_DIRECT, TSR_IO_HDF5};
    scratch_make();
    for (int w = 0; w < 2; w++) {
        write_file(in_scratch("m.h5"), modes[w]);
        for (int r = 0; r < 2; r++) read_file(in_scratch("m.h5"), modes[r]);
    }
}

/* Several threads read through one store; HDF5 itself sees one at a time. */
static void *read_in_thread(void *store) {
    for (int i = 0; i < 20; i++) check_reads(store, 0, 0);
    return NULL;
}

static void test_threads(void) {
    for (int mode = TSR_IO_DIRECT; mode <= TSR_IO_HDF5; mode++) {
        tsr_matrix_name name;
        tsr_store_desc desc;
        tsr_store *store;
        pthread_t threads[4];
        CHECK_OK(tsr_matrix_name_parse(in_scratch("m.h5"), &name));
        CHECK_OK(tsr_hdf5_describe(&name, &desc));
        CHECK_OK(tsr_store_open(&desc, (tsr_io_mode)mode, NULL, NULL, &store));
        for (int t = 0; t < 4; t++) CHECK(pthread_create(&threads[t], NULL, read_in_thread, store) == 0, "no thread");
        for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
        tsr_store_close(store);
    }
}

/* The file shrinks, or goes, between describing and reading. */
static void test_cut_short(void) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    tsr_store *store;
    double to[ROWS * COLS];
    CHECK_OK(tsr_matrix_name_parse(in_scratch("m.h5"), &name));
    CHECK_OK(tsr_hdf5_describe(&name, &desc));
    CHECK_OK(tsr_store_open(&desc, TSR_IO_AUTO, NULL, NULL, &store));
    CHECK(truncate(in_scratch("m.h5"), desc.offset + 100) == 0, "truncate");
    CHECK_FAILS(store->ops->read(store, (tsr_rect){0, 0, ROWS, COLS}, to, COLS), TSR_ERR_IO, "cut short");
    tsr_store_close(store);
    CHECK_FAILS(tsr_hdf5_describe(&name, &desc), TSR_ERR_FORMAT, "truncated");
    CHECK(unlink(in_scratch("m.h5")) == 0, "unlink");
    CHECK_FAILS(tsr_store_open(&desc, TSR_IO_AUTO, NULL, NULL, &store), TSR_ERR_NOT_FOUND, "No such file");
    CHECK_FAILS(tsr_store_open(&desc, TSR_IO_HDF5, NULL, NULL, &store), TSR_ERR_NOT_FOUND, "No such file");
    scratch_remove();
}

static void test_modes(void) {
    tsr_io_mode mode;
    char text[64];
    for (int m = TSR_IO_AUTO; m <= TSR_IO_MPIO; m++) {
        CHECK_OK(tsr_io_mode_parse(tsr_io_mode_name((tsr_io_mode)m), &mode));
        CHECK((int)mode == m, "%s", tsr_io_mode_name(mode));
    }
    CHECK_FAILS(tsr_io_mode_parse("magic", &mode), TSR_ERR_USAGE, "auto, direct, hdf5 or mpio");
    CHECK(strstr(tsr_stores_version(text, sizeof text), tsr_h5_is_parallel() ? "(parallel)" : "(serial)"), "%s", text);
}

int main(void) {
    test_modes();
    test_memory();
    test_generated();
    test_files();
    test_threads();
    test_cut_short();
    return 0;
}
