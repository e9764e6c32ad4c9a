/* Dimension scales, labels and attributes of a dataset (hdf5_scales.h). The attributes of the scales' specification are
 * read by hand: a file of others may hold anything in them, and what does not fit is left out one by one. */
#include "io/hdf5/carried/hdf5_scales.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_filters.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/carried/hdf5_values.h"
#include "io/hdf5/store_hdf5.h"

/* ---- scales ---------------------------------------------------------------------------------- */

/* Only data that lies in this file, and that is no view. NULL, or what keeps it from being read. */
static const char *check_layout(hid_t dataset, hid_t stored) {
    const hid_t properties = H5Dget_create_plist(dataset);
    hsize_t chunk[H5S_MAX_RANK] = {0};
    const char *why = NULL;
    if (properties < 0) return "it cannot be read";
    const H5D_layout_t layout = H5Pget_layout(properties);
    if (layout == H5D_VIRTUAL) why = "it is a virtual dataset";
    else if (layout == H5D_CONTIGUOUS && H5Pget_external_count(properties) > 0) why = "its data is in other files";
    else if (layout == H5D_CHUNKED && H5Pget_chunk(properties, H5S_MAX_RANK, chunk) != 1)
        why = "it has 2 dimensions or more";
    else if (layout == H5D_CHUNKED) tsr_h5_filters_expect((size_t)chunk[0] * H5Tget_size(stored), false);
    H5Pclose(properties);
    return why;
}

/* The part of a dataset of one dimension. */
static const char *read_part(hid_t dataset, hid_t stored, hid_t space, int64_t first, size_t most, tsr_values *v) {
    const hsize_t start = (hsize_t)first, count = (hsize_t)v->size[0];
    tsr_h5_values_at from = {.attribute = -1, .dataset = dataset, .part = space};
    from.memory = H5Screate_simple(1, &count, NULL);
    const char *why = "it cannot be read";
    if (from.memory >= 0 && (count == 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0))
        why = tsr_h5_values_read(&from, stored, most, v);
    if (from.memory >= 0) H5Sclose(from.memory);
    return why;
}

/* The coordinates asked for; all there are where the question is about a scale. *left: bytes that they may take. */
static const char *read_coordinates(hid_t dataset, const tsr_carried_question *q, size_t *left, tsr_scale *scale) {
    const hid_t stored = H5Dget_type(dataset);
    hid_t space = -1;
    hsize_t size = 0;
    const char *why = stored >= 0 ? check_layout(dataset, stored) : "it cannot be read";
    if (!why && (space = H5Dget_space(dataset)) < 0) why = "it cannot be read";
    if (!why && H5Sget_simple_extent_ndims(space) != 1) why = "it has not one dimension";
    else if (!why && H5Sget_simple_extent_dims(space, &size, NULL) < 0) why = "it cannot be read";
    if (!why && q->from_end == 0) scale->length = (int64_t)size;
    else if (!why && size != (hsize_t)q->length) why = "its length is not the dimension's";
    if (!why && !scale->name_only) {
        scale->values.dimensions = 1;
        scale->values.size[0] = scale->length;
        why = read_part(dataset, stored, space, q->from_end == 0 ? 0 : q->first, *left, &scale->values);
        *left -= (size_t)scale->values.bytes;
    }
    if (space >= 0) H5Sclose(space);
    if (stored >= 0) H5Tclose(stored);
    return why;
}

/* What cannot be read of a scale leaves its name. */
static void read_scale(hid_t object, const tsr_carried_question *q, const char *path, size_t *left, tsr_carried *to) {
    tsr_scale *scale = &to->scales[to->scale_count++];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    memset(scale, 0, sizeof *scale);
    scale->length = q->count;
    snprintf(scale->name, sizeof scale->name, "%.*s", TSR_CARRIED_NAME_CHARS - 1, name);
    tsr_h5_text_of(object, "NAME", scale->title, sizeof scale->title);
    if (!scale->name[0]) snprintf(scale->name, sizeof scale->name, "%s", "dimension");
    scale->name_only = strncmp(scale->title, TSR_NETCDF_NAME_ONLY, sizeof TSR_NETCDF_NAME_ONLY - 1) == 0;
    const char *why = read_coordinates(object, q, left, scale);
    if (!why && !scale->name_only) {
        tsr_h5_attributes_read(object, scale->name, &scale->attributes, to);
        return;
    }
    scale->name_only = true;
    memset(&scale->values, 0, sizeof scale->values);
    if (why) tsr_carried_note(to, "the values of its scale '%.200s' are left out: %s", path, why);
}

