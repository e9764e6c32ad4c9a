/* Bytes of elements sorted by their significance, for the filters that begin so. */
#ifndef TSR_IO_FILTERS_SHUFFLE_H
#define TSR_IO_FILTERS_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* Byte b of element i goes to to[b · elements + i]; what is left over after the last whole element stands as it was.
 * `width`: bytes of an element, 1 at least. */
void tsr_bytes_shuffle(const uint8_t *restrict from, size_t bytes, uint8_t *restrict to, size_t width);
void tsr_bytes_unshuffle(const uint8_t *restrict from, size_t bytes, uint8_t *restrict to, size_t width);

#endif
