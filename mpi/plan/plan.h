/* A plan: the whole multiplication written down as data before anything runs. Every rank computes the same plan from
 * the same problem and resources; it can be printed, simulated for any rank of any job in one process, and run by
 * mpi/execute.
 *
 * C (m × n) is cut into super-blocks, each cut over p × q ranks; k is cut over r. For each super-block its k range
 * is swept in panels (of a stack of products a super-block is a group of them, and one panel holds its matrices):
 * a rank reads its share of the panel's stored rows, the grid row shares A's panel, the grid column B's, the kernel
 * accumulates. */
#ifndef TSR_MPI_PLAN_PLAN_H
#define TSR_MPI_PLAN_PLAN_H

#include "io/record/lanes.h"
#include "mpi/plan/problem.h"
#include "mpi/ranks/partition.h"

/* Assumed speed of one rank's lanes: bytes/s, and flop/s for the multiply lane. Only ratios matter for the choice of
 * a grid. What the ranks of a node or all ranks share comes on top; 0: no limit beside the lanes'. */
typedef struct {
    double lane[TSR_LANE_COUNT];
    /* consecutive ranks stand in one node, whose links lane[EXCHANGE] is; 0: one node holds all */
    int node_ranks;
    double network_bytes_per_second; /* into a node, which its ranks share; nothing that stays in a node uses it */
    double network_latency_seconds;  /* from node to node */
    double node_read_bytes_per_second, node_write_bytes_per_second; /* of files: the ranks of a node together */
    double all_read_bytes_per_second, all_write_bytes_per_second;   /* of files: all ranks together */
} tsr_rates;

/* Which panels of an operand stay in memory after they were multiplied, for the super-blocks that need them again. */
typedef enum {
    TSR_KEEP_NONE, /* each super-block loads its own */
    TSR_KEEP_BAND, /* of one row of super-blocks, which are swept one after another: op(A) is loaded once */
    TSR_KEEP_ALL   /* of the whole run */
} tsr_keep;

typedef struct tsr_schedule_ops tsr_schedule_ops; /* mpi/schedule/schedule.h */

/* What the plan may use; the same on every rank. */
typedef struct {
    int ranks;
    bool host_memory;                 /* the device works in host memory: no upload, no download */
    bool device_exchange;             /* the transport moves device memory; false: panels are shared in host memory */
    size_t device_limit;              /* bytes a rank may allocate on its device */
    size_t host_limit;                /* bytes of host memory a rank may allocate (with host_memory: both together) */
    size_t host_beside;               /* of these what is for something else than the plan, which may be more */
    int grid[3];                      /* forced p, q, r; 0, 0, 0: chosen */
    int64_t panel;                    /* forced k of a step; 0: chosen */
    const tsr_schedule_ops *schedule; /* forced; NULL: chosen */
    /* super-blocks that memory does not ask for, so that C leaves while it is computed, are no smaller on a rank; 0:
     * 2048. Bands of whole rows: 512 at most */
    int64_t edge;
    /* C is cut so that parts of it are whole after seconds, for a run that goes on later (--resume); and into
     * super-blocks of at most cut_m × cut_n, as the first of such runs did: 0, 0: chosen */
    bool parts;
    int64_t cut_m, cut_n;
    int64_t multiple; /* the kernel's operands are padded to multiples of this */
    /* device memory the kernel wants for a product of at most m, n, k; NULL: none */
    size_t (*workspace_bytes)(int64_t m, int64_t n, int64_t k);
    /* what a flop takes in a product of that shape, of what it takes in an endless one; NULL: the same in any */
    double (*shape_cost)(int64_t m, int64_t n, int64_t k);
    /* device memory for the check of products (kernels/check), of tsr_check_room; NULL: they are not checked */
    size_t (*check_bytes)(int64_t rows, int64_t width, int64_t depth);
    bool compares;        /* with it: C comes back to the device, to be compared (tsr_plan.compares) */
    size_t portion_bytes; /* of a portion (tsr_plan_reads_portions) at most; 0: TSR_PORTION_BYTES */
    tsr_rates rates;
} tsr_resources;

/* Bytes that a plan may have on a rank's device, and in host memory: where the device works in host memory both are
 * one, and the less counts. */
static inline size_t tsr_host_limit(const tsr_resources *res) {
    const size_t limit = res->host_memory && res->device_limit < res->host_limit ? res->device_limit : res->host_limit;
    return limit > res->host_beside ? limit - res->host_beside : 0;
}
static inline size_t tsr_device_limit(const tsr_resources *res) {
    return res->host_memory ? tsr_host_limit(res) : res->device_limit;
}

