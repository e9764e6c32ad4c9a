/* Allocation of a plan's buffers (buffers.h). */
#include "mpi/execute/memory/buffers.h"

#include <stdlib.h>

static tsr_kept_kind kind_of(const tsr_slots *slots) { return slots->host ? TSR_KEPT_HOST : TSR_KEPT_DEVICE; }

tsr_status tsr_buffers_open(const tsr_plan *plan, tsr_device *device, tsr_kept *kept, void ***buffers) {
    void **made = calloc((size_t)tsr_max(1, plan->buffers), sizeof *made);
    if (!made) return tsr_fail(TSR_ERR_MEMORY, "no memory for a table of %d buffers", plan->buffers);
    tsr_status status = TSR_OK;
    for (int slot = 0; slot < TSR_SLOT_COUNT; slot++) {
        const tsr_slots *s = &plan->slots[slot];
        for (int i = 0; i < s->count; i++)
            TSR_TRY_DONE(tsr_kept_take(kept, device, kind_of(s), s->bytes, &made[s->first + i]));
    }
    *buffers = made;
    return TSR_OK;
done:
    tsr_buffers_close(plan, device, kept, made);
    return status;
}

void tsr_buffers_close(const tsr_plan *plan, tsr_device *device, tsr_kept *kept, void **buffers) {
    if (!buffers) return;
    for (int slot = 0; slot < TSR_SLOT_COUNT; slot++) {
        const tsr_slots *s = &plan->slots[slot];
        for (int i = 0; i < s->count; i++) tsr_kept_return(kept, device, kind_of(s), buffers[s->first + i]);
    }
    free(buffers);
}
