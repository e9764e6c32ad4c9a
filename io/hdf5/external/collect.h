/* Where the elements of a dataset lie that has them in several places (io/pieces/pieces.h). Includes no HDF5. */
#ifndef TSR_IO_HDF5_EXTERNAL_COLLECT_H
#define TSR_IO_HDF5_EXTERNAL_COLLECT_H

#include "io/pieces/pieces.h"

/* Local. The pieces of what the description selects, in this process: it opens the dataset's file and those that hold
 * the pieces. desc->hdf5.root: the folder below which these must lie (beneath.h); "": none but the file itself is
 * opened. Refused with the reason: what is not there, is of another type or shape, or leads back to itself. The caller
 * leaves *pieces. */
tsr_status tsr_hdf5_collect(const tsr_store_desc *desc, tsr_pieces **pieces);

#endif
