/* Chunked outputs: encoded by threads, kept without a name, placed in order, the same for HDF5 as its own; and what
 * is refused. */
#define _GNU_SOURCE /* nftw */
#include <hdf5.h>
#include <pthread.h>
#include <stdatomic.h>

#include "io/chunks/chunk_encode.h"
#include "io/hdf5/store_hdf5.h"
#include "tests/io/chunks/chunked.h"

enum { THREADS = 8 };

/* ---- the filters alone ----------------------------------------------------------------------- */

static void round_trip(tsr_pipeline pipeline, size_t bytes, bool noise, uint32_t skipped_wanted) {
    size_t room = tsr_chunk_stored_max(bytes), stored_bytes;
    uint8_t *first = malloc(room);
    uint8_t *second = malloc(room);
    uint8_t *third = malloc(room);
    uint8_t *want = malloc(room);
    const uint8_t *stored;
    uint32_t skipped, random = 1;
    for (size_t i = 0; i < bytes; i++) {
        random = random * 1664525 + 1013904223;
        want[i] = noise ? (uint8_t)(random >> 24) : (uint8_t)(i / 64);
    }
    memcpy(first, want, bytes);
    CHECK_OK(tsr_chunk_encode(&pipeline, first, bytes, second, &stored, &stored_bytes, &skipped));
    CHECK(skipped == skipped_wanted, "skipped %x", skipped);
    CHECK(!tsr_chunk_is_compressed(&pipeline, skipped) || stored_bytes < bytes, "%zu of %zu", stored_bytes, bytes);
    memcpy(third, stored, stored_bytes);
    uint8_t *back = malloc(room), *spare = malloc(room);
    CHECK_OK(tsr_chunk_decode(&pipeline, skipped, third, stored_bytes, spare, back, bytes));
    CHECK(memcmp(back, want, bytes) == 0, "not the same after a round trip of %zu bytes", bytes);
    free(first);
    free(second);
    free(third);
    free(want);
    free(back);
    free(spare);
}

static void test_filters_alone(void) {
    static const uint32_t widths[] = {1, 2, 4, 8, 3};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        round_trip(tsr_compress_pipeline(&(tsr_compress){.how = NULL}, true, widths[w], 1003), 1003, true, 0);
        if (!tsr_filter_gzip.apply) continue;
        tsr_compress gzip;
        CHECK_OK(tsr_compress_parse("--compress", "gzip:6", &gzip));
        tsr_pipeline both = tsr_compress_pipeline(&gzip, true, widths[w], 4096);
        round_trip(both, 4096, false, 0);
        round_trip(both, 4096, true, 2); /* does not shrink: deflate left out, shuffle not */
        both.use[1].values[0] = 0;
        round_trip(both, 4096, false, 2);
    }
    round_trip((tsr_pipeline){.count = 0}, 100, true, 0);
    tsr_compress deflate;
    CHECK_OK(tsr_compress_parse("--compress", "gzip:4", &deflate));
    tsr_pipeline summed = tsr_compress_pipeline(&deflate, true, 4, 1003);
    tsr_pipeline_add_checksum(&summed);
    round_trip(summed, 1003, false, 0);
    round_trip(summed, 1003, true, 2); /* what does not shrink has its sum, too */
    tsr_pipeline none = {.count = 1, .use = {{.filter = tsr_filter_find(tsr_filter_szip.id)}}};
    uint8_t bytes[2048] = {0}, spare[2048];
    const uint8_t *stored;
    size_t stored_bytes;
    uint32_t skipped;
    CHECK_FAILS(tsr_chunk_encode(&none, bytes, 64, spare, &stored, &stored_bytes, &skipped), TSR_ERR_UNSUPPORTED,
                "szip");
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void chosen(int64_t rows, int64_t cols, tsr_dtype type, int64_t ask_rows, int64_t ask_cols, int64_t want_rows,
                   int64_t want_cols) {
    tsr_output_spec spec = {.rows = rows, .cols = cols, .dtype = type, .chunk_rows = ask_rows, .chunk_cols = ask_cols};
    tsr_output_choose_chunks(&spec);
    CHECK(spec.chunk_rows == want_rows && spec.chunk_cols == want_cols, "%lldx%lld for %lldx%lld",
          (long long)spec.chunk_rows, (long long)spec.chunk_cols, (long long)rows, (long long)cols);
}

