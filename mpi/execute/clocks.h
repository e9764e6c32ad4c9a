/* The clocks of a plan's buffers, and how lanes wait for one another: nothing else orders them
 * (mpi/schedule/schedule.h). */
#ifndef TSR_MPI_EXECUTE_CLOCKS_H
#define TSR_MPI_EXECUTE_CLOCKS_H

#include <pthread.h>

#include "mpi/schedule/schedule.h"

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int64_t *clock; /* one a buffer */
    bool stopped;
} tsr_clocks;

tsr_status tsr_clocks_open(int buffers, tsr_clocks *clocks);
void tsr_clocks_close(tsr_clocks *clocks);
/* Whether every buffer of the step has reached what it waits for. */
bool tsr_clocks_ready(tsr_clocks *clocks, const tsr_step *step);
/* Waits until it has; false when the clocks were stopped. */
bool tsr_clocks_wait(tsr_clocks *clocks, const tsr_step *step);
/* The step is done: moves its clocks on. */
void tsr_clocks_advance(tsr_clocks *clocks, const tsr_step *step);
/* Wakes everybody who waits, for good. */
void tsr_clocks_stop(tsr_clocks *clocks);

#endif
