/* gzip, which HDF5 calls deflate: streams of zlib. libdeflate works on whole ones, zlib sees how long one is. */
#include <limits.h>
#include <stdio.h>

#include "io/filters/filter.h"

#ifdef TSR_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef TSR_HAVE_ZLIB
#include <zlib.h>

const char *tsr_zlib_version(char *text, size_t chars) {
    snprintf(text, chars, "%s", zlibVersion());
    return text;
}

/* Takes 64 KiB. */
static bool holds_more(const uint8_t *from, size_t from_bytes, size_t most) {
    uint8_t window[32768];
    size_t bytes = 0, left = from_bytes;
    z_stream z = {.next_in = (Bytef *)from};
    int error = inflateInit(&z);
    while (error == Z_OK && bytes <= most) {
        if (z.avail_in == 0 && left > 0) {
            z.avail_in = (uInt)(left < UINT_MAX ? left : UINT_MAX);
            left -= z.avail_in;
        }
        z.next_out = window;
        z.avail_out = sizeof window;
        error = inflate(&z, Z_NO_FLUSH);
        bytes += sizeof window - z.avail_out;
    }
    inflateEnd(&z);
    return bytes > most;
}
#else
const char *tsr_zlib_version(char *text, size_t chars) {
    if (chars > 0) text[0] = '\0';
    return text;
}
#endif

#ifdef TSR_HAVE_LIBDEFLATE
#define ENCODE_BYTES ((size_t)1 << 20) /* its tables at levels up to 9 */

static tsr_status no_memory(size_t bytes) {
    return tsr_fail(TSR_ERR_MEMORY, "no memory to work on %zu bytes of gzip; free some", bytes);
}

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (!decompressor) return no_memory(from_bytes);
    const enum libdeflate_result result =
        libdeflate_zlib_decompress(decompressor, from, from_bytes, to, *to_bytes, to_bytes);
    libdeflate_free_decompressor(decompressor);
    if (result == LIBDEFLATE_SUCCESS) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "its %zu compressed bytes %s", from_bytes,
                    result == LIBDEFLATE_INSUFFICIENT_SPACE ? "hold more than a chunk" : "are cut short or wrong");
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor((int)use->values[0]);
    if (!compressor) return no_memory(from_bytes);
    *to_bytes = libdeflate_zlib_compress(compressor, from, from_bytes, to, *to_bytes);
    libdeflate_free_compressor(compressor);
    return TSR_OK;
}
#elif defined TSR_HAVE_ZLIB
#define ENCODE_BYTES ((size_t)300 << 10) /* zlib's window and tables */

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    uLongf got = (uLongf)*to_bytes;
    int error = uncompress(to, &got, from, (uLong)from_bytes);
    *to_bytes = (size_t)got;
    if (error == Z_OK) return TSR_OK;
    if (error == Z_MEM_ERROR)
        return tsr_fail(TSR_ERR_MEMORY, "no memory to decompress %zu bytes; free some", from_bytes);
    return tsr_fail(TSR_ERR_FORMAT, "its %zu compressed bytes %s", from_bytes,
                    error == Z_BUF_ERROR ? "hold more than a chunk or end early" : "are cut short or wrong");
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    const int level = (int)use->values[0];
    uLongf room = (uLongf)*to_bytes;
    int error = compress2(to, &room, from, (uLong)from_bytes, level);
    *to_bytes = error == Z_OK ? (size_t)room : 0;
    if (error == Z_OK || error == Z_BUF_ERROR) return TSR_OK;
    if (error == Z_MEM_ERROR) return tsr_fail(TSR_ERR_MEMORY, "no memory to compress %zu bytes; free some", from_bytes);
    return tsr_fail(TSR_ERR_USAGE, "zlib cannot compress %zu bytes at level %d (its error %d); use a level from 0 to 9",
                    from_bytes, level, error);
}
#endif

#ifdef ENCODE_BYTES
static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)use;
    (void)chunk_bytes;
    return ENCODE_BYTES;
}
#endif

static const tsr_compression compressions[] = {{.name = "gzip", .most = 9, .usual = 4}, {.name = NULL}};

const tsr_filter tsr_filter_gzip = {
    .id = 1,
    .name = "gzip",
    .library = "zlib",
    .package = "zlib1g-dev",
    .h5py = "",
    .level_shown = true,
    .unbounded = true,
    .compressions = compressions,
#ifdef TSR_HAVE_ZLIB
    .holds_more = holds_more,
#endif
#ifdef ENCODE_BYTES
    .undo = undo,
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
