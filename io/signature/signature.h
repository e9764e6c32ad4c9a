/* What an open file is, told from its signature alone: nothing of it is believed, and no library is asked. */
#ifndef TSR_IO_SIGNATURE_SIGNATURE_H
#define TSR_IO_SIGNATURE_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TSR_NPY_SIGNATURE "\x93NUMPY" /* https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#define TSR_NPY_SIGNATURE_CHARS 6

/* Where HDF5's signature stands: at byte 0, 512, 1024, 2048, ... below `bytes`; -1: nowhere. False where the file
 * cannot be read, with errno. Local. */
bool tsr_hdf5_signature(int fd, int64_t bytes, int64_t *at);

/* Whether a file whose first bytes these are, `bytes` of them, is a .npy file. Pure. */
bool tsr_npy_signature(const void *first, ssize_t bytes);

#endif
