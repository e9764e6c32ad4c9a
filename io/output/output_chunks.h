/* Chunked output. Only one process may add chunks to a file through a serial HDF5, so there are two steps: each
 * rank's threads encode whole chunks and keep them in a file of the rank's own, without a name and so gone with the
 * process (NFS names it .nfs… until then, and keeps it where the machine goes down); when all are written, rank 0
 * places them in the dataset, in its order. Taking them from rank to rank in between is the caller's
 * (app/run/place_chunks). */
#ifndef TSR_IO_OUTPUT_OUTPUT_CHUNKS_H
#define TSR_IO_OUTPUT_OUTPUT_CHUNKS_H

#include "io/output/output.h"

/* A chunk as it waits and as it travels: this, then `bytes` bytes. Both have a sum (crc32c.h) from the moment the chunk
 * is encoded, which is looked at when it is taken from the disk and again when it is placed. */
typedef struct {
    int64_t number;     /* chunks count matrix by matrix, row by row */
    uint32_t bytes;     /* as stored */
    uint32_t skipped;   /* HDF5's filter mask */
    uint32_t bytes_sum; /* of the bytes */
    uint32_t head_sum;  /* of all above */
} tsr_encoded_chunk;

/* Where a rank keeps a chunk. */
typedef struct {
    int64_t number, offset;
} tsr_kept_chunk;

/* The number of chunk (i, j) of the matrix that is selected; and back. */
int64_t tsr_encoded_number(const tsr_store_desc *desc, int64_t i, int64_t j);
void tsr_encoded_place(const tsr_store_desc *desc, int64_t number, int64_t *matrix, int64_t *i, int64_t *j);
/* Sets both sums. */
void tsr_encoded_seal(tsr_encoded_chunk *head, const void *bytes);
/* What is wrong with a head for a chunk of this output, a few words of static text, or NULL. Where nothing is, its
 * number is one of the output's and its bytes are no more than tsr_encoded_bytes_max. */
const char *tsr_encoded_head_wrong(const tsr_store_desc *desc, const tsr_encoded_chunk *head);
/* Whether the bytes that follow a good head are those it was sealed with. */
bool tsr_encoded_bytes_right(const tsr_encoded_chunk *head, const void *bytes);

/* Fills what a spec leaves open: TSR_CHUNK_AUTO becomes about 1 MiB, compression alone chunks, no side longer than the
 * matrix's. A contiguous spec stays. */
void tsr_output_choose_chunks(tsr_output_spec *spec);
/* The filters of its chunks. */
tsr_pipeline tsr_output_pipeline(const tsr_output_spec *spec);
/* Chunks of a spec or an output; 0 when it is contiguous or empty. */
int64_t tsr_spec_chunks(const tsr_output_spec *spec);
int64_t tsr_output_chunks(const tsr_output *output);
/* Memory of `encoders` chunks being encoded at once, with what the filters take; 0 when the spec is contiguous. */
size_t tsr_output_encode_bytes(const tsr_output_spec *spec, int encoders);
#define TSR_ENCODERS_MAX 32 /* at once on a rank */
#define TSR_ENCODERS_USUAL 8

/* ---- where they were written: a store of tsr_output_open ------------------------------------- */

/* The chunks this rank's store holds, by number, before the first is taken; the caller frees *chunks. All are numbers
 * of the output. TSR_ERR_USAGE when one was written twice, TSR_ERR_IO where the disk gives back other heads. */
tsr_status tsr_chunks_kept(tsr_store *store, tsr_kept_chunk **chunks, int64_t *count);
/* The most bytes a chunk takes with its head. */
size_t tsr_encoded_bytes_max(const tsr_output *output);
/* Takes a chunk out of the store, once: head and bytes to `to`, tsr_encoded_bytes_max. Gives its place on the disk
 * back where that may lack room for this chunk and those of higher numbers. Once all are taken, the store's sync
 * gives back the rest. TSR_ERR_IO where the disk gives back something else than it got. */
tsr_status tsr_chunk_take(tsr_store *store, const tsr_kept_chunk *chunk, void *to);

/* ---- where they go: rank 0 ------------------------------------------------------------------- */

typedef struct tsr_placer tsr_placer;
/* Opens the temporary file of an output for chunks. */
tsr_status tsr_placer_open(const tsr_output *output, tsr_placer **placer);
/* The next chunk: numbers must come one after the other, from 0. `room`: bytes that are there, the head included.
 * TSR_ERR_IO for one that is not as it was sealed, or none of this output. */
tsr_status tsr_placer_put(tsr_placer *placer, const void *encoded, size_t room);
/* Brings the file to stable storage and closes it; TSR_ERR_IO when chunks are missing. NULL is fine. Closes it in
 * any case. */
tsr_status tsr_placer_close(tsr_placer *placer);

#endif
