/* What other programs put around their matrices: Octave a group with a type and a value, pandas an index and names
 * of columns, MATLAB the insides of cells, Tessera the records of its runs. A sparse matrix has vectors for parts. The
 * matrix is offered, what only serves it is not. */
#include <stdio.h>
#include <string.h>

#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/hdf5_foreign.h"
#include "io/hdf5/output/record_hdf5.h"
#include "io/name.h"

#define OCTAVE "OCTAVE_NEW_FORMAT" /* an attribute of each of its variables, which are groups */

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool ends(const char *text, const char *with) {
    size_t chars = strlen(text), end = strlen(with);
    return chars >= end && strcmp(text + chars - end, with) == 0;
}

/* Indexes of pandas and PyTables beside the values they belong to. */
static bool is_pandas_index(const char *name) {
    return begins(name, "axis") || strcmp(name, "index") == 0 || begins(name, "index_l") || strstr(name, "_items");
}

/* Values, rows and columns of a sparse matrix: MATLAB's, or SciPy's as AnnData writes it. */
static bool is_sparse(hid_t file, const char *group) {
    char type[16] = "";
    if (H5Aexists_by_name(file, group, "MATLAB_sparse", H5P_DEFAULT) > 0) return true;
    if (H5Aexists_by_name(file, group, "encoding-type", H5P_DEFAULT) <= 0) return false;
    const hid_t object = H5Oopen(file, group, H5P_DEFAULT);
    if (object < 0) return false;
    tsr_h5_text_of(object, "encoding-type", type, sizeof type);
    H5Oclose(object);
    return strcmp(type, "csr_matrix") == 0 || strcmp(type, "csc_matrix") == 0;
}

bool tsr_h5_is_internal(hid_t file, const char *path) {
    char parent[TSR_PATH_CHARS], type[16];
    const char *name = strrchr(path, '/') + 1;
    if (begins(path, "/#refs#") || begins(path, "/#subsystem#") || strstr(path, "/_i_table/")) return true;
    if (name - path < 2) return false; /* in the root */
    snprintf(parent, sizeof parent, "%.*s", (int)(name - path - 1), path);
    if (strcmp(name, "type") == 0 && H5Aexists_by_name(file, parent, OCTAVE, H5P_DEFAULT) > 0) return true;
    if (is_sparse(file, parent)) return true;
    bool table = strcmp(name, "ranks") == 0;
    if (!table && !is_pandas_index(name)) return false;
    hid_t group = H5Oopen(file, parent, H5P_DEFAULT);
    if (group < 0) return false;
    bool internal = table && tsr_h5_is_record(group);
    if (!table) {
        tsr_h5_text_of(group, "pandas_type", type, sizeof type);
        internal = *type != '\0';
    }
    H5Oclose(group);
    return internal;
}

bool tsr_h5_is_octave(hid_t dataset, const char *path) {
    char parent[TSR_PATH_CHARS];
    if (!ends(path, "/value")) return false;
    snprintf(parent, sizeof parent, "%.*s", (int)(strlen(path) - strlen("/value")), path);
    hid_t file = H5Iget_file_id(dataset);
    bool octave = file >= 0 && *parent && H5Aexists_by_name(file, parent, OCTAVE, H5P_DEFAULT) > 0;
    if (file >= 0) H5Fclose(file);
    return octave;
}

static int64_t number_of(hid_t object, const char *name) {
    int64_t value = 0;
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute >= 0 && H5Aread(attribute, H5T_NATIVE_INT64, &value) < 0) value = 0;
    if (attribute >= 0) H5Aclose(attribute);
    return value;
}

/* A frame of pandas: its columns of one type are one dataset. */
static tsr_status pandas_values(hid_t group, const char *file, const char *path, const char *type, char *inner) {
    int64_t blocks = number_of(group, "nblocks");
    if (strcmp(type, "frame") != 0)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s': '%s' is a %s of pandas, which is no matrix: write a frame with format='fixed' (as "
                        "HDFStore.put does), or use h5py",
                        file, path, strcmp(type, "frame_table") == 0 ? "table of records" : type);
    if (blocks != 1)
        return tsr_fail(TSR_ERR_USAGE,
                        "'%s': '%s' is a frame of pandas whose columns have %lld types, each in a dataset of its own: "
                        "name one, such as %s/block0_values "
                        "(tessera info %s lists them)",
                        file, path, (long long)blocks, path, file);
    if (snprintf(inner, TSR_PATH_CHARS, "%s/block0_values", path) < TSR_PATH_CHARS) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "'%s': the path of '%s' is too long", file, path);
}

tsr_status tsr_h5_matrix_of(hid_t group, const char *file, const char *path, char *inner) {
    char type[32];
    if (H5Aexists(group, OCTAVE) > 0 && H5Lexists(group, "value", H5P_DEFAULT) > 0 &&
        snprintf(inner, TSR_PATH_CHARS, "%s/value", path) < TSR_PATH_CHARS)
        return TSR_OK;
    tsr_h5_text_of(group, "pandas_type", type, sizeof type);
    if (*type) return pandas_values(group, file, path, type, inner);
    const char *what = tsr_h5_is_record(group)                 ? "the record of a run"
                       : H5Aexists(group, "MATLAB_sparse") > 0 ? "a sparse matrix of MATLAB; save full(...) of it"
                                                               : "a group";
    return tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is %s, not a dataset; name a dataset (tessera info %s lists them)",
                    file, *path ? path : "/", what, file);
}
