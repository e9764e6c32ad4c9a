/* What the files share that put an output into an HDF5 file. */
#ifndef TSR_IO_HDF5_OUTPUT_OUTPUT_HDF5_H
#define TSR_IO_HDF5_OUTPUT_OUTPUT_HDF5_H

#include <hdf5.h>

#include "io/output/output_private.h"

/* output_existing.c: `check` and `existing` of tsr_output_ops. */
tsr_status tsr_hdf5_output_check(const tsr_output_spec *spec, tsr_target *target);
tsr_status tsr_hdf5_output_existing(const tsr_output_spec *spec, tsr_target *target);
/* output_sources.c. TSR_ERR_USAGE where the path was not named and the target's file is one that is read. */
tsr_status tsr_sources_check_file(const tsr_output_spec *spec, const tsr_target *target);
/* Likewise where putting the output and its record into the open target would take away what is read. The lock is
 * taken. */
tsr_status tsr_sources_check(const tsr_output_spec *spec, const tsr_target *target, hid_t file);

#endif
