/* What the files of the planner share. */
#ifndef TSR_MPI_PLAN_PRIVATE_H
#define TSR_MPI_PLAN_PRIVATE_H

#include "mpi/plan.h"

/* A plan on this grid that holds all of C in one super-block and all of k in one panel: no memory is counted yet. */
void tsr_plan_begin(const tsr_problem *problem, const tsr_resources *res, int p, int q, int r, tsr_plan *plan);
/* The same on another grid. */
void tsr_plan_regrid(tsr_plan *plan, int p, int q, int r);
/* Cuts a plan that was begun into super-blocks and panels that fit; false when the smallest do not. */
bool tsr_plan_fit(tsr_plan *plan);
/* What tsr_plan_predict cannot be below, however a plan that was begun is cut; quick. */
void tsr_plan_promise(const tsr_plan *plan, double *seconds, double *exchange_bytes);
/* Error of a plan that does not fit. */
tsr_status tsr_plan_refuse(const tsr_plan *plan);

#endif
