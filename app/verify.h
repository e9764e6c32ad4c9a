/* Freivalds' check of C = alpha·op(A)·op(B) + beta·C0 over the files, in O(n²) work, on all ranks.
 * Random signs x: r = alpha·A(Bx) + beta·C0x - Cx. Where C is right, |r_i| stays under a bound from rounding alone with the stated
 * probability; where an entry is wrong by more than the bound, one trial misses it with probability at most 1/2.
 * Source: Freivalds 1977; sign sums: Hoeffding 1963; gamma ~ sqrt(k)·u: Higham and Mary 2019. */
#ifndef TSR_APP_VERIFY_H
#define TSR_APP_VERIFY_H

#include "app/progress.h"
#include "io/store.h"
#include "kernels/gemm.h"
#include "mpi/grid.h"

#define TSR_VERIFY_THREADS_MAX 32

typedef struct {
    tsr_store *a, *b, *c, *c0;   /* open on this rank; c0 NULL when beta = 0 */
    bool transpose_a, transpose_b;
    double alpha, beta;
    tsr_dtype type;              /* the product was accumulated in: TSR_F32 or TSR_F64 */
    tsr_accuracy accuracy;       /* what the kernel was allowed to lose */
    int trials;                  /* independent sign vectors; a wrong product passes with probability ≤ 2^-trials */
    uint64_t seed;
    int threads;                 /* most of a rank, of which TSR_VERIFY_THREADS_MAX are used; 0: its cores */
    size_t buffer_bytes;         /* host memory one rank may use for rows of the matrices */
    tsr_progress_mode progress;  /* shown by rank 0 */
} tsr_verify_args;

typedef struct {
    bool passed;
    int64_t rows_failed;    /* rows of C some trial found outside the bound */
    int64_t worst_row;      /* where |r_i| / bound_i is largest */
    double worst_ratio;     /* that ratio: > 1 fails; NaN/Inf mismatches count as infinity */
    double failure_probability; /* that a wrong C passes: 2^-trials */
    int64_t rows_skipped;   /* rows whose result is NaN or Inf by IEEE rules, checked only for being non-finite */
    int64_t rows;           /* of C */
    double largest_bound;   /* an entry off by more than this, in any row that was not skipped, is noticed with the stated probability */
} tsr_verify_result;

/* Collective over world; every rank gets the result. TSR_OK also when it did not pass: the caller decides. */
tsr_status tsr_verify_product(const tsr_world *world, const tsr_verify_args *args, tsr_verify_result *result);
/* Host memory a rank needs for the check's sums, beside buffer_bytes. */
double tsr_verify_bytes(int64_t m, int64_t n, int64_t k, int trials);
/* "PASSED: …" or "FAILED: …" with the numbers, one line. */
void tsr_verify_format(const tsr_verify_result *result, char *text, size_t chars);

#endif
