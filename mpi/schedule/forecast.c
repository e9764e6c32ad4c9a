#include "mpi/schedule/forecast.h"

#include "mpi/schedule/schedule.h"

static tsr_status count_step(void *context, const tsr_step *step) {
    tsr_forecast *forecast = context;
    forecast->steps++;
    forecast->lane_bytes[step->lane] += step->lane_bytes;
    forecast->flops += step->flops;
    forecast->tiles += step->kind == TSR_STEP_MULTIPLY;
    return TSR_OK;
}

tsr_status tsr_plan_forecast(const tsr_plan *plan, int rank, tsr_forecast *forecast) {
    *forecast = (tsr_forecast){0};
    if (rank >= plan->p * plan->q * plan->r) return TSR_OK; /* idle */
    return plan->schedule->emit(plan, rank, count_step, forecast);
}
