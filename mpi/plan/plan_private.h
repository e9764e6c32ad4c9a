/* What the files of the planner share. */
#ifndef TSR_MPI_PLAN_PLAN_PRIVATE_H
#define TSR_MPI_PLAN_PLAN_PRIVATE_H

#include "mpi/plan/plan.h"
#include "mpi/plan/predict.h"

/* A plan on this grid that holds all of C in one super-block and all of k in one panel: no memory is counted yet. */
void tsr_plan_begin(const tsr_problem *problem, const tsr_resources *res, int p, int q, int r, tsr_plan *plan);
/* The same on another grid. */
void tsr_plan_regrid(tsr_plan *plan, int p, int q, int r);
/* Cuts a plan that was begun into super-blocks and panels that fit, and chooses what stays in memory, so that it is
 * predicted to be fastest; false when the smallest do not fit. */
bool tsr_plan_fit(tsr_plan *plan);
/* The fewest super-blocks that fit when nothing stays that need not. */
bool tsr_plan_fit_fewest(tsr_plan *plan);
/* The largest panels that fit the super-blocks and what the plan keeps, halved at most `shrinks` times; false when
 * none does. */
bool tsr_plan_fit_panels(tsr_plan *plan, int sums_when_cut, int shrinks);
/* The memory of a plan that was fitted and keeps more now; false when that is too much. */
bool tsr_plan_fits_counted(tsr_plan *plan);
/* All of C in one super-block, or where its cut is given in the largest that there may be. */
void tsr_plan_one_block(tsr_plan *plan);
/* Cuts the longer side of the local super-block into one part more, or where there are many into one in `more` more;
 * false when both are at most `edge`. */
bool tsr_plan_split(tsr_plan *plan, int64_t edge, int64_t more);
/* Cuts the rows of the super-blocks into one part more; false when a rank has at most `edge` of them. */
bool tsr_plan_split_rows(tsr_plan *plan, int64_t edge);
/* The plan of a stack of products (plan_stack.c). */
tsr_status tsr_plan_stack(const tsr_problem *problem, const tsr_resources *resources, tsr_plan *plan);
/* Error of a plan that does not fit. */
tsr_status tsr_plan_refuse(const tsr_plan *plan);

#endif
