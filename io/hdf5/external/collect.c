/* Pieces of a dataset (collect.h): mappings of a virtual dataset are followed to the datasets that hold elements, which
 * may be virtual themselves, and segments of external storage to the bytes of files. */
#include "io/hdf5/external/collect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/describe/describe_wire.h"
#include "io/files/file_bytes.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_type.h"
#include "io/hdf5/external/beneath.h"
#include "io/hdf5/external/external_file.h"
#include "io/hdf5/external/mapping.h"
#include "io/hdf5/hdf5_inspect.h"
#include "io/hdf5/hdf5_memory.h"

#define DEPTH_MAX 8 /* virtual datasets in each other */
#define LOOKS_MAX (4 * TSR_PIECES_MAX)

/* A virtual dataset that is being followed. */
typedef struct {
    uint64_t device, inode;
    int64_t address;
} on_the_way;

typedef struct {
    const char *root;
    tsr_dtype dtype;
    tsr_pieces *pieces; /* with room for `room`, of which `count` are set */
    int64_t count, room;
    int64_t looks; /* mappings that were followed */
    int depth;
    on_the_way way[DEPTH_MAX];
    int64_t matrix;           /* that is collected, of those that are selected */
    tsr_h5_mapping *mappings; /* of the dataset that is asked for, which is looked at for each matrix; owned */
} collector;

/* An open dataset. */
typedef struct {
    tsr_h5_spot *spot;
    hid_t id;
    const tsr_store_desc *desc;
    const int64_t *lead; /* the index along the dimensions before its last two */
} open_dataset;

/* Where a rectangle of a dataset goes in the one that was asked for. */
typedef struct {
    tsr_rect from;
    int64_t row, col; /* of its first element */
    bool turned;      /* rows become columns */
} frame;

static tsr_rect place_in(const frame *f, tsr_rect inner) {
    const int64_t down = inner.row - f->from.row, right = inner.col - f->from.col;
    if (f->turned) return (tsr_rect){f->row + right, f->col + down, inner.cols, inner.rows};
    return (tsr_rect){f->row + down, f->col + right, inner.rows, inner.cols};
}

/* ---- the list -------------------------------------------------------------------------------- */

/* A piece of zeros; NULL without memory, or where there are too many. */
static tsr_status add_piece(collector *c, tsr_piece **piece) {
    if (c->count == TSR_PIECES_MAX)
        return tsr_fail(TSR_ERR_LIMIT, "what is read lies in more than %d pieces; copy it into one dataset",
                        TSR_PIECES_MAX);
    if (c->count == c->room) {
        tsr_pieces *more;
        const int64_t room = 2 * c->room + 16;
        TSR_TRY(tsr_pieces_make(room, &more));
        for (int64_t i = 0; i < c->count; i++) more->piece[i] = c->pieces->piece[i];
        free(c->pieces);
        c->pieces = more;
        c->room = room;
    }
    *piece = &c->pieces->piece[c->count++];
    return TSR_OK;
}

static tsr_status add_fill(collector *c, const open_dataset *d, hid_t properties, const frame *f) {
    tsr_piece *piece;
    TSR_TRY(add_piece(c, &piece));
    piece->matrix = c->matrix;
    piece->rect = place_in(f, f->from);
    piece->filled = true;
    const hid_t type = tsr_h5_memory_type(d->desc->element.dtype, d->desc->fields);
    if (type < 0 || H5Pget_fill_value(properties, type, piece->fill) < 0) memset(piece->fill, 0, sizeof piece->fill);
    if (type >= 0) H5Tclose(type);
    return TSR_OK;
}

static tsr_status add_dataset(collector *c, const open_dataset *d, const frame *f) {
    tsr_piece *piece;
    TSR_TRY(add_piece(c, &piece));
    piece->matrix = c->matrix;
    piece->rect = place_in(f, f->from);
    piece->turned = f->turned;
    piece->desc = *d->desc;
    memcpy(piece->desc.name.file, d->spot->name, sizeof piece->desc.name.file);
    piece->desc.file_state = d->spot->state;
    tsr_piece_select(piece, d->lead, f->from);
    return TSR_OK;
}

