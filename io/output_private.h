/* What the output*.c share. Included by them and nothing else. */
#ifndef TSR_IO_OUTPUT_PRIVATE_H
#define TSR_IO_OUTPUT_PRIVATE_H

#include "io/hdf5_util.h"
#include "io/output.h"

/* The target of an output and what stands there now. */
typedef struct {
    char file[TSR_FILE_CHARS];    /* symbolic links followed */
    char folder[TSR_FILE_CHARS];
    char path[TSR_PATH_CHARS];    /* of the dataset */
    char run_path[TSR_PATH_CHARS + 8]; /* of its record */
    size_t bytes;                 /* of the dataset, edges of chunks included; compression takes fewer */
    bool exists;                  /* the file */
    bool others;                  /* it holds more than the dataset and its record */
    int64_t identity[5];          /* of the file, when it exists */
    int64_t file_bytes;           /* its size, 0 when there is none */
} tsr_target;

/* The checks of tsr_output_check; calls HDF5 and takes the lock itself. */
tsr_status tsr_target_check(const tsr_output_spec *spec, tsr_target *target);
/* output_sources.c. TSR_ERR_USAGE where the path was not named and the target's file is one that is read. */
tsr_status tsr_sources_check_file(const tsr_output_spec *spec, const tsr_target *target);
/* Likewise where putting the output and its record into the open target would take away what is read. The lock is
 * taken. */
tsr_status tsr_sources_check(const tsr_output_spec *spec, const tsr_target *target, hid_t file);
/* Device, inode, size and time of change of a file; false when it is not there. */
bool tsr_file_identity(const char *file, int64_t identity[5]);

/* Makes the temporary file beside the target, locked, with the target's permissions, after removing those of killed runs. TSR_ERR_EXISTS
 * while another run is writing to the same target. The caller closes *fd, which holds the lock. */
tsr_status tsr_temporary_create(const tsr_target *target, char *name, int *fd);
/* Copies the whole target into the temporary file. */
tsr_status tsr_temporary_copy(const tsr_target *target, const char *name, int fd);
/* Reserves bytes of the disk for the part [offset, offset + bytes), so that a full disk shows now. */
tsr_status tsr_temporary_allocate(const char *folder, const char *name, int fd, int64_t offset, size_t bytes);
/* Writes all of `bytes` at `offset` of a file: 0 or an errno. */
int tsr_write_all(int fd, const void *from, size_t bytes, int64_t offset);
/* What was written to it, on stable storage. */
tsr_status tsr_temporary_sync(const tsr_output *output);
tsr_status tsr_folder_sync(const char *folder);
/* The part of `file` before the last slash, "." when there is none. */
void tsr_folder_of(const char *file, char *folder);
/* The store of a chunked output (output_chunks.h). */
tsr_status tsr_encoding_open(const tsr_output *output, tsr_store **store);
/* One line for "no space left" about `folder`. */
tsr_status tsr_space_fail(const char *folder, size_t need_bytes, const char *why);

#endif
