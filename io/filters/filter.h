/* HDF5's filters. Those with a decoder here are undone without HDF5, and so by several threads at once. Each is one
 * file with one constant at its end, and one line in filters.c; a library that CMake does not find leaves its entry
 * points NULL. Calls no HDF5. */
#ifndef TSR_IO_FILTERS_FILTER_H
#define TSR_IO_FILTERS_FILTER_H

#include "kernels/base/base.h"

#define TSR_FILTERS_MAX 4       /* of one dataset, where they are undone here */
#define TSR_FILTER_VALUES_MAX 8 /* parameters of one filter that are kept */

/* A filter as a dataset states it. Plain memory. */
typedef struct {
    int filter;                             /* its place in the table */
    int count;                              /* of the values that the file states */
    uint32_t values[TSR_FILTER_VALUES_MAX]; /* what HDF5 calls client data; 0 where there are fewer */
} tsr_filter_use;

/* Filters in the order in which they were applied. Plain memory. */
typedef struct {
    int count;
    tsr_filter_use use[TSR_FILTERS_MAX];
} tsr_pipeline;

/* A way to compress, as --compress names it. */
typedef struct {
    const char *name;
    uint32_t codec;         /* the filter's own number for it, where it has several */
    int least, most, usual; /* levels; `most` 0: it has none */
} tsr_compression;

typedef struct {
    int id; /* HDF5's number */
    const char *name;
    const char *library, *package; /* which undoes it, and the Debian package to build with; NULL: neither is needed */
    const char *h5py;              /* the module with which h5py reads it, "" for h5py alone; NULL: none is known */
    bool level_shown;              /* values[level_at] is a level, which `tessera info` shows */
    int level_at;
    bool unbounded;  /* HDF5 unpacks whatever a stream holds */
    bool keeps_size; /* bytes change places only */
    int adds_bytes;  /* behind the others, as it encodes; a chunk may not do without this filter then */

    /* What HDF5 is about to undo, looked at before. NULL: there is nothing to see. */
    bool (*holds_more)(const uint8_t *from, size_t from_bytes, size_t most); /* false for damaged bytes, too */
    bool (*states_more)(const tsr_filter_use *use, double chunk_elements, int64_t element_bytes);

    /* Decoding: one of `check` and `undo`. NULL: HDF5 alone, or nobody, undoes it. */
    bool (*understood)(const tsr_filter_use *use); /* NULL: whatever its values are */
    /* For a filter that only adds bytes at the end: takes them off and compares them. */
    tsr_status (*check)(const uint8_t *data, size_t *bytes);
    /* *to_bytes: room on entry, never exceeded, whatever `from` says; what came out on return. TSR_ERR_FORMAT for
     * damage: its message follows "the chunk at ...: ". */
    tsr_status (*undo)(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes);
    size_t undo_bytes; /* memory beside the buffers */

    /* Encoding. `compressions` ends with one without a name; NULL: not for --compress. `choose` makes the values; NULL:
     * the level is the only one. */
    const tsr_compression *compressions;
    void (*choose)(const tsr_compression *how, int level, size_t element_bytes, size_t chunk_bytes,
                   tsr_filter_use *use);
    /* As undo. Of a compressor, *to_bytes 0 on return where what comes out does not fit the room. */
    tsr_status (*apply)(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes);
    size_t (*apply_bytes)(const tsr_filter_use *use, size_t chunk_bytes); /* memory beside the buffers; NULL: none */
} tsr_filter;

/* ---- the table ------------------------------------------------------------------------------- */

int tsr_filter_count(void);
const tsr_filter *tsr_filter_at(int index);
/* By HDF5's number; -1 for one that the table lacks. */
int tsr_filter_find(int id);
/* Whether a dataset that states this is decoded here. */
bool tsr_filter_decodes(const tsr_filter_use *use);
/* "gzip(4)"; returns text. */
const char *tsr_filter_text(const tsr_filter_use *use, char *text, size_t chars);

/* ---- compressing ----------------------------------------------------------------------------- */

/* What --compress asks for. */
typedef struct {
    const tsr_compression *how; /* NULL: none */
    int level;
} tsr_compress;

/* "zstd:3", or a name alone. TSR_ERR_USAGE names the choices. */
tsr_status tsr_compress_parse(const char *option, const char *text, tsr_compress *compress);
/* The filters of chunks of `chunk_bytes`, that hold elements of `element_bytes`. */
tsr_pipeline tsr_compress_pipeline(const tsr_compress *compress, bool shuffle, size_t element_bytes,
                                   size_t chunk_bytes);
/* A checksum of what the others leave: the last of them (fletcher32). */
void tsr_pipeline_add_checksum(tsr_pipeline *pipeline);
/* That filters add to each chunk, besides what they encode. */
size_t tsr_pipeline_added_bytes(const tsr_pipeline *pipeline);
/* TSR_ERR_USAGE for a level that is not there, TSR_ERR_UNSUPPORTED for a library that this build lacks. */
tsr_status tsr_compress_check(const tsr_compress *compress);

/* ---- the codecs ------------------------------------------------------------------------------ */

/* The zlib that is loaded, "" where this build has none. Returns text. */
const char *tsr_zlib_version(char *text, size_t chars);

extern const tsr_filter tsr_filter_gzip, tsr_filter_shuffle, tsr_filter_fletcher32;
extern const tsr_filter tsr_filter_lzf, tsr_filter_zstd, tsr_filter_lz4, tsr_filter_bzip2;
extern const tsr_filter tsr_filter_bitshuffle, tsr_filter_blosc, tsr_filter_blosc2;
/* Undone by HDF5 alone, or by nobody but h5py. */
extern const tsr_filter tsr_filter_szip, tsr_filter_nbit, tsr_filter_scaleoffset;

#endif
