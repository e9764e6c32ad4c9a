/* Element types of HDF5 and of memory. The lock is taken. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_TYPE_H
#define TSR_IO_HDF5_ACCESS_HDF5_TYPE_H

#include <hdf5.h>

#include "io/hdf5/hdf5_desc.h"
#include "kernels/base/base.h"

/* Element type. `usable` false: name says what it is, and hint what to do. */
typedef struct {
    bool usable;
    tsr_element element; /* order as in the file */
    bool standard;       /* the bytes are such elements; false: HDF5 converts */
    tsr_fields fields;   /* of complex elements */
    bool rounded;        /* to what `element` holds; what is too large becomes Inf */
    char name[160];      /* "big-endian f64", "complex numbers (compound {r, i} of f64)" */
    const char *hint;    /* static */
} tsr_h5_type;

void tsr_h5_type_of(hid_t type, tsr_h5_type *found);
/* The type in memory, native order; `fields` counts for complex ones. Caller closes. Negative on failure. */
hid_t tsr_h5_memory_type(tsr_dtype dtype, tsr_fields fields);
/* h5py's bool: an enum of one byte, FALSE = 0 and TRUE = 1. Likewise. */
bool tsr_h5_is_boolean(hid_t type);
hid_t tsr_h5_boolean_type(void);

#endif
