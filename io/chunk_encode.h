/* What HDF5's filters do to a chunk, done without HDF5 and so by several threads at once: shuffle and deflate (where this build has zlib). The
 * inverse of chunk_decode.h, byte for byte what HDF5 itself would decode. */
#ifndef TSR_IO_CHUNK_ENCODE_H
#define TSR_IO_CHUNK_ENCODE_H

#include "io/chunk_decode.h"

/* Memory that one call takes beside its two buffers: zlib's window and tables. */
#define TSR_DEFLATE_BYTES ((size_t)300 << 10)

/* Encodes `chunk` (chunk_bytes; this buffer and `spare` hold tsr_chunk_stored_max(chunk_bytes) each and are overwritten). *stored points to *stored_bytes
 * in one of the two. *skipped: HDF5's filter mask, bit f set where filter f was left out, which happens to deflate where it saves nothing. `level`: of
 * deflate, 0 to 9. TSR_ERR_UNSUPPORTED for fletcher32, and for deflate without zlib. */
tsr_status tsr_chunk_encode(const tsr_pipeline *pipeline, int level, uint8_t *chunk, size_t chunk_bytes, uint8_t *spare, const uint8_t **stored,
                            size_t *stored_bytes, uint32_t *skipped);

#endif
