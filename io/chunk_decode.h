/* What HDF5's filters did to a chunk, undone without HDF5 and so by several threads at once: deflate (where this build has zlib),
 * shuffle and fletcher32, in any order. */
#ifndef TSR_IO_CHUNK_DECODE_H
#define TSR_IO_CHUNK_DECODE_H

#include "kernels/base.h"

#define TSR_FILTERS_MAX 4

typedef enum { TSR_FILTER_DEFLATE, TSR_FILTER_SHUFFLE, TSR_FILTER_FLETCHER32 } tsr_filter;

/* Filters in the order in which they were applied. Plain memory. */
typedef struct {
    int count;
    tsr_filter filter[TSR_FILTERS_MAX];
    uint32_t shuffle_bytes; /* of an element, as shuffle saw it */
} tsr_pipeline;

bool tsr_have_deflate(void);
/* The zlib that is loaded, "" where this build has none. Returns text. */
const char *tsr_zlib_version(char *text, size_t chars);

/* The most bytes a chunk of `chunk_bytes` can take in a file: deflate and checksums add a little to what does not shrink. */
static inline size_t tsr_chunk_stored_max(size_t chunk_bytes) { return chunk_bytes + chunk_bytes / 64 + 1024; }

/* Decodes `stored_bytes` at `stored` into `chunk`, exactly chunk_bytes. `skip`: HDF5's filter mask, bit f set where filter f was left out.
 * `stored` and `spare` hold tsr_chunk_stored_max(chunk_bytes) each and are overwritten. TSR_ERR_FORMAT for damage. */
tsr_status tsr_chunk_decode(const tsr_pipeline *pipeline, uint32_t skip, uint8_t *stored, size_t stored_bytes, uint8_t *spare, uint8_t *chunk, size_t chunk_bytes);

#endif
