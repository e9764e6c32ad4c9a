/* Lists of pieces (pieces.h). */
#include "io/pieces/pieces.h"

#include <stdlib.h>

void tsr_piece_select(tsr_piece *piece, const int64_t *lead, tsr_rect part) {
    tsr_store_desc *desc = &piece->desc;
    for (int d = 0; d < tsr_store_lead_count(desc); d++) {
        desc->name.lead0[d] = lead[d];
        desc->name.lead1[d] = lead[d] + 1;
    }
    desc->matrices = 1;
    desc->matrix = 0;
    desc->stack_dimensions = 0;
    desc->row0 = part.row;
    desc->col0 = part.col;
    desc->rows = part.rows;
    desc->cols = part.cols;
}

tsr_status tsr_pieces_make(int64_t count, tsr_pieces **pieces) {
    tsr_pieces *made = calloc(1, sizeof *made + (size_t)count * sizeof *made->piece);
    if (!made) return tsr_fail(TSR_ERR_MEMORY, "no memory for a list of %lld pieces; free some", (long long)count);
    made->users = 1;
    made->count = count;
    *pieces = made;
    return TSR_OK;
}

void tsr_pieces_leave(tsr_pieces *pieces) {
    if (!pieces || --pieces->users > 0) return;
    for (int64_t i = 0; i < pieces->count; i++) tsr_chunk_index_leave(pieces->piece[i].desc.index);
    free(pieces);
}

size_t tsr_pieces_bytes(const tsr_pieces *pieces) {
    if (!pieces) return 0;
    size_t bytes = sizeof *pieces + (size_t)pieces->count * sizeof *pieces->piece;
    for (int64_t i = 0; i < pieces->count; i++) bytes += tsr_chunk_index_bytes(pieces->piece[i].desc.index);
    return bytes;
}
