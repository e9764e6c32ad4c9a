/* The cost model, in closed form: bytes and seconds of the busiest rank, and how few bytes any schedule could exchange. The forecast counts
 * the bytes of a rank exactly; this is quick enough to compare every grid. */
#include <math.h>

#include "io/raw_file.h"
#include "mpi/plan_private.h"

#define REDUCE_COST 4.0    /* bytes handled for each byte summed over ranks: sent, received and added */
#define STEP_SECONDS 50e-6 /* what one panel costs beside its bytes and flops */
#define SMALL_EDGE 150.0   /* a product of m × n takes 1 + SMALL_EDGE / sqrt(mn) times what its flops take in a large one: simt and tf32 at 4096 beside 8192, H200, 2026-11-21 */
#define SHORT_ROW 6144.0   /* bytes: what each piece of a row costs a disk beside its own. Written in pieces of 4, 8 and 32 KiB: 2.7, 1.8 and 1.0 times as long as
                            * whole rows; read in pieces of 12 KiB: 1.4 times, 2026-11-22 */
#define UNHIDDEN 0.05      /* share of the lanes beside the slowest that does not overlap; at least what the first panels take */

/* ---- where the ranks of a group stand ----------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* How a grid axis lies on the nodes: `parts` ranks a group, `stride` ranks apart. */
typedef struct {
    double groups;    /* that a node's ranks belong to, at most */
    double nodes;     /* a group lies on, about; 1: no byte of it crosses the network */
} placement;

/* Node j holds the ranks from j·node; a group's ranks lie in a block of stride·parts. So a node touches a few blocks, and of each as many groups as
 * it holds ranks of it, at most `stride`. */
static placement place(const tsr_rates *rates, int64_t ranks, int64_t parts, int64_t stride) {
    int64_t node = rates->node_ranks > 0 ? tsr_min(rates->node_ranks, ranks) : ranks, block = stride * parts;
    int64_t blocks = (block - common_divisor(node, block) + node - 1) / block + 1;
    double groups = fmin((double)node, (double)(stride * blocks));
    return (placement){groups, fmax(1, (double)parts * groups / (double)node)};
}

/* One collective lane's seconds for `bytes` that every rank of the groups receives in `calls` rings, over links in the node and between nodes. */
static double ring_seconds(const tsr_rates *rates, placement at, double bytes, double calls) {
    double link = bytes / rates->lane[TSR_LANE_EXCHANGE];
    if (at.nodes <= 1) return link;
    double network = rates->network_bytes_per_second > 0 ? at.groups * bytes / rates->network_bytes_per_second : 0;
    return fmax(link, network) + calls * ceil(at.nodes - 1) * rates->network_latency_seconds;
}

/* Seconds for `bytes` of a file that each of `ranks` ranks moves at once. */
static double file_seconds(double bytes, double lane, double node, double all, double node_ranks, double ranks) {
    double seconds = bytes / lane;
    if (node > 0) seconds = fmax(seconds, bytes * node_ranks / node);
    if (all > 0) seconds = fmax(seconds, bytes * ranks / all);
    return seconds;
}

static double read_seconds(const tsr_rates *r, double bytes, double ranks) {
    return file_seconds(bytes, r->lane[TSR_LANE_READ], r->node_read_bytes_per_second, r->all_read_bytes_per_second, fmin(ranks, r->node_ranks), ranks);
}

static double write_seconds(const tsr_rates *r, double bytes, double ranks) {
    return file_seconds(bytes, r->lane[TSR_LANE_WRITE], r->node_write_bytes_per_second, r->all_write_bytes_per_second, fmin(ranks, r->node_ranks), ranks);
}

/* What moving rows in pieces of `part` of `all` elements multiplies a file's seconds by. */
static double short_rows(bool on_disk, int64_t part, int64_t all, tsr_dtype type) {
    return on_disk && part > 0 && part < all ? 1 + SHORT_ROW / ((double)part * (double)tsr_dtype_bytes(type)) : 1;
}

/* ---- work ----------------------------------------------------------------------------------------------------------- */

/* What the busiest rank's part comes to when [0, total) is cut into blocks of `size`, each over `parts` ranks in whole units, and its part over `pieces`. */
static double largest_part(int64_t total, int64_t unit, int64_t size, int64_t blocks, int64_t parts, int64_t pieces) {
    if (blocks < 1) return 0;
    int64_t last = total - (blocks - 1) * size;
    return (double)((blocks - 1) * tsr_ceil_div(tsr_partition_largest(size, unit, parts), pieces) + tsr_ceil_div(tsr_partition_largest(last, unit, parts), pieces));
}

