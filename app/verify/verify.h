/* Freivalds' check of C = alpha·op(A)·op(B) + beta·C0 over the files, in O(n²) work, on all ranks.
 * Random signs x, each times a power of two that brings its column to the size of the others:
 * r = alpha·A(Bx) + beta·C0x - Cx. Where C is right, |r_i| stays under a bound from rounding alone with the stated
 * probability; where an entry is wrong by more than the bound, one trial misses it with probability at most 1/2.
 * Where NaN and Inf stand, and with what sign, is checked entry by entry, from the rows and columns that hold them.
 * Of a C that is half of a symmetric product the other half is judged by its mirror, and must be zeros.
 * Source: Freivalds 1977; sign sums: Hoeffding 1963; gamma ~ sqrt(k)·u: Higham and Mary 2019. */
#ifndef TSR_APP_VERIFY_VERIFY_H
#define TSR_APP_VERIFY_VERIFY_H

#include "app/library/listener.h"
#include "io/store.h"
#include "kernels/gemm/gemm.h"
#include "mpi/distribute/holdings.h"
#include "mpi/ranks/world.h"

#define TSR_VERIFY_THREADS_MAX 32
/* A warning: rows_unjudged, rows as long long. */
#define TSR_VERIFY_UNJUDGED                                                                                            \
    "the check did not judge %lld of %lld rows of C: too many of their elements overflowed or are infinite"

typedef struct {
    tsr_store *a, *b, *c, *c0; /* open on this rank; c0 NULL when beta = 0 */
    bool transpose_a, transpose_b, conjugate_a, conjugate_b;
    tsr_triangle triangle; /* of a real C without c0, which holds that half of a symmetric product, the other zeros */
    double alpha, alpha_imag, beta, beta_imag;
    tsr_dtype type;        /* the product was accumulated in: TSR_F32 or TSR_F64 */
    tsr_accuracy accuracy; /* what the kernel was allowed to lose */
    int trials;            /* independent sign vectors; a wrong product passes with probability ≤ 2^-trials */
    uint64_t seed;
    int threads;         /* most of a rank, of which TSR_VERIFY_THREADS_MAX are used; 0: its cores */
    size_t buffer_bytes; /* host memory a rank may use for rows of the matrices and lists of what is not finite */
    const tsr_listener *progress; /* hears of "verify" on every rank; NULL: nobody; not owned */
    /* This rank reaches no more of the matrices than tsr_verify_bands says: rows whose overflows would have to be
     * worked out from others' rows are not judged. */
    bool bands_only;
    /* Asked often, by any thread: whether this rank was asked to stop. Then every rank's check ends with
     * TSR_ERR_STOPPED. NULL: nobody asks. */
    bool (*stopped)(void *context);
    void *stopped_context; /* not owned */
} tsr_verify_args;

typedef struct {
    bool passed;                /* no row failed; rows may not have been judged */
    int64_t rows_failed;        /* of C: outside the bound, or with NaN, Inf or a finite entry where it cannot be */
    int64_t worst_row;          /* where |r_i| / bound_i is largest, of its matrix */
    char worst_matrix[64];      /* which of a stack, "[3]", "[1, 0]", of what is selected of C; "" of one matrix */
    double worst_ratio;         /* that ratio: > 1 fails; NaN/Inf mismatches count as infinity */
    double failure_probability; /* that a wrong C passes: 2^-trials */
    int64_t rows_unjudged;      /* that did not fail: more entries overflowed or are infinite than may be worked out */
    int64_t rows;               /* of C */
    /* Of all entries: one that is off by more is noticed with the stated probability. Where columns differ in size,
     * the others' bounds are as much smaller. */
    double largest_bound;
    int readings; /* of B: 1, or more where its columns differ in size or hold NaN or Inf */
} tsr_verify_result;

/* Collective over world; every rank gets the result. TSR_OK also when it did not pass: the caller decides. */
tsr_status tsr_verify_product(const tsr_world *world, const tsr_verify_args *args, tsr_verify_result *result);
/* Host memory a rank needs for the check's sums, beside buffer_bytes. */
double tsr_verify_bytes(int64_t m, int64_t n, int64_t k, int trials);
/* Rows of C that are judged at a time. */
int64_t tsr_verify_block(int64_t m, int trials);

/* A matrix as it is stored, of a check by so many ranks. */
typedef struct {
    int64_t rows, cols;
    bool blocks;  /* its rows are those of C */
    bool complex; /* any matrix of the product is complex, or a factor */
    int trials;
    int rank, ranks;
} tsr_verify_band;

/* Local. What `rank` reads of it, each time within one of these rectangles, as long as no entry has to be worked out;
 * the caller frees them. Some may be empty, or the same. */
tsr_status tsr_verify_bands(const tsr_verify_band *band, tsr_rects *rects);
/* "PASSED: …", "FAILED: …" or "INCOMPLETE, r rows not judged: …" with the numbers, one line. */
void tsr_verify_format(const tsr_verify_result *result, char *text, size_t chars);

#endif
