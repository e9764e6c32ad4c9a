/* Steps as ranges of NVTX, which Nsight Systems shows beside what the GPU does: one a step, on its lane's thread, while
 * the step is issued; the GPU's work is drawn below it. The domain is "tessera", the category the lane, the payload the
 * lane's bytes. In builds with CUDA whose toolkit has nvtx3; elsewhere, and where no tool listens, nothing is done. */
#ifndef TSR_MPI_EXECUTE_RANGES_H
#define TSR_MPI_EXECUTE_RANGES_H

#include "mpi/schedule/schedule.h"

typedef struct tsr_ranges tsr_ranges; /* of one executor; NULL: no tool listens, which all below take */

#ifdef TSR_HAVE_NVTX
/* Local. */
tsr_ranges *tsr_ranges_open(void);
void tsr_ranges_close(tsr_ranges *ranges);
/* The calling thread is the lane's: that is what the tool calls it. */
void tsr_ranges_thread(const tsr_ranges *ranges, tsr_lane lane);
/* The step begins and ends on the calling thread: "read A [0:512,256:512]", rows and columns of the matrix as it is
 * stored; without a tile "reduce C". */
void tsr_range_begin(tsr_ranges *ranges, const tsr_step *step);
void tsr_range_end(tsr_ranges *ranges);
#else
static inline tsr_ranges *tsr_ranges_open(void) { return NULL; }
static inline void tsr_ranges_close(tsr_ranges *ranges) { (void)ranges; }
static inline void tsr_ranges_thread(const tsr_ranges *ranges, tsr_lane lane) {
    (void)ranges;
    (void)lane;
}
static inline void tsr_range_begin(tsr_ranges *ranges, const tsr_step *step) {
    (void)ranges;
    (void)step;
}
static inline void tsr_range_end(tsr_ranges *ranges) { (void)ranges; }
#endif

#endif
