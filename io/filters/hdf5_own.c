/* Filters that HDF5 undoes where its build has them: szip, nbit and scaleoffset. */
#include "io/filters/filter.h"

/* The first four bytes of a stream of szip. */
static bool szip_holds_more(const uint8_t *from, size_t from_bytes, size_t most) {
    return from_bytes >= 4 &&
           ((size_t)from[3] << 24 | (size_t)from[2] << 16 | (size_t)from[1] << 8 | (size_t)from[0]) > most;
}

/* Both unpack as many elements, of as many bytes, as their own values say. */
static bool states_more(const tsr_filter_use *use, double chunk_elements, int64_t element_bytes) {
    return use->count < 5 || (double)use->values[2] > chunk_elements || (int64_t)use->values[4] > element_bytes;
}

const tsr_filter tsr_filter_szip = {
    .id = 4,
    .name = "szip",
    .unbounded = true,
    .holds_more = szip_holds_more,
};

const tsr_filter tsr_filter_nbit = {.id = 5, .name = "nbit", .states_more = states_more};

const tsr_filter tsr_filter_scaleoffset = {.id = 6, .name = "scaleoffset", .states_more = states_more};
