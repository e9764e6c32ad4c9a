/* How C of a super-block leaves: summed over the ranks that split k, or handed from one of them to the next, finished
 * and written in strips of rows. */
#ifndef TSR_MPI_SCHEDULE_PANEL_DRAIN_H
#define TSR_MPI_SCHEDULE_PANEL_DRAIN_H

#include "mpi/schedule/emitter.h"

/* This rank's part of a super-block, rows × cols of C, of which `sum` holds the accumulators. `diagonal`: the
 * super-block lies on the diagonal of a Gram matrix. */
tsr_status tsr_drain_block(tsr_emitter *e, tsr_span rows, tsr_span cols, bool diagonal, tsr_chain *sum);

#endif
