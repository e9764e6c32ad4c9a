/* What exact_beside, wide_beside, quarters_beside and exact_auto multiply, and the clock: operands of normal numbers,
 * and of such that need more moduli, or a loop. */
#ifndef TSR_TESTS_BENCH_EXACT_DATA_H
#define TSR_TESTS_BENCH_EXACT_DATA_H

#include <math.h>
#include <stdlib.h>

#include "kernels/fill/fill.h"
#include "kernels/gemm/gemm.h"
#include "tests/check.h"

typedef enum { NORMAL, WIDE, SPARSE, OUTLIERS, GRADED_12, GRADED_16, GRADED_24 } data;

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
    tsr_event *begin, *end;
    tsr_device_facts facts;
} bench;

static inline bench open_bench(void) {
    bench x = {0};
    CHECK_OK(tsr_device_find("cuda", &x.ops));
    CHECK_OK(x.ops->open(0, &x.device));
    CHECK_OK(x.ops->use(x.device));
    CHECK_OK(x.ops->facts(x.device, &x.facts));
    CHECK_OK(x.ops->stream_create(x.device, &x.stream));
    CHECK_OK(x.ops->event_create(x.device, &x.begin));
    CHECK_OK(x.ops->event_create(x.device, &x.end));
    return x;
}

static inline void *allocate(const bench *x, size_t bytes) {
    void *memory;
    CHECK_OK(x->ops->allocate(x->device, bytes + 1, &memory));
    return memory;
}

static inline double get(tsr_dtype type, const void *from, int64_t at) {
    return type == TSR_F64 ? ((const double *)from)[at] : (double)((const float *)from)[at];
}

/* An element of two normal numbers, of which 1 % are larger than 2.5758, and 0.1 % than 3.2905. along: where it stands
 * along k, 0 to 1, of A; from 1 to 0, of B. */
static inline double element_of(data kind, double value, double other, double along) {
    switch (kind) {
    case WIDE: return value * exp(2 * other);
    case SPARSE: return fabs(other) > 2.5758 ? value : 0;
    case OUTLIERS: return fabs(other) > 3.2905 ? 1000 * value : value;
    case GRADED_12: return ldexp(value, (int)(-12 * along));
    case GRADED_16: return ldexp(value, (int)(-16 * along));
    case GRADED_24: return ldexp(value, (int)(-24 * along));
    default: return value;
    }
}

/* A, rows × cols, or B. */
static inline void *operand(const bench *x, tsr_dtype type, int64_t rows, int64_t cols, bool of_b, data kind) {
    const uint64_t seed = of_b ? 2 : 1;
    const size_t bytes = (size_t)(rows * cols) * tsr_dtype_bytes(type);
    const tsr_view view = {NULL, {type, false}, rows, cols, cols};
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
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t line = of_b ? rows - 1 - i / cols : i % cols, lines = of_b ? rows : cols;
        const double along = (double)line / (double)lines;
        const double value = element_of(kind, get(type, host, i), get(type, others, i), along);
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

/* Seconds of a launch, of so many, of the kernel itself, whatever would serve the shape. */
static inline double seconds_of(const bench *x, const tsr_gemm_kernel *kernel, const tsr_gemm_args *args, int count) {
    double seconds;
    CHECK_OK(x->ops->event_record(x->device, x->begin, x->stream));
    for (int i = 0; i < count; i++) CHECK_OK(kernel->launch(x->device, x->stream, args));
    CHECK_OK(x->ops->event_record(x->device, x->end, x->stream));
    CHECK_OK(x->ops->event_wait(x->device, x->end));
    CHECK_OK(x->ops->event_seconds(x->device, x->begin, x->end, &seconds));
    return seconds / count;
}

/* TFLOP/s over so many seconds, after a quarter of that, when what another kernel did before is past. */
static inline double sustained(const bench *x, const tsr_gemm_kernel *kernel, const tsr_gemm_args *args,
                               double seconds) {
    const int count = (int)fmax(1, seconds / seconds_of(x, kernel, args, 2));
    seconds_of(x, kernel, args, 1 + count / 4);
    return 2.0 * (double)args->m * (double)args->n * (double)args->k / seconds_of(x, kernel, args, count) / 1e12;
}

#endif
