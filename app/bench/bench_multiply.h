/* `tessera bench multiply` while it runs: what its files share. bench_multiply.c measures, bench_multiply_alone.c
 * what its parts need alone; bench_multiply_report.c prints, bench_peer.c measures what people use instead. */
#ifndef TSR_APP_BENCH_BENCH_MULTIPLY_H
#define TSR_APP_BENCH_BENCH_MULTIPLY_H

#include "app/bench/bench.h"
#include "app/bench/bench_check.h"
#include "app/bench/bench_operands.h"
#include "app/library/run_state.h"
#include "app/tessera_options.h"

#define TSR_BENCH_MOST_BLOCKS 8

typedef struct {
    tsr_run_engine engine;
    tsr_run_limits limits;
    const char *trace;   /* NULL: none; not owned, as what follows */
    const char *command; /* for the record */
    bool quiet;          /* no report */
    bool ranks;          /* the table of ranks, too */
    tsr_product_shape shape;
    int64_t repeat;
    tsr_dtype type; /* of A and B */
    bool memory, unchecked;
    bool gram; /* B is A transposed */
    tsr_fill_kind fill;
    const char *json; /* NULL: none */
    const char *peer; /* "cublasxt"; NULL: none */
    int64_t blocks[TSR_BENCH_MOST_BLOCKS];
    int block_count;
} tsr_bench_multiply_options;

typedef struct {
    double best[TSR_BENCH_MOST_BLOCKS]; /* seconds, a block size */
    int devices, fastest;               /* GPUs it uses; index of the best block size */
    char check[160];
} tsr_bench_peer;

/* The multiplication lane's speed without the rest: the same kernel on the same shape, on all ranks at the same
 * time, best of `repeat`. NaN: not measured. */
typedef struct {
    int64_t m, n, k;
    double gflops;         /* all ranks together */
    double slowest;        /* of one rank, GFLOP/s */
    double making_seconds; /* of the slowest rank's share of A and B; NaN too where they are in memory */
    char why[256];         /* on rank 0: what was not measured, and why; "" */
} tsr_bench_alone;

typedef struct {
    const tsr_bench_multiply_options *o;
    const tsr_world *world;
    tsr_run job;
    tsr_bench_operands data;
    double *seconds;      /* repeat of them, the slowest rank's; the same on every active rank */
    tsr_rank_record best; /* this rank's, of the fastest repetition */
    int fastest;
    tsr_bench_alone alone;
    tsr_bench_peer peer;
    char check[160];
} tsr_bench_multiply_run;

static inline double tsr_bench_flops(const tsr_bench_multiply_options *o) {
    const int parts = tsr_dtype_parts(o->type); /* of A, and of B */
    return 2.0 * parts * parts * (double)o->shape.m * (double)o->shape.n * (double)o->shape.k;
}

/* bench_multiply.c. Local: every byte of this rank's elements that the check looks at becomes 0xff, which is no
 * number. */
void tsr_bench_poison(tsr_bench_multiply_run *b);
/* Collective: checks C as it is in memory, or on the devices; `text` (160 chars) says how, on rank 0. TSR_ERR_CHECK
 * when it is wrong. */
tsr_status tsr_bench_judge(tsr_bench_multiply_run *b, double bound, char *text);

/* bench_multiply_alone.c. Collective; the executor is closed. Fills b->alone; fails only where ranks cannot talk to
 * each other. */
tsr_status tsr_bench_alone_run(tsr_bench_multiply_run *b);

/* bench_peer.c. Collective; the executor is closed. */
tsr_status tsr_bench_peer_run(tsr_bench_multiply_run *b);

/* bench_multiply_report.c. Rank 0: ranks' records, `world->ranks` of them. */
void tsr_bench_multiply_print(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks);
void tsr_bench_multiply_json(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks, FILE *file);

#endif
