/* The decoders of io/filters lent to HDF5, for what goes through H5Dread: types that it converts, --io hdf5, and
 * filters of ours beside some of its own. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_FILTERS_H
#define TSR_IO_HDF5_ACCESS_HDF5_FILTERS_H

#include <hdf5.h>
#include <stdbool.h>

/* With the lock on HDF5, as the next. Once, when the library starts. */
void tsr_h5_filters_register(void);
/* What each decoder gives from now on: what chunks say themselves is not believed. Before it is called none is decoded.
 * partly: another filter makes a chunk of it. */
void tsr_h5_filters_expect(size_t chunk_bytes, bool partly);
/* Bounds what the plugins of HDF5 give that an open dataset needs, as those of ours: less than a chunk would have HDF5
 * read behind it. What memory a plugin takes meanwhile nobody bounds. */
void tsr_h5_filters_bound(hid_t dataset);

#endif
