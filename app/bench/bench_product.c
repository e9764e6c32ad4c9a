/* A product to be measured, and the clock (bench_product.h). */
#include "app/bench/bench_product.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/fill/fill.h"
#include "kernels/pack/pack.h"

#define SEED_A 1
#define SEED_B 2

#define WARM_SECONDS 0.2  /* clocks and caches settle; at least one launch */
#define MOST_SECONDS 30.0 /* a measurement: slow ones repeat less often */
#define EACH_SECONDS 2e-3 /* between two events at least: quick launches follow each other as they would in a run */
#define MOST_LAUNCHES 200

/* ---- the clock ------------------------------------------------------------------------------- */

tsr_status tsr_bench_clock_open(tsr_device *device, tsr_bench_clock *clock) {
    *clock = (tsr_bench_clock){.device = device};
    TSR_TRY(device->ops->stream_create(device, &clock->stream));
    TSR_TRY(device->ops->event_create(device, &clock->from));
    return device->ops->event_create(device, &clock->to);
}

void tsr_bench_clock_close(tsr_bench_clock *clock) {
    if (clock->to) clock->device->ops->event_destroy(clock->device, clock->to);
    if (clock->from) clock->device->ops->event_destroy(clock->device, clock->from);
    if (clock->stream) clock->device->ops->stream_destroy(clock->device, clock->stream);
    *clock = (tsr_bench_clock){0};
}

/* Seconds of one of `launches` launches in a row. */
static tsr_status time_some(const tsr_bench_clock *clock, tsr_status (*launch)(void *context), void *context,
                            int launches, double *seconds) {
    const tsr_device_ops *ops = clock->device->ops;
    TSR_TRY(ops->event_record(clock->device, clock->from, clock->stream));
    for (int i = 0; i < launches; i++) TSR_TRY(launch(context));
    TSR_TRY(ops->event_record(clock->device, clock->to, clock->stream));
    TSR_TRY(ops->event_wait(clock->device, clock->to));
    TSR_TRY(ops->event_seconds(clock->device, clock->from, clock->to, seconds));
    *seconds /= launches;
    return TSR_OK;
}

int tsr_bench_by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

tsr_status tsr_bench_time(const tsr_bench_clock *clock, tsr_status (*launch)(void *context), void *context,
                          int64_t repeat, double *seconds, double *best, int64_t *repeats) {
    double warm = 0;
    double last = 0;
    double *times = malloc((size_t)repeat * sizeof *times);
    int64_t count = 0;
    int launches = 1;
    tsr_status status = TSR_OK;
    if (!times) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory for %" PRId64 " times: lower --repeat", repeat));
    do {
        TSR_TRY_DONE(time_some(clock, launch, context, launches, &last));
        warm += launches * fmax(last, 1e-5);
        launches = (int)fmin(MOST_LAUNCHES, fmax(1, EACH_SECONDS / fmax(last, 1e-9)));
    } while (warm < WARM_SECONDS);
    count = tsr_max(1, (int64_t)fmin((double)repeat, MOST_SECONDS / fmax(launches * last, 1e-9)));
    for (int64_t i = 0; i < count; i++) TSR_TRY_DONE(time_some(clock, launch, context, launches, &times[i]));
    qsort(times, (size_t)count, sizeof *times, tsr_bench_by_size);
    *seconds = (times[(count - 1) / 2] + times[count / 2]) / 2;
    if (best) *best = times[0];
    *repeats = count;
done:
    free(times);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* ---- the product ----------------------------------------------------------------------------- */

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

/* The same of complex elements, as squares of reals: 2 rows × 2 cols. */
static tsr_status make_squares(const tsr_bench_product *p, uint64_t seed, int64_t rows, int64_t cols, void **memory) {
    const tsr_device_ops *ops = p->device->ops;
    void *elements = NULL;
    size_t bytes;
    tsr_status status = TSR_OK;
    TSR_TRY_DONE(make_matrix(p, seed, rows, 2 * cols, &elements));
    TSR_TRY_DONE(tsr_bytes_checked(2 * rows, 2 * cols, tsr_dtype_bytes(p->input), &bytes));
    TSR_TRY_DONE(ops->allocate(p->device, bytes, memory));
    const tsr_pack_args args = {.from = {elements, {tsr_dtype_complex_of(p->input), false}, rows, cols, cols},
                                .form = TSR_FORM_SQUARES,
                                .to = *memory,
                                .type = p->input,
                                .ld = 2 * cols,
                                .padded_rows = 2 * rows,
                                .padded_cols = 2 * cols};
    TSR_TRY_DONE(tsr_pack_find(ops->kind)->pack(p->device, p->clock.stream, &args));
    TSR_TRY_DONE(ops->stream_wait(p->device, p->clock.stream));
done:
    ops->release(p->device, elements);
    return status;
}

/* What `type` holds of element (i, j) of the fill. */
static double element(uint64_t seed, tsr_dtype type, int64_t i, int64_t j) {
    double bytes = 0;
    (void)tsr_fill_host(TSR_FILL_UNIFORM, seed, i, j, (tsr_view){&bytes, {type, false}, 1, 1, 1});
    return tsr_element_to_double((tsr_element){type, false}, &bytes);
}
double tsr_bench_product_a(const tsr_bench_product *p, int64_t i, int64_t j) { return element(SEED_A, p->input, i, j); }
double tsr_bench_product_b(const tsr_bench_product *p, int64_t i, int64_t j) {
    if (!p->complex) return element(SEED_B, p->input, i, j);
    if (i % 2 == 0) return element(SEED_B, p->input, i / 2, j);
    return j % 2 == 0 ? -element(SEED_B, p->input, i / 2, j + 1) : element(SEED_B, p->input, i / 2, j - 1);
}

static int64_t products_of(const tsr_bench_product *p) { return tsr_max(1, p->batch); }

tsr_bench_product tsr_bench_product_take(tsr_dtype elements, int64_t m, int64_t n, int64_t k, int64_t batch) {
    const int parts = tsr_dtype_parts(elements);
    return (tsr_bench_product){.m = m,
                               .n = parts * n,
                               .k = parts * k,
                               .batch = batch,
                               .input = tsr_dtype_part(elements),
                               .type = tsr_dtype_compute(elements),
                               .complex = parts == 2};
}

tsr_status tsr_bench_product_open(tsr_device *device, tsr_bench_product *p) {
    size_t c_bytes;
    p->device = device;
    p->type = tsr_dtype_compute(p->input);
    TSR_TRY(tsr_bytes_checked(products_of(p) * p->m, p->n, tsr_dtype_bytes(p->type), &c_bytes));
    TSR_TRY(device->ops->use(device));
    TSR_TRY(tsr_bench_clock_open(device, &p->clock));
    TSR_TRY(make_matrix(p, SEED_A, products_of(p) * p->m, p->k, &p->a));
    TSR_TRY(p->complex ? make_squares(p, SEED_B, products_of(p) * p->k / 2, p->n / 2, &p->b)
                       : make_matrix(p, SEED_B, products_of(p) * p->k, p->n, &p->b));
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