/* One operand over the whole run, in bytes of the busiest rank: its panels, and what its lanes do for them. Panels are shared in pieces of equal height;
 * `shared` of them are exchanged. */
typedef struct {
    double whole, read, upload, moved, packed, shared;
} panels;

/* `outer`: rows of op(A) or columns of op(B) over all super-blocks; `k`: of the rank; `rows`: of both, how many the file's rows are, of which `pieces`
 * are in the pieces of one rank; `loads`: how often all is loaded; `kept`: it stays in host memory. */
static panels panels_of(const tsr_plan *plan, const tsr_operand *x, double outer, double k, double rows, double pieces, int parts, int64_t loads, bool kept, bool pack) {
    const tsr_resources *res = &plan->resources;
    const bool exchanged = tsr_plan_exchanges(plan, x->road), read = tsr_plan_road(plan, x->road) == TSR_ROAD_HOST;
    const double elements = outer * k * (double)loads, bytes = elements * (double)tsr_dtype_bytes(x->element.dtype), own = rows > 0 ? bytes * pieces / rows : 0;
    const double once = kept && loads > 0 ? 1.0 / (double)loads : 1;
    panels all = {.whole = bytes, .read = read ? own * once : 0, .upload = res->host_memory ? 0 : exchanged && res->device_exchange ? own : bytes,
                  .packed = pack ? bytes + elements * (double)tsr_dtype_bytes(plan->problem.input) : 0};
    all.shared = !exchanged ? 0 : res->host_memory || res->device_exchange ? 1 : once; /* exchanged on the device, or once in host memory */
    all.moved = own * (parts - 1) * all.shared;
    return all;
}

/* Seconds of every lane: of A and of B while k is swept, and of C. */
typedef struct {
    double a[TSR_LANE_COUNT], b[TSR_LANE_COUNT], drain[TSR_LANE_COUNT];
    double bytes_a, bytes_b, bytes_c; /* exchanged */
    double first;   /* seconds of the first panel of A and of B, before which nothing is multiplied */
    double sums;    /* bytes of C that the kernel reads and writes again, panel after panel */
    double blocks, steps;
    bool in_turn;   /* C's file is written when nothing is read: pieces of rows go through the page cache, and a disk that is read from leaves them there */
} lane_work;

static void sweep_of(const tsr_plan *plan, const tsr_operand *operand, const panels *x, placement at, int parts, double steps, double ranks, double *seconds) {
    const tsr_rates *rates = &plan->resources.rates;
    const tsr_lane made = operand->road == TSR_ROAD_DEVICE ? TSR_LANE_PACK : TSR_LANE_UPLOAD; /* what is made on the device crosses no link */
    seconds[TSR_LANE_READ] = read_seconds(rates, x->read, ranks);
    seconds[TSR_LANE_EXCHANGE] = parts > 1 && x->moved > 0 ? ring_seconds(rates, at, x->moved, steps * x->shared) : 0;
    seconds[TSR_LANE_UPLOAD] = x->upload / rates->lane[made];
    seconds[TSR_LANE_PACK] = x->packed / rates->lane[TSR_LANE_PACK];
}

