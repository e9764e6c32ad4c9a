/* A plan: the whole multiplication written down as data before anything runs. Every rank computes the same plan from the same
 * problem and resources; it can be printed, simulated for any rank of any job in one process, and run by mpi/execute.
 *
 * C (m × n) is cut into super-blocks, each cut over p × q ranks; k is cut over r. For each super-block its k range is swept in panels:
 * a rank reads its share of the panel's stored rows, the grid row shares A's panel, the grid column B's, the kernel accumulates. */
#ifndef TSR_MPI_PLAN_H
#define TSR_MPI_PLAN_H

#include <stdio.h>

#include "io/run_record.h"
#include "kernels/base.h"
#include "mpi/partition.h"

/* How an operand's elements reach the device, and C's leave it. */
typedef enum {
    TSR_ROAD_HOST,   /* the store reads into a host buffer (or writes from one), which is copied to the device (or from it) */
    TSR_ROAD_MAPPED, /* the store's own memory (its `map`) is copied to the device, or from it */
    TSR_ROAD_DEVICE  /* A, B: a generated store's elements are made on the device. C: stays in the accumulators */
} tsr_road;

/* A or B as the file stores it: rows × cols of `element`; the operand is its transpose when `transpose`. */
typedef struct {
    int64_t rows, cols;
    tsr_element element;
    bool transpose;
    tsr_road road;
} tsr_operand;

/* C (m × n) = alpha · op(A) (m × k) · op(B) (k × n) + beta · C0 (m × n) */
typedef struct {
    int64_t m, n, k; /* k = 0 when alpha = 0: A and B are not read */
    tsr_operand a, b;
    bool add_c0; /* beta ≠ 0 */
    tsr_element c0;
    double alpha, beta;
    tsr_dtype input; /* A and B as the kernel takes them: packed into it unless the file holds it. `type` unless set otherwise */
    tsr_dtype type; /* accumulated in: TSR_F32 or TSR_F64 */
    tsr_dtype out;  /* stored in */
    tsr_road c_road;
    bool a_on_disk, b_on_disk, c0_on_disk, c_on_disk; /* rows are bytes of a file on a disk, which is slow with short pieces of them */
    int64_t unit_m, unit_n; /* C is cut between ranks and super-blocks at multiples of these; 1 unless its file is chunked */
} tsr_problem;

/* Sets m, n, k and the types; TSR_ERR_SHAPE shows both shapes. c0 (rows × cols, may be NULL) is needed exactly when
 * beta ≠ 0. The product is made and C stored in fp64 where an operand's type asks for it (tsr_dtype_compute), or where
 * a product of integers may come to more than fp32 holds exactly; else in fp32. */
tsr_status tsr_problem_make(tsr_operand a, tsr_operand b, const tsr_operand *c0, double alpha, double beta, tsr_problem *problem);
/* C is stored as `out`, because somebody said so. The product is made in fp64 for an f64 and where an operand's type
 * asks for it, whatever sums come to. */
void tsr_problem_store_as(tsr_problem *problem, tsr_dtype out);
/* The magnitude that sums of a product of integers, and elements of C, can reach, as far as k, alpha, beta and the
 * ranges of the types say (of C0's type where that is an integer one). 0 where A or B is floating: there nothing is
 * exact. */
double tsr_problem_reach(const tsr_problem *problem);
/* Whether fp64 is taken for the sums' sake alone, and why: 60 characters or so, of `text`'s at least 128. Else "". */
bool tsr_problem_widened(const tsr_problem *problem, char *text);
/* Whether C is a product of integers and may not be exact, why, and what to do, in `text` of at least 512. Else "". */
bool tsr_problem_inexact(const tsr_problem *problem, char *text);

/* Assumed speed of one rank's lanes: bytes/s, and flop/s for the multiply lane. Only ratios matter for the choice of a grid. What the ranks of a node
 * or all ranks share comes on top; 0: no limit beside the lanes'. */
