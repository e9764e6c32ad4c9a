/* Blosc 2: a chunk is a frame that holds one chunk of its own, plain or as blocks of several dimensions (B2ND). The
 * frame is read by hand: the library would load code where a frame names a codec or filter that it lacks. What it is
 * given to decompress names those that it has. */
#include "io/filters/filter.h"

enum { BLOSC2_LZ4_CODE = 1, BLOSC2_ZSTD_CODE = 5 };

#ifdef TSR_HAVE_BLOSC2
#include <blosc2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "io/filters/big_endian.h"

enum { TYPE_AT = 2, LEVEL_AT = 4, SHUFFLE_AT = 5, CODEC_AT = 6 };
enum { DIMENSIONS_MAX = 8, FRAME_HEAD = 87, CHUNK_HEAD = 32 };
#define BLOCK_BYTES_MAX ((size_t)16 << 20)

static void start(void) { blosc2_init(); }
static pthread_once_t started = PTHREAD_ONCE_INIT;

/* ---- frames ---------------------------------------------------------------------------------- */

/* What the one chunk of a frame holds: plain (no dimensions), or blocks of this shape, each whole and one behind the
 * other, of which those at the end reach beyond the chunk. */
typedef struct {
    const uint8_t *chunk; /* in the frame */
    size_t bytes, room;   /* that it takes at most, that it unpacks to */
    size_t element_bytes;
    int dimensions;
    size_t shape[DIMENSIONS_MAX], block[DIMENSIONS_MAX];
} frame;

static tsr_status wrong(const char *what) {
    return tsr_fail(TSR_ERR_FORMAT, "its frame of Blosc 2 is cut short or wrong: %s", what);
}

/* So many numbers behind a byte that says how many there are; each has a byte before it that says its kind. */
static bool take_shape(const uint8_t **at, const uint8_t *end, int count, int bytes, size_t *shape) {
    if (end - *at < 1 + count * (1 + bytes) || **at != (0x90 | count)) return false;
    ++*at;
    for (int d = 0; d < count; d++, *at += 1 + bytes) {
        const uint64_t size = bytes == 8 ? tsr_big64(*at + 1) : tsr_big32(*at + 1);
        if (size < 1 || size > INT32_MAX) return false;
        shape[d] = (size_t)size;
    }
    return true;
}

/* The layer "b2nd": the shapes of the array, of its chunks and of their blocks. The array is one chunk. */
static bool read_shapes(const uint8_t *at, const uint8_t *end, frame *f) {
    size_t array[DIMENSIONS_MAX];
    if (end - at < 8 || at[0] != 0xc6) return false;
    at += 5;
    if (at[0] < 0x95 || at[0] > 0x9f || at[2] < 1 || at[2] > DIMENSIONS_MAX) return false;
    f->dimensions = at[2];
    at += 3;
    if (!take_shape(&at, end, f->dimensions, 8, array) || !take_shape(&at, end, f->dimensions, 4, f->shape) ||
        !take_shape(&at, end, f->dimensions, 4, f->block))
        return false;
    for (int d = 0; d < f->dimensions; d++)
        if (array[d] != f->shape[d]) return false;
    return true;
}

/* Looks among the frame's layers for the one of arrays. */
static bool find_shapes(const uint8_t *from, size_t head, frame *f) {
    const uint8_t *at = from + FRAME_HEAD, *end = from + head;
    if (end - at < 7 || at[0] != 0x93 || at[4] != 0xde) return true; /* it has none */
    int layers = at[5] << 8 | at[6];
    for (at += 7; layers > 0; layers--) {
        const size_t name = end - at > 0 ? at[0] & 0x1f : 0;
        if (end - at < 1 || (at[0] & 0xe0) != 0xa0 || (size_t)(end - at) < name + 6) return false;
        const size_t place = tsr_big32(at + 2 + name);
        if (name == 4 && memcmp(at + 1, "b2nd", 4) == 0) return place < head && read_shapes(from + place, end, f);
        at += 6 + name;
    }
    return true;
}

static tsr_status read_frame(const uint8_t *from, size_t from_bytes, frame *f) {
    *f = (frame){.dimensions = 0};
    if (from_bytes < FRAME_HEAD + CHUNK_HEAD || memcmp(from + 1,
                                                       "\xa8"
                                                       "b2frame",
                                                       8) != 0)
        return wrong("its head");
    const size_t head = tsr_big32(from + 11);
    const uint64_t unpacked = tsr_big64(from + 30), packed = tsr_big64(from + 39);
    if (tsr_big64(from + 16) > from_bytes) return wrong("its end is missing");
    if (head < FRAME_HEAD || head > from_bytes - CHUNK_HEAD || packed > from_bytes - head) return wrong("its size");
    if (unpacked != tsr_big32(from + 58)) return wrong("it has not one chunk");
    f->chunk = from + head;
    f->bytes = from_bytes - head;
    if (!find_shapes(from, head, f)) return wrong("its shape");
    return TSR_OK;
}

