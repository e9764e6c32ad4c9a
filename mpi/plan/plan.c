/* Making a plan for a grid: super-blocks and panels that fit. plan_search.c chooses the grid. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mpi/plan/gram.h"
#include "mpi/plan/plan_private.h"
#include "mpi/schedule/schedule.h"

#define STRIP_BYTES_TARGET (32.0 * 1024 * 1024)
/* Of a Gram matrix, whose strips are also written as columns: their rows are pieces of the file's rows */
#define STRIP_BYTES_GRAM (128.0 * 1024 * 1024)
#define STRIP_ROWS_GRAM 2048.0
#define PANEL_BYTES_HOST (128.0 * 1024 * 1024)
#define PANEL_BYTES_DEVICE (512.0 * 1024 * 1024)
#define PANEL_STEP 256         /* panels are multiples of this where k allows */
#define PANELS_WANTED_DEVICE 8 /* so that lanes overlap from early on */
#define PANELS_WANTED_HOST 4   /* there lanes share the cores, and fewer sums of C are worth more */
#define HALVE_ABOVE 4          /* sums that are as many times the limit are halved at once */

tsr_rates tsr_rates_typical(bool cuda, bool device_exchange, tsr_dtype type, int threads) {
    const double wide = (double)tsr_dtype_bytes(type) / sizeof(float);
    tsr_rates rates = {0};
    rates.lane[TSR_LANE_READ] = 4e9;
    rates.lane[TSR_LANE_UPLOAD] = 50e9;
    rates.lane[TSR_LANE_EXCHANGE] = cuda && device_exchange ? 300e9 : 5e9;
    rates.lane[TSR_LANE_PACK] = cuda ? 4000e9 : 10e9;
    rates.lane[TSR_LANE_MULTIPLY] = cuda ? 50e12 : 60e9 / wide * threads;
    rates.lane[TSR_LANE_DOWNLOAD] = cuda ? 50e9 : 10e9;
    rates.lane[TSR_LANE_WRITE] = 3e9;
    return rates;
}

/* As a socket of two years ago has it: a core fills a third of a GPU's link. */
double tsr_rate_of_memory(int threads) { return fmin(20e9 * threads, 100e9); }

/* ---- memory ---------------------------------------------------------------------------------- */

static void count_memory(tsr_plan *plan, int sums) {
    memset(plan->slots, 0, sizeof plan->slots);
    plan->buffers = 0;
    plan->device_bytes = plan->host_bytes = 0;
    plan->schedule->memory(plan, sums);
}

static bool plan_fits(const tsr_plan *plan) {
    const tsr_resources *res = &plan->resources;
    return plan->device_bytes <= (double)res->device_limit && plan->host_bytes <= (double)tsr_host_limit(res);
}

bool tsr_plan_fits_counted(tsr_plan *plan) {
    count_memory(plan, plan->slots[TSR_SLOT_SUM].count);
    return plan_fits(plan);
}

/* ---- super-blocks and panels ----------------------------------------------------------------- */

/* Sets panel and strip for the super-block chosen; every `shrink` halves them. */
static void choose_panel(tsr_plan *plan, int shrink) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    int64_t m = tsr_plan_local_m(plan), n = tsr_plan_local_n(plan);
    double scale = 1.0 / (double)((int64_t)1 << shrink);
    int64_t k = tsr_max(1, tsr_plan_local_k(plan));
    double row = (double)m * (double)tsr_dtype_bytes(problem->operand[TSR_OPERAND_A].element.dtype) +
                 (double)n * (double)tsr_dtype_bytes(problem->operand[TSR_OPERAND_B].element.dtype);
    if (res->panel > 0) {
        plan->panel = tsr_min(res->panel, k);
    } else {
        double target = plan->wider * (res->host_memory ? PANEL_BYTES_HOST : PANEL_BYTES_DEVICE);
        int64_t wanted = res->host_memory ? PANELS_WANTED_HOST : PANELS_WANTED_DEVICE;
        int64_t panel = (int64_t)fmin(target / row, 1 << 20) / PANEL_STEP * PANEL_STEP;
        panel = tsr_max(PANEL_STEP, tsr_min(panel, tsr_round_up(tsr_ceil_div(k, wanted), PANEL_STEP)));
        const int64_t range = tsr_max(1, problem->blocks.k);
        plan->panel = tsr_min(k, tsr_max(range, (int64_t)((double)panel * scale) / range * range));
    }
    if (tsr_plan_chains(plan)) plan->panel = tsr_min(plan->panel, problem->blocks.k);
    const size_t sum = tsr_problem_sum_bytes(problem), out = tsr_dtype_bytes(problem->out);
    double out_row = (double)n * (double)(sum > out ? sum : out);
    /* nothing lies between the accumulators and the store */
    const bool at_once =
        problem->c_path == TSR_DATA_PATH_MAPPED && plan->r == 1 && !tsr_plan_finishes(plan) && !problem->gram;
    const double target = problem->gram ? fmin(STRIP_BYTES_GRAM, STRIP_ROWS_GRAM * out_row) : STRIP_BYTES_TARGET;
    double strip = fmin(at_once ? INFINITY : target * scale / out_row, (double)tsr_ceil_div(m, plan->r));
    plan->strip = tsr_round_up(tsr_max(1, (int64_t)strip), problem->unit_m);
}

