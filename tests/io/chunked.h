/* What the tests of chunked outputs share: specs, values, and one process that writes and places. */
#ifndef TSR_TESTS_IO_CHUNKED_H
#define TSR_TESTS_IO_CHUNKED_H

#include "io/output_chunks.h"
#include "tests/io/unfinished.h"

typedef enum { PLAIN, GZIP, SHUFFLED_GZIP } test_filters;

/* scratch/file:/path; without zlib only the chunks stay of what is asked for. */
static inline tsr_output_spec chunked_spec(const char *file, const char *path, int64_t rows, int64_t cols, int64_t chunk_rows, int64_t chunk_cols, test_filters filters) {
    bool gzip = filters != PLAIN && tsr_have_deflate();
    tsr_output_spec spec = {.rows = rows, .cols = cols, .dtype = TSR_F64, .force = true, .chunk_rows = chunk_rows, .chunk_cols = chunk_cols, .gzip = gzip,
                            .shuffle = filters == SHUFFLED_GZIP, .gzip_level = 1};
    char text[700];
    snprintf(text, sizeof text, "%s:%s", in_scratch(file), path);
    CHECK_OK(tsr_matrix_name_parse(text, &spec.name));
    return spec;
}

/* Every value another one, in no order that compresses well. */
static inline double chunked_value(int64_t row, int64_t col) { return (double)((row * 7919 + col * 104729) % 1000003) / 1000003 + (double)row; }

static inline double *chunked_matrix(int64_t rows, int64_t cols) {
    double *data = malloc((size_t)(rows * cols + 1) * sizeof *data);
    CHECK(data != NULL, "no memory");
    for (int64_t i = 0; i < rows * cols; i++) data[i] = chunked_value(i / cols, i % cols);
    return data;
}

/* All chunks of one store to their places. */
static inline tsr_status place_alone(const tsr_output *output, tsr_store *store) {
    tsr_placer *placer;
    tsr_kept_chunk *chunks = NULL;
    int64_t count = 0;
    tsr_status status;
    TSR_TRY(tsr_placer_open(output, &placer));
    size_t room = tsr_encoded_bytes_max(output);
    void *buffer = malloc(room);
    TSR_TRY_DONE(tsr_chunks_kept(store, &chunks, &count));
    for (int64_t i = 0; i < count; i++) {
        TSR_TRY_DONE(tsr_chunk_take(store, &chunks[i], buffer));
        TSR_TRY_DONE(tsr_placer_put(placer, buffer, room));
    }
done:
    free(chunks);
    free(buffer);
    tsr_status closed = tsr_placer_close(placer);
    return status != TSR_OK ? status : closed;
}

/* The dataset holds chunked_value everywhere, as this mode reads it. */
static inline void check_chunked(const tsr_matrix_name *name, tsr_io_mode mode, int64_t rows, int64_t cols) {
    tsr_store_desc desc;
    tsr_store *store;
    CHECK_OK(tsr_hdf5_describe(name, &desc));
    CHECK(desc.rows == rows && desc.cols == cols && desc.layout == TSR_LAYOUT_CHUNKED, "%lldx%lld", (long long)desc.rows, (long long)desc.cols);
    CHECK_OK(tsr_hdf5_open(&desc, mode, NULL, NULL, &store));
    double *data = malloc((size_t)(rows * cols + 1) * sizeof *data);
    CHECK_OK(store->ops->read(store, (tsr_rect){0, 0, rows, cols}, data, cols));
    for (int64_t i = 0; i < rows * cols; i++)
        CHECK(data[i] == chunked_value(i / cols, i % cols), "(%lld, %lld) is %g", (long long)(i / cols), (long long)(i % cols), data[i]);
    free(data);
    tsr_store_close(store);
}

#endif
