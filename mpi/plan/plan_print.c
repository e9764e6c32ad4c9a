/* A plan as a person reads it (--dry-run). */
#include "mpi/plan/print.h"

#include "mpi/plan/predict.h"
#include "mpi/schedule/forecast.h"
#include "mpi/schedule/schedule.h"

#define COUNTED_STEPS 2e6 /* panels of all ranks that are walked one by one: a second or so */

static const char *const slot_names[TSR_SLOT_COUNT] = {
#define X(code, name) name,
    TSR_SLOT_LIST(X)
#undef X
};

static void print_memory(const tsr_plan *plan, FILE *to) {
    char each[32], all[32], limit[32];
    fprintf(to, "memory a rank\n");
    for (int i = 0; i < TSR_SLOT_COUNT; i++) {
        const tsr_slots *s = &plan->slots[i];
        if (s->count == 0) continue;
        fprintf(to, "  %-28s %d x %10s  %s\n", slot_names[i], s->count, tsr_format_bytes((double)s->bytes, each),
                s->host ? "host" : "device");
    }
    if (!plan->resources.host_memory)
        fprintf(to, "  device in all                %14s  of %s\n", tsr_format_bytes(plan->device_bytes, all),
                tsr_format_bytes((double)plan->resources.device_limit, limit));
    fprintf(to, "  host in all                  %14s  of %s\n", tsr_format_bytes(plan->host_bytes, all),
            tsr_format_bytes((double)plan->resources.host_limit, limit));
}

static const char *what_stays(tsr_operand_plan how, int64_t times) {
    if (how.keep == TSR_KEEP_ALL) return "all panels on the device";
    if (how.keep == TSR_KEEP_BAND) return "the panels of one row of super-blocks on the device";
    if (how.keep_host) return "all that was read in host memory";
    return times > 1 ? "nothing, it is read again" : "nothing, it is needed once";
}

/* What later super-blocks find in memory. */
static void print_kept(const tsr_plan *plan, FILE *to) {
    if (plan->blocks_m * plan->blocks_n < 2 || plan->problem.k == 0) return;
    fprintf(to, "what stays     of A %s, of B %s; super-blocks %s\n",
            what_stays(plan->operand[TSR_OPERAND_A], plan->blocks_n),
            what_stays(plan->operand[TSR_OPERAND_B], plan->problem.batch > 1 ? 1 : plan->blocks_m),
            tsr_plan_grows(plan) ? "in growing squares" : "row by row");
}

static void print_blocks(const tsr_extents *blocks, FILE *to) {
    if (blocks->k == 0) return;
    fprintf(to, "reproducible   C is cut ");
    if (blocks->m == 1 && blocks->n == 1) fprintf(to, "anywhere");
    else fprintf(to, "at multiples of %lld rows and %lld columns", (long long)blocks->m, (long long)blocks->n);
    fprintf(to, ", k at multiples of %lld: ranks, grid, panels and memory change no bit\n", (long long)blocks->k);
}

static void print_gram(const tsr_plan *plan, FILE *to) {
    const tsr_problem *x = &plan->problem;
    const long long reads = (long long)tsr_plan_reads(plan, TSR_OPERAND_A);
    if (x->mirrored)
        fprintf(to, "Gram matrices  op(B) is op(A) transposed: many at a time, all of each is multiplied, and the %s\n",
                x->triangle == TSR_TRIANGLE_FULL    ? "half above its diagonal is the mirror of the other"
                : x->triangle == TSR_TRIANGLE_LOWER ? "lower half written"
                                                    : "upper half written");
    if (!x->gram) return;
    fprintf(to, "Gram matrix    op(B) is op(A) transposed: half of C is multiplied, the %s written\n",
            x->triangle == TSR_TRIANGLE_FULL    ? "other is its mirror; both are"
            : x->triangle == TSR_TRIANGLE_LOWER ? "lower one is"
                                                : "upper one is");
    if (tsr_plan_shares(plan))
        fprintf(to, "               A is read %s, for both factors\n", reads <= 1 ? "once" : "again for super-blocks");
    else
        fprintf(to, "               A is read for each factor%s: C does not fit one rank, or --grid cuts it\n",
                reads > 1 ? " and again for super-blocks" : "");
}

