/* Chunks to rank 0 (place_chunks.h). All ranks send theirs by number, and rank 0 takes the next number from whoever
 * has it: no rank waits for one that waits for it, and no more than a chunk is held at a time: a send ends when rank
 * 0 takes it, so that small chunks do not pile up there, either. What fails on the way is kept, not passed on at
 * once, so that every chunk expected is sent and taken; then all agree. */
#include "app/library/place_chunks.h"

#include <stdlib.h>
#include <string.h>

#define TAG 61

typedef struct {
    const tsr_world *world;
    const tsr_output *output;
    tsr_store *store; /* NULL: this rank has no chunks */
    const tsr_listener *progress;
    tsr_kept_chunk *kept; /* by number */
    int64_t kept_count, taken;
    int *owners;    /* of each chunk, on rank 0; -1: nobody's */
    int64_t chunks; /* of the output */
    char *buffer;   /* one encoded chunk */
    size_t room;
    tsr_status status;  /* the first failure of this rank */
    char message[1024]; /* its message */
} job;

/* The list and the copy it is sorted through, the owners and what MPI reduces them through. */
double tsr_place_bytes(int64_t chunks, double chunk_bytes) {
    return (double)chunks * (double)(2 * sizeof(tsr_kept_chunk) + 2 * sizeof(int)) + chunk_bytes * (1 + 1.0 / 64) +
           4096;
}

static void note(job *p, tsr_status status) {
    if (status == TSR_OK || p->status != TSR_OK) return;
    p->status = status;
    strncpy(p->message, tsr_message(), sizeof p->message - 1);
}

static tsr_status prepare(job *p) {
    p->room = tsr_encoded_bytes_max(p->output);
    p->owners = malloc((size_t)p->chunks * sizeof *p->owners);
    p->buffer = malloc(p->room);
    if (!p->owners || !p->buffer)
        return tsr_fail(TSR_ERR_MEMORY, "no memory to place %lld chunks; use larger ones: --chunk",
                        (long long)p->chunks);
    if (p->store) TSR_TRY(tsr_chunks_kept(p->store, &p->kept, &p->kept_count));
    for (int64_t i = 0; i < p->chunks; i++) p->owners[i] = -1;
    for (int64_t i = 0; i < p->kept_count; i++) p->owners[p->kept[i].number] = p->world->rank;
    return TSR_OK;
}

/* Each chunk has one owner. Collective. */
static tsr_status find_owners(job *p) {
    MPI_Comm comm = p->world->comm;
    bool root = p->world->rank == 0;
    int64_t all = 0;
    TSR_TRY(TSR_MPI(MPI_Reduce(&p->kept_count, &all, 1, MPI_INT64_T, MPI_SUM, 0, comm)));
    TSR_TRY(TSR_MPI(MPI_Reduce(root ? MPI_IN_PLACE : p->owners, p->owners, (int)p->chunks, MPI_INT, MPI_MAX, 0, comm)));
    int64_t missing = -1;
    for (int64_t i = p->chunks - 1; root && i >= 0; i--)
        if (p->owners[i] < 0) missing = i;
    tsr_status status = TSR_OK;
    if (missing >= 0 || (root && all != p->chunks))
        status = tsr_fail(TSR_ERR_IO,
                          "%lld of %lld chunks of '%s' were written (first missing: %lld, -1: none): this is a mistake "
                          "in the program",
                          (long long)all, (long long)p->chunks, p->output->desc.name.path, (long long)missing);
    return tsr_agree(comm, status);
}

/* The next of this rank's chunks into the buffer; after a failure nothing. Returns the bytes. */
static size_t take_next(job *p) {
    const tsr_kept_chunk *chunk = &p->kept[p->taken++];
    if (p->status == TSR_OK) note(p, tsr_chunk_take(p->store, chunk, p->buffer));
    return p->status == TSR_OK ? sizeof(tsr_encoded_chunk) + ((const tsr_encoded_chunk *)(const void *)p->buffer)->bytes
                               : 0;
}

static void send_all(job *p) {
    while (p->taken < p->kept_count) {
        size_t bytes = take_next(p);
        note(p, TSR_MPI(MPI_Ssend(p->buffer, (int)bytes, MPI_BYTE, 0, TAG, p->world->comm)));
    }
}

/* An empty message comes from a rank that failed and will say so. The first failure ends the output: its name goes
 * at once, its space with the job. */
static void place_all(job *p) {
    const tsr_store_desc *c = &p->output->desc;
    const double bytes_of_c = (double)tsr_store_bytes(c);
    tsr_placer *placer = NULL;
    bool failed = false;
    note(p, tsr_placer_open(p->output, &placer));
    for (int64_t i = 0; i < p->chunks; i++) {
        int bytes = 0;
        if (p->owners[i] == 0) {
            bytes = (int)take_next(p);
        } else {
            MPI_Status from;
            tsr_status received =
                TSR_MPI(MPI_Recv(p->buffer, (int)p->room, MPI_BYTE, p->owners[i], TAG, p->world->comm, &from));
            note(p, received == TSR_OK ? TSR_MPI(MPI_Get_count(&from, MPI_BYTE, &bytes)) : received);
        }
        if (!failed && p->status == TSR_OK && bytes > 0) note(p, tsr_placer_put(placer, p->buffer, (size_t)bytes));
        if (!failed && (p->status != TSR_OK || bytes == 0)) {
            failed = true;
            tsr_output_discard(p->output);
        }
        tsr_listener_advance(p->progress, (double)(i + 1) / (double)p->chunks * bytes_of_c, 0);
    }
    tsr_status closed = tsr_placer_close(placer);
    if (!failed) note(p, closed); /* else it would only say that chunks are missing */
}

tsr_status tsr_place_chunks(const tsr_world *world, const tsr_output *output, tsr_store *store,
                            const tsr_listener *progress) {
    job p = {
        .world = world, .output = output, .store = store, .progress = progress, .chunks = tsr_output_chunks(output)};
    if (p.chunks == 0) return TSR_OK;
    tsr_status status;
    TSR_TRY_DONE(tsr_agree(world->comm, prepare(&p)));
    TSR_TRY_DONE(find_owners(&p));
    if (world->rank == 0) place_all(&p);
    else send_all(&p);
    if (p.status != TSR_OK) tsr_message_set(p.message);
    status = tsr_agree(world->comm, p.status);
done:
    free(p.kept);
    free(p.owners);
    free(p.buffer);
    return status;
}
