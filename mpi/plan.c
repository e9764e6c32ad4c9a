/* Making a plan for a grid: shapes, the memory every choice needs, super-blocks and panel. plan_search.c chooses the grid. */
#include <math.h>
#include <string.h>

#include "mpi/plan_private.h"

#define STRIP_BYTES_TARGET (32.0 * 1024 * 1024)
#define PANEL_BYTES_HOST (128.0 * 1024 * 1024)
#define PANEL_BYTES_DEVICE (512.0 * 1024 * 1024)
#define PANEL_STEP 256      /* panels are multiples of this where k allows */
#define PANELS_WANTED_DEVICE 8 /* so that lanes overlap from early on */
#define PANELS_WANTED_HOST 4   /* there lanes share the cores, and fewer sums of C are worth more */
#define SLOT_DEPTH 2        /* one being filled, one being used */
#define BUFFERS_MOST 8192   /* of one class */
#define FAR 4               /* sums that are as many times the limit are halved at once */

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* The type that A's and B's values ask for. */
static tsr_dtype operands_type(const tsr_problem *problem) {
    const tsr_dtype a = tsr_dtype_compute(problem->a.element.dtype), b = tsr_dtype_compute(problem->b.element.dtype);
    return a == TSR_F64 || b == TSR_F64 ? TSR_F64 : TSR_F32;
}

void tsr_problem_store_as(tsr_problem *problem, tsr_dtype out) {
    problem->out = out;
    problem->type = problem->input = out == TSR_F64 ? TSR_F64 : operands_type(problem);
}

/* Sums of products lie within k·max|a|·max|b| whatever their order. They are scaled and added to in fp64. */
double tsr_problem_reach(const tsr_problem *problem) {
    const double a = tsr_dtype_largest(problem->a.element.dtype), b = tsr_dtype_largest(problem->b.element.dtype);
    const double c0 = problem->add_c0 ? fabs(problem->beta) * tsr_dtype_largest(problem->c0.dtype) : 0;
    return a > 0 && b > 0 ? fmax(1, fabs(problem->alpha)) * (double)problem->k * a * b + c0 : 0;
}

/* "u8 x i16", or "u8 x i16 + i32": what the reach is of. */
static void name_sums(const tsr_problem *problem, char *text, size_t chars) {
    const bool c0 = problem->add_c0 && tsr_dtype_largest(problem->c0.dtype) > 0;
    snprintf(text, chars, "%s x %s%s%s", tsr_dtype_name(problem->a.element.dtype),
             tsr_dtype_name(problem->b.element.dtype), c0 ? " + " : "", c0 ? tsr_dtype_name(problem->c0.dtype) : "");
}

bool tsr_problem_widened(const tsr_problem *problem, char *text) {
    char sums[32];
    text[0] = '\0';
    if (problem->type != TSR_F64 || operands_type(problem) == TSR_F64) return false;
    if (!(tsr_problem_reach(problem) > tsr_dtype_integers(TSR_F32))) return false;
    name_sums(problem, sums, sizeof sums);
    snprintf(text, 128, "f32 would round sums of %s beyond 2^24 (k = %lld)", sums, (long long)problem->k);
    return true;
}

bool tsr_problem_inexact(const tsr_problem *problem, char *text) {
    const bool narrower = tsr_dtype_integers(problem->out) < tsr_dtype_integers(problem->type);
    const tsr_dtype least = narrower ? problem->out : problem->type;
    const double reach = tsr_problem_reach(problem), holds = tsr_dtype_integers(least);
    char sums[32], rounded[64] = "";
    text[0] = '\0';
    if (!(reach > holds)) return false;
    name_sums(problem, sums, sizeof sums);
    for (int i = 0; i < 2; i++) {
        const tsr_dtype type = i ? problem->b.element.dtype : problem->a.element.dtype;
        if (tsr_dtype_bytes(type) < 8) continue;
        snprintf(rounded, sizeof rounded, "values of %s beyond 2^53 are rounded, and ", tsr_dtype_name(type));
    }
    const char *advice = "C is exact where sums stay below that";
    if (reach <= tsr_dtype_integers(TSR_F64)) advice = "--type f64 holds all of them";
    snprintf(text, 512, "C may not be exact: %ssums of %s over k = %lld may reach %.2g, and %s holds whole numbers up "
             "to 2^%d; %s", rounded, sums, (long long)problem->k, reach, tsr_dtype_name(least), ilogb(holds), advice);
    return true;
}

