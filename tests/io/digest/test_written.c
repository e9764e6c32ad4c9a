/* What was written and what the file holds: every flipped bit is found in the part that it is in, and nothing where
 * nothing changed. Chunks: tests/app/run/test_written.py. */
#define _GNU_SOURCE /* nftw */
#include "io/digest/written.h"

#include <fcntl.h>

#include "io/digest/digest.h"
#include "io/output/output.h"
#include "io/stores.h"
#include "tests/io/scratch.h"

enum { ROWS = 90, COLS = 70, FLIPS = 300 };
static double data[ROWS * COLS];

static tsr_store *reopen(const tsr_written *written) {
    tsr_store *store;
    CHECK_OK(tsr_store_open(&written->desc, TSR_IO_AUTO, NULL, NULL, &store));
    return store;
}

/* How many parts are wrong; *which: the last of them. */
static int64_t compare(const tsr_written *written, int64_t *which) {
    tsr_store *store = reopen(written);
    bool *wrong = calloc((size_t)written->count, sizeof *wrong);
    int64_t count = 0;
    CHECK_OK(tsr_written_compare(written, store, 3, NULL, NULL, wrong));
    for (int64_t i = 0; i < written->count; i++) {
        count += wrong[i];
        if (wrong[i]) *which = i;
    }
    free(wrong);
    tsr_store_close(store);
    return count;
}

static void flip(const char *file, int64_t bit) {
    const int fd = open(file, O_RDWR);
    uint8_t byte;
    CHECK(fd >= 0 && pread(fd, &byte, 1, bit / 8) == 1, "no bit %lld", (long long)bit);
    byte ^= (uint8_t)(1 << bit % 8);
    CHECK(pwrite(fd, &byte, 1, bit / 8) == 1 && close(fd) == 0, "cannot write '%s'", file);
}

/* Read through a store whose reads are summed up, in bands, the sums are those of what was written; one bit of the file
 * makes them others. */
static uint32_t sum_of_reads(const tsr_written *written) {
    static double got[ROWS * COLS];
    tsr_digest digest = {0};
    tsr_store *store = reopen(written);
    CHECK_OK(tsr_digest_reads(store, &digest));
    for (int64_t row = 0; row < ROWS; row += 17) {
        const tsr_rect left = {row, 0, tsr_min(17, ROWS - row), 20}, right = {row, 20, left.rows, COLS - 20};
        CHECK_OK(store->ops->read(store, left, got + row * COLS, COLS));
        CHECK_OK(store->ops->read(store, right, got + row * COLS + 20, COLS));
    }
    tsr_store_close(store);
    CHECK(!atomic_load(&digest.damaged), "nothing is encoded here");
    return atomic_load(&digest.parts);
}

/* A store whose elements cannot be decoded. */
static tsr_status read_nothing(tsr_store *store, tsr_rect rect, void *to, int64_t ld) {
    (void)rect;
    (void)to;
    (void)ld;
    return tsr_fail(TSR_ERR_FORMAT, "'%s' is damaged", store->desc.name.file);
}
static void close_nothing(tsr_store *store) { (void)store; }

static void test_damaged(void) {
    static const tsr_store_ops ops = {.name = "nothing", .read = read_nothing, .close = close_nothing};
    tsr_store store = {.ops = &ops, .desc = {.rows = 2, .cols = 2, .matrices = 1, .element = {TSR_F64, false}}};
    double got[6] = {1, 2, 3, 4, 5, 6};
    tsr_digest digest = {0};
    CHECK_OK(tsr_digest_reads(&store, &digest));
    CHECK_OK(store.ops->read(&store, (tsr_rect){0, 0, 2, 2}, got, 3));
    CHECK(atomic_load(&digest.damaged) && atomic_load(&digest.parts) == 0, "it was not noted");
    CHECK(got[0] == 0 && got[1] == 0 && got[2] == 3 && got[3] == 0 && got[4] == 0 && got[5] == 6, "no zeros");
    store.ops->close(&store);
    CHECK(store.ops == &ops, "the store does not get its operations back");
}

static void write_all(tsr_store *store, tsr_digest *digest, tsr_written *written, int64_t rows, int64_t cols) {
    CHECK_OK(tsr_digest_writes(store, digest, written));
    for (int64_t row = 0; row < ROWS; row += rows)
        for (int64_t col = 0; col < COLS; col += cols) {
            const tsr_rect rect = {row, col, tsr_min(rows, ROWS - row), tsr_min(cols, COLS - col)};
            CHECK_OK(store->ops->write(store, rect, data + row * COLS + col, COLS));
        }
    CHECK_OK(store->ops->sync(store));
}