static void test_choice(void) {
    const int64_t automatic = TSR_CHUNK_AUTO;
    chosen(8192, 8192, TSR_F32, automatic, automatic, 512, 512);
    chosen(8192, 8192, TSR_F64, automatic, automatic, 256, 512);
    chosen(8192, 8192, TSR_F16, automatic, automatic, 512, 1024);
    chosen(1000, 1000, TSR_F32, automatic, automatic, 512, 512); /* halves, in steps of 16 */
    chosen(1100, 700, TSR_F32, automatic, automatic, 368, 700);
    chosen(10, 3, TSR_F32, automatic, automatic, 10, 3);
    chosen(1, 1 << 20, TSR_F32, automatic, automatic, 1, 1 << 18);
    chosen(1 << 20, 1, TSR_F32, automatic, automatic, 1 << 18, 1);
    chosen(0, 7, TSR_F32, automatic, automatic, 1, 7);
    chosen(30, 20, TSR_F32, 100, 5, 30, 5);
    chosen(0, 0, TSR_F32, 100, 5, 1, 1);
    chosen(30, 20, TSR_F32, 0, 0, 0, 0);
    tsr_output_spec spec = {.rows = 30, .cols = 20, .dtype = TSR_F32};
    CHECK_OK(tsr_compress_parse("--compress", "gzip", &spec.compress));
    tsr_output_choose_chunks(&spec);
    CHECK(spec.chunk_rows == 30 && spec.chunk_cols == 20, "gzip alone chunks nothing");
    CHECK(tsr_output_encode_bytes(&spec, 3) == 3 * tsr_output_encode_bytes(&spec, 1) &&
              tsr_output_encode_bytes(&spec, 1) > 2 * 30 * 20 * 4,
          "memory");
    spec.chunk_rows = spec.chunk_cols = 0;
    CHECK(tsr_output_encode_bytes(&spec, 3) == 0 && tsr_spec_chunks(&spec) == 0, "contiguous outputs encode nothing");
}

static void refused(int64_t rows, int64_t cols, int64_t chunk_rows, int64_t chunk_cols, int level, tsr_status status,
                    const char *text) {
    tsr_output_spec spec = chunked_spec("refused.h5", "/C", rows, cols, chunk_rows, chunk_cols, GZIP);
    tsr_output output;
    spec.compress.level = level;
    CHECK_FAILS(tsr_output_check(&spec, NULL), status, text);
    CHECK_FAILS(tsr_output_create(&spec, &output), status, text);
}

static void test_refusals(void) {
    refused(10, 10, 11, 10, 1, TSR_ERR_USAGE, "chunks of 11x10 do not fit a matrix of 10x10");
    refused(10, 10, 10, 11, 1, TSR_ERR_USAGE, "do not fit");
    refused(10, 10, 10, 0, 1, TSR_ERR_USAGE, "do not fit");
    refused(10, 10, TSR_CHUNK_AUTO, TSR_CHUNK_AUTO, 1, TSR_ERR_USAGE, "do not fit"); /* not chosen */
    refused(1 << 14, 1 << 14, 1 << 14, 1 << 14, 1, TSR_ERR_LIMIT, "1 GiB is the most");
    refused(1 << 16, 1 << 16, 1, 1, 1, TSR_ERR_LIMIT, "2147483647");
    if (tsr_filter_gzip.apply) refused(10, 10, 5, 5, 10, TSR_ERR_USAGE, "level 10");
    tsr_output_spec spec = chunked_spec("refused.h5", "/C", (int64_t)1 << 40, 1000, 1000, 1000, PLAIN);
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_SPACE, "free some space"); /* unlike what is compressed */
    CHECK(count_ending(scratch, ".tmp") == 0 && access(in_scratch("refused.h5"), F_OK) != 0,
          "a refusal left something");
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct {
    tsr_store *store;
    const double *data;
    _Atomic int64_t next;
    int64_t down, across; /* blocks of at most 2 × 3 chunks */
    tsr_status status;
} writing;

