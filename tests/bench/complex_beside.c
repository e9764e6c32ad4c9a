/* Complex products beside cuBLAS' cublasCgemm and cublasZgemm, in turns in one run: B packed and multiplied as reals by
 * the kernel that `auto` takes, and cuBLAS on the same matrices. Prints a line of JSON a type.
 * Usage: complex_beside [N [ROUNDS]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device/cuda_compat.h"
#include "kernels/fill/fill.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/vendor/cublas.h"
#include "kernels/pack/pack.h"
#include "tests/bench/median.h"
#include "tests/check.h"

enum { LAUNCHES = 5, ROUNDS_MOST = 100, ROWS_CHECKED = 16 };

typedef struct {
    tsr_dtype type;
    int64_t n;
    tsr_device *device;
    const tsr_device_ops *ops;
    tsr_stream *stream;
    tsr_event *begin, *end;
    const tsr_gemm_kernel *kernel;
    cublasHandle_t handle;
    void *a, *b, *c;
    void *packed, *vendor_c, *workspace;
} bench;

static void *allocate(const bench *x, size_t bytes) {
    void *memory;
    CHECK_OK(x->ops->allocate(x->device, bytes, &memory));
    return memory;
}

static void *made(const bench *x, uint64_t seed) {
    const size_t bytes = (size_t)(x->n * x->n) * tsr_dtype_bytes(x->type);
    const tsr_view view = {allocate(x, bytes), {x->type, false}, x->n, x->n, x->n};
    CHECK_OK(tsr_fill_find(x->ops->kind)->fill(x->device, x->stream, TSR_FILL_NORMAL, seed, 0, 0, view));
    return view.data;
}

static void ours(const bench *x) {
    const tsr_pack_args pack = {.from = {x->b, {x->type, false}, x->n, x->n, x->n},
                                .form = TSR_FORM_SQUARES,
                                .to = x->packed,
                                .type = tsr_dtype_part(x->type),
                                .ld = 2 * x->n,
                                .padded_rows = 2 * x->n,
                                .padded_cols = 2 * x->n};
    const tsr_gemm_args product = {.m = x->n,
                                   .n = 2 * x->n,
                                   .k = 2 * x->n,
                                   .a = x->a,
                                   .lda = 2 * x->n,
                                   .b = x->packed,
                                   .ldb = 2 * x->n,
                                   .c = x->c,
                                   .ldc = 2 * x->n,
                                   .workspace = x->workspace};
    CHECK_OK(tsr_pack_find(x->ops->kind)->pack(x->device, x->stream, &pack));
    CHECK_OK(tsr_gemm_launch(x->kernel, x->device, x->stream, &product));
}

static void vendor(const bench *x) {
    const int64_t n = x->n;
    if (tsr_dtype_bytes(x->type) == sizeof(cuComplex)) {
        const cuComplex one = {1, 0}, zero = {0, 0};
        CHECK_OK(TSR_CUBLAS(cublasCgemm_64(x->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, x->b, n, x->a, n, &zero,
                                           x->vendor_c, n)));
    } else {
        const cuDoubleComplex one = {1, 0}, zero = {0, 0};
        CHECK_OK(TSR_CUBLAS(cublasZgemm_64(x->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, x->b, n, x->a, n, &zero,
                                           x->vendor_c, n)));
    }
}

/* Of one product, in the mean of a few one after the other. */
static double seconds_of(const bench *x, void (*multiply)(const bench *x)) {
    double seconds;
    CHECK_OK(x->ops->event_record(x->device, x->begin, x->stream));
    for (int i = 0; i < LAUNCHES; i++) multiply(x);
    CHECK_OK(x->ops->event_record(x->device, x->end, x->stream));
    CHECK_OK(x->ops->event_wait(x->device, x->end));
    CHECK_OK(x->ops->event_seconds(x->device, x->begin, x->end, &seconds));
    return seconds / LAUNCHES;
}

