/* What describes A's rows and B's columns, written beside C (carried.h, docs/usage.md). The lock is taken. */
#ifndef TSR_IO_HDF5_OUTPUT_OUTPUT_CARRIED_H
#define TSR_IO_HDF5_OUTPUT_OUTPUT_CARRIED_H

#include "io/hdf5/output/output_hdf5.h"

/* Writes scales, labels and attributes for the new dataset of the open file. What cannot be written is noted in
 * spec->carried and left out: nothing of it is worth a product. */
void tsr_h5_write_carried(const tsr_output_spec *spec, const tsr_target *target, hid_t file, hid_t dataset);
/* Before the dataset `path`, if it is there, is deleted: its scales forget it, and those that a run made for it go. */
void tsr_h5_forget_scales(hid_t file, const char *path);

/* What MATLAB wants before the HDF5 part of a file that it loads. */
#define TSR_MATLAB_BLOCK_BYTES 512
/* Whether the file is one for MATLAB: its matrices come from there, and its name ends in .mat. */
bool tsr_h5_is_for_matlab(const tsr_output_spec *spec);
tsr_status tsr_h5_write_matlab_block(const char *name, int fd);

#endif
