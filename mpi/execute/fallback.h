/* Room for the fallback of a plan's kernel that has a fallback itself, out of the memory that the plan leaves: taken
 * when a product falls back, and given back when the executor closes. Used by execute.c alone. */
#ifndef TSR_MPI_EXECUTE_FALLBACK_H
#define TSR_MPI_EXECUTE_FALLBACK_H

#include "kernels/gemm/gemm.h"
#include "mpi/plan/plan.h"

typedef struct {
    tsr_device *device;
    size_t bytes; /* that it wants; 0: there is no such fallback, or not so much memory within the plan's limit */
    void *memory; /* NULL: not taken */
} tsr_fallback;

tsr_fallback tsr_fallback_of(const tsr_plan *plan, tsr_device *device, const tsr_gemm_kernel *kernel);
/* Local. For tsr_gemm_args; NULL where the device has not so much. */
void *tsr_fallback_room(tsr_fallback *fallback);
void tsr_fallback_close(tsr_fallback *fallback);

#endif
