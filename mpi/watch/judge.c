/* What signs of life mean (judge.h). */
#include "mpi/watch/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_SHARE 0.5 /* of the others' median rate: below it a rank is a straggler */

void tsr_signs_read(tsr_signs *signs, tsr_signs_copy *copy) {
    memset(copy, 0, sizeof *copy);
    copy->beats = atomic_load(&signs->beats);
    copy->left = atomic_load(&signs->left);
    for (int i = 0; i < TSR_WATCHED_LANES; i++) {
        tsr_lane_signs *lane = &signs->lane[i];
        copy->lane[i].ended = atomic_load(&lane->ended); /* before `begun`: never ahead of it */
        copy->lane[i].begun = atomic_load(&lane->begun);
        copy->lane[i].kind = atomic_load(&lane->kind);
        copy->lane[i].operand = atomic_load(&lane->operand);
        copy->lane[i].busy_ns = atomic_load(&lane->busy_ns);
        copy->lane[i].units = atomic_load(&lane->units);
    }
}

void tsr_watch_see(tsr_watched *rank, const tsr_signs_copy *signs, double now) {
    const tsr_signs_copy *old = &rank->signs;
    if (!rank->seen || old->beats != signs->beats) rank->beat_at = now;
    for (int i = 0; i < TSR_WATCHED_LANES; i++) {
        if (rank->seen && old->lane[i].begun == signs->lane[i].begun && old->lane[i].ended == signs->lane[i].ended)
            continue;
        rank->moved_at[i] = now;
        rank->file_named[i] = false;
    }
    rank->signs = *signs;
    rank->seen = true;
}

void tsr_watch_excuse(tsr_watched *ranks, int count, double seconds) {
    for (int r = 0; r < count; r++) {
        ranks[r].beat_at += seconds;
        for (int i = 0; i < TSR_WATCHED_LANES; i++) ranks[r].moved_at[i] += seconds;
    }
}

/* ---- stalls ---------------------------------------------------------------------------------- */

static bool judged(const tsr_watched *rank) { return rank->seen && !rank->signs.left; }

static bool busy(const tsr_watched *rank, int lane) {
    return rank->signs.lane[lane].begun != rank->signs.lane[lane].ended;
}

static bool of_files(int lane, const tsr_watch_limits *limits) {
    return lane == TSR_LANE_READ || lane == TSR_LANE_WRITE || lane == TSR_LANE_PHASE ||
           (limits->host && lane != TSR_LANE_EXCHANGE);
}

/* How long the lane's step has made no sign while its rank was alive. Ranks that are done with their part of a phase
 * wait for the others, so a phase has stood still only for as long as it has on all of them. */
static double still_for(const tsr_watched *ranks, int count, int rank, int lane) {
    double moved = ranks[rank].moved_at[lane];
    for (int r = 0; r < count && lane == TSR_LANE_PHASE; r++)
        if (judged(&ranks[r]) && busy(&ranks[r], lane) && ranks[r].moved_at[lane] > moved)
            moved = ranks[r].moved_at[lane];
    return ranks[rank].beat_at - moved;
}

/* A rank whose exchange has waited longest; -1: none waits. */
static int longest_exchange(const tsr_watched *ranks, int count, double now, double *seconds) {
    int longest = -1;
    *seconds = 0;
    for (int r = 0; r < count; r++) {
        const double waits = now - ranks[r].moved_at[TSR_LANE_EXCHANGE];
        if (!judged(&ranks[r]) || !busy(&ranks[r], TSR_LANE_EXCHANGE) || (longest >= 0 && waits <= *seconds)) continue;
        longest = r;
        *seconds = waits;
    }
    return longest;
}

tsr_verdict tsr_watch_judge_beats(const tsr_watched *ranks, int count, const tsr_watch_limits *limits, double now) {
    tsr_verdict verdict = {.lane = -1, .waiting = -1};
    for (int r = 0; r < count; r++) {
        const double silent = now - ranks[r].beat_at;
        if (!judged(&ranks[r]) || silent <= limits->quiet || silent <= verdict.seconds) continue;
        verdict.kind = TSR_VERDICT_SILENT;
        verdict.rank = r;
        verdict.seconds = silent;
    }
    return verdict;
}

/* The step that is furthest beyond its limit. */
static tsr_verdict judge_steps(const tsr_watched *ranks, int count, const tsr_watch_limits *limits) {
    tsr_verdict verdict = {.lane = -1, .waiting = -1};
    double beyond = 0;
    for (int r = 0; r < count; r++) {
        for (int lane = 0; lane < TSR_WATCHED_LANES; lane++) {
            const double waits = still_for(ranks, count, r, lane);
            const double limit = of_files(lane, limits) ? limits->file : limits->quiet;
            if (lane == TSR_LANE_EXCHANGE || !judged(&ranks[r]) || !busy(&ranks[r], lane) || waits - limit <= beyond)
                continue;
            beyond = waits - limit;
            verdict = (tsr_verdict){.kind = TSR_VERDICT_STEP, .rank = r, .lane = lane, .seconds = waits, .waiting = -1};
        }
    }
    return verdict;
}

/* An exchange is the victim of whatever its peers wait for, so it is to blame only when nothing else is under way and
 * no rank has made a step for as long as it waits. Where nobody does anything at all the limit of files holds. */