static void *write_blocks(void *context) {
    writing *w = context;
    const tsr_store_desc *desc = &w->store->desc;
    int64_t rows = 2 * desc->chunk_rows, cols = 3 * desc->chunk_cols;
    for (int64_t block; (block = w->next++) < w->down * w->across;) {
        int64_t turned = w->down * w->across - 1 - block; /* not in the order of the file */
        tsr_rect rect = {turned / w->across * rows, turned % w->across * cols, rows, cols};
        rect.rows = tsr_min(rect.rows, desc->rows - rect.row);
        rect.cols = tsr_min(rect.cols, desc->cols - rect.col);
        tsr_status status =
            w->store->ops->write(w->store, rect, w->data + rect.row * desc->cols + rect.col, desc->cols);
        if (status != TSR_OK) w->status = status;
    }
    return NULL;
}

static void write_by_threads(tsr_store *store, const double *data) {
    pthread_t ids[THREADS];
    const tsr_store_desc *desc = &store->desc;
    writing w = {.store = store,
                 .data = data,
                 .down = tsr_ceil_div(desc->rows, 2 * desc->chunk_rows),
                 .across = tsr_ceil_div(desc->cols, 3 * desc->chunk_cols)};
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&ids[i], NULL, write_blocks, &w) == 0, "no thread");
    for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    CHECK(w.status == TSR_OK, "%s", tsr_status_text(w.status));
}

static void whole_run(const char *path, int64_t rows, int64_t cols, int64_t chunk_rows, int64_t chunk_cols,
                      test_filters filters, int encoders) {
    tsr_output_spec spec = chunked_spec("t.h5", path, rows, cols, chunk_rows, chunk_cols, filters);
    tsr_output output;
    tsr_store *back;
    double *data = chunked_matrix(rows, cols), element;
    tsr_output_choose_chunks(&spec);
    spec.encode_bytes = tsr_output_encode_bytes(&spec, encoders);
    tsr_store *store = begin_output(&spec, TSR_IO_AUTO, &output);
    CHECK(count_ending(scratch, ".tmp") == 1, "encoded chunks wait in a file with a name");
    CHECK(store->unit_rows == spec.chunk_rows && store->unit_cols == spec.chunk_cols, "where threads may cut");
    write_by_threads(store, data);
    CHECK_OK(store->ops->sync(store)); /* keeps what was not placed */
    CHECK_OK(place_alone(&output, store));
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    CHECK_OK(
        tsr_store_open(&output.desc, TSR_IO_AUTO, NULL, NULL, &back)); /* before it is published, as a check does */
    if (rows * cols > 0) {
        CHECK_OK(back->ops->read(back, (tsr_rect){rows - 1, cols - 1, 1, 1}, &element, 1));
        CHECK(element == chunked_value(rows - 1, cols - 1), "%g", element);
    }
    tsr_store_close(back);
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
    check_chunked(&spec.name, TSR_IO_HDF5, rows, cols);
    check_chunked(&spec.name, TSR_IO_AUTO, rows, cols);
    free(data);
}

static void test_whole_runs(void) {
    for (test_filters filters = PLAIN; filters <= SHUFFLED_GZIP; filters++) {
        whole_run("/odd", 203, 151, 16, 10, filters, 4);
        whole_run("/one", 17, 9, 1, 1, filters, 0); /* threads wait for the one encoder there always is */
        whole_run("/wide", 5, 1000, 5, 64, filters, 1);
        whole_run("/larger", 10, 12, 4000, 4000, filters, TSR_ENCODERS_MAX + 1);
        whole_run("/auto", 900, 700, TSR_CHUNK_AUTO, TSR_CHUNK_AUTO, filters, 8);
        whole_run("/empty/rows", 0, 5, 4, 4, filters, 1);
        whole_run("/empty/cols", 5, 0, TSR_CHUNK_AUTO, TSR_CHUNK_AUTO, filters, 1);
    }
    tsr_output_spec first = chunked_spec("t.h5", "/odd", 203, 151, 16, 10, PLAIN);
    check_chunked(&first.name, TSR_IO_AUTO, 203, 151); /* what the file held before is still there */
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
}

/* ---- mistakes and failures ------------------------------------------------------------------- */

static tsr_output_spec small_spec(void) { return chunked_spec("m.h5", "/C", 20, 30, 8, 7, GZIP); }
static tsr_store *open_output(tsr_output *output) {
    const tsr_output_spec spec = small_spec();
    return begin_output(&spec, TSR_IO_AUTO, output);
}

