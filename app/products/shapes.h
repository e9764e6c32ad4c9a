/* Rows and columns as a person sees them, and whether arrays make a product by the rules of numpy.matmul. Where they do
 * not, the message names the files and says what would fit. */
#ifndef TSR_APP_PRODUCTS_SHAPES_H
#define TSR_APP_PRODUCTS_SHAPES_H

#include "io/store.h"

/* How a person sees a dataset: as h5ls shows it, or with rows and columns swapped, as MATLAB, Fortran and Julia do. */
typedef enum { TSR_ORDER_ROW, TSR_ORDER_COL } tsr_order;

/* A slice is written rows first by those who count column by column, too: the file shows these as columns. */
static inline tsr_matrix_name tsr_name_as_stored(tsr_order order, tsr_matrix_name name) {
    name.columns_first = order == TSR_ORDER_COL;
    return name;
}

/* The half of C that a person means, as it is stored. */
static inline tsr_triangle tsr_triangle_as_stored(tsr_order order, tsr_triangle triangle) {
    if (order == TSR_ORDER_ROW || triangle == TSR_TRIANGLE_FULL) return triangle;
    return triangle == TSR_TRIANGLE_LOWER ? TSR_TRIANGLE_UPPER : TSR_TRIANGLE_LOWER;
}

/* "3 x 20 x 30", as that person sees what is stored so; "a single number". Returns text. */
const char *tsr_seen_text(tsr_order order, tsr_shape stored, char text[TSR_SHAPE_CHARS]);

/* The products of A's matrices and B's, as numpy.matmul has them, for what is stored: in column order that is
 * Cᵀ = op(B)ᵀ·op(A)ᵀ, so that the left operand is B. A vector on the left is a row, on the right a column, and C lacks
 * that dimension. */
typedef struct {
    bool transpose_left, transpose_right; /* what is stored */
    bool row_dropped, col_dropped;        /* of C's matrices, which have one of them then */
    int stack_dimensions;                 /* of C, before a matrix's own */
    int64_t stack[TSR_LEADS_MAX];
    int64_t count; /* of one matrix of each operand each: the matrices of C */
} tsr_products;

/* What is done to a matrix, as the person said it: --transpose-a or --adjoint-a. */
typedef enum { TSR_AS_IT_IS, TSR_TRANSPOSED, TSR_ADJOINT } tsr_operation;
static inline tsr_operation tsr_operation_of(bool transpose, bool conjugate) {
    return !transpose ? TSR_AS_IT_IS : conjugate ? TSR_ADJOINT : TSR_TRANSPOSED;
}

/* Local. A and B as the person named them, as stored; `order` says how that person sees them. TSR_ERR_SHAPE. */
tsr_status tsr_shapes_multiply(tsr_order order, const tsr_store_desc *a, tsr_operation of_a, const tsr_store_desc *b,
                               tsr_operation of_b, tsr_products *shape);
/* Local. C or C0 (`what` says which) must have the product's shape; TSR_ERR_SHAPE. Turns a vector as the product has
 * it. */
tsr_status tsr_shapes_result(tsr_order order, const tsr_store_desc *a, tsr_operation of_a, const tsr_store_desc *b,
                             tsr_operation of_b, const tsr_products *shape, const char *what, tsr_store_desc *c);
/* Which of an operand's matrices product number `product` takes: along a dimension of one matrix always that. */
int64_t tsr_shapes_matrix(const tsr_products *shape, const tsr_store_desc *operand, int64_t product);

#endif