static tsr_verdict judge_waits(const tsr_watched *ranks, int count, const tsr_watch_limits *limits, double now) {
    tsr_verdict verdict = {.lane = -1, .waiting = -1};
    double still = -1; /* seconds since anything moved */
    for (int r = 0; r < count; r++) {
        if (!judged(&ranks[r])) continue;
        for (int lane = 0; lane < TSR_WATCHED_LANES; lane++) {
            const double waits = now - ranks[r].moved_at[lane];
            if (lane != TSR_LANE_EXCHANGE && busy(&ranks[r], lane)) return verdict;
            if (still < 0 || waits < still) still = waits;
        }
    }
    double seconds;
    const int rank = longest_exchange(ranks, count, now, &seconds);
    if (still <= (rank >= 0 ? limits->quiet : limits->file)) return verdict;
    verdict.kind = TSR_VERDICT_WAIT;
    verdict.rank = rank >= 0 ? rank : 0;
    verdict.lane = rank >= 0 ? TSR_LANE_EXCHANGE : -1;
    verdict.seconds = rank >= 0 ? seconds : still;
    return verdict;
}

/* ---- what is named --------------------------------------------------------------------------- */

static tsr_verdict name_file(tsr_watched *ranks, int count, const tsr_watch_limits *limits) {
    for (int r = 0; r < count; r++) {
        for (int lane = 0; lane < TSR_WATCHED_LANES; lane++) {
            const double waits = still_for(ranks, count, r, lane);
            if (!judged(&ranks[r]) || !of_files(lane, limits) || !busy(&ranks[r], lane) || ranks[r].file_named[lane] ||
                waits <= limits->file_named)
                continue;
            ranks[r].file_named[lane] = true;
            return (tsr_verdict){.kind = TSR_VERDICT_FILE, .rank = r, .lane = lane, .seconds = waits, .waiting = -1};
        }
    }
    return (tsr_verdict){.lane = -1, .waiting = -1};
}

static int by_size(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double rate(const tsr_watched *rank, int lane) {
    return 1e9 * (double)rank->signs.lane[lane].units / (double)rank->signs.lane[lane].busy_ns;
}

/* A lane that has done too little to be compared counts neither for nor against anybody. An exchange waits for others,
 * and a phase has no rate. */
static bool has_rate(const tsr_watched *rank, int lane, const tsr_watch_limits *limits) {
    return judged(rank) && lane != TSR_LANE_EXCHANGE && lane != TSR_LANE_PHASE && rank->signs.lane[lane].units > 0 &&
           (double)rank->signs.lane[lane].busy_ns > 1e9 * limits->slow / 4;
}

static double median_of_others(const tsr_watched *ranks, int count, int rank, int lane, const tsr_watch_limits *limits,
                               double *rates) {
    int others = 0;
    for (int r = 0; r < count; r++)
        if (r != rank && has_rate(&ranks[r], lane, limits)) rates[others++] = rate(&ranks[r], lane);
    if (others == 0) return 0;
    qsort(rates, (size_t)others, sizeof *rates, by_size);
    return rates[(others - 1) / 2];
}

static tsr_verdict name_straggler(tsr_watched *ranks, int count, const tsr_watch_limits *limits) {
    tsr_verdict verdict = {.lane = -1, .waiting = -1};
    double *rates = malloc((size_t)count * sizeof *rates);
    for (int r = 0; rates && r < count && verdict.kind == TSR_VERDICT_FINE; r++) {
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
            if (ranks[r].slow_named[lane] || !has_rate(&ranks[r], lane, limits) ||
                (double)ranks[r].signs.lane[lane].busy_ns <= 1e9 * limits->slow)
                continue;
            const double others = median_of_others(ranks, count, r, lane, limits, rates);
            if (rate(&ranks[r], lane) >= SLOW_SHARE * others) continue;
            ranks[r].slow_named[lane] = true;
            verdict = (tsr_verdict){.kind = TSR_VERDICT_SLOW,
                                    .rank = r,
                                    .lane = lane,
                                    .seconds = 1e-9 * (double)ranks[r].signs.lane[lane].busy_ns,
                                    .rate = rate(&ranks[r], lane),
                                    .others = others,
                                    .waiting = -1};
            break;
        }
    }
    free(rates);
    return verdict;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

tsr_verdict tsr_watch_judge(tsr_watched *ranks, int count, const tsr_watch_limits *limits, double now) {
    tsr_verdict verdict = tsr_watch_judge_beats(ranks, count, limits, now);
    double seconds;
    if (verdict.kind == TSR_VERDICT_FINE) verdict = judge_steps(ranks, count, limits);
    if (verdict.kind == TSR_VERDICT_FINE) verdict = judge_waits(ranks, count, limits, now);
    if (verdict.kind != TSR_VERDICT_FINE) {
        const int waiting = longest_exchange(ranks, count, now, &seconds);
        verdict.waiting = waiting == verdict.rank ? -1 : waiting;
        return verdict;
    }
    verdict = name_file(ranks, count, limits);
    return verdict.kind != TSR_VERDICT_FINE ? verdict : name_straggler(ranks, count, limits);
}

const char *tsr_watch_doing(const tsr_signs_copy *signs, int lane, char *to) {
    static const char *const phases[] = {
#define X(code, text) text,
        TSR_PHASE_LIST(X)
#undef X
    };
    const int kind = signs->lane[lane].kind;
    if (lane == TSR_LANE_PHASE) snprintf(to, 64, "%s", phases[kind]);
    else
        snprintf(to, 64, "%s lane, %s of %s", tsr_lane_name((tsr_lane)lane), tsr_step_kind_name((tsr_step_kind)kind),
                 tsr_operand_text((tsr_operand_name)signs->lane[lane].operand));
    return to;
}