/* ---- external storage ------------------------------------------------------------------------ */

/* Bytes of a file below the folder: its state, and whether they are there. */
static tsr_status look_at_bytes(const collector *c, const char *file, int64_t offset, int64_t bytes,
                                tsr_file_state *state) {
    int64_t size = 0;
    int fd = -1;
    TSR_TRY(tsr_beneath_path(c->root, file));
    TSR_TRY(tsr_file_state_note(file, state));
    TSR_TRY(tsr_plain_file_open(file, &fd, &size));
    tsr_status status = tsr_beneath_open(c->root, file, fd);
    if (status == TSR_OK) status = tsr_file_state_check(fd, file, state, NULL);
    close(fd);
    TSR_TRY(status);
    if (offset <= state->bytes && bytes <= state->bytes - offset) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT,
                    "'%s' should hold data up to byte %.0f, and has %lld: it is truncated, copy it again", file,
                    (double)offset + (double)bytes, (long long)state->bytes);
}

/* Elements [first, first + count) of the matrix are at `offset` of the file, in rows of `cols`. Adds the rectangle
 * `rows` x `width` that they are, cut to what is wanted. */
static tsr_status add_bytes(collector *c, const open_dataset *d, const frame *f, const char *file, int64_t offset,
                            tsr_rect whole) {
    const int64_t row = tsr_max(whole.row, f->from.row), col = tsr_max(whole.col, f->from.col);
    const int64_t rows = tsr_min(whole.row + whole.rows, f->from.row + f->from.rows) - row;
    const int64_t cols = tsr_min(whole.col + whole.cols, f->from.col + f->from.cols) - col;
    const size_t element = tsr_dtype_bytes(d->desc->element.dtype);
    tsr_piece *piece;
    if (rows <= 0 || cols <= 0) return TSR_OK;
    TSR_TRY(add_piece(c, &piece));
    piece->matrix = c->matrix;
    piece->rect = place_in(f, (tsr_rect){row, col, rows, cols});
    piece->turned = f->turned;
    piece->bytes = true;
    piece->desc = *d->desc;
    tsr_store_desc *desc = &piece->desc;
    snprintf(desc->name.file, sizeof desc->name.file, "%s", file);
    desc->hdf5.scattered = false;
    desc->offset = offset;
    TSR_TRY(tsr_store_set_shape(desc, &(tsr_shape){2, {whole.rows, whole.cols}}));
    tsr_piece_select(piece, NULL, (tsr_rect){row - whole.row, col - whole.col, rows, cols});
    return look_at_bytes(c, file, offset, whole.rows * whole.cols * (int64_t)element, &desc->file_state);
}

/* Elements [first, end) of the matrix, the first of which is at `offset` of the file: the end of a row, whole rows, the
 * beginning of one. */
static tsr_status add_run(collector *c, const open_dataset *d, const frame *f, const char *file, int64_t offset,
                          int64_t first, int64_t end) {
    const int64_t cols = d->desc->dataset_cols, element = (int64_t)tsr_dtype_bytes(d->desc->element.dtype);
    while (first < end) {
        const int64_t row = first / cols, col = first % cols;
        const int64_t rows = col == 0 && end - first >= cols ? (end - first) / cols : 1;
        const int64_t width = rows > 1 || (col == 0 && end - first >= cols) ? cols : tsr_min(cols - col, end - first);
        TSR_TRY(add_bytes(c, d, f, file, offset, (tsr_rect){row, col, rows, width}));
        first += rows * width;
        offset += rows * width * element;
    }
    return TSR_OK;
}

