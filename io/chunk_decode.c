/* Deflate, shuffle and fletcher32 undone (chunk_decode.h). */
#include "io/chunk_decode.h"

#include <stdio.h>
#include <string.h>

#ifdef TSR_HAVE_ZLIB
#include <zlib.h>
#endif

bool tsr_have_deflate(void) {
#ifdef TSR_HAVE_ZLIB
    return true;
#else
    return false;
#endif
}

const char *tsr_zlib_version(char *text, size_t chars) {
#ifdef TSR_HAVE_ZLIB
    snprintf(text, chars, "%s", zlibVersion());
#else
    if (chars > 0) text[0] = '\0';
#endif
    return text;
}

/* *to_bytes: room on entry, what came out on return. */
static tsr_status inflate_bytes(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t *to_bytes) {
#ifdef TSR_HAVE_ZLIB
    uLongf got = (uLongf)*to_bytes;
    int error = uncompress(to, &got, from, (uLong)from_bytes);
    *to_bytes = (size_t)got;
    if (error == Z_OK) return TSR_OK;
    if (error == Z_MEM_ERROR) return tsr_fail(TSR_ERR_MEMORY, "no memory to decompress %zu bytes; free some", from_bytes);
    return tsr_fail(TSR_ERR_FORMAT, "its %zu compressed bytes %s", from_bytes,
                    error == Z_BUF_ERROR ? "hold more than a chunk or end early" : "are cut short or wrong");
#else
    (void)from, (void)from_bytes, (void)to, (void)to_bytes;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "this build cannot decompress: it was made without zlib; use --io hdf5");
#endif
}

/* Byte b of element i stands at from[b · elements + i]; what is left over after the last whole element stands as it was. */
#define UNSHUFFLE(width)                                                                                              \
    for (size_t i = 0; i < elements; i++)                                                                             \
        for (size_t b = 0; b < (width); b++) to[i * (width) + b] = from[b * elements + i]

static void unshuffle(const uint8_t *restrict from, size_t bytes, uint8_t *restrict to, size_t width) {
    size_t elements = width ? bytes / width : 0;
    switch (width) { /* a constant width is a vector loop */
    case 0: break;
    case 2: UNSHUFFLE(2); break;
    case 4: UNSHUFFLE(4); break;
    case 8: UNSHUFFLE(8); break;
    default: UNSHUFFLE(width); break;
    }
    memcpy(to + elements * width, from + elements * width, bytes - elements * width);
}

static uint32_t fold(uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

/* Fletcher's sum over big-endian 16-bit words, as H5_checksum_fletcher32 computes it. */
static uint32_t fletcher32(const uint8_t *data, size_t bytes) {
    uint32_t sum1 = 0, sum2 = 0;
    for (size_t words = bytes / 2; words > 0;) {
        size_t now = words < 360 ? words : 360; /* more could overflow sum2 */
        words -= now;
        for (; now > 0; now--, data += 2) {
            sum1 += (uint32_t)data[0] << 8 | data[1];
            sum2 += sum1;
        }
        sum1 = fold(sum1), sum2 = fold(sum2);
    }
    if (bytes % 2) {
        sum1 += (uint32_t)*data << 8;
        sum2 += sum1;
        sum1 = fold(sum1), sum2 = fold(sum2);
    }
    return fold(sum2) << 16 | fold(sum1);
}

/* The sum stands behind the data, little-endian; HDF5 up to 1.6.2 swapped the bytes of each half. */
static tsr_status check_sum(const uint8_t *data, size_t *bytes) {
    if (*bytes < 4) return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes are too few for a checksum", *bytes);
    *bytes -= 4;
    const uint8_t *at = data + *bytes;
    uint32_t stored = (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0], sum = fletcher32(data, *bytes);
    uint32_t old = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
    if (stored == sum || stored == old) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "its checksum (fletcher32) is %08x, its bytes give %08x", stored, sum);
}

tsr_status tsr_chunk_decode(const tsr_pipeline *pipeline, uint32_t skip, uint8_t *stored, size_t stored_bytes, uint8_t *spare, uint8_t *chunk, size_t chunk_bytes) {
    uint8_t *now = stored, *next = spare;
    size_t bytes = stored_bytes, room = tsr_chunk_stored_max(chunk_bytes);
    for (int f = pipeline->count - 1; f >= 0; f--) {
        if (skip >> f & 1) continue;
        if (pipeline->filter[f] == TSR_FILTER_FLETCHER32) {
            TSR_TRY(check_sum(now, &bytes));
            continue;
        }
        if (pipeline->filter[f] == TSR_FILTER_DEFLATE) {
            size_t got = room;
            TSR_TRY(inflate_bytes(now, bytes, next, &got));
            bytes = got;
        } else {
            unshuffle(now, bytes, next, pipeline->shuffle_bytes);
        }
        uint8_t *other = now;
        now = next, next = other;
    }
    if (bytes != chunk_bytes) return tsr_fail(TSR_ERR_FORMAT, "it decodes to %zu bytes where a chunk has %zu", bytes, chunk_bytes);
    memcpy(chunk, now, chunk_bytes);
    return TSR_OK;
}
