/* The cost model of schedules that sweep k in panels, in closed form: bytes and seconds of the busiest rank, and how
 * few bytes any schedule could exchange. The forecast counts the bytes of a rank exactly; this is quick enough to
 * compare every grid. */
#include <math.h>

#include "io/files/raw_file.h"
#include "mpi/plan/gram.h"
#include "mpi/plan/plan_private.h"

#define REDUCE_COST 4.0    /* bytes handled for each byte summed over ranks: sent, received and added */
#define PASS_COST 2.0      /* the same where ranks hand sums on: received, and sent */
#define STEP_SECONDS 50e-6 /* what one panel costs beside its bytes and flops */
/* A product of m × n takes 1 + SMALL_EDGE / sqrt(mn) times what its flops take in a large one: simt and tf32 at 4096
 * beside 8192, H200, 2026-11-21. */
#define SMALL_EDGE 150.0
/* Bytes: what each piece of a row costs a disk beside its own. Written in pieces of 4, 8 and 32 KiB: 2.7, 1.8 and 1.0
 * times as long as whole rows; read in pieces of 12 KiB: 1.4 times, 2026-11-22. */
#define SHORT_ROW 6144.0
#define UNHIDDEN                                                                                                       \
    0.05 /* share of the lanes beside the slowest that does not overlap; at least what the first panels take */

/* ---- where the ranks of a group stand -------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How a grid axis lies on the nodes: `parts` ranks a group, `stride` ranks apart. */
typedef struct {
    double groups; /* that a node's ranks belong to, at most */
    double nodes;  /* a group lies on, about; 1: no byte of it crosses the network */
} placement;

/* Node j holds the ranks from j·node; a group's ranks lie in a block of stride·parts. So a node touches a few
 * blocks, and of each as many groups as it holds ranks of it, at most `stride`. */
static placement place(const tsr_rates *rates, int64_t ranks, int64_t parts, int64_t stride) {
    int64_t node = rates->node_ranks > 0 ? tsr_min(rates->node_ranks, ranks) : ranks, block = stride * parts;
    int64_t blocks = (block - common_divisor(node, block) + node - 1) / block + 1;
    double groups = fmin((double)node, (double)(stride * blocks));
    return (placement){groups, fmax(1, (double)parts * groups / (double)node)};
}

/* One collective lane's seconds for `bytes` that every rank of the groups receives in `calls` rings, over links in
 * the node and between nodes. */
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
    return file_seconds(bytes, r->lane[TSR_LANE_READ], r->node_read_bytes_per_second, r->all_read_bytes_per_second,
                        fmin(ranks, r->node_ranks), ranks);
}

static double write_seconds(const tsr_rates *r, double bytes, double ranks) {
    return file_seconds(bytes, r->lane[TSR_LANE_WRITE], r->node_write_bytes_per_second, r->all_write_bytes_per_second,
                        fmin(ranks, r->node_ranks), ranks);
}

