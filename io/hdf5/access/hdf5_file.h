/* Files opened through HDF5, and whether one that is open is still what was described. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_FILE_H
#define TSR_IO_HDF5_ACCESS_HDF5_FILE_H

#include <hdf5.h>

#include "io/hdf5/access/hdf5_noting.h"
#include "io/store.h"

/* TSR_ERR_MEMORY unless there is what HDF5 takes to open a file: where its own caches do not fit, 1.10 crashes
 * (H5AC_create). */
tsr_status tsr_h5_room(const char *file);
/* File access list: POSIX driver, no sieve buffer, locking best effort or off. Caller closes. Negative on failure. */
hid_t tsr_h5_access(bool locking);
/* Opens a file for reading (best-effort locking) that tsr_h5_probe found to be HDF5. */
tsr_status tsr_h5_open_read(const char *file, hid_t *id);
/* The same of an output: who holds its lock would go on writing the file that it replaces. */
tsr_status tsr_h5_open_replaced(const char *file, hid_t *id);
/* Opens one of our temporary files for reading and writing (no HDF5 locks: ranks share it). `advice`: what to do when
 * it fails. `refused` (hdf5_noting.h) lives until the file is closed. */
tsr_status tsr_h5_open_write(const char *file, const char *advice, tsr_h5_refused *refused, hid_t *id);
#define TSR_CHECK_FOLDER "check that its folder can be written to and has room"

/* The descriptor of a file that was opened without MPI-IO: HDF5's own. */
tsr_status tsr_h5_descriptor(hid_t file, const char *name, int *fd);
/* tsr_store_watch on that of a store. */
tsr_status tsr_h5_watch(tsr_store *store, hid_t file);
/* TSR_ERR_IO unless the open dataset is where the one was that the store's description means. */
tsr_status tsr_h5_check_address(const tsr_store *store, hid_t dataset);

#endif
