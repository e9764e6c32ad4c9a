/* Whether a dataset may be made in an HDF5 file as it is wanted, and what that file holds already. Changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/describe/describe_wire.h"
#include "io/hdf5/access/hdf5_file.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_probe.h"
#include "io/hdf5/carried/hdf5_scales.h"
#include "io/hdf5/output/output_hdf5.h"
#include "io/hdf5/output/record_hdf5.h"
#include "io/output/output_chunks.h"
#include "io/text/text.h"

/* ---- what the file holds --------------------------------------------------------------------- */

static herr_t stop_at_first(hid_t object, const char *name, const H5A_info_t *info, void *context) {
    (void)object;
    (void)name;
    (void)info;
    (void)context;
    return 1;
}

static bool has_attributes(hid_t file, const char *path) {
    return H5Aiterate_by_name(file, path, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, stop_at_first, NULL, H5P_DEFAULT) != 0;
}

static bool is_under(const char *path, const char *group) {
    size_t chars = strlen(group);
    return strncmp(path, group, chars) == 0 && path[chars] == '/';
}

typedef struct {
    hid_t file;
    const tsr_target *target;
} other_search;

/* H5Lvisit callback: 1 at the first thing that is neither the dataset, its record, a scale that was made for it, nor a
 * bare group on the way. */
static herr_t find_other(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    const other_search *search = context;
    const tsr_target *target = search->target;
    char path[TSR_PATH_CHARS];
    (void)group;
    tsr_describe_goes_on();
    if (snprintf(path, sizeof path, "/%s", name) >= (int)sizeof path) return 1;
    if (strcmp(path, target->path) == 0 || strcmp(path, target->run_path) == 0 || is_under(path, target->run_path))
        return 0;
    if (info->type != H5L_TYPE_HARD) return 1;
    if (tsr_h5_is_own_scale(search->file, path, target->path)) return 0;
    return !(is_under(target->path, path) && !has_attributes(search->file, path));
}

/* The groups on the way to the dataset are groups of this file and no record of a run, as far as they exist. *last: all
 * of them do. */
static tsr_status check_parents(hid_t file, const tsr_target *target, bool *last) {
    char parent[TSR_PATH_CHARS], resolved[TSR_PATH_CHARS];
    *last = true;
    for (const char *slash = strchr(target->path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(parent, sizeof parent, "%.*s", (int)(slash - target->path), target->path);
        if (H5Lexists(file, parent, H5P_DEFAULT) <= 0) {
            *last = false;
            return TSR_OK;
        }
        TSR_TRY(tsr_h5_resolve(file, target->file, parent, resolved));
        hid_t object = H5Oopen(file, resolved, H5P_DEFAULT);
        H5I_type_t kind = object >= 0 ? H5Iget_type(object) : H5I_BADID;
        const bool record = kind == H5I_GROUP && tsr_h5_is_record(object);
        if (object >= 0) H5Oclose(object);
        if (record)
            return tsr_fail(TSR_ERR_USAGE,
                            "the output '%s:%s' would go into '%s', the record of a run; choose another path",
                            target->file, target->path, parent);
        if (kind != H5I_GROUP)
            return tsr_fail(TSR_ERR_EXISTS,
                            "'%s': '%s' is not a group, so '%s' cannot be under it; choose another path", target->file,
                            parent, target->path);
    }
    return TSR_OK;
}

/* What the path names already: only a dataset may be replaced. */
static tsr_status check_dataset(hid_t file, const tsr_target *target, bool force) {
    bool there = H5Lexists(file, target->path, H5P_DEFAULT) > 0;
    if (!there && H5Lexists(file, target->run_path, H5P_DEFAULT) <= 0) return TSR_OK;
    if (!force)
        return tsr_fail(TSR_ERR_EXISTS, "'%s:%s' exists already; use --force to replace it, or name another output",
                        target->file, there ? target->path : target->run_path);
    if (!there) return TSR_OK;
    H5L_info_t info;
    if (H5Lget_info(file, target->path, &info, H5P_DEFAULT) < 0)
        return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the link '%s' of '%s'", target->path, target->file);
    if (info.type != H5L_TYPE_HARD) return TSR_OK; /* the link is replaced, not what it leads to */
    hid_t object = H5Oopen(file, target->path, H5P_DEFAULT);
    H5I_type_t kind = object >= 0 ? H5Iget_type(object) : H5I_BADID;
    const bool is_used = object >= 0 && H5Aexists(object, "REFERENCE_LIST") > 0;
    if (object >= 0) H5Oclose(object);
    if (is_used)
        return tsr_fail(TSR_ERR_EXISTS,
                        "'%s:%s' is a scale of other datasets' dimensions, which would lose it: name another output",
                        target->file, target->path);
    if (kind == H5I_DATASET) return TSR_OK;
    return tsr_fail(TSR_ERR_EXISTS, "'%s:%s' is not a dataset, and --force replaces datasets only; name another output",
                    target->file, target->path);
}

static tsr_status check_inside(hid_t file, const tsr_output_spec *spec, const tsr_target *target, bool *others) {
    bool parents;
    TSR_TRY(check_parents(file, target, &parents));
    if (parents) TSR_TRY(tsr_sources_check(spec, target, file));
    if (parents) TSR_TRY(check_dataset(file, target, spec->force));
    other_search search = {file, target};
    *others = has_attributes(file, "/") || H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, find_other, &search) != 0;
    return TSR_OK;
}

