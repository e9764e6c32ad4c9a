/* The buffers of schedules that sweep k in panels, counted before anything is allocated. */
#include <math.h>
#include <string.h>

#include "mpi/plan/gram.h"
#include "mpi/plan/plan_private.h"

#define SLOT_DEPTH 2      /* one being filled, one being used */
#define BUFFERS_MOST 8192 /* of one class */

/* More buffers than the executor should have to open count as all the memory there is. Sizes are sums of exact integers
 * below 2^53. */
/* `count` buffers of `bytes` for a class, in the plan's sums of memory, too. */
static void set_slots(tsr_plan *plan, tsr_slot_class slot, bool host, double count, double bytes) {
    tsr_slots *s = &plan->slots[slot];
    if (count > BUFFERS_MOST) {
        bytes = INFINITY;
        count = 1;
    }
    *s = (tsr_slots){.host = host,
                     .count = (int)count,
                     .first = plan->buffers,
                     .bytes = isinf(bytes) ? SIZE_MAX : (size_t)fmax(bytes, 1)};
    plan->buffers += (int)count;
    *(host ? &plan->host_bytes : &plan->device_bytes) += count * fmax(bytes, 1);
}

/* Buffers for what stays, or two that take turns; no more than there are panels in all. */
static double buffers_kept(const tsr_plan *plan, tsr_operand_name name, tsr_keep keep) {
    const double panels = (double)tsr_ceil_div(tsr_plan_local_k(plan), plan->panel),
                 all = panels * (double)tsr_plan_blocks(plan);
    if (keep == TSR_KEEP_NONE) return fmin(SLOT_DEPTH, all);
    const double blocks = (double)tsr_plan_side(plan, name).blocks;
    return fmax(fmin(SLOT_DEPTH, all), keep == TSR_KEEP_ALL ? panels * blocks : panels);
}

/* Reals of a panel as the kernel wants it. */
static double packed_reals(const tsr_plan *plan, tsr_operand_name name, int64_t outer) {
    const int64_t multiple = plan->resources.multiple;
    const tsr_form form = tsr_problem_form(&plan->problem, name);
    const int64_t m_or_n = tsr_round_up(outer, multiple), k = tsr_round_up(plan->panel, multiple);
    const int64_t rows = name == TSR_OPERAND_A ? m_or_n : k, cols = name == TSR_OPERAND_A ? k : m_or_n;
    return (double)(rows * tsr_form_rows(form)) * (double)tsr_plan_packed_ld(plan, cols * tsr_form_cols(form));
}

/* Panels of a Gram matrix that are A's and B's at once. They stay where the kernel reads them as they are stored and
 * they are needed again. Others take turns: beside the diagonal A's and B's come one after the other. */
static double shared_panels(const tsr_plan *plan) {
    const tsr_operand_plan *a = &plan->operand[TSR_OPERAND_A], *b = &plan->operand[TSR_OPERAND_B];
    if (!a->pack && a->keep != TSR_KEEP_NONE) return buffers_kept(plan, TSR_OPERAND_A, a->keep);
    if (!b->pack && b->keep != TSR_KEEP_NONE) return buffers_kept(plan, TSR_OPERAND_B, b->keep);
    const double depth = buffers_kept(plan, TSR_OPERAND_A, TSR_KEEP_NONE);
    return plan->blocks_m > 1 && a->keep == TSR_KEEP_NONE ? 2 * depth : depth;
}

/* Buffers for reads of panels of `bytes`: of portions where these are less in all. */
static void set_read_slots(tsr_plan *plan, tsr_operand_name name, double count, double bytes) {
    const double portion = (double)tsr_plan_portion_bytes(plan);
    const bool portions = tsr_plan_reads_portions(plan, name) && SLOT_DEPTH * portion < count * bytes;
    set_slots(plan, tsr_slot_of(TSR_SLOT_HOST_A, name), true, portions ? SLOT_DEPTH : count,
              portions ? portion : bytes);
}

