/* What a plan will take, in closed form, and how few bytes any schedule could exchange. */
#ifndef TSR_MPI_PLAN_PREDICT_H
#define TSR_MPI_PLAN_PREDICT_H

#include "mpi/plan/plan.h"

/* The cost model's answer for a plan: the busiest rank's, in closed form. */
typedef struct {
    /* as the lane's record counts them; exchange: received and used; multiply: 0 */
    double lane_bytes[TSR_LANE_COUNT];
    double lane_seconds[TSR_LANE_COUNT]; /* busy */
    /* of the multiply lane: every panel but the first of a super-block reads and writes its sums again */
    double sums_seconds;
    double flops;
    double steps;   /* panels of all super-blocks */
    double seconds; /* first read to last byte written */
} tsr_prediction;
/* The lane that is busy longest, the first of several. */
tsr_lane tsr_prediction_busiest(const tsr_prediction *prediction);
/* By the plan's schedule. */
void tsr_plan_predict(const tsr_plan *plan, tsr_prediction *prediction);
/* What the prediction cannot be below, however a plan that was begun is cut; quick. */
void tsr_plan_lower_bound(const tsr_plan *plan, double *seconds, double *exchange_bytes);

/* Bytes that some rank must receive from others, whatever the schedule, when `ranks` ranks share the work or the
 * data evenly and each element of A and B is in the memory of one rank at first: a rank that does mnk/P
 * multiplications needs x of A, y of B and z of C with x·y·z ≥ (mnk/P)² (Loomis and Whitney) and at least 1/P of
 * each (Irony, Toledo, Tiskin 2004; with its best constants, without a memory limit: Al Daas, Ballard, Grigori,
 * Kumar, Rouse, "Tight memory-independent parallel matrix multiplication communication lower bounds", SPAA 2022).
 * Types of different size weigh their elements. */
double tsr_exchange_bound(const tsr_problem *x, int ranks);

#endif
