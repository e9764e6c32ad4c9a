/* What describes a dataset beside its elements (carried.h), as HDF5 keeps it. The lock is taken. */
#ifndef TSR_IO_HDF5_CARRIED_HDF5_SCALES_H
#define TSR_IO_HDF5_CARRIED_HDF5_SCALES_H

#include <hdf5.h>

#include "io/describe/carried.h"

/* Marks a scale that a run made for its output, whose path it holds: it goes when that is replaced. */
#define TSR_SCALE_OF "tessera_scale_of"
/* What netCDF calls a scale without coordinates, before its length in 10 characters. */
#define TSR_NETCDF_NAME_ONLY "This is a netCDF dimension but not a netCDF variable."

/* Finds what the question asks for in the open file. */
void tsr_h5_carried(hid_t file, const tsr_carried_question *question, tsr_carried *carried);
/* Whether `path` is a scale that a run made for the dataset `target`, and no other dataset uses. */
bool tsr_h5_is_own_scale(hid_t file, const char *path, const char *target);

#endif
