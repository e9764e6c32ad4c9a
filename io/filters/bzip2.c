/* bzip2: a chunk is one stream. */
#include <limits.h>

#include "io/filters/filter.h"

#ifdef TSR_HAVE_BZIP2
#include <bzlib.h>

/* The library counts in unsigned int. */
static unsigned as_unsigned(size_t bytes) { return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX; }

static tsr_status no_memory(size_t bytes) {
    return tsr_fail(TSR_ERR_MEMORY, "no memory to work on %zu bytes of bzip2; free some", bytes);
}

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    unsigned got = as_unsigned(*to_bytes);
    const int error = BZ2_bzBuffToBuffDecompress((char *)to, &got, (char *)from, as_unsigned(from_bytes), 0, 0);
    *to_bytes = got;
    if (error == BZ_OK) return TSR_OK;
    if (error == BZ_MEM_ERROR) return no_memory(from_bytes);
    return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes of bzip2 %s", from_bytes,
                    error == BZ_OUTBUFF_FULL ? "hold more than a chunk" : "are cut short or wrong");
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    unsigned got = as_unsigned(*to_bytes);
    const int error =
        BZ2_bzBuffToBuffCompress((char *)to, &got, (char *)from, as_unsigned(from_bytes), (int)use->values[0], 0, 0);
    *to_bytes = error == BZ_OK ? got : 0;
    return error == BZ_MEM_ERROR ? no_memory(from_bytes) : TSR_OK;
}

/* As its manual says: 400 kB, and eight times a block. */
static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)chunk_bytes;
    return 400000 + 800000 * (size_t)use->values[0];
}
#endif

static const tsr_compression compressions[] = {{.name = "bzip2", .least = 1, .most = 9, .usual = 9}, {.name = NULL}};

const tsr_filter tsr_filter_bzip2 = {
    .id = 307,
    .name = "bzip2",
    .library = "libbz2",
    .package = "libbz2-dev",
    .h5py = "hdf5plugin",
    .level_shown = true,
    .compressions = compressions,
#ifdef TSR_HAVE_BZIP2
    .undo = undo,
    .undo_bytes = 3700000, /* as its manual says, of blocks of 900 kB */
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
