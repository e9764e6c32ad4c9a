/* An output that is a dataset of an HDF5 file (output_hdf5.h): made, and marked complete with its record beside it. */
#include "io/hdf5/output/output_hdf5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/files/unfinished.h"
#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_type.h"
#include "io/hdf5/hdf5_inspect.h"
#include "io/hdf5/output/output_carried.h"
#include "io/hdf5/output/record_hdf5.h"
#include "io/hdf5/store_hdf5.h"
#include "io/output/output_chunks.h"

#define ALIGNMENT_BYTES ((hsize_t)1 << 20)

/* HDF5 would make the file anew where a signal handler has just removed it. */
static hid_t create_file(const char *name, hid_t creation, hid_t access) {
    sigset_t before;
    tsr_unfinished_enter(&before);
    const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
    tsr_unfinished_leave(&before);
    return file;
}

/* Opens the temporary file for HDF5: the copy of the target, or a new file. Large datasets start at whole MiB, but
 * behind MATLAB's block, for which HDF5 allows no alignment larger than it. */
static tsr_status open_temporary(const char *name, bool copied, bool for_matlab, tsr_h5_refused *refused, hid_t *file) {
    TSR_TRY(tsr_h5_room(name));
    tsr_status status = TSR_OK;
    hid_t access = tsr_h5_access(false);
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    if (access >= 0 && tsr_h5_set_writing(access, refused) && creation >= 0 &&
        H5Pset_userblock(creation, for_matlab ? TSR_MATLAB_BLOCK_BYTES : 0) >= 0 &&
        H5Pset_alignment(access, ALIGNMENT_BYTES, for_matlab ? 1 : ALIGNMENT_BYTES) >= 0)
        *file = copied ? H5Fopen(name, H5F_ACC_RDWR, access) : create_file(name, creation, access);
    if (*file < 0) status = tsr_h5_fail(TSR_ERR_IO, "cannot open the temporary file '%s'", name);
    if (creation >= 0) H5Pclose(creation);
    if (access >= 0) H5Pclose(access);
    return status;
}

/* Optional: a chunk that one does not shrink is stored without it. What adds to a chunk always does. */
static bool set_filters(hid_t properties, const tsr_output_spec *spec) {
    const tsr_pipeline pipeline = tsr_output_pipeline(spec);
    for (int f = 0; f < pipeline.count; f++) {
        const tsr_filter_use *use = &pipeline.use[f];
        const tsr_filter *filter = tsr_filter_at(use->filter);
        const unsigned must = filter->adds_bytes > 0 ? H5Z_FLAG_MANDATORY : H5Z_FLAG_OPTIONAL;
        if (H5Pset_filter(properties, filter->id, must, (size_t)use->count, use->values) < 0) return false;
    }
    return true;
}

/* Contiguous: allocated at once, never filled. Chunks get their places as they come. */
static bool set_layout(hid_t properties, const tsr_output_spec *spec) {
    const tsr_output_spec one = {.rows = spec->chunk_rows, .cols = spec->chunk_cols, .dropped = spec->dropped};
    const tsr_shape of_matrix = tsr_output_shape(&one);
    const int leads = spec->stack_dimensions;
    hsize_t chunk[TSR_DIMENSIONS_MAX];
    for (int d = 0; d < leads; d++) chunk[d] = 1;
    for (int d = 0; d < of_matrix.dimensions; d++) chunk[leads + d] = (hsize_t)of_matrix.size[d];
    if (spec->chunk_rows > 0)
        return H5Pset_chunk(properties, leads + of_matrix.dimensions, chunk) >= 0 && set_filters(properties, spec);
    return H5Pset_layout(properties, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY) >= 0 &&
           H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER) >= 0;
}

static tsr_status create_dataset(hid_t file, const char *path, const tsr_output_spec *spec, hid_t *dataset) {
    tsr_status status = TSR_OK;
    char text[TSR_SHAPE_CHARS];
    const tsr_shape shape = tsr_output_shape(spec);
    hsize_t dims[TSR_DIMENSIONS_MAX];
    for (int d = 0; d < shape.dimensions; d++) dims[d] = (hsize_t)shape.size[d];
    hid_t space = shape.dimensions ? H5Screate_simple(shape.dimensions, dims, NULL) : H5Screate(H5S_SCALAR);
    hid_t type = tsr_h5_memory_type(spec->dtype, spec->fields);
    hid_t links = H5Pcreate(H5P_LINK_CREATE), properties = H5Pcreate(H5P_DATASET_CREATE);
    if (space >= 0 && type >= 0 && links >= 0 && properties >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0 &&
        set_layout(properties, spec))
        *dataset = H5Dcreate2(file, path, type, space, links, properties, H5P_DEFAULT);
    if (*dataset < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot create the dataset '%s' of %s", path,
                             tsr_shape_text(&shape, "x", text, sizeof text));
    if (properties >= 0) H5Pclose(properties);
    if (links >= 0) H5Pclose(links);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return status;
}