/* Matrices before the one that is read, in its dataset. */
static int64_t matrices_before(const open_dataset *d) {
    int64_t before = 0;
    for (int i = 0; i < tsr_store_lead_count(d->desc); i++) before = before * d->desc->lead_size[i] + d->lead[i];
    return before;
}

/* Bytes [begin, end) of the dataset are the segment's. */
static tsr_status add_segment(collector *c, const open_dataset *d, const frame *f, const tsr_h5_segment *segment,
                              int64_t begin, int64_t end) {
    const int64_t element = (int64_t)tsr_dtype_bytes(d->desc->element.dtype);
    const int64_t matrix = d->desc->dataset_rows * d->desc->dataset_cols * element;
    const int64_t base = matrices_before(d) * matrix;
    const int64_t first = tsr_max(begin, base), last = tsr_min(end, base + matrix);
    char file[TSR_FILE_CHARS];
    if (first >= last) return TSR_OK;
    if (first % element != 0 || last % element != 0)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s:%s': its external file '%s' ends within an element; copy it: h5repack -l "
                        "CONTI OLD.h5 NEW.h5",
                        d->spot->name, d->desc->name.path, segment->file);
    if (segment->offset > INT64_MAX - (last - begin))
        return tsr_fail(TSR_ERR_FORMAT, "'%s:%s': its place in '%s' is impossible; copy it again", d->spot->name,
                        d->desc->name.path, segment->file);
    TSR_TRY(tsr_external_find(TSR_NAMED_BY_STORAGE, d->spot->name, segment->file, file));
    return add_run(c, d, f, file, segment->offset + first - begin, (first - base) / element, (last - base) / element);
}

/* The order of bytes, which the description of what has no bytes of its own does not say. */
static void take_order(const open_dataset *d, tsr_store_desc *desc) {
    tsr_h5_type type;
    const hid_t id = H5Dget_type(d->id);
    if (id < 0) return;
    tsr_h5_type_of(id, &type);
    desc->element = type.element;
    H5Tclose(id);
}

static tsr_status collect_segments(collector *c, const open_dataset *dataset, hid_t properties, const frame *f) {
    tsr_store_desc desc = *dataset->desc;
    open_dataset d = *dataset;
    tsr_h5_segment segment;
    int64_t begin = 0;
    d.desc = &desc;
    take_order(dataset, &desc);
    const int count = H5Pget_external_count(properties);
    for (int i = 0; i < count; i++) {
        const char *wrong = tsr_h5_segment_read(properties, (unsigned)i, &segment);
        if (wrong) return tsr_fail(TSR_ERR_FORMAT, "'%s:%s': %s", d.spot->name, desc.name.path, wrong);
        const int64_t end = segment.bytes > INT64_MAX - begin ? INT64_MAX : begin + segment.bytes;
        TSR_TRY(add_segment(c, &d, f, &segment, begin, end));
        begin = end;
    }
    size_t bytes;
    if (!tsr_dataset_bytes(&desc, &bytes) || begin < (int64_t)bytes)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s:%s': its external files hold %lld of its bytes, and it has more; copy it again",
                        d.spot->name, desc.name.path, (long long)begin);
    return TSR_OK;
}

/* ---- virtual datasets ------------------------------------------------------------------------ */

static tsr_status collect(collector *c, const open_dataset *d, const frame *f);

