/* A digest of a matrix, or of a stack of them: the CRC-32C of its elements' bytes, row after row, each element with its
 * least significant byte first. So it is that of the data of a .npy file, whatever file the matrix lies in and in which
 * parts it was written: sums of parts add up, each moved to where the part stands (crc32c.h). */
#ifndef TSR_IO_DIGEST_DIGEST_H
#define TSR_IO_DIGEST_DIGEST_H

#include <stdatomic.h>

#include "io/store.h"

typedef struct {
    _Atomic uint32_t parts; /* those that were added; of several ranks: combined with exclusive or */
    atomic_bool damaged;    /* a part could not be decoded, and was not added (tsr_digest_reads) */
} tsr_digest;

#define TSR_DIGEST_CHARS 24

/* What the rectangle of the store's matrix (desc.matrix), from[r·ld + c], adds to the digest: the exclusive or of what
 * its parts add. Elements that are stored the other way round are turned in place. */
uint32_t tsr_digest_sum(const tsr_store_desc *desc, tsr_rect rect, void *from, int64_t ld);
/* Adds it, once. Any thread. */
void tsr_digest_add(tsr_digest *digest, const tsr_store_desc *desc, tsr_rect rect, void *from, int64_t ld);
/* From now on all that is written to the store is summed up before, for the digest and for the list (written.h; either
 * may be NULL). Its elements are as this machine has them. Both outlive the store. */
struct tsr_written;
tsr_status tsr_digest_writes(tsr_store *store, tsr_digest *digest, struct tsr_written *written);
/* From now on all that is read from the store adds to the digest. Its elements are as this machine has them. What
 * cannot be decoded reads as zeros, and is noted. The digest outlives the store. */
tsr_status tsr_digest_reads(tsr_store *store, tsr_digest *digest);
/* Local. Reads every `step`-th band of rows, beginning with band `first`, of all matrices, and adds it. `stopped` (may
 * be NULL) is asked between bands: TSR_ERR_STOPPED. */
tsr_status tsr_digest_read(tsr_store *store, int64_t first, int64_t step, bool (*stopped)(void *context), void *context,
                           tsr_digest *digest);
/* Of `bytes` in all: "crc32c:1a2b3c4d"; returns text. */
const char *tsr_digest_text(uint32_t parts, uint64_t bytes, char text[TSR_DIGEST_CHARS]);
/* "crc32c:1A2B3C4D" or its eight digits alone, as tsr_digest_text writes it; false for anything else. */
bool tsr_digest_parse(const char *text, char digest[TSR_DIGEST_CHARS]);

#endif
