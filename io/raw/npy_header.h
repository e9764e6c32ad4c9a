/* Headers of NumPy's .npy files (numpy.lib.format, versions 1 to 3): what the elements are, their order and where they
 * begin. A header is input of others: it is read as text of a fixed grammar, and nothing of it is run. Local. */
#ifndef TSR_IO_RAW_NPY_HEADER_H
#define TSR_IO_RAW_NPY_HEADER_H

#include "io/name.h"

#define TSR_NPY_HEADER_MAX ((size_t)64 << 10) /* bytes that are read; numpy itself takes 10000 of text */

typedef struct {
    tsr_element element;
    tsr_shape shape; /* as numpy shows the array */
    bool fortran;    /* its first index runs fastest in the file, not its last; false where that is one */
    int64_t offset;  /* of the first element */
} tsr_npy_header;

/* Reads the header of an open file of `file_bytes`. TSR_ERR_FORMAT where it is none, or where the array is no matrix of
 * numbers that can be read, with what it is. `file` is for messages. */
tsr_status tsr_npy_header_read(int fd, const char *file, int64_t file_bytes, tsr_npy_header *header);

/* A header for `header` of this machine's byte order, padded so that the elements begin at a multiple of `align` bytes,
 * which is one of 64, to `text` of TSR_NPY_HEADER_MAX. Sets header->offset, the bytes that it takes. */
void tsr_npy_header_write(tsr_npy_header *header, int64_t align, char *text);

#endif
