/* What a plan keeps in memory between super-blocks, and how finely it cuts C. The fewest super-blocks load A and B
 * least often when nothing stays; where panels can stay, A and B come once however C is cut, and cutting it lets
 * finished parts leave while the rest is computed. Of the ways that fit, the one predicted to be fastest. */
#include <math.h>

#include "mpi/plan/plan_private.h"

#define EDGE 2048      /* kernels lose speed on smaller super-blocks */
#define EDGE_LEAST 256 /* where that is what lets more stay */
#define BAND_LEAST 512 /* rows of a super-block as wide as C */
#define CUTS_MOST 64   /* super-blocks that memory does not ask for */
#define SHRINKS 3
#define PART_SECONDS 5.0 /* of a super-block, where a later run is to go on behind those that are whole */
#define PART_EDGE 512
#define PIN_BYTES_PER_SECOND 5e9 /* to allocate and pin host memory */
#define WIDER 16 /* times the usual bytes of panels, where sums are a larger part of the run than SUMS_MOST */
#define SUMS_MOST 0.02

typedef struct {
    tsr_plan plan;
    double seconds;
} choice;

/* What it takes to get the host memory, beside the predicted seconds. */
static double pin_seconds(const tsr_plan *plan) {
    return plan->resources.host_memory ? 0 : plan->host_bytes / PIN_BYTES_PER_SECOND;
}

static double seconds_of(const tsr_plan *plan) {
    tsr_prediction prediction;
    tsr_plan_predict(plan, &prediction);
    return prediction.seconds + pin_seconds(plan);
}

static void take_if_faster(choice *best, const tsr_plan *plan) {
    const double seconds = seconds_of(plan);
    if (seconds < best->seconds) *best = (choice){*plan, seconds};
}

/* Bytes of the part of an operand that a rank multiplies, as the kernel reads it: `outer` of m or n. */
static double local_bytes(const tsr_plan *plan, tsr_operand_name name, int64_t outer) {
    return (double)outer * (double)tsr_plan_local_k(plan) * (double)tsr_plan_read_bytes(plan, name);
}

/* Sets what stays of both on the device. */
static void keep(tsr_plan *plan, tsr_keep a, tsr_keep b) {
    plan->operand[TSR_OPERAND_A].keep = a;
    plan->operand[TSR_OPERAND_B].keep = b;
}

static int64_t edge_wanted(const tsr_plan *plan) { return plan->resources.edge > 0 ? plan->resources.edge : EDGE; }

/* The fewest super-blocks that fit beside what stays. */
static void try_keeping(const tsr_plan *fewest, tsr_keep a, tsr_keep b, choice *best) {
    const int64_t local_m = tsr_partition_largest(fewest->problem.m, fewest->problem.unit_m, fewest->p);
    const int64_t local_n = tsr_partition_largest(fewest->problem.n, fewest->problem.unit_n, fewest->q),
                  edge = tsr_min(EDGE_LEAST, edge_wanted(fewest));
    double least = a == TSR_KEEP_BAND ? local_bytes(fewest, TSR_OPERAND_A, tsr_min(edge, local_m)) : 0;
    if (b == TSR_KEEP_ALL) least += local_bytes(fewest, TSR_OPERAND_B, local_n);
    if (least > (double)tsr_device_limit(&fewest->resources)) return;
    tsr_plan plan = *fewest;
    keep(&plan, a, b);
    tsr_plan_one_block(&plan);
    do {
        if (!tsr_plan_fit_panels(&plan, 2, SHRINKS)) continue;
        take_if_faster(best, &plan);
        return;
    } while (tsr_plan_split(&plan, edge, 8));
}