/* ---- the problem ------------------------------------------------------------------------------------------------ */

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
    *problem = (tsr_problem){.m = m, .n = n, .k = alpha == 0 ? 0 : k, .a = a, .b = b, .add_c0 = beta != 0, .alpha = alpha, .beta = beta,
                             .unit_m = 1, .unit_n = 1};
    if (beta != 0) problem->c0 = c0->element;
    const bool wide = operands_type(problem) == TSR_F64 || tsr_problem_reach(problem) > tsr_dtype_integers(TSR_F32);
    tsr_problem_store_as(problem, wide ? TSR_F64 : TSR_F32);
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

/* More buffers than the executor should have to open count as all the memory there is. */
static void slots_set(tsr_plan *plan, tsr_slot_class slot, bool host, double count, double bytes) {
    tsr_slots *s = &plan->slots[slot];
    if (count > BUFFERS_MOST) bytes = INFINITY, count = 1;
    *s = (tsr_slots){.host = host, .count = (int)count, .first = plan->buffers, .bytes = isinf(bytes) ? SIZE_MAX : (size_t)fmax(bytes, 1)};
    plan->buffers += (int)count;
    *(host ? &plan->host_bytes : &plan->device_bytes) += count * fmax(bytes, 1);
}

/* One operand's buffers: `outer` of m or n on a rank, in panels that `parts` ranks share. */
typedef struct {
    const tsr_operand *operand;
    int64_t outer, blocks; /* super-blocks along it */
    int parts;
    bool k_is_cols, pack, keep_host;
    tsr_keep keep;
    tsr_slot_class host, panel, packed;
} operand_use;

/* Buffers for what stays, or two that take turns; no more than there are panels in all. */
static double buffers_kept(const tsr_plan *plan, const operand_use *x, tsr_keep keep) {
    const double panels = (double)tsr_ceil_div(tsr_ceil_div(plan->problem.k, plan->r), plan->panel), all = panels * (double)(plan->blocks_m * plan->blocks_n);
    if (keep == TSR_KEEP_NONE) return fmin(SLOT_DEPTH, all);
    return fmax(fmin(SLOT_DEPTH, all), keep == TSR_KEEP_ALL ? panels * (double)x->blocks : panels);
}

static void operand_slots(tsr_plan *plan, const operand_use *x) {
    const tsr_resources *res = &plan->resources;
    const tsr_road road = tsr_plan_road(plan, x->operand->road);
    int parts = tsr_plan_exchanges(plan, x->operand->road) ? x->parts : 1;
    int64_t rows = x->k_is_cols ? x->outer : plan->panel, cols = x->k_is_cols ? plan->panel : x->outer;
    double piece = (double)tsr_ceil_div(rows, parts) * (double)cols * (double)tsr_dtype_bytes(x->operand->element.dtype);
    if (road == TSR_ROAD_HOST && !res->host_memory)
        slots_set(plan, x->host, true, buffers_kept(plan, x, x->keep_host ? TSR_KEEP_ALL : TSR_KEEP_NONE), res->device_exchange ? piece : piece * parts);
    slots_set(plan, x->panel, res->host_memory, buffers_kept(plan, x, x->pack ? TSR_KEEP_NONE : x->keep), piece * parts);
    if (!x->pack) return;
    int64_t m_or_n = tsr_round_up(x->outer, res->multiple), k = tsr_round_up(plan->panel, res->multiple);
    double packed = x->packed == TSR_SLOT_PACKED_A ? (double)m_or_n * (double)tsr_plan_packed_ld(plan, k) : (double)k * (double)tsr_plan_packed_ld(plan, m_or_n);
    slots_set(plan, x->packed, res->host_memory, buffers_kept(plan, x, x->keep), packed * (double)tsr_dtype_bytes(plan->problem.input));
}