static void drop(tsr_output *output, tsr_store *store) {
    drop_output(output, store);
    CHECK(count_ending(scratch, ".tmp") == 0 && access(in_scratch("m.h5"), F_OK) != 0, "something is left");
}

static void test_rectangles(void) {
    tsr_output output;
    tsr_store *store = open_output(&output);
    double data[20 * 30] = {0};
    static const tsr_rect wrong[] = {{1, 0, 7, 7},   {0, 0, 7, 7},   {0, 0, 8, 8},  {0, 1, 8, 6},
                                     {16, 28, 3, 2}, {16, 28, 4, 1}, {0, 0, 12, 30}};
    static const tsr_rect right[] = {{0, 0, 8, 7}, {8, 7, 12, 23}, {16, 28, 4, 2}, {0, 0, 20, 30}, {3, 3, 0, 5}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FAILS(store->ops->write(store, wrong[i], data, 30), TSR_ERR_SHAPE, "not whole chunks of 8x7");
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) CHECK_OK(store->ops->write(store, right[i], data, 30));
    CHECK_FAILS(store->ops->write(store, (tsr_rect){16, 28, 8, 7}, data, 30), TSR_ERR_SHAPE, "is not inside");
    CHECK_FAILS(store->ops->read(store, right[0], data, 30), TSR_ERR_USAGE, "before they are placed");
    drop(&output, store);
}

static void test_double(void) {
    tsr_output output;
    tsr_store *store = open_output(&output);
    double data[20 * 30] = {0};
    tsr_kept_chunk *chunks;
    int64_t count;
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 8, 30}, data, 30));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 7, 8, 7}, data, 30));
    CHECK_FAILS(tsr_chunks_kept(store, &chunks, &count), TSR_ERR_USAGE, "chunk 1 of '/C' was written twice");
    drop(&output, store);
}

/* What a head may not say, though its sum is right. */
static void test_wrong_heads(void) {
    tsr_output output;
    tsr_store *store = open_output(&output);
    const uint32_t plain = (tsr_filter_gzip.apply != NULL), bytes = 8 * 7 * 8;
    tsr_encoded_chunk wrong[] = {
        {.number = -1, .bytes = bytes, .skipped = plain},
        {.number = 15, .bytes = bytes, .skipped = plain},
        {.number = 0, .bytes = bytes, .skipped = plain ? 2 : 1},
        {.number = 0, .bytes = bytes - 8, .skipped = plain},
        {.number = 0, .bytes = 0, .skipped = plain},
        {.number = 0, .bytes = bytes, .skipped = 0}, /* compressed, and no smaller */
        {.number = 0, .bytes = 0, .skipped = 0},
    };
    static const char *const says[] = {"no such chunk", "no such chunk", "skips filters", "another size",
                                       "another size",  "another size",  "another size"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (i == 5 && !plain) continue; /* then it is right */
        tsr_encoded_seal(&wrong[i], store);
        const char *what = tsr_encoded_head_wrong(&output.desc, &wrong[i]);
        CHECK(what && strstr(what, says[i]), "head %zu: %s", i, what ? what : "right");
    }
    tsr_encoded_chunk right = {.number = 14, .bytes = bytes, .skipped = plain};
    tsr_encoded_seal(&right, store);
    CHECK(!tsr_encoded_head_wrong(&output.desc, &right), "a right head is refused");
    right.number = 13;
    CHECK(strstr(tsr_encoded_head_wrong(&output.desc, &right), "another sum"), "a changed head is taken");
    drop(&output, store);
}

