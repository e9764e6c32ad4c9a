/* The code of a plan's kernels, brought to the device before the run. */
#ifndef TSR_MPI_EXECUTE_LOAD_H
#define TSR_MPI_EXECUTE_LOAD_H

#include "kernels/gemm/gemm.h"
#include "mpi/execute/memory/kept.h"
#include "mpi/plan/plan.h"

/* Local; nothing to do on a CPU. Else the first step of each kind would wait for it, and hold up what other lanes ask
 * of the device (tsr_device_load_only). rank: in the grid. buffers: the plan's, from tsr_buffers_open; what is in them
 * is lost. kernel_checks: as the executor's. What only some steps launch, by where their matrices begin, and what makes
 * operands on the device, may still be loaded later. */
tsr_status tsr_kernels_load(const tsr_plan *plan, int rank, tsr_device *device, const tsr_gemm_kernel *kernel,
                            bool kernel_checks, tsr_kept *kept, void **buffers);

#endif
