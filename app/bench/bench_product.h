/* One product on one device, to be measured: random operands and C in device memory, all with ld = columns. And the
 * clock that measures it, or anything else on that device. */
#ifndef TSR_APP_BENCH_BENCH_PRODUCT_H
#define TSR_APP_BENCH_BENCH_PRODUCT_H

#include "kernels/device/device.h"
#include "kernels/gemm/gemm.h"

/* A stream and the events before and after what is timed in it. */
typedef struct {
    tsr_device *device; /* not owned */
    tsr_stream *stream;
    tsr_event *from, *to;
} tsr_bench_clock;

/* Local. On failure the clock is to be closed, too. */
tsr_status tsr_bench_clock_open(tsr_device *device, tsr_bench_clock *clock);
void tsr_bench_clock_close(tsr_bench_clock *clock); /* one that is all zeros is fine */
/* Median and, where `best` is not NULL, least seconds of a launch over `repeat` measurements after a warm-up of 0.2
 * s (at least one launch); quick launches are measured several in a row; fewer repeats where they would take over 30
 * s. */
tsr_status tsr_bench_time(const tsr_bench_clock *clock, tsr_status (*launch)(void *context), void *context,
                          int64_t repeat, double *seconds, double *best, int64_t *repeats);

int tsr_bench_by_size(const void *a, const void *b); /* orders doubles for qsort */

typedef struct {
    tsr_device *device; /* not owned */
    tsr_bench_clock clock;
    int64_t m, n, k; /* may be made smaller between measurements */
    int64_t batch;   /* products of this shape, one after the other in memory, a launch; 0 and 1: one */
    tsr_dtype input; /* of A and B */
    tsr_dtype type;  /* of C */
    bool complex;    /* these are the reals of a complex product (tsr_bench_product_take) */
    void *a, *b, *c; /* device memory; A and B uniform in [0, 1): tsr_bench_product_a, _b */
} tsr_bench_product;

/* Local. The product of matrices m × k and k × n with elements of this type. Complex ones are multiplied as reals
 * (kernels/base/form.h): the product is then of m × 2k reals and 2k × 2n. Takes no memory. */
tsr_bench_product tsr_bench_product_take(tsr_dtype elements, int64_t m, int64_t n, int64_t k, int64_t batch);
/* Local. As taken, or m, n, k and input are set; on failure the product is to be closed, too. */
tsr_status tsr_bench_product_open(tsr_device *device, tsr_bench_product *product);
void tsr_bench_product_close(tsr_bench_product *product);
/* Element (i, j) of A or B, as its input type holds it and a complex product has its reals; while m, n and k are as
 * they were when the product was opened. Rows of a batch are counted through. */
double tsr_bench_product_a(const tsr_bench_product *product, int64_t i, int64_t j);
double tsr_bench_product_b(const tsr_bench_product *product, int64_t i, int64_t j);
/* Median and, where `best` is not NULL, least seconds of `repeat` launches (tsr_bench_time). C is NaN before: an
 * element the kernel leaves out shows. */
tsr_status tsr_bench_product_time(const tsr_bench_product *product, const tsr_gemm_kernel *kernel, int64_t repeat,
                                  double *seconds, double *best, int64_t *repeats);

#endif