/* All of A and B that is needed again stays: ever more super-blocks. */
static void try_cutting(const tsr_plan *fewest, choice *best) {
    tsr_plan plan = *fewest;
    tsr_plan_one_block(&plan);
    const double a = local_bytes(&plan, TSR_OPERAND_A, tsr_plan_local_m(&plan)),
                 b = local_bytes(&plan, TSR_OPERAND_B, tsr_plan_local_n(&plan));
    const bool is_cut = plan.resources.cut_m > 0; /* no finer than memory asks for */
    while (is_cut ||
           (tsr_plan_split(&plan, 2 * edge_wanted(fewest) - 1, 1) && plan.blocks_m * plan.blocks_n <= CUTS_MOST)) {
        const bool again_a = plan.blocks_n > 1, again_b = plan.blocks_m > 1;
        keep(&plan, again_a ? TSR_KEEP_ALL : TSR_KEEP_NONE, again_b ? TSR_KEEP_ALL : TSR_KEEP_NONE);
        if ((again_a ? a : 0) + (again_b ? b : 0) <= (double)tsr_device_limit(&plan.resources) &&
            tsr_plan_fit_panels(&plan, 2, SHRINKS))
            take_if_faster(best, &plan);
        if (is_cut) break;
    }
}

/* Of a Gram matrix ever more super-blocks. On one rank, or on ranks that split k, all of B stays, and of A the row that
 * is multiplied, which was loaded as part of B. On others nothing stays. Where there are two super-blocks on the
 * diagonal all ranks multiply as much. */
static void try_gram(const tsr_plan *fewest, choice *best) {
    tsr_plan plan = *fewest;
    const bool shares = tsr_plan_shares(&plan);
    tsr_plan_one_block(&plan);
    if (shares) keep(&plan, TSR_KEEP_BAND, TSR_KEEP_ALL);
    if (shares &&
        local_bytes(&plan, TSR_OPERAND_B, tsr_plan_local_n(&plan)) > (double)tsr_device_limit(&plan.resources))
        return;
    while (tsr_plan_split(&plan, tsr_min(EDGE_LEAST, edge_wanted(fewest)), 8) &&
           plan.blocks_m * plan.blocks_n <= CUTS_MOST)
        if (tsr_plan_fit_panels(&plan, 2, SHRINKS)) take_if_faster(best, &plan);
}

/* All of B stays, and C is cut into bands of whole rows, which a disk takes as they come. */
static void try_bands(const tsr_plan *fewest, choice *best) {
    tsr_plan plan = *fewest;
    tsr_plan_one_block(&plan);
    keep(&plan, TSR_KEEP_NONE, TSR_KEEP_ALL);
    if (local_bytes(&plan, TSR_OPERAND_B, tsr_plan_local_n(&plan)) > (double)tsr_device_limit(&plan.resources)) return;
    while (tsr_plan_split_rows(&plan, 2 * tsr_min(BAND_LEAST, edge_wanted(fewest)) - 1) && plan.blocks_m <= CUTS_MOST)
        if (tsr_plan_fit_panels(&plan, 2, SHRINKS)) take_if_faster(best, &plan);
}

/* What was read of an operand stays in host memory where there is room and it saves more than it takes to get the
 * memory. */
static void try_host(tsr_plan *plan, tsr_operand_name name) {
    const bool read = plan->slots[tsr_slot_of(TSR_SLOT_HOST_A, name)].count > 0;
    if (plan->resources.host_memory || !read || tsr_plan_loads(plan, name) < 2) return;
    if (plan->problem.gram && (plan->resources.parts || !tsr_plan_shares(plan)))
        return; /* ranks above the diagonal only help to read */
    const tsr_plan before = *plan;
    plan->operand[name].keep_host = true;
    if (!tsr_plan_fits_counted(plan) || seconds_of(plan) >= seconds_of(&before)) *plan = before;
}

/* Seconds that a super-block of the plan takes, about. */
static double part_seconds(const tsr_plan *plan, double seconds) {
    return seconds / (double)tsr_max(1, plan->blocks_m * plan->blocks_n);
}

/* Ever more super-blocks, until a part of C is whole after PART_SECONDS: of the ways to do so, the one predicted to be
 * fastest. Kernels lose speed on parts of less than PART_EDGE. */
