/* fletcher32: a checksum behind the bytes. */
#include <string.h>

#include "io/filters/filter.h"

#define SUM_BYTES 4

static uint32_t fold(uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

/* Fletcher's sum over big-endian 16-bit words, as H5_checksum_fletcher32 computes it. */
static uint32_t fletcher32(const uint8_t *data, size_t bytes) {
    uint32_t sum1 = 0, sum2 = 0;
    for (size_t words = bytes / 2; words > 0;) {
        size_t now = words < 360 ? words : 360; /* more could overflow sum2 */
        words -= now;
        for (; now > 0; now--, data += 2) {
            sum1 += (uint32_t)data[0] << 8 | data[1];
            sum2 += sum1;
        }
        sum1 = fold(sum1);
        sum2 = fold(sum2);
    }
    if (bytes % 2) {
        sum1 += (uint32_t)*data << 8;
        sum2 += sum1;
        sum1 = fold(sum1);
        sum2 = fold(sum2);
    }
    return fold(sum2) << 16 | fold(sum1);
}

/* The sum stands behind the data, little-endian; HDF5 up to 1.6.2 swapped the bytes of each half. */
static tsr_status check(const uint8_t *data, size_t *bytes) {
    if (*bytes < SUM_BYTES) return tsr_fail(TSR_ERR_FORMAT, "its %zu bytes are too few for a checksum", *bytes);
    *bytes -= SUM_BYTES;
    const uint8_t *at = data + *bytes;
    const uint32_t stored = (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
    const uint32_t sum = fletcher32(data, *bytes);
    const uint32_t old = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
    if (stored == sum || stored == old) return TSR_OK;
    return tsr_fail(TSR_ERR_FORMAT, "its checksum (fletcher32) is %08x, its bytes give %08x", stored, sum);
}

static tsr_status apply(const tsr_filter_use *use, const uint8_t *from, size_t from_bytes, uint8_t *to,
                        size_t *to_bytes) {
    (void)use;
    if (*to_bytes < from_bytes + SUM_BYTES)
        return tsr_fail(TSR_ERR_LIMIT, "%zu bytes and their checksum do not fit %zu", from_bytes, *to_bytes);
    const uint32_t sum = fletcher32(from, from_bytes);
    memcpy(to, from, from_bytes);
    for (int i = 0; i < SUM_BYTES; i++) to[from_bytes + (size_t)i] = (uint8_t)(sum >> (8 * i));
    *to_bytes = from_bytes + SUM_BYTES;
    return TSR_OK;
}

const tsr_filter tsr_filter_fletcher32 = {
    .id = 3,
    .name = "fletcher32",
    .h5py = "",
    .check = check,
    .apply = apply,
    .adds_bytes = SUM_BYTES,
};
