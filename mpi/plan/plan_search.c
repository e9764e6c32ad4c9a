/* The choice of a grid: of every p × q × r the one predicted to be fastest, and of those as fast the one that
 * exchanges the fewest bytes. Exhaustive, but a grid is cut into super-blocks only where a lower bound of its
 * prediction, which is quick, leaves it a chance. */
#include <math.h>

#include "mpi/plan/plan_private.h"
#include "mpi/schedule/schedule.h"

#define AS_FAST 1.05          /* predictions closer than this are equal: they are not more exact */
#define MOST_UPLOAD_SHARE 0.5 /* share of the run that the upload lane may take where it does the exchange's work */

/* Called for every grid, with a plan that was begun on it. */
typedef void (*grid_visitor)(void *context, tsr_plan *candidate);

/* That k can be split into. */
static int64_t most_parts(const tsr_problem *x) { return tsr_max(1, tsr_ceil_div(x->k, tsr_max(1, x->blocks.k))); }

/* Every grid of at least `least` ranks that is not wider than the problem. */
static void visit_grids(const tsr_problem *x, const tsr_resources *res, int64_t least, grid_visitor visit,
                        void *context) {
    tsr_plan candidate;
    int64_t p_most = tsr_min(res->ranks, tsr_max(1, x->m));
    tsr_plan_begin(x, res, 1, 1, 1, &candidate);
    for (int64_t p = 1; p <= p_most; p++) {
        int64_t q_most = tsr_min(res->ranks / p, tsr_max(1, x->n));
        for (int64_t q = 1; q <= q_most; q++) {
            const bool whole_k = x->c_path == TSR_DATA_PATH_DEVICE;
            int64_t r_most = whole_k ? 1 : tsr_min(res->ranks / (p * q), most_parts(x));
            for (int64_t r = tsr_max(1, tsr_ceil_div(least, p * q)); r <= r_most; r++) {
                tsr_plan_regrid(&candidate, (int)p, (int)q, (int)r);
                visit(context, &candidate);
            }
        }
    }
}

/* ---- the fastest ----------------------------------------------------------------------------- */

typedef struct {
    double seconds; /* of the best so far */
    double bytes;
    bool found;
    tsr_plan best;
    tsr_plan unfit; /* the first grid that did not fit */
    bool has_unfit;
    /* of grids that exchange as many bytes, the one that cuts k least, then n: whole rows are long pieces of files */
    bool cut_less;
} search;

/* The grid that promises most. */
static void visit_lower_bound(void *context, tsr_plan *candidate) {
    search *s = context;
    double seconds, bytes;
    tsr_plan_lower_bound(candidate, &seconds, &bytes);
    if (seconds < s->seconds) {
        s->seconds = seconds;
        s->best = *candidate;
    }
}

static bool fits(search *s, tsr_plan *candidate, tsr_prediction *prediction) {
    if (!tsr_plan_fit(candidate)) {
        if (!s->has_unfit) {
            s->unfit = *candidate;
            s->has_unfit = true;
        }
        return false;
    }
    tsr_plan_predict(candidate, prediction);
    return true;
}

static void visit_fastest(void *context, tsr_plan *candidate) {
    search *s = context;
    tsr_prediction prediction;
    double seconds, bytes;
    tsr_plan_lower_bound(candidate, &seconds, &bytes);
    if (seconds >= s->seconds) return;
    tsr_plan fitted = *candidate;
    if (fits(s, &fitted, &prediction) && prediction.seconds < s->seconds) {
        s->seconds = prediction.seconds;
        s->best = fitted;
        s->found = true;
    }
}

/* Of grids as fast as s->seconds, the fewest bytes. s->seconds stays. */
static void visit_fewest(void *context, tsr_plan *candidate) {
    search *s = context;
    tsr_prediction prediction;
    double seconds, bytes;
    const bool rather =
        s->cut_less && (candidate->r < s->best.r || (candidate->r == s->best.r && candidate->q < s->best.q));
    const double least = rather ? nextafter(s->bytes, INFINITY) : s->bytes; /* below which a grid is better */
    tsr_plan_lower_bound(candidate, &seconds, &bytes);
    if (seconds > s->seconds || bytes >= least) return;
    tsr_plan fitted = *candidate;
    if (!fits(s, &fitted, &prediction) || prediction.seconds > s->seconds ||
        prediction.lane_bytes[TSR_LANE_EXCHANGE] >= least)
        return;
    s->bytes = prediction.lane_bytes[TSR_LANE_EXCHANGE];
    s->best = fitted;
}

static tsr_status plan_search(const tsr_problem *problem, const tsr_resources *res, tsr_plan *plan) {
    search s = {.seconds = INFINITY};
    tsr_prediction prediction;
    visit_grids(problem, res, 1, visit_lower_bound, &s);
    s.seconds = INFINITY;
    tsr_plan first = s.best;
    if (fits(&s, &first, &prediction)) {
        s.seconds = prediction.seconds;
        s.best = first;
        s.found = true;
    }
    visit_grids(problem, res, 1, visit_fastest, &s);
    if (!s.found) return tsr_plan_refuse(&s.unfit);
    tsr_plan_predict(&s.best, &prediction);
    s.bytes = prediction.lane_bytes[TSR_LANE_EXCHANGE];
    s.seconds = prediction.seconds * AS_FAST;
    s.cut_less = true; /* its bytes are panels', which are moved; those of sums are also added */
    /* no rank is left idle to save bytes */
    visit_grids(problem, res, (int64_t)s.best.p * s.best.q * s.best.r, visit_fewest, &s);
    *plan = s.best;
    return TSR_OK;
}

