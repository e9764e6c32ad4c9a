/* What other programs write around their matrices. The lock is taken. */
#ifndef TSR_IO_HDF5_HDF5_FOREIGN_H
#define TSR_IO_HDF5_HDF5_FOREIGN_H

#include <hdf5.h>

#include "kernels/base/base.h"

/* Whether the object at `path` (absolute) serves a matrix and is none itself: types of Octave and parts of its sparse
 * matrices, indexes of pandas, cells of MATLAB, tables of our records. */
bool tsr_h5_is_internal(hid_t file, const char *path);
/* Whether the dataset is the value of an Octave variable. *other (static text): what it is instead of a matrix, and
 * what to do; NULL for a matrix. */
bool tsr_h5_is_octave(hid_t dataset, const char *path, const char **other);
/* The dataset that a group stands for: the value of an Octave variable, the one block of a pandas frame. `inner`:
 * TSR_PATH_CHARS. Fails with what the group is where it stands for none. */
tsr_status tsr_h5_matrix_of(hid_t group, const char *file, const char *path, char *inner);

#endif
