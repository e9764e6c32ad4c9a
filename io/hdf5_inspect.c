/* One open dataset: what it is, where its bytes are, and whether it can be multiplied. What would read other files or load
 * code is refused before the library touches it, so the layout comes before the shape. */
#include <stdio.h>
#include <string.h>

#include "io/hdf5_util.h"
#include "io/text.h"

#define CACHE_BYTES_MAX ((size_t)256 << 20)

static tsr_status refuse(tsr_h5_found *found, tsr_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Keeps the first refusal; returns TSR_OK: refusing is a finding, not a failure. */
static tsr_status refuse(tsr_h5_found *found, tsr_status status, const char *format, ...) {
    if (found->status != TSR_OK) return TSR_OK;
    found->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found->refused, sizeof found->refused, format, arguments);
    va_end(arguments);
    return TSR_OK;
}

/* "gzip(4)" and the like behind what `text` holds. */
static void add_filter(char *text, size_t chars, H5Z_filter_t id, const unsigned *values, const char *name) {
    char one[64];
    switch (id) {
    case H5Z_FILTER_DEFLATE: snprintf(one, sizeof one, "gzip(%u)", values[0]); break;
    case H5Z_FILTER_SHUFFLE: snprintf(one, sizeof one, "shuffle"); break;
    case H5Z_FILTER_FLETCHER32: snprintf(one, sizeof one, "fletcher32"); break;
    case H5Z_FILTER_SZIP: snprintf(one, sizeof one, "szip"); break;
    case H5Z_FILTER_NBIT: snprintf(one, sizeof one, "nbit"); break;
    case H5Z_FILTER_SCALEOFFSET: snprintf(one, sizeof one, "scaleoffset"); break;
    default: snprintf(one, sizeof one, "%.40s(%d)", name[0] ? name : "filter", id); break;
    }
    tsr_text_append(text, chars, "%s%s", *text ? " " : "", one);
}

/* Whether this build can decode the filter (plugins are never loaded). */
static bool can_decode(H5Z_filter_t id) {
    unsigned config = 0;
    if (H5Zfilter_avail(id) <= 0) return false;
    return H5Zget_filter_info(id, &config) >= 0 && (config & H5Z_FILTER_CONFIG_DECODE_ENABLED);
}

/* Adds a filter to those that are undone without HDF5; false for one that cannot be. */
static bool add_to_pipeline(tsr_pipeline *pipeline, H5Z_filter_t id, const unsigned *values, size_t count) {
    if (pipeline->count == TSR_FILTERS_MAX) return false;
    tsr_filter *next = &pipeline->filter[pipeline->count];
    if (id == H5Z_FILTER_DEFLATE && tsr_have_deflate()) *next = TSR_FILTER_DEFLATE;
    else if (id == H5Z_FILTER_FLETCHER32) *next = TSR_FILTER_FLETCHER32;
    else if (id == H5Z_FILTER_SHUFFLE && count == 1) *next = TSR_FILTER_SHUFFLE, pipeline->shuffle_bytes = values[0];
    else return false;
    pipeline->count++;
    return true;
}

