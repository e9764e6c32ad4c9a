/* What the benchmarks of `tessera bench` share: their table, the clock, and the JSON file. Rank 0 measures, on one
 * device; bench multiply on all ranks. */
#ifndef TSR_APP_BENCH_BENCH_H
#define TSR_APP_BENCH_BENCH_H

#include <stdio.h>

#include "app/bench/bench_product.h"
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

#define TSR_BENCH_JSON "JSON file"                    /* how messages call the file of --json */
void tsr_bench_json_number(FILE *file, double value); /* null for what is not finite */

#endif
