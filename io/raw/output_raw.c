/* An output that is a .npy file or the bare bytes of one. It has no record beside it: that is in the file of --log. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/output/output_private.h"
#include "io/raw/store_raw.h"
#include "io/signature/signature.h"

#define ALIGN_LARGE 4096 /* elements begin with a block of the disk where there are many */
#define LARGE_BYTES ((size_t)1 << 20)

/* ---- what is wanted -------------------------------------------------------------------------- */

static tsr_status check(const tsr_output_spec *spec, tsr_target *target) {
    (void)target;
    if (*spec->name.slice)
        return tsr_fail(TSR_ERR_USAGE, "the output '%s%s' cannot be a slice; leave the brackets out", spec->name.file,
                        spec->name.slice);
    if (spec->chunk_rows == 0 && spec->chunk_cols == 0 && !spec->compress.how && !spec->shuffle && !spec->checksum)
        return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "the output '%s' is not an HDF5 file, and chunks and compression are for these alone: leave "
                    "--chunk and --compress out, or name a file.h5",
                    spec->name.file);
}

static tsr_status check_npy(const tsr_output_spec *spec, tsr_target *target) {
    TSR_TRY(check(spec, target));
    if (tsr_dtype_facts_of(spec->dtype)->numpy) return TSR_OK;
    return tsr_fail(TSR_ERR_USAGE,
                    "the output '%s' cannot hold %s, which numpy does not have: use --type f32, or name a file.h5 or "
                    "file.bin:%s",
                    spec->name.file, tsr_dtype_name(spec->dtype), tsr_dtype_name(spec->dtype));
}

/* The name says the type, and may say the shape; an output has no other. */
static tsr_status check_raw(const tsr_output_spec *spec, tsr_target *target) {
    const tsr_matrix_name *name = &spec->name;
    const int64_t rows = name->columns_first ? spec->cols : spec->rows,
                  cols = name->columns_first ? spec->rows : spec->cols;
    tsr_raw_form form;
    TSR_TRY(check(spec, target));
    if (spec->stack_dimensions > 0 || spec->dropped > 0)
        return tsr_fail(TSR_ERR_USAGE,
                        "the output '%s:%s' would not say that the product has %d dimensions: name a file.npy or a "
                        "file.h5",
                        name->file, name->path, tsr_output_shape(spec).dimensions);
    TSR_TRY(tsr_raw_form_read(name, &form));
    if (tsr_npy_is_name(name->file))
        return tsr_fail(TSR_ERR_USAGE,
                        "the output '%s:%s' would have no header, which a .npy file has: write %s and --type %s, or "
                        "choose another ending",
                        name->file, name->path, name->file, tsr_dtype_name(form.type));
    if (form.type != spec->dtype)
        return tsr_fail(TSR_ERR_USAGE,
                        "the output '%s:%s' is %s by its name, and %s otherwise: write %s:%s, or --type %s where "
                        "that is a type of the result",
                        name->file, name->path, tsr_dtype_name(form.type), tsr_dtype_name(spec->dtype), name->file,
                        tsr_dtype_name(spec->dtype), tsr_dtype_name(form.type));
    if (form.has_shape && (form.rows != rows || form.cols != cols))
        return tsr_fail(TSR_ERR_SHAPE, "the output '%s:%s' is %lldx%lld: write %s:%s", name->file, name->path,
                        (long long)rows, (long long)cols, name->file, tsr_dtype_name(spec->dtype));
    if (form.has_offset)
        return tsr_fail(TSR_ERR_USAGE, "the output '%s:%s' begins where its file does: leave the offset out",
                        name->file, name->path);
    return TSR_OK;
}

/* ---- what is there --------------------------------------------------------------------------- */

static tsr_status check_sources(const tsr_output_spec *spec, const tsr_target *target) {
    for (int i = 0; i < spec->source_count; i++) {
        const tsr_output_source *source = &spec->sources[i];
        bool holds;
        TSR_TRY(tsr_target_holds(target, source, &holds));
        if (!holds || (source->replaceable && !source->part)) continue;
        return tsr_fail(TSR_ERR_USAGE, "the output '%s' would replace %s, which is read%s: name another output",
                        target->file, source->role, source->replaceable ? " in part, and the rest would be lost" : "");
    }
    return TSR_OK;
}

