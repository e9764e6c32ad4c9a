#include "app/bench_product.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernels/fill.h"

#define STAGE_BYTES ((size_t)32 << 20) /* rows of A and B travel to the device in pieces of this */

tsr_dtype tsr_bench_product_type(tsr_dtype input) { return input == TSR_F64 ? TSR_F64 : TSR_F32; }

/* Device memory for rows × cols random elements. */
static tsr_status make_matrix(const tsr_bench_product *p, uint64_t seed, int64_t rows, int64_t cols, void **memory) {
    const tsr_device_ops *ops = p->device->ops;
    size_t bytes, row_bytes = (size_t)cols * tsr_dtype_bytes(p->input);
    TSR_TRY(tsr_bytes_checked(rows, cols, tsr_dtype_bytes(p->input), &bytes));
    int64_t step = tsr_min(rows, tsr_max(1, (int64_t)(STAGE_BYTES / row_bytes)));
    unsigned char *stage = malloc((size_t)step * row_bytes), *whole = NULL;
    tsr_status status = TSR_OK;
    if (!stage) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory for %" PRId64 " rows of a matrix: use a smaller --shape", step));
    TSR_TRY_DONE(ops->allocate(p->device, bytes, (void **)&whole));
    for (int64_t row = 0; row < rows; row += step) {
        int64_t count = tsr_min(step, rows - row);
        tsr_view view = {stage, {p->input, false}, count, cols, cols};
        TSR_TRY_DONE(tsr_fill_host(TSR_FILL_UNIFORM, seed, row, 0, view));
        TSR_TRY_DONE(ops->upload(p->device, whole + (size_t)row * row_bytes, stage, (size_t)count * row_bytes, p->clock.stream));
        TSR_TRY_DONE(ops->stream_wait(p->device, p->clock.stream));
    }
    *memory = whole;
    whole = NULL;
done:
    ops->release(p->device, whole);
    free(stage);
    return status;
}

tsr_status tsr_bench_product_open(tsr_device *device, tsr_bench_product *p) {
    size_t c_bytes;
    p->device = device;
    p->type = tsr_bench_product_type(p->input);
    TSR_TRY(tsr_bytes_checked(p->m, p->n, tsr_dtype_bytes(p->type), &c_bytes));
    TSR_TRY(device->ops->use(device));
    TSR_TRY(tsr_bench_clock_open(device, &p->clock));
    TSR_TRY(make_matrix(p, TSR_BENCH_SEED_A, p->m, p->k, &p->a));
    TSR_TRY(make_matrix(p, TSR_BENCH_SEED_B, p->k, p->n, &p->b));
    return device->ops->allocate(device, c_bytes, &p->c);
}

void tsr_bench_product_close(tsr_bench_product *p) {
    if (!p->device) return;
    const tsr_device_ops *ops = p->device->ops;
    ops->release(p->device, p->c);
    ops->release(p->device, p->b);
    ops->release(p->device, p->a);
    tsr_bench_clock_close(&p->clock);
    *p = (tsr_bench_product){0};
}

typedef struct {
    const tsr_gemm_kernel *kernel;
    const tsr_bench_product *product;
    const tsr_gemm_args *args;
} launch_context;

static tsr_status launch(void *context) {
    const launch_context *c = context;
    return tsr_gemm_launch(c->kernel, c->product->device, c->product->clock.stream, c->args);
}

tsr_status tsr_bench_product_time(const tsr_bench_product *p, const tsr_gemm_kernel *kernel, int64_t repeat, double *seconds, int64_t *repeats) {
    const tsr_device_ops *ops = p->device->ops;
    void *workspace = NULL;
    size_t workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(p->m, p->n, p->k) : 0;
    tsr_status status = TSR_OK;
    if (workspace_bytes > 0) TSR_TRY_DONE(ops->allocate(p->device, workspace_bytes, &workspace));
    TSR_TRY_DONE(ops->fill_bytes(p->device, p->c, 0xff, (size_t)(p->m * p->n) * tsr_dtype_bytes(p->type), p->clock.stream)); /* NaN */
    const tsr_gemm_args args = {.m = p->m, .n = p->n, .k = p->k, .a = p->a, .lda = p->k, .b = p->b, .ldb = p->n, .c = p->c, .ldc = p->n, .workspace = workspace};
    launch_context context = {kernel, p, &args};
    status = tsr_bench_time(&p->clock, launch, &context, repeat, seconds, repeats);
done:
    ops->release(p->device, workspace);
    return status;
}
