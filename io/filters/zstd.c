/* Zstandard: a chunk is one frame, or several. */
#include "io/filters/filter.h"

#ifdef TSR_HAVE_ZSTD
#include <zstd.h>

#define MIB ((size_t)1 << 20)

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    const size_t got = ZSTD_decompress(to, *to_bytes, from, from_bytes);
    if (ZSTD_isError(got))
        return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes of zstd cannot be decompressed: %s", from_bytes,
                        ZSTD_getErrorName(got));
    *to_bytes = got;
    return TSR_OK;
}

/* Whatever fails is stored as it is, as what does not fit. */
static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    const size_t got = ZSTD_compress(to, *to_bytes, from, from_bytes, (int)use->values[0]);
    *to_bytes = ZSTD_isError(got) ? 0 : got;
    return TSR_OK;
}

/* Tables grow with level and chunk: more than ZSTD_estimateCCtxSize_usingCParams says of any, by 1.5.4. */
static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    size_t window = 1;
    while (window < chunk_bytes) window *= 2;
    const size_t tables = use->values[0] <= 19 && window > MIB * 6 ? 96 * MIB : 16 * window;
    return 4 * MIB + (use->values[0] <= 3 ? 0 : tables);
}
#endif

static const tsr_compression compressions[] = {{.name = "zstd", .least = 1, .most = 22, .usual = 3}, {.name = NULL}};

const tsr_filter tsr_filter_zstd = {
    .id = 32015,
    .name = "zstd",
    .library = "Zstandard",
    .package = "libzstd-dev",
    .h5py = "hdf5plugin",
    .level_shown = true,
    .compressions = compressions,
#ifdef TSR_HAVE_ZSTD
    .undo = undo,
    .undo_bytes = (size_t)192 << 10, /* twice what ZSTD_estimateDCtxSize says of 1.5.4 */
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