void tsr_plan_print_choices(const tsr_plan *plan, FILE *to) {
    const tsr_problem *x = &plan->problem;
    int active = plan->p * plan->q * plan->r;
    char alpha[TSR_COMPLEX_CHARS], beta[TSR_COMPLEX_CHARS];
    tsr_complex_text((tsr_complex){x->alpha, x->alpha_imag}, alpha);
    tsr_complex_text((tsr_complex){x->beta, x->beta_imag}, beta);
    fprintf(to, "product        C (%lld x %lld, %s) = %s op(A) (%lld x %lld) op(B) (%lld x %lld)", (long long)x->m,
            (long long)x->n, tsr_dtype_name(x->out), alpha, (long long)x->m, (long long)x->k, (long long)x->k,
            (long long)x->n);
    if (x->add_c0) fprintf(to, " + %s C0", beta);
    fprintf(to, ", computed in %s", tsr_dtype_name(x->type));
    if (x->input != x->type) fprintf(to, " from %s", tsr_dtype_name(x->input));
    fprintf(to, "\n");
    print_gram(plan, to);
    print_blocks(&x->blocks, to);
    if (tsr_plan_chains(plan))
        fprintf(to,
                "split k        products of at most %lld ranges stay apart on a rank; sums go from rank to rank in the "
                "order of k, and the last of %d writes C\n",
                (long long)tsr_plan_apart(plan), plan->r);
    fprintf(to, "grid           %d x %d x %d over m, n, k: %d of %d ranks, schedule %s\n", plan->p, plan->q, plan->r,
            active, plan->resources.ranks, plan->schedule->name);
    fprintf(to, "super-blocks   %lld x %lld of at most %lld x %lld; %lld x %lld on a rank\n", (long long)plan->blocks_m,
            (long long)plan->blocks_n, (long long)plan->block_m, (long long)plan->block_n,
            (long long)tsr_plan_local_m(plan), (long long)tsr_plan_local_n(plan));
    int64_t k = tsr_plan_local_k(plan);
    fprintf(to, "panels         %lld of k = %lld for each super-block; strips of %lld rows of C\n",
            (long long)tsr_ceil_div(k, plan->panel), (long long)plan->panel, (long long)plan->strip);
    if (plan->copies_panels)
        fprintf(to, "panels         copied whole by every rank that multiplies them: copies have the time, exchanges "
                    "would hold up the kernels\n");
    print_kept(plan, to);
    print_memory(plan, to);
}

static void print_ratio(double bytes, double bound, FILE *to) {
    if (bound > 0) fprintf(to, ", %.2f times", bytes / bound);
}

void tsr_plan_print_exchange(const tsr_plan *plan, const tsr_plan *fewest, FILE *to) {
    char text[32];
    tsr_prediction mine, least;
    int active = plan->p * plan->q * plan->r;
    double bound = tsr_exchange_bound(&plan->problem, active);
    tsr_plan_predict(plan, &mine);
    tsr_plan_predict(fewest, &least);
    fprintf(to, "exchange       %s into the busiest rank", tsr_format_bytes(mine.lane_bytes[TSR_LANE_EXCHANGE], text));
    print_ratio(mine.lane_bytes[TSR_LANE_EXCHANGE], bound, to);
    fprintf(to, "%s the least any schedule needs on %d ranks (%s; Al Daas et al., SPAA 2022)\n", bound > 0 ? "" : ";",
            active, tsr_format_bytes(bound, text));
    fprintf(to, "fewest bytes   %d x %d x %d of all grids on as many ranks: %s", fewest->p, fewest->q, fewest->r,
            tsr_format_bytes(least.lane_bytes[TSR_LANE_EXCHANGE], text));
    print_ratio(least.lane_bytes[TSR_LANE_EXCHANGE], bound, to);
    fprintf(to, "; predicted to take %.2f of this plan's time\n", least.seconds / mine.seconds);
}

/* ---- what the ranks will move ---------------------------------------------------------------- */

/* Exact where that takes no longer than a moment, else of the busiest rank by the cost model, and as if all were as
 * busy. */
static tsr_status count_lanes(const tsr_plan *plan, tsr_forecast *most, tsr_forecast *all, bool *exact) {
    tsr_prediction model;
    int active = plan->p * plan->q * plan->r;
    tsr_plan_predict(plan, &model);
    *exact = model.steps * active < COUNTED_STEPS;
    *most = *all = (tsr_forecast){0};
    for (int rank = 0; rank < active && *exact; rank++) {
        tsr_forecast one;
        TSR_TRY(tsr_plan_forecast(plan, rank, &one));
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
            all->lane_bytes[lane] += one.lane_bytes[lane];
            if (one.lane_bytes[lane] > most->lane_bytes[lane]) most->lane_bytes[lane] = one.lane_bytes[lane];
        }
        all->flops += one.flops;
        if (one.flops > most->flops) most->flops = one.flops;
    }
    if (*exact) return TSR_OK;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        most->lane_bytes[lane] = model.lane_bytes[lane];
        all->lane_bytes[lane] = active * model.lane_bytes[lane];
    }
    most->flops = model.flops;
    all->flops = active * model.flops;
    return TSR_OK;
}

tsr_status tsr_plan_print(const tsr_plan *plan, FILE *to) {
    tsr_forecast most, all;
    bool exact;
    tsr_plan_print_choices(plan, to);
    TSR_TRY(count_lanes(plan, &most, &all, &exact));
    fprintf(to, "lane           busiest rank      all ranks%s\n", exact ? "" : " (about)");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        char one_text[32], all_text[32];
        fprintf(to, "  %-10s %14s %14s\n", tsr_lane_name((tsr_lane)lane),
                tsr_format_bytes(most.lane_bytes[lane], one_text), tsr_format_bytes(all.lane_bytes[lane], all_text));
    }
    fprintf(to, "  %-10s %10.4g GFLOP %9.4g GFLOP\n", "flops", most.flops / 1e9, all.flops / 1e9);
    tsr_plan fewest;
    tsr_plan_fewest_bytes(plan, &fewest);
    tsr_plan_print_exchange(plan, &fewest, to);
    return TSR_OK;
}
