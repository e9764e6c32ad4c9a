/* SUMMA over p × q with k split over r (van de Geijn and Watts, 1997): ranks of a grid row share the panels of A, ranks
 * of a grid column those of B, and each multiplies a panel when all of it has come. r = 1 is plain SUMMA; p = q = 1 is
 * split-k; p = 1 or q = 1 is the one-dimensional layout. The order of its steps is that of panel_sweep.c. */
#include "mpi/plan/predict.h"
#include "mpi/schedule/panel_sweep.h"

static tsr_status multiply(const tsr_sweep_product *product, tsr_step_sink sink, void *context) {
    return sink(context, &product->step);
}

static tsr_status summa_emit(const tsr_plan *plan, int rank, tsr_step_sink sink, void *context) {
    return tsr_sweep_emit(plan, rank, multiply, sink, context);
}

const tsr_schedule_ops tsr_schedule_summa = {
    .name = "summa",
    .emit = summa_emit,
    .memory = tsr_sweep_memory,
    .predict = tsr_sweep_predict,
    .lower_bound = tsr_sweep_lower_bound,
};