static void measure(const tsr_plan *plan, lane_work *work, tsr_prediction *prediction) {
    const tsr_problem *x = &plan->problem;
    const tsr_resources *res = &plan->resources;
    const tsr_rates *rates = &res->rates;
    int64_t ranks = (int64_t)plan->p * plan->q * plan->r;
    int64_t k = tsr_ceil_div(x->k, plan->r), panel = tsr_max(1, tsr_min(plan->panel, k)), panels_k = tsr_ceil_div(k, panel);
    double m = largest_part(x->m, x->unit_m, plan->block_m, plan->blocks_m, plan->p, 1), n = largest_part(x->n, x->unit_n, plan->block_n, plan->blocks_n, plan->q, 1);
    bool a_by_k = x->a.transpose, b_by_k = !x->b.transpose; /* whose stored rows lie along k */
    double a_pieces = a_by_k ? largest_part(k, 1, panel, panels_k, 1, plan->q) : largest_part(x->m, x->unit_m, plan->block_m, plan->blocks_m, plan->p, plan->q);
    double b_pieces = b_by_k ? largest_part(k, 1, panel, panels_k, 1, plan->p) : largest_part(x->n, x->unit_n, plan->block_n, plan->blocks_n, plan->q, plan->p);
    panels a = panels_of(plan, &x->a, m, (double)k, a_by_k ? (double)k : m, a_pieces, plan->q, tsr_plan_loads_a(plan), plan->keep_host_a, plan->pack_a);
    panels b = panels_of(plan, &x->b, n, (double)k, b_by_k ? (double)k : n, b_pieces, plan->p, tsr_plan_loads_b(plan), plan->keep_host_b, plan->pack_b);
    double c = tsr_plan_keeps_c(plan) ? 0 : m * n * (double)tsr_dtype_bytes(x->out) / plan->r, written = tsr_plan_road(plan, x->c_road) == TSR_ROAD_HOST ? c : 0, c0 = x->add_c0 ? m * n * (double)tsr_dtype_bytes(x->c0.dtype) / plan->r : 0;
    double sums = m * n * (double)tsr_dtype_bytes(x->type) * (plan->r - 1) / plan->r, c0_up = res->host_memory ? 0 : c0;

    *work = (lane_work){.blocks = (double)tsr_max(1, plan->blocks_m * plan->blocks_n)};
    work->steps = work->blocks * (double)panels_k;
    work->bytes_a = a.whole * a.shared * (plan->q - 1) / plan->q, work->bytes_b = b.whole * b.shared * (plan->p - 1) / plan->p, work->bytes_c = sums;
    const double panels_a = (double)(panels_k * plan->blocks_m * tsr_plan_loads_a(plan)), panels_b = (double)(panels_k * plan->blocks_n * tsr_plan_loads_b(plan));
    sweep_of(plan, &x->a, &a, place(rates, ranks, plan->q, plan->r), plan->q, panels_a, (double)ranks, work->a);
    sweep_of(plan, &x->b, &b, place(rates, ranks, plan->p, (int64_t)plan->q * plan->r), plan->p, panels_b, (double)ranks, work->b);
    const int64_t local_m = tsr_plan_local_m(plan), local_n = tsr_plan_local_n(plan), rows_a = a_by_k ? x->m : x->k, rows_b = b_by_k ? x->n : x->k;
    work->a[TSR_LANE_READ] *= short_rows(x->a_on_disk, a_by_k ? local_m : panel, rows_a, x->a.element.dtype);
    work->b[TSR_LANE_READ] *= short_rows(x->b_on_disk, b_by_k ? local_n : panel, rows_b, x->b.element.dtype);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) work->first += work->a[lane] / fmax(1, panels_a) + work->b[lane] / fmax(1, panels_b);
    work->sums = 2 * m * n * (double)tsr_dtype_bytes(x->type) * (double)tsr_max(0, panels_k - 1);
    double *drain = work->drain;
    drain[TSR_LANE_READ] = read_seconds(rates, c0, (double)ranks) * short_rows(x->c0_on_disk, local_n, x->n, x->c0.dtype);
    drain[TSR_LANE_UPLOAD] = c0_up / rates->lane[TSR_LANE_UPLOAD];
    drain[TSR_LANE_EXCHANGE] = plan->r > 1 ? ring_seconds(rates, place(rates, ranks, plan->r, 1), REDUCE_COST * sums, work->blocks) : 0;
    drain[TSR_LANE_DOWNLOAD] = c / rates->lane[TSR_LANE_DOWNLOAD];
    drain[TSR_LANE_WRITE] = write_seconds(rates, written, (double)ranks) * short_rows(x->c_on_disk, local_n, x->n, x->out);
    work->in_turn = x->c_on_disk && (x->a_on_disk || x->b_on_disk) && local_n < x->n && (size_t)local_n * tsr_dtype_bytes(x->out) < TSR_RAW_DIRECT_MIN;

    *prediction = (tsr_prediction){.flops = 2 * m * n * (double)k, .steps = work->steps};
    double *bytes = prediction->lane_bytes;
    bytes[TSR_LANE_READ] = a.read + b.read + c0;
    bytes[TSR_LANE_EXCHANGE] = work->bytes_a + work->bytes_b + sums;
    bytes[TSR_LANE_UPLOAD] = a.upload + b.upload + c0_up;
    bytes[TSR_LANE_PACK] = a.packed + b.packed;
    bytes[TSR_LANE_DOWNLOAD] = c, bytes[TSR_LANE_WRITE] = written;
}

/* ---- the whole run -------------------------------------------------------------------------------------------------- */

static double sum_of(const double *values) {
    double sum = 0;
    for (int i = 0; i < TSR_LANE_COUNT; i++) sum += values[i];
    return sum;
}

static double most_of(const double *values) {
    double most = 0;
    for (int i = 0; i < TSR_LANE_COUNT; i++) most = fmax(most, values[i]);
    return most;
}