/* How many times the limit the sums of a super-block are: above 1 no panel can help. */
static double sums_to_limit(const tsr_plan *plan, int sums) {
    double m = (double)tsr_plan_local_m(plan), n = (double)tsr_plan_local_n(plan);
    if (tsr_plan_keeps_c(plan)) sums = (int)tsr_max(1, tsr_plan_blocks(plan));
    return sums * m * n * (double)tsr_plan_apart(plan) * (double)tsr_problem_sum_bytes(&plan->problem) /
           (double)tsr_device_limit(&plan->resources);
}

static bool fits_shrunk(tsr_plan *plan, int sums, int shrink) {
    choose_panel(plan, shrink);
    count_memory(plan, sums);
    return plan_fits(plan);
}

/* Tries panels of the current super-block size, the largest first; none when the smallest is too large. */
bool tsr_plan_fit_panels(tsr_plan *plan, int sums_when_cut, int shrinks) {
    int sums = plan->blocks_m * plan->blocks_n > 1 ? sums_when_cut : 1;
    if (sums_to_limit(plan, sums) > 1 || !fits_shrunk(plan, sums, shrinks)) return false;
    for (int shrink = 0; shrink < shrinks; shrink++)
        if (fits_shrunk(plan, sums, shrink)) return true;
    return fits_shrunk(plan, sums, shrinks);
}

/* Cuts one side of C into at least `parts` super-blocks of whole units, more than there are. */
static void cut_side(int64_t total, int64_t unit, int64_t parts, int64_t *block, int64_t *blocks) {
    int64_t size = tsr_round_up(tsr_ceil_div(total, parts), unit);
    *block = tsr_max(unit, tsr_min(size, tsr_round_up(*block, unit) - unit));
    *blocks = tsr_ceil_div(total, *block);
}

bool tsr_plan_split(tsr_plan *plan, int64_t edge, int64_t more) {
    const tsr_problem *x = &plan->problem;
    int64_t local_m = tsr_plan_local_m(plan), local_n = tsr_plan_local_n(plan);
    bool can_m = local_m > edge && local_m > x->unit_m, can_n = local_n > edge && local_n > x->unit_n;
    if (!can_m && !can_n) return false;
    if (x->gram) { /* both sides alike */
        cut_side(x->m, x->unit_m, plan->blocks_m + tsr_max(1, plan->blocks_m / more), &plan->block_m, &plan->blocks_m);
        plan->block_n = plan->block_m;
        plan->blocks_n = plan->blocks_m;
        return true;
    }
    if (can_m && (local_m >= local_n || !can_n))
        cut_side(x->m, x->unit_m, plan->blocks_m + tsr_max(1, plan->blocks_m / more), &plan->block_m, &plan->blocks_m);
    else cut_side(x->n, x->unit_n, plan->blocks_n + tsr_max(1, plan->blocks_n / more), &plan->block_n, &plan->blocks_n);
    return true;
}

bool tsr_plan_split_rows(tsr_plan *plan, int64_t edge) {
    const tsr_problem *x = &plan->problem;
    const int64_t local_m = tsr_plan_local_m(plan);
    if (local_m <= edge || local_m <= x->unit_m) return false;
    cut_side(x->m, x->unit_m, plan->blocks_m + 1, &plan->block_m, &plan->blocks_m);
    return true;
}

void tsr_plan_one_block(tsr_plan *plan) {
    const int64_t cut_m = plan->resources.cut_m, cut_n = plan->resources.cut_n;
    plan->block_m = tsr_max(1, cut_m > 0 ? tsr_min(cut_m, plan->problem.m) : plan->problem.m);
    plan->block_n = tsr_max(1, cut_n > 0 ? tsr_min(cut_n, plan->problem.n) : plan->problem.n);
    plan->blocks_m = tsr_ceil_div(plan->problem.m, plan->block_m);
    plan->blocks_n = tsr_ceil_div(plan->problem.n, plan->block_n);
}

