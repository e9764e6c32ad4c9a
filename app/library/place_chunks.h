/* Chunks that ranks encoded, to their places in the output: rank 0 reserves these, and each rank copies its own. */
#ifndef TSR_APP_LIBRARY_PLACE_CHUNKS_H
#define TSR_APP_LIBRARY_PLACE_CHUNKS_H

#include "app/library/listener.h"
#include "io/output/output_chunks.h"
#include "mpi/ranks/world.h"

/* Host memory that placing takes on a rank, of an output of so many chunks. */
double tsr_place_bytes(int64_t chunks);
/* Chunks that earlier runs left (io/output/resume/), the same on every rank: each is placed where no rank made it anew.
 * NULL: none. */
typedef struct {
    const tsr_part *parts;
    int64_t count;
} tsr_left_chunks;

/* Collective over world, the same status on every rank. `store`: what this rank wrote the output to, NULL on a rank
 * that wrote nothing. When it returns TSR_OK the temporary file holds every chunk and is on stable storage; where a
 * chunk cannot be taken or placed it is gone. Nothing to do for an output without chunks. `progress`, which has
 * begun with C's bytes, advances on rank 0. */
tsr_status tsr_place_chunks(const tsr_world *world, const tsr_output *output, tsr_store *store,
                            const tsr_left_chunks *left, const tsr_listener *progress);

#endif
