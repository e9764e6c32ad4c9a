/* Shuffle and deflate applied (chunk_encode.h). */
#include "io/chunk_encode.h"

#include <string.h>

#ifdef TSR_HAVE_ZLIB
#include <zlib.h>
#endif

/* *to_bytes: what came out, 0 where that is no less than from_bytes. */
static tsr_status deflate_bytes(const uint8_t *from, size_t from_bytes, int level, uint8_t *to, size_t *to_bytes) {
#ifdef TSR_HAVE_ZLIB
    uLongf room = (uLongf)from_bytes - (from_bytes > 0); /* more saves nothing */
    int error = compress2(to, &room, from, (uLong)from_bytes, level);
    *to_bytes = error == Z_OK ? (size_t)room : 0;
    if (error == Z_OK || error == Z_BUF_ERROR) return TSR_OK;
    if (error == Z_MEM_ERROR) return tsr_fail(TSR_ERR_MEMORY, "no memory to compress %zu bytes; free some", from_bytes);
    return tsr_fail(TSR_ERR_USAGE, "zlib cannot compress %zu bytes at level %d (its error %d); use a level from 0 to 9", from_bytes, level, error);
#else
    (void)from, (void)level, (void)to, (void)to_bytes;
    return tsr_fail(TSR_ERR_UNSUPPORTED, "cannot compress %zu bytes: this build has no zlib; install zlib1g-dev and build again", from_bytes);
#endif
}

/* Byte b of element i goes to to[b · elements + i]; what is left over after the last whole element stands as it was. */
#define SHUFFLE(width)                                                                                                \
    for (size_t b = 0; b < (width); b++)                                                                              \
        for (size_t i = 0; i < elements; i++) to[b * elements + i] = from[i * (width) + b]

static void shuffle(const uint8_t *restrict from, size_t bytes, uint8_t *restrict to, size_t width) {
    size_t elements = width ? bytes / width : 0;
    switch (width) { /* a constant width is a vector loop */
    case 0: break;
    case 2: SHUFFLE(2); break;
    case 4: SHUFFLE(4); break;
    case 8: SHUFFLE(8); break;
    default: SHUFFLE(width); break;
    }
    memcpy(to + elements * width, from + elements * width, bytes - elements * width);
}

tsr_status tsr_chunk_encode(const tsr_pipeline *pipeline, int level, uint8_t *chunk, size_t chunk_bytes, uint8_t *spare, const uint8_t **stored,
                            size_t *stored_bytes, uint32_t *skipped) {
    uint8_t *now = chunk, *next = spare;
    size_t bytes = chunk_bytes;
    uint32_t mask = 0;
    for (int f = 0; f < pipeline->count; f++) {
        if (pipeline->filter[f] == TSR_FILTER_FLETCHER32) return tsr_fail(TSR_ERR_UNSUPPORTED, "checksums (fletcher32) are read, not written");
        if (pipeline->filter[f] == TSR_FILTER_DEFLATE) {
            size_t got = 0;
            TSR_TRY(deflate_bytes(now, bytes, level, next, &got));
            if (got == 0) {
                mask |= 1u << f;
                continue;
            }
            bytes = got;
        } else {
            shuffle(now, bytes, next, pipeline->shuffle_bytes);
        }
        uint8_t *other = now;
        now = next, next = other;
    }
    *stored = now, *stored_bytes = bytes, *skipped = mask;
    return TSR_OK;
}