/* Whether what a mapping says of its source is so. Sees its block as the source is described. */
static tsr_status check_source(const collector *c, tsr_h5_mapping *m, const char *file, const tsr_h5_found *found) {
    const tsr_store_desc *desc = &found->desc;
    if (found->status != TSR_OK)
        return tsr_fail(found->status, "the source '%s:%s' cannot be read as a matrix: %s", file, desc->name.path,
                        found->refused);
    if (desc->element.dtype != c->dtype || !desc->hdf5.standard)
        return tsr_fail(TSR_ERR_FORMAT,
                        "the source '%s:%s' holds %s, and what shows it %s: both must be of one type; copy it into one "
                        "dataset",
                        file, desc->name.path, desc->type_name, tsr_dtype_name(c->dtype));
    const int leads = tsr_store_lead_count(desc);
    bool fits = tsr_h5_block_in(&m->source, desc);
    for (int i = 0; fits && i < leads; i++) fits = m->source.start[i] + m->source.count[i] <= desc->lead_size[i];
    fits = fits && m->source.start[leads] + m->source.count[leads] <= desc->dataset_rows &&
           m->source.start[leads + 1] + m->source.count[leads + 1] <= desc->dataset_cols;
    if (fits) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT,
                    "the source '%s:%s' is smaller than what is shown of it, or has other dimensions (%lldx%lld are "
                    "there); make it whole",
                    file, desc->name.path, (long long)desc->dataset_rows, (long long)desc->dataset_cols);
}

/* Opens the source in its file, where it lies at `resolved` (TSR_PATH_CHARS). */
static tsr_status open_source(tsr_h5_spot *spot, const char *root, const char *path, char *resolved, hid_t *object) {
    TSR_TRY(tsr_h5_follow(spot, root, path, resolved));
    *object = H5Oopen(spot->file, resolved, H5P_DEFAULT);
    if (*object >= 0 && H5Iget_type(*object) == H5I_DATASET) return TSR_OK;
    if (*object >= 0) return tsr_fail(TSR_ERR_FORMAT, "the source '%s:%s' is not a dataset", spot->name, path);
    return tsr_h5_fail(TSR_ERR_FORMAT, "the source '%s:%s' cannot be opened", spot->name, path);
}

static tsr_status say_wrong(const open_dataset *d, const char *wrong) {
    return tsr_fail(TSR_ERR_FORMAT, "'%s:%s': %s", d->spot->name, d->desc->name.path, wrong);
}

/* `part` of the matrix of `d`, of which the mapping shows all, lies in what was found of its source. */
static tsr_status collect_shown(collector *c, const open_dataset *d, const tsr_h5_mapping *m, tsr_rect part,
                                const open_dataset *source, const frame *f) {
    const tsr_rect at = place_in(f, part);
    tsr_h5_shown shown;
    open_dataset of = *source;
    memset(&shown, 0, sizeof shown);
    const char *wrong = tsr_h5_mapping_show(m, d->lead, part, &shown);
    if (wrong) return say_wrong(d, wrong);
    const frame inner = {shown.rect, at.row, at.col, f->turned != shown.turned};
    of.lead = shown.lead;
    return collect(c, &of, &inner);
}

static tsr_status collect_source(collector *c, const open_dataset *d, tsr_h5_mapping *m, tsr_rect part,
                                 const frame *f) {
    const bool own = strcmp(m->file, ".") == 0;
    char file[TSR_FILE_CHARS], path[TSR_PATH_CHARS];
    tsr_h5_spot spot = {.file = -1};
    tsr_h5_found found;
    hid_t object = -1;
    if (!own) TSR_TRY(tsr_external_find(TSR_NAMED_BY_MAPPING, d->spot->name, m->file, file));
    TSR_TRY(tsr_h5_spot_open(own ? d->spot->name : file, own ? "" : c->root, &spot));
    tsr_status status = open_source(&spot, c->root, m->path, path, &object);
    if (status == TSR_OK) status = tsr_h5_inspect(object, path, spot.bytes, false, &found);
    if (status == TSR_OK && !*c->root) tsr_h5_refuse_outside(&found);
    if (status == TSR_OK) status = check_source(c, m, spot.name, &found);
    const open_dataset source = {&spot, object, &found.desc, NULL};
    if (status == TSR_OK) status = collect_shown(c, d, m, part, &source, f);
    if (object >= 0) H5Oclose(object);
    return tsr_h5_spot_close(&spot, status);
}

