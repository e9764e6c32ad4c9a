/* Chunks decoded without HDF5, for reading (store_chunks.c). */
#ifndef TSR_IO_CHUNKS_STORE_CHUNKS_H
#define TSR_IO_CHUNKS_STORE_CHUNKS_H

#include "io/store.h"

/* The filters of a described dataset's chunks. */
static inline const tsr_pipeline *tsr_chunks_pipeline(const tsr_store_desc *desc) { return &desc->hdf5.pipeline; }

/* Local. For desc->hdf5.raw_chunks. TSR_ERR_LIMIT when desc->cache_bytes cannot hold one chunk being decoded. */
tsr_status tsr_chunks_open(const tsr_store_desc *desc, tsr_store **store);
/* Memory of such a store that keeps `kept` chunks and decodes `decoders` at once. */
size_t tsr_chunks_bytes(const tsr_store_desc *desc, int64_t kept, int decoders);
#define TSR_DECODERS_MAX 8

#endif
