/* What a run waited for, from the busy times of its ranks' lanes (run_record.h). */
#include <math.h>

#include "io/record/run_record.h"

tsr_run_bounds tsr_record_bounds(const tsr_run_record *record) {
    tsr_run_bounds found = {.limit_rank = -1, .limit_lane = "none", .slowest_rank = -1, .slowest_lane = "none"};
    double behind = -1;
    /* Ranks wait for each other in exchange: only what the one that waits least needs is work. */
    double exchange = INFINITY;
    for (int i = 0; i < record->ranks; i++)
        if (record->rank_records[i].row >= 0)
            exchange = fmin(exchange, record->rank_records[i].lane_seconds[TSR_LANE_EXCHANGE]);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        double sum = 0;
        int active = 0;
        for (int i = 0; i < record->ranks; i++)
            if (record->rank_records[i].row >= 0) {
                sum += record->rank_records[i].lane_seconds[lane];
                active++;
            }
        for (int i = 0; i < record->ranks; i++) {
            const tsr_rank_record *r = &record->rank_records[i];
            double busy = r->lane_seconds[lane], more = active > 0 ? busy - sum / active : 0;
            if (r->row < 0 || !(busy > 0)) continue;
            const bool waits = lane == TSR_LANE_EXCHANGE && busy > exchange;
            if (busy > found.limit_seconds && !waits) {
                found.limit_seconds = busy;
                found.limit_rank = r->rank;
                found.limit_lane = tsr_lane_name((tsr_lane)lane);
            }
            if (lane == TSR_LANE_EXCHANGE || more < behind || (more == behind && busy <= found.slowest_seconds))
                continue;
            behind = more;
            found.slowest_seconds = busy;
            found.slowest_rank = r->rank;
            found.slowest_lane = tsr_lane_name((tsr_lane)lane);
        }
    }
    if (behind > 0) found.behind_seconds = behind;
    if (record->seconds > 0) found.limit_share = found.limit_seconds / record->seconds;
    return found;
}