/* One mapping, with its block seen as the dataset is. */
static tsr_status read_mapping(const open_dataset *d, hid_t properties, size_t number, tsr_h5_mapping *m) {
    const char *wrong = tsr_h5_mapping_read(properties, number, m);
    if (!wrong && !tsr_h5_block_in(&m->shown, d->desc))
        wrong = "a mapping has other dimensions than it: it is damaged, copy it again";
    return wrong ? say_wrong(d, wrong) : TSR_OK;
}

/* All of them, where they are looked at again. */
static tsr_status read_mappings(collector *c, const open_dataset *d, hid_t properties, size_t count) {
    if (c->depth > 1 || c->mappings) return TSR_OK;
    c->mappings = malloc((count + 1) * sizeof *c->mappings);
    if (!c->mappings) return tsr_fail(TSR_ERR_MEMORY, "no memory for %zu mappings; free some", count);
    for (size_t i = 0; i < count; i++) {
        tsr_describe_goes_on();
        TSR_TRY(read_mapping(d, properties, i, &c->mappings[i]));
    }
    return TSR_OK;
}

static tsr_status collect_mapping(collector *c, const open_dataset *d, hid_t properties, size_t number,
                                  const frame *f) {
    const bool kept = c->depth == 1;
    tsr_rect part = f->from;
    tsr_status status = TSR_OK;
    if (kept) tsr_h5_mapping_cut(&c->mappings[number], d->lead, &part);
    if (tsr_rect_empty(part)) return TSR_OK;
    tsr_h5_mapping *m = malloc(sizeof *m); /* some kilobytes, at each depth */
    if (!m) return tsr_fail(TSR_ERR_MEMORY, "no memory for a mapping; free some");
    if (kept) *m = c->mappings[number];
    else status = read_mapping(d, properties, number, m);
    if (status == TSR_OK && !kept) tsr_h5_mapping_cut(m, d->lead, &part);
    if (status == TSR_OK && !tsr_rect_empty(part)) {
        status = ++c->looks > LOOKS_MAX
                     ? say_wrong(d, "it has too many mappings in its sources; copy it into one dataset")
                     : collect_source(c, d, m, part, f);
    }
    free(m);
    return status;
}

/* Goes into a virtual dataset, unless one is in itself. */
static tsr_status enter(collector *c, const open_dataset *d) {
    const tsr_file_state *state = &d->spot->state;
    const on_the_way here = {state->device, state->inode, tsr_h5_address(d->id)};
    for (int i = 0; i < c->depth; i++)
        if (c->way[i].device == here.device && c->way[i].inode == here.inode && c->way[i].address == here.address)
            return tsr_fail(TSR_ERR_FORMAT,
                            "the virtual dataset '%s:%s' leads back to itself, so nothing holds its "
                            "elements; write it anew",
                            d->spot->name, d->desc->name.path);
    if (c->depth == DEPTH_MAX)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s:%s' is a virtual dataset in %d others, one in the other, and that is the most; copy it "
                        "into one dataset",
                        d->spot->name, d->desc->name.path, DEPTH_MAX);
    c->way[c->depth++] = here;
    return TSR_OK;
}

