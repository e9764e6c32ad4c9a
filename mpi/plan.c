/* Making a plan for a grid: shapes, the memory every choice needs, super-blocks and panel. plan_search.c chooses the grid. */
#include <math.h>
#include <string.h>

#include "mpi/plan_private.h"

#define STRIP_BYTES_TARGET (32.0 * 1024 * 1024)
#define PANEL_BYTES_TARGET_HOST (128.0 * 1024 * 1024)
#define PANEL_BYTES_TARGET_DEVICE (512.0 * 1024 * 1024)
#define PANEL_STEP 256      /* panels are multiples of this where k allows */
#define PANELS_WANTED_DEVICE 8 /* so that lanes overlap from early on */
#define PANELS_WANTED_HOST 4   /* there lanes share the cores, and fewer sums of C are worth more */
#define SLOT_DEPTH 2        /* one being filled, one being used */

tsr_status tsr_problem_make(tsr_operand a, tsr_operand b, const tsr_operand *c0, double alpha, double beta, tsr_problem *problem) {
    int64_t m = a.transpose ? a.cols : a.rows, k = a.transpose ? a.rows : a.cols;
    int64_t kb = b.transpose ? b.cols : b.rows, n = b.transpose ? b.rows : b.cols;
    if (k != kb)
        return tsr_fail(TSR_ERR_SHAPE, "op(A) is %lld x %lld and op(B) is %lld x %lld: the columns of the first must be the rows of the second; see --transpose-a and --transpose-b",
                        (long long)m, (long long)k, (long long)kb, (long long)n);
    if (beta != 0 && !c0) return tsr_fail(TSR_ERR_USAGE, "beta is %g but there is no C0 to scale: give it with --add C0", beta);
    if (beta != 0 && (c0->rows != m || c0->cols != n))
        return tsr_fail(TSR_ERR_SHAPE, "C0 is %lld x %lld but the product is %lld x %lld: they must be the same", (long long)c0->rows,
                        (long long)c0->cols, (long long)m, (long long)n);
    bool wide = tsr_dtype_compute(a.element.dtype) == TSR_F64 || tsr_dtype_compute(b.element.dtype) == TSR_F64;
    tsr_dtype type = wide ? TSR_F64 : TSR_F32;
    *problem = (tsr_problem){.m = m, .n = n, .k = alpha == 0 ? 0 : k, .a = a, .b = b, .add_c0 = beta != 0, .alpha = alpha, .beta = beta,
                             .input = type, .type = type, .out = type, .unit_m = 1, .unit_n = 1};
    if (beta != 0) problem->c0 = c0->element;
    return TSR_OK;
}

tsr_rates tsr_rates_typical(bool cuda, bool device_exchange, tsr_dtype type, int threads) {
    double wide = type == TSR_F64 ? 2 : 1;
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

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void slots_set(tsr_plan *plan, tsr_slot_class slot, bool host, int count, double bytes) {
    tsr_slots *s = &plan->slots[slot];
    *s = (tsr_slots){.host = host, .count = count, .first = plan->buffers, .bytes = (size_t)fmax(bytes, 1)};
    plan->buffers += count;
    *(host ? &plan->host_bytes : &plan->device_bytes) += count * fmax(bytes, 1);
}

static void operand_slots(tsr_plan *plan, const tsr_operand *x, bool k_is_cols, int64_t outer, int parts, bool pack, tsr_slot_class host_slot,
                          tsr_slot_class panel_slot, tsr_slot_class packed_slot) {
    const tsr_resources *res = &plan->resources;
    int64_t rows = k_is_cols ? outer : plan->panel, cols = k_is_cols ? plan->panel : outer;
    double piece = (double)tsr_ceil_div(rows, parts) * (double)cols * (double)tsr_dtype_bytes(x->element.dtype);
    if (!res->host_memory) slots_set(plan, host_slot, true, SLOT_DEPTH, res->device_exchange ? piece : piece * parts);
    slots_set(plan, panel_slot, res->host_memory, SLOT_DEPTH, piece * parts);
    int64_t m_or_n = tsr_round_up(outer, res->multiple), k = tsr_round_up(plan->panel, res->multiple);
    double packed = packed_slot == TSR_SLOT_PACKED_A ? (double)m_or_n * (double)tsr_plan_packed_ld(plan, k) : (double)k * (double)tsr_plan_packed_ld(plan, m_or_n);
    if (pack) slots_set(plan, packed_slot, res->host_memory, SLOT_DEPTH, packed * (double)tsr_dtype_bytes(plan->problem.input));
}

/* Fills slots and bytes from the choices already in the plan. Sizes are sums of exact integers below 2^53. */
static void plan_memory(tsr_plan *plan, int sums) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    bool host = res->host_memory;
    int64_t m = tsr_ceil_div(plan->block_m, plan->p), n = tsr_ceil_div(plan->block_n, plan->q);
    double ld = (double)tsr_round_up(n, res->multiple), bytes = (double)tsr_dtype_bytes(problem->type);
    memset(plan->slots, 0, sizeof plan->slots);
    plan->buffers = 0, plan->device_bytes = plan->host_bytes = 0;
    if (problem->k > 0) {
        operand_slots(plan, &problem->a, !problem->a.transpose, m, plan->q, plan->pack_a, TSR_SLOT_HOST_A, TSR_SLOT_PANEL_A, TSR_SLOT_PACKED_A);
        operand_slots(plan, &problem->b, problem->b.transpose, n, plan->p, plan->pack_b, TSR_SLOT_HOST_B, TSR_SLOT_PANEL_B, TSR_SLOT_PACKED_B);
    }
    size_t workspace = res->workspace_bytes ? res->workspace_bytes(tsr_round_up(m, res->multiple), (int64_t)ld, tsr_round_up(plan->panel, res->multiple)) : 0;
    if (workspace > 0) slots_set(plan, TSR_SLOT_WORKSPACE, host, 1, (double)workspace);
    int64_t sum_rows = tsr_max(tsr_round_up(m, res->multiple), tsr_round_up(m, plan->strip * plan->r));
    slots_set(plan, TSR_SLOT_SUM, host, sums, (double)sum_rows * ld * bytes);
    double strip = (double)plan->strip;
    if (plan->r > 1) {
        slots_set(plan, TSR_SLOT_PART, host, SLOT_DEPTH, strip * ld * bytes);
        if (!host && !res->device_exchange) slots_set(plan, TSR_SLOT_PART_HOST, true, 1, (plan->r + 1) * strip * ld * bytes);
    }
    if (problem->add_c0) {
        double c0 = strip * (double)n * (double)tsr_dtype_bytes(problem->c0.dtype);
        slots_set(plan, TSR_SLOT_C0, host, SLOT_DEPTH, c0);
        if (!host) slots_set(plan, TSR_SLOT_C0_HOST, true, SLOT_DEPTH, c0);
    }
    double out = strip * (double)n * (double)tsr_dtype_bytes(problem->out);
    slots_set(plan, TSR_SLOT_OUT, host, SLOT_DEPTH, out);
    if (!host) slots_set(plan, TSR_SLOT_OUT_HOST, true, SLOT_DEPTH, out);
}

