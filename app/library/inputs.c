/* Inputs on every rank: found and described by rank 0, opened by all (inputs.h). */
#include "app/library/inputs.h"

#include <string.h>

#include "app/verify/rounded.h"
#include "io/pieces/pieces.h"
#include "io/stores.h"
#include "kernels/device/host_memory.h"

#define INPUTS_MOST 4 /* that a command without a plan opens at once */

/* Where rank 0 knows the chunks of a piece, all do then. */
static tsr_status share_piece_chunks(const tsr_world *world, tsr_store_desc *desc) {
    tsr_chunk_index *index = world->rank == 0 ? desc->index : NULL;
    const bool there = desc->index != NULL; /* rank 0's, on every rank */
    tsr_status status = TSR_OK;
    if (!there) return TSR_OK;
    if (world->rank != 0) status = tsr_chunk_index_make(tsr_chunks_of_part(desc), &index);
    desc->index = index;
    TSR_TRY(tsr_agree(world->comm, status));
    return tsr_broadcast(world->comm, index->places,
                         (size_t)tsr_chunk_index_count(index->range) * sizeof *index->places);
}

/* Rank 0 finds where the elements of what is selected lie, and all know then. */
static tsr_status share_pieces(const tsr_world *world, tsr_store_desc *desc) {
    tsr_pieces *pieces = NULL;
    int64_t count = -1;
    desc->pieces = NULL;
    tsr_status status = world->rank == 0 ? tsr_describe_pieces(world->describer, desc) : TSR_OK;
    if (desc->pieces) count = (pieces = desc->pieces)->count;
    TSR_TRY(tsr_share(world->comm, status, &count, sizeof count));
    if (count < 0) return TSR_OK;
    if (world->rank != 0) status = tsr_pieces_make(count, &pieces);
    desc->pieces = pieces;
    if (status == TSR_OK && !pieces) status = tsr_fail(TSR_FAILURE, "a list of pieces is missing");
    TSR_TRY(tsr_agree(world->comm, status));
    TSR_TRY(tsr_broadcast(world->comm, pieces->piece, (size_t)count * sizeof *pieces->piece));
    for (int64_t i = 0; i < count; i++) TSR_TRY(share_piece_chunks(world, &pieces->piece[i].desc));
    tsr_pieces_sum_up(desc);
    return TSR_OK;
}

tsr_status tsr_input_find_chunks(const tsr_world *world, tsr_store_desc *desc) {
    const tsr_chunk_range range = tsr_chunks_of_part(desc);
    tsr_chunk_index *index = NULL;
    desc->index = NULL;
    TSR_TRY(share_pieces(world, desc));
    if (range.rows == 0) return TSR_OK; /* on every rank */
    tsr_status status = world->rank == 0 ? tsr_describe_chunks(world->describer, desc, &index) : TSR_OK;
    bool there = index != NULL;
    TSR_TRY(tsr_share(world->comm, status, &there, sizeof there));
    if (!there) return TSR_OK;
    if (world->rank != 0) status = tsr_chunk_index_make(range, &index);
    status = tsr_agree(world->comm, status);
    if (status == TSR_OK)
        status =
            tsr_broadcast(world->comm, index->places, (size_t)tsr_chunk_index_count(range) * sizeof *index->places);
    if (status == TSR_OK) desc->index = index;
    else tsr_chunk_index_leave(index);
    return status;
}

/* Lowers what chunks may take to a share of the memory that is free for this rank, and refuses what one chunk takes
 * beyond it. Local, on rank 0: nodes are taken to be alike. */
static tsr_status fits(const tsr_world *world, tsr_store_desc *desc, tsr_io_mode mode) {
    tsr_host_memory host;
    tsr_process_room room;
    tsr_host_memory_find("", &host);
    tsr_process_room_find(&room);
    const double node = (double)host.available * 0.8 / world->local_ranks, own = (double)room.left * 0.8;
    const size_t share = (size_t)((node < own ? node : own) / INPUTS_MOST);
    const size_t least = tsr_store_least_bytes(desc, mode);
    if (least > share) return tsr_store_too_large(desc, least, share, "free some memory, use fewer ranks of a node");
    tsr_store_lower(desc, mode, share);
    return TSR_OK;
}

tsr_status tsr_input_describe(const tsr_world *world, const char *text, tsr_order order, tsr_io_mode mode,
                              tsr_store_desc *desc) {
    tsr_matrix_name name;
    tsr_status status = TSR_OK;
    memset(desc, 0, sizeof *desc);
    if (world->rank == 0) status = tsr_matrix_name_parse(text, &name);
    if (world->rank == 0 && status == TSR_OK) {
        name = tsr_name_as_stored(order, name);
        status = tsr_store_describe(world->describer, &name, desc);
        if (status == TSR_OK) status = fits(world, desc, mode);
    }
    TSR_TRY(tsr_share(world->comm, status, desc, sizeof *desc));
    tsr_input_warn(world, desc);
    return TSR_OK;
}

tsr_status tsr_input_open(const tsr_world *world, tsr_store_desc *desc, tsr_io_mode mode, tsr_store **store) {
    tsr_store *opened = NULL;
    TSR_TRY(tsr_input_find_chunks(world, desc));
    tsr_status room = world->rank == 0 && desc->pieces ? fits(world, desc, mode) : TSR_OK;
    TSR_TRY(tsr_share(world->comm, room, &desc->cache_bytes, sizeof desc->cache_bytes));
    const tsr_status status = tsr_agree(world->comm, tsr_store_open(desc, mode, &world->comm, NULL, &opened));
    tsr_chunk_index_leave(desc->index); /* the store has its part in both */
    tsr_pieces_leave(desc->pieces);
    desc->index = NULL;
    desc->pieces = NULL;
    if (status == TSR_OK) *store = opened;
    else if (mode != TSR_IO_MPIO) tsr_store_close(opened); /* closing through MPI-IO is collective */
    return status;
}
