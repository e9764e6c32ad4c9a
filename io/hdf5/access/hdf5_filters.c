/* Decoders of ours as HDF5's filters (hdf5_filters.h). */
#include "io/hdf5/access/hdf5_filters.h"

#include <H5PLextern.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/chunks/chunk_decode.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/name.h"

/* Bytes that a decoder gives. Other filters add a little to a chunk, and HDF5 reads all of one, however little came. */
static size_t least, most;

void tsr_h5_filters_expect(size_t chunk_bytes, bool partly) {
    least = partly ? 0 : chunk_bytes;
    most = tsr_chunk_stored_max(chunk_bytes);
}

/* H5Z_func_t of the table's filter `index`: 0 for failure. It never encodes, which leaves a chunk as it is: chunks are
 * encoded by threads (io/output/output_chunks.h). */
static size_t run(int index, unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,
                  void **data) {
    tsr_filter_use use = {.filter = index, .count = (int)count};
    if (!(flags & H5Z_FLAG_REVERSE)) return 0;
    for (size_t i = 0; i < count && i < TSR_FILTER_VALUES_MAX; i++) use.values[i] = values[i];
    size_t got = most;
    void *to = H5allocate_memory(most, true);
    if (!to) return 0;
    if (!tsr_filter_decodes(&use) || tsr_filter_at(index)->undo(&use, *data, bytes, to, &got) != TSR_OK ||
        got < least) {
        H5free_memory(to);
        return 0;
    }
    H5free_memory(*data);
    *data = to;
    *room = most;
    return got;
}

/* HDF5 does not say which filter it calls: each place in the table has a function of its own. */
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define DEFINE(index)                                                                                                  \
    static size_t run_##index(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,        \
                              void **data) {                                                                           \
        return run(index, flags, count, values, bytes, room, data);                                                    \
    }
EACH(DEFINE)
#define NAME(index) run_##index,
static const H5Z_func_t functions[] = {EACH(NAME)};
#define PLACES (int)(sizeof functions / sizeof *functions)

void tsr_h5_filters_register(void) {
    for (int i = 0; i < tsr_filter_count() && i < PLACES; i++) {
        const tsr_filter *filter = tsr_filter_at(i);
        const H5Z_class2_t class = {.version = H5Z_CLASS_T_VERS,
                                    .id = filter->id,
                                    .encoder_present = 1,
                                    .decoder_present = 1,
                                    .name = filter->name,
                                    .filter = functions[i]};
        if (filter->undo && H5Zfilter_avail(filter->id) <= 0) H5Zregister(&class);
    }
}

/* ---- plugins --------------------------------------------------------------------------------- */

#define CHECKSUM_BYTES 16 /* fletcher32's four, and some more */

/* Plugins that HDF5 has loaded, called by functions of ours. */
static struct {
    H5Z_filter_t id;
    H5Z_func_t filter;
} plugins[PLACES];
static int plugin_count;

static size_t run_plugin(int index, unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,
                         void **data) {
    const size_t got = plugins[index].filter(flags, count, values, bytes, room, data);
    if (!(flags & H5Z_FLAG_REVERSE)) return got;
    /* what other filters have added is a checksum, unless they have packed it */
    const size_t bound = least > 0 ? least + CHECKSUM_BYTES : most;
    return got >= least && got <= bound && got <= *room ? got : 0;
}

#define DEFINE_PLUGIN(index)                                                                                           \
    static size_t plugin_##index(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,     \
                                 void **data) {                                                                        \
        return run_plugin(index, flags, count, values, bytes, room, data);                                             \
    }
EACH(DEFINE_PLUGIN)
#define PLUGIN_NAME(index) plugin_##index,
static const H5Z_func_t plugin_functions[] = {EACH(PLUGIN_NAME)};

/* What a file that HDF5 has loaded gives as filter `id`; NULL for any other file. */
static const H5Z_class2_t *class_in(const char *file, H5Z_filter_t id) {
    const H5Z_class2_t *class = NULL;
    void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return NULL;
    H5PL_type_t (*type)(void);
    const void *(*info)(void);
    *(void **)&type = dlsym(library, "H5PLget_plugin_type");
    *(void **)&info = dlsym(library, "H5PLget_plugin_info");
    if (type && info && type() == H5PL_TYPE_FILTER) class = info();
    dlclose(library); /* HDF5 still has it */
    return class && class->version == H5Z_CLASS_T_VERS && class->id == id ? class : NULL;
}

static const H5Z_class2_t *class_in_folder(const char *folder, H5Z_filter_t id) {
    const H5Z_class2_t *class = NULL;
    char file[TSR_FILE_CHARS];
    DIR *files = opendir(folder);
    if (!files) return NULL;
    for (const struct dirent *one = readdir(files); one && !class; one = readdir(files))
        if (snprintf(file, sizeof file, "%s/%s", folder, one->d_name) < (int)sizeof file) class = class_in(file, id);
    closedir(files);
    return class;
}

/* Folders are named one behind the other, with colons between them. */
static const H5Z_class2_t *find_class(H5Z_filter_t id) {
    const H5Z_class2_t *class = NULL;
    char folder[TSR_FILE_CHARS];
    const char *at = tsr_h5_plugin_folders();
    while (at && *at && !class) {
        const size_t chars = strcspn(at, ":");
        if (snprintf(folder, sizeof folder, "%.*s", (int)chars, at) < (int)sizeof folder)
            class = class_in_folder(folder, id);
        at += chars + (at[chars] == ':');
    }
    return class;
}

static void bound_plugin(H5Z_filter_t id) {
    for (int i = 0; i < plugin_count; i++)
        if (plugins[i].id == id) return;
    if (plugin_count == PLACES || H5Zfilter_avail(id) <= 0) return; /* that loads it */
    const H5Z_class2_t *class = find_class(id);
    if (!class) return;
    plugins[plugin_count].id = id;
    plugins[plugin_count].filter = class->filter;
    H5Z_class2_t bounded = *class;
    bounded.filter = plugin_functions[plugin_count++];
    H5Zregister(&bounded); /* in its place */
}

void tsr_h5_filters_bound(hid_t dataset) {
    const hid_t properties = H5Dget_create_plist(dataset);
    const int filters = properties >= 0 && H5Pget_layout(properties) == H5D_CHUNKED ? H5Pget_nfilters(properties) : 0;
    for (int f = 0; f < filters; f++) {
        unsigned flags;
        size_t count = 0;
        const H5Z_filter_t id = H5Pget_filter2(properties, (unsigned)f, &flags, &count, NULL, 0, NULL, NULL);
        const int ours = id >= 0 ? tsr_filter_find(id) : -1;
        if (id > H5Z_FILTER_RESERVED && (ours < 0 || !tsr_filter_at(ours)->undo)) bound_plugin(id);
    }
    if (properties >= 0) H5Pclose(properties);
}
