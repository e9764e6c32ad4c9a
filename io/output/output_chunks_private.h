/* The store of a chunked output: what the files share that encode chunks, and take them out again. */
#ifndef TSR_IO_OUTPUT_OUTPUT_CHUNKS_PRIVATE_H
#define TSR_IO_OUTPUT_OUTPUT_CHUNKS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "io/output/output_chunks.h"

/* One thread at a time has it. Files of their own: a memory-backed file system lets one thread write to a file. */
typedef struct {
    bool busy;
    _Atomic int fd;        /* of its file; -1: it has kept nothing */
    atomic_bool written;   /* since it was synced */
    int64_t end, kept;     /* bytes and chunks in the file */
    _Atomic int64_t taken; /* chunks of these that were taken out */
    uint8_t *chunk;        /* two buffers, one behind the other */
} tsr_encoder;

typedef struct {
    tsr_store base;
    char folder[TSR_FILE_CHARS];
    size_t chunk_bytes;
    int64_t chunks;      /* of the dataset */
    uint64_t generation; /* of the run whose files have names; 0: they have none */
    int rank;            /* likewise */
    int encoders;
    tsr_encoder encoder[TSR_ENCODERS_MAX];
    uint8_t *memory;
    pthread_mutex_t lock;
    pthread_cond_t freed; /* an encoder */
    tsr_part *fresh;      /* of files with names: chunks that nobody has asked for yet; under the lock */
    int64_t fresh_count, fresh_room;
} tsr_encoding_store;

tsr_output_spec tsr_chunks_spec(const tsr_store_desc *desc);
/* Two buffers; and with what the filters take. */
size_t tsr_encoder_buffers_bytes(size_t chunk_bytes);
size_t tsr_encoder_bytes(const tsr_pipeline *pipeline, size_t chunk_bytes);
/* What a failure with waiting chunks means. */
tsr_status tsr_spill_failed(const tsr_encoding_store *s, const char *what, size_t bytes, int error);

#endif
