/* The record of a run as an HDF5 group: the run's fields as attributes, one row a rank in the table `ranks`. Called
 * with the lock of hdf5_library.h taken. */
#include "io/hdf5/output/record_hdf5.h"

#include <stdlib.h>
#include <string.h>

#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/record/record_fields.h"
#include "io/text/json.h"

/* ---- the run: attributes --------------------------------------------------------------------- */

typedef struct {
    hid_t group;
    tsr_status status;
} attribute_sink;

static void attribute_integer(void *to, const char *name, int64_t value) {
    attribute_sink *s = to;
    if (s->status == TSR_OK) s->status = tsr_h5_write_number(s->group, name, H5T_NATIVE_INT64, &value);
}

static void attribute_real(void *to, const char *name, double value) {
    attribute_sink *s = to;
    if (s->status == TSR_OK) s->status = tsr_h5_write_number(s->group, name, H5T_NATIVE_DOUBLE, &value);
}

static void attribute_text(void *to, const char *name, const char *value, size_t chars) {
    attribute_sink *s = to;
    (void)chars;
    if (s->status == TSR_OK) s->status = tsr_h5_write_text(s->group, name, value);
}

static const tsr_field_sink attributes = {attribute_integer, attribute_real, attribute_text};

/* ---- the ranks: a table ---------------------------------------------------------------------- */

/* First pass: how large a row is (type < 0), or its columns (type >= 0). Second pass: the values of one row. */
typedef struct {
    hid_t type;
    char *row;     /* where the values go; NULL in the first pass */
    size_t offset; /* of the next column */
    bool failed;
} row_sink;

static void add_column(row_sink *s, const char *name, hid_t type, const void *value, size_t bytes) {
    if (s->row) memcpy(s->row + s->offset, value, bytes);
    if (s->type >= 0 && H5Tinsert(s->type, name, s->offset, type) < 0) s->failed = true;
    s->offset += bytes;
}

static void row_integer(void *to, const char *name, int64_t value) {
    add_column(to, name, H5T_NATIVE_INT64, &value, sizeof value);
}

static void row_real(void *to, const char *name, double value) {
    add_column(to, name, H5T_NATIVE_DOUBLE, &value, sizeof value);
}

static void row_text(void *to, const char *name, const char *value, size_t chars) {
    char padded[TSR_RANK_TEXT_CHARS] = "";
    row_sink *s = to;
    size_t used = strnlen(value, chars);
    memcpy(padded, value, used);
    hid_t type = s->type >= 0 ? H5Tcopy(H5T_C_S1) : -1;
    if (type >= 0 && (H5Tset_size(type, chars) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 ||
                      H5Tset_cset(type, H5T_CSET_UTF8) < 0))
        s->failed = true;
    add_column(s, name, type, padded, chars);
    if (type >= 0) H5Tclose(type);
}

static const tsr_field_sink columns = {row_integer, row_real, row_text};

static size_t row_bytes(void) {
    static const tsr_rank_record none;
    row_sink size = {.type = -1};
    tsr_rank_record_fields(&none, &columns, &size);
    return size.offset;
}

static hid_t row_type(size_t bytes) {
    static const tsr_rank_record none;
    row_sink sink = {.type = H5Tcreate(H5T_COMPOUND, bytes)};
    if (sink.type < 0) return -1;
    tsr_rank_record_fields(&none, &columns, &sink);
    if (!sink.failed) return sink.type;
    H5Tclose(sink.type);
    return -1;
}

static tsr_status write_table(const tsr_run_record *record, hid_t group) {
    hsize_t ranks = (hsize_t)record->ranks;
    size_t bytes = row_bytes();
    char *rows = calloc((size_t)record->ranks + 1, bytes);
    if (!rows) return tsr_fail(TSR_ERR_MEMORY, "no memory for the records of %d ranks", record->ranks);
    for (int i = 0; i < record->ranks; i++) {
        row_sink sink = {.type = -1, .row = rows + (size_t)i * bytes};
        tsr_rank_record_fields(&record->rank_records[i], &columns, &sink);
    }
    bool ok = false;
    hid_t type = row_type(bytes);
    hid_t space = H5Screate_simple(1, &ranks, NULL);
    hid_t table = -1;
    if (type >= 0 && space >= 0) table = H5Dcreate2(group, "ranks", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (table >= 0) ok = H5Dwrite(table, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0;
    tsr_status status = ok ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot write the table of %d ranks", record->ranks);
    if (table >= 0 && H5Dclose(table) < 0 && ok) status = tsr_h5_fail(TSR_ERR_IO, "cannot close the table of ranks");
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    free(rows);
    return status;
}

tsr_status tsr_record_write_hdf5(const tsr_run_record *record, hid_t file, const char *path) {
    attribute_sink sink = {.status = TSR_OK};
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    sink.group = links >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0
                     ? H5Gcreate2(file, path, links, H5P_DEFAULT, H5P_DEFAULT)
                     : -1;
    tsr_status status = sink.group >= 0 ? TSR_OK : tsr_h5_fail(TSR_ERR_IO, "cannot create the group '%s'", path);
    if (links >= 0) H5Pclose(links);
    TSR_TRY(status);
    attribute_integer(&sink, "format", TSR_RECORD_FORMAT);
    tsr_run_record_fields(record, &attributes, &sink);
    status = sink.status == TSR_OK ? write_table(record, sink.group) : sink.status;
    if (H5Gclose(sink.group) < 0 && status == TSR_OK)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot close the group '%s'", path);
    return status;
}
