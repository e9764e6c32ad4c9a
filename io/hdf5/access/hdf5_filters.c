/* Decoders of ours as HDF5's filters (hdf5_filters.h). */
#include "io/hdf5/access/hdf5_filters.h"

#include <hdf5.h>
#include <stdlib.h>

#include "io/chunks/chunk_decode.h"

/* Bytes that a decoder gives. Other filters add a little to a chunk, and HDF5 reads all of one, however little came. */
static size_t least, most;

void tsr_h5_filters_expect(size_t chunk_bytes, bool partly) {
    least = partly ? 0 : chunk_bytes;
    most = tsr_chunk_stored_max(chunk_bytes);
}

/* H5Z_func_t of the table's filter `index`: 0 for failure. It never encodes, which leaves a chunk as it is: chunks are
 * encoded by threads (io/output/output_chunks.h). */
static size_t run(int index, unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,
                  void **data) {
    tsr_filter_use use = {.filter = index, .count = (int)count};
    if (!(flags & H5Z_FLAG_REVERSE)) return 0;
    for (size_t i = 0; i < count && i < TSR_FILTER_VALUES_MAX; i++) use.values[i] = values[i];
    size_t got = most;
    void *to = H5allocate_memory(most, true);
    if (!to) return 0;
    if (!tsr_filter_decodes(&use) || tsr_filter_at(index)->undo(&use, *data, bytes, to, &got) != TSR_OK ||
        got < least) {
        H5free_memory(to);
        return 0;
    }
    H5free_memory(*data);
    *data = to;
    *room = most;
    return got;
}

/* HDF5 does not say which filter it calls: each place in the table has a function of its own. */
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define DEFINE(index)                                                                                                  \
    static size_t run_##index(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room,        \
                              void **data) {                                                                           \
        return run(index, flags, count, values, bytes, room, data);                                                    \
    }
EACH(DEFINE)
#define NAME(index) run_##index,
static const H5Z_func_t functions[] = {EACH(NAME)};
#define PLACES (int)(sizeof functions / sizeof *functions)

void tsr_h5_filters_register(void) {
    for (int i = 0; i < tsr_filter_count() && i < PLACES; i++) {
        const tsr_filter *filter = tsr_filter_at(i);
        const H5Z_class2_t class = {.version = H5Z_CLASS_T_VERS,
                                    .id = filter->id,
                                    .encoder_present = 1,
                                    .decoder_present = 1,
                                    .name = filter->name,
                                    .filter = functions[i]};
        if (filter->undo && H5Zfilter_avail(filter->id) <= 0) H5Zregister(&class);
    }
}