void tsr_plan_fewest_bytes(const tsr_plan *plan, tsr_plan *fewest) {
    search s = {.seconds = INFINITY, .best = *plan};
    tsr_prediction prediction;
    *fewest = *plan;
    if (plan->problem.batch > 1) return; /* nothing is exchanged */
    tsr_plan_predict(plan, &prediction);
    s.bytes = prediction.lane_bytes[TSR_LANE_EXCHANGE];
    visit_grids(&plan->problem, &plan->resources, (int64_t)plan->p * plan->q * plan->r, visit_fewest, &s);
    *fewest = s.best;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static tsr_status plan_forced(const tsr_problem *problem, const tsr_resources *res, tsr_plan *plan) {
    const int *g = res->grid;
    if ((int64_t)g[0] * g[1] * g[2] > res->ranks)
        return tsr_fail(
            TSR_ERR_USAGE,
            "grid %dx%dx%d needs %lld ranks and the job has %d: start more ranks or choose a smaller --grid", g[0],
            g[1], g[2], (long long)g[0] * g[1] * g[2], res->ranks);
    tsr_plan_begin(problem, res, g[0], g[1], g[2], plan);
    return tsr_plan_fit(plan) ? TSR_OK : tsr_plan_refuse(plan);
}

/* What stays in the accumulators is neither summed over ranks nor scaled. */
static tsr_status check_kept(const tsr_problem *x, const tsr_resources *res) {
    if (x->c_path != TSR_DATA_PATH_DEVICE || (x->alpha == 1 && !x->add_c0 && res->grid[2] <= 1)) return TSR_OK;
    return tsr_fail(
        TSR_ERR_USAGE,
        "C can stay on the device where it is op(A) op(B) alone and k is not split: alpha is %g, %s, r is %d", x->alpha,
        x->add_c0 ? "C0 is added" : "no C0 is added", (int)tsr_max(1, res->grid[2]));
}

/* Ranks that split k have whole ranges of it, and panels are whole ranges. */
static tsr_status check_blocks(const tsr_problem *x, const tsr_resources *res) {
    const int64_t range = x->blocks.k;
    if (range == 0) return TSR_OK;
    if (res->grid[2] > most_parts(x))
        return tsr_fail(TSR_ERR_USAGE,
                        "--grid %dx%dx%d: --reproducible cuts k at multiples of %lld, so k = %lld has %lld parts: use "
                        "--grid %dx%dx%lld, or leave it out",
                        res->grid[0], res->grid[1], res->grid[2], (long long)range, (long long)x->k,
                        (long long)most_parts(x), res->grid[0], res->grid[1], (long long)most_parts(x));
    if (res->panel > 0 && res->panel < x->k && res->panel % range != 0)
        return tsr_fail(TSR_ERR_USAGE, "--panel %lld: --reproducible cuts k at multiples of %lld: use --panel %lld",
                        (long long)res->panel, (long long)range, (long long)tsr_round_up(res->panel, range));
    return TSR_OK;
}

/* Where copying whole panels takes no more than MOST_UPLOAD_SHARE of a run that is as fast, nothing is exchanged.
 * The model does not know what that saves: exchanges want multiprocessors, of which kernels hold all, so that each
 * waits for the end of a kernel, and the next kernel for it. */
static void copy_panels(tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    bool shared = false;
    for (int i = 0; i < TSR_OPERANDS; i++)
        shared = shared ||
                 /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the plan holds its problem */
                 (x->operand[i].path == TSR_DATA_PATH_MAPPED && tsr_plan_side(plan, (tsr_operand_name)i).sharing > 1);
    tsr_prediction prediction, before;
    tsr_plan candidate = *plan;
    if (!shared || plan->resources.host_memory || !plan->resources.device_exchange || x->k == 0) return;
    candidate.copies_panels = true;
    if (!tsr_plan_fits_counted(&candidate)) return;
    tsr_plan_predict(plan, &before);
    tsr_plan_predict(&candidate, &prediction);
    if (prediction.seconds <= AS_FAST * before.seconds &&
        prediction.lane_seconds[TSR_LANE_UPLOAD] <= MOST_UPLOAD_SHARE * prediction.seconds)
        *plan = candidate;
}

static tsr_status plan_scheduled(const tsr_problem *problem, const tsr_resources *res, tsr_plan *plan) {
    TSR_TRY(res->grid[0] > 0 ? plan_forced(problem, res, plan) : plan_search(problem, res, plan));
    copy_panels(plan);
    return TSR_OK;
}

/* Of all schedules, the one predicted to be fastest, the first of equals. The first must fit: its error is told. */
static tsr_status plan_any(const tsr_problem *problem, const tsr_resources *res, tsr_plan *plan) {
    tsr_resources tried = *res;
    tsr_prediction best, prediction;
    tsr_plan other;
    const tsr_schedule_ops *const *schedules = tsr_schedules();
    tried.schedule = schedules[0];
    TSR_TRY(plan_scheduled(problem, &tried, plan));
    tsr_plan_predict(plan, &best);
    for (int i = 1; schedules[i]; i++) {
        tried.schedule = schedules[i];
        if (plan_scheduled(problem, &tried, &other) != TSR_OK) {
            tsr_message_set("");
            continue;
        }
        tsr_plan_predict(&other, &prediction);
        if (prediction.seconds >= best.seconds) continue;
        *plan = other;
        best = prediction;
    }
    return TSR_OK;
}

tsr_status tsr_plan_make(const tsr_problem *problem, const tsr_resources *res, tsr_plan *plan) {
    tsr_plan made;
    TSR_TRY(check_blocks(problem, res));
    if (problem->batch > 1) return tsr_plan_stack(problem, res, plan);
    TSR_TRY(check_kept(problem, res));
    TSR_TRY(res->schedule ? plan_scheduled(problem, res, &made) : plan_any(problem, res, &made));
    *plan = made;
    return TSR_OK;
}
