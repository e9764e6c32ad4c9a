/* Records of runs in HDF5 files (run_record.h). The lock is taken. */
#ifndef TSR_IO_HDF5_OUTPUT_RECORD_HDF5_H
#define TSR_IO_HDF5_OUTPUT_RECORD_HDF5_H

#include <hdf5.h>

#include "io/record/run_record.h"

/* Writes the record into the open file as group `path`. */
tsr_status tsr_record_write_hdf5(const tsr_run_record *record, hid_t file, const char *path);
/* Whether the object is a group that a run left. */
bool tsr_h5_is_record(hid_t object);

#endif