static void try_parts(const tsr_plan *fewest, choice *best) {
    static const tsr_keep ways[][2] = {{TSR_KEEP_NONE, TSR_KEEP_NONE},
                                       {TSR_KEEP_NONE, TSR_KEEP_ALL},
                                       {TSR_KEEP_BAND, TSR_KEEP_ALL},
                                       {TSR_KEEP_ALL, TSR_KEEP_ALL}};
    choice cut = {.seconds = INFINITY};
    if (part_seconds(&best->plan, best->seconds) <= PART_SECONDS) return;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        tsr_plan plan = *fewest;
        if (plan.problem.gram && way > 0) break;
        keep(&plan, ways[way][0], ways[way][1]);
        tsr_plan_one_block(&plan);
        do {
            if (!tsr_plan_fit_panels(&plan, 2, SHRINKS)) continue;
            if (part_seconds(&plan, seconds_of(&plan)) > PART_SECONDS) continue;
            take_if_faster(&cut, &plan);
            break;
        } while (tsr_plan_split(&plan, 2 * tsr_min(PART_EDGE, edge_wanted(fewest)) - 1, 4));
    }
    if (cut.seconds < INFINITY) *best = cut;
}

/* Super-blocks and what stays, for panels of as many bytes as the plan says. */
static bool fit_blocks(tsr_plan *plan) {
    if (!tsr_plan_fit_fewest(plan)) return false;
    if (plan->problem.k == 0) return true;
    const tsr_plan fewest = *plan;
    const bool is_cut = fewest.resources.cut_m > 0;
    choice best = {fewest, seconds_of(&fewest)};
    if (fewest.problem.gram) {
        /* super-blocks that stay out of a run that goes on would take with them what others keep */
        if (fewest.resources.parts && !is_cut) try_parts(&fewest, &best);
        if (!fewest.resources.parts) try_gram(&fewest, &best);
        *plan = best.plan;
        return true;
    }
    const bool several = fewest.blocks_m * fewest.blocks_n > 1;
    if (fewest.blocks_n > 1) try_keeping(&fewest, TSR_KEEP_BAND, TSR_KEEP_NONE, &best);
    if (fewest.blocks_m > 1) try_keeping(&fewest, TSR_KEEP_NONE, TSR_KEEP_ALL, &best);
    if (several) try_keeping(&fewest, TSR_KEEP_BAND, TSR_KEEP_ALL, &best);
    if (several || (!fewest.resources.host_memory && !tsr_plan_keeps_c(&fewest))) try_cutting(&fewest, &best);
    if (!is_cut && fewest.problem.c_on_disk && !fewest.resources.host_memory) try_bands(&fewest, &best);
    if (!is_cut && fewest.resources.parts) try_parts(&fewest, &best);
    *plan = best.plan;
    return true;
}

/* Wider panels than usual, in smaller super-blocks where there is no other room, if sums cost much; then ever fewer:
 * sums are read and written once a panel, but the first is waited for. */
static void try_wider(const tsr_plan *begun, tsr_plan *plan) {
    const int64_t k = tsr_plan_local_k(plan);
    tsr_prediction prediction;
    if (plan->resources.host_memory || plan->resources.panel > 0 || tsr_plan_chains(plan)) return;
    tsr_plan_predict(plan, &prediction);
    choice best = {*plan, prediction.seconds + pin_seconds(plan)};
    tsr_plan wide = *begun;
    wide.wider = WIDER;
    if (prediction.sums_seconds > SUMS_MOST * prediction.seconds && fit_blocks(&wide)) take_if_faster(&best, &wide);
    for (wide = best.plan; wide.panel < k;) {
        wide.panel = tsr_min(2 * wide.panel, k);
        if (!tsr_plan_fits_counted(&wide)) break;
        take_if_faster(&best, &wide);
    }
    *plan = best.plan;
}

bool tsr_plan_fit(tsr_plan *plan) {
    const tsr_plan begun = *plan;
    if (!fit_blocks(plan)) return false;
    if (plan->problem.k == 0) return true;
    try_wider(&begun, plan);
    for (int i = 0; i < TSR_OPERANDS; i++) try_host(plan, (tsr_operand_name)i);
    return true;
}
