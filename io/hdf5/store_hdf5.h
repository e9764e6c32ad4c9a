/* Datasets in HDF5 files as stores. Includes no HDF5. */
#ifndef TSR_IO_HDF5_STORE_HDF5_H
#define TSR_IO_HDF5_STORE_HDF5_H

#include "io/describe/carried.h"
#include "io/stores.h"

extern const tsr_store_kind tsr_hdf5_kind;
extern const struct tsr_output_ops tsr_hdf5_output; /* output_hdf5.c */

/* tsr_store_describe in this process. Without a path the only two-dimensional numeric dataset is meant; candidates are
 * listed otherwise. */
tsr_status tsr_hdf5_describe(const tsr_matrix_name *name, tsr_store_desc *desc);
/* Its two parts. What is asked of HDF5: a description of the whole dataset, with the name of the file that holds it;
 * *called_so: what looks like a slice belongs to the dataset's name. And what is not: the slice, and where the file
 * lies. `root`: the folder of the other files that may be opened (io/hdf5/external/beneath.h); "": none is. */
tsr_status tsr_hdf5_find(const tsr_matrix_name *name, const char *root, tsr_store_desc *desc, bool *called_so);
tsr_status tsr_hdf5_take_part(const tsr_matrix_name *name, bool called_so, tsr_store_desc *desc);

/* Local. Where they are: HDF5's index of chunks is read, and none of their bytes. `places`: one for each. */
tsr_status tsr_hdf5_find_chunks(const tsr_store_desc *desc, tsr_chunk_range range, tsr_chunk_place *places);

/* Local. What describes a dataset beside its elements (carried.h). */
tsr_status tsr_hdf5_carried(const tsr_carried_question *question, tsr_carried *carried);

/* Local. Every dataset of a file, in name order. `root` as above: "" refuses those that read other files. */
tsr_status tsr_hdf5_list(const char *file, const char *root, tsr_list_sink sink, void *context);

#endif
