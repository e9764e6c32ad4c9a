/* The median of figures, for measurements. */
#ifndef TSR_TESTS_BENCH_MEDIAN_H
#define TSR_TESTS_BENCH_MEDIAN_H

#include <stdlib.h>

static int by_size(const void *a, const void *b) {
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Of count > 0 figures, which it sorts; of an even count the upper one. */
static double median(double *of, int count) {
    qsort(of, (size_t)count, sizeof *of, by_size);
    return of[count / 2];
}

#endif
