/* The check of products of stacks of matrices, one after the other. */
#ifndef TSR_APP_VERIFY_VERIFY_PRODUCTS_H
#define TSR_APP_VERIFY_VERIFY_PRODUCTS_H

#include "app/products/shapes.h"
#include "app/verify/verify.h"

/* tsr_verify_product of every product of `shape`, of which args has the stores of all matrices and their transposes.
 * One result for all, of the rows of all matrices. */
tsr_status tsr_verify_products(const tsr_world *world, const tsr_verify_args *args, const tsr_products *shape,
                               tsr_verify_result *result);

#endif