/* Places are reserved by sizes: each chunk has its own, and HDF5 knows how many bytes are there. */
static void test_reserved(void) {
    tsr_output output;
    tsr_store *store = open_output(&output);
    tsr_chunk_size sizes[15];
    int64_t addresses[15];
    uint32_t all = 0;
    for (uint32_t i = 0; i < 15; i++) {
        sizes[i] = (tsr_chunk_size){.bytes = 100 + 7 * i, .skipped = i % 2};
        all += sizes[i].bytes;
    }
    CHECK_OK(tsr_chunks_reserve(&output, sizes, addresses));
    for (int i = 0; i < 15; i++)
        for (int j = 0; j < 15; j++)
            CHECK(i == j || addresses[i] >= addresses[j] + sizes[j].bytes ||
                      addresses[j] >= addresses[i] + sizes[i].bytes,
                  "chunks %d and %d lie in each other", i, j);
    const hid_t file = H5Fopen(output.desc.name.file, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t dataset = H5Dopen2(file, "/C", H5P_DEFAULT);
    CHECK(H5Dget_storage_size(dataset) == all, "HDF5 counts %llu bytes",
          (unsigned long long)H5Dget_storage_size(dataset));
    H5Dclose(dataset);
    H5Fclose(file);
    unlink(output.desc.name.file);
    CHECK_FAILS(tsr_chunks_reserve(&output, sizes, addresses), TSR_ERR_IO, "cannot open");
    drop(&output, store);
}

/* The chunk that has byte `at` of the file; the last where none ends behind it. */
static const tsr_kept_chunk *chunk_at(const tsr_kept_chunk *chunks, int64_t count, int64_t at) {
    const tsr_kept_chunk *found = chunks;
    for (int64_t i = 0; i < count; i++)
        if (chunks[i].at.offset <= at && (chunks[i].at.offset > found->at.offset || found->at.offset > at))
            found = &chunks[i];
    return found;
}

/* One bit of what the disk keeps changes: the chunks are not listed where it is in a head, and where it changes after
 * that, or is in the bytes, its chunk is not taken. */
static void flip_one(int fd, tsr_store *store, const tsr_kept_chunk *chunks, int64_t count, int64_t bit, void *to) {
    const tsr_kept_chunk *chunk = chunk_at(chunks, count, bit / 8);
    tsr_kept_chunk *list;
    int64_t listed;
    flip(fd, bit);
    if (bit / 8 - chunk->at.offset < (int64_t)sizeof(tsr_encoded_chunk)) {
        CHECK_FAILS(tsr_chunks_kept(store, &list, &listed), TSR_ERR_IO, "came back from the disk");
    } else {
        CHECK_OK(tsr_chunks_kept(store, &list, &listed));
        free(list);
    }
    CHECK_FAILS(tsr_chunk_take(store, chunk, to), TSR_ERR_IO, "came back from the disk");
    flip(fd, bit);
}

static void test_flips(void) {
    double *data = chunked_matrix(20, 30);
    tsr_output output;
    tsr_store *store = open_output(&output);
    tsr_kept_chunk *chunks;
    int64_t count;
    void *to = malloc(sizeof(tsr_encoded_chunk) + tsr_chunk_stored_max(8 * 7 * sizeof *data));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 20, 30}, data, 30));
    CHECK_OK(tsr_chunks_kept(store, &chunks, &count));
    const int fd = spill_file();
    const int64_t bits = 8 * lseek(fd, 0, SEEK_END);
    for (int64_t bit = 0; bit < bits; bit++) flip_one(fd, store, chunks, count, bit, to);
    CHECK_OK(place_alone(&output, store)); /* as it was */
    drop(&output, store);
    for (int i = 0; i < 20; i++) { /* and on the way to the file */
        store = open_output(&output);
        CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 20, 30}, data, 30));
        flip(spill_file(), bits / 20 * i + i);
        CHECK_FAILS(place_alone(&output, store), TSR_ERR_IO, "came back from the disk");
        drop(&output, store);
    }
    free(to);
    free(chunks);
    free(data);
}

static void write_all(const tsr_output_spec *spec) {
    tsr_output output;
    tsr_store *store = begin_output(spec, TSR_IO_AUTO, &output);
    double data[20 * 30] = {0};
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, 20, 30}, data, 30));
}

/* A run that is killed leaves the temporary file of any output, which the next run removes, and nothing of its
 * encoded chunks. */
static void test_killed(void) {
    const tsr_output_spec spec = small_spec();
    CHECK(count_ending(scratch, ".tmp") == 0, "something is left");
    kill_after(write_all, &spec);
    CHECK(count_ending(scratch, ".tmp") == 1, "%d temporary files", count_ending(scratch, ".tmp"));
    tsr_output output;
    drop(&output, open_output(&output));
}

int main(void) {
    scratch_make();
    test_filters_alone();
    test_choice();
    test_refusals();
    test_whole_runs();
    test_rectangles();
    test_double();
    test_wrong_heads();
    test_reserved();
    test_flips();
    test_killed();
    scratch_remove();
    return 0;
}