static void test_flips(const char *name, int64_t rows, int64_t cols) {
    tsr_output_spec spec = {.rows = ROWS, .cols = COLS, .dtype = TSR_F64};
    tsr_written written = {.lock = PTHREAD_MUTEX_INITIALIZER};
    tsr_digest digest = {0}, read = {0};
    tsr_output output;
    tsr_store *store;
    int64_t which = -1;
    CHECK_OK(tsr_matrix_name_parse(in_scratch(name), &spec.name));
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
    write_all(store, &digest, &written, rows, cols);
    tsr_store_close(store);
    CHECK(written.count == tsr_ceil_div(ROWS, rows) * tsr_ceil_div(COLS, cols), "%lld parts", (long long)written.count);
    CHECK(compare(&written, &which) == 0, "part %lld differs where nothing does", (long long)which);
    store = reopen(&written);
    CHECK_OK(tsr_digest_read(store, 0, 1, NULL, NULL, &read));
    tsr_store_close(store);
    CHECK(read.parts == digest.parts, "the digest is another");
    CHECK(tsr_written_sum(&written) == digest.parts && sum_of_reads(&written) == digest.parts, "the sums are others");
    for (int turn = 0; turn < FLIPS; turn++) {
        const int64_t element = rand() % (ROWS * COLS), bit = 8 * output.desc.offset + 64 * element + rand() % 64;
        flip(output.desc.name.file, bit);
        CHECK(compare(&written, &which) == 1, "bit %lld was not found once", (long long)bit);
        CHECK(sum_of_reads(&written) != digest.parts, "bit %lld changes no sum", (long long)bit);
        const tsr_rect *r = &written.parts[which].rect;
        const int64_t row = element / COLS, col = element % COLS;
        CHECK(row >= r->row && row < r->row + r->rows && col >= r->col && col < r->col + r->cols, "another part");
        flip(output.desc.name.file, bit);
    }
    CHECK(compare(&written, &which) == 0, "part %lld differs where nothing does", (long long)which);
    tsr_output_discard(&output);
    close(output.lock_fd);
    tsr_written_close(&written);
}

/* What is written once more is compared with what was written last; a part that does not lie as before, too. */
static void test_again(void) {
    tsr_written written = {.lock = PTHREAD_MUTEX_INITIALIZER};
    tsr_store_desc desc = {.rows = ROWS, .cols = COLS, .matrices = 2, .matrix = 1};
    CHECK_OK(tsr_written_note(&written, &desc, (tsr_rect){0, 0, 10, 10}, 1));
    CHECK_OK(tsr_written_note(&written, &desc, (tsr_rect){10, 0, 10, 10}, 2));
    CHECK_OK(tsr_written_note(&written, &desc, (tsr_rect){5, 5, 0, 10}, 3)); /* nothing */
    CHECK(written.count == 2, "%lld parts", (long long)written.count);
    written.again = true;
    CHECK_OK(tsr_written_note(&written, &desc, (tsr_rect){10, 0, 10, 10}, 4));
    CHECK(written.count == 2 && written.parts[0].sum == 1 && written.parts[1].sum == 4, "an old sum is left");
    desc.matrix = 0;
    CHECK_OK(tsr_written_note(&written, &desc, (tsr_rect){10, 0, 10, 10}, 5));
    CHECK(written.count == 3, "%lld parts", (long long)written.count);
    desc.matrix = 1;
    CHECK_OK(tsr_written_note(&written, &desc, (tsr_rect){9, 9, 2, 1}, 6));
    CHECK(written.count == 2 && written.parts[0].sum == 5 && written.parts[1].sum == 6, "an old sum is left");
    tsr_written_close(&written);
}

int main(void) {
    scratch_make();
    tsr_stores_start();
    for (int i = 0; i < ROWS * COLS; i++) data[i] = rand() / 1000.0;
    test_again();
    test_damaged();
    test_flips("a.h5", 7, COLS);
    test_flips("b.npy", 13, 20);
    test_flips("c.bin:f64", 40, 64);
    scratch_remove();
    return 0;
}
