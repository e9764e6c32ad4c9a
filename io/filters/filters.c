/* The table of filters (filter.h), and what is asked of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/filters/filter.h"

/* Filters that have no decoder here, but that h5py reads with hdf5plugin. */
static const tsr_filter zfp = {.id = 32013, .name = "zfp", .h5py = "hdf5plugin"};
static const tsr_filter sz = {.id = 32017, .name = "sz", .h5py = "hdf5plugin"};
static const tsr_filter sz3 = {.id = 32024, .name = "sz3", .h5py = "hdf5plugin"};
static const tsr_filter sperr = {.id = 32028, .name = "sperr", .h5py = "hdf5plugin"};

/* clang-format off */
static const tsr_filter *const filters[] = {
    &tsr_filter_gzip,
    &tsr_filter_shuffle,
    &tsr_filter_fletcher32,
    &tsr_filter_szip,
    &tsr_filter_nbit,
    &tsr_filter_scaleoffset,
    &tsr_filter_lzf,
    &tsr_filter_zstd,
    &tsr_filter_lz4,
    &tsr_filter_bzip2,
    &tsr_filter_bitshuffle,
    &tsr_filter_blosc,
    &zfp,
    &sz,
    &sz3,
    &tsr_filter_blosc2,
    &sperr,
};
/* clang-format on */

int tsr_filter_count(void) { return (int)(sizeof filters / sizeof *filters); }

const tsr_filter *tsr_filter_at(int index) { return filters[index]; }

int tsr_filter_find(int id) {
    for (int i = 0; i < tsr_filter_count(); i++)
        if (filters[i]->id == id) return i;
    return -1;
}

bool tsr_filter_decodes(const tsr_filter_use *use) {
    const tsr_filter *filter = filters[use->filter];
    return (filter->check || filter->undo) && (!filter->understood || filter->understood(use));
}

const char *tsr_filter_text(const tsr_filter_use *use, char *text, size_t chars) {
    const tsr_filter *filter = filters[use->filter];
    if (filter->level_shown) snprintf(text, chars, "%s(%u)", filter->name, use->values[filter->level_at]);
    else snprintf(text, chars, "%s", filter->name);
    return text;
}

/* ---- compressing ----------------------------------------------------------------------------- */

/* The place in the table of the filter that has it. */
static int filter_of(const tsr_compression *how) {
    for (int i = 0; i < tsr_filter_count(); i++)
        for (const tsr_compression *c = filters[i]->compressions; c && c->name; c++)
            if (c == how) return i;
    return -1;
}

static const tsr_compression *compression_called(const char *name, size_t chars) {
    for (int i = 0; i < tsr_filter_count(); i++)
        for (const tsr_compression *c = filters[i]->compressions; c && c->name; c++)
            if (strlen(c->name) == chars && memcmp(c->name, name, chars) == 0) return c;
    return NULL;
}

/* The filter that compresses as asked. */
static tsr_filter_use use_of(const tsr_compress *compress, size_t element_bytes, size_t chunk_bytes) {
    const int filter = filter_of(compress->how);
    tsr_filter_use use = {.count = 1, .values = {(uint32_t)compress->level}};
    if (filters[filter]->choose)
        filters[filter]->choose(compress->how, compress->level, element_bytes, chunk_bytes, &use);
    use.filter = filter;
    return use;
}

/* Whether this build compresses so. */
static bool applies(const tsr_compress *compress) {
    const tsr_filter_use use = use_of(compress, 4, 64);
    return filters[use.filter]->apply && tsr_filter_decodes(&use);
}

/* "gzip[:0-9], zstd[:1-22]": what this build has. */
static const char *list_compressions(char *text, size_t chars) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < tsr_filter_count(); i++)
        for (const tsr_compression *c = filters[i]->compressions; c && c->name && used < chars; c++) {
            if (!applies(&(tsr_compress){.how = c, .level = c->usual})) continue;
            used += (size_t)snprintf(text + used, chars - used, "%s%s", used ? ", " : "", c->name);
            if (c->most > 0 && used < chars)
                used += (size_t)snprintf(text + used, chars - used, "[:%d-%d]", c->least, c->most);
        }
    return text;
}

tsr_status tsr_compress_parse(const char *option, const char *text, tsr_compress *compress) {
    char choices[400], *end = NULL;
    const size_t chars = strcspn(text, ":");
    const tsr_compression *how = compression_called(text, chars);
    const char *level = how && text[chars] ? text + chars + 1 : NULL;
    long number = level ? strtol(level, &end, 10) : 0;
    if (how && !level) number = how->usual;
    const bool digits = !level || (*level >= '0' && *level <= '9' && *end == '\0');
    if (!how || !digits || (level && how->most == 0) || number < how->least || number > how->most)
        return tsr_fail(TSR_ERR_USAGE, "%s %s: choose one of %s", option, text,
                        list_compressions(choices, sizeof choices));
    *compress = (tsr_compress){.how = how, .level = (int)number};
    return TSR_OK;
}

tsr_pipeline tsr_compress_pipeline(const tsr_compress *compress, bool shuffle, size_t element_bytes,
                                   size_t chunk_bytes) {
    tsr_pipeline pipeline = {.count = 0};
    if (shuffle)
        pipeline.use[pipeline.count++] = (tsr_filter_use){
            .filter = tsr_filter_find(tsr_filter_shuffle.id), .count = 1, .values = {(uint32_t)element_bytes}};
    if (compress->how) pipeline.use[pipeline.count++] = use_of(compress, element_bytes, chunk_bytes);
    return pipeline;
}

void tsr_pipeline_add_checksum(tsr_pipeline *pipeline) {
    pipeline->use[pipeline->count++] = (tsr_filter_use){.filter = tsr_filter_find(tsr_filter_fletcher32.id)};
}

size_t tsr_pipeline_added_bytes(const tsr_pipeline *pipeline) {
    size_t bytes = 0;
    for (int f = 0; f < pipeline->count; f++) bytes += (size_t)filters[pipeline->use[f].filter]->adds_bytes;
    return bytes;
}

tsr_status tsr_compress_check(const tsr_compress *compress) {
    const tsr_compression *how = compress->how;
    if (!how) return TSR_OK;
    if (compress->level < how->least || compress->level > how->most)
        return tsr_fail(TSR_ERR_USAGE, "%s has no level %d: use %d to %d", how->name, compress->level, how->least,
                        how->most);
    if (applies(compress)) return TSR_OK;
    const tsr_filter *filter = filters[filter_of(how)];
    return tsr_fail(TSR_ERR_UNSUPPORTED,
                    "the output cannot be compressed: this build has no %s; install %s and build again, or leave "
                    "--compress out",
                    filter->library, filter->package);
}