/* Typical rates for a kind of device and transport. `threads`: of the CPU kernel. */
tsr_rates tsr_rates_typical(bool cuda, bool device_exchange, tsr_dtype type, int threads);
/* Bytes a second that so many threads copy within the host's memory. */
double tsr_rate_of_memory(int threads);

/* The buffers of a plan: code, name. A class has `count` buffers of `bytes` each; content v of a class lives in
 * buffer v mod count. */
#define TSR_SLOT_LIST(X)                                                                                               \
    X(HOST_A, "A read (host)")                                                                                         \
    X(HOST_B, "B read (host)")                                                                                         \
    X(PANEL_A, "A panel")                                                                                              \
    X(PANEL_B, "B panel")                                                                                              \
    X(PACKED_A, "A packed")                                                                                            \
    X(PACKED_B, "B packed")                                                                                            \
    X(SUM, "C accumulators")                                                                                           \
    X(WORKSPACE, "kernel workspace")                                                                                   \
    X(CHECK, "check")                                                                                                  \
    X(PART, "C strip summed over k")                                                                                   \
    X(PART_HOST, "C strip summed over k (host)")                                                                       \
    X(C0_HOST, "C0 strip (host)")                                                                                      \
    X(C0, "C0 strip")                                                                                                  \
    X(OUT, "C strip")                                                                                                  \
    X(OUT_HOST, "C strip (host)")

typedef enum {
#define X(code, name) TSR_SLOT_##code,
    TSR_SLOT_LIST(X)
#undef X
        TSR_SLOT_COUNT
} tsr_slot_class;

/* The class of an operand beside `of_a`, which is A's: B's comes next. */
static inline tsr_slot_class tsr_slot_of(tsr_slot_class of_a, tsr_operand_name name) {
    return (tsr_slot_class)((int)of_a + (int)name);
}

typedef struct {
    bool host;    /* host memory (pinned where the device is a GPU); false: device memory */
    int count;    /* buffers; 0: the plan does not need the class */
    int first;    /* number of its first buffer among all of the plan */
    size_t bytes; /* of one buffer */
} tsr_slots;

/* What the plan does with A, or with B. */
typedef struct {
    bool pack;      /* false: the kernel reads the panel as it is */
    tsr_keep keep;  /* on the device, as the kernel reads it; B: none or all */
    bool keep_host; /* all that was read stays in host memory, too */
} tsr_operand_plan;

typedef struct {
    tsr_problem problem;
    tsr_resources resources;
    const tsr_schedule_ops *schedule; /* whose steps it is made of */
    const struct tsr_done *done;      /* super-blocks that are left out (mpi/schedule/done.h); NULL: none; not owned */
    bool compares; /* the steps compare a C that was written with A and B, in place of making it: its resources say so,
                    * too, and r = 1 */
    int p, q, r;
    int64_t block_m, block_n;   /* super-block of C, over all ranks */
    int64_t blocks_m, blocks_n; /* how many; 0 when C is empty */
    int64_t panel;              /* k of one step, ≥ 1 */
    int wider;                  /* how many times the usual bytes panels were looked for with */
    int64_t strip;              /* rows of C one download carries on one rank, ≥ 1 */
    /* each rank copies whole panels out of the stores' own memory; false: pieces of them, which are exchanged */
    bool copies_panels;
    tsr_operand_plan operand[TSR_OPERANDS];
    tsr_slots slots[TSR_SLOT_COUNT];
    int buffers;                     /* of all classes */
    double device_bytes, host_bytes; /* a rank allocates; with host_memory all is host_bytes */
} tsr_plan;

/* The side of C along which A's rows lie (m), or B's columns (n): how it is cut, and between whom. */
typedef struct {
    int64_t length, unit;  /* cut at multiples of */
    int64_t block, blocks; /* super-blocks */
    int ranks;             /* that cut a super-block */
    int sharing;           /* ranks that multiply the same panel of the operand, */
    int stride;            /* so many ranks apart */
    int64_t local;         /* of a super-block, on the rank that has most of it */
} tsr_side;
static inline tsr_side tsr_plan_side(const tsr_plan *plan, tsr_operand_name name) {
    const tsr_problem *x = &plan->problem;
    tsr_side side = {.length = x->m,
                     .unit = x->unit_m,
                     .block = plan->block_m,
                     .blocks = plan->blocks_m,
                     .ranks = plan->p,
                     .sharing = plan->q,
                     .stride = plan->r};
    if (name == TSR_OPERAND_B)
        side = (tsr_side){.length = x->n,
                          .unit = x->unit_n,
                          .block = plan->block_n,
                          .blocks = plan->blocks_n,
                          .ranks = plan->q,
                          .sharing = x->batch > 1 ? 1 : plan->p,
                          .stride = plan->q * plan->r};
    side.local = tsr_partition_largest(side.block, side.unit, side.ranks);
    return side;
}
/* Rows (A's side) or columns (B's) of C: those of super-block `block` on the ranks at `place` along that side. Of every
 * other row and column of a Gram matrix's super-blocks the ranks have the parts in reverse order: who has much below
 * the diagonal in one super-block on it has little in the next. */
