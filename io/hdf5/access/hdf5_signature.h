/* Whether a file is one of HDF5, told from its bytes alone: nothing of it is believed, and HDF5 is not asked. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_SIGNATURE_H
#define TSR_IO_HDF5_ACCESS_HDF5_SIGNATURE_H

#include "kernels/base/base.h"

/* Where HDF5's signature stands in the open file: at byte 0, 512, 1024, 2048, ... below `bytes`; -1: nowhere. False
 * where the file cannot be read, with errno. Local. */
bool tsr_hdf5_signature(int fd, int64_t bytes, int64_t *at);

/* Says whether `file` is there, regular, readable and HDF5. *bytes: its size; *user_block: bytes before the HDF5 part.
 * Either may be NULL. Local. */
tsr_status tsr_h5_probe(const char *file, int64_t *bytes, int64_t *user_block);

#endif