/* From the accumulators to the file. */
static void drain_slots(tsr_plan *plan, double local_n, double ld) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    const bool host = res->host_memory;
    double strip = (double)plan->strip, bytes = (double)tsr_dtype_bytes(problem->type);
    if (plan->r > 1) {
        slots_set(plan, TSR_SLOT_PART, host, SLOT_DEPTH, strip * ld * bytes);
        if (!host && !res->device_exchange) slots_set(plan, TSR_SLOT_PART_HOST, true, 1, (plan->r + 1) * strip * ld * bytes);
    }
    if (problem->add_c0) {
        double c0 = strip * local_n * (double)tsr_dtype_bytes(problem->c0.dtype);
        slots_set(plan, TSR_SLOT_C0, host, SLOT_DEPTH, c0);
        if (!host) slots_set(plan, TSR_SLOT_C0_HOST, true, SLOT_DEPTH, c0);
    }
    double out = strip * local_n * (double)tsr_dtype_bytes(problem->out);
    if (tsr_plan_finishes(plan)) slots_set(plan, TSR_SLOT_OUT, host, SLOT_DEPTH, out);
    if (!host && problem->c_road == TSR_ROAD_HOST) slots_set(plan, TSR_SLOT_OUT_HOST, true, SLOT_DEPTH, out);
}

/* Fills slots and bytes from the choices already in the plan. Sizes are sums of exact integers below 2^53. */
static void plan_memory(tsr_plan *plan, int sums) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    int64_t m = tsr_plan_local_m(plan), n = tsr_plan_local_n(plan);
    double ld = (double)tsr_round_up(n, res->multiple);
    memset(plan->slots, 0, sizeof plan->slots);
    plan->buffers = 0, plan->device_bytes = plan->host_bytes = 0;
    if (problem->k > 0) {
        const operand_use a = {&problem->a, m, plan->blocks_m, plan->q, !problem->a.transpose, plan->pack_a, plan->keep_host_a, plan->keep_a, TSR_SLOT_HOST_A, TSR_SLOT_PANEL_A, TSR_SLOT_PACKED_A};
        const operand_use b = {&problem->b, n, plan->blocks_n, plan->p, problem->b.transpose, plan->pack_b, plan->keep_host_b, plan->keep_b, TSR_SLOT_HOST_B, TSR_SLOT_PANEL_B, TSR_SLOT_PACKED_B};
        operand_slots(plan, &a), operand_slots(plan, &b);
    }
    size_t workspace = res->workspace_bytes ? res->workspace_bytes(tsr_round_up(m, res->multiple), (int64_t)ld, tsr_round_up(plan->panel, res->multiple)) : 0;
    if (workspace > 0) slots_set(plan, TSR_SLOT_WORKSPACE, res->host_memory, 1, (double)workspace);
    int64_t sum_rows = tsr_max(tsr_round_up(m, res->multiple), tsr_round_up(m, plan->strip * plan->r));
    double all = (double)tsr_max(1, plan->blocks_m * plan->blocks_n);
    slots_set(plan, TSR_SLOT_SUM, res->host_memory, tsr_plan_keeps_c(plan) ? all : sums, (double)sum_rows * ld * (double)tsr_dtype_bytes(problem->type));
    if (!tsr_plan_keeps_c(plan)) drain_slots(plan, (double)n, ld);
}

static bool plan_fits(const tsr_plan *plan) {
    const tsr_resources *res = &plan->resources;
    return plan->device_bytes <= (double)res->device_limit && plan->host_bytes <= (double)tsr_host_limit(res);
}

bool tsr_plan_fits_counted(tsr_plan *plan) {
    plan_memory(plan, plan->slots[TSR_SLOT_SUM].count);
    return plan_fits(plan);
}

/* ---- super-blocks and panels ------------------------------------------------------------------------------------ */

