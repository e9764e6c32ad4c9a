/* Attributes of HDF5 objects. The lock is taken. */
#ifndef TSR_IO_HDF5_ACCESS_HDF5_ATTRIBUTE_H
#define TSR_IO_HDF5_ACCESS_HDF5_ATTRIBUTE_H

#include <hdf5.h>

#include "kernels/base/base.h"

/* The text of an open attribute of one element, of fixed or variable length; the caller frees it. NULL when it cannot
 * be read. */
char *tsr_h5_attribute_text(hid_t attribute, hid_t type);
/* The text attribute `name` of an object, "" when there is none. */
void tsr_h5_text_of(hid_t object, const char *name, char *text, size_t chars);
/* Whether an object has the attribute `name`, and its value: NaN of what is not one number. */
bool tsr_h5_number_of(hid_t object, const char *name, double *value);

tsr_status tsr_h5_write_text(hid_t object, const char *name, const char *value);
tsr_status tsr_h5_write_number(hid_t object, const char *name, hid_t native_type, const void *value);

#endif
