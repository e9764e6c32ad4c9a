/* lzf, which h5py brings: a chunk is one stream of LibLZF. */
#include <errno.h>
#include <limits.h>

#include "io/filters/filter.h"

#ifdef TSR_HAVE_LZF
#include <lzf.h>

#define TABLE_BYTES ((size_t)512 << 10) /* its hash table, on the stack */

/* The library counts in unsigned int. */
static unsigned as_unsigned(size_t bytes) { return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX; }

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    (void)use;
    if (from_bytes == 0 || from_bytes > UINT_MAX) /* the library reads the first byte, whatever it is told */
        return tsr_fail(TSR_ERR_FORMAT, "%zu bytes are no stream of lzf", from_bytes);
    errno = 0;
    *to_bytes = lzf_decompress(from, (unsigned)from_bytes, to, as_unsigned(*to_bytes));
    if (*to_bytes > 0) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes of lzf %s", from_bytes,
                    errno == E2BIG ? "hold more than a chunk" : "are cut short or wrong");
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    (void)use;
    const bool fits = from_bytes > 0 && from_bytes <= UINT_MAX;
    *to_bytes = fits ? lzf_compress(from, (unsigned)from_bytes, to, as_unsigned(*to_bytes)) : 0;
    return TSR_OK;
}

static size_t apply_bytes(const tsr_filter_use *use, size_t chunk_bytes) {
    (void)use;
    (void)chunk_bytes;
    return TABLE_BYTES;
}
#endif

/* As h5py writes them: its filter's version, LibLZF's, and what a chunk decodes to. */
static void choose(const tsr_compression *how, int level, size_t element_bytes, size_t chunk_bytes,
                   tsr_filter_use *use) {
    (void)how;
    (void)level;
    (void)element_bytes;
    *use = (tsr_filter_use){.count = 3, .values = {4, 0x0105, (uint32_t)chunk_bytes}};
}

static const tsr_compression compressions[] = {{.name = "lzf"}, {.name = NULL}};

const tsr_filter tsr_filter_lzf = {
    .id = 32000,
    .name = "lzf",
    .library = "LibLZF",
    .package = "liblzf-dev",
    .h5py = "",
    .compressions = compressions,
    .choose = choose,
#ifdef TSR_HAVE_LZF
    .undo = undo,
    .apply = apply,
    .apply_bytes = apply_bytes,
#endif
};
