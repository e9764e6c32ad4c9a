/* What one rank of a plan will do, by walking its steps without running them. */
#ifndef TSR_MPI_SCHEDULE_FORECAST_H
#define TSR_MPI_SCHEDULE_FORECAST_H

#include "mpi/plan/plan.h"

/* Exact: bytes a lane, flops, products */
typedef struct {
    double lane_bytes[TSR_LANE_COUNT];
    double flops;
    int64_t tiles, steps;
    double longest[TSR_LANE_COUNT]; /* seconds of the longest step by the plan's rates; 0 where it has none */
} tsr_forecast;

/* Of all bytes and flops of a lane, or of one step, by the plan's rates; 0 where it has none. */
double tsr_lane_seconds(const tsr_plan *plan, tsr_lane lane, double bytes, double flops);
tsr_status tsr_plan_forecast(const tsr_plan *plan, int rank, tsr_forecast *forecast);

#endif
