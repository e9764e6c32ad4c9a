/* One open dataset: what it is, where its bytes are, whether it can be multiplied. The lock is taken. */
#ifndef TSR_IO_HDF5_HDF5_INSPECT_H
#define TSR_IO_HDF5_HDF5_INSPECT_H

#include <hdf5.h>

#include "io/store.h"

/* A dataset as found: what was refused about it, if anything. */
typedef struct {
    tsr_store_desc desc; /* name.file is left to the caller */
    bool matrix;         /* numbers, readable or not */
    tsr_status status;   /* TSR_OK, or why it is refused */
    char refused[400];   /* "" when it is not */
    bool outside;        /* it reads other files, which `desc.hdf5.reads` names */
    int filter;          /* the one this HDF5 lacks where that is the reason, which then has no advice in it; else 0 */
} tsr_h5_found;

/* Describes the open dataset. Fails only where HDF5 itself fails. file_bytes: the file's size. */
tsr_status tsr_h5_inspect(hid_t dataset, const char *path, int64_t file_bytes, bool allow_incomplete,
                          tsr_h5_found *found);

/* Where it reads other files: refuses it for that. */
void tsr_h5_refuse_outside(tsr_h5_found *found);

/* The attribute that marks an output not finished. */
#define TSR_INCOMPLETE "tessera_incomplete"

#endif
