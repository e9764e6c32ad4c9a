/* bitshuffle: blocks of elements, of which first the lowest bits of all first bytes are stored, then the next ones, and
 * so on, bare or compressed block by block. Its values: two of its version, the bytes of an element, elements of a
 * block (0: as many as take about 8 KiB), what compresses, and the level.
 * Compressed: what the chunk decodes to (8 bytes) and the bytes of a block (4), then for each block its stored bytes
 * (4) and these. The last block takes what is left in eights of elements; the rest stands as it was. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/filters/big_endian.h"
#include "io/filters/filter.h"
#include "io/filters/shuffle.h"

#ifdef TSR_HAVE_LZ4
#include <lz4.h>
#endif
#ifdef TSR_HAVE_ZSTD
#include <zstd.h>
#endif

enum { HEAD_BYTES = 12, LENGTH_BYTES = 4, EIGHT = 8 };
enum { ELEMENT_AT = 2, BLOCK_AT = 3, CODEC_AT = 4, LEVEL_AT = 5 };
typedef enum { BARE = 0, LZ4 = 2, ZSTD = 3 } codec;

/* ---- bits ------------------------------------------------------------------------------------ */

/* Bits of a and b whose places differ by `shift` change places: those of `mask` in a. */
#define SWAP(a, b, shift, mask)                                                                                        \
    do {                                                                                                               \
        const uint64_t differ = ((a) >> (shift) ^ (b)) & (mask);                                                       \
        (b) ^= differ;                                                                                                 \
        (a) ^= differ << (shift);                                                                                      \
    } while (0)

/* Eight rows of bytes: bit j of byte m of row i becomes bit i of byte m of row j. */
static void transpose_bits(uint8_t *rows, size_t row_bytes) {
    size_t m = 0;
    for (; m + 8 <= row_bytes; m += 8) {
        uint64_t x[8];
        for (int i = 0; i < 8; i++) memcpy(&x[i], rows + (size_t)i * row_bytes + m, 8);
        for (int i = 0; i < 4; i++) SWAP(x[i], x[i + 4], 4, UINT64_C(0x0f0f0f0f0f0f0f0f));
        for (int i = 0; i < 6; i += i == 1 ? 3 : 1) SWAP(x[i], x[i + 2], 2, UINT64_C(0x3333333333333333));
        for (int i = 0; i < 8; i += 2) SWAP(x[i], x[i + 1], 1, UINT64_C(0x5555555555555555));
        for (int i = 0; i < 8; i++) memcpy(rows + (size_t)i * row_bytes + m, &x[i], 8);
    }
    for (; m < row_bytes; m++) {
        uint8_t old[8];
        for (int i = 0; i < 8; i++) old[i] = rows[(size_t)i * row_bytes + m];
        for (int j = 0; j < 8; j++) {
            unsigned byte = 0;
            for (int i = 0; i < 8; i++) byte |= (unsigned)(old[i] >> j & 1) << i;
            rows[(size_t)j * row_bytes + m] = (uint8_t)byte;
        }
    }
}

/* A block of `bytes`, which are whole eights of elements of `width` bytes. `spare` holds as many. Of each byte of an
 * element there are eight rows: one for each bit, and then one for each of eight neighbours. `from` is overwritten. */
