/* Every kind of step once, while launches load only (load.h). */
#include "mpi/execute/load.h"

#include "mpi/execute/execute_step.h"

#define KINDS (TSR_STEP_JUDGE + 1)
#define KERNELS 8 /* that make products, at most; others are loaded when they are launched */

typedef struct {
    tsr_execution x;
    void **buffers;
    tsr_stream *stream;
    bool seen[KINDS][TSR_OPERAND_C + 1];
    const tsr_gemm_kernel *made[KERNELS];
} loading;

/* Whether products of this step are made by a kernel that was not seen yet. */
static bool is_new_kernel(loading *l, const tsr_step *step) {
    const tsr_gemm_kernel *kernel = tsr_gemm_making(l->x.kernel, step->batch, step->m, step->n, step->k);
    for (int i = 0; i < KERNELS; i++) {
        if (l->made[i] == kernel) return false;
        if (l->made[i]) continue;
        l->made[i] = kernel;
        return true;
    }
    return false;
}

static bool is_new(loading *l, const tsr_step *step) {
    switch (step->kind) {
    case TSR_STEP_MULTIPLY: return is_new_kernel(l, step);
    case TSR_STEP_MIRROR: return true; /* by which kernels depends on where it is */
    case TSR_STEP_PACK:                /* each operand by a kernel of its own */
    case TSR_STEP_ADD_UP:
    case TSR_STEP_JUDGE:
    case TSR_STEP_FINISH:
    case TSR_STEP_TRANSPOSE:
    case TSR_STEP_PASS: break;
    default: return false; /* launches none, or is not this device's alone */
    }
    bool *seen = &l->seen[step->kind][step->operand];
    const bool is = !*seen;
    *seen = true;
    return is;
}

static tsr_status load_step(void *context, const tsr_step *step) {
    loading *l = context;
    if (!is_new(l, step)) return TSR_OK;
    tsr_step all = *step; /* of a product both what opens a block of C and what closes it */
    all.opens = all.closes = true;
    return tsr_step_run(&l->x, l->buffers, l->stream, &all);
}

tsr_status tsr_kernels_load(const tsr_plan *plan, int rank, tsr_device *device, const tsr_gemm_kernel *kernel,
                            bool kernel_checks, tsr_kept *kept, void **buffers) {
    const tsr_device_ops *ops = device->ops;
    uint64_t doubtful;
    loading l = {
        .x = {.plan = plan, .device = device, .kernel = kernel, .kernel_checks = kernel_checks, .doubtful = &doubtful},
        .buffers = buffers};
    if (ops->kind == TSR_DEVICE_CPU) return TSR_OK;
    tsr_status status;
    TSR_TRY_DONE(tsr_kept_take(kept, device, TSR_KEPT_DEVICE, sizeof *l.x.counters, (void **)&l.x.counters));
    TSR_TRY_DONE(ops->stream_create(device, &l.stream));
    tsr_device_load_only(true);
    status = plan->schedule->emit(plan, rank, load_step, &l);
    tsr_device_load_only(false);
    if (status == TSR_OK) status = ops->stream_wait(device, l.stream);
done:
    if (l.stream) ops->stream_destroy(device, l.stream);
    tsr_kept_return(kept, device, TSR_KEPT_DEVICE, l.x.counters);
    return status;
}
