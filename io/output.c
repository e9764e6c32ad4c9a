/* The life of an output dataset (output.h): made in a temporary file, written by every rank, published by a rename. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/output_chunks.h"
#include "io/output_private.h"
#include "io/raw_file.h"

#define ALIGNMENT_BYTES ((hsize_t)1 << 20)

/* ---- create ---------------------------------------------------------------------------------------------------------- */

/* Opens the temporary file for HDF5: the copy of the target, or a new file. Large datasets start at whole MiB. */
static tsr_status open_temporary(const char *name, bool copied, hid_t *file) {
    tsr_status status = TSR_OK;
    hid_t access = tsr_h5_access(false);
    if (access >= 0 && H5Pset_alignment(access, ALIGNMENT_BYTES, ALIGNMENT_BYTES) >= 0)
        *file = copied ? H5Fopen(name, H5F_ACC_RDWR, access) : H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (*file < 0) status = tsr_h5_fail(TSR_ERR_IO, "cannot open the temporary file '%s'", name);
    if (access >= 0) H5Pclose(access);
    return status;
}

/* Contiguous: allocated at once, never filled. Chunks get their places as they come. */
static bool set_layout(hid_t properties, const tsr_output_spec *spec) {
    const hsize_t chunk[2] = {(hsize_t)spec->chunk_rows, (hsize_t)spec->chunk_cols};
    if (spec->chunk_rows > 0)
        return H5Pset_chunk(properties, 2, chunk) >= 0 && (!spec->shuffle || H5Pset_shuffle(properties) >= 0) &&
               (!spec->gzip || H5Pset_deflate(properties, (unsigned)spec->gzip_level) >= 0);
    return H5Pset_layout(properties, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY) >= 0 &&
           H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER) >= 0;
}

static tsr_status create_dataset(hid_t file, const char *path, const tsr_output_spec *spec, hid_t *dataset) {
    tsr_status status = TSR_OK;
    hsize_t dims[2] = {(hsize_t)spec->rows, (hsize_t)spec->cols};
    hid_t space = H5Screate_simple(2, dims, NULL), type = tsr_h5_memory_type(spec->dtype);
    hid_t links = H5Pcreate(H5P_LINK_CREATE), properties = H5Pcreate(H5P_DATASET_CREATE);
    if (space >= 0 && type >= 0 && links >= 0 && properties >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0 &&
        set_layout(properties, spec))
        *dataset = H5Dcreate2(file, path, type, space, links, properties, H5P_DEFAULT);
    if (*dataset < 0)
        status = tsr_h5_fail(TSR_ERR_IO, "cannot create the dataset '%s' of %lldx%lld", path, (long long)spec->rows, (long long)spec->cols);
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

/* Fills the temporary file and describes its dataset. The file is closed again: the ranks write raw bytes. */
static tsr_status make_dataset(const tsr_output_spec *spec, const tsr_target *target, const char *name, tsr_store_desc *desc) {
    tsr_status status;
    tsr_h5_found found;
    int32_t one = 1;
    hid_t dataset = -1, file = -1;
    TSR_TRY_DONE(open_temporary(name, target->others, &file));
    if (target->others) {
        TSR_TRY_DONE(delete_old(file, target->path));
        TSR_TRY_DONE(delete_old(file, target->run_path));
    }
    TSR_TRY_DONE(create_dataset(file, target->path, spec, &dataset));
    TSR_TRY_DONE(tsr_h5_write_number(dataset, TSR_INCOMPLETE, H5T_NATIVE_INT32, &one));
    TSR_TRY_DONE(tsr_h5_inspect(dataset, target->path, INT64_MAX, true, &found));
    *desc = found.desc;
done:
    if (dataset >= 0 && H5Dclose(dataset) < 0 && status == TSR_OK) status = tsr_h5_fail(TSR_ERR_IO, "cannot close the dataset in '%s'", name);
    if (file >= 0 && H5Fclose(file) < 0 && status == TSR_OK) status = tsr_h5_fail(TSR_ERR_IO, "cannot close '%s'", name);
    return status;
}

tsr_status tsr_output_allocate(const tsr_output *output) {
    struct stat st;
    char folder[TSR_FILE_CHARS];
    const tsr_store_desc *desc = &output->desc;
    const size_t bytes = (size_t)(desc->rows * desc->cols) * tsr_dtype_bytes(desc->element.dtype);
    if (desc->chunk_rows > 0) return TSR_OK; /* it is not known where they will be, nor how many bytes */
    if (desc->offset < 0) return tsr_fail(TSR_ERR_IO, "HDF5 gave the dataset in '%s' no place in the file", desc->name.file);
    tsr_folder_of(output->target, folder);
    TSR_TRY(tsr_temporary_allocate(folder, desc->name.file, output->lock_fd, desc->offset, bytes));
    if (fstat(output->lock_fd, &st) != 0 || st.st_size < desc->offset + (int64_t)bytes)
        return tsr_fail(TSR_ERR_IO, "the temporary file '%s' is shorter than its dataset; choose another folder", desc->name.file);
    return TSR_OK;
}

tsr_status tsr_output_check(const tsr_output_spec *spec, bool *on_disk) {
    tsr_target target;
    TSR_TRY(tsr_target_check(spec, &target));
    if (on_disk) *on_disk = tsr_raw_on_disk(target.folder);
    return TSR_OK;
}

tsr_status tsr_output_begin(const tsr_output_spec *spec, tsr_output *output) {
    tsr_target target;
    tsr_output made;
    char name[TSR_FILE_CHARS];
    tsr_status status;
    memset(&made, 0, sizeof made);
    TSR_TRY(tsr_target_check(spec, &target));
    TSR_TRY(tsr_temporary_create(&target, name, &made.lock_fd));
    if (target.others) TSR_TRY_DONE(tsr_temporary_copy(&target, name, made.lock_fd));
    tsr_h5_enter();
    status = make_dataset(spec, &target, name, &made.desc);
    tsr_h5_leave();
    if (status != TSR_OK) goto done;
    memcpy(made.desc.name.file, name, sizeof name);
    made.desc.name.row0 = made.desc.name.col0 = 0;
    made.desc.name.row1 = made.desc.rows;
    made.desc.name.col1 = made.desc.cols;
    made.gzip_level = spec->gzip_level, made.encode_bytes = spec->encode_bytes;
    if (made.desc.cache_bytes > spec->encode_bytes) made.desc.cache_bytes = spec->encode_bytes; /* who reads it back takes no more than who wrote it */
    memcpy(made.target, target.file, sizeof made.target);
    made.target_existed = target.exists;
    memcpy(made.target_identity, target.identity, sizeof made.target_identity);
    made.in_memory = tsr_raw_in_memory(made.lock_fd);
    *output = made;
done:
    if (status != TSR_OK) {
        unlink(name);
        close(made.lock_fd);
    }
    return status;
}

tsr_status tsr_output_create(const tsr_output_spec *spec, tsr_output *output) {
    tsr_output made;
    TSR_TRY(tsr_output_begin(spec, &made));
    tsr_status status = tsr_output_allocate(&made);
    if (status == TSR_OK) {
        *output = made;
        return TSR_OK;
    }
    tsr_output_discard(&made);
    close(made.lock_fd);
    return status;
}

tsr_status tsr_output_open(const tsr_output *output, tsr_io_mode mode, const void *comm, tsr_store **store) {
    if (output->desc.chunk_rows > 0) return tsr_encoding_open(output, store);
    return tsr_hdf5_open_as(&output->desc, mode, comm, true, NULL, store);
}

/* ---- publish --------------------------------------------------------------------------------------------------------- */

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
    TSR_TRY_DONE(tsr_h5_open_write(name, &file));
    snprintf(run_path, sizeof run_path, "%s.run", path);
    if (record) TSR_TRY_DONE(tsr_record_write_hdf5(record, (int64_t)file, run_path));
    dataset = H5Dopen2(file, path, H5P_DEFAULT);
    if (dataset < 0) {
        status = tsr_h5_fail(TSR_ERR_IO, "cannot open '%s' in '%s'", path, name);
        goto done;
    }
    TSR_TRY_DONE(write_provenance(dataset, command ? command : "tessera"));
    if (H5Adelete(dataset, TSR_INCOMPLETE) < 0) status = tsr_h5_fail(TSR_ERR_IO, "cannot mark '%s' in '%s' complete", path, name);
done:
    if (dataset >= 0 && H5Dclose(dataset) < 0 && status == TSR_OK) status = tsr_h5_fail(TSR_ERR_IO, "cannot close the dataset in '%s'", name);
    if (file >= 0 && H5Fclose(file) < 0 && status == TSR_OK) status = tsr_h5_fail(TSR_ERR_IO, "cannot close '%s'", name);
    return status;
}

