/* A cancellation on its way (context.h). The ranks are a binary tree: rank r knows (r - 1) / 2, 2r + 1 and 2r + 2. */
#include <string.h>

#include "app/library/api/context.h"

#define CANCEL_TAG 32102

void tsr_spread_open(const tsr_world *world, tsr_spread *s) {
    const int rank = world->rank;
    *s = (tsr_spread){.world = world};
    if (rank > 0) s->neighbours[s->count++] = (rank - 1) / 2;
    for (int child = 1; child <= 2; child++)
        if (child < world->ranks - 2 * rank) s->neighbours[s->count++] = 2 * rank + child;
}

static tsr_status tell(tsr_spread *s) {
    for (int i = 0; i < s->count; i++)
        TSR_TRY(TSR_MPI(MPI_Isend(NULL, 0, MPI_BYTE, s->neighbours[i], CANCEL_TAG, s->world->comm, &s->requests[i])));
    s->told = true;
    return TSR_OK;
}

static tsr_status hear(tsr_spread *s, int i) {
    s->heard[i] = true;
    return TSR_MPI(MPI_Recv(NULL, 0, MPI_BYTE, s->neighbours[i], CANCEL_TAG, s->world->comm, MPI_STATUS_IGNORE));
}

tsr_status tsr_spread_step(tsr_spread *s, atomic_bool *cancelled) {
    for (int i = 0; i < s->count; i++) {
        int there = 0;
        if (s->heard[i]) continue;
        TSR_TRY(TSR_MPI(MPI_Iprobe(s->neighbours[i], CANCEL_TAG, s->world->comm, &there, MPI_STATUS_IGNORE)));
        if (!there) continue;
        TSR_TRY(hear(s, i));
        atomic_store(cancelled, true);
    }
    return atomic_load(cancelled) && !s->told ? tell(s) : TSR_OK;
}

tsr_status tsr_spread_close(tsr_spread *s) {
    int mine = s->told;
    int theirs[3] = {0};
    MPI_Request asked[6];
    for (int i = 0; i < s->count; i++) {
        TSR_TRY(TSR_MPI(
            MPI_Irecv(&theirs[i], 1, MPI_INT, s->neighbours[i], CANCEL_TAG + 1, s->world->comm, &asked[2 * i])));
        TSR_TRY(
            TSR_MPI(MPI_Isend(&mine, 1, MPI_INT, s->neighbours[i], CANCEL_TAG + 1, s->world->comm, &asked[2 * i + 1])));
    }
    for (int i = 0; i < 2 * s->count; i++) TSR_TRY(tsr_wait(&asked[i]));
    for (int i = 0; i < s->count; i++)
        if (theirs[i] && !s->heard[i]) TSR_TRY(hear(s, i));
    return s->told ? TSR_MPI(MPI_Waitall(s->count, s->requests, MPI_STATUSES_IGNORE)) : TSR_OK;
}
