/* What the helper is asked of datasets whose elements lie in several places, and what is believed of its answers
 * (describe.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/describe/describe.h"
#include "io/describe/describe_wire.h"
#include "io/files/raw_file.h"
#include "io/hdf5/external/beneath.h"
#include "io/hdf5/external/collect.h"
#include "io/hdf5/hdf5_memory.h"

#define CACHE_BYTES_MAX ((size_t)256 << 20)
#define PLACE_SECONDS 5e-3 /* of computing, more for each place that is looked into */

/* ---- one piece ------------------------------------------------------------------------------- */

static bool is_inside(int64_t from, int64_t many, int64_t all) { return from <= all && many <= all - from; }

/* Whether the rectangle is one of the part that is described, and what holds it is as large. */
static const char *place_wrong(const tsr_store_desc *desc, const tsr_piece *piece) {
    const tsr_store_desc *of = &piece->desc;
    const tsr_rect r = piece->rect;
    if (piece->matrix >= desc->matrices) return "the matrix of a piece";
    if (r.row < desc->row0 || r.col < desc->col0 || !is_inside(r.row - desc->row0, r.rows, desc->rows) ||
        !is_inside(r.col - desc->col0, r.cols, desc->cols))
        return "the place of a piece";
    if (piece->filled) return NULL;
    const bool same = piece->turned ? of->rows == r.cols && of->cols == r.rows && (r.rows == 1 || r.cols == 1)
                                    : of->rows == r.rows && of->cols == r.cols;
    if (!same || !is_inside(of->row0, of->rows, of->dataset_rows) || !is_inside(of->col0, of->cols, of->dataset_cols))
        return "the size of a piece";
    for (int i = 0; i < tsr_store_lead_count(of); i++)
        if (of->name.lead0[i] >= of->lead_size[i]) return "the matrix of a piece";
    return NULL;
}

const char *tsr_piece_wrong(const tsr_store_desc *desc, const tsr_piece *piece, int64_t file_bytes) {
    const tsr_store_desc *of = &piece->desc;
    const char *wrong = place_wrong(desc, piece);
    if (wrong || piece->filled) return wrong;
    if (of->element.dtype != desc->element.dtype || !of->hdf5.standard || of->rounded) return "the type of a piece";
    if (of->hdf5.scattered || (piece->bytes && of->offset < 0)) return "the bytes of a piece";
    return tsr_desc_wrong(of, file_bytes, false);
}

/* The file is the one that the helper found, and may be read. *was: the piece before, whose file need not be looked at
 * again. */
static tsr_status look_at(const tsr_store_desc *desc, const tsr_piece *was, tsr_piece *piece) {
    const char *file = piece->desc.name.file, *root = desc->hdf5.root;
    int fd = -1;
    if (was && !was->filled && strcmp(was->desc.name.file, file) == 0) {
        piece->desc.file_state = was->desc.file_state;
        return TSR_OK;
    }
    const bool own = strcmp(file, desc->name.file) == 0;
    piece->desc.file_state.known = true;
    if (!own && !*root) return tsr_fail(TSR_ERR_FORMAT, "'%s' is another file, which needs --allow-external", file);
    if (!own) TSR_TRY(tsr_beneath_path(root, file));
    TSR_TRY(tsr_file_state_open(file, &piece->desc.file_state, &fd));
    tsr_status status = tsr_file_state_check(fd, file, &piece->desc.file_state, &piece->desc.file_state);
    if (status == TSR_OK && !own) status = tsr_beneath_open(root, file, fd);
    close(fd);
    return status;
}

