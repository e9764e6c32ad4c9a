/* Where the chunks of a part of a dataset are in its file, as the helper found them (describe.h): with it a job reads
 * stored chunks without HDF5. The same on every rank. Local. */
#ifndef TSR_IO_CHUNKS_CHUNK_INDEX_H
#define TSR_IO_CHUNKS_CHUNK_INDEX_H

#include "kernels/base/base.h"

/* One chunk: `bytes` at `address` of the file, user block included. Never written: 0 bytes. */
typedef struct {
    int64_t address;
    uint32_t bytes;
    uint32_t skipped; /* HDF5's filter mask, bit f set where filter f was left out */
} tsr_chunk_place;

/* Chunks [row0, row0 + rows) x [col0, col0 + cols), counted in chunks, row by row, of each of so many matrices. */
typedef struct {
    int64_t matrices;
    int64_t row0, rows;
    int64_t col0, cols;
} tsr_chunk_range;

typedef struct tsr_chunk_index {
    int users; /* the last one frees it; they come and go in one thread */
    tsr_chunk_range range;
    tsr_chunk_place places[]; /* matrices·rows·cols of them */
} tsr_chunk_index;

/* More are not looked up beforehand: the list would take 16 MiB and more, and looking seconds. */
#define TSR_CHUNK_INDEX_MAX ((int64_t)1 << 20)

/* With one user, the caller, and places that are not set. TSR_ERR_MEMORY. */
tsr_status tsr_chunk_index_make(tsr_chunk_range range, tsr_chunk_index **index);
/* INT64_MAX for more than 63 bits. */
static inline int64_t tsr_chunk_index_count(tsr_chunk_range range) {
    int64_t of_one, all;
    const bool fits = !__builtin_mul_overflow(range.rows, range.cols, &of_one) &&
                      !__builtin_mul_overflow(range.matrices, of_one, &all);
    return fits ? all : INT64_MAX;
}
/* The place of chunk (i, j) of a matrix, counted in the range. */
static inline int64_t tsr_chunk_index_at(tsr_chunk_range range, int64_t matrix, int64_t i, int64_t j) {
    return (matrix * range.rows + i) * range.cols + j;
}
size_t tsr_chunk_index_bytes(const tsr_chunk_index *index); /* 0 for NULL */
/* What is wrong with a place for a stored chunk of `chunk_bytes` in a file of `file_bytes`; NULL: nothing. */
const char *tsr_chunk_place_wrong(const tsr_chunk_place *place, size_t chunk_bytes, int64_t file_bytes);
/* One user less; NULL is fine. */
void tsr_chunk_index_leave(tsr_chunk_index *index);

#endif