/* Whole files are replaced, and only those that are of the kind. */
static tsr_status existing(const tsr_output_spec *spec, tsr_target *target, bool npy) {
    char first[TSR_NPY_SIGNATURE_CHARS];
    int fd = -1;
    TSR_TRY(check_sources(spec, target));
    TSR_TRY(tsr_plain_file_open(target->file, &fd, &target->file_bytes));
    const ssize_t chars = tsr_read_at(fd, first, sizeof first, 0);
    const int error = errno;
    close(fd);
    if (chars < 0)
        return tsr_fail(TSR_ERR_IO, "cannot read '%s', which the output would replace: %s; name another file",
                        target->file, strerror(error));
    const bool is_npy = tsr_npy_signature(first, chars);
    if (is_npy != npy)
        return tsr_fail(TSR_ERR_FORMAT,
                        "the output '%s' exists and is %s .npy file; it is not touched: choose "
                        "another name",
                        target->file, is_npy ? "a" : "no");
    if (!spec->force)
        return tsr_fail(TSR_ERR_EXISTS, "'%s' exists already; use --force to replace it, or name another output",
                        target->file);
    return tsr_target_writable(target);
}

static tsr_status npy_existing(const tsr_output_spec *spec, tsr_target *target) { return existing(spec, target, true); }

static tsr_status raw_existing(const tsr_output_spec *spec, tsr_target *target) {
    return existing(spec, target, false);
}

/* ---- making it ------------------------------------------------------------------------------- */

/* The temporary file gets its header and its length. */
static tsr_status make_file(const char *name, int fd, const char *head, int64_t head_bytes, size_t bytes) {
    int error = ftruncate(fd, head_bytes + (int64_t)bytes) == 0 ? 0 : errno;
    if (!error && head_bytes > 0) error = tsr_write_at(fd, head, (size_t)head_bytes, 0);
    if (!error) return TSR_OK;
    return tsr_fail(tsr_write_status(error), "cannot write '%s': %s; choose another folder", name, strerror(error));
}

/* In column order the file holds, row by row, the transpose of what the person sees, which numpy calls Fortran
 * order. */
static tsr_status npy_make(const tsr_output_spec *spec, const tsr_target *target, const char *name, int fd,
                           tsr_store_desc *desc) {
    const tsr_shape stored = tsr_output_shape(spec);
    const bool fortran = spec->name.columns_first && stored.dimensions > 1;
    tsr_npy_header header = {.element = {spec->dtype, false}, .shape = stored, .fortran = fortran};
    for (int d = 0; d < stored.dimensions && fortran; d++)
        header.shape.size[d] = stored.size[stored.dimensions - 1 - d];
    char *text = malloc(TSR_NPY_HEADER_MAX);
    if (!text) return tsr_fail(TSR_ERR_MEMORY, "no memory for the header of '%s'; free some", target->file);
    tsr_npy_header_write(&header, target->bytes >= LARGE_BYTES ? ALIGN_LARGE : 64, text);
    const tsr_status status = make_file(name, fd, text, header.offset, target->bytes);
    free(text);
    TSR_TRY(status);
    return tsr_raw_describe(&spec->name, header.element, &stored, header.offset, desc);
}

/* Its name says all, so that it can be read by it. */
static tsr_status raw_make(const tsr_output_spec *spec, const tsr_target *target, const char *name, int fd,
                           tsr_store_desc *desc) {
    const bool swap = spec->name.columns_first;
    const tsr_shape shape = tsr_output_shape(spec);
    TSR_TRY(tsr_raw_describe(&spec->name, (tsr_element){spec->dtype, false}, &shape, 0, desc));
    snprintf(desc->name.path, sizeof desc->name.path, "%s:%lldx%lld", tsr_dtype_name(spec->dtype),
             (long long)(swap ? spec->cols : spec->rows), (long long)(swap ? spec->rows : spec->cols));
    return make_file(name, fd, NULL, 0, target->bytes);
}

static tsr_status complete(const tsr_output *output, const tsr_run_record *record, const char *command) {
    (void)output;
    (void)record;
    (void)command;
    return TSR_OK;
}

const tsr_output_ops tsr_npy_output = {
    .ending = ".npy",
    .check = check_npy,
    .existing = npy_existing,
    .make = npy_make,
    .complete = complete,
};

const tsr_output_ops tsr_raw_output = {
    .ending = ".bin",
    .check = check_raw,
    .existing = raw_existing,
    .make = raw_make,
    .complete = complete,
};
