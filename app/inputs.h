/* Opening a matrix for reading on every rank: rank 0 finds and describes it, all ranks get the description and open it. */
#ifndef TSR_APP_INPUTS_H
#define TSR_APP_INPUTS_H

#include <string.h>

#include "app/options.h"
#include "mpi/grid.h"

/* A slice is written rows first by those who count column by column, too: the file shows these as columns. */
static inline tsr_matrix_name tsr_name_as_stored(tsr_order order, tsr_matrix_name name) {
    name.columns_first = order == TSR_ORDER_COL;
    return name;
}

/* Collective over world; the same status everywhere. `text` is what a person wrote. The store is owned by the caller: close it. */
static inline tsr_status tsr_input_open(const tsr_world *world, const char *text, tsr_order order, tsr_io_mode mode, tsr_store **store) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    tsr_store *opened = NULL;
    tsr_status status = TSR_OK;
    memset(&desc, 0, sizeof desc);
    if (world->rank == 0) status = tsr_matrix_name_parse(text, &name);
    if (world->rank == 0 && status == TSR_OK) {
        name = tsr_name_as_stored(order, name);
        status = tsr_hdf5_describe(&name, &desc);
    }
    TSR_TRY(tsr_share(world->comm, status, &desc, sizeof desc));
    status = tsr_agree(world->comm, tsr_hdf5_open(&desc, mode, &world->comm, NULL, &opened));
    if (status == TSR_OK) *store = opened;
    else if (mode != TSR_IO_MPIO) tsr_store_close(opened); /* closing through MPI-IO is collective */
    return status;
}

#endif
