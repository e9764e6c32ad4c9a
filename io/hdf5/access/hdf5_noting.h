/* HDF5 files under file drivers of our own. What a disk refuses while such a file is written is noted, and HDF5 is told
 * that it was written: a file that HDF5 1.10 cannot write to its end cannot be closed either, and then it crashes when
 * the process exits, which need not be ours. The caller has the lock of HDF5 (hdf5_library.h). */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_NOTING_H
#define TSR_IO_HDF5_ACCESS_HDF5_NOTING_H

#include <hdf5.h>

#include "kernels/base/base.h"

/* What was refused: an errno, of the first; 0: nothing. It lives until the file is closed. */
typedef struct {
    int error;
} tsr_h5_refused;

/* Sets a driver for files that are written, all of them, on an access list; false: HDF5 says why not. */
bool tsr_h5_set_writing(hid_t access, tsr_h5_refused *refused);
/* Closes the dataset and the file, where they are open. `status` unless something was refused, whatever came of it. */
tsr_status tsr_h5_close_written(hid_t file, hid_t dataset, const char *name, const tsr_h5_refused *refused,
                                tsr_status status);
/* TSR_ERR_IO or TSR_ERR_SPACE where something was refused, and TSR_OK. */
tsr_status tsr_h5_check_written(const char *name, const tsr_h5_refused *refused);

/* A driver that moves metadata alone. Of raw data it notes where HDF5 would read or write it, and moves nothing: so
 * HDF5 says where a chunk is, or gives one its place, and others move its bytes. */

/* Raw data that HDF5 asked for, or handed over, since `count` was set to 0: how often, and the last time's place. */
typedef struct {
    int count;
    int64_t address;
    size_t bytes;
} tsr_h5_noted;

/* Opens the file for reading, or with `refused` for writing; the caller closes *id, and *noted is gone with it.
 * TSR_ERR_FORMAT, and TSR_ERR_IO for writing: "cannot open 'name' " and then `advice`. */
tsr_status tsr_h5_open_noting(const char *name, tsr_h5_refused *refused, const char *advice, hid_t *id,
                              tsr_h5_noted **noted);

#endif
