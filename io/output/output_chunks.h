/* Chunked output. Only one process may add chunks to a file through a serial HDF5, and where a chunk comes depends on
 * how many bytes those before it took. So there are three steps:
 * - each rank's threads encode whole chunks, each into a file of its own without a name, which is gone with the process
 *   (NFS names it .nfs… until then, and keeps it where the machine goes down); or with one, for a later run;
 * - when all are written, rank 0 has HDF5 reserve the places of all chunks by their sizes;
 * - each rank's threads copy its chunks to their places.
 * What travels from rank to rank in between is the caller's (app/library/place_chunks.h). */
#ifndef TSR_IO_OUTPUT_OUTPUT_CHUNKS_H
#define TSR_IO_OUTPUT_OUTPUT_CHUNKS_H

#include "io/output/resume/journal.h"

/* A chunk as it waits: this, then `bytes` bytes. Both have a sum (crc32c.h) from the moment the chunk is encoded, which
 * is looked at when it is taken from the disk. */
typedef struct {
    int64_t number;     /* chunks count matrix by matrix, row by row */
    uint32_t bytes;     /* as stored */
    uint32_t skipped;   /* HDF5's filter mask */
    uint32_t bytes_sum; /* of the bytes */
    uint32_t head_sum;  /* of all above */
} tsr_encoded_chunk;

typedef struct {
    uint32_t bytes, skipped; /* as in tsr_encoded_chunk; 0 bytes: of no chunk */
} tsr_chunk_size;

/* Where a rank keeps a chunk: in a file of its store's, or one that an earlier run left. */
typedef struct {
    int64_t number;
    tsr_chunk_size size;
    tsr_spilled at; /* generation 0: a file of the store's */
} tsr_kept_chunk;

/* The number of chunk (i, j) of the matrix that is selected; and back. */
int64_t tsr_encoded_number(const tsr_store_desc *desc, int64_t i, int64_t j);
void tsr_encoded_place(const tsr_store_desc *desc, int64_t number, int64_t *matrix, int64_t *i, int64_t *j);
/* Sets both sums. */
void tsr_encoded_seal(tsr_encoded_chunk *head, const void *bytes);
/* What is wrong with a head for a chunk of this output, a few words of static text, or NULL. Where nothing is, its
 * number is one of the output's and its bytes are no more than a whole chunk's. */
const char *tsr_encoded_head_wrong(const tsr_store_desc *desc, const tsr_encoded_chunk *head);

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
/* Bytes of a whole chunk, its elements alone. */
size_t tsr_chunks_bytes_of(const tsr_output_spec *spec);
#define TSR_ENCODERS_MAX 32 /* at once on a rank */

/* ---- where they were written: a store of tsr_output_open ------------------------------------- */

/* The chunks this rank's store holds, by number, before the first is taken; the caller frees *chunks. All are numbers
 * of the output. TSR_ERR_USAGE when one was written twice, TSR_ERR_IO where the disk gives back other heads. */
tsr_status tsr_chunks_kept(tsr_store *store, tsr_kept_chunk **chunks, int64_t *count);
/* Adds chunks that earlier runs left to those that the store holds: of `parts` those whose turn it is, first, first +
 * step, ..., but not where bit `number` of `made` says that this run made the chunk anew. TSR_ERR_IO where one is not
 * there any more. */
tsr_status tsr_chunks_take_over(tsr_store *store, const tsr_part *parts, int64_t count, const uint8_t *made,
                                int64_t first, int64_t step, tsr_kept_chunk **chunks, int64_t *kept);
/* Takes a chunk out of the store, once: head and bytes to `to`, which has room for a head and tsr_chunk_stored_max of a
 * whole chunk. Gives its place on the disk back where that may lack room for the whole output. TSR_ERR_IO where the
 * disk gives back something else than it got. */
tsr_status tsr_chunk_take(tsr_store *store, const tsr_kept_chunk *chunk, void *to);
/* Copies these chunks to the temporary file, each to addresses[its number], with as many threads as encode, and brings
 * them to stable storage. The store's sync gives back what they took before. `placed` (may be NULL) is called by any
 * thread with the chunks that are done. TSR_ERR_SPACE where the disk is full; else as tsr_chunk_take. */
tsr_status tsr_chunks_place(tsr_store *store, const tsr_kept_chunk *chunks, int64_t count, const int64_t *addresses,
                            void (*placed)(void *context, int64_t done), void *context);

/* ---- for a later run (resume.h) -------------------------------------------------------------- */

/* Before the first chunk is written: they wait in files with names, of this run and rank (spill.h), which stay. The
 * store's sync brings them to stable storage then, while others are written, too. */
void tsr_chunks_name(tsr_store *store, uint64_t generation, int rank);
/* Any thread. The chunks that were written since the last call; the caller frees *parts. */
void tsr_chunks_fresh(tsr_store *store, tsr_part **parts, int64_t *count);

/* ---- where they go: rank 0 ------------------------------------------------------------------- */

/* Has HDF5 give every chunk of the output, of these sizes by number, a place in the temporary file: addresses[number].
 * The file is closed then, and as long as they need. */
tsr_status tsr_chunks_reserve(const tsr_output *output, const tsr_chunk_size *sizes, int64_t *addresses);

#endif