static inline tsr_span tsr_plan_span(const tsr_plan *plan, tsr_operand_name name, int64_t block, int place) {
    const tsr_side side = tsr_plan_side(plan, name);
    if (plan->problem.gram && block % 2 == 1) place = side.ranks - 1 - place;
    const tsr_span whole = tsr_block(side.length, side.block, block);
    return tsr_span_within(whole, tsr_partition_units(whole.count, side.unit, side.ranks, place));
}
/* Rows and columns of a super-block on the rank that has most of it. */
static inline int64_t tsr_plan_local_m(const tsr_plan *plan) { return tsr_plan_side(plan, TSR_OPERAND_A).local; }
static inline int64_t tsr_plan_local_n(const tsr_plan *plan) { return tsr_plan_side(plan, TSR_OPERAND_B).local; }
/* The part of k of the ranks at `depth` of those that split it: whole ranges where the problem has such, one after
 * another. */
static inline tsr_span tsr_plan_ks(const tsr_plan *plan, int depth) {
    return tsr_partition_units(plan->problem.k, tsr_max(1, plan->problem.blocks.k), plan->r, depth);
}
/* k of the rank that has most of it. */
static inline int64_t tsr_plan_local_k(const tsr_plan *plan) {
    return tsr_partition_largest(plan->problem.k, tsr_max(1, plan->problem.blocks.k), plan->r);
}
/* Whether ranks that split k add its ranges in their order: each range is a panel, and its product stays apart. For
 * each strip of C the first rank hands the sum of its ranges to the next one, which adds its own to it. The last one
 * finishes and writes. Otherwise the ranks' sums are added in any order, each rank's strips by itself. */
static inline bool tsr_plan_chains(const tsr_plan *plan) { return plan->r > 1 && plan->problem.blocks.k > 0; }
/* Sums that stay apart for each element of C: in a buffer of accumulators as many parts, one behind the other. */
static inline int64_t tsr_plan_apart(const tsr_plan *plan) {
    return tsr_plan_chains(plan) ? tsr_ceil_div(tsr_plan_local_k(plan), plan->problem.blocks.k) : 1;
}
static inline size_t tsr_plan_sums_bytes(const tsr_plan *plan) { /* of one such part */
    return plan->slots[TSR_SLOT_SUM].bytes / (size_t)tsr_plan_apart(plan);
}
/* Ranks that share the strips of C which the ranks of one place in m and n make. */
static inline int tsr_plan_writers(const tsr_plan *plan) { return tsr_plan_chains(plan) ? 1 : plan->r; }
/* How A and B reach the device, and C leaves it: where that is the host's memory, the stores read and write it. */
static inline tsr_data_path tsr_plan_path(const tsr_plan *plan, tsr_data_path path) {
    return plan->resources.host_memory ? TSR_DATA_PATH_HOST : path;
}
static inline bool tsr_plan_keeps_c(const tsr_plan *plan) { return plan->problem.c_path == TSR_DATA_PATH_DEVICE; }
/* Whether ranks that multiply the same panel of an operand fetch a piece each and exchange them: on the device, or
 * in host memory. */
static inline bool tsr_plan_exchanges(const tsr_plan *plan, tsr_data_path path) {
    path = tsr_plan_path(plan, path);
    return path == TSR_DATA_PATH_HOST ||
           (plan->resources.device_exchange && !(path == TSR_DATA_PATH_MAPPED && plan->copies_panels));
}
/* Whether C is more than the accumulators as they are: scaled, added to, with one NaN, or of another type. Otherwise a
 * device's are copied out at once. */
static inline bool tsr_plan_finishes(const tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    const bool scaled = x->alpha != 1 || x->alpha_imag != 0, complex = tsr_problem_sums(x) == TSR_FORM_BESIDE;
    return plan->resources.host_memory || scaled || x->add_c0 || x->one_nan || tsr_problem_sums(x) == TSR_FORM_ROWS ||
           x->out != (complex ? tsr_dtype_complex_of(x->type) : x->type);
}
/* Whether super-blocks come in growing squares, so that each new row or column of them needs one new band of A or B;
 * else row by row. */
static inline bool tsr_plan_grows(const tsr_plan *plan) {
    return plan->operand[TSR_OPERAND_A].keep == TSR_KEEP_ALL && plan->operand[TSR_OPERAND_B].keep == TSR_KEEP_ALL;
}
/* How often the device loads all of a rank's part of an operand: again for each super-block along the other side,
 * unless it stays. */
