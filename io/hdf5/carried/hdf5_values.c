/* Values of attributes and scales, and lists of attributes (hdf5_values.h). */
#include "io/hdf5/carried/hdf5_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/hdf5/access/hdf5_type.h"

/* ---- values ---------------------------------------------------------------------------------- */

static hid_t text_type(const tsr_values *v) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    const size_t bytes = v->kind == TSR_VALUES_TEXTS ? H5T_VARIABLE : (size_t)v->element_bytes;
    if (type < 0) return type;
    if (H5Tset_size(type, bytes) >= 0 && H5Tset_cset(type, v->utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII) >= 0 &&
        (v->kind == TSR_VALUES_TEXTS || H5Tset_strpad(type, (H5T_str_t)v->padding) >= 0))
        return type;
    H5Tclose(type);
    return -1;
}

hid_t tsr_h5_values_type(const tsr_values *v) {
    switch (v->kind) {
    case TSR_VALUES_SIGNED:
        return H5Tcopy(v->element_bytes == 1   ? H5T_NATIVE_INT8
                       : v->element_bytes == 2 ? H5T_NATIVE_INT16
                       : v->element_bytes == 4 ? H5T_NATIVE_INT32
                                               : H5T_NATIVE_INT64);
    case TSR_VALUES_UNSIGNED:
        return H5Tcopy(v->element_bytes == 1   ? H5T_NATIVE_UINT8
                       : v->element_bytes == 2 ? H5T_NATIVE_UINT16
                       : v->element_bytes == 4 ? H5T_NATIVE_UINT32
                                               : H5T_NATIVE_UINT64);
    case TSR_VALUES_FLOAT: return H5Tcopy(v->element_bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE);
    case TSR_VALUES_BOOL: return tsr_h5_boolean_type();
    case TSR_VALUES_TEXT:
    case TSR_VALUES_TEXTS: return text_type(v);
    default: return -1;
    }
}

/* Kind and size of the values of a stored type; false for those that are not carried. */
static bool take_type(hid_t stored, tsr_values *v) {
    const size_t bytes = H5Tget_size(stored);
    switch (H5Tget_class(stored)) {
    case H5T_INTEGER:
        v->kind = H5Tget_sign(stored) == H5T_SGN_NONE ? TSR_VALUES_UNSIGNED : TSR_VALUES_SIGNED;
        v->element_bytes = bytes <= 1 ? 1 : bytes <= 2 ? 2 : bytes <= 4 ? 4 : 8;
        return bytes <= 8;
    case H5T_FLOAT:
        v->kind = TSR_VALUES_FLOAT;
        v->element_bytes = bytes <= 4 ? 4 : 8;
        return bytes <= 8;
    case H5T_ENUM:
        v->kind = TSR_VALUES_BOOL;
        v->element_bytes = 1;
        return tsr_h5_is_boolean(stored);
    case H5T_STRING:
        v->kind = H5Tis_variable_str(stored) > 0 ? TSR_VALUES_TEXTS : TSR_VALUES_TEXT;
        v->element_bytes = v->kind == TSR_VALUES_TEXTS ? 0 : (int64_t)bytes;
        v->utf8 = H5Tget_cset(stored) == H5T_CSET_UTF8;
        v->padding = v->kind == TSR_VALUES_TEXTS ? 0 : (int)H5Tget_strpad(stored);
        return v->padding >= 0 && v->padding <= 2;
    default: return false;
    }
}

static herr_t read_source(const tsr_h5_values_at *from, hid_t type, void *to) {
    if (from->attribute >= 0) return H5Aread(from->attribute, type, to);
    return H5Dread(from->dataset, type, from->memory, from->part, H5P_DEFAULT, to);
}

/* Puts texts one behind the other. */
static const char *join_texts(char *const *texts, int64_t count, size_t most, tsr_values *v) {
    size_t bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        bytes += (texts[i] ? strlen(texts[i]) : 0) + 1;
        if (bytes > most) return "it is too large";
    }
    v->data = malloc(bytes + 1);
    if (!v->data) return "no memory";
    for (int64_t i = 0; i < count; i++) {
        const char *text = texts[i] ? texts[i] : "";
        memcpy(v->data + v->bytes, text, strlen(text) + 1);
        v->bytes += (int64_t)strlen(text) + 1;
    }
    return NULL;
}

