/* Matrices that are the bytes of a file (store_raw.h): named, described, opened on the direct path. */
#include "io/raw/store_raw.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/files/file_bytes.h"
#include "io/files/raw_file.h"
#include "io/store_direct.h"
#include "io/text/text.h"

/* ---- names ----------------------------------------------------------------------------------- */

bool tsr_npy_is_name(const char *file) { return tsr_text_ends(file, ".npy"); }

static bool npy_claims(const char *text, tsr_matrix_name *name) {
    if (!tsr_npy_is_name(text) || strlen(text) >= sizeof name->file) return false;
    if (tsr_name_is_hdf5(text)) return false;
    memcpy(name->file, text, strlen(text) + 1);
    return true;
}

static bool raw_claims(const char *text, tsr_matrix_name *name) {
    tsr_dtype type;
    for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
        const size_t chars = (size_t)(colon - text);
        if (chars == 0 || chars >= sizeof name->file || !tsr_name_begins_with_type(colon + 1, &type)) continue;
        if (strlen(colon + 1) >= sizeof name->path || tsr_name_is_hdf5(text)) return false;
        memcpy(name->file, text, chars);
        name->file[chars] = '\0';
        snprintf(name->path, sizeof name->path, "%s", colon + 1);
        return true;
    }
    return false;
}

static bool read_number(const char **at, int64_t *number) {
    char *end;
    if (!isdigit((unsigned char)**at)) return false;
    errno = 0;
    *number = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

tsr_status tsr_raw_form_read(const tsr_matrix_name *name, tsr_raw_form *form) {
    tsr_raw_form found = {.has_shape = false};
    const char *at = name->path + strcspn(name->path, ":");
    bool good = tsr_name_begins_with_type(name->path, &found.type);
    if (good && *at == ':') {
        at++;
        good = read_number(&at, &found.rows) && *at == 'x';
        if (good) {
            at++;
            good = read_number(&at, &found.cols);
        }
        found.has_shape = good;
    }
    if (good && *at == ':') {
        at++;
        good = found.has_offset = read_number(&at, &found.offset);
    }
    if (!good || *at)
        return tsr_fail(TSR_ERR_USAGE,
                        "'%s:%s': cannot read what is behind the file; write TYPE:ROWSxCOLS, such as "
                        "f32:1000x2000, and :OFFSET behind it where the elements begin later",
                        name->file, name->path);
    *form = found;
    return TSR_OK;
}

/* ---- describing ------------------------------------------------------------------------------ */

tsr_status tsr_raw_describe(const tsr_matrix_name *name, tsr_element element, const tsr_shape *shape, int64_t offset,
                            tsr_store_desc *desc) {
    memset(desc, 0, sizeof *desc);
    desc->name = *name;
    desc->element = element;
    desc->offset = offset;
    snprintf(desc->type_name, sizeof desc->type_name, "%s%s", element.swapped ? "big-endian " : "",
             tsr_dtype_name(element.dtype));
    return tsr_store_set_shape(desc, shape);
}

/* How many bytes the elements take from their offset on, and how many the file has there. */
static tsr_status sizes(const tsr_store_desc *desc, const tsr_shape *shape, int64_t file_bytes, size_t *need,
                        int64_t *have) {
    char text[TSR_SHAPE_CHARS];
    int64_t bytes = (int64_t)tsr_dtype_bytes(desc->element.dtype);
    for (int d = 0; d < shape->dimensions; d++)
        if (__builtin_mul_overflow(bytes, shape->size[d], &bytes))
            return tsr_fail(TSR_ERR_FORMAT, "'%s' cannot hold %s elements: they take more than 2^63 bytes",
                            desc->name.file, tsr_shape_text(shape, "x", text, sizeof text));
    *need = (size_t)bytes;
    *have = file_bytes - desc->offset;
    return TSR_OK;
}

/* Whether both orders store it in the same way, whichever the header says: numpy says C then. */
static bool stored_alike(const tsr_shape *shape) {
    int longer = 0;
    for (int d = 0; d < shape->dimensions; d++) {
        if (shape->size[d] == 0) return true;
        longer += shape->size[d] > 1;
    }
    return longer <= 1;
}

/* In column order a person sees the transpose of what is stored row by row. An array in Fortran order is stored so. */
static tsr_status describe_npy(const tsr_matrix_name *name, int fd, int64_t file_bytes, tsr_store_desc *desc) {
    tsr_npy_header h;
    size_t need = 0;
    int64_t have = 0;
    char shown[TSR_SHAPE_CHARS];
    TSR_TRY(tsr_npy_header_read(fd, name->file, file_bytes, &h));
    const bool columns_first = stored_alike(&h.shape) ? name->columns_first : h.fortran;
    tsr_shape stored = h.shape;
    for (int d = 0; d < stored.dimensions && columns_first; d++)
        stored.size[d] = h.shape.size[stored.dimensions - 1 - d];
    TSR_TRY(tsr_raw_describe(name, h.element, &stored, h.offset, desc));
    TSR_TRY(sizes(desc, &stored, file_bytes, &need, &have));
    if (!columns_first && name->columns_first && h.shape.dimensions >= 2)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' (%s) is in C order, and --order col would take it for its transpose: save it as "
                        "numpy.asfortranarray(a), or leave --order col out",
                        name->file, tsr_shape_text(&h.shape, "x", shown, sizeof shown));
    if (columns_first && !name->columns_first)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' (%s) is in Fortran order: save it as numpy.ascontiguousarray(a), or use --order col, "
                        "which shows all matrices of a command column by column",
                        name->file, tsr_shape_text(&h.shape, "x", shown, sizeof shown));
    if (have >= 0 && (size_t)have == need) return TSR_OK;
    if (have < 0 || (size_t)have < need)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' is truncated: its elements take %zu bytes, and %lld are there; copy it "
                        "again",
                        name->file, need, (long long)tsr_max(0, have));
    return tsr_fail(TSR_ERR_FORMAT,
                    "'%s' has %lld bytes behind its elements: save one array a file, or read this one as "
                    "%s:%s:%s:%lld",
                    name->file, (long long)have - (long long)need, name->file, tsr_dtype_name(h.element.dtype),
                    tsr_shape_text(&h.shape, "x", shown, sizeof shown), (long long)h.offset);
}

