#include "mpi/distribute/deal.h"

#include <stdio.h>

#include "io/text/text.h"

/* How many parts come between the one with block 0 and this one. */
static int64_t distance(const tsr_dealt *side, int part) { return (part - side->first + side->parts) % side->parts; }

int64_t tsr_dealt_before(const tsr_dealt *side, int64_t index, int part) {
    const int64_t blocks = index / side->block, last = blocks % side->parts;
    const int64_t mine = distance(side, part);
    const int64_t rest = mine < last ? side->block : mine == last ? index % side->block : 0;
    return blocks / side->parts * side->block + rest;
}

tsr_span tsr_dealt_run(const tsr_dealt *side, int64_t index, int64_t end, int part) {
    const int64_t block = index / side->block;
    const int64_t ahead = (distance(side, part) - block % side->parts + side->parts) % side->parts;
    const int64_t start = ahead == 0 ? index : (block + ahead) * side->block;
    if (start >= end) return (tsr_span){end, 0};
    if (side->parts == 1) return (tsr_span){start, end - start};
    return (tsr_span){start, tsr_min(end, (start / side->block + 1) * side->block) - start};
}

tsr_deal tsr_deal_transposed(tsr_deal deal) {
    tsr_deal other = deal;
    other.rows = deal.cols;
    other.cols = deal.rows;
    other.part = (tsr_rect){deal.part.col, deal.part.row, deal.part.cols, deal.part.rows};
    other.ranks_by_columns = !deal.ranks_by_columns;
    other.transposed = !deal.transposed;
    return other;
}

bool tsr_deal_place(const tsr_deal *deal, int rank, int *row, int *col) {
    const int rows = deal->rows.parts, cols = deal->cols.parts;
    *row = deal->shared ? 0 : deal->ranks_by_columns ? rank % rows : rank / cols;
    *col = deal->shared ? 0 : deal->ranks_by_columns ? rank / rows : rank % cols;
    return deal->shared || rank < rows * cols;
}

void tsr_deal_local(const tsr_deal *deal, int rank, int64_t *rows, int64_t *cols) {
    int row, col;
    const bool has = tsr_deal_place(deal, rank, &row, &col);
    *rows = has ? tsr_dealt_before(&deal->rows, deal->rows.length, row) : 0;
    *cols = has ? tsr_dealt_before(&deal->cols, deal->cols.length, col) : 0;
}

tsr_shape tsr_distributed_shape(const tsr_distributed *matrix) {
    const int leads = matrix->stack_dimensions;
    tsr_shape shape = {.dimensions = leads + 2};
    for (int d = 0; d < leads; d++) shape.size[d] = matrix->stack[d];
    shape.size[leads] = leads ? matrix->stack_rows : matrix->deal.part.rows;
    shape.size[leads + 1] = matrix->deal.part.cols;
    return shape;
}

static tsr_status check_side(const char *name, const char *what, const tsr_dealt *side, int64_t start, int64_t count) {
    if (side->length < 0)
        return tsr_fail(TSR_ERR_SHAPE, "%s has %lld %s; none is the least", name, (long long)side->length, what);
    if (side->block < 1)
        return tsr_fail(TSR_ERR_SHAPE, "%s: blocks of %lld %s; 1 is the least", name, (long long)side->block, what);
    if (side->parts < 1)
        return tsr_fail(TSR_ERR_SHAPE, "%s: a grid of %d ranks along its %s; 1 is the least", name, side->parts, what);
    if (side->first < 0 || side->first >= side->parts)
        return tsr_fail(TSR_ERR_SHAPE, "%s: its first %s belong to place %d of a grid with places 0 to %d there", name,
                        what, side->first, side->parts - 1);
    if (start < 0 || count < 0 || start > side->length || count > side->length - start)
        return tsr_fail(TSR_ERR_SHAPE, "%s: %s %lld to %lld of %lld are meant: they must lie in the matrix", name, what,
                        (long long)start, (long long)start + (long long)count, (long long)side->length);
    return TSR_OK;
}