static void unshuffle_block(uint8_t *from, size_t bytes, size_t width, uint8_t *spare, uint8_t *to) {
    const size_t elements = bytes / width, row = elements / EIGHT;
    for (size_t b = 0; b < width; b++) {
        transpose_bits(from + b * elements, row);
        tsr_bytes_unshuffle(from + b * elements, elements, spare + b * elements, EIGHT);
    }
    tsr_bytes_unshuffle(spare, bytes, to, width);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static tsr_status wrong(const char *why) { return tsr_fail(TSR_ERR_FORMAT, "its stream of bitshuffle %s", why); }

/* Bytes of the next block where `left` are left; 0: there is none. */
static size_t next_block(size_t left, size_t block, size_t width) {
    return left >= block ? block : left - left % (EIGHT * width);
}

/* Bytes of a block where a file leaves that open. */
static size_t usual_block(size_t width) {
    const size_t elements = 8192 / width / EIGHT * EIGHT;
    return (elements < 128 ? 128 : elements) * width;
}

static codec codec_of(const tsr_filter_use *use) { return use->count > CODEC_AT ? (codec)use->values[CODEC_AT] : BARE; }

static bool understood(const tsr_filter_use *use) {
    if (use->count <= ELEMENT_AT || use->values[ELEMENT_AT] == 0 || use->values[ELEMENT_AT] > 4096) return false;
    switch (codec_of(use)) {
    case BARE: return use->values[BLOCK_AT] % EIGHT == 0;
#ifdef TSR_HAVE_LZ4
    case LZ4: return true;
#endif
#ifdef TSR_HAVE_ZSTD
    case ZSTD: return true;
#endif
    default: return false;
    }
}

static size_t block_of(const tsr_filter_use *use) {
    const size_t width = use->values[ELEMENT_AT], elements = use->count > BLOCK_AT ? use->values[BLOCK_AT] : 0;
    return elements ? elements * width : usual_block(width);
}

/* Two buffers of a block, which is no longer than `bytes` and at least 1. */
static tsr_status take_buffers(size_t block, size_t bytes, uint8_t **buffers, size_t *each) {
    *each = block < bytes ? block : bytes;
    if (*each == 0) *each = 1;
    *buffers = malloc(2 * *each);
    return *buffers ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for blocks of %zu bytes; free some", *each);
}

static bool decompress(codec how, const uint8_t *from, size_t stored, uint8_t *to, size_t bytes) {
    if (stored > INT_MAX || bytes > INT_MAX) return false;
#ifdef TSR_HAVE_LZ4
    if (how == LZ4) return LZ4_decompress_safe((const char *)from, (char *)to, (int)stored, (int)bytes) == (int)bytes;
#endif
#ifdef TSR_HAVE_ZSTD
    if (how == ZSTD) return ZSTD_decompress(to, bytes, from, stored) == bytes;
#endif
    (void)how;
    (void)from;
    (void)to;
    return false;
}

static tsr_status undo_bare(const uint8_t *from, size_t total, size_t block, size_t width, uint8_t *to) {
    uint8_t *buffers;
    size_t each, done = 0;
    TSR_TRY(take_buffers(block, total, &buffers, &each));
    for (size_t bytes; (bytes = next_block(total - done, block, width)) > 0; done += bytes) {
        memcpy(buffers, from + done, bytes);
        unshuffle_block(buffers, bytes, width, buffers + each, to + done);
    }
    memcpy(to + done, from + done, total - done);
    free(buffers);
    return TSR_OK;
}

static tsr_status undo_compressed(codec how, const uint8_t *from, size_t from_bytes, size_t total, size_t block,
                                  size_t width, uint8_t *to) {
    uint8_t *buffers;
    size_t each;
    size_t done = 0, at = HEAD_BYTES;
    TSR_TRY(take_buffers(block, total, &buffers, &each));
    tsr_status status = TSR_OK;
    for (size_t bytes; (bytes = next_block(total - done, block, width)) > 0; done += bytes) {
        if (from_bytes - at < LENGTH_BYTES) TSR_TRY_DONE(wrong("is cut short"));
        const size_t stored = tsr_big32(from + at);
        at += LENGTH_BYTES;
        if (stored > from_bytes - at) TSR_TRY_DONE(wrong("has a block that ends behind it"));
        if (!decompress(how, from + at, stored, buffers, bytes)) TSR_TRY_DONE(wrong("has a block that is wrong"));
        unshuffle_block(buffers, bytes, width, buffers + each, to + done);
        at += stored;
    }
    if (from_bytes - at < total - done) TSR_TRY_DONE(wrong("is cut short"));
    memcpy(to + done, from + at, total - done);
done:
    free(buffers);
    return status;
}

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    const size_t width = use->values[ELEMENT_AT], room = *to_bytes;
    const codec how = codec_of(use);
    if (how != BARE && from_bytes < HEAD_BYTES) return wrong("has no head");
    const uint64_t total = how == BARE ? from_bytes : tsr_big64(from);
    const size_t block = how == BARE ? block_of(use) : tsr_big32(from + 8);
    if (total > room) return wrong("says that it holds more than a chunk");
    if (block == 0 || block % (EIGHT * width) != 0) return wrong("has blocks that are no eights of elements");
    *to_bytes = (size_t)total;
    if (how == BARE) return undo_bare(from, from_bytes, block, width, to);
    return undo_compressed(how, from, from_bytes, (size_t)total, block, width, to);
}

