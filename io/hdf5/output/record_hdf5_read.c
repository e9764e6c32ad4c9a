/* Records in HDF5 files (record_read.h): the attributes of a group are the run's fields, the columns of its table
 * `ranks` each rank's. */
#include <stdlib.h>
#include <string.h>

#include "io/describe/describe_wire.h"
#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/output/record_hdf5.h"
#include "io/record/record_read.h"

/* The attributes are those of every version. */
bool tsr_h5_is_record(hid_t object) {
    return H5Iget_type(object) == H5I_GROUP && H5Aexists(object, "command") > 0 &&
           H5Aexists(object, "rank_count") > 0 && H5Lexists(object, "ranks", H5P_DEFAULT) > 0;
}

/* ---- the run: attributes --------------------------------------------------------------------- */

static void find_number(hid_t attribute, const char *name, tsr_found_fields *to) {
    int64_t integer = 0;
    double real = 0;
    if (H5Aread(attribute, H5T_NATIVE_INT64, &integer) >= 0 && H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0)
        tsr_found_number(to, name, integer, real);
}

/* H5Aiterate2 callback: attributes of one element that are numbers or text. */
static herr_t find_attribute(hid_t group, const char *name, const H5A_info_t *info, void *context) {
    (void)info;
    hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    hid_t type = attribute >= 0 ? H5Aget_type(attribute) : -1;
    hid_t space = attribute >= 0 ? H5Aget_space(attribute) : -1;
    if (type >= 0 && space >= 0 && H5Sget_simple_extent_npoints(space) == 1) {
        H5T_class_t class = H5Tget_class(type);
        char *text = class == H5T_STRING ? tsr_h5_attribute_text(attribute, type) : NULL;
        if (text) tsr_found_text(context, name, text);
        else if (class == H5T_INTEGER || class == H5T_FLOAT) find_number(attribute, name, context);
        free(text);
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return 0;
}

/* ---- the ranks: a table ---------------------------------------------------------------------- */

/* One column of one row: 64-bit numbers as they are in memory, or text of fixed length. */
static void find_column(hid_t type, unsigned column, const char *row, tsr_found_fields *to) {
    char *name = H5Tget_member_name(type, column);
    hid_t member = H5Tget_member_type(type, column);
    const char *at = row + H5Tget_member_offset(type, column);
    size_t bytes = member >= 0 ? H5Tget_size(member) : 0;
    H5T_class_t class = member >= 0 ? H5Tget_class(member) : H5T_NO_CLASS;
    if (name && class == H5T_INTEGER && bytes == sizeof(int64_t)) {
        int64_t value;
        memcpy(&value, at, sizeof value);
        tsr_found_number(to, name, value, (double)value);
    } else if (name && class == H5T_FLOAT && bytes == sizeof(double)) {
        double value;
        memcpy(&value, at, sizeof value);
        tsr_found_number(to, name, (int64_t)0, value);
    } else if (name && class == H5T_STRING && H5Tis_variable_str(member) == 0) {
        char *text = strndup(at, bytes);
        if (text) tsr_found_text(to, name, text);
        else to->failed = true;
        free(text);
    }
    if (member >= 0) H5Tclose(member);
    if (name) H5free_memory(name);
}

typedef struct {
    hid_t table, stored, native;
    hid_t space;
    char *rows;
    tsr_found_fields *ranks; /* count of them */
    int count;
} table_reader;

static bool read_rows(table_reader *t, hid_t group) {
    hssize_t rows = -1;
    if ((t->table = H5Dopen2(group, "ranks", H5P_DEFAULT)) < 0 || (t->stored = H5Dget_type(t->table)) < 0) return false;
    if (H5Tget_class(t->stored) != H5T_COMPOUND || H5Tdetect_class(t->stored, H5T_VLEN) > 0) return false;
    if ((t->native = H5Tget_native_type(t->stored, H5T_DIR_ASCEND)) < 0 || (t->space = H5Dget_space(t->table)) < 0)
        return false;
    if ((rows = H5Sget_simple_extent_npoints(t->space)) < 0 || rows > INT32_MAX / 2) return false;
    size_t bytes = H5Tget_size(t->native);
    t->rows = calloc((size_t)rows + 1, bytes);
    t->ranks = calloc((size_t)rows + 1, sizeof *t->ranks);
    if (!t->rows || !t->ranks || (rows > 0 && H5Dread(t->table, t->native, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->rows) < 0))
        return false;
    int columns = H5Tget_nmembers(t->native);
    t->count = (int)rows;
    for (int i = 0; i < t->count; i++)
        for (int column = 0; column < columns; column++)
            find_column(t->native, (unsigned)column, t->rows + (size_t)i * bytes, &t->ranks[i]);
    return true;
}

static void close_table(table_reader *t) {
    for (int i = 0; i < t->count; i++) tsr_found_clear(&t->ranks[i]);
    free(t->ranks);
    free(t->rows);
    if (t->space >= 0) H5Sclose(t->space);
    if (t->native >= 0) H5Tclose(t->native);
    if (t->stored >= 0) H5Tclose(t->stored);
    if (t->table >= 0) H5Dclose(t->table);
}

static tsr_status read_group(const char *file, hid_t group, const char *path, tsr_kept_record *record) {
    tsr_found_fields run = {0};
    table_reader table = {.table = -1, .stored = -1, .native = -1, .space = -1};
    tsr_status status = TSR_OK;
    if (H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, NULL, find_attribute, &run) < 0)
        status = tsr_h5_fail(TSR_ERR_FORMAT,
                             "'%s': cannot read the record '%s'; the file may be damaged: copy it again", file, path);
    else if (!read_rows(&table, group))
        status = tsr_h5_fail(TSR_ERR_FORMAT,
                             "'%s': cannot read the table of ranks in '%s'; the file may be damaged: copy it again",
                             file, path);
    else status = tsr_record_take(&run, table.ranks, table.count, record);
    close_table(&table);
    tsr_found_clear(&run);
    return status;
}

