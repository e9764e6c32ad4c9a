/* What the files share that make outputs: those of this folder, and those of each kind of store. */
#ifndef TSR_IO_OUTPUT_OUTPUT_PRIVATE_H
#define TSR_IO_OUTPUT_OUTPUT_PRIVATE_H

#include "io/describe/describe_wire.h"
#include "io/output/output.h"
#include "io/stores.h"

/* The target of an output and what stands there now. */
typedef struct {
    char file[TSR_FILE_CHARS]; /* symbolic links followed */
    char folder[TSR_FILE_CHARS];
    char path[TSR_PATH_CHARS];         /* of the dataset */
    char run_path[TSR_PATH_CHARS + 8]; /* of its record */
    size_t bytes;                      /* of the dataset, edges of chunks included; compression takes fewer */
    bool exists;                       /* the file */
    bool others;                       /* it holds more than the dataset and its record */
    int64_t identity[5];               /* of the file, when it exists */
    int64_t file_bytes;                /* its size, 0 when there is none */
} tsr_target;

/* How an output of a kind of store (stores.h) is made. */
typedef struct tsr_output_ops {
    const char *ending; /* of a file's name, with its dot: for one that cannot have the name that was wanted */
    /* Whether the matrix can be as it is wanted, without a look at the file. Sets target->path and run_path, and bytes
     * where these are others than the elements'. */
    tsr_status (*check)(const tsr_output_spec *spec, tsr_target *target);
    /* Whether the output may go into the target's file, which exists, or take its place. Sets file_bytes and others. */
    tsr_status (*existing)(const tsr_output_spec *spec, tsr_target *target);
    /* Makes the matrix, its elements left out, in the temporary file `name`, which is open as fd and holds a copy of
     * the target where there are others. Describes it, all but the file's name and the kind. */
    tsr_status (*make)(const tsr_output_spec *spec, const tsr_target *target, const char *name, int fd,
                       tsr_store_desc *desc);
    /* All elements are written: what else belongs into the file before it gets its name (tsr_output_publish). */
    tsr_status (*complete)(const tsr_output *output, const tsr_run_record *record, const char *command);
} tsr_output_ops;

/* The checks of tsr_output_check. */
tsr_status tsr_target_check(const tsr_output_spec *spec, tsr_target *target);
/* TSR_ERR_IO where the target's file is write-protected. */
tsr_status tsr_target_writable(const tsr_target *target);
/* Whether the source is in the target's file. */
tsr_status tsr_target_holds(const tsr_target *target, const tsr_output_source *source, bool *holds);
/* TSR_ERR_USAGE where the target's file holds what a source reads beside the file that was named. */
tsr_status tsr_target_spares(const tsr_output_spec *spec, const tsr_target *target);
/* What an output in an HDF5 file asks of HDF5: whether it may go into the target's file, and whether that
 * holds more than the dataset and its record. In this process, and takes the lock itself. */
tsr_status tsr_existing_look(const tsr_output_spec *spec, const tsr_target *target, bool *others);
/* describe.c. The same by the helper of the spec, and the question it is asked: `names` and `roles` are what sources
 * point to. */
tsr_status tsr_describe_existing(const tsr_output_spec *spec, const tsr_target *target, bool *others);
void tsr_wire_existing(tsr_wire *wire, tsr_output_spec *spec, tsr_target *target,
                       tsr_matrix_name names[2 * TSR_SOURCES_MAX], char roles[TSR_SOURCES_MAX][16]);
/* Device, inode, size and time of change of a file, where there is one. Fails where it cannot be looked at, which is
 * not that it is missing. */
tsr_status tsr_file_identity(const char *file, bool *exists, int64_t identity[5]);

/* Makes the temporary file beside the target, locked, after removing those of killed runs; only its owner may read it
 * where there is a target. TSR_ERR_EXISTS while another run is writing to the same target, or where one left an
 * unfinished output to go on with: `force` removes that. The caller closes *fd, which holds the lock. */
tsr_status tsr_temporary_create(const tsr_target *target, bool force, char *name, int *fd);
/* Calls `see` for each file beside the target whose name begins as a temporary file's does, and ends in `ending`, as
 * long as it returns TSR_OK. `after`: the name from the machine on. */
tsr_status tsr_temporary_each(const tsr_target *target, const char *ending,
                              tsr_status (*see)(void *context, const char *name, const char *after), void *context);
typedef enum { TSR_LOCK_FREE, TSR_LOCK_HELD, TSR_LOCK_UNKNOWN } tsr_lock;
/* Takes the lock that a living run has on its temporary file. A file that is open for reading alone is not locked, only
 * looked at. */
tsr_lock tsr_temporary_lock(int fd, bool writable);
/* Whether no process of this machine can have made a file of such a name. */
bool tsr_temporary_is_dead(const char *after);
/* The file that output's name leads to, its folder and what is there; without a look into it. */
tsr_status tsr_target_find(const tsr_output_spec *spec, tsr_target *target);
/* "NAME.tmp" becomes "NAME" and `ending`. */
void tsr_beside_temporary(const char *temporary, const char *ending, char *name, size_t chars);
/* Copies the whole target into the temporary file. */
tsr_status tsr_temporary_copy(const tsr_target *target, const char *name, int fd);
/* Reserves bytes of the disk for the part [offset, offset + bytes), so that a full disk shows now. */
tsr_status tsr_temporary_allocate(const char *folder, const char *name, int fd, int64_t offset, size_t bytes);
tsr_status tsr_folder_sync(const char *folder);
/* The part of `file` before the last slash, "." when there is none. */
void tsr_folder_of(const char *file, char *folder);
/* The store of a chunked output (output_chunks.h). */
tsr_status tsr_encoding_open(const tsr_output *output, tsr_store **store);
/* One line for "no space left" about `folder`. */
tsr_status tsr_space_fail(const char *folder, size_t need_bytes, const char *why);

#endif
