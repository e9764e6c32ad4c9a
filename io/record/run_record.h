/* What a run leaves behind: one record a rank and one a run, written beside C in the output file (group <C>.run:
 * table `ranks`, attributes), as JSON, and as lines on the terminal. Decimal GB/s; GFLOP/s = 2·m·n·k·products /
 * seconds. */
#ifndef TSR_IO_RECORD_RUN_RECORD_H
#define TSR_IO_RECORD_RUN_RECORD_H

#include <stdio.h>

#include "io/record/lanes.h"
#include "kernels/base/base.h"

/* The parts of a start-up, main to first read, in the order of the record: code, name. Parts run at the same time; rank
 * 0 waits for them one after the other, and the seconds of one are those from the end of the wait before to the end of
 * its own, so that they add up to the whole. */
#define TSR_STARTUP_LIST(X)                                                                                            \
    X(MPI, "mpi")             /* MPI started, options read and agreed */                                               \
    X(DEVICE, "device")       /* opened since MPI runs, while files are described; kernel chosen */                    \
    X(TRANSPORT, "transport") /* chosen; communicators, NCCL */                                                        \
    X(PLAN, "plan")                                                                                                    \
    X(ALLOCATION, "allocation") /* the plan's buffers, while ranks connect; streams, the trace's memory */             \
    X(FILES, "files")           /* inputs described; output made while ranks connect; both opened */

typedef enum {
#define X(code, name) TSR_STARTUP_##code,
    TSR_STARTUP_LIST(X)
#undef X
        TSR_STARTUP_COUNT
} tsr_startup;

const char *tsr_startup_name(tsr_startup part);

/* amount / seconds / 1e9: GB/s, GFLOP/s; 0 where nothing was done */
double tsr_rate(double amount, double seconds);

/* Flops that a kernel made. */
typedef struct {
    char name[24];
    double flops;
} tsr_kernel_share;
/* Kernels at most that share a run's products: what is chosen hands some to others (kernels/gemm/gemm.h). */
#define TSR_KERNELS_RAN 4
/* How the kernel `exact` made blocks of C: at which level, or by the loop; and the names of the fields. */
#define TSR_EXACT_KINDS 4
extern const char *const tsr_exact_kinds[TSR_EXACT_KINDS];

#define TSR_PAGE_HEAD "<!doctype html>\n" /* how a report's page begins */

#define TSR_RANK_TEXT_CHARS 320 /* of a rank's longest text */

/* Plain memory: gathered to rank 0. */
typedef struct {
    int32_t rank, row, col, depth; /* grid coordinates; -1 for a rank the grid leaves idle */
    char host[64];
    char device[96]; /* "NVIDIA H200 #0 (0000:18:00.0)" or the CPU's name */
    /* What a GPU said of itself: "good: ...", "doubtful: ...", "not known: ..."; "" of a CPU. */
    char health[TSR_RANK_TEXT_CHARS];
    int32_t cores;      /* its share of the node's */
    int32_t threads;    /* of BLAS on a CPU; on a GPU as many as it may use at once */
    int32_t io_threads; /* that read or write at once */
    int64_t tiles;      /* products of tiles multiplied */
    int64_t fallbacks;  /* of them those that the kernel handed on (split3: to exact and simt; exact: parts of them) */
    int64_t few;        /* of these those of which few elements meet: sparse, banded (tsr_gemm_handed) */
    tsr_kernel_share kernels[TSR_KERNELS_RAN]; /* that ran, most flops first; the rest are zeros */
    double flops;                              /* 2·m·n·k of them */
    double lane_seconds[TSR_LANE_COUNT];       /* busy time */
    /* moved by the lane; multiply: operands and C as the kernel's descriptor counts them */
    double lane_bytes[TSR_LANE_COUNT];
    double kernel_seconds;  /* the device's own clock around the kernels */
    double wall_seconds;    /* first step to last */
    double host_peak_bytes; /* largest resident set of the process */
    double device_bytes;    /* allocated on the device */
    int64_t overflows;      /* elements of C that its type made infinite */
    /* The check of products on the device (kernels/check): rows of products judged; not judged; beyond their bound
     * twice alike; the largest difference over its bound; and super-blocks made again, on the first rank of a team. */
    int64_t rows_checked, rows_unjudged, rows_rounded, repaired;
    double check_worst;
    /* Of `exact`: blocks of C, of each range of k, at each level, those by the loop last; elements left to the loop. */
    int64_t exact_blocks[TSR_EXACT_KINDS], exact_left;
} tsr_rank_record;

typedef struct {
    char name[1600]; /* file:/path[slice] */
    int64_t rows, cols;
    char type[64];
} tsr_source_record;