/* ---- the other way --------------------------------------------------------------------------- */

#if defined TSR_HAVE_LZ4 || defined TSR_HAVE_ZSTD
static void shuffle_block(const uint8_t *from, size_t bytes, size_t width, uint8_t *spare, uint8_t *to) {
    const size_t elements = bytes / width, row = elements / EIGHT;
    tsr_bytes_shuffle(from, bytes, spare, width);
    for (size_t b = 0; b < width; b++) {
        tsr_bytes_shuffle(spare + b * elements, elements, to + b * elements, EIGHT);
        transpose_bits(to + b * elements, row);
    }
}

/* 0 where it does not fit. */
static size_t compress(const tsr_filter_use *use, const uint8_t *from, size_t bytes, uint8_t *to, size_t room) {
    if (room > INT_MAX) room = INT_MAX;
#ifdef TSR_HAVE_LZ4
    if (codec_of(use) == LZ4) {
        const int got = LZ4_compress_default((const char *)from, (char *)to, (int)bytes, (int)room);
        return got > 0 ? (size_t)got : 0;
    }
#endif
#ifdef TSR_HAVE_ZSTD
    if (codec_of(use) == ZSTD) {
        const size_t got = ZSTD_compress(to, room, from, bytes, (int)use->values[LEVEL_AT]);
        return ZSTD_isError(got) ? 0 : got;
    }
#endif
    return 0;
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    const size_t width = use->values[ELEMENT_AT], room = *to_bytes;
    const size_t block = block_of(use);
    size_t at = HEAD_BYTES, done = 0;
    size_t each;
    uint8_t *buffers;
    *to_bytes = 0;
    if (room < HEAD_BYTES) return TSR_OK;
    TSR_TRY(take_buffers(block, from_bytes, &buffers, &each));
    tsr_put_big64(to, from_bytes);
    tsr_put_big32(to + 8, (uint32_t)block);
    for (size_t bytes; (bytes = next_block(from_bytes - done, block, width)) > 0; done += bytes) {
        shuffle_block(from + done, bytes, width, buffers + each, buffers);
        const size_t left = room - at;
        const size_t got =
            left > LENGTH_BYTES ? compress(use, buffers, bytes, to + at + LENGTH_BYTES, left - LENGTH_BYTES) : 0;
        if (got == 0) goto done;
        tsr_put_big32(to + at, (uint32_t)got);
        at += LENGTH_BYTES + got;
    }
    if (room - at < from_bytes - done) goto done;
    memcpy(to + at, from + done, from_bytes - done);
    *to_bytes = at + from_bytes - done;
done:
    free(buffers);
    return TSR_OK;
}

/* Blocks of 8 KiB, and for them what LZ4 keeps on the stack, or the tables of Zstandard. */
static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)chunk_bytes;
    return 2 * block_of(use) + (codec_of(use) == ZSTD ? (size_t)4 << 20 : (size_t)32 << 10);
}
#endif

/* As version 0.4 of it, which is the first with Zstandard. */
static void choose(const tsr_compression *how, int level, size_t element_bytes, size_t chunk_bytes,
                   tsr_filter_use *use) {
    (void)chunk_bytes;
    *use = (tsr_filter_use){.count = how->codec == ZSTD ? LEVEL_AT + 1 : CODEC_AT + 1,
                            .values = {0, 4, (uint32_t)element_bytes, 0, how->codec, (uint32_t)level}};
}

static const tsr_compression compressions[] = {
    {.name = "bitshuffle", .codec = LZ4},
    {.name = "bitshuffle-zstd", .codec = ZSTD, .least = 1, .most = 22, .usual = 3},
    {.name = NULL},
};

const tsr_filter tsr_filter_bitshuffle = {
    .id = 32008,
    .name = "bitshuffle",
    .library = "LZ4 or Zstandard",
    .package = "liblz4-dev and libzstd-dev",
    .h5py = "hdf5plugin",
    .understood = understood,
    .undo = undo,
    .compressions = compressions,
    .choose = choose,
#if defined TSR_HAVE_LZ4 || defined TSR_HAVE_ZSTD
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
