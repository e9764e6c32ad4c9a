/* Where a matrix lies in a dataset of more than two dimensions: its own are the last two, and along each other it has
 * one index (name.h). The caller has hdf5.h. */
#ifndef TSR_IO_HDF5_HDF5_PLACE_H
#define TSR_IO_HDF5_HDF5_PLACE_H

#include <hdf5.h>

#include "io/store.h"

typedef struct {
    hsize_t at[TSR_LEADS_MAX + 2];
} tsr_h5_place;

/* The coordinates of the dataset's element (row, col). */
static inline tsr_h5_place tsr_h5_place_of(const tsr_store_desc *desc, int64_t row, int64_t col) {
    tsr_h5_place place;
    const int leads = desc->hdf5.leads;
    for (int d = 0; d < leads; d++) place.at[d] = (hsize_t)desc->name.lead[d];
    place.at[leads] = (hsize_t)row;
    place.at[leads + 1] = (hsize_t)col;
    return place;
}

/* The coordinates where chunk (i, j), counted in chunks, begins. */
static inline tsr_h5_place tsr_h5_chunk_place(const tsr_store_desc *desc, int64_t i, int64_t j) {
    tsr_h5_place place = tsr_h5_place_of(desc, i * desc->chunk_rows, j * desc->chunk_cols);
    for (int d = 0; d < desc->hdf5.leads; d++) place.at[d] -= place.at[d] % (hsize_t)desc->hdf5.lead_chunk[d];
    return place;
}

/* As many elements along the matrix's own dimensions, and one along each other. */
static inline tsr_h5_place tsr_h5_extent(const tsr_store_desc *desc, int64_t rows, int64_t cols) {
    tsr_h5_place extent;
    const int leads = desc->hdf5.leads;
    for (int d = 0; d < leads; d++) extent.at[d] = 1;
    extent.at[leads] = (hsize_t)rows;
    extent.at[leads + 1] = (hsize_t)cols;
    return extent;
}

#endif
