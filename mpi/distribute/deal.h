/* Matrices in the memory of ranks: dealt out in blocks as ScaLAPACK deals them (2-dimensional block-cyclic, of which a
 * block a rank is a case), or shared by all ranks. Pure arithmetic. A deal is said of the matrix as it is stored: each
 * rank has its elements row after row. Columns after columns are the rows of the transpose (tsr_deal_transposed). */
#ifndef TSR_MPI_DISTRIBUTE_DEAL_H
#define TSR_MPI_DISTRIBUTE_DEAL_H

#include "io/store.h"
#include "mpi/ranks/partition.h"

/* One side of a matrix: blocks of `block` elements go round to `parts` in turn, from part `first` on. */
typedef struct {
    int64_t length, block; /* block ≥ 1 */
    int parts, first;
} tsr_dealt;

/* How many of the elements [0, index) a part has: of an element that it has, its place there. */
int64_t tsr_dealt_before(const tsr_dealt *side, int64_t index, int part);
/* How many of a span's elements a part has; they follow each other there. */
static inline int64_t tsr_dealt_within(const tsr_dealt *side, tsr_span span, int part) {
    return tsr_dealt_before(side, span.start + span.count, part) - tsr_dealt_before(side, span.start, part);
}
/* The first elements at or after `index`, and before `end`, that a part has and that follow each other in the matrix;
 * none: start is `end`. */
tsr_span tsr_dealt_run(const tsr_dealt *side, int64_t index, int64_t end, int part);

typedef struct {
    tsr_dealt rows, cols;  /* of the whole matrix */
    tsr_rect part;         /* of it that is meant: rectangles below count from its corner */
    bool ranks_by_columns; /* rank = row + col·rows.parts, else row·cols.parts + col; ranks beyond them have nothing */
    bool shared;           /* each rank reaches all of it, in one piece; parts are 1 */
    bool transposed;       /* the caller sees the transpose; matters for texts alone */
} tsr_deal;

/* That of the transpose, which is what a caller sees who has columns after columns. */
tsr_deal tsr_deal_transposed(tsr_deal deal);
/* Where in the grid a rank stands; false: it has nothing. */
bool tsr_deal_place(const tsr_deal *deal, int rank, int *row, int *col);
/* Rows and columns of the array that a rank has; 0, 0 for one that has nothing. */
void tsr_deal_local(const tsr_deal *deal, int rank, int64_t *rows, int64_t *cols);

/* A rank's share of a matrix, or of a stack of matrices, which is dealt out as one: they lie one below the other. Plain
 * memory; the elements are the caller's. */
typedef struct {
    tsr_deal deal; /* the same on every rank; of a stack, of all of its rows */
    tsr_dtype dtype;
    bool swapped;                 /* elements have the other byte order; not C's */
    int stack_dimensions;         /* 0: one matrix */
    int64_t stack[TSR_LEADS_MAX]; /* how many along each of them, the last of which changes first */
    int64_t stack_rows;           /* of each matrix of a stack */
    bool vector;                  /* no stack, but one row or column that products lack */
    void *data;                   /* this rank's array; of a shared matrix, all of it */
    int64_t ld;                   /* elements from row to row there */
} tsr_distributed;

/* The part that is meant, or the stack, as an array of that many dimensions. */
tsr_shape tsr_distributed_shape(const tsr_distributed *matrix);

/* Local. TSR_ERR_SHAPE says which value of `name` is wrong: sides, blocks, the grid on `ranks`, the part, ld, data.
 * TSR_ERR_LIMIT: its array is beyond 63 bits. */
tsr_status tsr_distributed_check(const tsr_distributed *matrix, const char *name, int rank, int ranks);

#define TSR_DEAL_CHARS 160
/* "memory (block-cyclic 64x32 on 2x3)", with the part of it; returns text (≥ TSR_DEAL_CHARS). */
const char *tsr_deal_text(const tsr_deal *deal, char *text);

#endif
