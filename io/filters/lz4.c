/* LZ4 as HDF5's filter has it: what the chunk decodes to (8 bytes), the bytes of a block (4), then for each block its
 * stored bytes (4) and these. A block that is stored in as many bytes as it has is not compressed. */
#include <limits.h>
#include <string.h>

#include "io/filters/big_endian.h"
#include "io/filters/filter.h"

#ifdef TSR_HAVE_LZ4
#include <lz4.h>

enum { HEAD_BYTES = 12, LENGTH_BYTES = 4 };

static tsr_status wrong(const char *why) { return tsr_fail(TSR_ERR_FORMAT, "its stream of lz4 %s", why); }

static tsr_status undo_block(const uint8_t *from, size_t stored, uint8_t *to, size_t bytes) {
    if (stored == bytes) {
        memcpy(to, from, bytes);
        return TSR_OK;
    }
    if (stored > INT_MAX || bytes > INT_MAX) return wrong("has blocks of more than 2 GiB");
    const int got = LZ4_decompress_safe((const char *)from, (char *)to, (int)stored, (int)bytes);
    return got == (int)bytes ? TSR_OK : wrong("is cut short or wrong");
}

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    if (from_bytes < HEAD_BYTES) return wrong("has no head");
    const uint64_t total = tsr_big64(from);
    const size_t block = tsr_big32(from + 8);
    if (total > *to_bytes) return wrong("says that it holds more than a chunk");
    if (block == 0 && total > 0) return wrong("has blocks of no bytes");
    size_t at = HEAD_BYTES;
    for (size_t done = 0; done < total;) {
        const size_t bytes = total - done < block ? (size_t)(total - done) : block;
        if (from_bytes - at < LENGTH_BYTES) return wrong("is cut short");
        const size_t stored = tsr_big32(from + at);
        at += LENGTH_BYTES;
        if (stored > from_bytes - at) return wrong("has a block that ends behind it");
        TSR_TRY(undo_block(from + at, stored, to + done, bytes));
        at += stored;
        done += bytes;
    }
    *to_bytes = (size_t)total;
    return TSR_OK;
}

/* What a block takes in `room`: 0 where it does not fit. A block is no more than 1 GiB. */
static size_t apply_block(const uint8_t *from, size_t bytes, uint8_t *to, size_t room) {
    const size_t most = room < bytes ? room : bytes - (bytes > 0); /* as many bytes as it has: not compressed */
    const int got = LZ4_compress_default((const char *)from, (char *)to, (int)bytes, (int)most);
    if (got > 0) return (size_t)got;
    if (room < bytes) return 0;
    memcpy(to, from, bytes);
    return bytes;
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    const size_t room = *to_bytes, wanted = use->values[0] ? use->values[0] : (size_t)1 << 30;
    const size_t block = wanted < from_bytes ? wanted : from_bytes;
    size_t at = HEAD_BYTES;
    *to_bytes = 0;
    if (room < HEAD_BYTES) return TSR_OK;
    tsr_put_big64(to, from_bytes);
    tsr_put_big32(to + 8, (uint32_t)block);
    for (size_t done = 0; done < from_bytes; done += block) {
        const size_t bytes = from_bytes - done < block ? from_bytes - done : block;
        if (room - at < LENGTH_BYTES) return TSR_OK;
        const size_t got = apply_block(from + done, bytes, to + at + LENGTH_BYTES, room - at - LENGTH_BYTES);
        if (got == 0) return TSR_OK;
        tsr_put_big32(to + at, (uint32_t)got);
        at += LENGTH_BYTES + got;
    }
    *to_bytes = at;
    return TSR_OK;
}

static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)use;
    (void)chunk_bytes;
    return (size_t)LZ4_sizeofState();
}
#endif

/* Its value is 0: blocks of 1 GiB, so that a chunk is one. */
static const tsr_compression compressions[] = {{.name = "lz4"}, {.name = NULL}};

const tsr_filter tsr_filter_lz4 = {
    .id = 32004,
    .name = "lz4",
    .library = "LZ4",
    .package = "liblz4-dev",
    .h5py = "hdf5plugin",
    .compressions = compressions,
#ifdef TSR_HAVE_LZ4
    .undo = undo,
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
