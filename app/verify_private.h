/* What the parts of the check share: verify.c makes the sums, verify_tiles.c reads the matrices, verify_rows.c judges the rows of C. */
#ifndef TSR_APP_VERIFY_PRIVATE_H
#define TSR_APP_VERIFY_PRIVATE_H

#include <stdatomic.h>

#include "app/strips.h"
#include "app/verify.h"

/* What a pass over op(A) or op(B) needs and makes: for each row, sums with signs, and bounds. */
typedef struct {
    double *sums;        /* rows × trials */
    double *norm;        /* rows */
    double *largest;     /* rows */
    double *bad;         /* rows: > 0 when the row holds a non-finite value */
} row_sums;

/* How far rank 0 is, in bytes of the matrices: its own, times the ranks. */
typedef struct {
    tsr_progress display;
    int ranks;
    atomic_llong bytes; /* of this rank */
} verify_progress;

typedef struct {
    const tsr_world *world;
    const tsr_verify_args *args;
    verify_progress *progress;
    int64_t m, n, k;
    int trials;
    int workers;         /* threads of this rank that share a pass */
    double lambda;
    double *signs;       /* n × trials: -1, 1, or 0 for a column of op(B) that is not finite */
    double *column_bad;  /* n: > 0 for such a column */
    bool summed;         /* some column is finite: sums check something */
    row_sums y;          /* k rows: op(B)·signs, norm ‖op(B)_l‖₂, largest |op(B)_lj| */
    int64_t block;       /* rows of R at a time */
    tsr_verify_result found; /* so far, in this rank's rows */
    row_sums r;          /* block rows: op(A)·y, norm S_i, largest Σ_l |op(A)_il|·max_j |op(B)_lj| */
} verifier;

/* A matrix as a worker reads it, tile by tile, in double. */
typedef struct {
    tsr_store *store;
    verify_progress *progress;
    size_t pending;     /* bytes loaded that are not done yet: they count when the next tile is wanted */
    tsr_strips strips;
    int64_t row0, col0; /* of the part walked, in the store */
    int64_t shift;      /* columns of the pass before it */
    void *raw;
    double *values;     /* rect.rows × rect.cols of the tile loaded */
} tsr_tiles;

/* Worker `index`'s share of a part of the store: some columns of this rank's band of rows with `by_cols`, else rows of it; it may be empty. Takes at most its
 * share of `budget` bytes. Local, as what follows; tsr_tiles_close also after a failure. */
tsr_status tsr_tiles_open(const verifier *v, tsr_store *store, tsr_rect part, bool by_cols, int index, size_t budget, tsr_tiles *t);
void tsr_tiles_close(tsr_tiles *t);
/* The next tile, by its place in the part; false: there is none. */
bool tsr_tiles_next(tsr_tiles *t, tsr_rect *rect);
tsr_status tsr_tiles_load(tsr_tiles *t, tsr_rect rect);

/* What rows of C add to R, kept until the row is whole. */
typedef struct {
    double c_squares, c0_squares, c_largest, c0_largest;
    double overflow;    /* largest |value| the row may hold, as far as A and B say */
    bool wrong, skipped;
} row_facts;

/* to[t] += value · from[t] */
static inline void tsr_verify_add_scaled(double *restrict to, double value, const double *restrict from, int trials) {
    for (int t = 0; t < trials; t++) to[t] += value * from[t];
}

/* One entry: c against whether it must be, or may be, non-finite. What remains finite is added to the row's sums (trials). */
void tsr_verify_take_entry(const verifier *v, row_facts *f, double *sums, bool row_bad, int64_t j, double c, double c0);
/* The whole row against its bound; s is S_i. Adds to the result. */
void tsr_verify_judge_row(const verifier *v, const row_facts *f, const double *sums, double s, int64_t row, tsr_verify_result *result);

#endif
