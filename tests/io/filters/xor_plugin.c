/* A plugin of HDF5 for the tests: filter 40123 flips bits, and its number is nobody else's. */
#include <H5PLextern.h>
#include <stddef.h>

static size_t flip(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room, void **data) {
    unsigned char *at = *data;
    (void)flags;
    (void)count;
    (void)values;
    (void)room;
    for (size_t i = 0; i < bytes; i++) at[i] ^= 0x5a;
    return bytes;
}

static const H5Z_class2_t filter = {.version = H5Z_CLASS_T_VERS,
                                    .id = 40123,
                                    .encoder_present = 1,
                                    .decoder_present = 1,
                                    .name = "flip",
                                    .filter = flip};

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_FILTER; }
const void *H5PLget_plugin_info(void) { return &filter; }