/* Of a stack: what the largest group of products reads, one matrix that stays or two groups' that take turns. */
static void count_stacked(tsr_plan *plan, tsr_operand_name name) {
    const bool host_memory = plan->resources.host_memory;
    const tsr_problem *problem = &plan->problem;
    const tsr_operand *x = &problem->operand[name];
    const tsr_rect group =
        tsr_problem_stack_rect(problem, name, 0, tsr_plan_local_m(plan) / tsr_problem_product_rows(problem));
    const double count = x->common ? 1 : fmin(SLOT_DEPTH, (double)plan->blocks_m);
    const double bytes = (double)group.rows * (double)group.cols * (double)tsr_dtype_bytes(x->element.dtype);
    const int64_t rows = x->transpose ? group.cols : group.rows, cols = x->transpose ? group.rows : group.cols;
    if (!host_memory) set_read_slots(plan, name, count, bytes);
    set_slots(plan, tsr_slot_of(TSR_SLOT_PANEL_A, name), host_memory, count, bytes);
    if (plan->operand[name].pack)
        set_slots(plan, tsr_slot_of(TSR_SLOT_PACKED_A, name), host_memory, count,
                  (double)rows * (double)tsr_plan_packed_ld(plan, cols) * (double)tsr_dtype_bytes(problem->input));
}

static void count_operand(tsr_plan *plan, tsr_operand_name name) {
    if (plan->problem.batch > 1) {
        count_stacked(plan, name);
        return;
    }

    const tsr_resources *res = &plan->resources;
    const tsr_operand *x = &plan->problem.operand[name];
    const tsr_operand_plan how = plan->operand[name];
    const tsr_side side = tsr_plan_side(plan, name);
    const bool k_is_cols = tsr_problem_k_is_cols(&plan->problem, name);
    const int parts = tsr_plan_exchanges(plan, x->path) ? side.sharing : 1;
    const int64_t rows = k_is_cols ? side.local : plan->panel, cols = k_is_cols ? plan->panel : side.local;
    const double piece = (double)tsr_ceil_div(rows, parts) * (double)cols * (double)tsr_dtype_bytes(x->element.dtype);
    const bool shares = tsr_plan_shares(plan), loads = !shares || name == TSR_OPERAND_A;
    const double in_turn = shares ? shared_panels(plan) : buffers_kept(plan, name, how.pack ? TSR_KEEP_NONE : how.keep);
    if (loads && tsr_plan_path(plan, x->path) == TSR_DATA_PATH_HOST && !res->host_memory)
        set_read_slots(plan, name, buffers_kept(plan, name, how.keep_host ? TSR_KEEP_ALL : TSR_KEEP_NONE),
                       res->device_exchange ? piece : piece * parts);
    if (loads) set_slots(plan, tsr_slot_of(TSR_SLOT_PANEL_A, name), res->host_memory, in_turn, piece * parts);
    if (how.pack)
        set_slots(plan, tsr_slot_of(TSR_SLOT_PACKED_A, name), res->host_memory, buffers_kept(plan, name, how.keep),
                  packed_reals(plan, name, side.local) * (double)tsr_dtype_bytes(plan->problem.input));
}

/* From the accumulators to the file. */
static void drain_slots(tsr_plan *plan, double local_n, double ld) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    const bool host = res->host_memory;
    const bool chains = tsr_plan_chains(plan);
    double strip = (double)plan->strip, bytes = (double)tsr_problem_sum_bytes(problem);
    if (plan->r > 1) {
        set_slots(plan, TSR_SLOT_PART, host, SLOT_DEPTH, strip * ld * bytes);
        if (!host && !res->device_exchange)
            set_slots(plan, TSR_SLOT_PART_HOST, true, 1, (chains ? 1 : plan->r + 1) * strip * ld * bytes);
    }
    if (problem->add_c0) {
        double c0 = strip * local_n * (double)tsr_dtype_bytes(problem->c0.dtype);
        set_slots(plan, TSR_SLOT_C0, host, SLOT_DEPTH, c0);
        if (!host) set_slots(plan, TSR_SLOT_C0_HOST, true, SLOT_DEPTH, c0);
    }
    double out = strip * local_n * (double)tsr_dtype_bytes(problem->out);
    const int depth = problem->gram ? 2 * SLOT_DEPTH : SLOT_DEPTH; /* a strip and its mirror */
    if (tsr_plan_finishes(plan) || problem->gram || res->compares) set_slots(plan, TSR_SLOT_OUT, host, depth, out);
    if (!host && problem->c_path == TSR_DATA_PATH_HOST) set_slots(plan, TSR_SLOT_OUT_HOST, true, depth, out);
}

