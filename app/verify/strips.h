/* Walking a matrix rectangle by rectangle within a memory budget: each rank has a band of rows, cut into strips of
 * whole rows where they fit and into pieces of a row where one row alone does not. */
#ifndef TSR_APP_VERIFY_STRIPS_H
#define TSR_APP_VERIFY_STRIPS_H

#include "io/store.h"
#include "mpi/ranks/partition.h"

typedef struct {
    tsr_span rows; /* this rank's band */
    int64_t cols;
    int64_t step_rows, step_cols; /* largest rectangle */
    int64_t row, col;             /* next one, in the band */
} tsr_strips;

/* Band `rank` of `ranks` of rows × cols; a rectangle holds at most budget / element_bytes elements. Bands and strips
 * end at multiples of `multiple` rows where that is possible, so that a chunk is decoded once. */
static inline tsr_strips tsr_strips_make(int64_t rows, int64_t cols, int64_t multiple, size_t element_bytes,
                                         size_t budget, int ranks, int rank) {
    int64_t most = tsr_max(1, (int64_t)(budget / element_bytes));
    if (multiple < 1 || multiple > rows) multiple = 1;
    tsr_strips s = {.cols = cols, .rows = tsr_partition_units(rows, multiple, ranks, rank)};
    s.step_cols = tsr_max(1, tsr_min(cols, most));
    s.step_rows = tsr_max(1, tsr_min(s.rows.count, most / s.step_cols));
    if (s.step_rows > multiple) s.step_rows -= s.step_rows % multiple;
    return s;
}

/* Rows a store likes to be read in multiples of. */
static inline int64_t tsr_strips_multiple(const tsr_store_desc *desc) {
    return desc->chunk_rows > 0 && desc->row0 == 0 ? desc->chunk_rows : 1;
}

/* The next rectangle, in the whole matrix; false when there is none. Column pieces of the same rows follow each
 * other. */
static inline bool tsr_strips_next(tsr_strips *s, tsr_rect *rect) {
    if (s->cols == 0 || s->row >= s->rows.count) return false;
    *rect = (tsr_rect){s->rows.start + s->row, s->col, tsr_min(s->step_rows, s->rows.count - s->row),
                       tsr_min(s->step_cols, s->cols - s->col)};
    s->col += rect->cols;
    if (s->col == s->cols) {
        s->col = 0;
        s->row += rect->rows;
    }
    return true;
}

#endif