typedef struct {
    double lane[TSR_LANE_COUNT];
    int node_ranks;                  /* consecutive ranks stand in one node, whose links lane[EXCHANGE] is; 0: one node holds all */
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

/* What the plan may use; the same on every rank. */
typedef struct {
    int ranks;
    bool host_memory;     /* the device works in host memory: no upload, no download */
    bool device_exchange; /* the transport moves device memory; false: panels are shared in host memory */
    size_t device_limit;  /* bytes a rank may allocate on its device */
    size_t host_limit;    /* bytes of host memory a rank may allocate (with host_memory: both together) */
    int grid[3];          /* forced p, q, r; 0, 0, 0: chosen */
    int64_t panel;        /* forced k of a step; 0: chosen */
    int64_t edge;         /* super-blocks that memory does not ask for, so that C leaves while it is computed, are no smaller on a rank; 0: 2048. Bands of whole rows: 512 at most */
    int64_t multiple;     /* the kernel's operands are padded to multiples of this */
    size_t (*workspace_bytes)(int64_t m, int64_t n, int64_t k); /* device memory the kernel wants for a product of at most m, n, k; NULL: none */
    tsr_rates rates;
} tsr_resources;

/* Bytes that a rank may have on its device, and in host memory: where the device works in host memory both are one, and the less counts. */
static inline size_t tsr_device_limit(const tsr_resources *res) { return res->host_memory && res->host_limit < res->device_limit ? res->host_limit : res->device_limit; }
static inline size_t tsr_host_limit(const tsr_resources *res) { return res->host_memory ? tsr_device_limit(res) : res->host_limit; }

/* Typical rates for a kind of device and transport. `threads`: of the CPU kernel. */
tsr_rates tsr_rates_typical(bool cuda, bool device_exchange, tsr_dtype type, int threads);

/* The buffers of a plan: code, name. A class has `count` buffers of `bytes` each; content v of a class lives in buffer v mod count. */
#define TSR_SLOT_LIST(X)                                                                                              \
    X(HOST_A, "A read (host)")                                                                                        \
    X(HOST_B, "B read (host)")                                                                                        \
    X(PANEL_A, "A panel")                                                                                             \
    X(PANEL_B, "B panel")                                                                                             \
    X(PACKED_A, "A packed")                                                                                           \
    X(PACKED_B, "B packed")                                                                                           \
    X(SUM, "C accumulators")                                                                                          \
    X(WORKSPACE, "kernel workspace")                                                                                  \
    X(PART, "C strip summed over k")                                                                                  \
    X(PART_HOST, "C strip summed over k (host)")                                                                      \
    X(C0_HOST, "C0 strip (host)")                                                                                     \
    X(C0, "C0 strip")                                                                                                 \
    X(OUT, "C strip")                                                                                                 \
    X(OUT_HOST, "C strip (host)")

typedef enum {
#define X(code, name) TSR_SLOT_##code,
    TSR_SLOT_LIST(X)
#undef X
    TSR_SLOT_COUNT
} tsr_slot_class;

typedef struct {
    bool host;      /* host memory (pinned where the device is a GPU); false: device memory */
    int count;      /* buffers; 0: the plan does not need the class */
    int first;      /* number of its first buffer among all of the plan */
    size_t bytes;   /* of one buffer */
} tsr_slots;

typedef struct {
    tsr_problem problem;
    tsr_resources resources;
    int p, q, r;
    int64_t block_m, block_n;   /* super-block of C, over all ranks */
    int64_t blocks_m, blocks_n; /* how many; 0 when C is empty */
    int64_t panel;              /* k of one step, ≥ 1 */
    int wider;                  /* how many times the usual bytes panels were looked for with */
    int64_t strip;              /* rows of C one download carries on one rank, ≥ 1 */
    bool pack_a, pack_b;        /* false: the kernel reads the panel as it is */
    bool apart;                 /* each rank copies whole panels out of the stores' own memory; false: pieces of them, which are exchanged */
    tsr_keep keep_a, keep_b;    /* on the device, as the kernel reads them; B: none or all */
    bool keep_host_a, keep_host_b; /* all that was read stays in host memory, too */
    tsr_slots slots[TSR_SLOT_COUNT];
    int buffers;                /* of all classes */
    double device_bytes, host_bytes; /* a rank allocates; with host_memory all is host_bytes */
} tsr_plan;

/* Rows and columns of a super-block on the rank that has most of it. */
static inline int64_t tsr_plan_local_m(const tsr_plan *plan) { return tsr_partition_largest(plan->block_m, plan->problem.unit_m, plan->p); }
static inline int64_t tsr_plan_local_n(const tsr_plan *plan) { return tsr_partition_largest(plan->block_n, plan->problem.unit_n, plan->q); }
/* How A and B reach the device, and C leaves it: where that is the host's memory, the stores read and write it. */
static inline tsr_road tsr_plan_road(const tsr_plan *plan, tsr_road road) { return plan->resources.host_memory ? TSR_ROAD_HOST : road; }
static inline bool tsr_plan_keeps_c(const tsr_plan *plan) { return plan->problem.c_road == TSR_ROAD_DEVICE; }
/* Whether ranks that multiply the same panel of an operand fetch a piece each and exchange them: on the device, or in host memory. */
static inline bool tsr_plan_exchanges(const tsr_plan *plan, tsr_road road) {
    road = tsr_plan_road(plan, road);
    return road == TSR_ROAD_HOST || (plan->resources.device_exchange && !(road == TSR_ROAD_MAPPED && plan->apart));
}
/* Whether C is more than the accumulators as they are: scaled, added to, or of another type. Otherwise a device's are copied out at once. */
static inline bool tsr_plan_finishes(const tsr_plan *plan) {
    const tsr_problem *x = &plan->problem;
    return plan->resources.host_memory || x->alpha != 1 || x->add_c0 || x->out != x->type;
}
/* Whether super-blocks come in growing squares, so that each new row or column of them needs one new band of A or B; else row by row. */
static inline bool tsr_plan_grows(const tsr_plan *plan) { return plan->keep_a == TSR_KEEP_ALL && plan->keep_b == TSR_KEEP_ALL; }
/* How often the device loads all of a rank's part of A, and of B. */
static inline int64_t tsr_plan_loads_a(const tsr_plan *plan) { return plan->keep_a == TSR_KEEP_NONE ? plan->blocks_n : tsr_min(1, plan->blocks_n); }
static inline int64_t tsr_plan_loads_b(const tsr_plan *plan) { return plan->keep_b == TSR_KEEP_NONE ? plan->blocks_m : tsr_min(1, plan->blocks_m); }
/* How often its file is read: once where what was read stays in host memory. */
static inline int64_t tsr_plan_reads_a(const tsr_plan *plan) { return plan->keep_host_a ? tsr_min(1, plan->blocks_n) : tsr_plan_loads_a(plan); }
static inline int64_t tsr_plan_reads_b(const tsr_plan *plan) { return plan->keep_host_b ? tsr_min(1, plan->blocks_m) : tsr_plan_loads_b(plan); }

/* Elements from row to row of a packed operand with `cols` columns: rows begin at multiples of 16 bytes, which kernels read fastest. */
static inline int64_t tsr_plan_packed_ld(const tsr_plan *plan, int64_t cols) {
    return tsr_round_up(cols, 16 / (int64_t)tsr_dtype_bytes(plan->problem.input));
}

/* Chooses grid, super-blocks and panel. TSR_ERR_LIMIT says need, have, and the setting that would work; TSR_ERR_USAGE when a forced grid
 * needs more ranks than there are. */
tsr_status tsr_plan_make(const tsr_problem *problem, const tsr_resources *resources, tsr_plan *plan);

/* What one rank of the plan will do, by simulating its steps: exact bytes a lane, flops, products. */
typedef struct {
    double lane_bytes[TSR_LANE_COUNT];
    double flops;
    int64_t tiles, steps;
} tsr_forecast;
tsr_status tsr_plan_forecast(const tsr_plan *plan, int rank, tsr_forecast *forecast);

/* The cost model's answer for a plan: the busiest rank's, in closed form. */
typedef struct {
    double lane_bytes[TSR_LANE_COUNT];   /* as the lane's record counts them; exchange: received and used; multiply: 0 */
    double lane_seconds[TSR_LANE_COUNT]; /* busy */
    double sums_seconds;    /* of the multiply lane: every panel but the first of a super-block reads and writes its sums again */
    double flops;
    double steps;                        /* panels of all super-blocks */
    double seconds;                      /* first read to last byte written */
} tsr_prediction;
void tsr_plan_predict(const tsr_plan *plan, tsr_prediction *prediction);

/* Bytes that some rank must receive from others, whatever the schedule, when `ranks` ranks share the work or the data evenly and each element of A and B
 * is in the memory of one rank at first: a rank that does mnk/P multiplications needs x of A, y of B and z of C with x·y·z ≥ (mnk/P)² (Loomis and Whitney) and at
 * least 1/P of each (Irony, Toledo, Tiskin 2004; with its best constants, without a memory limit: Al Daas, Ballard, Grigori, Kumar, Rouse,
 * "Tight memory-independent parallel matrix multiplication communication lower bounds", SPAA 2022). Types of different size weigh their elements. */
double tsr_exchange_bound(const tsr_problem *problem, int ranks);

/* The plan that exchanges the fewest bytes of all p × q × r with at least as many ranks at work as `plan` has, found by exhaustive search; `plan` itself
 * when none exchanges fewer. Where it differs from `plan` it is predicted to be slower, or no faster. */
void tsr_plan_fewest_bytes(const tsr_plan *plan, tsr_plan *fewest);

/* What --dry-run shows: the plan, what its ranks will move, and how that compares with the least possible. */
tsr_status tsr_plan_print(const tsr_plan *plan, FILE *to);
/* Parts of it: product, grid, super-blocks, panels, memory; bytes exchanged beside the lower bound and beside
 * `fewest` (tsr_plan_fewest_bytes). */
void tsr_plan_print_choices(const tsr_plan *plan, FILE *to);
void tsr_plan_print_exchange(const tsr_plan *plan, const tsr_plan *fewest, FILE *to);

#endif
