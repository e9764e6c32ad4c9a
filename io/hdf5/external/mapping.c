/* Mappings and segments (mapping.h). */
#include "io/hdf5/external/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/pieces/pieces.h"
#include "io/text/text.h"

#define NOT_A_BLOCK                                                                                                    \
    "it maps points, pieces with gaps or a size without an end, and single blocks are read; copy it into one dataset"

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A dimension of a regular selection as one run of elements. */
static bool one_run(const hsize_t start, const hsize_t stride, const hsize_t count, const hsize_t block, int64_t *from,
                    int64_t *many) {
    if (count == H5S_UNLIMITED || block == H5S_UNLIMITED || count == 0 || block == 0) return false;
    if (count > 1 && stride != block) return false;
    int64_t all;
    if (start > INT64_MAX || __builtin_mul_overflow((int64_t)count, (int64_t)block, &all) || all <= 0) return false;
    if ((int64_t)start > INT64_MAX - all) return false;
    *from = (int64_t)start;
    *many = all;
    return true;
}

static bool read_block(hid_t space, tsr_h5_block *block) {
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], length[H5S_MAX_RANK];
    const H5S_sel_type type = H5Sget_select_type(space);
    block->all = type == H5S_SEL_ALL; /* a file keeps no size with it */
    if (block->all) return true;
    if (type != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0) return false;
    const int dimensions = H5Sget_simple_extent_ndims(space);
    if (dimensions < 1 || dimensions > TSR_DIMENSIONS_MAX ||
        H5Sget_regular_hyperslab(space, start, stride, count, length) < 0)
        return false;
    block->dimensions = dimensions;
    for (int d = 0; d < dimensions; d++)
        if (!one_run(start[d], stride[d], count[d], length[d], &block->start[d], &block->count[d])) return false;
    return true;
}

/* A dimension of one element, which the dataset lacks. */
static void insert(tsr_h5_block *block, int at) {
    for (int d = block->dimensions; d > at; d--) {
        block->start[d] = block->start[d - 1];
        block->count[d] = block->count[d - 1];
    }
    block->start[at] = 0;
    block->count[at] = 1;
    block->dimensions++;
}

