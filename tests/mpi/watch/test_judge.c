/* Jobs that run for hours in no time: ranks read, exchange and multiply panel by panel, second by second, and one thing
 * goes wrong, or nothing. What is judged must be the culprit, in time, and nobody where all is well. */
#include "mpi/watch/judge.h"

#include <stdlib.h>

#include "tests/check.h"

#define RANKS_MAX 9
#define PANELS 12

typedef enum { FAULT_NONE, FAULT_FROZEN, FAULT_READ, FAULT_MULTIPLY, FAULT_EXCHANGE, FAULTS } fault_kind;

static const tsr_watch_limits limits = {.quiet = 60, .file_named = 60, .file = 900, .slow = 1e9};

typedef struct {
    int ranks;
    fault_kind fault;
    int at, panel;                                            /* whose, and when */
    int read[RANKS_MAX][PANELS], multiply[RANKS_MAX][PANELS]; /* seconds */
} job;

/* A rank's lanes: the panel each is at, and when its step began; -1: it waits for one. */
typedef struct {
    tsr_signs signs;
    int read, exchange, multiply;
    int read_began, multiply_began;
    bool frozen;
} rank_state;

static int below(int limit) { return rand() % limit; }

static job make_job(void) {
    job j = {.ranks = 1 + below(RANKS_MAX), .fault = (fault_kind)below(FAULTS), .panel = below(PANELS)};
    j.at = below(j.ranks);
    if (j.ranks == 1 && (j.fault == FAULT_EXCHANGE || j.fault == FAULT_FROZEN)) j.fault = FAULT_NONE;
    const bool slow = below(2); /* a disk that takes minutes */
    for (int r = 0; r < j.ranks; r++)
        for (int p = 0; p < PANELS; p++) {
            j.read[r][p] = 1 + below(slow ? 850 : 20);
            j.multiply[r][p] = 1 + below(58);
        }
    return j;
}

static void begin(rank_state *r, tsr_lane lane, tsr_step_kind kind) {
    tsr_signs_begin(&r->signs, lane, kind, TSR_OPERAND_A);
}

static bool faulty(const job *j, fault_kind kind, int rank, int panel) {
    return j->fault == kind && j->at == rank && j->panel == panel;
}

/* One second of one rank. Reads run one panel ahead of products. */
static void live(const job *j, rank_state *all, int rank, int now) {
    rank_state *r = &all[rank];
    if (r->frozen) return;
    atomic_fetch_add(&r->signs.beats, 1);
    if (r->read < PANELS && r->read_began < 0 && r->read <= r->multiply + 1) {
        r->read_began = now;
        begin(r, TSR_LANE_READ, TSR_STEP_READ);
    }
    if (r->read_began >= 0 && now - r->read_began >= j->read[rank][r->read] && !faulty(j, FAULT_READ, rank, r->read)) {
        if (faulty(j, FAULT_FROZEN, rank, r->read)) {
            r->frozen = true;
            return;
        }
        tsr_signs_end(&r->signs, TSR_LANE_READ, now - r->read_began, 1e9);
        r->read++;
        r->read_began = -1;
        begin(r, TSR_LANE_EXCHANGE, TSR_STEP_GATHER); /* one for each panel read; waits for the others */
    }
    bool gathered = r->read > r->exchange;
    for (int other = 0; other < j->ranks; other++)
        gathered &= all[other].read > r->exchange || all[other].exchange > r->exchange;
    if (gathered && !(j->fault == FAULT_EXCHANGE && r->exchange == j->panel)) {
        tsr_signs_end(&r->signs, TSR_LANE_EXCHANGE, 1, 1e9);
        r->exchange++;
    }
    if (r->multiply < PANELS && r->multiply_began < 0 && r->exchange > r->multiply) {
        r->multiply_began = now;
        begin(r, TSR_LANE_MULTIPLY, TSR_STEP_MULTIPLY);
    }
    if (r->multiply_began >= 0 && now - r->multiply_began >= j->multiply[rank][r->multiply] &&
        !faulty(j, FAULT_MULTIPLY, rank, r->multiply)) {
        tsr_signs_end(&r->signs, TSR_LANE_MULTIPLY, now - r->multiply_began, 1e12);
        r->multiply++;
        r->multiply_began = -1;
    }
}

