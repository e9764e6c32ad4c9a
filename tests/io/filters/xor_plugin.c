/* A plugin of HDF5 for the tests: filter 40123 flips bits, and its number is nobody else's. Its value says that it
 * gives another number of bytes than it should: 1 half of them, 2 twice as many, 3 none for a chunk that begins with
 * 0x17. */
#include <H5PLextern.h>
#include <stddef.h>
#include <string.h>

static size_t flip(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room, void **data) {
    unsigned char *at = *data;
    const unsigned how = (flags & H5Z_FLAG_REVERSE) && count > 0 ? values[0] : 0;
    if (how == 3 && bytes > 0 && at[0] == 0x17) return 0;
    for (size_t i = 0; i < bytes; i++) at[i] ^= 0x5a;
    if (how == 1) return bytes / 2;
    if (how != 2) return bytes;
    void *more = H5resize_memory(at, 2 * bytes);
    if (!more) return 0;
    memset((char *)more + bytes, 0, bytes);
    *data = more;
    *room = 2 * bytes;
    return 2 * bytes;
}

static const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                                    .id = 40123,
                                    .encoder_present = 1,
                                    .decoder_present = 1,
                                    .name = "flip",
                                    .filter = flip};

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void *H5PLget_plugin_info(void) { return &filter; }
