/* The memory of a plan. */
#ifndef TSR_MPI_EXECUTE_MEMORY_BUFFERS_H
#define TSR_MPI_EXECUTE_MEMORY_BUFFERS_H

#include "mpi/execute/memory/kept.h"
#include "mpi/plan/plan.h"

/* Local. Every buffer of the plan, by number: on the device, or pinned on the host, where they may come from `kept` and
 * go back there (NULL: they do not). *buffers is the caller's until tsr_buffers_close. */
tsr_status tsr_buffers_open(const tsr_plan *plan, tsr_device *device, tsr_kept *kept, void ***buffers);
void tsr_buffers_close(const tsr_plan *plan, tsr_device *device, tsr_kept *kept, void **buffers); /* NULL is fine */

#endif
