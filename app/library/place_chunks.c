/* Chunks to their places (place_chunks.h). Rank 0 learns the size of every chunk, has all places reserved, and tells
 * where they are: a few bytes a chunk travel, the chunks themselves do not. */
#include "app/library/place_chunks.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const tsr_output *output;
    tsr_store *store; /* NULL: this rank has no chunks */
    const tsr_listener *progress;
    const tsr_left_chunks *left;
    MPI_Comm comm;
    bool root;
    tsr_kept_chunk *kept; /* by number */
    int64_t kept_count;
    int64_t chunks;        /* of the output */
    tsr_chunk_size *sizes; /* by number: of this rank's chunks; on rank 0, in the end, of all */
    int64_t *addresses;    /* by number */
} job;

/* The list and the copy it is sorted through, sizes, what MPI reduces them through, and addresses. */
double tsr_place_bytes(int64_t chunks) {
    return (double)chunks * (double)(2 * sizeof(tsr_kept_chunk) + 2 * sizeof(tsr_chunk_size) + sizeof(int64_t)) + 4096;
}

static tsr_status take_turn(job *p, const uint8_t *made, int turn, int turns) {
    if (!p->store) return TSR_OK;
    const tsr_left_chunks *left = p->left;
    return tsr_chunks_take_over(p->store, left->parts, left->count, made, turn, turns, &p->kept, &p->kept_count);
}

/* Ranks with a store share what was left, in turns. Collective. */
static tsr_status share_left(job *p) {
    const size_t bytes = (size_t)tsr_ceil_div(p->chunks, 8);
    const int mine = p->store != NULL;
    int turn = 0, turns = 0;
    uint8_t *made = calloc(bytes, 1);
    tsr_status status = made ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for %zu bytes of chunks' numbers", bytes);
    TSR_TRY_DONE(tsr_agree(p->comm, status));
    for (int64_t i = 0; i < p->kept_count; i++) made[p->kept[i].number / 8] |= (uint8_t)(1 << p->kept[i].number % 8);
    TSR_TRY_DONE(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, made, (int)bytes, MPI_BYTE, MPI_BOR, p->comm)));
    TSR_TRY_DONE(TSR_MPI(MPI_Scan(&mine, &turn, 1, MPI_INT, MPI_SUM, p->comm)));
    TSR_TRY_DONE(TSR_MPI(MPI_Allreduce(&mine, &turns, 1, MPI_INT, MPI_SUM, p->comm)));
    status = tsr_agree(p->comm, take_turn(p, made, turn - mine, turns));
done:
    free(made);
    return status;
}

static tsr_status prepare(job *p) {
    p->sizes = calloc((size_t)p->chunks, sizeof *p->sizes);
    p->addresses = malloc((size_t)p->chunks * sizeof *p->addresses);
    if (!p->sizes || !p->addresses)
        return tsr_fail(TSR_ERR_MEMORY, "no memory to place %lld chunks; use larger ones: --chunk",
                        (long long)p->chunks);
    return p->store ? tsr_chunks_kept(p->store, &p->kept, &p->kept_count) : TSR_OK;
}

/* A pair of 32 bits is one number of 64, and all ranks but one have 0 there. Each chunk is one rank's. Collective. */
static tsr_status gather_sizes(job *p) {
    int64_t all = 0;
    for (int64_t i = 0; i < p->kept_count; i++) p->sizes[p->kept[i].number] = p->kept[i].size;
    _Static_assert(sizeof *p->sizes == sizeof(uint64_t), "a size is 64 bits");
    TSR_TRY(TSR_MPI(MPI_Reduce(&p->kept_count, &all, 1, MPI_INT64_T, MPI_SUM, 0, p->comm)));
    TSR_TRY(TSR_MPI(
        MPI_Reduce(p->root ? MPI_IN_PLACE : p->sizes, p->sizes, (int)p->chunks, MPI_UINT64_T, MPI_BOR, 0, p->comm)));
    int64_t missing = -1;
    for (int64_t i = p->chunks - 1; p->root && i >= 0; i--)
        if (p->sizes[i].bytes == 0) missing = i;
    tsr_status status = TSR_OK;
    if (missing >= 0 || (p->root && all != p->chunks))
        status = tsr_fail(TSR_ERR_IO,
                          "%lld of %lld chunks of '%s' were written (first missing: %lld, -1: none): this is a mistake "
                          "in the program",
                          (long long)all, (long long)p->chunks, p->output->desc.name.path, (long long)missing);
    return tsr_agree(p->comm, status);
}

/* Of what rank 0 has to place, whose ranks place their own at the same time. */
static void show(void *context, int64_t done) {
    const job *p = context;
    const double bytes = (double)tsr_store_bytes(&p->output->desc);
    tsr_listener_advance(p->progress, (double)done / (double)p->kept_count * bytes, 0);
}

static tsr_status place(job *p) {
    TSR_TRY(tsr_agree(p->comm, p->root ? tsr_chunks_reserve(p->output, p->sizes, p->addresses) : TSR_OK));
    TSR_TRY(tsr_broadcast(p->comm, p->addresses, (size_t)p->chunks * sizeof *p->addresses));
    tsr_status status = TSR_OK;
    if (p->store)
        status = tsr_chunks_place(p->store, p->kept, p->kept_count, p->addresses, p->progress ? show : NULL, p);
    return tsr_agree(p->comm, status);
}

tsr_status tsr_place_chunks(const tsr_world *world, const tsr_output *output, tsr_store *store,
                            const tsr_left_chunks *left, const tsr_listener *progress) {
    job p = {.output = output,
             .store = store,
             .left = left,
             .progress = progress,
             .comm = world->comm,
             .root = world->rank == 0,
             .chunks = tsr_output_chunks(output)};
    if (p.chunks == 0) return TSR_OK;
    tsr_status status;
    TSR_TRY_DONE(tsr_agree(p.comm, prepare(&p)));
    if (left && left->count > 0) TSR_TRY_DONE(share_left(&p));
    TSR_TRY_DONE(gather_sizes(&p));
    TSR_TRY_DONE(place(&p));
done:
    if (status != TSR_OK && p.root) tsr_output_discard(output);
    free(p.kept);
    free(p.sizes);
    free(p.addresses);
    return status;
}
