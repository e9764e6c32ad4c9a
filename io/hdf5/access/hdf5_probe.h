/* Whether a file is one of HDF5, before HDF5 is asked. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_PROBE_H
#define TSR_IO_HDF5_ACCESS_HDF5_PROBE_H

#include "kernels/base/base.h"

/* Says whether `file` is there, regular, readable and HDF5. *bytes: its size; *user_block: bytes before the HDF5 part.
 * Either may be NULL. Local. */
tsr_status tsr_h5_probe(const char *file, int64_t *bytes, int64_t *user_block);

#endif
