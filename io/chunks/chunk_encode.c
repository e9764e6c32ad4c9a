/* A chunk's filters applied (chunk_encode.h). */
#include "io/chunks/chunk_encode.h"

static bool compresses(const tsr_filter *filter) { return filter->compressions != NULL; }

size_t tsr_chunk_encode_bytes(const tsr_pipeline *pipeline, size_t chunk_bytes) {
    size_t most = 0;
    for (int f = 0; f < pipeline->count; f++) {
        const tsr_filter *filter = tsr_filter_at(pipeline->use[f].filter);
        const size_t bytes = filter->apply_bytes ? filter->apply_bytes(&pipeline->use[f], chunk_bytes) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

bool tsr_chunk_is_compressed(const tsr_pipeline *pipeline, uint32_t skipped) {
    for (int f = 0; f < pipeline->count; f++)
        if (compresses(tsr_filter_at(pipeline->use[f].filter)) && !(skipped >> f & 1)) return true;
    return false;
}

static tsr_status not_here(const tsr_filter *filter) {
    if (!filter->library) return tsr_fail(TSR_ERR_UNSUPPORTED, "%s is read, not written", filter->name);
    return tsr_fail(TSR_ERR_UNSUPPORTED, "cannot compress: this build has no %s; install %s and build again",
                    filter->library, filter->package);
}

tsr_status tsr_chunk_encode(const tsr_pipeline *pipeline, uint8_t *chunk, size_t chunk_bytes, uint8_t *spare,
                            const uint8_t **stored, size_t *stored_bytes, uint32_t *skipped) {
    uint8_t *now = chunk, *next = spare;
    size_t bytes = chunk_bytes;
    uint32_t mask = 0;
    for (int f = 0; f < pipeline->count; f++) {
        const tsr_filter *filter = tsr_filter_at(pipeline->use[f].filter);
        if (!filter->apply) return not_here(filter);
        size_t got =
            compresses(filter) ? bytes - (bytes > 0) : bytes + (size_t)filter->adds_bytes; /* more saves nothing */
        TSR_TRY(filter->apply(&pipeline->use[f], now, bytes, next, &got));
        if (compresses(filter) && got == 0) {
            mask |= 1u << f;
            continue;
        }
        bytes = got;
        uint8_t *other = now;
        now = next;
        next = other;
    }
    *stored = now;
    *stored_bytes = bytes;
    *skipped = mask;
    return TSR_OK;
}
