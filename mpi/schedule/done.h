/* Super-blocks of C that an earlier run wrote (--resume): a plan with such leaves them out of its steps, and loads what
 * the others need. */
#ifndef TSR_MPI_SCHEDULE_DONE_H
#define TSR_MPI_SCHEDULE_DONE_H

#include "mpi/plan/plan.h"

/* The super-blocks of a row of them, or of a column, that are left to do. */
typedef struct {
    int64_t number;      /* among the rows with such, counted from the first */
    int64_t inner;       /* the same among the rows with such before the last column of super-blocks */
    int64_t first, last; /* of the row: -1 where none is left */
} tsr_left_line;

struct tsr_done {
    const tsr_plan *plan;
    int64_t left; /* super-blocks; of a Gram matrix those that are multiplied */
    bool *done;   /* by row, then column: super-block (i, j) is left out */
    tsr_left_line *row, *col;
};

/* Local. Memory for a plan's super-blocks, none of which is done; the caller's until tsr_done_close. */
tsr_status tsr_done_open(const tsr_plan *plan, struct tsr_done **done);
void tsr_done_close(struct tsr_done *done); /* NULL is fine */
/* Sets which are done, by asking about each; `is_done` says it of a rectangle of C. */
void tsr_done_find(struct tsr_done *done, bool (*is_done)(void *context, tsr_rect rect), void *context);
/* The last super-block of row i (column j) that is left and not behind `end`; -1 where there is none. */
int64_t tsr_done_last_in_row(const struct tsr_done *done, int64_t i, int64_t end);
int64_t tsr_done_last_in_col(const struct tsr_done *done, int64_t j, int64_t end);
static inline bool tsr_done_has(const tsr_plan *plan, int64_t i, int64_t j) {
    return plan->done && plan->done->done[i * plan->blocks_n + j];
}

#endif
