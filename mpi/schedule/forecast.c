#include "mpi/schedule/forecast.h"

#include "mpi/schedule/schedule.h"

typedef struct {
    const tsr_plan *plan;
    tsr_forecast *forecast;
} counting;

double tsr_lane_seconds(const tsr_plan *plan, tsr_lane lane, double bytes, double flops) {
    const double rate = plan->resources.rates.lane[lane];
    return rate > 0 ? (lane == TSR_LANE_MULTIPLY ? flops : bytes) / rate : 0;
}

static tsr_status count_step(void *context, const tsr_step *step) {
    const counting *c = context;
    tsr_forecast *forecast = c->forecast;
    const double seconds = tsr_lane_seconds(c->plan, step->lane, step->lane_bytes, step->flops);
    if (seconds > forecast->longest[step->lane]) forecast->longest[step->lane] = seconds;
    forecast->steps++;
    forecast->lane_bytes[step->lane] += step->lane_bytes;
    forecast->flops += step->flops;
    forecast->tiles += step->kind == TSR_STEP_MULTIPLY;
    return TSR_OK;
}

tsr_status tsr_plan_forecast(const tsr_plan *plan, int rank, tsr_forecast *forecast) {
    *forecast = (tsr_forecast){0};
    if (rank >= plan->p * plan->q * plan->r) return TSR_OK; /* idle */
    return plan->schedule->emit(plan, rank, count_step, &(counting){plan, forecast});
}
