/* Scales, labels and attributes of an output (output_carried.h). Scales are attached by HDF5's own high-level library:
 * a build without it says that they are left out. */
#include "io/hdf5/output/output_carried.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "io/files/file_bytes.h"
#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/carried/hdf5_scales.h"
#include "io/hdf5/carried/hdf5_values.h"

typedef struct {
    char path[TSR_PATH_CHARS];
    const tsr_scale *scale;
} placed_scale;

#ifdef TSR_HAVE_HDF5_HL
#include <hdf5_hl.h>

#define NAMES_MAX 1000 /* that are tried: x, x_2, x_3, ... */

/* ---- a name in the output's group ------------------------------------------------------------ */

typedef struct {
    const tsr_output_spec *spec;
    const tsr_target *target;
    hid_t file, dataset;
    placed_scale *placed; /* by this output: room for TSR_SCALES_MAX a dimension */
    int placed_count;
} placing;

typedef enum { NAME_FREE, NAME_SAME, NAME_TAKEN } name_use;

/* Whether the object that is there already is a scale that may stand for this one. The helper looks into it. */
static bool is_same_scale(const placing *p, const char *path, const tsr_scale *scale) {
    const tsr_carried_question question = {.file = p->target->file, .path = path};
    tsr_carried there = {.scale_count = 0};
    H5L_info_t info;
    if (H5Lget_info(p->file, path, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD) return false;
    if (p->spec->describer) tsr_describe_carried(p->spec->describer, &question, &there);
    else tsr_h5_carried(p->file, &question, &there);
    const bool same = there.scale_count == 1 && tsr_scale_same(&there.scales[0], scale);
    tsr_carried_free(&there);
    return same;
}

static name_use look_at(const placing *p, const char *path, const tsr_scale *scale) {
    if (strcmp(path, p->target->path) == 0 || strcmp(path, p->target->run_path) == 0) return NAME_TAKEN;
    for (int i = 0; i < p->placed_count; i++)
        if (strcmp(p->placed[i].path, path) == 0)
            return tsr_scale_same(p->placed[i].scale, scale) ? NAME_SAME : NAME_TAKEN;
    const htri_t there = H5Lexists(p->file, path, H5P_DEFAULT);
    if (there == 0) return NAME_FREE;
    return there > 0 && is_same_scale(p, path, scale) ? NAME_SAME : NAME_TAKEN;
}

/* NAME, or else NAME_2, NAME_3, ...: the first that is free or holds the same scale. */
static name_use choose_name(const placing *p, const tsr_scale *scale, char path[TSR_PATH_CHARS]) {
    const char *slash = strrchr(p->target->path, '/');
    const int folder = (int)(slash - p->target->path);
    for (int number = 1; number <= NAMES_MAX; number++) {
        char ending[16] = "";
        if (number > 1) snprintf(ending, sizeof ending, "_%d", number);
        if (snprintf(path, TSR_PATH_CHARS, "%.*s/%s%s", folder, p->target->path, scale->name, ending) >= TSR_PATH_CHARS)
            return NAME_TAKEN;
        const name_use use = look_at(p, path, scale);
        if (use != NAME_TAKEN) return use;
    }
    return NAME_TAKEN;
}

/* ---- scales ---------------------------------------------------------------------------------- */

/* netCDF says in its name how long a dimension without coordinates is. */
static bool set_scale(hid_t id, const tsr_scale *scale, const char *path) {
    char title[TSR_CARRIED_NAME_CHARS + 16];
    const char *name = strrchr(path, '/') + 1;
    if (scale->name_only) snprintf(title, sizeof title, "%s%10lld", TSR_NETCDF_NAME_ONLY, (long long)scale->length);
    else snprintf(title, sizeof title, "%s", strcmp(scale->title, scale->name) == 0 ? name : scale->title);
    return H5DSset_scale(id, *title ? title : NULL) >= 0;
}

static hid_t create_scale(const placing *p, const tsr_scale *scale, const char *path, tsr_carried *notes) {
    const hsize_t size = (hsize_t)scale->length;
    const hid_t type = scale->name_only ? H5Tcopy(H5T_NATIVE_FLOAT) : tsr_h5_values_type(&scale->values);
    const hid_t space = H5Screate_simple(1, &size, NULL);
    tsr_h5_values_at to = {.attribute = -1, .dataset = -1};
    if (type >= 0 && space >= 0)
        to.dataset = H5Dcreate2(p->file, path, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (to.dataset < 0) return -1;
    if ((scale->name_only || tsr_h5_values_write(&to, &scale->values)) && set_scale(to.dataset, scale, path) &&
        tsr_h5_write_text(to.dataset, TSR_SCALE_OF, p->target->path) == TSR_OK) {
        tsr_h5_attributes_write(to.dataset, &scale->attributes, notes);
        return to.dataset;
    }
    H5Dclose(to.dataset);
    H5Ldelete(p->file, path, H5P_DEFAULT);
    return -1;
}

static void write_scale(placing *p, const tsr_scale *scale, unsigned dimension, tsr_carried *notes) {
    char path[TSR_PATH_CHARS];
    hid_t id = -1;
    const name_use use = choose_name(p, scale, path);
    if (use == NAME_SAME) id = H5Dopen2(p->file, path, H5P_DEFAULT);
    if (use == NAME_FREE) id = create_scale(p, scale, path, notes);
    if (id >= 0 && H5DSattach_scale(p->dataset, id, dimension) >= 0) {
        snprintf(p->placed[p->placed_count].path, TSR_PATH_CHARS, "%s", path);
        p->placed[p->placed_count++].scale = scale;
    } else {
        tsr_carried_note(notes, "its scale '%.200s' is left out: %s", scale->name,
                         use == NAME_TAKEN ? "no name is free for it beside the output" : "HDF5 cannot write it");
    }
    if (id >= 0) H5Dclose(id);
}

static void write_axis(placing *p, tsr_carried *carried, unsigned dimension) {
    for (int64_t s = 0; s < carried->scale_count; s++) write_scale(p, &carried->scales[s], dimension, carried);
    if (carried->label[0] && H5DSset_label(p->dataset, dimension, carried->label) < 0)
        tsr_carried_note(carried, "its label is left out: HDF5 does not take it");
}

/* ---- scales of what is replaced -------------------------------------------------------------- */

typedef struct {
    hid_t scales[TSR_SCALES_MAX];
    int count;
} collection;

/* H5DS_iterate_t. */
static herr_t collect(hid_t dataset, unsigned dimension, hid_t scale, void *context) {
    collection *c = context;
    (void)dataset;
    (void)dimension;
    if (c->count < TSR_SCALES_MAX && H5Iinc_ref(scale) >= 0) c->scales[c->count++] = scale;
    return 0;
}

/* One that a run made for this output goes when nothing else uses it. */
static void forget(hid_t file, const char *path, hid_t dataset, hid_t scale, unsigned dimension) {
    char of[TSR_PATH_CHARS], name[TSR_PATH_CHARS];
    H5DSdetach_scale(dataset, scale, dimension);
    tsr_h5_text_of(scale, TSR_SCALE_OF, of, sizeof of);
    if (strcmp(of, path) != 0 || H5Aexists(scale, "REFERENCE_LIST") != 0) return;
    if (H5Iget_name(scale, name, sizeof name) > 0) H5Ldelete(file, name, H5P_DEFAULT);
}

static int dimensions_of(hid_t dataset) {
    const hid_t space = H5Dget_space(dataset);
    const int dimensions = space >= 0 ? H5Sget_simple_extent_ndims(space) : 0;
    if (space >= 0) H5Sclose(space);
    return dimensions;
}

void tsr_h5_forget_scales(hid_t file, const char *path) {
    H5L_info_t info;
    if (H5Lget_info(file, path, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD) return;
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    if (dataset < 0) return;
    const int dimensions = dimensions_of(dataset);
    for (unsigned d = 0; (int)d < dimensions; d++) {
        collection found = {.count = 0};
        if (H5DSget_num_scales(dataset, d) > 0) H5DSiterate_scales(dataset, d, NULL, collect, &found);
        for (int i = 0; i < found.count; i++) {
            forget(file, path, dataset, found.scales[i], d);
            H5Idec_ref(found.scales[i]);
        }
    }
    H5Dclose(dataset);
}

#else

typedef struct {
    const tsr_output_spec *spec;
    const tsr_target *target;
    hid_t file, dataset;
    placed_scale *placed;
} placing;

static void write_axis(placing *p, tsr_carried *carried, unsigned dimension) {
    (void)p;
    (void)dimension;
    if (carried->scale_count > 0 || carried->label[0])
        tsr_carried_note(carried, "its scales and labels are left out: this build lacks the library hdf5_hl");
}

void tsr_h5_forget_scales(hid_t file, const char *path) {
    (void)file;
    (void)path;
}

#endif

/* ---- MATLAB ---------------------------------------------------------------------------------- */

static const char *matlab_class(const tsr_output_spec *spec) {
    const tsr_carried *of_matrix = spec->carried ? spec->carried + spec->stack_dimensions : NULL;
    if (!of_matrix || !of_matrix[0].matlab || !of_matrix[1].matlab) return NULL;
    if (!tsr_dtype_serves(tsr_dtype_part(spec->dtype), TSR_USE_SUM) || spec->dropped || spec->rows == 0 ||
        spec->cols == 0)
        return NULL;
    return tsr_dtype_bytes(tsr_dtype_part(spec->dtype)) == sizeof(double) ? "double" : "single";
}

bool tsr_h5_is_for_matlab(const tsr_output_spec *spec) {
    const size_t chars = strlen(spec->name.file);
    return matlab_class(spec) && chars > 4 && strcasecmp(spec->name.file + chars - 4, ".mat") == 0;
}

/* 116 letters, 8 bytes, the version, and the letters that say in which order its bytes are. */
tsr_status tsr_h5_write_matlab_block(const char *name, int fd) {
    char block[128], date[40];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a %b %d %H:%M:%S %Y", &utc);
    memset(block, 0, sizeof block);
    memset(block, ' ', 116);
    const int used =
        snprintf(block, 117, "MATLAB 7.3 MAT-file, Platform: Tessera, Created on: %s HDF5 schema 1.00 .", date);
    block[used] = ' ';
    block[125] = 2;
    block[126] = 'I';
    block[127] = 'M';
    const int error = tsr_write_at(fd, block, sizeof block, 0);
    if (error == 0) return TSR_OK;
    return tsr_fail(tsr_write_status(error), "cannot write to '%s': %s", name, strerror(error));
}

/* Of fixed length, as MATLAB writes it. */
static void write_matlab(const tsr_output_spec *spec, hid_t dataset) {
    const char *class = matlab_class(spec);
    char text[16];
    if (!class) return;
    snprintf(text, sizeof text, "%s", class);
    tsr_carried_attribute attribute = {
        .name = "MATLAB_class",
        .values = {.kind = TSR_VALUES_TEXT, .element_bytes = (int64_t)strlen(text), .data = text}};
    const tsr_carried_attributes list = {&attribute, 1};
    tsr_carried notes = {.scale_count = 0}; /* it has a place in every new dataset */
    tsr_h5_attributes_write(dataset, &list, &notes);
}

void tsr_h5_write_carried(const tsr_output_spec *spec, const tsr_target *target, hid_t file, hid_t dataset) {
    const int leads = spec->stack_dimensions;
    placing p = {.spec = spec, .target = target, .file = file, .dataset = dataset};
    if (spec->carried) p.placed = calloc((size_t)(leads + 2) * TSR_SCALES_MAX, sizeof *p.placed);
    for (int d = 0; p.placed && d < leads + 2; d++) {
        write_axis(&p, &spec->carried[d], (unsigned)(d < leads || !spec->dropped ? d : leads));
        tsr_h5_attributes_write(dataset, &spec->carried[d].attributes, &spec->carried[d]);
    }
    if (spec->carried && !p.placed) tsr_carried_note(&spec->carried[leads], "its scales are left out: no memory");
    free(p.placed);
    write_matlab(spec, dataset);
}