static tsr_status inspect_filters(hid_t properties, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    int filters = H5Pget_nfilters(properties);
    if (filters < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the filters of '%s'", desc->name.path);
    for (int f = 0; f < filters; f++) {
        unsigned flags, config, values[8] = {0};
        size_t count = 8;
        char name[64] = "";
        H5Z_filter_t id = H5Pget_filter2(properties, (unsigned)f, &flags, &count, values, sizeof name, name, &config);
        if (id < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read filter %d of '%s'", f, desc->name.path);
        add_filter(desc->filters, sizeof desc->filters, id, values, name);
        desc->raw_chunks &= add_to_pipeline(&desc->pipeline, id, values, count);
        if (can_decode(id)) continue;
        if (found->status == TSR_OK) found->filter = id;
        name[strcspn(name, ";")] = '\0'; /* some are followed by an address */
        refuse(found, TSR_ERR_UNSUPPORTED, "its filter %d%s%s%s is not in this HDF5 build, and plugins are not loaded",
               id, name[0] ? " (" : "", name, name[0] ? ")" : "");
    }
    return TSR_OK;
}

/* Layout, chunks and filters; refuses what lives in other files. */
static tsr_status inspect_layout(hid_t dataset, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    hid_t properties = H5Dget_create_plist(dataset);
    if (properties < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the properties of '%s'", desc->name.path);
    tsr_status status = TSR_OK;
    hsize_t chunk[H5S_MAX_RANK] = {0};
    unsigned options = 0;
    int dimensions;
    switch (H5Pget_layout(properties)) {
    case H5D_CONTIGUOUS:
        desc->layout = TSR_LAYOUT_CONTIGUOUS;
        if (H5Pget_external_count(properties) > 0)
            refuse(found, TSR_ERR_FORMAT, "its data is in external files (external storage), which are not read; "
                                          "copy it: h5repack -l CONTI OLD.h5 NEW.h5");
        break;
    case H5D_CHUNKED:
        desc->layout = TSR_LAYOUT_CHUNKED;
        dimensions = H5Pget_chunk(properties, H5S_MAX_RANK, chunk);
        if (dimensions == 2) {
            desc->chunk_rows = (int64_t)chunk[0];
            desc->chunk_cols = (int64_t)chunk[1];
        }
        /* filters may be left out at the edges, without a word in the chunk's own mask */
        desc->raw_chunks = H5Pget_chunk_opts(properties, &options) >= 0 && !(options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
        status = inspect_filters(properties, found);
        break;
    case H5D_COMPACT: desc->layout = TSR_LAYOUT_COMPACT; break;
    case H5D_VIRTUAL:
        desc->layout = TSR_LAYOUT_VIRTUAL;
        refuse(found, TSR_ERR_FORMAT, "it is a virtual dataset, a view of other datasets and files, which are not read; copy it into one dataset");
        break;
    default:
        refuse(found, TSR_ERR_FORMAT, "its storage layout is unknown to this HDF5 build; it needs a newer one");
        break;
    }
    H5Pclose(properties);
    return status;
}

/* Shape: two dimensions, or a refusal that says what there is. */
static tsr_status inspect_shape(hid_t dataset, const char *type, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    hsize_t dims[H5S_MAX_RANK];
    char shape[120] = "";
    hid_t space = H5Dget_space(dataset);
    if (space < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the shape of '%s'", desc->name.path);
    H5S_class_t class = H5Sget_simple_extent_type(space);
    int dimensions = H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    if (class == H5S_NULL) return refuse(found, TSR_ERR_FORMAT, "it is empty (a null dataspace); a matrix has two dimensions, which may be 0");
    if (class == H5S_SCALAR) return refuse(found, TSR_ERR_FORMAT, "it is a scalar of %.80s; a matrix has two dimensions", type);
    if (dimensions < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the shape of '%s'", desc->name.path);
    for (int d = 0; d < dimensions; d++) {
        size_t used = strlen(shape);
        if (used < sizeof shape - 1) snprintf(shape + used, sizeof shape - used, "%s%llu", d ? "x" : "", (unsigned long long)dims[d]);
    }
    if (dimensions != 2)
        return refuse(found, TSR_ERR_FORMAT, "it has %d dimension%s (%s) of %.80s; a matrix has two: %s", dimensions,
                      dimensions == 1 ? "" : "s", shape, type,
                      dimensions == 1 ? "write it as Nx1" : "write each matrix in it as a dataset of its own");
    if (dims[0] > INT64_MAX || dims[1] > INT64_MAX) return refuse(found, TSR_ERR_FORMAT, "its shape %s does not fit 63 bits", shape);
    desc->rows = desc->dataset_rows = (int64_t)dims[0];
    desc->cols = desc->dataset_cols = (int64_t)dims[1];
    return TSR_OK;
}

/* Where the raw bytes are, when they can be read as they stand; checks that the file really holds them. */
static tsr_status inspect_offset(hid_t dataset, int64_t file_bytes, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    size_t bytes;
    TSR_TRY(tsr_bytes_checked(desc->dataset_rows, desc->dataset_cols, tsr_dtype_bytes(desc->element.dtype), &bytes));
    if (desc->layout != TSR_LAYOUT_CONTIGUOUS || !desc->standard) return TSR_OK;
    if (bytes == 0) {
        desc->offset = 0;
        return TSR_OK;
    }
    /* never written: HDF5 gives the fill value. Asked by size: with a user block the offset of such a dataset is not "undefined" */
    if (H5Dget_storage_size(dataset) == 0) return TSR_OK;
    haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) return TSR_OK;
    if (offset > (haddr_t)file_bytes || bytes > (haddr_t)file_bytes - offset)
        return refuse(found, TSR_ERR_FORMAT, "its data should end at byte %llu, but the file has %lld bytes: it is truncated, copy it again",
                      (unsigned long long)(offset + bytes), (long long)file_bytes);
    desc->offset = (int64_t)offset;
    return TSR_OK;
}

/* MATLAB keeps text and cells as numbers too, and says so. */
static void inspect_matlab(hid_t dataset, tsr_h5_found *found) {
    static const char *const others[] = {"char", "cell", "struct", "function_handle", "string", "table", "datetime"};
    char *class = found->desc.matlab_class;
    tsr_h5_text_of(dataset, "MATLAB_class", class, sizeof found->desc.matlab_class);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(class, others[i]) == 0) refuse(found, TSR_ERR_FORMAT, "it is a MATLAB %s array, not numbers; convert it to double", class);
}

/* Room for the chunks of one row of them (reads come in rows), and for decoding more. What HDF5 converts, and chunks beyond one transfer, are left to it. */
static void plan_cache(tsr_store_desc *desc) {
    if (desc->chunk_rows <= 0 || desc->chunk_cols <= 0) {
        desc->raw_chunks = false;
        return;
    }
    double chunk = (double)desc->chunk_rows * (double)desc->chunk_cols * (double)tsr_dtype_bytes(desc->element.dtype);
    double row = chunk * (double)tsr_ceil_div(desc->dataset_cols, desc->chunk_cols);
    desc->raw_chunks &= desc->standard && chunk <= (double)TSR_TRANSFER_BYTES_MAX;
    if (desc->raw_chunks) row += (double)tsr_chunks_bytes(desc, TSR_DECODERS_MAX, TSR_DECODERS_MAX);
    desc->cache_bytes = row < (double)CACHE_BYTES_MAX ? (size_t)row : CACHE_BYTES_MAX;
}

tsr_status tsr_h5_inspect(hid_t dataset, const char *path, int64_t file_bytes, bool allow_incomplete, tsr_h5_found *found) {
    memset(found, 0, sizeof *found);
    tsr_store_desc *desc = &found->desc;
    desc->kind = TSR_STORE_HDF5;
    desc->offset = -1;
    snprintf(desc->name.path, sizeof desc->name.path, "%s", path);
    tsr_h5_type type;
    hid_t id = H5Dget_type(dataset);
    if (id < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the element type of '%s'", path);
    tsr_h5_type_of(id, &type);
    H5Tclose(id);
    desc->element = type.element;
    desc->standard = type.standard;
    snprintf(desc->type_name, sizeof desc->type_name, "%.63s", type.name);

    TSR_TRY(inspect_layout(dataset, found));
    if (desc->layout == TSR_LAYOUT_VIRTUAL) return TSR_OK; /* asking for its shape could open other files */
    tsr_h5_found storage = *found;
    found->status = TSR_OK; /* what it is comes before how it is stored */
    TSR_TRY(inspect_shape(dataset, type.name, found));
    if (!type.usable) refuse(found, TSR_ERR_FORMAT, "it holds %s; %s", type.name, type.hint);
    inspect_matlab(dataset, found);
    desc->octave = tsr_h5_is_octave(dataset, path);
    plan_cache(desc);
    found->matrix = found->status == TSR_OK;
    if (found->status != TSR_OK) found->filter = 0;
    if (storage.status != TSR_OK) refuse(found, storage.status, "%s", storage.refused);
    if (!allow_incomplete && H5Aexists(dataset, TSR_INCOMPLETE) > 0)
        refuse(found, TSR_ERR_FORMAT, "it is marked incomplete: the run that was writing it did not finish; run it again");
    if (found->status == TSR_OK) TSR_TRY(inspect_offset(dataset, file_bytes, found));
    if (desc->offset < 0 && !desc->raw_chunks) desc->element.swapped = false; /* HDF5 delivers this machine's order */
    return TSR_OK;
}
