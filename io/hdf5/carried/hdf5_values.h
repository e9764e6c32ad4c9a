/* Values of attributes and scales as HDF5 keeps them, and lists of attributes (carried.h). The lock is taken. */
#ifndef TSR_IO_HDF5_CARRIED_HDF5_VALUES_H
#define TSR_IO_HDF5_CARRIED_HDF5_VALUES_H

#include <hdf5.h>

#include "io/describe/carried.h"

/* An attribute, or a part of a dataset; the other is -1. */
typedef struct {
    hid_t attribute, dataset;
    hid_t memory, part; /* of the dataset */
} tsr_h5_values_at;

/* The type in memory of such values. Caller closes. Negative on failure. */
hid_t tsr_h5_values_type(const tsr_values *values);
/* Reads values of the shape that is set. NULL, or why there are none: static text; `most`: bytes. */
const char *tsr_h5_values_read(const tsr_h5_values_at *from, hid_t stored, size_t most, tsr_values *values);
/* Writes all of an open attribute, or of a dataset of that size; false where HDF5 does not. */
bool tsr_h5_values_write(const tsr_h5_values_at *to, const tsr_values *values);
/* Adds the attributes of an object to a list, in order of their names, and notes what is left out; `scale`: the name of
 * the scale whose they are, NULL: the dataset's own. */
void tsr_h5_attributes_read(hid_t object, const char *scale, tsr_carried_attributes *list, tsr_carried *to);
/* Writes them to an object, whose own of the same names stay; notes those that HDF5 does not take. */
void tsr_h5_attributes_write(hid_t object, const tsr_carried_attributes *list, tsr_carried *notes);

#endif
