/* What was written to a store, as sums of its rectangles that were taken before (digest.h): to be compared with what
 * the file holds when all is there. */
#ifndef TSR_IO_DIGEST_WRITTEN_H
#define TSR_IO_DIGEST_WRITTEN_H

#include <pthread.h>

#include "io/store.h"

typedef struct {
    int64_t matrix;
    tsr_rect rect;
    uint32_t sum; /* tsr_digest_sum */
} tsr_written_part;

/* {.lock = PTHREAD_MUTEX_INITIALIZER}: nothing was written. */
typedef struct tsr_written {
    pthread_mutex_t lock;
    tsr_written_part *parts; /* owned */
    int64_t count, room;
    bool again;          /* what comes was written before: its sums take the place of earlier ones */
    tsr_store_desc desc; /* of the store that was written */
} tsr_written;

/* Any thread. TSR_ERR_MEMORY. */
tsr_status tsr_written_note(tsr_written *written, const tsr_store_desc *desc, tsr_rect rect, uint32_t sum);
/* Local. What all of it adds to a digest (tsr_digest.parts). */
uint32_t tsr_written_sum(const tsr_written *written);
/* Local. Reads all of it by `threads` threads; wrong[i]: part i is other than it was written. `stopped` (may be NULL)
 * is asked between reads: TSR_ERR_STOPPED. */
tsr_status tsr_written_compare(const tsr_written *written, tsr_store *store, int threads,
                               bool (*stopped)(void *context), void *context, bool *wrong);
void tsr_written_close(tsr_written *written);

#endif
