/* Chunks of an output on their way (output_chunks.h): their shapes, their memory, and the heads under which they
 * wait. */

#include <stddef.h>

#include "io/chunks/chunk_encode.h"
#include "io/chunks/store_chunks.h"
#include "io/files/crc32c.h"
#include "io/output/output_chunks_private.h"

#define CHUNK_BYTES_WANTED ((int64_t)1 << 20)
#define CHUNK_STEP 16 /* chosen sides are multiples of this */

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Parts of about `wanted` that leave little beyond the end: `length` in as many equal parts as it takes. */
static int64_t even_side(int64_t length, int64_t wanted) {
    if (length <= wanted) return tsr_max(1, length);
    return tsr_min(length, tsr_round_up(tsr_ceil_div(length, tsr_ceil_div(length, wanted)), CHUNK_STEP));
}

void tsr_output_choose_chunks(tsr_output_spec *spec) {
    if (spec->chunk_rows == 0 && spec->compress.how) spec->chunk_rows = TSR_CHUNK_AUTO;
    if (spec->chunk_rows == 0) return;
    if (spec->chunk_rows == TSR_CHUNK_AUTO) {
        int64_t elements = CHUNK_BYTES_WANTED / (int64_t)tsr_dtype_bytes(spec->dtype), side = 1;
        while (4 * side * side <= elements) side *= 2;
        int64_t rows = even_side(spec->rows, side);
        spec->chunk_cols = even_side(spec->cols, tsr_max(side, elements / rows));
        spec->chunk_rows = even_side(spec->rows, tsr_max(side, elements / spec->chunk_cols));
    }
    /* HDF5 refuses chunks larger than a dataset that cannot grow, unless that is empty. */
    spec->chunk_rows = tsr_min(spec->chunk_rows, tsr_max(1, spec->rows));
    spec->chunk_cols = tsr_min(spec->chunk_cols, tsr_max(1, spec->cols));
}

int64_t tsr_spec_chunks(const tsr_output_spec *spec) {
    if (spec->chunk_rows <= 0 || spec->chunk_cols <= 0) return 0;
    int64_t count;
    bool fits = !__builtin_mul_overflow(tsr_ceil_div(spec->rows, spec->chunk_rows),
                                        tsr_ceil_div(spec->cols, spec->chunk_cols), &count) &&
                !__builtin_mul_overflow(count, tsr_output_matrices(spec), &count);
    return fits ? count : INT64_MAX;
}

tsr_output_spec tsr_chunks_spec(const tsr_store_desc *desc) {
    return (tsr_output_spec){.rows = desc->rows,
                             .cols = desc->cols,
                             .stack_dimensions = 1,
                             .stack = {desc->matrices},
                             .dtype = desc->element.dtype,
                             .chunk_rows = desc->chunk_rows,
                             .chunk_cols = desc->chunk_cols};
}

int64_t tsr_output_chunks(const tsr_output *output) {
    tsr_output_spec spec = tsr_chunks_spec(&output->desc);
    return tsr_spec_chunks(&spec);
}

size_t tsr_chunks_bytes_of(const tsr_output_spec *spec) {
    return (size_t)spec->chunk_rows * (size_t)spec->chunk_cols * tsr_dtype_bytes(spec->dtype);
}

static int64_t chunks_of_matrix(const tsr_store_desc *desc) {
    return tsr_ceil_div(desc->rows, desc->chunk_rows) * tsr_ceil_div(desc->cols, desc->chunk_cols);
}

int64_t tsr_encoded_number(const tsr_store_desc *desc, int64_t i, int64_t j) {
    return desc->matrix * chunks_of_matrix(desc) + i * tsr_ceil_div(desc->cols, desc->chunk_cols) + j;
}

void tsr_encoded_place(const tsr_store_desc *desc, int64_t number, int64_t *matrix, int64_t *i, int64_t *j) {
    const int64_t chunks = chunks_of_matrix(desc), across = tsr_ceil_div(desc->cols, desc->chunk_cols);
    *matrix = number / chunks;
    *i = number % chunks / across;
    *j = number % chunks % across;
}

/* Two buffers, and what the filters take. */
size_t tsr_encoder_buffers_bytes(size_t chunk_bytes) {
    return (size_t)tsr_round_up(2 * (int64_t)tsr_chunk_stored_max(chunk_bytes), 16);
}

size_t tsr_encoder_bytes(const tsr_pipeline *pipeline, size_t chunk_bytes) {
    return tsr_encoder_buffers_bytes(chunk_bytes) + tsr_chunk_encode_bytes(pipeline, chunk_bytes);
}

tsr_pipeline tsr_output_pipeline(const tsr_output_spec *spec) {
    tsr_pipeline pipeline =
        tsr_compress_pipeline(&spec->compress, spec->shuffle, tsr_dtype_bytes(spec->dtype), tsr_chunks_bytes_of(spec));
    if (spec->checksum) tsr_pipeline_add_checksum(&pipeline);
    return pipeline;
}

size_t tsr_output_encode_bytes(const tsr_output_spec *spec, int encoders) {
    if (spec->chunk_rows <= 0) return 0;
    const tsr_pipeline pipeline = tsr_output_pipeline(spec);
    return (size_t)encoders * tsr_encoder_bytes(&pipeline, tsr_chunks_bytes_of(spec));
}

/* ---- heads ----------------------------------------------------------------------------------- */

void tsr_encoded_seal(tsr_encoded_chunk *head, const void *bytes) {
    head->bytes_sum = tsr_crc32c(0, bytes, head->bytes);
    head->head_sum = tsr_crc32c(0, head, offsetof(tsr_encoded_chunk, head_sum));
}

/* A chunk is kept compressed only where that saves something. */
const char *tsr_encoded_head_wrong(const tsr_store_desc *desc, const tsr_encoded_chunk *head) {
    const tsr_output_spec spec = tsr_chunks_spec(desc);
    const size_t whole = tsr_chunks_bytes_of(&spec) + tsr_pipeline_added_bytes(tsr_chunks_pipeline(desc));
    if (head->head_sum != tsr_crc32c(0, head, offsetof(tsr_encoded_chunk, head_sum))) return "its head has another sum";
    if (head->number < 0 || head->number >= tsr_spec_chunks(&spec)) return "there is no such chunk";
    if (head->skipped >> tsr_chunks_pipeline(desc)->count) return "it skips filters that there are not";
    const bool compressed = tsr_chunk_is_compressed(tsr_chunks_pipeline(desc), head->skipped);
    if (compressed ? head->bytes == 0 || head->bytes >= whole : head->bytes != whole) return "it has another size";
    return NULL;
}