/* Only what the library has without loading anything. */
static tsr_status check_chunk(frame *f) {
    int32_t unpacked, packed, block;
    if (blosc2_cbuffer_sizes(f->chunk, &unpacked, &packed, &block) < 0 || unpacked < 1 || packed < CHUNK_HEAD ||
        (size_t)packed > f->bytes)
        return wrong("its chunk");
    if ((f->chunk[2] & 5) != 5 || f->chunk[2] >> 5 > BLOSC_ZSTD_FORMAT) return wrong("its codec");
    for (int i = 0; i < BLOSC2_MAX_FILTERS; i++)
        if (f->chunk[16 + i] >= BLOSC_LAST_FILTER) return wrong("its filters");
    f->bytes = (size_t)packed;
    f->room = (size_t)unpacked;
    f->element_bytes = f->chunk[3];
    return f->element_bytes > 0 ? TSR_OK : wrong("its element");
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Elements of a chunk and of a block, and how many blocks there are; false where they do not fit what is unpacked. */
static bool count_blocks(const frame *f, size_t *elements, size_t *of_block, size_t *blocks) {
    *elements = *of_block = *blocks = 1;
    for (int d = 0; d < f->dimensions; d++) {
        const size_t across = (f->shape[d] + f->block[d] - 1) / f->block[d];
        if (f->block[d] > f->shape[d] || __builtin_mul_overflow(*elements, f->shape[d], elements) ||
            __builtin_mul_overflow(*of_block, f->block[d], of_block) || __builtin_mul_overflow(*blocks, across, blocks))
            return false;
    }
    size_t all;
    return !__builtin_mul_overflow(*of_block, *blocks, &all) && !__builtin_mul_overflow(all, f->element_bytes, &all) &&
           all == f->room;
}

/* Copies block `number` to where its rows belong in the chunk. */
static void place_block(const frame *f, size_t number, const uint8_t *block, uint8_t *to) {
    const int last = f->dimensions - 1;
    size_t first[DIMENSIONS_MAX], count[DIMENSIONS_MAX], at[DIMENSIONS_MAX] = {0};
    for (int d = last; d >= 0; d--) {
        const size_t across = (f->shape[d] + f->block[d] - 1) / f->block[d];
        first[d] = number % across * f->block[d];
        number /= across;
        count[d] = f->shape[d] - first[d] < f->block[d] ? f->shape[d] - first[d] : f->block[d];
    }
    for (int d = 0; d >= 0;) {
        size_t row = 0, source = 0;
        for (d = 0; d <= last; d++) {
            row = row * f->shape[d] + first[d] + at[d];
            source = source * f->block[d] + at[d];
        }
        memcpy(to + row * f->element_bytes, block + source * f->element_bytes, count[last] * f->element_bytes);
        for (d = last - 1; d >= 0 && ++at[d] == count[d]; d--) at[d] = 0;
    }
}

/* Whether blocks are differences to the first one: then they are unpacked together. */
static bool is_delta(const frame *f) {
    bool is = false;
    for (int i = 0; i < BLOSC2_MAX_FILTERS; i++) is |= f->chunk[16 + i] == BLOSC_DELTA;
    return is;
}

/* Elements [first, first + count) of what the chunk unpacks to. */
static bool unpack(const frame *f, blosc2_context *context, size_t first, size_t count, uint8_t *to) {
    const int32_t bytes = (int32_t)(count * f->element_bytes);
    const int got = (size_t)bytes == f->room
                        ? blosc2_decompress_ctx(context, f->chunk, (int32_t)f->bytes, to, bytes)
                        : blosc2_getitem_ctx(context, f->chunk, (int32_t)f->bytes, (int)first, (int)count, to, bytes);
    return got == bytes;
}

static tsr_status undo_blocks(const frame *f, blosc2_context *context, uint8_t *to, size_t *to_bytes) {
    size_t elements, of_block, blocks;
    if (!count_blocks(f, &elements, &of_block, &blocks)) return wrong("its blocks");
    const size_t at_once = is_delta(f) ? blocks : 1, bytes = at_once * of_block * f->element_bytes;
    if (elements * f->element_bytes > *to_bytes)
        return tsr_fail(TSR_ERR_FORMAT, "its frame of Blosc 2 says that it holds more than a chunk: %zu bytes",
                        elements * f->element_bytes);
    if (bytes > BLOCK_BYTES_MAX) return wrong("its blocks are too large, 16 MiB at most, all together with delta");
    uint8_t *unpacked = malloc(bytes);
    if (!unpacked) return tsr_fail(TSR_ERR_MEMORY, "no memory for a block of %zu bytes of Blosc 2; free some", bytes);
    tsr_status status = TSR_OK;
    for (size_t b = 0; b < blocks && status == TSR_OK; b += at_once) {
        if (!unpack(f, context, b * of_block, at_once * of_block, unpacked))
            status = wrong("a block cannot be decompressed");
        for (size_t i = 0; i < at_once && status == TSR_OK; i++)
            place_block(f, b + i, unpacked + i * of_block * f->element_bytes, to);
    }
    free(unpacked);
    *to_bytes = elements * f->element_bytes;
    return status;
}

static tsr_status undo_plain(const frame *f, blosc2_context *context, uint8_t *to, size_t *to_bytes) {
    if (f->room > *to_bytes)
        return tsr_fail(TSR_ERR_FORMAT, "its frame of Blosc 2 says that it holds more than a chunk: %zu bytes",
                        f->room);
    const int got = blosc2_decompress_ctx(context, f->chunk, (int32_t)f->bytes, to, (int32_t)*to_bytes);
    if (got < 0 || (size_t)got != f->room) return wrong("it cannot be decompressed");
    *to_bytes = f->room;
    return TSR_OK;
}

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    frame f;
    (void)use;
    pthread_once(&started, start);
    TSR_TRY(read_frame(from, from_bytes, &f));
    TSR_TRY(check_chunk(&f));
    blosc2_dparams parameters = BLOSC2_DPARAMS_DEFAULTS;
    parameters.nthreads = 1;
    blosc2_context *context = blosc2_create_dctx(parameters);
    if (!context) return tsr_fail(TSR_ERR_MEMORY, "no memory to decompress with Blosc 2; free some");
    bool whole = true; /* one block is the chunk as it is */
    for (int d = 0; d < f.dimensions; d++) whole &= f.block[d] == f.shape[d];
    const tsr_status status = whole ? undo_plain(&f, context, to, to_bytes) : undo_blocks(&f, context, to, to_bytes);
    blosc2_free_ctx(context);
    return status;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* The frame of one plain chunk; 0: none. The caller frees it where *owned. */
static int64_t make_frame(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, blosc2_schunk **chunks,
                          uint8_t **made, bool *owned) {
    blosc2_cparams packing = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams unpacking = BLOSC2_DPARAMS_DEFAULTS;
    packing.typesize = (int32_t)use->values[TYPE_AT];
    packing.clevel = (uint8_t)use->values[LEVEL_AT];
    packing.compcode = (uint8_t)use->values[CODEC_AT];
    packing.filters[BLOSC2_MAX_FILTERS - 1] = (uint8_t)use->values[SHUFFLE_AT];
    packing.nthreads = 1;
    unpacking.nthreads = 1;
    blosc2_storage storage = {.contiguous = true, .cparams = &packing, .dparams = &unpacking};
    *chunks = blosc2_schunk_new(&storage);
    if (!*chunks || blosc2_schunk_append_buffer(*chunks, from, (int32_t)from_bytes) != 1) return 0;
    return blosc2_schunk_to_buffer(*chunks, made, owned);
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    blosc2_schunk *chunks = NULL;
    uint8_t *made = NULL;
    bool owned = false;
    pthread_once(&started, start);
    const int64_t got = make_frame(use, from, from_bytes, &chunks, &made, &owned);
    const bool fits = got > 0 && (uint64_t)got <= *to_bytes;
    if (fits) memcpy(to, made, (size_t)got);
    *to_bytes = fits ? (size_t)got : 0;
    if (owned) free(made);
    if (chunks) blosc2_schunk_free(chunks);
    return TSR_OK;
}

/* The frame, its blocks, and the codec's tables. */
static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)use;
    return 3 * chunk_bytes + ((size_t)8 << 20);
}
#endif

/* The filter's version, the library's choice of blocks, then what it takes; 1: bytes are shuffled. */
static void choose(const tsr_compression *how, int level, size_t element_bytes, size_t chunk_bytes,
                   tsr_filter_use *use) {
    *use = (tsr_filter_use){
        .count = 7, .values = {1, 0, (uint32_t)element_bytes, (uint32_t)chunk_bytes, (uint32_t)level, 1, how->codec}};
}

static const tsr_compression compressions[] = {
    {.name = "blosc2", .codec = BLOSC2_LZ4_CODE, .least = 1, .most = 9, .usual = 5},
    {.name = "blosc2-zstd", .codec = BLOSC2_ZSTD_CODE, .least = 1, .most = 9, .usual = 5},
    {.name = NULL},
};

const tsr_filter tsr_filter_blosc2 = {
    .id = 32026,
    .name = "blosc2",
    .library = "Blosc 2",
    .package = "libblosc2-dev",
    .h5py = "hdf5plugin",
    .compressions = compressions,
    .choose = choose,
#ifdef TSR_HAVE_BLOSC2
    .undo = undo,
    .undo_bytes = BLOCK_BYTES_MAX,
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