static inline int64_t tsr_plan_loads(const tsr_plan *plan, tsr_operand_name name) {
    /* of a Gram matrix: the band that is loaded most often */
    const int64_t again = plan->problem.batch > 1 || name == TSR_OPERAND_A ? plan->blocks_n : plan->blocks_m;
    return plan->operand[name].keep == TSR_KEEP_NONE ? again : tsr_min(1, again);
}
/* One rank multiplies all of a Gram matrix's super-blocks (or of ranks that split k, each its part): B's panels are
 * made of what is loaded of A. */
static inline bool tsr_plan_shares(const tsr_plan *plan) { return plan->problem.gram && plan->p * plan->q == 1; }
/* How often its file is read: once where what was read stays in host memory. */
static inline int64_t tsr_plan_reads(const tsr_plan *plan, tsr_operand_name name) {
    if (name == TSR_OPERAND_B && tsr_plan_shares(plan)) return 0;
    const int64_t loads = tsr_plan_loads(plan, name);
    return plan->operand[name].keep_host ? tsr_min(1, loads) : loads;
}

/* Bytes of the file in a row of an operand's widest panel. */
static inline size_t tsr_plan_row_bytes(const tsr_plan *plan, tsr_operand_name name) {
    const tsr_problem *problem = &plan->problem;
    const tsr_operand *x = &problem->operand[name];
    const int64_t of_panel = tsr_problem_k_is_cols(problem, name) ? plan->panel : tsr_plan_side(plan, name).local;
    return (size_t)(problem->batch > 1 ? x->cols : of_panel) * tsr_dtype_bytes(x->element.dtype);
}
#define TSR_PORTION_BYTES ((size_t)32 << 20) /* in smaller ones threads wait for each other */
#define TSR_PORTION_ROWS 16
static inline size_t tsr_plan_portion_bytes(const tsr_plan *plan) {
    return plan->resources.portion_bytes > 0 ? plan->resources.portion_bytes : TSR_PORTION_BYTES;
}
/* Whether what this rank reads of a panel goes on to the device in portions, which the caches still hold then: where
 * reading is copying from memory, and the whole panel is not wanted in host memory. Threads share the rows of a
 * portion, so long ones are read as a whole. */
static inline bool tsr_plan_reads_portions(const tsr_plan *plan, tsr_operand_name name) {
    const tsr_resources *res = &plan->resources;
    const tsr_operand *x = &plan->problem.operand[name];
    return x->copied && x->path == TSR_DATA_PATH_HOST && !res->host_memory && !plan->operand[name].keep_host &&
           (res->device_exchange || tsr_plan_side(plan, name).sharing == 1) &&
           tsr_plan_row_bytes(plan, name) <= tsr_plan_portion_bytes(plan) / TSR_PORTION_ROWS;
}

/* Reals from row to row of a packed operand with `cols` columns of them: rows begin at multiples of 16 bytes, which
 * kernels read fastest. */
static inline int64_t tsr_plan_packed_ld(const tsr_plan *plan, int64_t cols) {
    return tsr_round_up(cols, 16 / (int64_t)tsr_dtype_bytes(plan->problem.input));
}

/* Bytes of an element of an operand as the kernel reads it. */
static inline size_t tsr_plan_read_bytes(const tsr_plan *plan, tsr_operand_name name) {
    return plan->operand[name].pack ? tsr_problem_packed_bytes(&plan->problem, name)
                                    : tsr_dtype_bytes(plan->problem.operand[name].element.dtype);
}

/* What the check of products needs room for, in reals: rows and columns of a rank's part of a super-block, and rows of
 * B of a step. */
typedef struct {
    int64_t rows, width, depth;
} tsr_check_room;
tsr_check_room tsr_plan_check_room(const tsr_plan *plan); /* plan_memory.c */
/* plan_memory.c: the largest product that the kernel is asked for, in real elements. */
tsr_extents tsr_plan_product(const tsr_plan *plan);

/* Chooses grid, super-blocks and panel. TSR_ERR_LIMIT says need, have, and the setting that would work;
 * TSR_ERR_USAGE when a forced grid needs more ranks than there are. */
tsr_status tsr_plan_make(const tsr_problem *problem, const tsr_resources *resources, tsr_plan *plan);

/* The plan that exchanges the fewest bytes of all p × q × r with at least as many ranks at work as `plan` has, found
 * by exhaustive search; `plan` itself when none exchanges fewer. Where it differs from `plan` it is predicted to be
 * slower, or no faster. */
void tsr_plan_fewest_bytes(const tsr_plan *plan, tsr_plan *fewest);

#endif
