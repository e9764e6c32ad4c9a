/* Records that tessera.h hands out. */
#ifndef TSR_APP_LIBRARY_API_RECORD_HANDLE_H
#define TSR_APP_LIBRARY_API_RECORD_HANDLE_H

#include "app/library/tessera.h"
#include "mpi/ranks/world.h"

/* Collective. A record on every rank of rank 0's `json`; TSR_ERR_MEMORY where there is no room, or no `json`. */
tsr_status tsr_record_handle_make(const tsr_world *world, const char *json, tessera_record **record);

#endif
