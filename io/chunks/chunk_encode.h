/* What HDF5's filters do to a chunk, done without HDF5 and so by several threads at once. The inverse of
 * chunk_decode.h, byte for byte what HDF5 with its plugins would decode. */
#ifndef TSR_IO_CHUNKS_CHUNK_ENCODE_H
#define TSR_IO_CHUNKS_CHUNK_ENCODE_H

#include "io/chunks/chunk_decode.h"

/* Memory that one call takes beside its two buffers. */
size_t tsr_chunk_encode_bytes(const tsr_pipeline *pipeline, size_t chunk_bytes);

/* Whether a chunk with this filter mask holds what a compressor made. */
bool tsr_chunk_is_compressed(const tsr_pipeline *pipeline, uint32_t skipped);

/* Encodes `chunk` (chunk_bytes; this buffer and `spare` hold tsr_chunk_stored_max(chunk_bytes) each and are
 * overwritten). *stored points to *stored_bytes in one of the two. *skipped: HDF5's filter mask, bit f set where
 * filter f was left out, which happens to a compressor that saves nothing.
 * TSR_ERR_UNSUPPORTED for fletcher32, and for a compressor whose library this build lacks. */
tsr_status tsr_chunk_encode(const tsr_pipeline *pipeline, uint8_t *chunk, size_t chunk_bytes, uint8_t *spare,
                            const uint8_t **stored, size_t *stored_bytes, uint32_t *skipped);

#endif
