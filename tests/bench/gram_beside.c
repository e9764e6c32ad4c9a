/* cuBLAS' cublasSsyrk and cublasDsyrk, the yardstick of Gram matrices: C = A·Aᵀ, n × n, of which half is written.
 * Prints a line of JSON a type: the best of the rounds. Usage: gram_beside [N [ROUNDS]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device/cuda_compat.h"
#include "kernels/fill/fill.h"
#include "kernels/gemm/vendor/cublas.h"
#include "tests/check.h"

typedef struct {
    tsr_dtype type;
    int64_t n;
    tsr_device *device;
    const tsr_device_ops *ops;
    tsr_stream *stream;
    tsr_event *begin, *end;
    cublasHandle_t handle;
    void *a, *c;
} bench;

static void *allocate(const bench *x) {
    void *memory;
    CHECK_OK(x->ops->allocate(x->device, (size_t)(x->n * x->n) * tsr_dtype_bytes(x->type), &memory));
    return memory;
}

/* What is row by row here is the transpose there: its transpose times it, and the half that is upper there. */
static tsr_status syrk(const bench *x) {
    const float one = 1, zero = 0;
    const double one_wide = 1, zero_wide = 0;
    const int64_t n = x->n;
    if (x->type == TSR_F32)
        return TSR_CUBLAS(
            cublasSsyrk_64(x->handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, n, n, &one, x->a, n, &zero, x->c, n));
    return TSR_CUBLAS(
        cublasDsyrk_64(x->handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, n, n, &one_wide, x->a, n, &zero_wide, x->c, n));
}

static double seconds_once(const bench *x) {
    double seconds;
    CHECK_OK(x->ops->event_record(x->device, x->begin, x->stream));
    CHECK_OK(syrk(x));
    CHECK_OK(x->ops->event_record(x->device, x->end, x->stream));
    CHECK_OK(x->ops->event_wait(x->device, x->end));
    CHECK_OK(x->ops->event_seconds(x->device, x->begin, x->end, &seconds));
    return seconds;
}

static void measure(bench *x, int rounds) {
    const double flops = (double)x->n * (double)x->n * (double)x->n;
    double best = INFINITY;
    x->a = allocate(x);
    x->c = allocate(x);
    CHECK_OK(tsr_fill_find(x->ops->kind)
                 ->fill(x->device, x->stream, TSR_FILL_UNIFORM, 1, 0, 0,
                        (tsr_view){x->a, {x->type, false}, x->n, x->n, x->n}));
    seconds_once(x);
    for (int round = 0; round < rounds; round++) best = fmin(best, seconds_once(x));
    printf("{\"type\": \"%s\", \"n\": %lld, \"seconds\": %.6g, \"tflops\": %.6g}\n", tsr_dtype_name(x->type),
           (long long)x->n, best, 2 * flops / best / 1e12); /* as a whole product's, 2·n³ */
    fflush(stdout);
    x->ops->release(x->device, x->a);
    x->ops->release(x->device, x->c);
}

int main(int argc, char **argv) {
    static const tsr_dtype types[] = {TSR_F32, TSR_F64};
    bench x = {.n = argc > 1 ? atoll(argv[1]) : 32768};
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    int devices = 0;
    char why[256];
    CHECK(x.n > 0 && rounds > 0, "usage: gram_beside [N [ROUNDS]]");
    CHECK_OK(tsr_device_find("cuda", &x.ops));
    CHECK_OK(x.ops->count(&devices, why));
    CHECK(devices > 0, "no GPU: %s", why);
    CHECK_OK(x.ops->open(0, &x.device));
    CHECK_OK(x.ops->use(x.device));
    CHECK_OK(x.ops->stream_create(x.device, &x.stream));
    CHECK_OK(x.ops->event_create(x.device, &x.begin));
    CHECK_OK(x.ops->event_create(x.device, &x.end));
    CHECK_OK(tsr_cublas_load());
    CHECK_OK(TSR_CUBLAS(cublasCreate(&x.handle)));
    CHECK_OK(TSR_CUBLAS(cublasSetStream(x.handle, tsr_cuda_stream(x.stream))));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        x.type = types[t];
        measure(&x, rounds);
    }
    CHECK_OK(TSR_CUBLAS(cublasDestroy(x.handle)));
    x.ops->event_destroy(x.device, x.begin);
    x.ops->event_destroy(x.device, x.end);
    x.ops->stream_destroy(x.device, x.stream);
    x.ops->close(x.device);
    return 0;
}