/* Sets panel and strip for the super-block chosen; every `shrink` halves them. */
static void choose_panel(tsr_plan *plan, int shrink) {
    const tsr_problem *problem = &plan->problem;
    const tsr_resources *res = &plan->resources;
    int64_t m = tsr_plan_local_m(plan), n = tsr_plan_local_n(plan);
    double scale = 1.0 / (double)((int64_t)1 << shrink);
    int64_t k = tsr_max(1, tsr_ceil_div(problem->k, plan->r));
    double row = (double)m * (double)tsr_dtype_bytes(problem->a.element.dtype) + (double)n * (double)tsr_dtype_bytes(problem->b.element.dtype);
    if (res->panel > 0) {
        plan->panel = tsr_min(res->panel, k);
    } else {
        double target = plan->wider * (res->host_memory ? PANEL_BYTES_HOST : PANEL_BYTES_DEVICE);
        int64_t wanted = res->host_memory ? PANELS_WANTED_HOST : PANELS_WANTED_DEVICE;
        int64_t panel = (int64_t)fmin(target / row, 1 << 20) / PANEL_STEP * PANEL_STEP;
        panel = tsr_max(PANEL_STEP, tsr_min(panel, tsr_round_up(tsr_ceil_div(k, wanted), PANEL_STEP)));
        plan->panel = tsr_min(k, tsr_max(1, (int64_t)((double)panel * scale)));
    }
    double out_row = (double)n * (double)(tsr_dtype_bytes(problem->type) > tsr_dtype_bytes(problem->out) ? tsr_dtype_bytes(problem->type) : tsr_dtype_bytes(problem->out));
    const bool at_once = problem->c_road == TSR_ROAD_MAPPED && plan->r == 1 && !tsr_plan_finishes(plan); /* nothing lies between the accumulators and the store */
    double strip = fmin(at_once ? INFINITY : STRIP_BYTES_TARGET * scale / out_row, (double)tsr_ceil_div(m, plan->r));
    plan->strip = tsr_round_up(tsr_max(1, (int64_t)strip), problem->unit_m);
}

/* How many times the limit the sums of a super-block are: above 1 no panel can help. */
static double sums_to_limit(const tsr_plan *plan, int sums) {
    double m = (double)tsr_plan_local_m(plan), n = (double)tsr_plan_local_n(plan);
    if (tsr_plan_keeps_c(plan)) sums = (int)tsr_max(1, plan->blocks_m * plan->blocks_n);
    return sums * m * n * (double)tsr_dtype_bytes(plan->problem.type) / (double)tsr_device_limit(&plan->resources);
}

static bool fits_shrunk(tsr_plan *plan, int sums, int shrink) {
    choose_panel(plan, shrink);
    plan_memory(plan, sums);
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
    if (can_m && (local_m >= local_n || !can_n)) cut_side(x->m, x->unit_m, plan->blocks_m + tsr_max(1, plan->blocks_m / more), &plan->block_m, &plan->blocks_m);
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
    plan->block_m = tsr_max(1, plan->problem.m), plan->block_n = tsr_max(1, plan->problem.n);
    plan->blocks_m = plan->problem.m > 0, plan->blocks_n = plan->problem.n > 0;
}

/* The fewest super-blocks whose slots fit; small panels are tried before many blocks, tiny ones only when nothing else helps. */
bool tsr_plan_fit_fewest(tsr_plan *plan) {
    static const struct {
        int sums, shrinks;
        int64_t edge;
    } rounds[] = {{2, 3, 256}, {1, 3, 32}, {1, 24, 1}};
    for (size_t round = 0; round < sizeof rounds / sizeof *rounds; round++) {
        tsr_plan_one_block(plan);
        do {
            if (tsr_plan_fit_panels(plan, rounds[round].sums, rounds[round].shrinks)) return true;
        } while (tsr_plan_split(plan, rounds[round].edge, sums_to_limit(plan, rounds[round].sums) > FAR ? 1 : 8));
    }
    return fits_shrunk(plan, 1, rounds[2].shrinks); /* false, with the memory of the smallest plan counted for the refusal */
}

/* ---- a plan for one grid ------------------------------------------------------------------------------------------ */

static bool needs_pack(const tsr_operand *x, const tsr_problem *problem, int64_t multiple) {
    return x->transpose || x->element.swapped || x->element.dtype != problem->input || multiple > 1;
}

void tsr_plan_regrid(tsr_plan *plan, int p, int q, int r) {
    plan->p = p, plan->q = q, plan->r = r;
    tsr_plan_one_block(plan);
    plan->panel = tsr_max(1, tsr_ceil_div(plan->problem.k, r));
}

void tsr_plan_begin(const tsr_problem *problem, const tsr_resources *res, int p, int q, int r, tsr_plan *plan) {
    *plan = (tsr_plan){.problem = *problem, .resources = *res, .p = p, .q = q, .r = r, .wider = 1};
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
