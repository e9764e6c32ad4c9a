/* Blosc (version 1), with whichever of its codecs the library has. */
#include "io/filters/filter.h"

enum { BLOSC_LZ4_CODE = 1, BLOSC_LZ4HC_CODE = 2, BLOSC_ZLIB_CODE = 4, BLOSC_ZSTD_CODE = 5 };

#ifdef TSR_HAVE_BLOSC
#include <blosc.h>

enum { TYPE_AT = 2, LEVEL_AT = 4, SHUFFLE_AT = 5, CODEC_AT = 6 };

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    size_t bytes = 0;
    if (from_bytes < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(from, from_bytes, &bytes) < 0)
        return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes of blosc are cut short or wrong", from_bytes);
    if (bytes > *to_bytes)
        return tsr_fail(TSR_ERR_FORMAT, "its stream of blosc says that it holds more than a chunk: %zu bytes", bytes);
    const int got = bytes > 0 ? blosc_decompress_ctx(from, to, *to_bytes, 1) : 0;
    if (got < 0 || (size_t)got != bytes)
        return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes of blosc cannot be decompressed: the library gives %d",
                        from_bytes, got);
    *to_bytes = bytes;
    return TSR_OK;
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    const char *codec = NULL;
    if (blosc_compcode_to_compname((int)use->values[CODEC_AT], &codec) < 0)
        return tsr_fail(TSR_ERR_UNSUPPORTED,
                        "the installed library Blosc was built without the codec %s; use --compress blosc", codec);
    const int got = blosc_compress_ctx((int)use->values[LEVEL_AT], (int)use->values[SHUFFLE_AT], use->values[TYPE_AT],
                                       from_bytes, from, to, *to_bytes, codec, 0, 1);
    *to_bytes = got > 0 ? (size_t)got : 0;
    return TSR_OK;
}

/* Its blocks are parts of a chunk; three of them at once, and the codec's tables. */
static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)use;
    return 3 * chunk_bytes + ((size_t)8 << 20);
}
#endif

/* The filter's version and the format's, then what blosc_compress takes; 1: bytes are shuffled. */
static void choose(const tsr_compression *how, int level, size_t element_bytes, size_t chunk_bytes,
                   tsr_filter_use *use) {
    *use = (tsr_filter_use){
        .count = 7, .values = {2, 2, (uint32_t)element_bytes, (uint32_t)chunk_bytes, (uint32_t)level, 1, how->codec}};
}

static const tsr_compression compressions[] = {
    {.name = "blosc", .codec = BLOSC_LZ4_CODE, .least = 1, .most = 9, .usual = 5},
    {.name = "blosc-lz4hc", .codec = BLOSC_LZ4HC_CODE, .least = 1, .most = 9, .usual = 5},
    {.name = "blosc-zlib", .codec = BLOSC_ZLIB_CODE, .least = 1, .most = 9, .usual = 5},
    {.name = "blosc-zstd", .codec = BLOSC_ZSTD_CODE, .least = 1, .most = 9, .usual = 5},
    {.name = NULL},
};

const tsr_filter tsr_filter_blosc = {
    .id = 32001,
    .name = "blosc",
    .library = "Blosc",
    .package = "libblosc-dev",
    .h5py = "hdf5plugin",
    .compressions = compressions,
    .choose = choose,
#ifdef TSR_HAVE_BLOSC
    .undo = undo,
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