/* The fewest super-blocks whose slots fit; small panels are tried before many blocks, tiny ones only when nothing
 * else helps. */
bool tsr_plan_fit_fewest(tsr_plan *plan) {
    static const struct {
        int sums, shrinks;
        int64_t edge;
    } rounds[] = {{2, 3, 256}, {1, 3, 32}, {1, 24, 1}};
    for (size_t round = 0; round < sizeof rounds / sizeof *rounds; round++) {
        tsr_plan_one_block(plan);
        do {
            if (tsr_plan_fit_panels(plan, rounds[round].sums, rounds[round].shrinks)) return true;
        } while (
            tsr_plan_split(plan, rounds[round].edge, sums_to_limit(plan, rounds[round].sums) > HALVE_ABOVE ? 1 : 8));
    }
    /* false, with the memory of the smallest plan counted for the refusal */
    return fits_shrunk(plan, 1, rounds[2].shrinks);
}

/* ---- a plan for one grid --------------------------------------------------------------------- */

static bool needs_pack(const tsr_problem *problem, tsr_operand_name name, int64_t multiple) {
    const tsr_operand *x = &problem->operand[name];
    const tsr_form form = tsr_problem_form(problem, name);
    const bool as_is = form == TSR_FORM_REAL || (form == TSR_FORM_BESIDE && !x->conjugate);
    return x->transpose || x->element.swapped || !as_is || tsr_dtype_part(x->element.dtype) != problem->input ||
           multiple > 1;
}

void tsr_plan_regrid(tsr_plan *plan, int p, int q, int r) {
    plan->p = p;
    plan->q = q;
    plan->r = r;
    tsr_plan_one_block(plan);
    plan->panel = tsr_max(1, tsr_plan_local_k(plan));
}

void tsr_plan_begin(const tsr_problem *problem, const tsr_resources *res, int p, int q, int r, tsr_plan *plan) {
    *plan = (tsr_plan){.problem = *problem,
                       .resources = *res,
                       .schedule = res->schedule ? res->schedule : tsr_schedules()[0],
                       .p = p,
                       .q = q,
                       .r = r,
                       .wider = 1};
    plan->resources.multiple = tsr_max(1, res->multiple);
    for (int i = 0; i < TSR_OPERANDS; i++)
        plan->operand[i].pack = needs_pack(problem, (tsr_operand_name)i, plan->resources.multiple);
    tsr_plan_regrid(plan, p, q, r);
}

tsr_status tsr_plan_refuse(const tsr_plan *plan) {
    const tsr_resources *res = &plan->resources;
    const int64_t range = plan->problem.blocks.k;
    const double host = plan->host_bytes + (double)res->host_beside;
    char need_device[32], have_device[32], need_host[32];
    const bool cut_smaller = res->panel > 0 && plan->panel > res->multiple; /* where none is given the plan has */
    char have_host[32], advice[96] = "";
    if (cut_smaller) snprintf(advice, sizeof advice, ", or a smaller --panel");
    if (range > 0)
        snprintf(advice, sizeof advice,
                 res->panel > range && plan->panel > range ? ", or --panel %lld"
                                                           : "; --reproducible takes %lld of k at once",
                 (long long)tsr_min(range, plan->panel));
    tsr_format_bytes(plan->device_bytes, need_device);
    tsr_format_bytes((double)res->device_limit, have_device);
    tsr_format_bytes(host, need_host);
    tsr_format_bytes((double)res->host_limit, have_host);
    if (plan->device_bytes > (double)res->device_limit || (res->host_memory && host > (double)res->device_limit)) {
        double need = res->host_memory ? host : plan->device_bytes;
        return tsr_fail(TSR_ERR_LIMIT,
                        "the smallest plan needs %s of device memory a rank and has %s: use --memory %.0f or more%s",
                        res->host_memory ? need_host : need_device, have_device, need, advice);
    }
    return tsr_fail(TSR_ERR_LIMIT,
                    "the smallest plan needs %s of host memory a rank and has %s: use --host-memory %.0f or more%s",
                    need_host, have_host, host, advice);
}

/* ---- what the schedule says ------------------------------------------------------------------ */

void tsr_plan_predict(const tsr_plan *plan, tsr_prediction *prediction) { plan->schedule->predict(plan, prediction); }

void tsr_plan_lower_bound(const tsr_plan *plan, double *seconds, double *exchange_bytes) {
    plan->schedule->lower_bound(plan, seconds, exchange_bytes);
}
