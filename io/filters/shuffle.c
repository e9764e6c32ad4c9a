/* shuffle: first the first bytes of all elements, then their second ones, and so on. */
#include <string.h>

#include "io/filters/filter.h"
#include "io/filters/shuffle.h"

#define SHUFFLE(width)                                                                                                 \
    for (size_t b = 0; b < (width); b++)                                                                               \
        for (size_t i = 0; i < elements; i++) to[b * elements + i] = from[i * (width) + b]

#define UNSHUFFLE(width)                                                                                               \
    for (size_t i = 0; i < elements; i++)                                                                              \
        for (size_t b = 0; b < (width); b++) to[i * (width) + b] = from[b * elements + i]

void tsr_bytes_shuffle(const uint8_t *restrict from, size_t bytes, uint8_t *restrict to, size_t width) {
    const size_t elements = bytes / width;
    switch (width) { /* a constant width is a vector loop */
    case 2: SHUFFLE(2); break;
    case 4: SHUFFLE(4); break;
    case 8: SHUFFLE(8); break;
    default: SHUFFLE(width); break;
    }
    memcpy(to + elements * width, from + elements * width, bytes - elements * width);
}

void tsr_bytes_unshuffle(const uint8_t *restrict from, size_t bytes, uint8_t *restrict to, size_t width) {
    const size_t elements = bytes / width;
    switch (width) {
    case 2: UNSHUFFLE(2); break;
    case 4: UNSHUFFLE(4); break;
    case 8: UNSHUFFLE(8); break;
    default: UNSHUFFLE(width); break;
    }
    memcpy(to + elements * width, from + elements * width, bytes - elements * width);
}

static bool understood(const tsr_filter_use *use) { return use->count == 1 && use->values[0] > 0; }

static tsr_status check_room(size_t bytes, size_t room) {
    return bytes <= room ? TSR_OK : tsr_fail(TSR_ERR_FORMAT, "its %zu shuffled bytes are more than a chunk", bytes);
}

static tsr_status undo(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                       size_t *to_bytes) {
    TSR_TRY(check_room(from_bytes, *to_bytes));
    tsr_bytes_unshuffle(from, from_bytes, to, use->values[0]);
    *to_bytes = from_bytes;
    return TSR_OK;
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    TSR_TRY(check_room(from_bytes, *to_bytes));
    tsr_bytes_shuffle(from, from_bytes, to, use->values[0]);
    *to_bytes = from_bytes;
    return TSR_OK;
}

const tsr_filter tsr_filter_shuffle = {
    .id = 2,
    .name = "shuffle",
    .h5py = "",
    .keeps_size = true,
    .understood = understood,
    .undo = undo,
    .apply = apply,
};
