/* Chunked output. Only one process may add chunks to a file through a serial HDF5, so there are two steps: each rank's threads encode whole chunks and
 * keep them in a file of the rank's own, without a name and so gone with the process (NFS names it .nfs… until then, and keeps it where the machine goes
 * down); when all are written, rank 0 places them in the dataset, in its order. Taking them from rank to rank in between is the caller's (app/place_chunks). */
#ifndef TSR_IO_OUTPUT_CHUNKS_H
#define TSR_IO_OUTPUT_CHUNKS_H

#include "io/output.h"

/* A chunk as it waits and as it travels: this, then `bytes` bytes. */
typedef struct {
    int64_t number;  /* chunks count row by row */
    uint32_t bytes;  /* as stored */
    uint32_t skipped; /* HDF5's filter mask */
} tsr_encoded_chunk;

/* Where a rank keeps a chunk. */
typedef struct {
    int64_t number, offset;
} tsr_kept_chunk;

/* Fills what a spec leaves open: TSR_CHUNK_AUTO becomes about 1 MiB, gzip alone chunks, no side longer than the matrix's. A contiguous spec stays. */
void tsr_output_choose_chunks(tsr_output_spec *spec);
/* Chunks of a spec or an output; 0 when it is contiguous or empty. */
int64_t tsr_spec_chunks(const tsr_output_spec *spec);
int64_t tsr_output_chunks(const tsr_output *output);
/* Memory of `encoders` chunks being encoded at once, with what the filters take; 0 when the spec is contiguous. */
size_t tsr_output_encode_bytes(const tsr_output_spec *spec, int encoders);
#define TSR_ENCODERS_MAX 32  /* at once on a rank */
#define TSR_ENCODERS_USUAL 8

/* ---- where they were written: a store of tsr_output_open ---- */

/* The chunks this rank's store holds, by number, before the first is taken; the caller frees *chunks. TSR_ERR_USAGE when one was written twice. */
tsr_status tsr_chunks_kept(tsr_store *store, tsr_kept_chunk **chunks, int64_t *count);
/* The most bytes a chunk takes with its head. */
size_t tsr_encoded_bytes_max(const tsr_output *output);
/* Takes a chunk out of the store, once: head and bytes to `to`, tsr_encoded_bytes_max. Gives its place on the disk back where
 * that may lack room for this chunk and those of higher numbers. Once all are taken, the store's sync gives back the rest. */
tsr_status tsr_chunk_take(tsr_store *store, const tsr_kept_chunk *chunk, void *to);

/* ---- where they go: rank 0 ---- */

typedef struct tsr_placer tsr_placer;
/* Opens the temporary file of an output for chunks. */
tsr_status tsr_placer_open(const tsr_output *output, tsr_placer **placer);
/* The next chunk: numbers must come one after the other, from 0. `room`: bytes that are there, the head included. */
tsr_status tsr_placer_put(tsr_placer *placer, const void *encoded, size_t room);
/* Brings the file to stable storage and closes it; TSR_ERR_IO when chunks are missing. NULL is fine. Closes it in any case. */
tsr_status tsr_placer_close(tsr_placer *placer);

#endif