/* A file of another size than the name says is probably of another shape or type: an offset says that it is meant. */
static tsr_status describe_raw(const tsr_matrix_name *name, int fd, int64_t file_bytes, tsr_store_desc *desc) {
    tsr_raw_form form = {.has_shape = false};
    size_t need = 0;
    int64_t have = 0;
    (void)fd;
    TSR_TRY(tsr_raw_form_read(name, &form));
    if (!form.has_shape)
        return tsr_fail(TSR_ERR_USAGE, "'%s:%s': its shape is missing: write %s:%s:ROWSxCOLS", name->file, name->path,
                        name->file, name->path);
    const bool swap = name->columns_first;
    const tsr_shape shape = {2, {swap ? form.cols : form.rows, swap ? form.rows : form.cols}};
    TSR_TRY(tsr_raw_describe(name, (tsr_element){form.type, false}, &shape, form.offset, desc));
    TSR_TRY(sizes(desc, &shape, file_bytes, &need, &have));
    if (have < 0 || (size_t)have < need)
        return tsr_fail(TSR_ERR_FORMAT,
                        "'%s' has %lld bytes, and %s needs %zu%s: check type and shape, or copy it again", name->file,
                        (long long)file_bytes, name->path, need, form.offset ? " behind its offset" : "");
    if (form.has_offset || (size_t)have == need) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT,
                    "'%s' has %lld bytes, and %s takes %zu: check type and shape, or write %s:%s:0 to read only the "
                    "first",
                    name->file, (long long)file_bytes, name->path, need, name->file, name->path);
}

typedef tsr_status (*describer_of)(const tsr_matrix_name *name, int fd, int64_t file_bytes, tsr_store_desc *desc);

/* The file's state is noted before its first byte is read, and compared after the last. */
static tsr_status describe(const tsr_matrix_name *name, describer_of what, tsr_store_desc *desc) {
    tsr_file_state state;
    tsr_store_desc found;
    int64_t bytes;
    int fd = -1;
    TSR_TRY(tsr_plain_file_open(name->file, &fd, &bytes));
    tsr_status status = tsr_file_state_note(name->file, &state);
    if (status == TSR_OK) status = what(name, fd, bytes, &found);
    const tsr_status same = status == TSR_OK ? tsr_file_state_check(fd, name->file, &state, NULL) : TSR_OK;
    close(fd);
    TSR_TRY(status);
    TSR_TRY(same);
    found.file_state = state;
    found.on_disk = tsr_raw_on_disk(name->file);
    *desc = found;
    return TSR_OK;
}

static tsr_status npy_describe(struct tsr_describer *describer, const tsr_matrix_name *name, tsr_store_desc *desc) {
    (void)describer;
    return describe(name, describe_npy, desc);
}

static tsr_status raw_describe(struct tsr_describer *describer, const tsr_matrix_name *name, tsr_store_desc *desc) {
    (void)describer;
    return describe(name, describe_raw, desc);
}

static bool npy_columns_first(const tsr_matrix_name *name) {
    tsr_npy_header h = {.fortran = false};
    int64_t bytes;
    int fd;
    if (tsr_plain_file_open(name->file, &fd, &bytes) != TSR_OK) return false;
    const bool read = tsr_npy_header_read(fd, name->file, bytes, &h) == TSR_OK;
    close(fd);
    return read && h.fortran;
}

static const char *storage(const tsr_store_desc *desc, char *text, size_t chars) {
    snprintf(text, chars, "contiguous at byte %lld", (long long)desc->offset);
    return text;
}

/* ---- opening --------------------------------------------------------------------------------- */

static tsr_status raw_open(const tsr_store_desc *desc, tsr_io_mode mode, const void *comm, bool write,
                           tsr_io_mode *mode_used, tsr_store **store) {
    (void)comm;
    if (mode == TSR_IO_HDF5 || mode == TSR_IO_MPIO)
        return tsr_fail(TSR_ERR_UNSUPPORTED, "'%s' is not an HDF5 file, and --io %s is for these alone: use --io auto",
                        desc->name.file, tsr_io_mode_name(mode));
    if (!write) TSR_TRY(tsr_file_state_open(desc->name.file, &desc->file_state, NULL));
    TSR_TRY(tsr_direct_open(desc, write, store));
    if (mode_used) *mode_used = TSR_IO_DIRECT;
    return TSR_OK;
}

const tsr_store_kind tsr_npy_kind = {
    .name = "NumPy",
    .forms = "file.npy",
    .claims = npy_claims,
    .columns_first = npy_columns_first,
    .describe = npy_describe,
    .storage = storage,
    .open = raw_open,
    .output = &tsr_npy_output,
};

const tsr_store_kind tsr_raw_kind = {
    .name = "raw",
    .forms = "file.bin:f32:ROWSxCOLS",
    .claims = raw_claims,
    .describe = raw_describe,
    .storage = storage,
    .open = raw_open,
    .output = &tsr_raw_output,
};