/* Of a stack all is meant. */
static tsr_status check_stack(const tsr_distributed *matrix, const char *name) {
    const tsr_deal *x = &matrix->deal;
    int64_t rows = matrix->stack_rows;
    bool many = false;
    if (matrix->stack_dimensions == 0) return TSR_OK;
    for (int d = 0; d < matrix->stack_dimensions; d++) {
        if (matrix->stack[d] < 0)
            return tsr_fail(TSR_ERR_SHAPE, "%s is a stack of %lld matrices; none is the least", name,
                            (long long)matrix->stack[d]);
        many = __builtin_mul_overflow(rows, matrix->stack[d], &rows) || many;
    }
    if (!many && rows == x->rows.length && x->part.rows == rows && x->part.cols == x->cols.length) return TSR_OK;
    return tsr_fail(TSR_ERR_SHAPE, "%s is a stack of matrices: a part of it cannot be meant", name);
}

tsr_status tsr_distributed_check(const tsr_distributed *matrix, const char *name, int rank, int ranks) {
    const tsr_deal *x = &matrix->deal;
    const bool turned = x->transposed; /* as the caller calls them */
    int64_t rows, cols;
    size_t bytes;
    TSR_TRY(check_stack(matrix, name));
    TSR_TRY(check_side(name, turned ? "columns" : "rows", &x->rows, x->part.row, x->part.rows));
    TSR_TRY(check_side(name, turned ? "rows" : "columns", &x->cols, x->part.col, x->part.cols));
    TSR_TRY(tsr_bytes_checked(x->rows.length, x->cols.length, tsr_dtype_bytes(matrix->dtype), &bytes));
    if ((int64_t)x->rows.parts * x->cols.parts > ranks)
        return tsr_fail(TSR_ERR_SHAPE, "%s lies on a grid of %dx%d ranks, and there are %d", name,
                        turned ? x->cols.parts : x->rows.parts, turned ? x->rows.parts : x->cols.parts, ranks);
    if (x->shared && (x->rows.parts > 1 || x->cols.parts > 1))
        return tsr_fail(TSR_ERR_SHAPE, "%s is shared by all ranks, and dealt out to a grid of them", name);
    tsr_deal_local(x, rank, &rows, &cols);
    if (rows == 0 || cols == 0) return TSR_OK;
    if (!matrix->data) return tsr_fail(TSR_ERR_SHAPE, "%s: rank %d has no array, and elements of it", name, rank);
    if (matrix->ld < cols)
        return tsr_fail(TSR_ERR_SHAPE, "%s: the leading dimension on rank %d is %lld, and %lld is the least", name,
                        rank, (long long)matrix->ld, (long long)cols);
    return tsr_bytes_checked(rows, matrix->ld, tsr_dtype_bytes(matrix->dtype), &bytes);
}

const char *tsr_deal_text(const tsr_deal *deal, char *text) {
    const tsr_deal x = deal->transposed ? tsr_deal_transposed(*deal) : *deal;
    const tsr_rect *part = &x.part;
    snprintf(text, TSR_DEAL_CHARS, "memory (%s", x.shared ? "shared" : "block-cyclic ");
    if (!x.shared)
        tsr_text_append(text, TSR_DEAL_CHARS, "%lldx%lld on %dx%d", (long long)x.rows.block, (long long)x.cols.block,
                        x.rows.parts, x.cols.parts);
    tsr_text_append(text, TSR_DEAL_CHARS, ")");
    if (part->row > 0 || part->col > 0 || part->rows < x.rows.length || part->cols < x.cols.length)
        tsr_text_append(text, TSR_DEAL_CHARS, "[%lld:%lld,%lld:%lld]", (long long)part->row,
                        (long long)(part->row + part->rows), (long long)part->col, (long long)(part->col + part->cols));
    return text;
}