tsr_status tsr_record_read_hdf5(const char *file, const char *path, tsr_kept_record *record) {
    char resolved[TSR_PATH_CHARS];
    hid_t id = -1, group = -1;
    TSR_TRY(tsr_h5_probe(file, NULL, NULL));
    tsr_h5_enter();
    tsr_status status = tsr_h5_open_read(file, &id);
    if (status == TSR_OK) status = tsr_h5_resolve(id, file, path, resolved);
    if (status == TSR_OK) {
        group = H5Oopen(id, resolved, H5P_DEFAULT);
        if (group >= 0 && tsr_h5_is_record(group)) status = read_group(file, group, resolved, record);
        else
            status = tsr_fail(TSR_ERR_NOT_FOUND,
                              "'%s': '%s' is not the record of a run; tessera info %s lists what is there", file, path,
                              file);
    }
    if (group >= 0) H5Oclose(group);
    if (id >= 0) H5Fclose(id);
    tsr_h5_leave();
    return status;
}

/* ---- all records of a file ------------------------------------------------------------------- */

typedef struct {
    hid_t file;
    void (*each)(void *context, const char *path);
    void *context;
} visitor;

/* H5Lvisit callback: hard links to groups that are called as a run calls its record. */
static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    static const char ending[] = ".run";
    const visitor *v = context;
    char path[TSR_PATH_CHARS];
    int chars = snprintf(path, sizeof path, "/%s", name);
    (void)group;
    tsr_describe_goes_on();
    if (info->type != H5L_TYPE_HARD || chars >= (int)sizeof path || chars < (int)sizeof ending ||
        strcmp(path + chars + 1 - (int)sizeof ending, ending) != 0)
        return 0;
    hid_t object = H5Oopen(v->file, path, H5P_DEFAULT);
    if (object < 0) return 0;
    if (tsr_h5_is_record(object)) v->each(v->context, path);
    H5Oclose(object);
    return 0;
}

tsr_status tsr_record_list_hdf5(const char *file, void (*each)(void *context, const char *path), void *context) {
    visitor v = {.file = -1, .each = each, .context = context};
    TSR_TRY(tsr_h5_probe(file, NULL, NULL));
    tsr_h5_enter();
    tsr_status status = tsr_h5_open_read(file, &v.file);
    if (status == TSR_OK && H5Lvisit(v.file, H5_INDEX_NAME, H5_ITER_INC, visit, &v) < 0)
        status = tsr_h5_fail(TSR_ERR_FORMAT, "'%s': cannot list its groups; check it with h5ls", file);
    if (v.file >= 0) H5Fclose(v.file);
    tsr_h5_leave();
    return status;
}
