/* What HDF5 would take to decode a chunk is looked at before it does: a stream of gzip may hold a thousand times what
 * the chunk has room for, and HDF5 unpacks all of it. */
#ifndef TSR_IO_CHUNKS_CHUNK_GUARD_H
#define TSR_IO_CHUNKS_CHUNK_GUARD_H

#include "io/chunks/chunk_decode.h"
#include <hdf5.h>

#include "io/store.h"

typedef struct {
    const tsr_filter *last; /* undone before HDF5 does and looked at; NULL: there is nothing to see */
    int index;              /* of that filter: the last but for those of `behind` */
    tsr_pipeline behind;    /* undone before it: shuffle and checksums, which do not make a chunk larger */
    bool packed_before;     /* a filter before that one may make chunks smaller, too */
    bool plain_edges;       /* chunks that reach beyond the dataset have no filters, which their masks do not say */
    int64_t chunks, chunks_across; /* of one matrix; in one row of them */
    uint8_t *seen;                 /* a bit a chunk, NULL where there are too many to keep */
} tsr_chunk_guard;

/* With the lock on HDF5, as all here. TSR_ERR_UNSUPPORTED where gzip or szip is undone after another filter than those:
 * what it takes cannot be looked at. */
tsr_status tsr_chunk_guard_open(hid_t dataset, const tsr_store_desc *desc, tsr_chunk_guard *guard);
/* Looks at the chunks that `rect` of the dataset touches, each once. TSR_ERR_FORMAT for one that holds more than it
 * should. */
tsr_status tsr_chunk_guard_check(tsr_chunk_guard *guard, hid_t dataset, const tsr_store_desc *desc, tsr_rect rect);
void tsr_chunk_guard_close(tsr_chunk_guard *guard);

#endif