typedef struct {
    const char *command;        /* the command line */
    char started[40];           /* when the run began, ISO 8601, UTC */
    tsr_source_record a, b, c0; /* c0.name "" when none */
    tsr_source_record c;
    bool transpose_a, transpose_b;
    bool conjugate_a, conjugate_b;
    double alpha, alpha_imag, beta, beta_imag;
    bool gram;               /* C is symmetric: half of it was multiplied, or all of a small one */
    tsr_triangle triangle;   /* of it that was written; the rest is zeros */
    int64_t m, n, k;         /* of each product */
    int64_t products;        /* of matrices, 1 unless A or B has more than two dimensions */
    int teams;               /* of ranks, that share them */
    int grid[3];             /* ranks over m, n, k, of a team */
    int ranks;               /* of the job, idle ones too */
    int64_t super_blocks[2]; /* along m, n */
    int64_t panel;           /* k of one step */
    char kernel[32];         /* chosen; which ones ran, the ranks tell */
    char accuracy[8], transport[32], schedule[16], io[16];
    char input[8], type[8]; /* of A and B as the kernel took them; of the sums */
    char versions[256];     /* "tessera 0.2.0 (commit …), HDF5 …, Open MPI …, CUDA …" */
    double seconds;         /* first read to last byte synced, of the rank that took longest */
    /* of matrices in memory, between their layout and the plan's; counted in `seconds` and in the exchange lane, too:
     * of the rank that took longest, and from rank to rank, of all; 0, 0 where nothing was moved */
    double redistribute_seconds, redistribute_bytes;
    double setup_seconds;                      /* rank 0's main to first read */
    double startup_seconds[TSR_STARTUP_COUNT]; /* its parts; each ends when the slowest rank is done */
    /* What the plan counted on: seconds of the busiest rank, 0 where nobody said; bytes/s, and flop/s to multiply. */
    double predicted_seconds, predicted_lane_seconds[TSR_LANE_COUNT], expected_rate[TSR_LANE_COUNT];
    bool kernel_measured; /* the rate to multiply is what such a device reached; else a typical one */
    double planned_device_bytes, planned_host_bytes; /* of a rank */
    double gflops;           /* of the products as reals: 2·m·n·k·products, 8 of complex ones, / seconds / 1e9 */
    char check[384];         /* "not run", or "PASSED …" / "FAILED …" with the numbers */
    char product_check[384]; /* of products on the device: the same */
    double check_seconds;    /* of that of files (check); 0: not run */
    char digest[24];         /* of C (io/digest/digest.h); "": not asked for */
    char reproducible[64];   /* how its sums are defined, whatever ran them; "": by how it ran */
    const tsr_rank_record *rank_records; /* ranks of them; not owned */
    const char *warnings;                /* a line each (io/text/warnings.h); NULL: none; not owned */
} tsr_run_record;

#define TSR_KERNELS_CHARS 160
/* record_kernels.c. Adds flops to a kernel's share; moves some of a kernel's to another. What is left of
 * it by rounding is dropped. */
void tsr_kernels_add(tsr_kernel_share shares[TSR_KERNELS_RAN], const char *name, double flops);
void tsr_kernels_move(tsr_kernel_share shares[TSR_KERNELS_RAN], const char *from, const char *to, double flops);
/* "split3 0.75, simt 0.25", "" where nothing ran; returns text. And back, for `flops` in all. */
const char *tsr_kernels_format(const tsr_kernel_share shares[TSR_KERNELS_RAN], char text[TSR_KERNELS_CHARS]);
void tsr_kernels_parse(const char *text, double flops, tsr_kernel_share shares[TSR_KERNELS_RAN]);
/* The kernels that ran over all ranks. */
void tsr_record_kernels(const tsr_run_record *record, tsr_kernel_share shares[TSR_KERNELS_RAN]);

/* What a run waited for, by busy seconds; ranks the grid leaves idle do not count. Rank -1 and lane "none" where
 * nothing was done. */
typedef struct {
    /* the busiest lane of all (of exchange, where ranks wait for each other, the least busy): no run with these
     * lanes' measured rates can be shorter */
    int limit_rank;
    const char *limit_lane;
    double limit_seconds; /* its bytes (multiply: flops) over the rate it reached: its busy time */
    double limit_share;   /* of the run's seconds */
    /* the straggler: furthest above its lane's mean over the ranks; exchange is left out, because it waits for
     * others */
    int slowest_rank;
    const char *slowest_lane;
    double slowest_seconds; /* busy */
    double behind_seconds;  /* above the mean */
} tsr_run_bounds;
tsr_run_bounds tsr_record_bounds(const tsr_run_record *record);

/* One JSON object, two-space indent, a newline at the end. TSR_ERR_IO when the stream fails. */
tsr_status tsr_record_write_json(const tsr_run_record *record, FILE *to);
/* Its members without `format` and the braces, each as ",\n  \"name\": value": the `members` of tsr_run_log_done. */
void tsr_record_write_members(const void *context, FILE *to);

/* record_print.c. The summary of a run: what was multiplied, how long each lane was busy, what bounded the run, and
 * last its time and speed. Lines are at most 80 columns wide, but a file's name that is longer has a line of its own.
 * `log`: the JSON file that was written; NULL: none. */
void tsr_record_print(const tsr_run_record *record, const char *log, FILE *to);
/* The table of ranks: a header and a line a rank, as wide as it needs to be. */
void tsr_record_print_ranks(const tsr_run_record *record, FILE *to);

#endif