static tsr_status delete_old(hid_t file, const char *path) {
    char parent[TSR_PATH_CHARS];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
        if (H5Lexists(file, parent, H5P_DEFAULT) <= 0) return TSR_OK;
    }
    if (H5Lexists(file, path, H5P_DEFAULT) <= 0) return TSR_OK;
    if (H5Ldelete(file, path, H5P_DEFAULT) < 0) return tsr_h5_fail(TSR_ERR_IO, "cannot replace the old '%s'", path);
    return TSR_OK;
}

/* The file is closed again: the ranks write raw bytes. */
static tsr_status make_dataset(const tsr_output_spec *spec, const tsr_target *target, const char *name, int fd,
                               tsr_store_desc *desc) {
    tsr_status status;
    tsr_h5_found found;
    int32_t one = 1;
    hid_t dataset = -1, file = -1;
    tsr_h5_refused refused = {0};
    const bool for_matlab = !target->others && tsr_h5_is_for_matlab(spec);
    tsr_h5_enter();
    TSR_TRY_DONE(open_temporary(name, target->others, for_matlab, &refused, &file));
    if (target->others) {
        tsr_h5_forget_scales(file, target->path);
        TSR_TRY_DONE(delete_old(file, target->path));
        TSR_TRY_DONE(delete_old(file, target->run_path));
    }
    TSR_TRY_DONE(create_dataset(file, target->path, spec, &dataset));
    TSR_TRY_DONE(tsr_h5_write_number(dataset, TSR_INCOMPLETE, H5T_NATIVE_INT32, &one));
    tsr_h5_write_carried(spec, target, file, dataset);
    TSR_TRY_DONE(tsr_h5_inspect(dataset, target->path, INT64_MAX, true, &found));
    *desc = found.desc;
done:
    status = tsr_h5_close_written(file, dataset, name, &refused, status);
    tsr_h5_leave();
    if (status == TSR_OK && for_matlab) status = tsr_h5_write_matlab_block(name, fd);
    return status;
}

/* ---- publish --------------------------------------------------------------------------------- */

static tsr_status write_provenance(hid_t dataset, const char *command) {
    char date[40];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    size_t chars = strlen(date) + strlen(command) + 3;
    char *history = malloc(chars);
    if (!history) return tsr_fail(TSR_ERR_MEMORY, "no memory for the history of the output");
    snprintf(history, chars, "%s: %s", date, command);
    tsr_status status = tsr_h5_write_text(dataset, "history", history);
    free(history);
    if (status == TSR_OK) status = tsr_h5_write_text(dataset, "software", "tessera");
    if (status == TSR_OK) status = tsr_h5_write_text(dataset, "version", TSR_VERSION);
    return status;
}

/* Record, provenance and the end of "incomplete". */
static tsr_status complete(const tsr_output *output, const tsr_run_record *record, const char *command) {
    tsr_status status;
    char run_path[TSR_PATH_CHARS + 8];
    const char *name = output->desc.name.file, *path = output->desc.name.path;
    hid_t file = -1, dataset = -1;
    tsr_h5_refused refused = {0};
    tsr_h5_enter();
    TSR_TRY_DONE(tsr_h5_open_write(name, TSR_CHECK_FOLDER, &refused, &file));
    snprintf(run_path, sizeof run_path, "%s.run", path);
    if (record) TSR_TRY_DONE(tsr_record_write_hdf5(record, file, run_path));
    dataset = H5Dopen2(file, path, H5P_DEFAULT);
    if (dataset < 0) {
        status = tsr_h5_fail(TSR_ERR_IO, "cannot open '%s' in '%s'", path, name);
        goto done;
    }
    TSR_TRY_DONE(write_provenance(dataset, command ? command : "tessera"));
    if (H5Adelete(dataset, TSR_INCOMPLETE) < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot mark '%s' in '%s' complete", path, name);
done:
    status = tsr_h5_close_written(file, dataset, name, &refused, status);
    tsr_h5_leave();
    return status;
}

const tsr_output_ops tsr_hdf5_output = {
    .ending = ".h5",
    .check = tsr_hdf5_output_check,
    .existing = tsr_hdf5_output_existing,
    .make = make_dataset,
    .complete = complete,
};
