/* A plan as a person reads it. */
#ifndef TSR_MPI_PLAN_PRINT_H
#define TSR_MPI_PLAN_PRINT_H

#include <stdio.h>

#include "mpi/plan/plan.h"

/* What --dry-run shows: the plan, what its ranks will move, and how that compares with the least possible. */
tsr_status tsr_plan_print(const tsr_plan *plan, FILE *to);
/* Parts of it: product, grid, super-blocks, panels, memory; bytes exchanged beside the lower bound and beside
 * `fewest` (tsr_plan_fewest_bytes). */
void tsr_plan_print_choices(const tsr_plan *plan, FILE *to);
void tsr_plan_print_exchange(const tsr_plan *plan, const tsr_plan *fewest, FILE *to);

#endif