/* What moving rows in pieces of `part` of `all` elements multiplies a file's seconds by. */
static double short_rows(bool on_disk, int64_t part, int64_t all, tsr_dtype type) {
    return on_disk && part > 0 && part < all ? 1 + SHORT_ROW / ((double)part * (double)tsr_dtype_bytes(type)) : 1;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* What the busiest rank's part comes to when [0, total) is cut into blocks of `size`, each over `parts` ranks in
 * whole units, and its part over `pieces`. */
static double largest_part(int64_t total, int64_t unit, int64_t size, int64_t blocks, int64_t parts, int64_t pieces) {
    if (blocks < 1) return 0;
    int64_t last = total - (blocks - 1) * size;
    return (double)((blocks - 1) * tsr_ceil_div(tsr_partition_largest(size, unit, parts), pieces) +
                    tsr_ceil_div(tsr_partition_largest(last, unit, parts), pieces));
}

/* One operand over the whole run, in bytes of the busiest rank: its panels, and what its lanes do for them. Panels
 * are shared in pieces of equal height. */
typedef struct {
    double read, upload, packed;
    double moved;     /* sent and received by the ring */
    double exchanged; /* received and used */
    double panels;    /* how many are loaded */
    double rings;     /* of them those that are exchanged */
} panels;

/* How often the device loads an element, on average. Of a Gram matrix only super-blocks on and below the diagonal want
 * it; where B's panels are made of A's, A is loaded for both. */
static double loads_of(const tsr_plan *plan, tsr_operand_name name) {
    const double blocks = (double)plan->blocks_m;
    if (!plan->problem.gram || plan->operand[name].keep != TSR_KEEP_NONE) return (double)tsr_plan_loads(plan, name);
    return tsr_plan_shares(plan) ? blocks : (blocks + 1) / 2;
}

/* The same of a stack: whole matrices, which no other rank has. */
static panels stacked_of(const tsr_plan *plan, tsr_operand_name name) {
    const tsr_problem *problem = &plan->problem;
    const tsr_operand *x = &problem->operand[name];
    const int64_t rows = tsr_problem_product_rows(problem);
    const double products =
        x->common ? 1 : largest_part(problem->batch, 1, plan->block_m / rows, plan->blocks_m, plan->p, 1);
    const tsr_rect one = tsr_problem_stack_rect(problem, name, 0, 1);
    const double elements = products * (double)one.rows * (double)one.cols;
    const double bytes = elements * (double)tsr_dtype_bytes(x->element.dtype);
    return (panels){.read = bytes,
                    .upload = plan->resources.host_memory ? 0 : bytes,
                    .packed = plan->operand[name].pack ? bytes + elements * (double)tsr_dtype_bytes(problem->input) : 0,
                    .panels = x->common ? 1 : (double)plan->blocks_m};
}

/* `k`: of the rank */
static panels panels_of(const tsr_plan *plan, tsr_operand_name name, int64_t k) {
    const tsr_resources *res = &plan->resources;
    const tsr_operand *x = &plan->problem.operand[name];
    const tsr_operand_plan how = plan->operand[name];
    const tsr_side side = tsr_plan_side(plan, name);
    const bool by_k = !tsr_problem_k_is_cols(&plan->problem, name);
    const bool exchanged = tsr_plan_exchanges(plan, x->path), read = tsr_plan_path(plan, x->path) == TSR_DATA_PATH_HOST;
    const int64_t panel = tsr_max(1, tsr_min(plan->panel, k)), panels_k = tsr_ceil_div(k, panel);
    const bool shares = tsr_plan_shares(plan), again = how.keep == TSR_KEEP_NONE;
    const double loads = loads_of(plan, name);
    const double outer = largest_part(side.length, side.unit, side.block, side.blocks, side.ranks, 1);
    /* the file's rows, and those of them in the pieces of one rank */
    const double rows = by_k ? (double)k : outer;
    const double pieces = by_k
                              ? largest_part(k, 1, panel, panels_k, 1, side.sharing)
                              : largest_part(side.length, side.unit, side.block, side.blocks, side.ranks, side.sharing);
    const double elements = outer * (double)k * loads;
    /* each for its own super-blocks */
    const double packs = shares && again ? outer * (double)k * (double)(plan->blocks_m + 1) / 2 : elements;
    const double bytes = elements * (double)tsr_dtype_bytes(x->element.dtype);
    const double own = rows > 0 ? bytes * pieces / rows : 0;
    const double once = how.keep_host && loads > 0 ? 1.0 / loads : 1;
    /* exchanged on the device, or once in host memory */
    const double shared = !exchanged ? 0 : res->host_memory || res->device_exchange ? 1 : once;
    const double packed = (double)(tsr_dtype_bytes(x->element.dtype) + tsr_problem_packed_bytes(&plan->problem, name));
    panels all = {.read = read ? own * once : 0, .packed = how.pack ? packs * packed : 0};
    all.panels = (double)(panels_k * side.blocks) * loads;
    if (shares && name == TSR_OPERAND_B) { /* nothing is loaded for it */
        all.read = 0;
        return all;
    }
    if (!res->host_memory) all.upload = exchanged && res->device_exchange ? own : bytes;
    all.moved = own * (side.sharing - 1) * shared;
    all.exchanged = bytes * shared * (side.sharing - 1) / side.sharing;
    all.rings = all.panels * shared;
    return all;
}

/* Seconds of every lane: of A and of B while k is swept, and of C. */
typedef struct {
    double operand[TSR_OPERANDS][TSR_LANE_COUNT], drain[TSR_LANE_COUNT];
    double exchanged[TSR_OPERANDS], summed; /* bytes exchanged of A, of B, of C */
    double first; /* seconds of the first panel of A and of B, before which nothing is multiplied */
    double sums;  /* bytes of C that the kernel reads and writes again, panel after panel */
    double blocks, steps;
    /* C's file is written when nothing is read: pieces of rows go through the page cache, and a disk that is read
     * from leaves them there */
    bool in_turn;
} lane_work;

static double swept(const lane_work *work, int lane) {
    return work->operand[TSR_OPERAND_A][lane] + work->operand[TSR_OPERAND_B][lane];
}

/* What the lanes do for one operand: their bytes are added to, their seconds set. */
static void sweep_of(const tsr_plan *plan, tsr_operand_name name, int64_t k, double ranks, lane_work *work,
                     double *bytes, double *panels_loaded) {
    const tsr_rates *rates = &plan->resources.rates;
    const tsr_operand *operand = &plan->problem.operand[name];
    const tsr_side side = tsr_plan_side(plan, name);
    const bool stacked = plan->problem.batch > 1; /* its rows are whole ones */
    const panels x = stacked ? stacked_of(plan, name) : panels_of(plan, name, k);
    const placement at = place(rates, (int64_t)ranks, side.sharing, side.stride);
    const bool by_k = !tsr_problem_k_is_cols(&plan->problem, name);
    /* what is made on the device crosses no link */
    const tsr_lane made = operand->path == TSR_DATA_PATH_DEVICE ? TSR_LANE_PACK : TSR_LANE_UPLOAD;
    double *seconds = work->operand[name];
    const double slower =
        short_rows(operand->on_disk && !stacked, by_k ? side.local : tsr_max(1, tsr_min(plan->panel, k)),
                   by_k ? side.length : plan->problem.k, operand->element.dtype);
    seconds[TSR_LANE_READ] = read_seconds(rates, x.read, ranks) * slower;
    seconds[TSR_LANE_EXCHANGE] = side.sharing > 1 && x.moved > 0 ? ring_seconds(rates, at, x.moved, x.rings) : 0;
    seconds[TSR_LANE_UPLOAD] = x.upload / rates->lane[made];
    seconds[TSR_LANE_PACK] = x.packed / rates->lane[TSR_LANE_PACK];
    bytes[TSR_LANE_READ] += x.read;
    bytes[TSR_LANE_EXCHANGE] += x.exchanged;
    bytes[TSR_LANE_UPLOAD] += x.upload;
    bytes[TSR_LANE_PACK] += x.packed;
    work->exchanged[name] = x.exchanged;
    *panels_loaded = fmax(1, x.panels);
}

/* Of a Gram matrix the share of C that the busiest rank multiplies: below the diagonal all of it. Of two super-blocks
 * on the diagonal half, together, but for the ends of strips (tsr_plan_span). A last one alone has no other: the
 * busiest rank has its last rows and first columns, all of them less half of the square on the diagonal. */
static double multiplied_share(const tsr_plan *plan) {
    if (!plan->problem.gram || plan->blocks_m == 0) return 1;
    const double p = plan->p;
    const double q = plan->q;
    const double blocks = (double)plan->blocks_m, alone = (double)(plan->blocks_m % 2);
    const double edge = (double)plan->block_m;
    const double height = (double)tsr_gram_strip(plan, tsr_plan_local_m(plan)) / edge;
    const double part = 1 / fmax(p, q), ends = part * fmin(part, height) / 2 * p * q;
    const double square = fmax(0, 1 / q - (p - 1) / p), strip = fmin(square, height);
    const double last = 1 - (square * square - square * strip) / 2 * p * q;
    const double diagonal = ((blocks - alone) * (0.5 + ends) + alone * last) / blocks;
    return (blocks - 1 + 2 * diagonal) / (2 * blocks);
}

/* Of the accumulators those that are summed over ranks: all of the rows of a super-block that have something. */
static double share_summed(const tsr_plan *plan) {
    if (!plan->problem.gram || plan->blocks_m == 0) return 1;
    return ((double)plan->blocks_m + 1) / (2 * (double)plan->blocks_m);
}

/* Seconds until the ranks that split k have added up C, of which a rank receives `sums` bytes. Where sums are handed
 * from rank to rank the last one waits for the first strip of each super-block until all others have had it. */
static double summing_seconds(const tsr_plan *plan, double sums, double blocks) {
    const tsr_rates *rates = &plan->resources.rates;
    const placement at = place(rates, (int64_t)plan->p * plan->q * plan->r, plan->r, 1);
    if (plan->r == 1) return 0;
    if (!tsr_plan_chains(plan)) return ring_seconds(rates, at, REDUCE_COST * sums, blocks);
    const double added = sums * (double)(tsr_plan_apart(plan) + 1) / rates->lane[TSR_LANE_PACK];
    const double strips = plan->strip > 0 ? ceil((double)tsr_plan_local_m(plan) / (double)plan->strip) : INFINITY;
    return (ring_seconds(rates, at, PASS_COST * sums, blocks) + added) * (1 + (plan->r - 1) / fmax(1, strips));
}

static void measure(const tsr_plan *plan, lane_work *work, tsr_prediction *prediction) {
    const tsr_problem *x = &plan->problem;
    const tsr_resources *res = &plan->resources;
    const tsr_rates *rates = &res->rates;
    const int64_t ranks = (int64_t)plan->p * plan->q * plan->r, local_n = tsr_plan_local_n(plan);
    const int64_t k = tsr_plan_local_k(plan), panels_k = tsr_ceil_div(k, tsr_max(1, tsr_min(plan->panel, k)));
    const double writers = tsr_plan_writers(plan), writing = (double)(plan->p * plan->q) * writers;
    const double received = tsr_plan_chains(plan) ? 1 : (double)(plan->r - 1) / plan->r; /* of the sums */
    const double m = largest_part(x->m, x->unit_m, plan->block_m, plan->blocks_m, plan->p, 1),
                 n = largest_part(x->n, x->unit_n, plan->block_n, plan->blocks_n, plan->q, 1);
    const double c = tsr_plan_keeps_c(plan) ? 0 : m * n * (double)tsr_dtype_bytes(x->out) / writers;
    const double written = tsr_plan_path(plan, x->c_path) == TSR_DATA_PATH_HOST ? c : 0;
    const double c0 = x->add_c0 ? m * n * (double)tsr_dtype_bytes(x->c0.dtype) / writers : 0;
    const double c0_up = res->host_memory ? 0 : c0, sums = m * n * (double)tsr_problem_sum_bytes(x) * received;

    const double share = multiplied_share(plan); /* of C */
    const tsr_extents reals = tsr_problem_reals(x);
    *work = (lane_work){.blocks = (double)tsr_max(1, tsr_plan_blocks(plan)), .summed = sums * share_summed(plan)};
    work->steps = work->blocks * (double)panels_k;
    *prediction =
        (tsr_prediction){.flops = 2 * m * n * (double)(k * reals.m * reals.n * reals.k) * share, .steps = work->steps};
    double *bytes = prediction->lane_bytes, *drain = work->drain, loaded[TSR_OPERANDS];
    for (int i = 0; i < TSR_OPERANDS; i++)
        sweep_of(plan, (tsr_operand_name)i, k, (double)ranks, work, bytes, &loaded[i]);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        work->first += work->operand[TSR_OPERAND_A][lane] / loaded[TSR_OPERAND_A] +
                       work->operand[TSR_OPERAND_B][lane] / loaded[TSR_OPERAND_B];
    work->sums = 2 * m * n * share * (double)tsr_problem_sum_bytes(x) * (double)tsr_max(0, panels_k - 1);

    drain[TSR_LANE_READ] = read_seconds(rates, c0, writing) * short_rows(x->c0_on_disk, local_n, x->n, x->c0.dtype);
    drain[TSR_LANE_UPLOAD] = c0_up / rates->lane[TSR_LANE_UPLOAD];
    drain[TSR_LANE_EXCHANGE] = summing_seconds(plan, work->summed, work->blocks);
    drain[TSR_LANE_DOWNLOAD] = c / rates->lane[TSR_LANE_DOWNLOAD];
    drain[TSR_LANE_WRITE] = write_seconds(rates, written, writing) * short_rows(x->c_on_disk, local_n, x->n, x->out);
    if (x->gram) /* the half above the diagonal in pieces as long as a strip is high */
        drain[TSR_LANE_WRITE] = (drain[TSR_LANE_WRITE] + write_seconds(rates, written, writing) *
                                                             short_rows(x->c_on_disk, plan->strip, x->n, x->out)) /
                                2;
    bytes[TSR_LANE_READ] += c0;
    bytes[TSR_LANE_EXCHANGE] += work->summed;
    bytes[TSR_LANE_UPLOAD] += c0_up;
    bytes[TSR_LANE_DOWNLOAD] = c;
    bytes[TSR_LANE_WRITE] = written;
    work->in_turn = x->c_on_disk && (x->operand[TSR_OPERAND_A].on_disk || x->operand[TSR_OPERAND_B].on_disk) &&
                    local_n < x->n && (size_t)local_n * tsr_dtype_bytes(x->out) < TSR_RAW_DIRECT_MIN;
}

/* ---- the whole run --------------------------------------------------------------------------- */

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
static double seconds_by_blocks(double blocks, double sweep, double drain) {
    return (sweep + drain + (blocks - 1) * fmax(sweep, drain)) / blocks;
}

/* How many super-blocks need the last band of A or B that comes. In growing squares that is one more row or column
 * of the shorter length; of the last square B's band comes after A's. */
static double blocks_left(const tsr_plan *plan) {
    const double down = (double)plan->blocks_m, across = (double)plan->blocks_n;
    if (plan->problem.gram) return down; /* a whole row */
    if (!tsr_plan_grows(plan)) return down > 1 ? across : 1;
    return fmin(down, across);
}

/* The same where A and B are loaded once: the first super-block needs one band of each, and few are left when the
 * last band has come. */
static double seconds_loaded_once(const tsr_plan *plan, const lane_work *work, double multiply, double sweep,
                                  double drain) {
    const double down = (double)plan->blocks_m;
    const double across = (double)plan->blocks_n;
    const double blocks = work->blocks;
    const double left = blocks_left(plan);
    double first = multiply / blocks;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        first = fmax(first, work->operand[TSR_OPERAND_A][lane] / down + work->operand[TSR_OPERAND_B][lane] / across);
    double last = fmax((left - 1) * multiply + drain, left * drain) / blocks; /* after the last panel has come */
    return fmax(fmax(first + drain, sweep + last), multiply + drain / blocks);
}

/* How much longer the kernel takes for one step after the other than for all of it. */
static double cut_cost(const tsr_plan *plan) {
    const tsr_extents all = tsr_problem_real_product(&plan->problem), reals = tsr_problem_reals(&plan->problem);
    if (!plan->resources.shape_cost || plan->problem.batch > 1) return 1; /* products of a stack are not cut */
    return plan->resources.shape_cost(reals.m * tsr_plan_local_m(plan), reals.n * tsr_plan_local_n(plan),
                                      reals.k * plan->panel) /
           plan->resources.shape_cost(all.m, all.n, all.k);
}

/* The rate is that of large products. */
static double multiply_seconds(const tsr_plan *plan, double flops) {
    const double seconds = flops / plan->resources.rates.lane[TSR_LANE_MULTIPLY],
                 cells = (double)tsr_plan_local_m(plan) * (double)tsr_plan_local_n(plan);
    return plan->resources.host_memory || cells < 1 ? seconds
                                                    : seconds * (1 + SMALL_EDGE / sqrt(cells)) * cut_cost(plan);
}

void tsr_sweep_predict(const tsr_plan *plan, tsr_prediction *prediction) {
    lane_work work;
    measure(plan, &work, prediction);
    prediction->sums_seconds = plan->resources.host_memory ? 0 : work.sums / plan->resources.rates.lane[TSR_LANE_PACK];
    double multiply = multiply_seconds(plan, prediction->flops) + prediction->sums_seconds,
           steps = work.steps * STEP_SECONDS;
    double beside = sum_of(work.operand[TSR_OPERAND_A]) + sum_of(work.operand[TSR_OPERAND_B]);
    double unhidden = fmax(UNHIDDEN * beside, work.first);
    double drain = drain_of(work.drain);
    double sweep = 0;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        const double seconds = swept(&work, lane);
        sweep = fmax(sweep, seconds);
        prediction->lane_seconds[lane] = seconds + work.drain[lane];
    }
    prediction->lane_seconds[TSR_LANE_MULTIPLY] = multiply;
    /* panels of the next super-block come after the sums over k of this one */
    multiply += work.drain[TSR_LANE_EXCHANGE] * (work.blocks - 1) / work.blocks;
    /* every lane runs on the same cores */
    if (plan->resources.host_memory)
        prediction->seconds = prediction->lane_seconds[TSR_LANE_MULTIPLY] + beside + sum_of(work.drain);
    else if (tsr_plan_loads(plan, TSR_OPERAND_A) <= 1 && tsr_plan_loads(plan, TSR_OPERAND_B) <= 1)
        prediction->seconds = seconds_loaded_once(plan, &work, multiply, sweep, drain) + unhidden;
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

/* The fewest panels of all super-blocks: a panel of A (mb × panel) and of B (panel × nb) must fit beside the sums
 * (mb × nb), and two of each where there are more than one, so there are at least mn/(mb·nb) · k/panel steps with
 * panel ≤ (limit - sums) / 2(mb·a + nb·b): fewest where the sums take a third of the limit, or all of C. */
static double least_steps(const tsr_problem *x, double m, double n, double k, double limit) {
    double a = (double)tsr_dtype_bytes(x->operand[TSR_OPERAND_A].element.dtype),
           b = (double)tsr_dtype_bytes(x->operand[TSR_OPERAND_B].element.dtype);
    double type = (double)tsr_problem_sum_bytes(x), cells = fmin(m * n, limit / 3 / type);
    const double alone = cells > 0 ? 2 * m * n * k * sqrt(a * b / cells) / (limit - cells * type) : 0;
    return alone <= 1 ? alone : 2 * alone;
}

/* The least that loading takes, `a` and `b` of it once: again for every super-block, or A once where a band of it
 * stays, or both once where B stays. */
static double least_loaded(double a, double b, double cells, const double bands[TSR_OPERANDS]) {
    double again = least(a, b, cells), kept = bands[TSR_OPERAND_B] <= 1 ? a + b : a + b * fmax(1, bands[TSR_OPERAND_A]);
    return fmin(again, kept);
}

/* How many times the limit a rank's part of an operand is, as the kernel reads it: the bands it must be loaded in. */
static double bands_of(const tsr_plan *plan, tsr_operand_name name, double outer, double k, double limit) {
    return outer * k * (double)tsr_plan_read_bytes(plan, name) / limit;
}

void tsr_sweep_lower_bound(const tsr_plan *begun, double *seconds, double *exchange_bytes) {
    tsr_plan even = *begun;
    /* whole units may be longer pieces of rows */
    if (even.problem.unit_m > 1 || even.problem.unit_n > 1)
        even.problem.operand[TSR_OPERAND_A].on_disk = even.problem.operand[TSR_OPERAND_B].on_disk =
            even.problem.c0_on_disk = false;
    even.problem.unit_m = even.problem.unit_n = 1; /* super-blocks may share units out better than one block does */
    const tsr_plan *plan = &even;
    const tsr_resources *res = &plan->resources;
    const tsr_problem *x = &plan->problem;
    lane_work work;
    tsr_prediction whole;
    measure(plan, &work, &whole);
    const double limit = (double)tsr_device_limit(res);
    /* of a Gram matrix: however it is cut, half is multiplied, loaded and summed. C is written as always. */
    const double least_share = x->gram ? 0.5 : 1;
    if (x->gram)
        whole.flops = 2 * (double)x->m * (double)x->n * (double)x->k / ((double)plan->p * plan->q * plan->r) / 2;
    work.drain[TSR_LANE_EXCHANGE] *= least_share;
    double m = (double)tsr_ceil_div(x->m, plan->p);
    double n = (double)tsr_ceil_div(x->n, plan->q);
    double k = (double)tsr_plan_local_k(plan);
    double cells = m * n * (double)tsr_problem_sum_bytes(x) / limit; /* the sums of a super-block must fit */
    const double bands[TSR_OPERANDS] = {bands_of(plan, TSR_OPERAND_A, m, k, limit),
                                        bands_of(plan, TSR_OPERAND_B, n, k, limit)};
    double multiply = whole.flops / res->rates.lane[TSR_LANE_MULTIPLY];
    double drain = drain_of(work.drain);
    double sweep = multiply;
    double beside = 0;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        /* and may stay in host memory */
        bool once =
            !res->host_memory && (lane == TSR_LANE_READ || (lane == TSR_LANE_EXCHANGE && !res->device_exchange));
        double lane_seconds =
            once ? swept(&work, lane)
                 : least_loaded(work.operand[TSR_OPERAND_A][lane], work.operand[TSR_OPERAND_B][lane], cells, bands);
        sweep = fmax(sweep, least_share * lane_seconds);
        beside += least_share * lane_seconds;
    }
    double steps = least_share * fmax(fmax(work.steps, cells), least_steps(x, m, n, k, limit)) * STEP_SECONDS;
    *seconds =
        steps + (res->host_memory ? multiply + beside + sum_of(work.drain) : fmax(sweep, drain) + UNHIDDEN * beside);
    bool stays = !res->host_memory && !res->device_exchange;
    const double a = work.exchanged[TSR_OPERAND_A], b = work.exchanged[TSR_OPERAND_B];
    *exchange_bytes = least_share * (work.summed + (stays ? a + b : least_loaded(a, b, cells, bands)));
}