static const char *read_texts(const tsr_h5_values_at *from, hid_t type, int64_t count, size_t most, tsr_values *v) {
    const hsize_t size = (hsize_t)count;
    char **texts = calloc((size_t)count + 1, sizeof *texts);
    const hid_t space = H5Screate_simple(1, &size, NULL);
    const char *why = "it cannot be read";
    if (texts && space >= 0 && read_source(from, type, texts) >= 0) {
        why = join_texts(texts, count, most, v);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts);
    }
    if (space >= 0) H5Sclose(space);
    free(texts);
    return why;
}

const char *tsr_h5_values_read(const tsr_h5_values_at *from, hid_t stored, size_t most, tsr_values *v) {
    int64_t count, bytes;
    if (!take_type(stored, v)) return "its type is neither numbers nor text";
    if (!tsr_values_count(v, &count) || __builtin_mul_overflow(count, tsr_max(1, v->element_bytes), &bytes) ||
        bytes > (int64_t)most)
        return "it is too large";
    const hid_t type = tsr_h5_values_type(v);
    const char *why = "it cannot be read";
    if (type >= 0 && v->kind == TSR_VALUES_TEXTS) {
        why = read_texts(from, type, count, most, v);
    } else if (type >= 0 && (v->data = calloc((size_t)bytes + 1, 1)) != NULL) {
        v->bytes = bytes;
        if (bytes == 0 || read_source(from, type, v->data) >= 0) why = NULL;
    }
    if (type >= 0) H5Tclose(type);
    if (!why) return NULL;
    free(v->data);
    v->data = NULL;
    v->bytes = 0;
    return why;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Whether HDF5, netCDF, MATLAB or a run writes the attribute itself, or it changes what the numbers mean: C's are
 * others. A scale is carried as it is, and keeps the last. */
static bool is_managed(const char *name, bool of_scale) {
    static const char *const all[] = {
        "CLASS",         "NAME",        "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS",
        "_NCProperties", "_nc3_strict", "H5PATH"};
    static const char *const of_elements[] = {"_FillValue", "missing_value", "scale_factor", "add_offset",
                                              "_Unsigned",  "valid_min",     "valid_max",    "valid_range"};
    static const char *const beginnings[] = {"_Netcdf4", "MATLAB_", "tessera_"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, all[i]) == 0) return true;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) return true;
    for (size_t i = 0; !of_scale && i < sizeof of_elements / sizeof *of_elements; i++)
        if (strcmp(name, of_elements[i]) == 0) return true;
    return false;
}

/* False for what has no shape that is carried. */
static bool take_shape(hid_t space, tsr_values *v) {
    hsize_t size[H5S_MAX_RANK];
    const H5S_class_t class = H5Sget_simple_extent_type(space);
    v->dimensions = class == H5S_NULL ? -1 : 0;
    if (class != H5S_SIMPLE) return class == H5S_NULL || class == H5S_SCALAR;
    v->dimensions = H5Sget_simple_extent_dims(space, size, NULL);
    if (v->dimensions < 1 || v->dimensions > TSR_VALUES_DIMENSIONS_MAX) return false;
    for (int d = 0; d < v->dimensions; d++) v->size[d] = size[d] > INT64_MAX ? INT64_MAX : (int64_t)size[d];
    return true;
}

typedef struct {
    tsr_carried *to;
    tsr_carried_attributes *list;
    const char *scale; /* whose attributes these are, NULL: the dataset's own */
} attribute_visit;

