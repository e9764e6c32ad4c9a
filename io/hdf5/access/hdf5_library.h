/* HDF5 as a library: one lock around it, its error text in our messages, its version. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_LIBRARY_H
#define TSR_IO_HDF5_ACCESS_HDF5_LIBRARY_H

#include <hdf5.h>

#include "kernels/base/base.h"

/* The library is not thread-safe. Functions without hid_t in their parameters take this lock before their first HDF5
 * call; those with one expect it taken. The first call keeps HDF5 from printing, loading plugins and running an exit
 * handler. */
void tsr_h5_enter(void);
void tsr_h5_leave(void);

/* Local, in half a millisecond. Call it before MPI starts: an HDF5 that starts when MPI runs has MPI_Finalize close its
 * files, and that is a crash where one could not be closed before (a full disk). */
void tsr_h5_start(void);
/* Folders that a person named for plugins of HDF5, in its environment variable, or NULL. Its default ones are not
 * searched: a file would then say what code is loaded. It counts when HDF5 starts. */
#define TSR_PLUGIN_FOLDERS "HDF5_PLUGIN_PATH"
const char *tsr_h5_plugin_folders(void);
/* "HDF5 1.10.8 (parallel)"; returns text. */
const char *tsr_h5_version(char *text, size_t chars);
bool tsr_h5_is_parallel(void);

/* As tsr_fail, with the innermost text of HDF5's error stack after it. Call it before any other HDF5 call. A full
 * disk becomes TSR_ERR_SPACE, with what to do. */
tsr_status tsr_h5_fail(tsr_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* That innermost text, one line, "" when there is none. */
#define TSR_H5_ERROR_CHARS 400
void tsr_h5_error_text(char text[TSR_H5_ERROR_CHARS]);
/* Whether that innermost text has these words in it. */
bool tsr_h5_error_says(const char *words);

#endif
