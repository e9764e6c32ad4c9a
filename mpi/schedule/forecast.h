/* What one rank of a plan will do, by walking its steps without running them. */
#ifndef TSR_MPI_SCHEDULE_FORECAST_H
#define TSR_MPI_SCHEDULE_FORECAST_H

#include "mpi/plan/plan.h"

/* Exact: bytes a lane, flops, products */
typedef struct {
    double lane_bytes[TSR_LANE_COUNT];
    double flops;
    int64_t tiles, steps;
} tsr_forecast;

tsr_status tsr_plan_forecast(const tsr_plan *plan, int rank, tsr_forecast *forecast);

#endif
