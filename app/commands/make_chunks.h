/* A rank's chunks of a matrix that is made, filled and encoded by several threads. */
#ifndef TSR_APP_COMMANDS_MAKE_CHUNKS_H
#define TSR_APP_COMMANDS_MAKE_CHUNKS_H

#include <stdatomic.h>

#include "io/output/output_chunks.h"
#include "mpi/execute/task.h"
#include "mpi/ranks/partition.h"

/* The first three are the caller's. It may not move between start and status. */
typedef struct {
    tsr_store *store; /* of tsr_output_open, chunked */
    /* The elements of `rect` to `data`; both buffers hold as many. Any thread. */
    tsr_status (*fill)(const void *options, tsr_rect rect, void *data, void *spare);
    const void *options;
    tsr_span rows;                  /* of this rank, ends of chunks */
    int64_t across, count;          /* chunks of a row of them, and of all these rows */
    _Atomic int64_t next, elements; /* the chunk to take, and elements that are written */
    atomic_bool failed;
    tsr_task tasks[TSR_ENCODERS_MAX];
    int threads;
} tsr_chunk_maker;

/* Bytes of rank `rank` of `ranks`. */
double tsr_chunk_maker_plan(tsr_chunk_maker *maker, int ranks, int rank);
void tsr_chunk_maker_start(tsr_chunk_maker *maker, int threads);
/* Bytes that are written. */
double tsr_chunk_maker_done(const tsr_chunk_maker *maker);
/* Waits a tenth of a second at most; whether all threads have ended. */
bool tsr_chunk_maker_wait(tsr_chunk_maker *maker);
/* Waits for the threads; the first failure. */
tsr_status tsr_chunk_maker_status(tsr_chunk_maker *maker);

#endif