static bool plan_fits(const tsr_plan *plan) {
    const tsr_resources *res = &plan->resources;
    double host_limit = (double)res->host_limit;
    if (res->host_memory) host_limit = fmin(host_limit, (double)res->device_limit);
    return plan->device_bytes <= (double)res->device_limit && plan->host_bytes <= host_limit;
}

/* ---- super-blocks and panels ------------------------------------------------------------------------------------ */

/* Sets panel and strip for the super-block chosen; every `shrink` halves them. */
static void choose_panel(tsr_plan *plan, int shrink) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    int64_t m = tsr_ceil_div(plan->block_m, plan->p), n = tsr_ceil_div(plan->block_n, plan->q);
    double scale = 1.0 / (double)((int64_t)1 << shrink);
    int64_t k = tsr_max(1, tsr_ceil_div(problem->k, plan->r));
    double row = (double)m * (double)tsr_dtype_bytes(problem->a.element.dtype) + (double)n * (double)tsr_dtype_bytes(problem->b.element.dtype);
    if (res->panel > 0) {
        plan->panel = tsr_min(res->panel, k);
    } else {
        double target = res->host_memory ? PANEL_BYTES_TARGET_HOST : PANEL_BYTES_TARGET_DEVICE;
        int64_t wanted = res->host_memory ? PANELS_WANTED_HOST : PANELS_WANTED_DEVICE;
        int64_t panel = (int64_t)fmin(target / row, 1 << 20) / PANEL_STEP * PANEL_STEP;
        panel = tsr_max(PANEL_STEP, tsr_min(panel, tsr_round_up(tsr_ceil_div(k, wanted), PANEL_STEP)));
        plan->panel = tsr_min(k, tsr_max(1, (int64_t)((double)panel * scale)));
    }
    double out_row = (double)n * (double)(tsr_dtype_bytes(problem->type) > tsr_dtype_bytes(problem->out) ? tsr_dtype_bytes(problem->type) : tsr_dtype_bytes(problem->out));
    double strip = fmin(STRIP_BYTES_TARGET * scale / out_row, (double)tsr_ceil_div(m, plan->r));
    plan->strip = tsr_max(1, (int64_t)strip);
}

/* Whether the sums of a super-block alone are more than the limit, so that no panel can help. */
static bool sums_too_large(const tsr_plan *plan, int sums) {
    const tsr_resources *res = &plan->resources;
    size_t limit = res->host_memory ? (size_t)fmin((double)res->host_limit, (double)res->device_limit) : res->device_limit;
    double m = (double)tsr_ceil_div(plan->block_m, plan->p), n = (double)tsr_ceil_div(plan->block_n, plan->q);
    return sums * m * n * (double)tsr_dtype_bytes(plan->problem.type) > (double)limit;
}

