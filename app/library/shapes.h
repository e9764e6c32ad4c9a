/* Rows and columns as a person sees them, and whether matrices make a product: where they do not, the message names the
 * files and says what would fit. */
#ifndef TSR_APP_LIBRARY_SHAPES_H
#define TSR_APP_LIBRARY_SHAPES_H

#include "io/store.h"

/* How a person sees a dataset: as h5ls shows it, or with rows and columns swapped, as MATLAB, Fortran and Julia do. */
typedef enum { TSR_ORDER_ROW, TSR_ORDER_COL } tsr_order;

/* A slice is written rows first by those who count column by column, too: the file shows these as columns. */
static inline tsr_matrix_name tsr_name_as_stored(tsr_order order, tsr_matrix_name name) {
    name.columns_first = order == TSR_ORDER_COL;
    return name;
}

/* Local. A and B as the person named them, as stored; `order` says how that person sees them. C and C0 (NULL: none)
 * must have the product's shape. TSR_ERR_SHAPE. */
tsr_status tsr_shapes_check(tsr_order order, const tsr_store_desc *a, bool transpose_a, const tsr_store_desc *b,
                            bool transpose_b, const tsr_store_desc *c, const tsr_store_desc *c0);

#endif
