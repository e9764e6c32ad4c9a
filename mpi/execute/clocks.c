/* Clocks of buffers (clocks.h): one lock and one condition for all, since steps take milliseconds. */
#include "mpi/execute/clocks.h"

#include <stdlib.h>

tsr_status tsr_clocks_open(int buffers, tsr_clocks *clocks) {
    int64_t *clock = calloc((size_t)tsr_max(1, buffers), sizeof *clock);
    if (!clock) return tsr_fail(TSR_ERR_MEMORY, "no memory for the clocks of %d buffers", buffers);
    *clocks = (tsr_clocks){.clock = clock};
    pthread_mutex_init(&clocks->lock, NULL);
    pthread_cond_init(&clocks->moved, NULL);
    return TSR_OK;
}

void tsr_clocks_close(tsr_clocks *clocks) {
    if (!clocks->clock) return;
    pthread_cond_destroy(&clocks->moved);
    pthread_mutex_destroy(&clocks->lock);
    free(clocks->clock);
    clocks->clock = NULL;
}

static bool ready(const tsr_clocks *clocks, const tsr_step *step) {
    for (int i = 0; i < TSR_STEP_SLOTS; i++) {
        const tsr_slot_use *use = &step->slots[i];
        if (use->buffer >= 0 && clocks->clock[use->buffer] < use->wait) return false;
    }
    return true;
}

bool tsr_clocks_ready(tsr_clocks *clocks, const tsr_step *step) {
    pthread_mutex_lock(&clocks->lock);
    bool is = ready(clocks, step);
    pthread_mutex_unlock(&clocks->lock);
    return is;
}

bool tsr_clocks_wait(tsr_clocks *clocks, const tsr_step *step) {
    pthread_mutex_lock(&clocks->lock);
    while (!clocks->stopped && !ready(clocks, step)) pthread_cond_wait(&clocks->moved, &clocks->lock);
    bool go = !clocks->stopped;
    pthread_mutex_unlock(&clocks->lock);
    return go;
}

void tsr_clocks_advance(tsr_clocks *clocks, const tsr_step *step) {
    pthread_mutex_lock(&clocks->lock);
    for (int i = 0; i < TSR_STEP_SLOTS; i++) {
        const tsr_slot_use *use = &step->slots[i];
        if (use->buffer >= 0 && use->set >= 0) clocks->clock[use->buffer] = use->set;
    }
    pthread_cond_broadcast(&clocks->moved);
    pthread_mutex_unlock(&clocks->lock);
}

void tsr_clocks_stop(tsr_clocks *clocks) {
    pthread_mutex_lock(&clocks->lock);
    clocks->stopped = true;
    pthread_cond_broadcast(&clocks->moved);
    pthread_mutex_unlock(&clocks->lock);
}