static tsr_status collect_virtual(collector *c, const open_dataset *d, hid_t properties, const frame *f) {
    size_t count = 0;
    TSR_TRY(enter(c, d));
    TSR_TRY(add_fill(c, d, properties, f));
    if (H5Pget_virtual_count(properties, &count) < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the mappings of '%s:%s'", d->spot->name, d->desc->name.path);
    TSR_TRY(read_mappings(c, d, properties, count));
    for (size_t i = 0; i < count; i++) {
        tsr_describe_goes_on();
        TSR_TRY(collect_mapping(c, d, properties, i, f));
    }
    c->depth--;
    return TSR_OK;
}

/* ---- any dataset ----------------------------------------------------------------------------- */

static tsr_status collect(collector *c, const open_dataset *d, const frame *f) {
    if (!d->desc->hdf5.scattered) return add_dataset(c, d, f);
    const hid_t properties = H5Dget_create_plist(d->id);
    if (properties < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the properties of '%s:%s'", d->spot->name, d->desc->name.path);
    const tsr_status status = d->desc->hdf5.layout == TSR_LAYOUT_VIRTUAL ? collect_virtual(c, d, properties, f)
                                                                         : collect_segments(c, d, properties, f);
    H5Pclose(properties);
    return status;
}

/* The matrices that are selected, one after the other. */
static tsr_status collect_matrices(collector *c, const open_dataset *dataset, const tsr_store_desc *desc) {
    const tsr_rect part = {desc->row0, desc->col0, desc->rows, desc->cols};
    const frame all = {part, part.row, part.col, false};
    int64_t lead[TSR_LEADS_MAX] = {0};
    open_dataset d = *dataset;
    d.lead = lead;
    for (c->matrix = 0; c->matrix < desc->matrices; c->matrix++) {
        tsr_store_leads(desc, c->matrix, lead);
        TSR_TRY(collect(c, &d, &all));
    }
    return TSR_OK;
}

/* As what was found is asked for: a vector may be a row or a column, and rows matrices of their own. */
static tsr_store_desc seen_as(const tsr_store_desc *found, const tsr_store_desc *asked) {
    tsr_store_desc seen = *found;
    seen.rows_missing = asked->rows_missing;
    seen.cols_missing = asked->cols_missing;
    seen.dataset_rows = asked->dataset_rows;
    seen.dataset_cols = asked->dataset_cols;
    memcpy(seen.lead_size, asked->lead_size, sizeof seen.lead_size);
    return seen;
}

/* The dataset that was described, which its file still holds. */
static tsr_status collect_top(collector *c, tsr_h5_spot *spot, const tsr_store_desc *desc) {
    tsr_h5_found found;
    hid_t object = -1;
    char path[TSR_PATH_CHARS];
    tsr_status status = open_source(spot, "", desc->name.path, path, &object);
    if (status == TSR_OK) status = tsr_h5_inspect(object, desc->name.path, spot->bytes, false, &found);
    if (status == TSR_OK && !*c->root) tsr_h5_refuse_outside(&found);
    if (status == TSR_OK && found.status != TSR_OK)
        status = tsr_fail(found.status, "'%s:%s' cannot be read as a matrix: %s", spot->name, desc->name.path,
                          found.refused);
    if (status == TSR_OK && (!found.desc.hdf5.scattered || found.desc.dataset_dimensions != desc->dataset_dimensions))
        status = tsr_fail(TSR_ERR_FORMAT, "'%s:%s' is another dataset than it was", spot->name, desc->name.path);
    if (status == TSR_OK) {
        const tsr_store_desc seen = seen_as(&found.desc, desc);
        const open_dataset d = {spot, object, &seen, NULL};
        c->dtype = desc->element.dtype;
        status = collect_matrices(c, &d, desc);
    }
    if (object >= 0) H5Oclose(object);
    return status;
}

tsr_status tsr_hdf5_collect(const tsr_store_desc *desc, tsr_pieces **pieces) {
    collector c = {.root = desc->hdf5.root};
    tsr_h5_spot spot;
    char why[600];
    tsr_h5_enter();
    tsr_status status = tsr_h5_spot_open(desc->name.file, "", &spot);
    if (status == TSR_OK) {
        status = collect_top(&c, &spot, desc);
        if (status != TSR_OK) {
            snprintf(why, sizeof why, "%s", tsr_message());
            status = tsr_fail(status, "'%s:%s' cannot be read: %s", desc->name.file, desc->name.path, why);
        }
        status = tsr_h5_spot_close(&spot, status);
    }
    tsr_h5_leave();
    free(c.mappings);
    if (c.pieces) c.pieces->count = c.count;
    if (status == TSR_OK && !c.pieces) status = tsr_pieces_make(0, &c.pieces);
    if (status == TSR_OK) *pieces = c.pieces;
    else tsr_pieces_leave(c.pieces);
    return status;
}
