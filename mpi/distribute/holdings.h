/* What a plan makes a rank read or write of an operand, as rectangles that the rank holds in memory, and a store of
 * them. Without communication: the lists follow from the plan for any rank. */
#ifndef TSR_MPI_DISTRIBUTE_HOLDINGS_H
#define TSR_MPI_DISTRIBUTE_HOLDINGS_H

#include "io/store.h"
#include "mpi/distribute/deal.h"
#include "mpi/plan/plan.h"

typedef struct {
    tsr_rect *rect; /* no two are the same, and together they cover every read or write, each within one of them */
    int64_t count;
} tsr_rects;

/* What the plan makes `rank` (nothing beyond its grid) read of A, B or C0, or write of C. The caller frees it. */
tsr_status tsr_rects_of_plan(const tsr_plan *plan, int rank, tsr_operand_name name, tsr_rects *rects);
void tsr_rects_free(tsr_rects *rects);
/* Whether each rectangle of C0 is read once, and is one that the rank writes of C: then C may take C0's place while the
 * plan runs. */
tsr_status tsr_plan_replaces_c0(const tsr_plan *plan, int rank, bool *replaces);

/* A rectangle in memory, ld elements from row to row. */
typedef struct {
    int64_t matrix; /* of a stack: it lies in this one */
    tsr_rect rect;  /* counted from the stack's first row */
    void *data;
    int64_t ld;
    bool in_place; /* the caller's own array */
} tsr_holding;

/* Matrices of a stack, by their numbers, in order. */
typedef struct {
    int64_t *number;
    int64_t count;
    int64_t rows; /* of each; they lie one below the other */
} tsr_stacked;

typedef struct {
    tsr_holding *holding;
    int64_t count;
    int64_t each; /* for each matrix, one matrix's after another's */
    size_t bytes; /* that those which are not in place take */
    void *memory; /* of these; NULL: not there yet */
} tsr_holdings;

/* The same rectangles in each of those matrices, those in place that lie in `rank`'s own array as they are, unless
 * `copies`; the others have no memory yet. `of` NULL: all is one matrix. */
tsr_status tsr_holdings_make(const tsr_rects *rects, const tsr_stacked *of, const tsr_distributed *matrix, int rank,
                             bool copies, tsr_holdings *holdings);
/* Memory for those that are not in place. */
tsr_status tsr_holdings_allocate(tsr_holdings *holdings, size_t element_bytes);
void tsr_holdings_free(tsr_holdings *holdings);

/* A store of a matrix of which this rank has the holdings alone: it reads and writes rectangles within one of them, and
 * maps them. Of a stack it means the matrix that is selected (tsr_store_select). The holdings stay the caller's. */
tsr_status tsr_holdings_open(const tsr_holdings *holdings, const tsr_store_desc *desc, tsr_store **store);

#endif
