/* Files that an HDF5 file names: found as HDF5 finds them, opened only below the folder that was allowed (beneath.h),
 * and links followed into them. The lock is taken. */
#ifndef TSR_IO_HDF5_EXTERNAL_EXTERNAL_FILE_H
#define TSR_IO_HDF5_EXTERNAL_EXTERNAL_FILE_H

#include <hdf5.h>

#include "io/files/file_state.h"
#include "io/name.h"

/* An open file of HDF5. */
typedef struct {
    hid_t file; /* -1: none */
    char name[TSR_FILE_CHARS];
    int64_t bytes;
    tsr_file_state state; /* before its first byte was read */
} tsr_h5_spot;

/* Opens it. `root`: the folder below which it must lie; "": it was named by a person, and may lie anywhere. */
tsr_status tsr_h5_spot_open(const char *file, const char *root, tsr_h5_spot *spot);
/* Closes it. The status, or where that is TSR_OK and the file has changed since, TSR_ERR_IO. */
tsr_status tsr_h5_spot_close(tsr_h5_spot *spot, tsr_status status);

/* What names a file: each has its own variable of the environment, with folders to look in first. */
typedef enum { TSR_NAMED_BY_LINK, TSR_NAMED_BY_MAPPING, TSR_NAMED_BY_STORAGE } tsr_named_by;

/* The file that HDF5 would open for `named`, which the file `in` says. TSR_ERR_FORMAT where it is not there. */
tsr_status tsr_external_find(tsr_named_by by, const char *in, const char *named, char found[TSR_FILE_CHARS]);

/* tsr_h5_resolve (hdf5_path.h) that follows external links, too, where `root` is not "": *spot becomes the file that
 * the last of them led to. */
tsr_status tsr_h5_follow(tsr_h5_spot *spot, const char *root, const char *path, char *resolved);

#endif
