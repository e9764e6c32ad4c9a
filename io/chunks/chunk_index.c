/* Where chunks are (chunk_index.h). */
#include "io/chunks/chunk_index.h"

#include <stdlib.h>

#include "io/chunks/chunk_decode.h"

tsr_status tsr_chunk_index_make(tsr_chunk_range range, tsr_chunk_index **index) {
    const int64_t count = tsr_chunk_index_count(range);
    tsr_chunk_index *made = calloc(1, sizeof *made + (size_t)count * sizeof *made->places);
    if (!made) return tsr_fail(TSR_ERR_MEMORY, "no memory for the places of %lld chunks; free some", (long long)count);
    made->users = 1;
    made->range = range;
    *index = made;
    return TSR_OK;
}

size_t tsr_chunk_index_bytes(const tsr_chunk_index *index) {
    return index ? sizeof *index + (size_t)tsr_chunk_index_count(index->range) * sizeof *index->places : 0;
}

void tsr_chunk_index_leave(tsr_chunk_index *index) {
    if (index && --index->users == 0) free(index);
}

const char *tsr_chunk_place_wrong(const tsr_chunk_place *place, size_t chunk_bytes, int64_t file_bytes) {
    if (place->bytes == 0) return place->address == 0 && place->skipped == 0 ? NULL : "a chunk without bytes";
    if (place->bytes > tsr_chunk_stored_max(chunk_bytes)) return "the size of a chunk";
    if (place->address < 0 || place->address > file_bytes || (int64_t)place->bytes > file_bytes - place->address)
        return "the place of a chunk";
    return NULL;
}
