/* What HDF5's filters did to a chunk, undone without HDF5 and so by several threads at once (io/filters/filter.h). */
#ifndef TSR_IO_CHUNKS_CHUNK_DECODE_H
#define TSR_IO_CHUNKS_CHUNK_DECODE_H

#include "io/filters/filter.h"

/* The most bytes a chunk of `chunk_bytes` can take in a file: compression and checksums add a little to what does not
 * shrink. */
static inline size_t tsr_chunk_stored_max(size_t chunk_bytes) { return chunk_bytes + chunk_bytes / 64 + 1024; }

/* Memory that one decoder takes beside its buffers. */
size_t tsr_chunk_undo_bytes(const tsr_pipeline *pipeline);

/* Undoes the filters, the last one first: *bytes at *now, then of it; *next is spare memory, and the two may change
 * places. Each holds `room` bytes, which no filter exceeds. `skip` as below. */
tsr_status tsr_chunk_undo(const tsr_pipeline *pipeline, uint32_t skip, uint8_t **now, uint8_t **next, size_t *bytes,
                          size_t room);

/* Decodes `stored_bytes` at `stored` into `chunk`, exactly chunk_bytes. `skip`: HDF5's filter mask, bit f set where
 * filter f was left out.
 * `stored` and `spare` hold tsr_chunk_stored_max(chunk_bytes) each and are overwritten. TSR_ERR_FORMAT for damage. */
tsr_status tsr_chunk_decode(const tsr_pipeline *pipeline, uint32_t skip, uint8_t *stored, size_t stored_bytes,
                            uint8_t *spare, uint8_t *chunk, size_t chunk_bytes);

#endif
