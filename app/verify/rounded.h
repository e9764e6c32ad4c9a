/* Inputs that hold more than this program computes with, such as 80-bit floating point read as f64, or whose elements
 * stand for others: said once, and what became infinite on the way is counted. */
#ifndef TSR_APP_VERIFY_ROUNDED_H
#define TSR_APP_VERIFY_ROUNDED_H

#include "io/store.h"
#include "mpi/ranks/world.h"

/* Local; rank 0 speaks. Warns where reading the matrix rounds, or does not unpack it. */
void tsr_input_warn(const tsr_world *world, const tsr_store_desc *desc);

/* Collective, for the same matrix. `overflows`: of this rank's store; every element was read `reads` times by some
 * rank. Warns of finite elements that became Inf. */
tsr_status tsr_rounded_count(const tsr_world *world, const tsr_store_desc *desc, int64_t overflows, int64_t reads);

#endif