static bool is_scale(hid_t object) {
    char class[32];
    tsr_h5_text_of(object, "CLASS", class, sizeof class);
    return H5Iget_type(object) == H5I_DATASET && strcmp(class, "DIMENSION_SCALE") == 0;
}

static void follow_reference(hid_t dataset, const hobj_ref_t *to_scale, const tsr_carried_question *q, size_t *left,
                             tsr_carried *to) {
    char path[TSR_PATH_CHARS] = "";
    const hid_t object = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, to_scale);
    if (object < 0) {
        tsr_carried_note(to, "a scale is left out: its reference leads to nothing");
        return;
    }
    if (H5Iget_name(object, path, sizeof path) < 0) path[0] = '\0';
    if (!is_scale(object) || tsr_h5_same_object(object, dataset))
        tsr_carried_note(to, "'%.200s', which it names as a scale, is none and is left out", path);
    else read_scale(object, q, path, left, to);
    H5Oclose(object);
}

/* An attribute with an entry for each of so many dimensions; -1 where there is none. */
static hid_t open_list(hid_t dataset, const char *name, int dimensions) {
    if (H5Aexists(dataset, name) <= 0) return -1;
    const hid_t list = H5Aopen(dataset, name, H5P_DEFAULT);
    const hid_t space = list >= 0 ? H5Aget_space(list) : -1;
    const bool fits = space >= 0 && H5Sget_simple_extent_npoints(space) == dimensions;
    if (space >= 0) H5Sclose(space);
    if (fits) return list;
    if (list >= 0) H5Aclose(list);
    return -1;
}

static bool is_reference_list(hid_t type) {
    const hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : -1;
    const bool is = base >= 0 && H5Tequal(base, H5T_STD_REF_OBJ) > 0;
    if (base >= 0) H5Tclose(base);
    return is;
}

static void read_scales(hid_t dataset, const tsr_carried_question *q, int dimensions, tsr_carried *to) {
    hvl_t of[H5S_MAX_RANK] = {{0}};
    size_t left = TSR_CARRIED_SCALES_BYTES;
    const hid_t list = open_list(dataset, "DIMENSION_LIST", dimensions);
    const hid_t type = list >= 0 ? H5Aget_type(list) : -1, space = list >= 0 ? H5Aget_space(list) : -1;
    if (type >= 0 && space >= 0 && is_reference_list(type) && H5Aread(list, type, of) >= 0) {
        const hvl_t *mine = &of[dimensions - (int)q->from_end];
        const hobj_ref_t *references = mine->p;
        for (size_t i = 0; i < mine->len && to->scale_count < TSR_SCALES_MAX; i++)
            follow_reference(dataset, &references[i], q, &left, to);
        if (mine->len > TSR_SCALES_MAX)
            tsr_carried_note(to, "it has %zu scales of one dimension: those beyond %d are left out", mine->len,
                             TSR_SCALES_MAX);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, of);
    } else if (H5Aexists(dataset, "DIMENSION_LIST") > 0) {
        tsr_carried_note(to, "its scales are left out: its attribute DIMENSION_LIST is not as HDF5 writes it");
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (list >= 0) H5Aclose(list);
}

