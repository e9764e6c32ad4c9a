/* Opening a matrix for reading on every rank: rank 0 finds and describes it, all ranks get the description and open
 * it. */
#ifndef TSR_APP_LIBRARY_INPUTS_H
#define TSR_APP_LIBRARY_INPUTS_H

#include "app/products/shapes.h"
#include "io/describe/describe.h"
#include "mpi/ranks/world.h"

/* Collective over world; the same status everywhere. Sets desc->index, which the caller leaves (tsr_chunk_index_leave),
 * to where the chunks of a described input are, or NULL. */
tsr_status tsr_input_find_chunks(const tsr_world *world, tsr_store_desc *desc);

/* Collective over world; the same status everywhere. `text` is what a person wrote. A command without a plan opens few
 * inputs: they share what memory is free. */
tsr_status tsr_input_describe(const tsr_world *world, const char *text, tsr_order order, tsr_io_mode mode,
                              tsr_store_desc *desc);
/* The same; opens what was described. The store is owned by the caller: close it. */
tsr_status tsr_input_open(const tsr_world *world, tsr_store_desc *desc, tsr_io_mode mode, tsr_store **store);

/* Local. tsr_store_unchanged of several stores, any of which may be NULL. */
static inline tsr_status tsr_inputs_unchanged(tsr_store *const stores[], int count) {
    for (int i = 0; i < count; i++) TSR_TRY(tsr_store_unchanged(stores[i]));
    return TSR_OK;
}

/* Collective. What reading inputs came to, the same status on every rank: where one of them changed meanwhile on any
 * rank, that is why, and a result counts for nothing. */
static inline tsr_status tsr_inputs_agree(MPI_Comm comm, tsr_status status, tsr_store *const stores[], int count) {
    if (status == TSR_ERR_MPI) return status; /* this rank agrees on nothing any more */
    const tsr_status unchanged = tsr_agree(comm, tsr_inputs_unchanged(stores, count));
    return unchanged != TSR_OK ? unchanged : status;
}

#endif