static bool fits_shrunk(tsr_plan *plan, int sums, int shrink) {
    choose_panel(plan, shrink);
    plan_memory(plan, sums);
    return plan_fits(plan);
}

/* Tries panels of the current super-block size, the largest first; none when the smallest is too large. */
static bool try_panels(tsr_plan *plan, int sums_when_cut, int shrinks) {
    int sums = plan->blocks_m * plan->blocks_n > 1 ? sums_when_cut : 1;
    if (sums_too_large(plan, sums) || !fits_shrunk(plan, sums, shrinks)) return false;
    for (int shrink = 0; shrink < shrinks; shrink++)
        if (fits_shrunk(plan, sums, shrink)) return true;
    return fits_shrunk(plan, sums, shrinks);
}

/* More super-blocks along the longer local edge; false when both edges are at most `edge`. */
static bool split_block(tsr_plan *plan, int64_t edge) {
    int64_t m = plan->problem.m, n = plan->problem.n;
    int64_t local_m = tsr_ceil_div(plan->block_m, plan->p), local_n = tsr_ceil_div(plan->block_n, plan->q);
    if (local_m <= edge && local_n <= edge) return false;
    bool along_m = local_m >= local_n;
    int64_t *block = along_m ? &plan->block_m : &plan->block_n, *blocks = along_m ? &plan->blocks_m : &plan->blocks_n;
    int64_t total = along_m ? m : n;
    int64_t parts = *blocks + tsr_max(1, *blocks / 8);
    *block = tsr_min(tsr_ceil_div(total, parts), tsr_max(1, *block - 1));
    *blocks = tsr_ceil_div(total, *block);
    return true;
}

static void one_block(tsr_plan *plan) {
    plan->block_m = tsr_max(1, plan->problem.m), plan->block_n = tsr_max(1, plan->problem.n);
    plan->blocks_m = plan->problem.m > 0, plan->blocks_n = plan->problem.n > 0;
}

/* The fewest super-blocks whose slots fit; small panels are tried before many blocks, tiny ones only when nothing else helps. */
bool tsr_plan_fit(tsr_plan *plan) {
    static const struct {
        int sums, shrinks;
        int64_t edge;
    } rounds[] = {{2, 3, 256}, {1, 3, 32}, {1, 24, 1}};
    for (size_t round = 0; round < sizeof rounds / sizeof *rounds; round++) {
        one_block(plan);
        do {
            if (try_panels(plan, rounds[round].sums, rounds[round].shrinks)) return true;
        } while (split_block(plan, rounds[round].edge));
    }
    return fits_shrunk(plan, 1, rounds[2].shrinks); /* false, with the memory of the smallest plan counted for the refusal */
}

/* ---- a plan for one grid ------------------------------------------------------------------------------------------ */

static bool needs_pack(const tsr_operand *x, const tsr_problem *problem, int64_t multiple) {
    return x->transpose || x->element.swapped || x->element.dtype != problem->input || multiple > 1;
}

void tsr_plan_regrid(tsr_plan *plan, int p, int q, int r) {
    plan->p = p, plan->q = q, plan->r = r;
    one_block(plan);
    plan->panel = tsr_max(1, tsr_ceil_div(plan->problem.k, r));
}

void tsr_plan_begin(const tsr_problem *problem, const tsr_resources *res, int p, int q, int r, tsr_plan *plan) {
    *plan = (tsr_plan){.problem = *problem, .resources = *res, .p = p, .q = q, .r = r};
    plan->resources.multiple = tsr_max(1, res->multiple);
    plan->pack_a = needs_pack(&problem->a, problem, plan->resources.multiple);
    plan->pack_b = needs_pack(&problem->b, problem, plan->resources.multiple);
    tsr_plan_regrid(plan, p, q, r);
}

tsr_status tsr_plan_refuse(const tsr_plan *plan) {
    const tsr_resources *res = &plan->resources;
    char need_device[32], have_device[32], need_host[32], have_host[32];
    tsr_format_bytes(plan->device_bytes, need_device), tsr_format_bytes((double)res->device_limit, have_device);
    tsr_format_bytes(plan->host_bytes, need_host), tsr_format_bytes((double)res->host_limit, have_host);
    if (plan->device_bytes > (double)res->device_limit || (res->host_memory && plan->host_bytes > (double)res->device_limit)) {
        double need = res->host_memory ? plan->host_bytes : plan->device_bytes;
        return tsr_fail(TSR_ERR_LIMIT, "the smallest plan needs %s of device memory a rank and has %s: use --memory %.0f or more, or a smaller --panel",
                        res->host_memory ? need_host : need_device, have_device, need);
    }
    return tsr_fail(TSR_ERR_LIMIT, "the smallest plan needs %s of host memory a rank and has %s: use --host-memory %.0f or more, or a smaller --panel",
                    need_host, have_host, plan->host_bytes);
}
