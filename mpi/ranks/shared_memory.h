/* Memory that all ranks of a job on one node reach: an anonymous file in memory that rank 0 makes and the others open
 * through its process, so that no name is left behind however the job ends. */
#ifndef TSR_MPI_RANKS_SHARED_MEMORY_H
#define TSR_MPI_RANKS_SHARED_MEMORY_H

#include "mpi/ranks/world.h"

/* Collective. Zeros, in huge pages where the system has them; `bytes` of at least 1. `what` and `advice` are of
 * messages: "A, B and C", "use a smaller --shape". TSR_ERR_UNSUPPORTED where ranks stand on several nodes,
 * TSR_ERR_MEMORY where as much is not free. */
tsr_status tsr_shared_memory_open(const tsr_world *world, size_t bytes, const char *what, const char *advice,
                                  void **memory);
void tsr_shared_memory_close(void *memory, size_t bytes); /* Local. NULL is fine */

#endif
