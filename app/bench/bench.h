/* What the benchmarks of `tessera bench` share: their table, the clock, and the JSON file. Rank 0 measures, on one
 * device; bench multiply on all ranks. */
#ifndef TSR_APP_BENCH_BENCH_H
#define TSR_APP_BENCH_BENCH_H

#include <stdio.h>

#include "app/commands/command.h"
#include "io/text/json.h"
#include "kernels/device/device.h"

/* One thing to measure: one file, one table, one line in cmd_bench.c. */
typedef struct {
    const char *name;
    /* argv[0] is "tessera bench NAME". Runs on every rank and returns the status all ranks agreed on. */
    tsr_status (*run)(const tsr_world *world, int argc, char **argv);
    void (*help)(void);
    const tsr_options *options;
} tsr_bench;

extern const tsr_bench tsr_bench_gemm, tsr_bench_multiply, tsr_bench_memory, tsr_bench_accuracy, tsr_bench_speeds;

/* Collective over world. Finds *file, what is written to (tsr_text_file_resolve), opens the device of that kind and has
 * it measured on rank 0; the same status on every rank. `options` is handed to `measure`. */
tsr_status tsr_bench_on_rank_0(const tsr_world *world, const char *kind, const char **file,
                               tsr_status (*measure)(const void *options, tsr_device *device), const void *options);
/* Local. Where the device is the CPU, BLAS with all cores. */
tsr_status tsr_bench_start_blas(const tsr_device *device);

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

#define TSR_BENCH_JSON "JSON file"                    /* how messages call the file of --json */
void tsr_bench_json_number(FILE *file, double value); /* null for what is not finite */

#endif