tsr_check_room tsr_plan_check_room(const tsr_plan *plan) {
    const tsr_problem *problem = &plan->problem;
    const int64_t multiple = plan->resources.multiple;
    const tsr_extents reals = tsr_problem_reals(problem);
    const int64_t m = tsr_plan_local_m(plan);
    const int64_t products = problem->batch > 1 ? m / tsr_problem_product_rows(problem) : 1;
    return (tsr_check_room){.rows = tsr_round_up(m, multiple) * reals.m,
                            .width = tsr_round_up(tsr_plan_local_n(plan), multiple) * reals.n,
                            .depth = tsr_round_up(plan->panel, multiple) * reals.k * products};
}

/* Rows of accumulators for a rank's `m` rows of a super-block: where k's sums are added in any order, whole strips of
 * all ranks, which begin at a Gram matrix's diagonal, too. */
static int64_t sum_rows(const tsr_plan *plan, int64_t m) {
    const int64_t padded = tsr_round_up(m, plan->resources.multiple), strips = plan->strip * plan->r;
    if (tsr_plan_chains(plan)) return padded;
    const int64_t rows = tsr_max(padded, tsr_round_up(m, strips));
    return plan->problem.gram && plan->r > 1 ? rows + strips : rows;
}

tsr_extents tsr_plan_product(const tsr_plan *plan) {
    const tsr_problem *problem = &plan->problem;
    const int64_t multiple = plan->resources.multiple;
    const tsr_extents reals = tsr_problem_reals(problem);
    const int64_t m = problem->batch > 1 ? tsr_problem_product_rows(problem) : tsr_plan_local_m(plan);
    return (tsr_extents){.m = tsr_round_up(m, multiple) * reals.m,
                         .n = tsr_round_up(tsr_plan_local_n(plan), multiple) * reals.n,
                         .k = tsr_round_up(plan->panel, multiple) * reals.k};
}

void tsr_sweep_memory(tsr_plan *plan, int sums) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    int64_t m = tsr_plan_local_m(plan), n = tsr_plan_local_n(plan);
    double ld = (double)tsr_round_up(n, res->multiple);
    for (int i = 0; i < TSR_OPERANDS && problem->k > 0; i++) count_operand(plan, (tsr_operand_name)i);
    const tsr_extents product = tsr_plan_product(plan);
    size_t workspace = res->workspace_bytes ? res->workspace_bytes(product.m, product.n, product.k) : 0;
    const tsr_check_room check = tsr_plan_check_room(plan);
    if (res->check_bytes && problem->k > 0)
        set_slots(plan, TSR_SLOT_CHECK, res->host_memory, 1,
                  (double)res->check_bytes(check.rows, check.width, check.depth));
    if (workspace > 0) set_slots(plan, TSR_SLOT_WORKSPACE, res->host_memory, 1, (double)workspace);
    const double all = (double)tsr_max(1, tsr_plan_blocks(plan));
    set_slots(plan, TSR_SLOT_SUM, res->host_memory, tsr_plan_keeps_c(plan) ? all : sums,
              (double)tsr_plan_apart(plan) * (double)sum_rows(plan, m) * ld * (double)tsr_problem_sum_bytes(problem));
    if (!tsr_plan_keeps_c(plan)) drain_slots(plan, (double)n, ld);
}