/* C leaves strip by strip: its slowest lane hides most of the others. */
static double drain_of(const double *drain) { return (1 - UNHIDDEN) * most_of(drain) + UNHIDDEN * sum_of(drain); }

/* A device beside the host: while one super-block is swept the one before leaves. */
static double seconds_by_blocks(double blocks, double sweep, double drain) { return (sweep + drain + (blocks - 1) * fmax(sweep, drain)) / blocks; }

/* How many super-blocks need the last band of A or B that comes. In growing squares that is one more row or column of the shorter length; of the last square B's band
 * comes after A's. */
static double blocks_left(const tsr_plan *plan) {
    const double down = (double)plan->blocks_m, across = (double)plan->blocks_n;
    if (!tsr_plan_grows(plan)) return down > 1 ? across : 1;
    return fmin(down, across);
}

/* The same where A and B are loaded once: the first super-block needs one band of each, and few are left when the last band has come. */
static double seconds_loaded_once(const tsr_plan *plan, const lane_work *work, double multiply, double sweep, double drain) {
    const double down = (double)plan->blocks_m, across = (double)plan->blocks_n, blocks = work->blocks, left = blocks_left(plan);
    double first = multiply / blocks;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) first = fmax(first, work->a[lane] / down + work->b[lane] / across);
    double last = fmax((left - 1) * multiply + drain, left * drain) / blocks; /* after the last panel has come */
    return fmax(fmax(first + drain, sweep + last), multiply + drain / blocks);
}

/* The rate is that of large products. */
static double multiply_seconds(const tsr_plan *plan, double flops) {
    const double seconds = flops / plan->resources.rates.lane[TSR_LANE_MULTIPLY], cells = (double)tsr_plan_local_m(plan) * (double)tsr_plan_local_n(plan);
    return plan->resources.host_memory || cells < 1 ? seconds : seconds * (1 + SMALL_EDGE / sqrt(cells));
}

void tsr_plan_predict(const tsr_plan *plan, tsr_prediction *prediction) {
    lane_work work;
    measure(plan, &work, prediction);
    prediction->sums_seconds = plan->resources.host_memory ? 0 : work.sums / plan->resources.rates.lane[TSR_LANE_PACK];
    double multiply = multiply_seconds(plan, prediction->flops) + prediction->sums_seconds, steps = work.steps * STEP_SECONDS;
    double beside = sum_of(work.a) + sum_of(work.b), unhidden = fmax(UNHIDDEN * beside, work.first), drain = drain_of(work.drain), sweep = 0;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        double seconds = work.a[lane] + work.b[lane];
        sweep = fmax(sweep, seconds);
        prediction->lane_seconds[lane] = seconds + work.drain[lane];
    }
    prediction->lane_seconds[TSR_LANE_MULTIPLY] = multiply;
    multiply += work.drain[TSR_LANE_EXCHANGE] * (work.blocks - 1) / work.blocks; /* panels of the next super-block come after the sums over k of this one */
    if (plan->resources.host_memory) prediction->seconds = prediction->lane_seconds[TSR_LANE_MULTIPLY] + beside + sum_of(work.drain); /* every lane runs on the same cores */
    else if (tsr_plan_loads_a(plan) <= 1 && tsr_plan_loads_b(plan) <= 1) prediction->seconds = seconds_loaded_once(plan, &work, multiply, sweep, drain) + unhidden;
    else prediction->seconds = seconds_by_blocks(work.blocks, fmax(sweep, multiply), drain) + unhidden;
    const double *lanes = prediction->lane_seconds, files = lanes[TSR_LANE_READ] + lanes[TSR_LANE_WRITE];
    prediction->seconds = fmax(fmax(prediction->seconds, most_of(lanes)), work.in_turn ? files : 0) + steps;
}

/* The least a·x + b·y with x, y ≥ 1 and x·y ≥ cells: x super-blocks along n read A again, y along m read B. */
static double least(double a, double b, double cells) {
    if (cells <= 1) return a + b;
    double x = a > 0 ? fmin(cells, fmax(1, sqrt(b * cells / a))) : cells;
    return a * x + b * cells / x;
}

/* The fewest panels of all super-blocks: a panel of A (mb × panel) and of B (panel × nb) must fit beside the sums (mb × nb), and two of each where there are
 * more than one, so there are at least mn/(mb·nb) · k/panel steps with panel ≤ (limit - sums) / 2(mb·a + nb·b): fewest where the sums take a third of the
 * limit, or all of C. */