bool tsr_h5_block_in(tsr_h5_block *block, const tsr_store_desc *desc) {
    const int leads = tsr_store_lead_count(desc);
    if (!block->all) {
        if (block->dimensions != desc->dataset_dimensions) return false;
        if (desc->rows_missing) insert(block, leads);
        if (desc->cols_missing) insert(block, leads + 1);
        return true;
    }
    block->dimensions = leads + 2;
    memset(block->start, 0, sizeof block->start);
    memcpy(block->count, desc->lead_size, (size_t)leads * sizeof *block->count);
    block->count[leads] = desc->dataset_rows;
    block->count[leads + 1] = desc->dataset_cols;
    return true;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* "%%" is a percent sign; any other one counts blocks. */
static bool plain_name(char *name) {
    char *to = name;
    for (const char *at = name; *at; at++) {
        if (*at == '%' && *++at != '%') return false;
        *to++ = *at;
    }
    *to = '\0';
    return true;
}

static const char *read_names(hid_t properties, size_t number, tsr_h5_mapping *mapping) {
    char path[TSR_PATH_CHARS];
    const ssize_t file = H5Pget_virtual_filename(properties, number, mapping->file, sizeof mapping->file);
    const ssize_t chars = H5Pget_virtual_dsetname(properties, number, path, sizeof path);
    if (file < 0 || chars < 0) return "its sources have no names: the file is damaged, copy it again";
    if (file >= (ssize_t)sizeof mapping->file || chars + 1 >= (ssize_t)sizeof path)
        return "the name of a source is too long; use shorter ones";
    if (!plain_name(mapping->file) || !plain_name(path))
        return "the names of its sources count blocks (%b), which is not read; copy it into one dataset";
    snprintf(mapping->path, sizeof mapping->path, "%s%.*s", *path == '/' ? "" : "/", (int)sizeof path - 2, path);
    return NULL;
}

const char *tsr_h5_mapping_read(hid_t properties, size_t number, tsr_h5_mapping *mapping) {
    const char *wrong = read_names(properties, number, mapping);
    const hid_t shown = H5Pget_virtual_vspace(properties, number);
    const hid_t source = H5Pget_virtual_srcspace(properties, number);
    const bool blocks =
        shown >= 0 && source >= 0 && read_block(shown, &mapping->shown) && read_block(source, &mapping->source);
    if (source >= 0) H5Sclose(source);
    if (shown >= 0) H5Sclose(shown);
    return wrong || blocks ? wrong : NOT_A_BLOCK;
}

/* ---- what a part shows ----------------------------------------------------------------------- */

/* For each dimension of the source the one of the virtual dataset that runs along it, -1 where it has one element:
 * those with more follow each other in both. */
static bool match(const tsr_h5_mapping *m, int of_source[H5S_MAX_RANK + 2]) {
    int v = 0;
    for (int s = 0; s < H5S_MAX_RANK + 2; s++) of_source[s] = -1;
    for (int s = 0; s < m->source.dimensions; s++) {
        if (m->source.count[s] == 1) continue;
        while (v < m->shown.dimensions && m->shown.count[v] == 1) v++;
        if (v == m->shown.dimensions || m->shown.count[v] != m->source.count[s]) return false;
        of_source[s] = v++;
    }
    while (v < m->shown.dimensions && m->shown.count[v] == 1) v++;
    return v == m->shown.dimensions;
}

/* Cuts [*from, *from + *many) to the block's dimension. */
static void cut(const tsr_h5_block *block, int dimension, int64_t *from, int64_t *many) {
    const int64_t begin = tsr_max(*from, block->start[dimension]);
    const int64_t end = tsr_min(*from + *many, block->start[dimension] + block->count[dimension]);
    *from = begin;
    *many = tsr_max(0, end - begin);
}

static int dimension_of(const int *of_source, int dimensions, int wanted) {
    for (int s = 0; s < dimensions; s++)
        if (of_source[s] == wanted) return s;
    return -1;
}

/* Whether a side of the part runs along this dimension of the source, or has one element. */
static bool runs_along(int64_t side, int dimension, int wanted) {
    return side == 1 || dimension == -1 || dimension == wanted;
}

void tsr_h5_mapping_cut(const tsr_h5_mapping *m, const int64_t *lead, tsr_rect *part) {
    const int rows = m->shown.dimensions - 2;
    for (int d = 0; d < rows; d++) {
        int64_t at = lead[d], one = 1;
        cut(&m->shown, d, &at, &one);
        if (one == 0) part->rows = 0;
    }
    cut(&m->shown, rows, &part->row, &part->rows);
    cut(&m->shown, rows + 1, &part->col, &part->cols);
}

const char *tsr_h5_mapping_show(const tsr_h5_mapping *m, const int64_t *lead, tsr_rect part, tsr_h5_shown *shown) {
    const int rows = m->shown.dimensions - 2, cols = rows + 1;
    const int last = m->source.dimensions - 1;
    int of_source[H5S_MAX_RANK + 2];
    int64_t at[H5S_MAX_RANK + 2] = {0}, from[H5S_MAX_RANK + 2] = {0};
    if (!match(m, of_source)) return "it maps blocks to sources of another shape; copy it into one dataset";
    for (int d = 0; d < rows; d++) at[d] = lead[d];
    at[rows] = part.row;
    at[cols] = part.col;
    for (int s = 0; s <= last; s++) {
        const int v = of_source[s];
        from[s] = m->source.start[s] + (v < 0 ? 0 : at[v] - m->shown.start[v]);
        if (s < tsr_min(last - 1, TSR_LEADS_MAX)) shown->lead[s] = from[s];
    }
    const int along_rows = dimension_of(of_source, last + 1, rows),
              along_cols = dimension_of(of_source, last + 1, cols);
    const bool plain = runs_along(part.rows, along_rows, last - 1) && runs_along(part.cols, along_cols, last);
    shown->turned = !plain;
    shown->rect = plain ? (tsr_rect){from[last - 1], from[last], part.rows, part.cols}
                        : (tsr_rect){from[last - 1], from[last], part.cols, part.rows};
    if (plain || (runs_along(part.rows, along_rows, last) && runs_along(part.cols, along_cols, last - 1))) return NULL;
    return "rows of it lie along other dimensions of its sources than the last two; copy it into one dataset";
}

/* ---- external storage ------------------------------------------------------------------------ */

const char *tsr_h5_segment_read(hid_t properties, unsigned number, tsr_h5_segment *segment) {
    off_t offset = 0;
    hsize_t bytes = 0;
    segment->file[sizeof segment->file - 1] = '\0';
    if (H5Pget_external(properties, number, sizeof segment->file, segment->file, &offset, &bytes) < 0 || offset < 0)
        return "the list of its external files is damaged; copy it again";
    if (segment->file[sizeof segment->file - 1]) return "the name of an external file is too long; use a shorter one";
    segment->offset = (int64_t)offset;
    segment->bytes = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    return NULL;
}

/* ---- what it reads, for people --------------------------------------------------------------- */

#define OTHERS " and others"

/* Adds a name that is not there yet, while there is room. */
static void add_name(char *text, size_t chars, const char *name, bool *others) {
    char quoted[TSR_FILE_CHARS + 8], clean[TSR_FILE_CHARS];
    snprintf(quoted, sizeof quoted, "'%s'", tsr_printable(name, clean, sizeof clean));
    if (strstr(text, quoted)) return;
    if (strlen(text) + strlen(quoted) + sizeof OTHERS + 2 > chars) *others = true;
    else tsr_text_append(text, chars, "%s%s", *text ? ", " : "", quoted);
}

static const char *virtual_places(hid_t properties, tsr_store_desc *desc, bool *outside, bool *others) {
    tsr_h5_mapping *mapping = malloc(sizeof *mapping); /* some kilobytes */
    const char *refused = mapping ? NULL : "no memory for its mappings; free some";
    size_t count = 0;
    if (mapping && H5Pget_virtual_count(properties, &count) < 0) refused = "its mappings are damaged; copy it again";
    for (size_t i = 0; mapping && i < count; i++) {
        mapping->file[0] = '\0';
        const char *wrong = tsr_h5_mapping_read(properties, i, mapping);
        if (!refused) refused = wrong;
        if (strcmp(mapping->file, ".") == 0) continue;
        *outside = true;
        add_name(desc->hdf5.reads, sizeof desc->hdf5.reads, mapping->file, others);
    }
    free(mapping);
    desc->hdf5.places = (int64_t)count;
    return refused;
}

static const char *stored_places(hid_t properties, tsr_store_desc *desc, bool *outside, bool *others) {
    tsr_h5_segment segment;
    const char *refused = NULL;
    const int count = H5Pget_external_count(properties);
    for (int i = 0; i < count; i++) {
        const char *wrong = tsr_h5_segment_read(properties, (unsigned)i, &segment);
        if (!refused) refused = wrong;
        if (!wrong) add_name(desc->hdf5.reads, sizeof desc->hdf5.reads, segment.file, others);
    }
    *outside = true;
    desc->hdf5.places = count;
    return refused;
}

void tsr_h5_places(hid_t properties, tsr_store_desc *desc, bool *outside, const char **refused) {
    const bool is_virtual = desc->hdf5.layout == TSR_LAYOUT_VIRTUAL;
    bool others = false;
    desc->hdf5.scattered = true;
    *outside = false;
    *refused = is_virtual ? virtual_places(properties, desc, outside, &others)
                          : stored_places(properties, desc, outside, &others);
    if (others) tsr_text_append(desc->hdf5.reads, sizeof desc->hdf5.reads, OTHERS);
    if (!*refused && desc->hdf5.places > TSR_PIECES_MAX)
        *refused = "it lies in more places than a list of them may have (16384); copy it into one dataset";
}