static void read_label(hid_t dataset, const tsr_carried_question *q, int dimensions, tsr_carried *to) {
    char *labels[H5S_MAX_RANK] = {NULL};
    const hid_t list = open_list(dataset, "DIMENSION_LABELS", dimensions);
    const hid_t type = list >= 0 ? H5Aget_type(list) : -1, space = list >= 0 ? H5Aget_space(list) : -1;
    if (type >= 0 && space >= 0 && H5Tis_variable_str(type) > 0 && H5Aread(list, type, labels) >= 0) {
        const char *mine = labels[dimensions - (int)q->from_end];
        snprintf(to->label, sizeof to->label, "%.*s", TSR_CARRIED_NAME_CHARS - 1, mine ? mine : "");
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, labels);
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (list >= 0) H5Aclose(list);
}

static int dimensions_of(hid_t dataset) {
    const hid_t space = H5Dget_space(dataset);
    const int dimensions = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (space >= 0) H5Sclose(space);
    return dimensions;
}

void tsr_h5_carried(hid_t file, const tsr_carried_question *q, tsr_carried *carried) {
    const hid_t dataset = H5Oopen(file, q->path, H5P_DEFAULT);
    size_t left = TSR_CARRIED_SCALES_BYTES;
    if (dataset < 0) return;
    if (q->from_end == 0) {
        if (is_scale(dataset)) read_scale(dataset, q, q->path, &left, carried);
    } else if (H5Iget_type(dataset) == H5I_DATASET) {
        const int dimensions = dimensions_of(dataset);
        if (q->from_end > 0 && dimensions >= q->from_end) {
            read_scales(dataset, q, dimensions, carried);
            read_label(dataset, q, dimensions, carried);
        }
        carried->matlab = H5Aexists(dataset, "MATLAB_class") > 0;
        if (q->attributes) tsr_h5_attributes_read(dataset, NULL, &carried->attributes, carried);
    }
    H5Oclose(dataset);
}

tsr_status tsr_hdf5_carried(const tsr_carried_question *question, tsr_carried *carried) {
    hid_t file = -1;
    TSR_TRY(tsr_h5_probe(question->file, NULL, NULL));
    tsr_h5_enter();
    const tsr_status status = tsr_h5_open_read(question->file, &file);
    if (status == TSR_OK) tsr_h5_carried(file, question, carried);
    if (file >= 0) H5Fclose(file);
    tsr_h5_leave();
    return status;
}

/* ---- scales that a run made ------------------------------------------------------------------ */

#define USES_MAX 64

/* The datasets that use a scale; -1 for what cannot be read, or more. */
static int read_uses(hid_t scale, hobj_ref_t uses[USES_MAX]) {
    const hid_t list = H5Aexists(scale, "REFERENCE_LIST") > 0 ? H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT) : -1;
    const hid_t space = list >= 0 ? H5Aget_space(list) : -1;
    const hssize_t count = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof *uses);
    int found = -1;
    if (count >= 0 && count <= USES_MAX && type >= 0 && H5Tinsert(type, "dataset", 0, H5T_STD_REF_OBJ) >= 0 &&
        H5Aread(list, type, uses) >= 0)
        found = (int)count;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (list >= 0) H5Aclose(list);
    return found;
}

bool tsr_h5_is_own_scale(hid_t file, const char *path, const char *target) {
    char of[TSR_PATH_CHARS] = "";
    hobj_ref_t uses[USES_MAX];
    const hid_t scale = H5Oopen(file, path, H5P_DEFAULT);
    const hid_t dataset = H5Lexists(file, target, H5P_DEFAULT) > 0 ? H5Oopen(file, target, H5P_DEFAULT) : -1;
    bool own = scale >= 0 && dataset >= 0 && is_scale(scale);
    if (own) tsr_h5_text_of(scale, TSR_SCALE_OF, of, sizeof of);
    const int count = own && strcmp(of, target) == 0 ? read_uses(scale, uses) : -1;
    own = count > 0;
    for (int i = 0; i < count && own; i++) {
        const hid_t user = H5Rdereference2(scale, H5P_DEFAULT, H5R_OBJECT, &uses[i]);
        own = user >= 0 && tsr_h5_same_object(user, dataset);
        if (user >= 0) H5Oclose(user);
    }
    if (dataset >= 0) H5Oclose(dataset);
    if (scale >= 0) H5Oclose(scale);
    return own;
}
