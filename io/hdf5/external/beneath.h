/* Files that a file of others names are read below one folder alone, whatever names and symbolic links say. Calls no
 * HDF5. Local. */
#ifndef TSR_IO_HDF5_EXTERNAL_BENEATH_H
#define TSR_IO_HDF5_EXTERNAL_BENEATH_H

#include "io/name.h"

/* The real path of the folder that counts for an input: `folder`, or where that is "" the folder of the input's file,
 * links followed. */
tsr_status tsr_beneath_root(const char *folder, const char *file, char root[TSR_FILE_CHARS]);

/* TSR_ERR_FORMAT, with what to do, unless the regular file at the path lies below `root` when symbolic links are
 * followed. */
tsr_status tsr_beneath_path(const char *root, const char *file);
/* The same of an open file, which a link that changed meanwhile does not move. `file` is for messages. */
tsr_status tsr_beneath_open(const char *root, const char *file, int fd);

#endif