/* The target is as it was when this run began: what another program wrote there since must not be lost. */
static bool target_unchanged(const tsr_output *output) {
    int64_t now[5];
    bool exists = tsr_file_identity(output->target, now);
    if (exists != output->target_existed) return false;
    return !exists || memcmp(now, output->target_identity, sizeof now) == 0;
}

static tsr_status rename_to(const tsr_output *output, const char *target) {
    char folder[TSR_FILE_CHARS];
    if (rename(output->desc.name.file, target) != 0)
        return tsr_fail(tsr_write_status(errno), "cannot rename '%s' to '%s': %s", output->desc.name.file, target, strerror(errno));
    tsr_folder_of(target, folder);
    return tsr_folder_sync(folder);
}

/* Puts the finished file under a name of its own and says so: neither it nor the changed target is lost. */
static tsr_status keep_beside(const tsr_output *output) {
    char kept[TSR_FILE_CHARS + 64];
    snprintf(kept, sizeof kept, "%s.tessera-%ld.h5", output->target, (long)getpid());
    TSR_TRY(rename_to(output, kept));
    return tsr_fail(TSR_ERR_EXISTS, "'%s' was changed by another program while this run worked, so it is left alone; the result is complete in '%s'",
                    output->target, kept);
}

tsr_status tsr_temporary_sync(const tsr_output *output) {
    if (fsync(output->lock_fd) == 0) return TSR_OK;
    return tsr_fail(tsr_write_status(errno), "cannot sync '%s': %s; the output was not made", output->desc.name.file,
                    strerror(errno));
}

tsr_status tsr_output_publish(const tsr_output *output, const tsr_run_record *record, const char *command) {
    tsr_h5_enter();
    tsr_status status = complete(output, record, command);
    tsr_h5_leave();
    if (status != TSR_OK) goto done;
    TSR_TRY_DONE(tsr_temporary_sync(output));
    status = target_unchanged(output) ? rename_to(output, output->target) : keep_beside(output);
done:
    if (status != TSR_OK) unlink(output->desc.name.file); /* gone already when it was renamed */
    close(output->lock_fd);
    return status;
}

void tsr_output_discard(const tsr_output *output) {
    if (output->desc.name.file[0]) unlink(output->desc.name.file);
}
