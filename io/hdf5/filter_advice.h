/* What to do about data whose filter this HDF5 lacks. Calls no HDF5. */
#ifndef TSR_IO_HDF5_FILTER_ADVICE_H
#define TSR_IO_HDF5_FILTER_ADVICE_H

#include <stddef.h>

/* What to do about a dataset with a filter that this HDF5 lacks: text of TSR_ADVICE_CHARS. Where h5py can read it, that
 * is a command for the shell, which writes a copy beside the file. */
#define TSR_ADVICE_CHARS 2048
void tsr_h5_filter_advice(int filter, const char *file, const char *path, char *text, size_t chars);

#endif
