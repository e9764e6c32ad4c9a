/* How the check of a product reads a matrix (verify_private.h): each rank a band of its stored rows, each worker of
 * the rank a part of the band, tile by tile. */
#include <stdlib.h>

#include "app/verify/verify_private.h"
#include "io/files/raw_file.h"
#include "kernels/pack/pack.h"

#define PIECE_BYTES 4096 /* of a row, that a worker takes at least where rows are shared out */

/* The columns of worker `index`: whole chunks, or pieces worth reading. */
static tsr_span columns_of(const tsr_store_desc *desc, tsr_rect part, int workers, int index) {
    const bool along_chunks = desc->chunk_rows > 0 && desc->col0 == 0 && part.col == 0;
    return tsr_partition_units(
        part.cols, along_chunks ? desc->chunk_cols : PIECE_BYTES / (int64_t)tsr_dtype_bytes(desc->element.dtype),
        workers, index);
}

tsr_status tsr_tiles_open(const verifier *v, tsr_store *store, tsr_rect part, bool by_cols, int index, size_t budget,
                          tsr_tiles *t) {
    const tsr_store_desc *desc = &store->desc;
    const size_t bytes = tsr_dtype_bytes(desc->element.dtype), one = bytes + sizeof(double);
    const int64_t multiple = part.row == 0 ? tsr_strips_multiple(desc) : 1;
    /* Strips of less than a row of chunks would decode each chunk again and again. */
    const double chunk_row = desc->chunk_rows > 0 ? (double)desc->chunk_rows * (double)part.cols * (double)one : 1;
    const int workers = by_cols ? v->workers : (int)fmax(1, fmin(v->workers, (double)budget / chunk_row));
    const tsr_span cols = by_cols ? columns_of(desc, part, workers, index) : (tsr_span){0, part.cols};
    size_t mine = budget / (size_t)workers;
    mine -= (size_t)tsr_min((int64_t)TSR_RAW_BOUNCE_BYTES, (int64_t)mine / 4); /* what reading takes on the way */
    *t = (tsr_tiles){
        .store = store, .progress = v->progress, .row0 = part.row, .col0 = part.col + cols.start, .shift = cols.start};
    t->strips = tsr_strips_make(index < workers ? part.rows : 0, cols.count, multiple, one, mine, v->world->ranks,
                                v->world->rank);
    if (!by_cols)
        t->strips.rows =
            tsr_span_within(t->strips.rows, tsr_partition_units(t->strips.rows.count, multiple, workers, index));
    size_t elements = (size_t)(t->strips.step_rows * t->strips.step_cols);
    t->raw = malloc(elements * bytes);
    t->values = malloc(elements * sizeof(double));
    if (!t->raw || !t->values)
        return tsr_fail(
            TSR_ERR_MEMORY,
            "no memory for %zu elements of a matrix to check: give the check less host memory, or free some", elements);
    return TSR_OK;
}

void tsr_tiles_square(tsr_tiles *t) {
    const tsr_store_desc *desc = &t->store->desc;
    const int64_t most = t->strips.step_rows * t->strips.step_cols, rows = tsr_strips_multiple(desc);
    int64_t edge = tsr_max(1, (int64_t)sqrt((double)most));
    if (desc->chunk_cols > 0 && edge > desc->chunk_cols) edge -= edge % desc->chunk_cols;
    t->strips.step_cols = tsr_min(t->strips.step_cols, edge);
    t->strips.step_rows = tsr_max(1, tsr_min(t->strips.rows.count, most / t->strips.step_cols));
    if (t->strips.step_rows > rows) t->strips.step_rows -= t->strips.step_rows % rows;
}

/* The tile before is done. */
static void count_pending(tsr_tiles *t) {
    if (!t->pending) return;
    const long long bytes = atomic_fetch_add(&t->progress->bytes, (long long)t->pending) + (long long)t->pending;
    t->pending = 0;
    tsr_listener_advance(t->progress->listener, (double)bytes * t->progress->ranks, 0);
}

void tsr_tiles_close(tsr_tiles *t) {
    count_pending(t);
    free(t->values);
    free(t->raw);
}

bool tsr_tiles_next(tsr_tiles *t, tsr_rect *rect) {
    if (!tsr_strips_next(&t->strips, rect)) return false;
    rect->col += t->shift;
    return true;
}

tsr_status tsr_tiles_read(tsr_store *store, tsr_rect rect, void *raw, double *values) {
    TSR_TRY(store->ops->read(store, rect, raw, rect.cols));
    tsr_pack_args args = {.from = {raw, store->desc.element, rect.rows, rect.cols, rect.cols},
                          .to = values,
                          .type = TSR_F64,
                          .ld = rect.cols,
                          .padded_rows = rect.rows,
                          .padded_cols = rect.cols};
    return tsr_pack_cpu.pack(NULL, NULL, &args);
}

tsr_status tsr_tiles_load(tsr_tiles *t, tsr_rect rect) {
    const tsr_verify_args *args = t->progress->args;
    count_pending(t);
    if (args->stopped && args->stopped(args->stopped_context))
        return tsr_fail(TSR_ERR_STOPPED, "cancelled while the product was checked");
    rect.col -= t->shift;
    t->pending = (size_t)tsr_rect_elements(rect) * tsr_dtype_bytes(t->store->desc.element.dtype);
    return tsr_tiles_read(t->store, (tsr_rect){t->row0 + rect.row, t->col0 + rect.col, rect.rows, rect.cols}, t->raw,
                          t->values);
}

/* ---- what a rank reads ----------------------------------------------------------------------- */

/* A rank's rows of `part`, both of reals that elements have `reals` of, one below the other. */
static tsr_rect band_of(const tsr_verify_band *b, tsr_span part, int reals) {
    const tsr_span mine = tsr_span_within(part, tsr_partition_units(part.count, 1, b->ranks, b->rank));
    const int64_t first = mine.start / reals, end = tsr_ceil_div(mine.start + mine.count, reals);
    return (tsr_rect){first, 0, mine.count > 0 ? end - first : 0, b->cols};
}

tsr_status tsr_verify_bands(const tsr_verify_band *b, tsr_rects *rects) {
    const int most = b->complex ? 2 : 1;
    int64_t room = 0;
    for (int reals = 1; reals <= most; reals++)
        room += 1 + (b->blocks ? tsr_ceil_div(b->rows * reals, tsr_verify_block(b->rows * reals, b->trials)) : 0);
    *rects = (tsr_rects){.rect = calloc((size_t)room, sizeof *rects->rect)};
    if (!rects->rect)
        return tsr_fail(TSR_ERR_MEMORY, "no memory for %lld parts of a matrix to check: free some", (long long)room);
    for (int reals = 1; reals <= most; reals++) {
        const int64_t rows = b->rows * reals, block = tsr_verify_block(rows, b->trials);
        rects->rect[rects->count++] = band_of(b, (tsr_span){0, rows}, reals);
        for (int64_t at = 0; b->blocks && block < rows && at < rows; at += block)
            rects->rect[rects->count++] = band_of(b, (tsr_span){at, tsr_min(block, rows - at)}, reals);
    }
    return TSR_OK;
}
