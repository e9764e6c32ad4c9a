#include "app/bench/bench_product.h"

#include "kernels/fill/fill.h"

#define SEED_A 1
#define SEED_B 2

/* Device memory for rows × cols random elements, made there. */
static tsr_status make_matrix(const tsr_bench_product *p, uint64_t seed, int64_t rows, int64_t cols, void **memory) {
    const tsr_fill_ops *fills = tsr_fill_find(p->device->ops->kind);
    size_t bytes;
    TSR_TRY(tsr_bytes_checked(rows, cols, tsr_dtype_bytes(p->input), &bytes));
    TSR_TRY(p->device->ops->allocate(p->device, bytes, memory));
    TSR_TRY(fills->fill(p->device, p->clock.stream, TSR_FILL_UNIFORM, seed, 0, 0,
                        (tsr_view){*memory, {p->input, false}, rows, cols, cols}));
    return p->device->ops->stream_wait(p->device, p->clock.stream);
}

/* What `type` holds of element (i, j) of the fill. */
static double element(uint64_t seed, tsr_dtype type, int64_t i, int64_t j) {
    double bytes = 0;
    (void)tsr_fill_host(TSR_FILL_UNIFORM, seed, i, j, (tsr_view){&bytes, {type, false}, 1, 1, 1});
    return tsr_element_to_double((tsr_element){type, false}, &bytes);
}
double tsr_bench_product_a(const tsr_bench_product *p, int64_t i, int64_t j) { return element(SEED_A, p->input, i, j); }
double tsr_bench_product_b(const tsr_bench_product *p, int64_t i, int64_t j) { return element(SEED_B, p->input, i, j); }

static int64_t products_of(const tsr_bench_product *p) { return tsr_max(1, p->batch); }

tsr_status tsr_bench_product_open(tsr_device *device, tsr_bench_product *p) {
    size_t c_bytes;
    p->device = device;
    p->type = tsr_dtype_compute(p->input);
    TSR_TRY(tsr_bytes_checked(products_of(p) * p->m, p->n, tsr_dtype_bytes(p->type), &c_bytes));
    TSR_TRY(device->ops->use(device));
    TSR_TRY(tsr_bench_clock_open(device, &p->clock));
    TSR_TRY(make_matrix(p, SEED_A, products_of(p) * p->m, p->k, &p->a));
    TSR_TRY(make_matrix(p, SEED_B, products_of(p) * p->k, p->n, &p->b));
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

tsr_status tsr_bench_product_time(const tsr_bench_product *p, const tsr_gemm_kernel *kernel, int64_t repeat,
                                  double *seconds, double *best, int64_t *repeats) {
    const tsr_device_ops *ops = p->device->ops;
    void *workspace = NULL;
    size_t workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(p->m, p->n, p->k) : 0;
    tsr_status status = TSR_OK;
    if (workspace_bytes > 0) TSR_TRY_DONE(ops->allocate(p->device, workspace_bytes, &workspace));
    /* NaN */
    TSR_TRY_DONE(ops->fill_bytes(p->device, p->c, 0xff,
                                 (size_t)(products_of(p) * p->m * p->n) * tsr_dtype_bytes(p->type), p->clock.stream));
    const tsr_gemm_args args = {.m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .a = p->a,
                                .lda = p->k,
                                .b = p->b,
                                .ldb = p->n,
                                .c = p->c,
                                .ldc = p->n,
                                .batch = p->batch,
                                .stride_a = p->m * p->k,
                                .stride_b = p->k * p->n,
                                .stride_c = p->m * p->n,
                                .workspace = workspace};
    launch_context context = {kernel, p, &args};
    status = tsr_bench_time(&p->clock, launch, &context, repeat, seconds, best, repeats);
done:
    ops->release(p->device, workspace);
    return status;
}
