/* Allocation of a plan's buffers (buffers.h). */
#include "mpi/execute/buffers.h"

#include <stdlib.h>

tsr_status tsr_buffers_open(const tsr_plan *plan, tsr_device *device, tsr_kept *kept, void ***buffers) {
    void **made = calloc((size_t)tsr_max(1, plan->buffers), sizeof *made);
    if (!made) return tsr_fail(TSR_ERR_MEMORY, "no memory for a table of %d buffers", plan->buffers);
    tsr_status status = TSR_OK;
    for (int slot = 0; slot < TSR_SLOT_COUNT; slot++) {
        const tsr_slots *s = &plan->slots[slot];
        for (int i = 0; i < s->count; i++)
            TSR_TRY_DONE(s->host ? tsr_kept_take(kept, device, s->bytes, &made[s->first + i])
                                 : device->ops->allocate(device, s->bytes, &made[s->first + i]));
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
        for (int i = 0; i < s->count; i++) {
            if (s->host) tsr_kept_return(kept, device, buffers[s->first + i]);
            else device->ops->release(device, buffers[s->first + i]);
        }
    }
    free(buffers);
}