static bool ended(const job *j, const rank_state *all) {
    for (int r = 0; r < j->ranks; r++)
        if (all[r].multiply < PANELS) return false;
    return true;
}

static bool stalls(tsr_verdict_kind kind) { return kind != TSR_VERDICT_FINE && kind != TSR_VERDICT_FILE; }

/* Runs the job to its end or to a stall; the verdict, when it came, and how many reads were named. */
static tsr_verdict simulate(const job *j, int *now, int *named, int *since) {
    rank_state all[RANKS_MAX];
    tsr_watched watched[RANKS_MAX] = {{0}};
    memset(all, 0, sizeof all);
    for (int r = 0; r < j->ranks; r++) all[r].read_began = all[r].multiply_began = -1;
    *named = *since = 0;
    int moved[RANKS_MAX] = {0};
    for (*now = 0; !ended(j, all); ++*now) {
        CHECK(*now < 100000, "the simulation does not end: fault %d of rank %d", j->fault, j->at);
        for (int r = 0; r < j->ranks; r++) {
            tsr_signs_copy copy;
            const int before = all[r].read + all[r].exchange + all[r].multiply;
            live(j, all, r, *now);
            if (all[r].read + all[r].exchange + all[r].multiply != before) moved[r] = *now;
            tsr_signs_read(&all[r].signs, &copy);
            tsr_watch_see(&watched[r], &copy, *now);
        }
        for (int r = 0; r < j->ranks; r++)
            if (moved[r] > *since) *since = moved[r]; /* when anything moved last */
        for (;;) {
            const tsr_verdict v = tsr_watch_judge(watched, j->ranks, &limits, *now);
            if (stalls(v.kind)) return v;
            if (v.kind == TSR_VERDICT_FINE) break;
            CHECK(v.lane == TSR_LANE_READ && v.seconds > limits.file_named, "named: lane %d", v.lane);
            ++*named;
        }
    }
    return (tsr_verdict){.kind = TSR_VERDICT_FINE};
}

static void check_job(const job *j, int number) {
    static const tsr_verdict_kind expected[] = {TSR_VERDICT_FINE, TSR_VERDICT_SILENT, TSR_VERDICT_STEP,
                                                TSR_VERDICT_STEP, TSR_VERDICT_WAIT};
    static const int lanes[] = {0, -1, TSR_LANE_READ, TSR_LANE_MULTIPLY, TSR_LANE_EXCHANGE};
    int now, named, since, slow_reads = 0;
    const tsr_verdict v = simulate(j, &now, &named, &since);
    CHECK(v.kind == expected[j->fault], "job %d of %d ranks: fault %d at rank %d panel %d was judged %d at %d s",
          number, j->ranks, j->fault, j->at, j->panel, v.kind, now);
    for (int r = 0; r < j->ranks; r++)
        for (int p = 0; p < PANELS; p++) slow_reads += j->read[r][p] > 62;
    if (j->fault == FAULT_NONE) {
        CHECK((named > 0) == (slow_reads > 0) && named <= slow_reads + j->ranks * PANELS, "job %d: %d named of %d",
              number, named, slow_reads);
        return;
    }
    CHECK(v.lane == lanes[j->fault], "job %d: lane %d", number, v.lane);
    if (j->fault != FAULT_EXCHANGE) CHECK(v.rank == j->at, "job %d: rank %d for %d", number, v.rank, j->at);
    const double limit = j->fault == FAULT_READ ? limits.file : limits.quiet;
    CHECK(v.seconds > limit, "job %d: after %.0f s", number, v.seconds);
    if (j->fault != FAULT_EXCHANGE) CHECK(v.seconds < limit + 3, "job %d: after %.0f s", number, v.seconds);
    if (j->fault != FAULT_FROZEN)
        CHECK(now - since <= limit + 60, "job %d: %d s after the last move", number, now - since);
    if (v.waiting >= 0) CHECK(v.waiting != v.rank && v.waiting < j->ranks, "job %d: rank %d waits", number, v.waiting);
}