/* Largest difference of the first rows, of the largest element there. */
static double difference(const bench *x) {
    const size_t bytes = (size_t)(ROWS_CHECKED * x->n) * tsr_dtype_bytes(x->type);
    char *mine = malloc(bytes), *theirs = malloc(bytes);
    double worst = 0, largest = 0;
    CHECK(mine != NULL && theirs != NULL, "no memory");
    CHECK_OK(x->ops->download(x->device, mine, x->c, bytes, x->stream));
    CHECK_OK(x->ops->download(x->device, theirs, x->vendor_c, bytes, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    for (size_t at = 0; at < bytes; at += tsr_dtype_bytes(x->type)) {
        const tsr_element element = {x->type, false};
        const tsr_complex u = tsr_element_to_complex(element, mine + at),
                          v = tsr_element_to_complex(element, theirs + at);
        worst = fmax(worst, hypot(u.re - v.re, u.im - v.im));
        largest = fmax(largest, hypot(v.re, v.im));
    }
    free(mine);
    free(theirs);
    return worst / largest;
}

static void measure(bench *x, const tsr_device_facts *facts, int rounds) {
    const tsr_dtype part = tsr_dtype_part(x->type);
    const int64_t n = x->n;
    const size_t reals = (size_t)(4 * n * n) * tsr_dtype_bytes(part);
    double mine[ROUNDS_MOST], theirs[ROUNDS_MOST];
    tsr_gemm_request request = {.a = part,
                                .b = part,
                                .type = part,
                                .m = n,
                                .n = 2 * n,
                                .k = 2 * n,
                                .flops = 8.0 * (double)n * (double)n * (double)n};
    CHECK_OK(tsr_gemm_choose("auto", facts, &request, &x->kernel));
    x->a = made(x, 1);
    x->b = made(x, 2);
    x->packed = allocate(x, reals);
    x->c = allocate(x, reals / 2);
    x->vendor_c = allocate(x, reals / 2);
    x->workspace = allocate(x, x->kernel->workspace_bytes ? x->kernel->workspace_bytes(n, 2 * n, 2 * n) + 1 : 1);
    for (int warm = 0; warm < 2; warm++) {
        seconds_of(x, ours);
        seconds_of(x, vendor);
    }
    for (int round = 0; round < rounds; round++) {
        mine[round] = seconds_of(x, ours);
        theirs[round] = seconds_of(x, vendor);
    }
    const double off = difference(x), allowed = sqrt((double)n) * 64 * tsr_dtype_roundoff(part);
    CHECK(off <= allowed, "%s: C differs from cuBLAS' by %g, allowed %g", tsr_dtype_name(x->type), off, allowed);
    const double flops = 8.0 * (double)n * (double)n * (double)n;
    const double seconds = median(mine, rounds), vendors = median(theirs, rounds);
    printf("{\"device\": \"%s\", \"type\": \"%s\", \"n\": %lld, \"kernel\": \"%s\", \"seconds\": %.6g, "
           "\"gflops\": %.6g, \"vendor_seconds\": %.6g, \"vendor_gflops\": %.6g, \"vendor_ratio\": %.4g, "
           "\"difference\": %.3g}\n",
           facts->name, tsr_dtype_name(x->type), (long long)n, x->kernel->name, seconds, flops / seconds / 1e9, vendors,
           flops / vendors / 1e9, vendors / seconds, off);
    fflush(stdout);
    void *memory[] = {x->a, x->b, x->packed, x->c, x->vendor_c, x->workspace};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) x->ops->release(x->device, memory[i]);
}

int main(int argc, char **argv) {
    static const tsr_dtype types[] = {TSR_C64, TSR_C128};
    bench x = {.n = argc > 1 ? atoll(argv[1]) : 8192};
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    tsr_device_facts facts;
    int devices = 0;
    char why[256];
    CHECK(x.n > ROWS_CHECKED && rounds > 0 && rounds <= ROUNDS_MOST, "usage: complex_beside [N [ROUNDS]]");
    CHECK_OK(tsr_device_find("cuda", &x.ops));
    CHECK_OK(x.ops->count(&devices, why));
    CHECK(devices > 0, "no GPU: %s", why);
    CHECK_OK(x.ops->open(0, &x.device));
    CHECK_OK(x.ops->use(x.device));
    CHECK_OK(x.ops->facts(x.device, &facts));
    CHECK_OK(x.ops->stream_create(x.device, &x.stream));
    CHECK_OK(x.ops->event_create(x.device, &x.begin));
    CHECK_OK(x.ops->event_create(x.device, &x.end));
    CHECK_OK(tsr_cublas_load());
    CHECK_OK(TSR_CUBLAS(cublasCreate(&x.handle)));
    CHECK_OK(TSR_CUBLAS(cublasSetStream(x.handle, tsr_cuda_stream(x.stream))));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        x.type = types[t];
        measure(&x, &facts, rounds);
    }
    CHECK_OK(TSR_CUBLAS(cublasDestroy(x.handle)));
    x.ops->event_destroy(x.device, x.begin);
    x.ops->event_destroy(x.device, x.end);
    x.ops->stream_destroy(x.device, x.stream);
    x.ops->close(x.device);
    return 0;
}
