/* What schedules share that sweep k in panels: for each super-block of C, panels of A and B come, are multiplied, and
 * what was summed leaves. They differ in how a panel is multiplied. */
#ifndef TSR_MPI_SCHEDULE_PANEL_SWEEP_H
#define TSR_MPI_SCHEDULE_PANEL_SWEEP_H

#include "mpi/plan/predict.h"
#include "mpi/schedule/schedule.h"

/* The product of a panel of A and one of B on one rank. */
typedef struct {
    const tsr_plan *plan;
    tsr_step step; /* all of it in one step, after which the buffers are free or kept as the plan says */
    /* Of A and B: the panel is `pieces` of `height` rows of C (A's m) or of k (B's) each, the last of them less, which
     * are gathered; this rank fetched number `mine`. 1 piece: nothing is gathered, or the kernel does not read the
     * panel as it is stored. */
    struct {
        int pieces, mine;
        int64_t height;
    } operand[TSR_OPERANDS];
} tsr_sweep_product;

/* Emits the steps of one product. */
typedef tsr_status (*tsr_sweep_multiply)(const tsr_sweep_product *product, tsr_step_sink sink, void *context);

/* As tsr_schedule_ops's emit. */
tsr_status tsr_sweep_emit(const tsr_plan *plan, int rank, tsr_sweep_multiply multiply, tsr_step_sink sink,
                          void *context);
/* As the others of tsr_schedule_ops (plan_memory.c, plan_predict.c). */
void tsr_sweep_memory(tsr_plan *plan, int sums);
void tsr_sweep_predict(const tsr_plan *plan, tsr_prediction *prediction);
void tsr_sweep_lower_bound(const tsr_plan *plan, double *seconds, double *exchange_bytes);

#endif
