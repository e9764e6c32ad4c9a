/* Super-blocks that are done (done.h). */
#include "mpi/schedule/done.h"

#include <stdlib.h>

tsr_status tsr_done_open(const tsr_plan *plan, struct tsr_done **done) {
    struct tsr_done *d = calloc(1, sizeof *d);
    const size_t down = (size_t)plan->blocks_m, across = (size_t)plan->blocks_n;
    if (d) {
        d->plan = plan;
        d->done = calloc(down * across + 1, sizeof *d->done);
        d->row = calloc(down + 1, sizeof *d->row);
        d->col = calloc(across + 1, sizeof *d->col);
    }
    if (d && d->done && d->row && d->col) {
        *done = d;
        return TSR_OK;
    }
    tsr_done_close(d);
    return tsr_fail(TSR_ERR_MEMORY, "no memory to note which of %zu super-blocks are done", down * across);
}

void tsr_done_close(struct tsr_done *d) {
    if (!d) return;
    free(d->done);
    free(d->row);
    free(d->col);
    free(d);
}

int64_t tsr_done_last_in_row(const struct tsr_done *d, int64_t i, int64_t end) {
    while (end >= 0 && d->done[i * d->plan->blocks_n + end]) end--;
    return end;
}

int64_t tsr_done_last_in_col(const struct tsr_done *d, int64_t j, int64_t end) {
    while (end >= 0 && d->done[end * d->plan->blocks_n + j]) end--;
    return end;
}

static void note(tsr_left_line *line, int64_t at) {
    if (line->first < 0) line->first = at;
    line->last = at;
}

/* `length`: super-blocks of a line. */
static void number(tsr_left_line *lines, int64_t count, int64_t length) {
    int64_t next = 0, inner = 0;
    for (int64_t i = 0; i < count; i++) {
        lines[i].number = next;
        lines[i].inner = inner;
        next += lines[i].first >= 0;
        inner += lines[i].first >= 0 && lines[i].first + 1 < length;
    }
}

/* Of a Gram matrix a super-block is written with its mirror. */
static bool all_done(const tsr_plan *plan, int64_t i, int64_t j, bool (*is_done)(void *, tsr_rect), void *context) {
    const tsr_span rows = tsr_block(plan->problem.m, plan->block_m, i);
    const tsr_span cols = tsr_block(plan->problem.n, plan->block_n, j);
    if (!is_done(context, (tsr_rect){rows.start, cols.start, rows.count, cols.count})) return false;
    return !plan->problem.gram || is_done(context, (tsr_rect){cols.start, rows.start, cols.count, rows.count});
}

void tsr_done_find(struct tsr_done *d, bool (*is_done)(void *context, tsr_rect rect), void *context) {
    const tsr_plan *plan = d->plan;
    d->left = 0;
    for (int64_t i = 0; i < plan->blocks_m; i++) d->row[i] = (tsr_left_line){.first = -1, .last = -1};
    for (int64_t j = 0; j < plan->blocks_n; j++) d->col[j] = (tsr_left_line){.first = -1, .last = -1};
    for (int64_t i = 0; i < plan->blocks_m; i++)
        for (int64_t j = 0; j < plan->blocks_n; j++) {
            const bool multiplied = !plan->problem.gram || j <= i;
            const bool done = !multiplied || all_done(plan, i, j, is_done, context);
            d->done[i * plan->blocks_n + j] = done;
            if (done) continue;
            d->left++;
            note(&d->row[i], j);
            note(&d->col[j], i);
        }
    number(d->row, plan->blocks_m, plan->blocks_n);
    number(d->col, plan->blocks_n, plan->blocks_m);
}
