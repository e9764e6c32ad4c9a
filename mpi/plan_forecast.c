/* What a plan will do, counted by walking its schedule without running it. */
#include "mpi/schedule.h"

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
    return tsr_schedule_summa(plan, rank, count_step, forecast);
}

double tsr_forecast_seconds(const tsr_forecast *forecast, const tsr_rates *rates, tsr_lane *busiest) {
    double most = 0;
    tsr_lane which = TSR_LANE_MULTIPLY;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        double seconds = (lane == TSR_LANE_MULTIPLY ? forecast->flops : forecast->lane_bytes[lane]) / rates->lane[lane];
        if (seconds > most) most = seconds, which = (tsr_lane)lane;
    }
    if (busiest) *busiest = which;
    return most;
}
