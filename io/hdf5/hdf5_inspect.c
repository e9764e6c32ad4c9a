/* One open dataset: what it is, where its bytes are, and whether it can be multiplied. What would read other files
 * or load code is refused before the library touches it, so the layout comes before the shape. */
#include <stdio.h>
#include <string.h>

#include "io/chunks/store_chunks.h"
#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/access/hdf5_path.h"
#include "io/hdf5/access/hdf5_type.h"
#include "io/hdf5/external/mapping.h"
#include "io/hdf5/hdf5_foreign.h"
#include "io/hdf5/hdf5_inspect.h"
#include "io/hdf5/hdf5_memory.h"
#include "io/hdf5/hdf5_place.h"
#include "io/text/text.h"

#define CACHE_BYTES_MAX ((size_t)256 << 20)

static tsr_status refuse(tsr_h5_found *found, tsr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

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

/* "gzip(4)" and the like behind what `text` holds; `name`: what the file calls a filter that the table lacks. */
static void add_filter(char *text, size_t chars, H5Z_filter_t id, const tsr_filter_use *use, const char *name) {
    char one[64];
    if (use->filter >= 0) tsr_filter_text(use, one, sizeof one);
    else snprintf(one, sizeof one, "%.40s(%d)", name[0] ? name : "filter", id);
    tsr_text_append(text, chars, "%s%s", *text ? " " : "", one);
}

/* Whether this build can decode the filter (plugins where their folder is named). */
static bool can_decode(H5Z_filter_t id) {
    unsigned config = 0;
    if (H5Zfilter_avail(id) <= 0) return false;
    return H5Zget_filter_info(id, &config) >= 0 && (config & H5Z_FILTER_CONFIG_DECODE_ENABLED);
}

/* Adds a filter to those that are undone without HDF5; false for one that cannot be. */
static bool add_to_pipeline(tsr_pipeline *pipeline, const tsr_filter_use *use) {
    if (pipeline->count == TSR_FILTERS_MAX || use->filter < 0 || !tsr_filter_decodes(use)) return false;
    pipeline->use[pipeline->count++] = *use;
    return true;
}

/* Whether a filter's own parameters say that it unpacks more than a chunk has. */
static bool says_too_much(const tsr_store_desc *desc, const tsr_filter_use *use) {
    if (use->filter < 0 || !tsr_filter_at(use->filter)->states_more) return false;
    return tsr_filter_at(use->filter)->states_more(use, tsr_chunk_elements(desc), desc->hdf5.stored_bytes);
}

/* Whether HDF5 has it from here, but without what decodes this dataset. */
static bool lacks_codec(const tsr_filter_use *use) {
    return use->filter >= 0 && tsr_filter_at(use->filter)->package && tsr_filter_at(use->filter)->undo &&
           !tsr_filter_decodes(use);
}

/* `known`: the filter in the table, NULL where that lacks it. */
static void refuse_filter(tsr_h5_found *found, H5Z_filter_t id, const char *name, const tsr_filter *known) {
    char why[160] = "plugins are not loaded unless --plugins names their folder";
    if (known && known->package)
        snprintf(why, sizeof why, "it takes %s: install %s and build again", known->library, known->package);
    else if (tsr_h5_plugin_folders())
        snprintf(why, sizeof why, "no plugin in the folders of " TSR_PLUGIN_FOLDERS " or --plugins has it");
    refuse(found, TSR_ERR_UNSUPPORTED, "its filter %d%s%s%s is not in this build, and %s", id, name[0] ? " (" : "",
           name, name[0] ? ")" : "", why);
}

static tsr_status inspect_filters(hid_t properties, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    int filters = H5Pget_nfilters(properties);
    if (filters < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the filters of '%s'", desc->name.path);
    for (int f = 0; f < filters; f++) {
        unsigned flags, config;
        size_t count = TSR_FILTER_VALUES_MAX;
        char name[64] = "";
        tsr_filter_use use = {.count = 0};
        const H5Z_filter_t id =
            H5Pget_filter2(properties, (unsigned)f, &flags, &count, use.values, sizeof name, name, &config);
        if (id < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read filter %d of '%s'", f, desc->name.path);
        use.filter = tsr_filter_find(id);
        use.count = (int)tsr_min((int64_t)count, INT32_MAX);
        add_filter(desc->hdf5.filters, sizeof desc->hdf5.filters, id, &use, name);
        desc->hdf5.raw_chunks &= add_to_pipeline(&desc->hdf5.pipeline, &use);
        if (says_too_much(desc, &use))
            refuse(found, TSR_ERR_FORMAT,
                   "its filter '%.40s' would unpack more than a chunk has: it is damaged, copy it again",
                   desc->hdf5.filters);
        if (can_decode(id) && !lacks_codec(&use)) continue;
        if (found->status == TSR_OK) found->filter = id;
        name[strcspn(name, ";")] = '\0'; /* some are followed by an address */
        refuse_filter(found, id, name, use.filter >= 0 ? tsr_filter_at(use.filter) : NULL);
    }
    return TSR_OK;
}

/* What HDF5 gives where nothing was written, in the file's own type or the one that is converted to; 0 when the file
 * defines none. */
static void inspect_fill(hid_t dataset, tsr_store_desc *desc) {
    const hid_t properties = H5Dget_create_plist(dataset);
    const hid_t type =
        desc->hdf5.standard ? H5Dget_type(dataset) : tsr_h5_memory_type(desc->element.dtype, desc->fields);
    if (properties < 0 || type < 0 || H5Tget_size(type) > sizeof desc->hdf5.unwritten ||
        H5Pget_fill_value(properties, type, desc->hdf5.unwritten) < 0)
        memset(desc->hdf5.unwritten, 0, sizeof desc->hdf5.unwritten);
    if (type >= 0) H5Tclose(type);
    if (properties >= 0) H5Pclose(properties);
}

/* What names other datasets or files, none of which is opened. */
static void inspect_places(hid_t properties, tsr_h5_found *found) {
    const char *refused = NULL;
    tsr_h5_places(properties, &found->desc, &found->outside, &refused);
    if (refused) refuse(found, TSR_ERR_FORMAT, "%s", refused);
    else if (!found->desc.hdf5.standard)
        refuse(found, TSR_ERR_FORMAT, "it holds %s in several places, and only what needs no conversion is read so",
               found->desc.type_name);
}

void tsr_h5_refuse_outside(tsr_h5_found *found) {
    if (!found->outside) return;
    const bool is_virtual = found->desc.hdf5.layout == TSR_LAYOUT_VIRTUAL;
    found->status = TSR_OK;
    found->filter = 0;
    refuse(found, TSR_ERR_FORMAT, "it %s (%s), which needs --allow-external%s",
           is_virtual ? "is a virtual dataset that reads other files" : "has its data in external files",
           found->desc.hdf5.reads,
           is_virtual ? "" : " (external storage); or copy it: h5repack -l CONTI OLD.h5 NEW.h5");
}

/* Layout, chunks and filters. What lives in other files is found, and they are not opened. */
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
        desc->hdf5.layout = TSR_LAYOUT_CONTIGUOUS;
        if (H5Pget_external_count(properties) > 0) inspect_places(properties, found);
        break;
    case H5D_CHUNKED:
        desc->hdf5.layout = TSR_LAYOUT_CHUNKED;
        dimensions = H5Pget_chunk(properties, H5S_MAX_RANK, chunk);
        if (dimensions >= 1) {
            desc->dataset_dimensions = dimensions;
            desc->chunk_rows = (int64_t)chunk[dimensions == 1 ? 0 : dimensions - 2];
            desc->chunk_cols = dimensions == 1 ? 1 : (int64_t)chunk[dimensions - 1];
        }
        /* filters may be left out at the edges, without a word in the chunk's own mask */
        desc->hdf5.raw_chunks =
            H5Pget_chunk_opts(properties, &options) >= 0 && !(options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
        for (int d = 0; d < tsr_leads_of(dimensions); d++) {
            desc->lead_chunk[d] = (int64_t)chunk[d];
            desc->hdf5.raw_chunks &= chunk[d] == 1; /* else parts of several matrices lie in each */
        }
        status = inspect_filters(properties, found);
        break;
    case H5D_COMPACT: desc->hdf5.layout = TSR_LAYOUT_COMPACT; break;
    case H5D_VIRTUAL:
        desc->hdf5.layout = TSR_LAYOUT_VIRTUAL;
        inspect_places(properties, found);
        break;
    default:
        refuse(found, TSR_ERR_FORMAT, "its storage layout is unknown to this HDF5 build; it needs a newer one");
        break;
    }
    H5Pclose(properties);
    return status;
}

/* Any number of dimensions, or a refusal that says what there is. */
static tsr_status inspect_shape(hid_t dataset, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    hsize_t dims[H5S_MAX_RANK];
    char shape[120] = "";
    hid_t space = H5Dget_space(dataset);
    if (space < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the shape of '%s'", desc->name.path);
    H5S_class_t class = H5Sget_simple_extent_type(space);
    int dimensions = H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    if (class == H5S_NULL)
        return refuse(found, TSR_ERR_FORMAT,
                      "it is empty (a null dataspace); a matrix has two dimensions, which may be 0");
    if (dimensions < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the shape of '%s'", desc->name.path);
    for (int d = 0; d < dimensions; d++) {
        size_t used = strlen(shape);
        if (used < sizeof shape - 1)
            snprintf(shape + used, sizeof shape - used, "%s%llu", d ? "x" : "", (unsigned long long)dims[d]);
    }
    if (desc->chunk_rows > 0 && desc->dataset_dimensions != dimensions)
        return refuse(found, TSR_ERR_FORMAT,
                      "it has %d dimensions and its chunks have %d: it is damaged, copy it again", dimensions,
                      desc->dataset_dimensions);
    for (int d = 0; d < dimensions; d++)
        if (dims[d] > INT64_MAX) return refuse(found, TSR_ERR_FORMAT, "its shape %s does not fit 63 bits", shape);
    tsr_shape whole = {.dimensions = dimensions};
    for (int d = 0; d < dimensions; d++) whole.size[d] = (int64_t)dims[d];
    const tsr_status counted = tsr_store_set_shape(desc, &whole);
    size_t bytes;
    if (counted == TSR_OK && tsr_dataset_bytes(desc, &bytes)) return TSR_OK;
    tsr_message_set(""); /* the refusal says it */
    (void)tsr_store_set_shape(desc, &(tsr_shape){2, {0, 0}});
    return refuse(found, TSR_ERR_FORMAT, "its shape %s is impossible: so many elements take more than 2^63 bytes",
                  shape);
}

/* Where the raw bytes are, when they can be read as they stand; checks that the file really holds them. */
static tsr_status inspect_offset(hid_t dataset, int64_t file_bytes, tsr_h5_found *found) {
    tsr_store_desc *desc = &found->desc;
    size_t bytes;
    if (desc->hdf5.layout != TSR_LAYOUT_CONTIGUOUS || !desc->hdf5.standard || desc->hdf5.scattered) return TSR_OK;
    if (!tsr_dataset_bytes(desc, &bytes) || bytes == 0) {
        desc->offset = 0;
        return TSR_OK;
    }
    /* never written: HDF5 gives the fill value. Asked by size: with a user block the offset of such a dataset is not
     * "undefined" */
    if (H5Dget_storage_size(dataset) == 0) return TSR_OK;
    haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) return TSR_OK;
    if (offset > (haddr_t)file_bytes || bytes > (haddr_t)file_bytes - offset)
        return refuse(found, TSR_ERR_FORMAT,
                      "its data should end at byte %llu, but the file has %lld bytes: it is truncated, copy it again",
                      (unsigned long long)(offset + bytes), (long long)file_bytes);
    desc->offset = (int64_t)offset;
    return TSR_OK;
}

/* HDF5 copies compact data without a look at how much of it there is. */
static void inspect_compact(hid_t dataset, size_t element, tsr_h5_found *found) {
    const tsr_store_desc *desc = &found->desc;
    const hsize_t stored = H5Dget_storage_size(dataset);
    size_t read;
    if (desc->hdf5.layout != TSR_LAYOUT_COMPACT || !tsr_dataset_bytes(desc, &read)) return;
    const size_t elements = read / tsr_dtype_bytes(desc->element.dtype);
    const double need = (double)elements * (double)element;
    if ((double)stored >= need) return;
    refuse(found, TSR_ERR_FORMAT,
           "its data should take %.0f bytes, and %llu are there: the file is damaged, copy it again", need,
           (unsigned long long)stored);
}

/* One element, through the conversion to it. Of chunks, which may be large and which filters decode, the fill value. */
static bool read_first(hid_t dataset, hid_t type, const tsr_store_desc *desc) {
    const tsr_h5_place first = {{0}}, one = tsr_h5_extent(desc, 1, 1);
    uint64_t element[TSR_ELEMENT_BYTES_MAX / sizeof(uint64_t)];
    hid_t properties = -1;
    hid_t space = -1;
    hid_t memory = -1;
    herr_t error = -1;
    if (desc->hdf5.layout == TSR_LAYOUT_CHUNKED) {
        properties = H5Dget_create_plist(dataset);
        if (properties >= 0) (void)H5Pget_fill_value(properties, type, element); /* a file need not define one */
        error = 0;
    } else if (desc->dataset_dimensions == 0) {
        error = H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, element);
    } else if ((space = H5Dget_space(dataset)) >= 0 &&
               (memory = H5Screate_simple(desc->dataset_dimensions, one.at, NULL)) >= 0 &&
               H5Sselect_hyperslab(space, H5S_SELECT_SET, first.at, NULL, one.at, NULL) >= 0) {
        error = H5Dread(dataset, type, memory, space, H5P_DEFAULT, element);
    }
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    if (properties >= 0) H5Pclose(properties);
    return error >= 0;
}

/* What HDF5 will do in the job is tried here: better it fails, or crashes, now. */
static void try_reading(hid_t dataset, tsr_h5_found *found) {
    const tsr_store_desc *desc = &found->desc;
    if (found->status != TSR_OK || desc->offset >= 0 || desc->hdf5.raw_chunks || desc->rows == 0 || desc->cols == 0 ||
        desc->matrices == 0)
        return;
    if (desc->hdf5.scattered) return; /* its places are looked at one by one */
    const hid_t type = tsr_h5_memory_type(desc->element.dtype, desc->fields);
    if (type < 0 || !read_first(dataset, type, desc))
        refuse(found, TSR_ERR_FORMAT, "its elements cannot be read: the file may be damaged, copy it again");
    if (type >= 0) H5Tclose(type);
}

/* MATLAB keeps text and cells as numbers too, and says so. */
static void inspect_matlab(hid_t dataset, tsr_h5_found *found) {
    static const char *const others[] = {"char", "cell", "struct", "function_handle", "string", "table", "datetime"};
    char *class = found->desc.hdf5.matlab_class;
    tsr_h5_text_of(dataset, "MATLAB_class", class, sizeof found->desc.hdf5.matlab_class);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(class, others[i]) == 0)
            refuse(found, TSR_ERR_FORMAT, "it is a MATLAB %s array, not numbers; convert it to double", class);
    if (H5Aexists(dataset, "MATLAB_empty") > 0)
        refuse(found, TSR_ERR_FORMAT, "it is the shape of an empty MATLAB array, which has no elements");
}

/* Elements that stand for others, as netCDF says. A scale of 1, an offset of 0 and unsigned types that are such say
 * nothing. */
static void inspect_packing(hid_t dataset, tsr_store_desc *desc) {
    double scale, offset;
    char text[8] = "";
    if (tsr_dtype_facts_of(desc->element.dtype)->kind == TSR_DTYPE_SIGNED)
        tsr_h5_text_of(dataset, "_Unsigned", text, sizeof text);
    const struct {
        const char *name;
        bool packs;
    } all[] = {{"scale_factor", tsr_h5_number_of(dataset, "scale_factor", &scale) && scale != 1},
               {"add_offset", tsr_h5_number_of(dataset, "add_offset", &offset) && offset != 0},
               {"_Unsigned", strcasecmp(text, "true") == 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].packs)
            tsr_text_append(desc->packed, sizeof desc->packed, "%s%s", *desc->packed ? ", " : "", all[i].name);
}

/* Room for the chunks of one row of them (reads come in rows), and for decoding more. Chunks beyond one transfer are
 * left to HDF5. */
static void plan_cache(tsr_store_desc *desc) {
    if (desc->chunk_rows <= 0 || desc->chunk_cols <= 0) {
        desc->hdf5.raw_chunks = false;
        return;
    }
    const size_t element = tsr_dtype_bytes(desc->element.dtype), stored = tsr_stored_bytes(desc);
    double chunk = tsr_chunk_elements(desc) * (double)(stored > element ? stored : element);
    double row = chunk * (double)tsr_ceil_div(desc->dataset_cols, desc->chunk_cols);
    if (!desc->hdf5.standard && tsr_dtype_is_complex(desc->element.dtype)) desc->hdf5.raw_chunks = false;
    desc->hdf5.raw_chunks &= !desc->rounded && chunk <= (double)TSR_TRANSFER_BYTES_MAX; /* HDF5 counts what overflows */
    if (desc->hdf5.raw_chunks) row += (double)tsr_chunks_bytes(desc, TSR_DECODERS_MAX, TSR_DECODERS_MAX);
    const size_t wanted = row < (double)CACHE_BYTES_MAX ? (size_t)row : CACHE_BYTES_MAX;
    const size_t least = tsr_hdf5_least_bytes(desc, TSR_IO_AUTO);
    desc->cache_bytes = wanted > least ? wanted : least;
}

tsr_status tsr_h5_inspect(hid_t dataset, const char *path, int64_t file_bytes, bool allow_incomplete,
                          tsr_h5_found *found) {
    memset(found, 0, sizeof *found);
    tsr_store_desc *desc = &found->desc;
    desc->offset = -1;
    desc->hdf5.header_address = tsr_h5_address(dataset);
    snprintf(desc->name.path, sizeof desc->name.path, "%s", path);
    tsr_h5_type type;
    hid_t id = H5Dget_type(dataset);
    if (id < 0) return tsr_h5_fail(TSR_ERR_FORMAT, "cannot read the element type of '%s'", path);
    tsr_h5_type_of(id, &type);
    desc->hdf5.stored_bytes = (int64_t)H5Tget_size(id);
    H5Tclose(id);
    desc->element = type.element;
    desc->hdf5.standard = type.standard;
    desc->fields = type.fields;
    desc->rounded = type.rounded;
    snprintf(desc->type_name, sizeof desc->type_name, "%.63s", type.name);

    TSR_TRY(inspect_layout(dataset, found));
    /* asking for the shape of what has no end could open other files */
    if (desc->hdf5.layout == TSR_LAYOUT_VIRTUAL && found->status != TSR_OK) return TSR_OK;
    tsr_h5_found storage = *found;
    found->status = TSR_OK; /* what it is comes before how it is stored */
    TSR_TRY(inspect_shape(dataset, found));
    const char *other;
    desc->hdf5.octave = tsr_h5_is_octave(dataset, path, &other);
    if (other) refuse(found, TSR_ERR_FORMAT, "%s", other);
    if (!type.usable) refuse(found, TSR_ERR_FORMAT, "it holds %s; %s", type.name, type.hint);
    inspect_matlab(dataset, found);
    inspect_packing(dataset, desc);
    plan_cache(desc);
    if (tsr_chunk_elements(desc) * (double)desc->hdf5.stored_bytes > UINT32_MAX)
        refuse(found, TSR_ERR_FORMAT, "its chunks of %lldx%lld take 4 GiB or more, as HDF5 has none: it is damaged",
               (long long)desc->chunk_rows, (long long)desc->chunk_cols);
    if (desc->hdf5.raw_chunks) inspect_fill(dataset, desc);
    found->matrix = found->status == TSR_OK;
    if (found->status != TSR_OK) found->filter = 0;
    if (storage.status != TSR_OK) refuse(found, storage.status, "%s", storage.refused);
    if (!allow_incomplete && H5Aexists(dataset, TSR_INCOMPLETE) > 0)
        refuse(found, TSR_ERR_FORMAT,
               "it is marked incomplete: the run that was writing it did not finish; run it again");
    inspect_compact(dataset, (size_t)desc->hdf5.stored_bytes, found);
    if (found->status == TSR_OK) TSR_TRY(inspect_offset(dataset, file_bytes, found));
    try_reading(dataset, found);
    if (found->status != TSR_OK) { /* nobody reads it */
        desc->cache_bytes = 0;
        desc->hdf5.raw_chunks = false;
    }
    if (desc->offset < 0 && !desc->hdf5.raw_chunks)
        desc->element.swapped = false; /* HDF5 delivers this machine's order */
    return TSR_OK;
}