static tsr_status find_chunks(tsr_describer *d, tsr_store_desc *of) {
    of->on_disk = of->offset >= 0 && tsr_raw_on_disk(of->name.file);
    return tsr_describe_chunks(d, of, &of->index);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static tsr_status check_all(tsr_describer *d, const tsr_store_desc *desc, tsr_pieces *pieces) {
    int64_t matrix = 0;
    for (int64_t i = 0; i < pieces->count; i++) {
        tsr_piece *piece = &pieces->piece[i];
        if (!piece->filled) TSR_TRY(look_at(desc, i > 0 ? piece - 1 : NULL, piece));
        const char *wrong = tsr_piece_wrong(desc, piece, piece->desc.file_state.bytes);
        if (piece->matrix < matrix) wrong = "the order of pieces";
        matrix = piece->matrix;
        if (wrong) return tsr_describer_distrust(d, desc->name.file, wrong);
    }
    for (int64_t i = 0; i < pieces->count; i++)
        if (!pieces->piece[i].filled) TSR_TRY(find_chunks(d, &pieces->piece[i].desc));
    return TSR_OK;
}

static tsr_status take_pieces(tsr_wire *answer, tsr_pieces **pieces) {
    int64_t count = 0;
    tsr_wire_number(answer, &count, 0, TSR_PIECES_MAX, "how many pieces there are");
    if (answer->wrong) return TSR_OK;
    TSR_TRY(tsr_pieces_make(count, pieces));
    for (int64_t i = 0; i < count && !answer->wrong; i++) tsr_wire_piece(answer, &(*pieces)->piece[i]);
    return TSR_OK;
}

/* Without a helper this process looks. */
static tsr_status ask(tsr_describer *d, const tsr_store_desc *desc, tsr_pieces **pieces) {
    tsr_wire question = {.data = NULL}, answer = {.data = NULL};
    tsr_store_desc asked = *desc;
    int64_t what = TSR_ASK_PIECES;
    if (!d) return tsr_hdf5_collect(desc, pieces);
    tsr_wire_number(&question, &what, 0, TSR_ASK_COUNT - 1, "");
    tsr_wire_part(&question, &asked);
    const int64_t places = tsr_min(TSR_PIECES_MAX, tsr_max(desc->hdf5.places, desc->matrices));
    const double seconds = TSR_DESCRIBE_SECONDS + PLACE_SECONDS * (double)places;
    tsr_status status = tsr_describer_ask(d, desc->name.file, seconds, &question, &answer);
    if (status == TSR_OK) {
        status = tsr_describe_take_status(&answer);
        if (status == TSR_OK) status = take_pieces(&answer, pieces);
        if (!tsr_wire_is_good(&answer)) status = tsr_describer_distrust(d, desc->name.file, answer.wrong);
    }
    tsr_wire_free(&answer);
    tsr_wire_free(&question);
    return status;
}

void tsr_pieces_sum_up(tsr_store_desc *desc) {
    const size_t least = tsr_hdf5_least_bytes(desc, TSR_IO_AUTO);
    size_t wanted = 0;
    for (int64_t i = 0; i < desc->pieces->count; i++) {
        const tsr_store_desc *of = &desc->pieces->piece[i].desc;
        desc->on_disk |= of->on_disk;
        wanted = wanted + of->cache_bytes < CACHE_BYTES_MAX ? wanted + of->cache_bytes : CACHE_BYTES_MAX;
    }
    desc->cache_bytes = wanted > least ? wanted : least;
}

tsr_status tsr_describe_pieces(tsr_describer *d, tsr_store_desc *desc) {
    tsr_pieces *pieces = NULL;
    desc->pieces = NULL;
    if (!desc->hdf5.scattered) return TSR_OK;
    tsr_status status = ask(d, desc, &pieces);
    if (status == TSR_OK && !pieces) status = tsr_fail(TSR_FAILURE, "'%s' has no list of pieces", desc->name.file);
    if (status == TSR_OK) status = check_all(d, desc, pieces);
    if (status != TSR_OK) {
        tsr_pieces_leave(pieces);
        return status;
    }
    desc->pieces = pieces;
    tsr_pieces_sum_up(desc);
    return TSR_OK;
}
