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

#define OCTAVE_TYPE_CHARS 64

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool ends(const char *text, const char *with) {
    size_t chars = strlen(text), end = strlen(with);
    return chars >= end && strcmp(text + chars - end, with) == 0;
}

/* Indexes of pandas and PyTables beside the values they belong to. */
static bool is_pandas_index(const char *name) {
    return begins(name, "axis") || strcmp(name, "index") == 0 || begins(name, "index_l") || strstr(name, "_items");
}

/* What an Octave variable is, as the dataset beside its value says: "matrix"; "" where the group is no variable. Links
 * out of the file are not followed. */
static void octave_type(hid_t file, const char *group, char text[OCTAVE_TYPE_CHARS]) {
    char path[TSR_PATH_CHARS], found[TSR_PATH_CHARS];
    hid_t dataset = -1;
    hid_t type = -1;
    hid_t space = -1;
    text[0] = '\0';
    if (!*group || H5Aexists_by_name(file, group, OCTAVE, H5P_DEFAULT) <= 0) return;
    if (snprintf(path, sizeof path, "%s/type", group) >= (int)sizeof path) return;
    if (tsr_h5_resolve(file, "", path, found) != TSR_OK || (dataset = H5Dopen2(file, found, H5P_DEFAULT)) < 0)
        goto done;
    if ((type = H5Dget_type(dataset)) < 0 || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
        goto done;
    if ((space = H5Dget_space(dataset)) < 0 || H5Sget_simple_extent_npoints(space) != 1) goto done;
    if (H5Tget_size(type) >= OCTAVE_TYPE_CHARS || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0)
        text[0] = '\0';
    text[OCTAVE_TYPE_CHARS - 1] = '\0';
done:
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (dataset >= 0) H5Dclose(dataset);
}

/* The group of an Octave variable whose value is, or holds, what is at `path`: its part before "/value" and what may
 * follow. False where there is no such. */
static bool octave_variable(const char *path, bool inside, char group[TSR_PATH_CHARS]) {
    snprintf(group, TSR_PATH_CHARS, "%s", path);
    char *last = strrchr(group, '/');
    if (inside && last) *last = '\0';
    if (!ends(group, "/value")) return false;
    group[strlen(group) - strlen("/value")] = '\0';
    return *group != '\0';
}

/* Parts of Octave's sparse matrices, and the sizes of its cells. */
static bool is_octave_part(hid_t file, const char *path) {
    char group[TSR_PATH_CHARS], type[OCTAVE_TYPE_CHARS];
    if (!octave_variable(path, true, group)) return false;
    octave_type(file, group, type);
    return begins(type, "sparse") || (strcmp(type, "cell") == 0 && ends(path, "/dims"));
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
    if (is_sparse(file, parent) || is_octave_part(file, path)) return true;
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

bool tsr_h5_is_octave(hid_t dataset, const char *path, const char **other) {
    char group[TSR_PATH_CHARS], type[OCTAVE_TYPE_CHARS];
    *other = NULL;
    if (!octave_variable(path, false, group)) return false;
    const hid_t file = H5Iget_file_id(dataset);
    const bool octave = file >= 0 && H5Aexists_by_name(file, group, OCTAVE, H5P_DEFAULT) > 0;
    if (octave) {
        octave_type(file, group, type);
        if (H5Aexists_by_name(file, group, "OCTAVE_EMPTY_MATRIX", H5P_DEFAULT) > 0)
            *other = "it is the shape of an empty Octave matrix, which has no elements";
        else if (strcmp(type, "string") == 0 || strcmp(type, "sq_string") == 0)
            *other = "it is text of Octave, not numbers; save double(...) of it";
        else if (ends(type, "range"))
            *other = "it is a range of Octave, whose elements are not stored; save [...] of it";
    }
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
    char type[OCTAVE_TYPE_CHARS];
    const hid_t whole = H5Iget_file_id(group);
    type[0] = '\0';
    if (whole >= 0) {
        octave_type(whole, path, type);
        H5Fclose(whole);
    }
    if (begins(type, "sparse") || begins(type, "cell") || strstr(type, "struct"))
        return tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is a %s of Octave, not a dataset; save %s", file, path, type,
                        begins(type, "sparse") ? "full(...) of it" : "the matrix in it as a variable");
    if (H5Aexists(group, OCTAVE) > 0 && H5Lexists(group, "value", H5P_DEFAULT) > 0 &&
        snprintf(inner, TSR_PATH_CHARS, "%s/value", path) < TSR_PATH_CHARS)
        return TSR_OK;
    tsr_h5_text_of(group, "pandas_type", type, sizeof type);
    if (*type) return pandas_values(group, file, path, type, inner);
    if (H5Aexists(group, "MATLAB_sparse") > 0)
        return tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is a sparse matrix of MATLAB, not a dataset; save full(...) of it",
                        file, path);
    const char *what = tsr_h5_is_record(group) ? "the record of a run" : "a group";
    return tsr_fail(TSR_ERR_FORMAT, "'%s': '%s' is %s, not a dataset; name a dataset (tessera info %s lists them)",
                    file, *path ? path : "/", what, file);
}