tsr_status tsr_existing_look(const tsr_output_spec *spec, const tsr_target *target, bool *others) {
    hid_t file = -1;
    tsr_h5_enter();
    tsr_status status = tsr_h5_open_replaced(target->file, &file);
    if (status == TSR_OK) status = check_inside(file, spec, target, others);
    if (file >= 0) H5Fclose(file);
    tsr_h5_leave();
    return status;
}

tsr_status tsr_hdf5_output_existing(const tsr_output_spec *spec, tsr_target *target) {
    int64_t user_block;
    bool others = false;
    TSR_TRY(tsr_sources_check_file(spec, target));
    tsr_status status = tsr_h5_probe(target->file, &target->file_bytes, &user_block);
    if (status == TSR_ERR_FORMAT)
        return tsr_fail(status,
                        "the output '%s' exists and is not an HDF5 file; it is not touched: choose another name",
                        target->file);
    TSR_TRY(status);
    TSR_TRY(tsr_target_writable(target));
    TSR_TRY(tsr_describe_existing(spec, target, &others));
    target->others = user_block > 0 || others;
    return TSR_OK;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* Chunks that HDF5 takes, that can be encoded here, and that can be counted. Sets the bytes they take at most, 0 for
 * what is compressed. */
static tsr_status check_chunks(const tsr_output_spec *spec, size_t *bytes) {
    const int64_t rows = spec->chunk_rows, cols = spec->chunk_cols;
    size_t chunk;
    if (rows == 0 && cols == 0 && !spec->compress.how && !spec->shuffle && !spec->checksum) return TSR_OK;
    if (rows < 1 || cols < 1 || rows > tsr_max(1, spec->rows) || cols > tsr_max(1, spec->cols))
        return tsr_fail(TSR_ERR_USAGE,
                        "chunks of %lldx%lld do not fit a matrix of %lldx%lld: use sides from 1 to the matrix's",
                        (long long)rows, (long long)cols, (long long)spec->rows, (long long)spec->cols);
    TSR_TRY(tsr_bytes_checked(rows, cols, tsr_dtype_bytes(spec->dtype), &chunk));
    if (chunk > TSR_TRANSFER_BYTES_MAX)
        return tsr_fail(TSR_ERR_LIMIT,
                        "chunks of %lldx%lld take %zu bytes each, and 1 GiB is the most; use smaller ones: about 1 MiB "
                        "is read well",
                        (long long)rows, (long long)cols, chunk);
    if (tsr_spec_chunks(spec) > INT32_MAX)
        return tsr_fail(
            TSR_ERR_LIMIT,
            "a matrix of %lldx%lld in chunks of %lldx%lld has more than 2147483647 of them; use larger ones",
            (long long)spec->rows, (long long)spec->cols, (long long)rows, (long long)cols);
    TSR_TRY(tsr_compress_check(&spec->compress));
    *bytes = 0;
    if (spec->compress.how) return TSR_OK;
    const tsr_pipeline pipeline = tsr_output_pipeline(spec);
    return tsr_bytes_checked(tsr_spec_chunks(spec), (int64_t)(chunk + tsr_pipeline_added_bytes(&pipeline)), 1, bytes);
}

/* X.run is where the record of /X goes, and what makes /X anew takes it away. */
static tsr_status check_ending(const tsr_output_spec *spec, const char *path) {
    static const char ending[] = ".run";
    if (!tsr_text_ends(path, ending)) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "the output '%s:%s' is called as the record of '%.*s' would be; choose a path that does not end in "
                    ".run",
                    spec->name.file, path, (int)(strlen(path) - strlen(ending)), path);
}

/* For HDF5 `..` is a name like others, which nobody means. */
static tsr_status check_parts(const tsr_output_spec *spec, const char *path) {
    for (const char *part = path; *part; part += strcspn(part, "/")) {
        part += strspn(part, "/");
        if (strcspn(part, "/") == 2 && strncmp(part, "..", 2) == 0)
            return tsr_fail(TSR_ERR_USAGE,
                            "the output's path '%s:%s' has '..', which leads nowhere in HDF5; write it without that",
                            spec->name.file, path);
    }
    return TSR_OK;
}

tsr_status tsr_hdf5_output_check(const tsr_output_spec *spec, tsr_target *target) {
    const char *path = spec->name.path[0] ? spec->name.path : "/C";
    if (*spec->name.slice)
        return tsr_fail(TSR_ERR_USAGE,
                        "the output '%s:%s%s' cannot be a slice; leave the brackets out, or put a '/' behind them if "
                        "the dataset is to be called so",
                        spec->name.file, path, spec->name.slice);
    if (strlen(path) + 8 > TSR_PATH_CHARS)
        return tsr_fail(TSR_ERR_USAGE, "the output's path '%.60s...' is too long; choose a shorter one", path);
    TSR_TRY(check_chunks(spec, &target->bytes));
    TSR_TRY(check_ending(spec, path));
    TSR_TRY(check_parts(spec, path));
    snprintf(target->path, sizeof target->path, "%s", path);
    snprintf(target->run_path, sizeof target->run_path, "%s.run", path);
    return TSR_OK;
}
