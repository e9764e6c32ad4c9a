/* What an open store takes of host memory beside the rectangles that are read: chunks are decoded whole, however little
 * of one is wanted. Never more than desc->cache_bytes, so that limits hold whatever a file says. */
#include "io/hdf5/hdf5_memory.h"

#include "io/chunks/store_chunks.h"
#include "io/pieces/pieces.h"

size_t tsr_stored_bytes(const tsr_store_desc *desc) {
    return desc->hdf5.stored_bytes > 0 ? (size_t)desc->hdf5.stored_bytes : tsr_dtype_bytes(desc->element.dtype);
}

double tsr_chunk_elements(const tsr_store_desc *desc) {
    double elements = (double)desc->chunk_rows * (double)desc->chunk_cols;
    for (int d = 0; d < tsr_store_lead_count(desc); d++) elements *= (double)desc->lead_chunk[d];
    return elements;
}

bool tsr_decodes_chunks(const tsr_store_desc *desc) {
    bool of_one_matrix = true;
    for (int d = 0; d < tsr_store_lead_count(desc); d++) of_one_matrix &= desc->lead_chunk[d] == 1;
    return desc->hdf5.raw_chunks && of_one_matrix;
}

bool tsr_dataset_bytes(const tsr_store_desc *desc, size_t *bytes) {
    if (tsr_bytes_checked(desc->dataset_rows, desc->dataset_cols, tsr_dtype_bytes(desc->element.dtype), bytes) !=
        TSR_OK) {
        tsr_message_set(""); /* only a question */
        return false;
    }
    int64_t all = (int64_t)*bytes;
    for (int d = 0; d < tsr_store_lead_count(desc); d++)
        if (__builtin_mul_overflow(all, desc->lead_size[d], &all)) return false;
    *bytes = (size_t)all;
    return true;
}

/* HDF5 has what a filter takes and what it gives at once; chunks without filters it reads in place. */
static size_t library_bytes(const tsr_store_desc *desc) {
    const double chunk = tsr_chunk_elements(desc) * (double)tsr_stored_bytes(desc);
    if (desc->chunk_rows <= 0 || !desc->hdf5.filters[0]) return 0;
    if (chunk > (double)(SIZE_MAX / 16)) return SIZE_MAX / 8;
    return 2 * tsr_chunk_stored_max((size_t)chunk);
}

/* The piece that takes most memory while it is read; NULL where none takes any. */
static const tsr_piece *hungriest(const tsr_pieces *pieces, tsr_io_mode mode, size_t *bytes) {
    const tsr_piece *most = NULL;
    *bytes = 0;
    for (int64_t i = 0; pieces && i < pieces->count; i++) {
        const tsr_piece *piece = &pieces->piece[i];
        const size_t needs = piece->filled || piece->bytes ? 0 : tsr_hdf5_least_bytes(&piece->desc, mode);
        if (needs <= *bytes) continue;
        *bytes = needs;
        most = piece;
    }
    return most;
}

size_t tsr_hdf5_least_bytes(const tsr_store_desc *desc, tsr_io_mode mode) {
    size_t pieces;
    (void)hungriest(desc->pieces, mode, &pieces);
    if (desc->hdf5.scattered) return pieces;
    const size_t library = library_bytes(desc),
                 own = tsr_decodes_chunks(desc) ? tsr_chunks_bytes(desc, 1, 1) : SIZE_MAX;
    if (mode == TSR_IO_HDF5 || mode == TSR_IO_MPIO || !tsr_decodes_chunks(desc)) return library;
    return mode == TSR_IO_DIRECT || own < library ? own : library;
}

tsr_status tsr_hdf5_too_large(const tsr_store_desc *desc, size_t need, size_t have, const char *advice) {
    char need_text[32], have_text[32];
    size_t most;
    const tsr_piece *piece = hungriest(desc->pieces, TSR_IO_AUTO, &most);
    if (piece) desc = &piece->desc;
    else if (desc->pieces)
        return tsr_fail(TSR_ERR_LIMIT, "'%s:%s': the list of its %lld pieces needs %s of host memory, have %s: %s",
                        desc->name.file, desc->name.path, (long long)desc->pieces->count,
                        tsr_format_bytes((double)need, need_text), tsr_format_bytes((double)have, have_text), advice);
    return tsr_fail(TSR_ERR_LIMIT,
                    "'%s:%s': reading its %s chunks of %lldx%lld needs %s of host memory, have %s: %s, or write it in "
                    "smaller chunks (h5repack -l %s:CHUNK=%lldx%lld OLD.h5 NEW.h5)",
                    desc->name.file, desc->name.path, desc->hdf5.filters, (long long)desc->chunk_rows,
                    (long long)desc->chunk_cols, tsr_format_bytes((double)need, need_text),
                    tsr_format_bytes((double)have, have_text), advice, desc->name.path,
                    (long long)tsr_min(desc->chunk_rows, 512), (long long)tsr_min(desc->chunk_cols, 512));
}
