/* Paths inside an HDF5 file, followed without ever leaving it, and the objects they lead to. The lock is taken. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_PATH_H
#define TSR_IO_HDF5_ACCESS_HDF5_PATH_H

#include <hdf5.h>

#include "kernels/base/base.h"

/* Follows `path` (absolute) link by link. Hard links and soft links inside the file only: TSR_ERR_FORMAT for
 * external and user-defined links, TSR_ERR_NOT_FOUND for what is not there. `resolved` (TSR_PATH_CHARS) is free of
 * soft links. */
tsr_status tsr_h5_resolve(hid_t file, const char *file_name, const char *path, char *resolved);
/* The same, showing every link on the way before it is followed: an absolute path whose groups are free of soft links,
 * and what of the path comes behind it. */
typedef void (*tsr_h5_link_sink)(void *context, hid_t file, const char *link, const char *rest);
tsr_status tsr_h5_walk(hid_t file, const char *file_name, const char *path, tsr_h5_link_sink each, void *context,
                       char *resolved);
/* Which file an external link names, for messages: "'other.h5'". */
void tsr_h5_link_file(hid_t file, const char *link, char *text, size_t chars);
/* Whether two open objects of one open file are one, whatever links led to them. */
bool tsr_h5_same_object(hid_t a, hid_t b);
/* Where an open object's header is in its file; -1 where HDF5 fails. */
int64_t tsr_h5_address(hid_t object);

#endif