/* NULL, or why it is left out; "": without a word. */
static const char *read_attribute(hid_t attribute, tsr_values *v) {
    const tsr_h5_values_at from = {.attribute = attribute, .dataset = -1};
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    const char *why = "it cannot be read";
    if (type >= 0 && space >= 0) {
        if (H5Tdetect_class(type, H5T_REFERENCE) > 0) why = "";
        else if (!take_shape(space, v)) why = "it has more than 8 dimensions";
        else why = tsr_h5_values_read(&from, type, TSR_CARRIED_ATTRIBUTE_BYTES, v);
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return why;
}

/* H5Aiterate2 callback. */
static herr_t visit_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context) {
    attribute_visit *v = context;
    tsr_values values = {.data = NULL};
    tsr_carried_attribute *one = NULL;
    (void)info;
    if (is_managed(name, v->scale != NULL)) return 0;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    const char *why = attribute >= 0 ? read_attribute(attribute, &values) : "it cannot be read";
    if (attribute >= 0) H5Aclose(attribute);
    if (!why && strlen(name) >= TSR_CARRIED_NAME_CHARS) why = "its name is too long";
    if (!why && v->list->count == TSR_CARRIED_ATTRIBUTES_MAX) why = "there are too many";
    if (!why && !(one = tsr_carried_add(v->list))) why = "no memory";
    if (one) {
        snprintf(one->name, sizeof one->name, "%s", name);
        one->values = values;
        return 0;
    }
    free(values.data);
    if (*why)
        tsr_carried_note(v->to, "the attribute '%.100s'%s%.100s%s is left out: %s", name,
                         v->scale ? " of its scale '" : "", v->scale ? v->scale : "", v->scale ? "'" : "", why);
    return v->list->count == TSR_CARRIED_ATTRIBUTES_MAX;
}

void tsr_h5_attributes_read(hid_t object, const char *scale, tsr_carried_attributes *list, tsr_carried *to) {
    attribute_visit visit = {to, list, scale};
    if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_attribute, &visit) < 0)
        tsr_carried_note(to, "attributes are left out: HDF5 cannot list them");
}

/* ---- written --------------------------------------------------------------------------------- */

/* The texts as HDF5 takes them; the caller frees the list. */
static const char **text_list(const tsr_values *v, int64_t count) {
    const char **list = calloc((size_t)count + 1, sizeof *list);
    const char *at = v->data;
    for (int64_t i = 0; list && i < count; i++, at += strlen(at) + 1) list[i] = at;
    return list;
}

static hid_t shape_of(const tsr_values *v) {
    hsize_t size[TSR_VALUES_DIMENSIONS_MAX];
    for (int d = 0; d < v->dimensions; d++) size[d] = (hsize_t)v->size[d];
    if (v->dimensions < 1) return H5Screate(v->dimensions < 0 ? H5S_NULL : H5S_SCALAR);
    return H5Screate_simple(v->dimensions, size, NULL);
}

bool tsr_h5_values_write(const tsr_h5_values_at *to, const tsr_values *v) {
    int64_t count;
    bool ok = false;
    if (!tsr_values_count(v, &count)) return false;
    if (count == 0) return true;
    const char **texts = v->kind == TSR_VALUES_TEXTS ? text_list(v, count) : NULL;
    const void *data = v->kind == TSR_VALUES_TEXTS ? (const void *)texts : v->data;
    const hid_t type = tsr_h5_values_type(v);
    if (type >= 0 && data)
        ok = (to->attribute >= 0 ? H5Awrite(to->attribute, type, data)
                                 : H5Dwrite(to->dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data)) >= 0;
    if (type >= 0) H5Tclose(type);
    free(texts);
    return ok;
}

static bool write_attribute(hid_t object, const tsr_carried_attribute *a) {
    const hid_t type = tsr_h5_values_type(&a->values), space = shape_of(&a->values);
    tsr_h5_values_at to = {.attribute = -1, .dataset = -1};
    bool ok = false;
    if (type >= 0 && space >= 0) to.attribute = H5Acreate2(object, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (to.attribute >= 0) {
        ok = tsr_h5_values_write(&to, &a->values);
        H5Aclose(to.attribute);
        if (!ok) H5Adelete(object, a->name);
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return ok;
}

void tsr_h5_attributes_write(hid_t object, const tsr_carried_attributes *list, tsr_carried *notes) {
    for (int64_t i = 0; i < list->count; i++)
        if (H5Aexists(object, list->list[i].name) <= 0 && !write_attribute(object, &list->list[i]))
            tsr_carried_note(notes, "the attribute '%.100s' is left out: HDF5 does not take it", list->list[i].name);
}
