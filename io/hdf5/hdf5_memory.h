/* What an open store of HDF5 takes of host memory beside the rectangles that are read. Calls no HDF5. */
#ifndef TSR_IO_HDF5_HDF5_MEMORY_H
#define TSR_IO_HDF5_HDF5_MEMORY_H

#include "io/store.h"

/* Of one element in the file. */
size_t tsr_stored_bytes(const tsr_store_desc *desc);
/* Elements of a chunk, in all its dimensions; whatever a file says. */
double tsr_chunk_elements(const tsr_store_desc *desc);
/* Of all elements of the dataset, as they are read; false where 63 bits do not count them. */
bool tsr_dataset_bytes(const tsr_store_desc *desc, size_t *bytes);
/* Whether chunks are decoded without HDF5: where that can be done, and each has elements of one matrix alone. */
bool tsr_decodes_chunks(const tsr_store_desc *desc);
/* tsr_store_least_bytes and tsr_store_too_large (stores.h) of this kind. */
size_t tsr_hdf5_least_bytes(const tsr_store_desc *desc, tsr_io_mode mode);
tsr_status tsr_hdf5_too_large(const tsr_store_desc *desc, size_t need, size_t have, const char *advice);

#endif
