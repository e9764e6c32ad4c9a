/* What the tests of chunked outputs share: specs, values, and one process that writes and places. */
#ifndef TSR_TESTS_IO_CHUNKS_CHUNKED_H
#define TSR_TESTS_IO_CHUNKS_CHUNKED_H

#include "io/hdf5/store_hdf5.h"
#include "io/output/output_chunks.h"
#include "tests/io/output/unfinished.h"

typedef enum { PLAIN, GZIP, SHUFFLED_GZIP } test_filters;

/* scratch/file:/path; without zlib only the chunks stay of what is asked for. */
static inline tsr_output_spec chunked_spec(const char *file, const char *path, int64_t rows, int64_t cols,
                                           int64_t chunk_rows, int64_t chunk_cols, test_filters filters) {
    tsr_output_spec spec = {.rows = rows,
                            .cols = cols,
                            .dtype = TSR_F64,
                            .force = true,
                            .chunk_rows = chunk_rows,
                            .chunk_cols = chunk_cols,
                            .shuffle = filters == SHUFFLED_GZIP};
    char text[700];
    if (filters != PLAIN && tsr_filter_gzip.apply) CHECK_OK(tsr_compress_parse("--compress", "gzip:1", &spec.compress));
    snprintf(text, sizeof text, "%s:%s", in_scratch(file), path);
    CHECK_OK(tsr_matrix_name_parse(text, &spec.name));
    return spec;
}

/* Every value another one, in no order that compresses well. */
static inline double chunked_value(int64_t row, int64_t col) {
    return (double)((row * 7919 + col * 104729) % 1000003) / 1000003 + (double)row;
}

static inline double *chunked_matrix(int64_t rows, int64_t cols) {
    double *data = malloc((size_t)(rows * cols + 1) * sizeof *data);
    CHECK(data != NULL, "no memory");
    for (int64_t i = 0; i < rows * cols; i++) data[i] = chunked_value(i / cols, i % cols);
    return data;
}

/* All chunks of one store to their places; TSR_ERR_IO where they are not all of the output's. */
static inline tsr_status place_alone(const tsr_output *output, tsr_store *store) {
    const int64_t chunks = tsr_output_chunks(output);
    tsr_chunk_size *sizes = calloc((size_t)chunks, sizeof *sizes);
    int64_t *addresses = calloc((size_t)chunks, sizeof *addresses), count = 0;
    tsr_kept_chunk *kept = NULL;
    tsr_status status;
    TSR_TRY_DONE(tsr_chunks_kept(store, &kept, &count));
    for (int64_t i = 0; i < count; i++) sizes[kept[i].number] = kept[i].size;
    TSR_TRY_DONE(tsr_chunks_reserve(output, sizes, addresses));
    TSR_TRY_DONE(tsr_chunks_place(store, kept, count, addresses, NULL, NULL));
done:
    free(kept);
    free(sizes);
    free(addresses);
    return status;
}

/* The file without a name in which this process keeps its encoded chunks. */
static inline int spill_file(void) {
    char link[64], target[700];
    int found = -1, count = 0;
    for (int fd = 3; fd < 256; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t chars = readlink(link, target, sizeof target - 1);
        if (chars < 0) continue;
        target[chars] = '\0';
        if (strncmp(target, scratch, strlen(scratch)) == 0 && strstr(target, "(deleted)")) {
            found = fd;
            count++;
        }
    }
    CHECK(count == 1, "%d files without a name", count);
    return found;
}

static inline void flip(int fd, int64_t bit) {
    unsigned char byte;
    CHECK(pread(fd, &byte, 1, bit / 8) == 1, "byte %lld cannot be read", (long long)(bit / 8));
    byte ^= (unsigned char)(1 << bit % 8);
    CHECK(pwrite(fd, &byte, 1, bit / 8) == 1, "byte %lld cannot be written", (long long)(bit / 8));
}

/* The dataset holds chunked_value everywhere, as this mode reads it. */
static inline void check_chunked(const tsr_matrix_name *name, tsr_io_mode mode, int64_t rows, int64_t cols) {
    tsr_store_desc desc;
    tsr_store *store;
    CHECK_OK(tsr_hdf5_describe(name, &desc));
    CHECK(desc.rows == rows && desc.cols == cols && desc.hdf5.layout == TSR_LAYOUT_CHUNKED, "%lldx%lld",
          (long long)desc.rows, (long long)desc.cols);
    CHECK_OK(tsr_store_open(&desc, mode, NULL, NULL, &store));
    double *data = malloc((size_t)(rows * cols + 1) * sizeof *data);
    CHECK_OK(store->ops->read(store, (tsr_rect){0, 0, rows, cols}, data, cols));
    for (int64_t i = 0; i < rows * cols; i++)
        CHECK(data[i] == chunked_value(i / cols, i % cols), "(%lld, %lld) is %g", (long long)(i / cols),
              (long long)(i % cols), data[i]);
    free(data);
    tsr_store_close(store);
}

#endif