/* Both ways: a rank that is slow, and others that are not. */
static void check_stragglers(void) {
    const tsr_watch_limits slow = {.quiet = 60, .file_named = 60, .file = 900, .slow = 30};
    for (int ranks = 1; ranks <= 5; ranks++) {
        for (int late = 0; late < ranks; late++) {
            tsr_watched watched[5] = {{0}};
            int named = 0;
            for (int second = 0; second < 100; second++) {
                for (int r = 0; r < ranks; r++) {
                    tsr_signs_copy copy = {.beats = (uint32_t)second};
                    copy.lane[TSR_LANE_READ].busy_ns = (uint64_t)second * 1000000000;
                    copy.lane[TSR_LANE_READ].units = (uint64_t)second * (r == late ? 49 : r % 2 ? 99 : 101);
                    copy.lane[TSR_LANE_EXCHANGE].busy_ns = (uint64_t)second * 1000000000;
                    copy.lane[TSR_LANE_EXCHANGE].units = (uint64_t)second * (r == late ? 1 : 100);
                    copy.lane[TSR_LANE_READ].begun = copy.lane[TSR_LANE_READ].ended = (uint32_t)second;
                    tsr_watch_see(&watched[r], &copy, second);
                }
                const tsr_verdict v = tsr_watch_judge(watched, ranks, &slow, second);
                if (v.kind == TSR_VERDICT_FINE) continue;
                CHECK(v.kind == TSR_VERDICT_SLOW && v.rank == late && v.lane == TSR_LANE_READ && second > 30,
                      "%d ranks: kind %d, rank %d, lane %d", ranks, v.kind, v.rank, v.lane);
                CHECK(v.others >= 2 * v.rate, "%g beside %g", v.rate, v.others);
                named++;
            }
            CHECK(named == (ranks > 1), "%d ranks: named %d times", ranks, named);
        }
    }
}

/* Ranks that are done with their part of a check wait for one whose disk is slow: that goes on, until it does not. */
static void check_phases(void) {
    tsr_watched watched[3] = {{0}};
    tsr_signs signs[3];
    memset(signs, 0, sizeof signs);
    for (int r = 0; r < 3; r++) tsr_signs_phase(&signs[r], TSR_PHASE_CHECK);
    tsr_verdict v = {0};
    int now = 0;
    for (; now < 20000 && !stalls(v.kind); now++) {
        if (now < 5000 && now % 200 == 0) tsr_signs_phase_moves(&signs[1]);
        for (int r = 0; r < 3; r++) {
            tsr_signs_copy copy;
            atomic_fetch_add(&signs[r].beats, 1);
            tsr_signs_read(&signs[r], &copy);
            tsr_watch_see(&watched[r], &copy, now);
        }
        v = tsr_watch_judge(watched, 3, &limits, now);
    }
    CHECK(v.kind == TSR_VERDICT_STEP && v.lane == TSR_LANE_PHASE, "kind %d, lane %d", v.kind, v.lane);
    CHECK(now > 4800 + 900 && now < 4800 + 905, "after %d s", now);
}

/* An observer that was stopped itself blames nobody; ranks that left, or were never seen, are not judged. */
static void check_excuses(void) {
    tsr_watched watched[3] = {{0}};
    tsr_signs_copy copy = {.beats = 1};
    copy.lane[TSR_LANE_MULTIPLY].begun = 1;
    tsr_watch_see(&watched[0], &copy, 0);
    copy.left = 1;
    tsr_watch_see(&watched[1], &copy, 0);
    CHECK(tsr_watch_judge(watched, 3, &limits, 59).kind == TSR_VERDICT_FINE, "too soon");
    CHECK(tsr_watch_judge(watched, 3, &limits, 61).kind == TSR_VERDICT_SILENT, "too late");
    tsr_watch_excuse(watched, 3, 1000);
    CHECK(tsr_watch_judge(watched, 3, &limits, 1059).kind == TSR_VERDICT_FINE, "not excused");
    CHECK(tsr_watch_judge(watched, 3, &limits, 1061).rank == 0, "the one that is there");
    CHECK(tsr_watch_judge(watched + 1, 2, &limits, 1e6).kind == TSR_VERDICT_FINE, "left, never seen");
}

int main(void) {
    int faults[FAULTS] = {0};
    srand(16);
    for (int i = 0; i < 1000; i++) {
        const job j = make_job();
        faults[j.fault]++;
        check_job(&j, i);
    }
    for (int i = 0; i < FAULTS; i++) CHECK(faults[i] > 50, "only %d jobs with fault %d", faults[i], i);
    check_stragglers();
    check_phases();
    check_excuses();
    return 0;
}
