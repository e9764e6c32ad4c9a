/* CRC-32C (Castagnoli, as iSCSI has it: RFC 3720, appendix B.4): finds every error of up to 32 bits in a row, and any
 * other with a chance of all but 2^-32. Not against those who mean it. Local. */
#ifndef TSR_IO_FILES_CRC32C_H
#define TSR_IO_FILES_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `count` bytes; `before`: the sum of what stands before them, 0 where nothing does. By the processor's own
 * instruction where it has one. */
uint32_t tsr_crc32c(uint32_t before, const void *bytes, size_t count);
/* The same by a table, on any processor. */
uint32_t tsr_crc32c_by_table(uint32_t before, const void *bytes, size_t count);

/* Sums of parts of what is summed up. A part's: of its bytes alone, with none inverted before or after. It moves to
 * where the part stands by the factor of the number of bytes behind it; the exclusive or of all of them is that of the
 * whole. Factors move, too: that of a sum of bytes is one's moved by the other's. */
uint32_t tsr_crc32c_part(const void *bytes, size_t count);
uint32_t tsr_crc32c_factor(uint64_t bytes);
uint32_t tsr_crc32c_move(uint32_t sum, uint32_t factor);
/* The sum of so many bytes, of that of all their parts. */
uint32_t tsr_crc32c_whole(uint32_t parts, uint64_t bytes);

#endif
