/* Whether matrices make a product; where they do not, the message names the files and says what would fit. */
#ifndef TSR_APP_SHAPES_H
#define TSR_APP_SHAPES_H

#include "app/options.h"

/* Local. A and B as the person named them, as stored; `order` says how that person sees them. C and C0 (NULL: none)
 * must have the product's shape. TSR_ERR_SHAPE. */
tsr_status tsr_shapes_check(tsr_order order, const tsr_store_desc *a, bool transpose_a, const tsr_store_desc *b,
                            bool transpose_b, const tsr_store_desc *c, const tsr_store_desc *c0);

#endif
