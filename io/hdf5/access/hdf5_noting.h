/* HDF5 files under a file driver that moves metadata alone. Of raw data it notes where HDF5 would read or write it, and
 * moves nothing: so HDF5 says where a chunk is, or gives one its place, and others move its bytes. The caller has the
 * lock of HDF5 (hdf5_library.h). */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_NOTING_H
#define TSR_IO_HDF5_ACCESS_HDF5_NOTING_H

#include <hdf5.h>

#include "kernels/base/base.h"

/* Raw data that HDF5 asked for, or handed over, since `count` was set to 0: how often, and the last time's place. */
typedef struct {
    int count;
    int64_t address;
    size_t bytes;
} tsr_h5_noted;

/* Opens the file, for writing if `write`; the caller closes *id with H5Fclose, and *noted is gone with it.
 * TSR_ERR_FORMAT, and TSR_ERR_IO for writing: "cannot open 'name' " and then `advice`. */
tsr_status tsr_h5_open_noting(const char *name, bool write, const char *advice, hid_t *id, tsr_h5_noted **noted);

#endif
