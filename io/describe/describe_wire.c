/* Numbers and texts of the messages (describe_wire.h), and whether a description makes sense. */
#include "io/describe/describe_wire.h"

#include <stdlib.h>
#include <string.h>

#include "io/hdf5/hdf5_memory.h"
#include "io/pieces/pieces.h"

/* ---- heads ----------------------------------------------------------------------------------- */

tsr_wire_head tsr_wire_head_of(uint64_t bytes, uint32_t seconds) {
    tsr_wire_head head = {.desc_bytes = sizeof(tsr_store_desc), .seconds = seconds, .bytes = bytes};
    _Static_assert(sizeof TSR_VERSION <= sizeof head.version, "it travels whole");
    memcpy(head.magic, TSR_WIRE_MAGIC, sizeof head.magic);
    memcpy(head.version, TSR_VERSION, sizeof TSR_VERSION);
    return head;
}

bool tsr_wire_head_is_ours(const tsr_wire_head *head) {
    const tsr_wire_head ours = tsr_wire_head_of(0, 0);
    return memcmp(head->magic, ours.magic, sizeof ours.magic) == 0 &&
           memcmp(head->version, ours.version, sizeof ours.version) == 0 && head->desc_bytes == ours.desc_bytes;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void tsr_wire_free(tsr_wire *wire) {
    free(wire->data);
    *wire = (tsr_wire){.data = NULL};
}

static void note(tsr_wire *wire, const char *what) {
    if (!wire->wrong) wire->wrong = what;
}

static void put(tsr_wire *wire, const void *from, size_t bytes) {
    if (wire->wrong) return;
    if (bytes > wire->room - wire->bytes) {
        const size_t room = 2 * wire->room + bytes + 256;
        char *data = realloc(wire->data, room);
        if (!data) {
            note(wire, "no memory");
            return;
        }
        wire->data = data;
        wire->room = room;
    }
    memcpy(wire->data + wire->bytes, from, bytes);
    wire->bytes += bytes;
}

static bool take(tsr_wire *wire, void *to, size_t bytes, const char *what) {
    if (bytes > wire->bytes - wire->at) note(wire, what);
    if (wire->wrong) return false;
    memcpy(to, wire->data + wire->at, bytes);
    wire->at += bytes;
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

void tsr_wire_number(tsr_wire *wire, int64_t *value, int64_t least, int64_t most, const char *what) {
    if (!wire->reading) {
        put(wire, value, sizeof *value);
        return;
    }
    int64_t got = least;
    if (take(wire, &got, sizeof got, what) && (got < least || got > most)) note(wire, what);
    *value = wire->wrong ? least : got;
}

void tsr_wire_bool(tsr_wire *wire, bool *value, const char *what) {
    int64_t number = wire->reading ? 0 : *value;
    tsr_wire_number(wire, &number, 0, 1, what);
    *value = number != 0;
}

/* The zero at the end travels, too. */
void tsr_wire_long_text(tsr_wire *wire, const char **text, const char *what) {
    int64_t bytes = wire->reading ? 0 : (int64_t)strlen(*text) + 1;
    tsr_wire_number(wire, &bytes, 1, INT64_MAX, what);
    if (!wire->reading) {
        put(wire, *text, (size_t)bytes);
        return;
    }
    *text = "";
    if (wire->wrong) return;
    const char *at = wire->data + wire->at;
    if ((uint64_t)bytes > wire->bytes - wire->at || memchr(at, '\0', (size_t)bytes) != at + bytes - 1) {
        note(wire, what);
        return;
    }
    wire->at += (size_t)bytes;
    *text = at;
}

void tsr_wire_text(tsr_wire *wire, char *text, size_t chars, const char *what) {
    const char *all = text;
    tsr_wire_long_text(wire, &all, what);
    if (!wire->reading) return;
    if (strlen(all) >= chars) {
        note(wire, what);
        all = "";
    }
    memcpy(text, all, strlen(all) + 1);
}

void tsr_wire_block(tsr_wire *wire, char **data, int64_t *bytes, size_t most, const char *what) {
    tsr_wire_number(wire, bytes, 0, (int64_t)most, what);
    if (!wire->reading && *bytes > 0) put(wire, *data, (size_t)*bytes);
    if (!wire->reading) return;
    *data = NULL;
    if (*bytes > 0 && (uint64_t)*bytes <= wire->bytes - wire->at) *data = malloc((size_t)*bytes);
    if (*bytes > 0 && !*data) note(wire, what);
    if (*data) take(wire, *data, (size_t)*bytes, what);
    if (wire->wrong) *bytes = 0;
}

void tsr_wire_name(tsr_wire *wire, tsr_matrix_name *name) {
    tsr_wire_text(wire, name->file, sizeof name->file, "a file's name");
    tsr_wire_text(wire, name->path, sizeof name->path, "a path");
    tsr_wire_text(wire, name->slice, sizeof name->slice, "a slice");
}

bool tsr_wire_is_good(tsr_wire *wire) {
    if (wire->reading && wire->at != wire->bytes) note(wire, "its length");
    return wire->wrong == NULL;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

/* A field of any integer or enum type. */
#define FIELD(type, field, least, most)                                                                                \
    do {                                                                                                               \
        int64_t number_ = wire->reading ? 0 : (int64_t)(field);                                                        \
        tsr_wire_number(wire, &number_, (least), (most), #field);                                                      \
        (field) = (type)number_;                                                                                       \
    } while (0)

static void wire_pipeline(tsr_wire *wire, tsr_pipeline *p) {
    FIELD(int, p->count, 0, TSR_FILTERS_MAX);
    for (int f = 0; f < TSR_FILTERS_MAX; f++) {
        FIELD(int, p->use[f].filter, 0, tsr_filter_count() - 1);
        FIELD(int, p->use[f].count, 0, INT32_MAX);
        for (int v = 0; v < TSR_FILTER_VALUES_MAX; v++) FIELD(uint32_t, p->use[f].values[v], 0, UINT32_MAX);
    }
}

/* The 64 bits of an unsigned number. */
static void wire_bits(tsr_wire *wire, uint64_t *bits, const char *what) {
    int64_t number = wire->reading ? 0 : (int64_t)*bits;
    tsr_wire_number(wire, &number, INT64_MIN, INT64_MAX, what);
    *bits = (uint64_t)number;
}

static void wire_state(tsr_wire *wire, tsr_file_state *s) {
    tsr_wire_bool(wire, &s->known, "its file");
    wire_bits(wire, &s->machine, "its machine");
    wire_bits(wire, &s->device, "its device");
    wire_bits(wire, &s->inode, "its inode");
    FIELD(int64_t, s->file_system, INT64_MIN, INT64_MAX);
    FIELD(int64_t, s->bytes, 0, INT64_MAX);
    FIELD(int64_t, s->seconds, INT64_MIN, INT64_MAX);
    FIELD(int64_t, s->nanoseconds, 0, 999999999);
}

_Static_assert(sizeof(void *) != 8 || sizeof(tsr_store_desc) == 4904, "a new field travels, and is checked, below");

/* Dimensions before the last two. */
static void wire_leads(tsr_wire *wire, tsr_store_desc *d) {
    FIELD(int, d->dataset_dimensions, 0, TSR_DIMENSIONS_MAX);
    tsr_wire_bool(wire, &d->rows_missing, "its dimensions");
    tsr_wire_bool(wire, &d->cols_missing, "its dimensions");
    if (tsr_store_lead_count(d) > TSR_LEADS_MAX) { /* reading: nothing below may count on it */
        note(wire, "its dimensions");
        d->dataset_dimensions = 0;
    }
    for (int i = 0; i < tsr_store_lead_count(d); i++) {
        FIELD(int64_t, d->lead_size[i], 0, INT64_MAX);
        FIELD(int64_t, d->lead_chunk[i], 0, INT64_MAX);
    }
}

void tsr_wire_desc(tsr_wire *wire, tsr_store_desc *d) {
    tsr_wire_text(wire, d->name.path, sizeof d->name.path, "its path");
    FIELD(int64_t, d->dataset_rows, 0, INT64_MAX);
    FIELD(int64_t, d->dataset_cols, 0, INT64_MAX);
    wire_leads(wire, d);
    if (wire->reading && tsr_store_take_slice(d) != TSR_OK) note(wire, "its shape");
    FIELD(tsr_dtype, d->element.dtype, 0, TSR_DTYPE_COUNT - 1);
    tsr_wire_bool(wire, &d->element.swapped, "its byte order");
    FIELD(tsr_layout, d->hdf5.layout, TSR_LAYOUT_CONTIGUOUS, TSR_LAYOUT_VIRTUAL);
    FIELD(int64_t, d->chunk_rows, 0, INT64_MAX);
    FIELD(int64_t, d->chunk_cols, 0, INT64_MAX);
    FIELD(size_t, d->cache_bytes, 0, (int64_t)1 << 36); /* of chunks of less than 4 GiB, decoded by HDF5 */
    FIELD(int64_t, d->hdf5.stored_bytes, 0, UINT32_MAX);
    tsr_wire_bool(wire, &d->hdf5.raw_chunks, "raw_chunks");
    wire_pipeline(wire, &d->hdf5.pipeline);
    for (size_t i = 0; i < sizeof d->hdf5.unwritten; i++) FIELD(uint8_t, d->hdf5.unwritten[i], 0, UINT8_MAX);
    tsr_wire_text(wire, d->hdf5.filters, sizeof d->hdf5.filters, "its filters");
    FIELD(int64_t, d->offset, -1, INT64_MAX);
    tsr_wire_bool(wire, &d->hdf5.standard, "standard");
    FIELD(tsr_fields, d->fields, 0, TSR_FIELDS_COUNT - 1);
    tsr_wire_bool(wire, &d->rounded, "rounded");
    tsr_wire_text(wire, d->packed, sizeof d->packed, "how it is packed");
    tsr_wire_text(wire, d->hdf5.matlab_class, sizeof d->hdf5.matlab_class, "its class");
    tsr_wire_bool(wire, &d->hdf5.octave, "octave");
    tsr_wire_text(wire, d->type_name, sizeof d->type_name, "its type's name");
    wire_state(wire, &d->file_state);
    FIELD(int64_t, d->hdf5.header_address, INT64_MIN, INT64_MAX);
    tsr_wire_bool(wire, &d->hdf5.scattered, "scattered");
    FIELD(int64_t, d->hdf5.places, 0, INT64_MAX);
    tsr_wire_text(wire, d->hdf5.reads, sizeof d->hdf5.reads, "what it reads");
}

/* Two numbers of 64 bits. */
void tsr_wire_place(tsr_wire *wire, tsr_chunk_place *place) {
    uint64_t rest = wire->reading ? 0 : (uint64_t)place->bytes << 32 | place->skipped;
    tsr_wire_number(wire, &place->address, 0, INT64_MAX, "the place of a chunk");
    wire_bits(wire, &rest, "the size of a chunk");
    place->bytes = (uint32_t)(rest >> 32);
    place->skipped = (uint32_t)rest;
}

void tsr_wire_range(tsr_wire *wire, tsr_store_desc *d, tsr_chunk_range *range, bool *wanted) {
    tsr_wire_text(wire, d->name.file, sizeof d->name.file, "a file's name");
    tsr_wire_text(wire, d->name.path, sizeof d->name.path, "a path");
    FIELD(int64_t, d->chunk_rows, 1, INT64_MAX);
    FIELD(int64_t, d->chunk_cols, 1, INT64_MAX);
    wire_leads(wire, d);
    for (int i = 0; i < tsr_store_lead_count(d); i++) {
        FIELD(int64_t, d->name.lead0[i], 0, INT64_MAX);
        FIELD(int64_t, d->name.lead1[i], 0, INT64_MAX);
    }
    FIELD(int64_t, range->matrices, 0, TSR_CHUNK_INDEX_MAX);
    FIELD(int64_t, range->row0, 0, INT64_MAX);
    FIELD(int64_t, range->col0, 0, INT64_MAX);
    FIELD(int64_t, range->rows, 0, TSR_CHUNK_INDEX_MAX);
    FIELD(int64_t, range->cols, 0, TSR_CHUNK_INDEX_MAX);
    tsr_wire_bool(wire, wanted, "what is wanted");
}

static void wire_rect(tsr_wire *wire, tsr_rect *r) {
    FIELD(int64_t, r->row, 0, INT64_MAX);
    FIELD(int64_t, r->col, 0, INT64_MAX);
    FIELD(int64_t, r->rows, 0, INT64_MAX);
    FIELD(int64_t, r->cols, 0, INT64_MAX);
}

/* The part selected: bounds along the dimensions before the last two, and what of those. */
static void wire_selection(tsr_wire *wire, tsr_store_desc *d, int leads) {
    tsr_rect part = {d->row0, d->col0, d->rows, d->cols};
    for (int i = 0; i < leads; i++) {
        FIELD(int64_t, d->name.lead0[i], 0, INT64_MAX);
        FIELD(int64_t, d->name.lead1[i], 0, INT64_MAX);
    }
    wire_rect(wire, &part);
    d->row0 = part.row;
    d->col0 = part.col;
    d->rows = part.rows;
    d->cols = part.cols;
}

void tsr_wire_part(tsr_wire *wire, tsr_store_desc *d) {
    tsr_wire_text(wire, d->name.file, sizeof d->name.file, "a file's name");
    tsr_wire_text(wire, d->name.path, sizeof d->name.path, "a path");
    tsr_wire_text(wire, d->hdf5.root, sizeof d->hdf5.root, "a folder");
    FIELD(tsr_dtype, d->element.dtype, 0, TSR_DTYPE_COUNT - 1);
    FIELD(int64_t, d->dataset_rows, 0, INT64_MAX);
    FIELD(int64_t, d->dataset_cols, 0, INT64_MAX);
    wire_leads(wire, d);
    wire_selection(wire, d, tsr_store_lead_count(d));
    FIELD(int64_t, d->matrices, 0, INT64_MAX);
}

void tsr_wire_piece(tsr_wire *wire, tsr_piece *piece) {
    FIELD(int64_t, piece->matrix, 0, INT64_MAX);
    wire_rect(wire, &piece->rect);
    tsr_wire_bool(wire, &piece->filled, "a piece");
    tsr_wire_bool(wire, &piece->bytes, "a piece");
    tsr_wire_bool(wire, &piece->turned, "a piece");
    for (size_t i = 0; i < sizeof piece->fill; i++) FIELD(uint8_t, piece->fill[i], 0, UINT8_MAX);
    if (piece->filled) return;
    tsr_store_desc selected = piece->desc; /* a description is of the whole dataset: the part comes behind it */
    tsr_wire_text(wire, piece->desc.name.file, sizeof piece->desc.name.file, "a file's name");
    tsr_wire_desc(wire, &piece->desc);
    wire_selection(wire, &selected, tsr_store_lead_count(&piece->desc));
    tsr_piece_select(piece, selected.name.lead0,
                     (tsr_rect){selected.row0, selected.col0, selected.rows, selected.cols});
}

/* What reading decoded chunks counts on. */
static const char *raw_chunks_wrong(const tsr_store_desc *d, size_t chunk_bytes) {
    if (d->hdf5.layout != TSR_LAYOUT_CHUNKED || d->rounded || d->chunk_rows == 0) return "raw chunks of what has none";
    if (chunk_bytes > TSR_TRANSFER_BYTES_MAX) return "the size of its chunks";
    for (int i = 0; i < tsr_store_lead_count(d); i++)
        if (d->lead_chunk[i] != 1) return "raw chunks of several matrices";
    for (int f = 0; f < d->hdf5.pipeline.count; f++)
        if (!tsr_filter_decodes(&d->hdf5.pipeline.use[f])) return "a filter that is not here";
    return NULL;
}

const char *tsr_desc_wrong(const tsr_store_desc *d, int64_t file_bytes, bool refused) {
    const size_t element = tsr_dtype_bytes(d->element.dtype), stored = (size_t)d->hdf5.stored_bytes;
    size_t bytes = 0;
    if (d->name.path[0] != '/') return "its path";
    if (refused) return d->offset < 0 ? NULL : "the place of what cannot be read";
    if (d->name.path[1] == '\0') return "its path";
    if (d->rows_missing != (d->dataset_dimensions < 1) || d->cols_missing != (d->dataset_dimensions < 2) ||
        (d->rows_missing && d->dataset_rows != 1) || (d->cols_missing && d->dataset_cols != 1))
        return "its dimensions";
    if (!tsr_dataset_bytes(d, &bytes)) return "its shape";
    if (d->hdf5.layout == TSR_LAYOUT_VIRTUAL && !d->hdf5.scattered) return "its layout";
    if (d->hdf5.scattered && (!d->hdf5.standard || d->offset >= 0 || d->hdf5.raw_chunks || d->chunk_rows > 0))
        return "its places";
    if (stored < 1 || stored > TSR_STORED_BYTES_MAX) return "its type";
    if (d->hdf5.standard && (d->rounded || stored != element)) return "its type";
    if ((d->hdf5.layout == TSR_LAYOUT_CHUNKED) != (d->chunk_rows > 0) || (d->chunk_rows > 0) != (d->chunk_cols > 0))
        return "its chunks";
    for (int i = 0; i < tsr_store_lead_count(d); i++)
        if ((d->lead_chunk[i] > 0) != (d->chunk_rows > 0)) return "its chunks";
    if (tsr_chunk_elements(d) * (double)stored > UINT32_MAX)
        return "the size of its chunks"; /* HDF5 has none of 4 GiB */
    const size_t chunk_bytes = (size_t)tsr_chunk_elements(d) * tsr_max(stored, element);
    if (d->hdf5.layout != TSR_LAYOUT_CHUNKED && (d->hdf5.pipeline.count > 0 || d->cache_bytes > 0))
        return "chunks of what has none";
    if (d->hdf5.raw_chunks && raw_chunks_wrong(d, chunk_bytes)) return raw_chunks_wrong(d, chunk_bytes);
    if (d->offset < 0) return d->element.swapped && !d->hdf5.raw_chunks ? "its byte order" : NULL;
    if (d->hdf5.layout != TSR_LAYOUT_CONTIGUOUS || !d->hdf5.standard) return "the place of what has none";
    return d->offset > file_bytes || bytes > (size_t)(file_bytes - d->offset) ? "its place in the file" : NULL;
}
