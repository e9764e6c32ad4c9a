/* Whether a file is one of HDF5 (hdf5_probe.h). */
#include "io/hdf5/access/hdf5_probe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/signature/signature.h"

tsr_status tsr_h5_probe(const char *file, int64_t *bytes, int64_t *user_block) {
    int64_t all, at;
    int fd = -1;
    TSR_TRY(tsr_plain_file_open(file, &fd, &all));
    const int error = tsr_hdf5_signature(fd, all, &at) ? 0 : errno;
    close(fd);
    if (error) return tsr_fail(TSR_ERR_IO, "cannot read '%s': %s; check the disk", file, strerror(error));
    if (at < 0)
        return tsr_fail(
            TSR_ERR_FORMAT,
            "'%s' (%lld bytes) is not an HDF5 file; convert it to HDF5 (MATLAB: save -v7.3), or say what its "
            "bytes are: %s:f32:ROWSxCOLS",
            file, (long long)all, file);
    if (bytes) *bytes = all;
    if (user_block) *user_block = at;
    return TSR_OK;
}