static double least_steps(const tsr_problem *x, double m, double n, double k, double limit) {
    double a = (double)tsr_dtype_bytes(x->a.element.dtype), b = (double)tsr_dtype_bytes(x->b.element.dtype);
    double type = (double)tsr_dtype_bytes(x->type), cells = fmin(m * n, limit / 3 / type);
    const double alone = cells > 0 ? 2 * m * n * k * sqrt(a * b / cells) / (limit - cells * type) : 0;
    return alone <= 1 ? alone : 2 * alone;
}

/* The least that loading takes, `a` and `b` of it once: again for every super-block, or A once where a band of it stays, or both once where B stays. */
static double least_loaded(double a, double b, double cells, double bands_a, double bands_b) {
    double again = least(a, b, cells), kept = bands_b <= 1 ? a + b : a + b * fmax(1, bands_a);
    return fmin(again, kept);
}

void tsr_plan_promise(const tsr_plan *begun, double *seconds, double *exchange_bytes) {
    tsr_plan even = *begun;
    if (even.problem.unit_m > 1 || even.problem.unit_n > 1) even.problem.a_on_disk = even.problem.b_on_disk = even.problem.c0_on_disk = false; /* whole units may be longer pieces of rows */
    even.problem.unit_m = even.problem.unit_n = 1; /* super-blocks may share units out better than one block does */
    const tsr_plan *plan = &even;
    const tsr_resources *res = &plan->resources;
    const tsr_problem *x = &plan->problem;
    lane_work work;
    tsr_prediction whole;
    measure(plan, &work, &whole);
    const double limit = (double)tsr_device_limit(res);
    double m = (double)tsr_ceil_div(x->m, plan->p), n = (double)tsr_ceil_div(x->n, plan->q), k = (double)tsr_ceil_div(x->k, plan->r);
    double cells = m * n * (double)tsr_dtype_bytes(x->type) / limit; /* the sums of a super-block must fit */
    double bands_a = m * k * (double)tsr_dtype_bytes(plan->pack_a ? x->input : x->a.element.dtype) / limit;
    double bands_b = n * k * (double)tsr_dtype_bytes(plan->pack_b ? x->input : x->b.element.dtype) / limit;
    double multiply = whole.flops / res->rates.lane[TSR_LANE_MULTIPLY], drain = drain_of(work.drain), sweep = multiply, beside = 0;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        bool once = !res->host_memory && (lane == TSR_LANE_READ || (lane == TSR_LANE_EXCHANGE && !res->device_exchange)); /* and may stay in host memory */
        double lane_seconds = once ? work.a[lane] + work.b[lane] : least_loaded(work.a[lane], work.b[lane], cells, bands_a, bands_b);
        sweep = fmax(sweep, lane_seconds), beside += lane_seconds;
    }
    double steps = fmax(fmax(work.steps, cells), least_steps(x, m, n, k, limit)) * STEP_SECONDS;
    *seconds = steps + (res->host_memory ? multiply + beside + sum_of(work.drain) : fmax(sweep, drain) + UNHIDDEN * beside);
    bool stays = !res->host_memory && !res->device_exchange;
    *exchange_bytes = work.bytes_c + (stays ? work.bytes_a + work.bytes_b : least_loaded(work.bytes_a, work.bytes_b, cells, bands_a, bands_b));
}

/* ---- the lower bound of communication ------------------------------------------------------------------------------- */

/* Which of three lengths `values` is the longest, the next, the last. */
static void order3(const double values[3], int order[3]) {
    order[0] = 0, order[1] = 1, order[2] = 2;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2 - i; j++)
            if (values[order[j]] < values[order[j + 1]]) {
                int swap = order[j];
                order[j] = order[j + 1], order[j + 1] = swap;
            }
}

double tsr_exchange_bound(const tsr_problem *x, int ranks) {
    double m = (double)x->m, n = (double)x->n, k = (double)x->k, p = (double)ranks;
    double owned[3] = {m * k / p * (double)tsr_dtype_bytes(x->a.element.dtype), k * n / p * (double)tsr_dtype_bytes(x->b.element.dtype),
                       m * n / p * (double)tsr_dtype_bytes(x->type)};
    if (m * n * k == 0) return 0;
    /* x·y·z ≥ P·owned[0]·owned[1]·owned[2] = (mnk / P)² in elements, each at least what is owned: least sum by levelling. */
    double product = p * owned[0] * owned[1] * owned[2], level = cbrt(product);
    int order[3];
    order3(owned, order);
    double first = owned[order[0]], second = owned[order[1]], least = 3 * level;
    if (level < first) {
        level = sqrt(product / first);
        least = first + 2 * level;
        if (level < second) least = first + second + product / (first * second);
    }
    return fmax(0, least - owned[0] - owned[1] - owned[2]);
}
