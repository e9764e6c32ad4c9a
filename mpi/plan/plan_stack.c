/* The plan of a stack of products (tsr_problem.batch). Ranks share the products: p × 1 × 1, and nothing is exchanged. A
 * super-block is a group of products for each rank: one read of each operand, one launch, one write. */
#include "mpi/plan/plan_private.h"

#define GROUP_BYTES 32e6      /* of a group's matrices, as stored: more hides no more of what a step costs */
#define LEAST_GROUP_BYTES 4e6 /* fewer are not worth a step, */
#define GROUPS_WANTED 8       /* even where that leaves few groups, which the lanes work on side by side */

static double product_bytes(const tsr_problem *x) {
    double bytes = (double)tsr_problem_product_rows(x) * (double)x->n * (double)tsr_dtype_bytes(x->out);
    for (int i = 0; i < TSR_OPERANDS; i++) {
        const tsr_rect one = tsr_problem_stack_rect(x, (tsr_operand_name)i, 0, 1);
        if (!x->operand[i].common)
            bytes += (double)one.rows * (double)one.cols * (double)tsr_dtype_bytes(x->operand[i].element.dtype);
    }
    return bytes;
}

/* Products that a rank makes at a time. */
static int64_t wanted_group(const tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    const double bytes = product_bytes(x);
    const int64_t own = tsr_ceil_div(x->batch, plan->p);
    const int64_t most = (int64_t)(GROUP_BYTES / bytes), least = (int64_t)(LEAST_GROUP_BYTES / bytes);
    return tsr_max(1, tsr_min(own, tsr_min(most, tsr_max(least, tsr_ceil_div(own, GROUPS_WANTED)))));
}

static bool fits_in_groups(tsr_plan *plan, int64_t group) {
    const tsr_problem *x = &plan->problem;
    plan->block_m = tsr_min(x->batch, group * plan->p) * tsr_problem_product_rows(x);
    plan->blocks_m = tsr_ceil_div(x->m, plan->block_m);
    plan->strip = tsr_plan_local_m(plan);
    plan->slots[TSR_SLOT_SUM].count = plan->blocks_m > 1 ? 2 : 1;
    return tsr_plan_fits_counted(plan);
}

static tsr_status check_grid(const tsr_problem *problem, const tsr_resources *res) {
    const int64_t p = res->grid[0];
    if (p <= 0 || (p <= tsr_min(res->ranks, problem->batch) && res->grid[1] == 1 && res->grid[2] == 1)) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "a stack of %lld products on %d ranks is shared by p x 1 x 1 of them, not %dx%dx%d",
                    (long long)problem->batch, res->ranks, res->grid[0], res->grid[1], res->grid[2]);
}

tsr_status tsr_plan_stack(const tsr_problem *problem, const tsr_resources *res, tsr_plan *plan) {
    tsr_plan made;
    TSR_TRY(check_grid(problem, res));
    const int p = res->grid[0] > 0 ? res->grid[0] : (int)tsr_min(res->ranks, problem->batch);
    tsr_plan_begin(problem, res, p, 1, 1, &made);
    made.panel = problem->k;
    for (int i = 0; i < TSR_OPERANDS; i++)
        if (problem->operand[i].common) made.operand[i].keep = TSR_KEEP_ALL;
    int64_t group = wanted_group(&made);
    while (!fits_in_groups(&made, group) && group > 1) group = tsr_ceil_div(group, 2);
    if (!fits_in_groups(&made, group)) return tsr_plan_refuse(&made);
    *plan = made;
    return TSR_OK;
}
