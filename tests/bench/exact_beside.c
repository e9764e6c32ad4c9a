/* `exact` beside the vendor's kernel, in turns on one GPU, each for as long as asked, so that the power limit counts:
 * without the proof of its error (unproved), with it (exact), on wide data, normal · exp(2 · normal), and on sparse
 * data, 1 % of the elements.
 * Prints a line of JSON a type and size: TFLOP/s, medians of three rounds (gpu_exact.py reads it).
 * Usage: exact_beside [SECONDS [N...]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/fill/fill.h"
#include "kernels/gemm/exact/exact.h"
#include "tests/check.h"

enum { ROUNDS = 3, KINDS = 5 };
typedef enum { NORMAL, WIDE, SPARSE, DATA } data;

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
    tsr_event *begin, *end;
    tsr_device_facts facts;
} bench;

static void *allocate(const bench *x, size_t bytes) {
    void *memory;
    CHECK_OK(x->ops->allocate(x->device, bytes + 1, &memory));
    return memory;
}

static double get(tsr_dtype type, const void *from, int64_t at) {
    return type == TSR_F64 ? ((const double *)from)[at] : (double)((const float *)from)[at];
}

/* An element of two normal numbers. 1 % of these are larger than 2.5758. */
static double element_of(data kind, double value, double other) {
    if (kind == WIDE) return value * exp(2 * other);
    return fabs(other) > 2.5758 ? value : 0;
}
static void *operand(const bench *x, tsr_dtype type, int64_t n, uint64_t seed, data kind) {
    const size_t bytes = (size_t)(n * n) * tsr_dtype_bytes(type);
    const tsr_view view = {NULL, {type, false}, n, n, n};
    tsr_view at = view;
    at.data = allocate(x, bytes);
    CHECK_OK(tsr_fill_find(x->ops->kind)->fill(x->device, x->stream, TSR_FILL_NORMAL, seed, 0, 0, at));
    if (kind == NORMAL) return at.data;
    tsr_view second = view;
    second.data = allocate(x, bytes);
    char *host = malloc(bytes), *others = malloc(bytes);
    CHECK(host && others, "no memory");
    CHECK_OK(tsr_fill_find(x->ops->kind)->fill(x->device, x->stream, TSR_FILL_NORMAL, seed + 100, 0, 0, second));
    CHECK_OK(x->ops->download(x->device, host, at.data, bytes, x->stream));
    CHECK_OK(x->ops->download(x->device, others, second.data, bytes, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    for (int64_t i = 0; i < n * n; i++) {
        const double value = element_of(kind, get(type, host, i), get(type, others, i));
        if (type == TSR_F64) ((double *)host)[i] = value;
        else ((float *)host)[i] = (float)value;
    }
    CHECK_OK(x->ops->upload(x->device, at.data, host, bytes, x->stream));
    CHECK_OK(x->ops->stream_wait(x->device, x->stream));
    x->ops->release(x->device, second.data);
    free(host);
    free(others);
    return at.data;
}

/* Seconds of a launch, of so many. */
static double seconds_of(const bench *x, const tsr_gemm_kernel *kernel, const tsr_gemm_args *args, int count) {
    double seconds;
    CHECK_OK(x->ops->event_record(x->device, x->begin, x->stream));
    for (int i = 0; i < count; i++) CHECK_OK(tsr_gemm_launch(kernel, x->device, x->stream, args));
    CHECK_OK(x->ops->event_record(x->device, x->end, x->stream));
    CHECK_OK(x->ops->event_wait(x->device, x->end));
    CHECK_OK(x->ops->event_seconds(x->device, x->begin, x->end, &seconds));
    return seconds / count;
}

static int by_size(const void *a, const void *b) {
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static void measure(const bench *x, tsr_dtype type, int64_t n, double seconds) {
    const tsr_gemm_kernel *vendor, *exact,
        *unproved = type == TSR_F64 ? &tsr_gemm_unproved_f64 : &tsr_gemm_unproved_f32;
    CHECK_OK(tsr_gemm_find("cublas", &x->facts, type, type, &vendor));
    CHECK_OK(tsr_gemm_find("exact", &x->facts, type, type, &exact));
    const tsr_gemm_kernel *const kernels[KINDS] = {vendor, unproved, exact, exact, exact};
    const data kinds[KINDS] = {NORMAL, NORMAL, NORMAL, WIDE, SPARSE};
    double rates[KINDS][ROUNDS];
    void *a[DATA], *b[DATA];
    for (int kind = 0; kind < DATA; kind++) {
        a[kind] = operand(x, type, n, 1, (data)kind);
        b[kind] = operand(x, type, n, 2, (data)kind);
    }
    tsr_gemm_args args = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .batch = 1};
    args.c = allocate(x, (size_t)(n * n) * tsr_dtype_bytes(type));
    args.workspace = allocate(x, tsr_max(exact->workspace_bytes(n, n, n), (size_t)64 << 20));
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < KINDS; i++) {
            args.a = a[kinds[i]];
            args.b = b[kinds[i]];
            const int count = (int)fmax(1, seconds / seconds_of(x, kernels[i], &args, 2));
            rates[i][round] = 2.0 * (double)n * (double)n * (double)n / seconds_of(x, kernels[i], &args, count) / 1e12;
        }
    for (int i = 0; i < KINDS; i++) qsort(rates[i], ROUNDS, sizeof(double), by_size);
    printf("{\"device\": \"%s\", \"type\": \"%s\", \"n\": %lld, \"cublas\": %.2f, \"unproved\": %.2f, \"exact\": %.2f, "
           "\"wide\": %.2f, \"sparse\": %.2f}\n",
           x->facts.name, tsr_dtype_name(type), (long long)n, rates[0][ROUNDS / 2], rates[1][ROUNDS / 2],
           rates[2][ROUNDS / 2], rates[3][ROUNDS / 2], rates[4][ROUNDS / 2]);
    fflush(stdout);
    for (int kind = 0; kind < DATA; kind++) {
        x->ops->release(x->device, a[kind]);
        x->ops->release(x->device, b[kind]);
    }
    x->ops->release(x->device, args.c);
    x->ops->release(x->device, args.workspace);
}

int main(int argc, char **argv) {
    static const int64_t usual[] = {4096, 8192, 16384, 8191, 8193};
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    bench x = {0};
    CHECK_OK(tsr_device_find("cuda", &x.ops));
    CHECK_OK(x.ops->open(0, &x.device));
    CHECK_OK(x.ops->use(x.device));
    CHECK_OK(x.ops->facts(x.device, &x.facts));
    CHECK_OK(x.ops->stream_create(x.device, &x.stream));
    CHECK_OK(x.ops->event_create(x.device, &x.begin));
    CHECK_OK(x.ops->event_create(x.device, &x.end));
    for (int type = 0; type < 2; type++)
        for (int i = 0; i < (argc > 2 ? argc - 2 : 5); i++)
            measure(&x, type == 0 ? TSR_F64 : TSR_F32, argc > 2 ? atoll(argv[2 + i]) : usual[i], seconds);
    x.ops->close(x.device);
    return 0;
}
