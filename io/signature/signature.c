/* Signatures of files (signature.h). */
#include "io/signature/signature.h"

#include <string.h>

#include "io/files/file_bytes.h"

#define HDF5_SIGNATURE "\211HDF\r\n\032\n"
#define HDF5_CHARS 8

bool tsr_hdf5_signature(int fd, int64_t bytes, int64_t *at) {
    char there[HDF5_CHARS];
    *at = -1;
    for (int64_t offset = 0; *at < 0 && offset + HDF5_CHARS <= bytes; offset = offset ? offset * 2 : 512) {
        const ssize_t chars = tsr_read_at(fd, there, HDF5_CHARS, offset);
        if (chars < 0) return false;
        if (chars == HDF5_CHARS && memcmp(there, HDF5_SIGNATURE, HDF5_CHARS) == 0) *at = offset;
    }
    return true;
}

bool tsr_npy_signature(const void *first, ssize_t bytes) {
    return bytes >= TSR_NPY_SIGNATURE_CHARS && memcmp(first, TSR_NPY_SIGNATURE, TSR_NPY_SIGNATURE_CHARS) == 0;
}
