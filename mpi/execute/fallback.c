/* Memory for what falls back (fallback.h). */
#include "mpi/execute/fallback.h"

tsr_fallback tsr_fallback_of(const tsr_plan *plan, tsr_device *device, const tsr_gemm_kernel *kernel) {
    const tsr_extents product = tsr_plan_product(plan);
    const size_t bytes =
        tsr_gemm_has_chain(kernel) ? kernel->fallback->workspace_bytes(product.m, product.n, product.k) : 0;
    const bool fits = plan->device_bytes + (double)bytes <= (double)tsr_device_limit(&plan->resources);
    return (tsr_fallback){.device = device, .bytes = fits ? bytes : 0};
}

void *tsr_fallback_room(tsr_fallback *f) {
    if (f->memory || f->bytes == 0) return f->memory;
    if (f->device->ops->allocate(f->device, f->bytes, &f->memory) != TSR_OK) {
        tsr_message_set(""); /* others have the memory: as without a fallback's fallback */
        f->bytes = 0;
    }
    return f->memory;
}

void tsr_fallback_close(tsr_fallback *f) { f->device->ops->release(f->device, f->memory); }
