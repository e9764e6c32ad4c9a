/* A chunk's filters undone (chunk_decode.h). */
#include "io/chunks/chunk_decode.h"

#include <string.h>

size_t tsr_chunk_undo_bytes(const tsr_pipeline *pipeline) {
    size_t most = 0;
    for (int f = 0; f < pipeline->count; f++) {
        const size_t bytes = tsr_filter_at(pipeline->use[f].filter)->undo_bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

static tsr_status not_here(const tsr_filter *filter) {
    if (!filter->library) return tsr_fail(TSR_ERR_UNSUPPORTED, "its filter %s is not undone here", filter->name);
    return tsr_fail(TSR_ERR_UNSUPPORTED,
                    "this build cannot undo its filter %s: it was made without %s; install %s and build again",
                    filter->name, filter->library, filter->package);
}

tsr_status tsr_chunk_undo(const tsr_pipeline *pipeline, uint32_t skip, uint8_t **now, uint8_t **next, size_t *bytes,
                          size_t room) {
    for (int f = pipeline->count - 1; f >= 0; f--) {
        const tsr_filter_use *use = &pipeline->use[f];
        const tsr_filter *filter = tsr_filter_at(use->filter);
        if (skip >> f & 1) continue;
        if (filter->check) {
            TSR_TRY(filter->check(*now, bytes));
            continue;
        }
        if (!filter->undo) return not_here(filter);
        size_t got = room;
        TSR_TRY(filter->undo(use, *now, *bytes, *next, &got));
        *bytes = got;
        uint8_t *other = *now;
        *now = *next;
        *next = other;
    }
    return TSR_OK;
}

tsr_status tsr_chunk_decode(const tsr_pipeline *pipeline, uint32_t skip, uint8_t *stored, size_t stored_bytes,
                            uint8_t *spare, uint8_t *chunk, size_t chunk_bytes) {
    size_t bytes = stored_bytes;
    TSR_TRY(tsr_chunk_undo(pipeline, skip, &stored, &spare, &bytes, tsr_chunk_stored_max(chunk_bytes)));
    if (bytes != chunk_bytes)
        return tsr_fail(TSR_ERR_FORMAT, "it decodes to %zu bytes where a chunk has %zu", bytes, chunk_bytes);
    memcpy(chunk, stored, chunk_bytes);
    return TSR_OK;
}
