/* Where a matrix lies in a dataset of any number of dimensions: its own are the last two, along each other it has one
 * index (store.h). The caller has hdf5.h. */
#ifndef TSR_IO_HDF5_HDF5_PLACE_H
#define TSR_IO_HDF5_HDF5_PLACE_H

#include <hdf5.h>

#include "io/store.h"

typedef struct {
    hsize_t at[TSR_LEADS_MAX + 2];
} tsr_h5_place;

/* The coordinates of element (row, col) of matrix `matrix` of those selected, counted in the whole matrix. */
static inline tsr_h5_place tsr_h5_place_of(const tsr_store_desc *desc, int64_t matrix, int64_t row, int64_t col) {
    tsr_h5_place place = {{0}};
    int64_t lead[TSR_LEADS_MAX];
    tsr_store_leads(desc, matrix, lead);
    int next = tsr_store_lead_count(desc);
    for (int d = 0; d < next; d++) place.at[d] = (hsize_t)lead[d];
    if (!desc->rows_missing) place.at[next++] = (hsize_t)row;
    if (!desc->cols_missing) place.at[next] = (hsize_t)col;
    return place;
}

/* The coordinates where that matrix's chunk (i, j), counted in chunks, begins. */
static inline tsr_h5_place tsr_h5_chunk_place(const tsr_store_desc *desc, int64_t matrix, int64_t i, int64_t j) {
    tsr_h5_place place = tsr_h5_place_of(desc, matrix, i * desc->chunk_rows, j * desc->chunk_cols);
    for (int d = 0; d < tsr_store_lead_count(desc); d++) place.at[d] -= place.at[d] % (hsize_t)desc->lead_chunk[d];
    return place;
}

/* As many elements along the matrix's own dimensions, and one along each other. */
static inline tsr_h5_place tsr_h5_extent(const tsr_store_desc *desc, int64_t rows, int64_t cols) {
    tsr_h5_place extent = {{0}};
    int next = tsr_store_lead_count(desc);
    for (int d = 0; d < next; d++) extent.at[d] = 1;
    if (!desc->rows_missing) extent.at[next++] = (hsize_t)rows;
    if (!desc->cols_missing) extent.at[next] = (hsize_t)cols;
    return extent;
}

#endif