/* ---- the lower bound of communication -------------------------------------------------------- */

/* Which of three lengths `values` is the longest, the next, the last. */
static void order3(const double values[3], int order[3]) {
    order[0] = 0;
    order[1] = 1;
    order[2] = 2;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2 - i; j++)
            if (values[order[j]] < values[order[j + 1]]) {
                int swap = order[j];
                order[j] = order[j + 1];
                order[j + 1] = swap;
            }
}

double tsr_exchange_bound(const tsr_problem *x, int ranks) {
    double m = (double)x->m;
    double n = (double)x->n;
    double k = (double)x->k;
    double p = (double)ranks;
    double owned[3] = {m * k / p * (double)tsr_dtype_bytes(x->operand[TSR_OPERAND_A].element.dtype),
                       k * n / p * (double)tsr_dtype_bytes(x->operand[TSR_OPERAND_B].element.dtype),
                       m * n / p * (double)tsr_problem_sum_bytes(x)};
    if (m * n * k == 0 || x->batch > 1) return 0; /* products of a stack have nothing in common */
    /* x·y·z ≥ P·owned[0]·owned[1]·owned[2] = (mnk / P)² in elements, each at least what is owned: least sum by
     * levelling. */
    double product = p * owned[0] * owned[1] * owned[2], level = cbrt(product);
    int order[3];
    order3(owned, order);
    double first = owned[order[0]];
    double second = owned[order[1]];
    double least = 3 * level;
    if (level < first) {
        level = sqrt(product / first);
        least = first + 2 * level;
        if (level < second) least = first + second + product / (first * second);
    }
    return fmax(0, least - owned[0] - owned[1] - owned[2]);
}

tsr_lane tsr_prediction_busiest(const tsr_prediction *prediction) {
    tsr_lane most = TSR_LANE_READ;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (prediction->lane_seconds[lane] > prediction->lane_seconds[most]) most = (tsr_lane)lane;
    return most;
}
