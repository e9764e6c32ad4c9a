/* tessera bench: finds what is to be measured and runs it; and what all of them use, such as the JSON file. */
#include <math.h>
#include <string.h>

#include "app/bench/bench.h"
#include "io/nearest.h"
#include "io/text/text_file.h"
#include "kernels/gemm/cpu/blas.h"
#include "mpi/ranks/rank_device.h"

static const tsr_bench *const benches[] = {&tsr_bench_gemm, &tsr_bench_multiply, &tsr_bench_memory, &tsr_bench_accuracy,
                                           &tsr_bench_speeds};
#define BENCHES (sizeof benches / sizeof *benches)

/* ---- on one rank ----------------------------------------------------------------------------- */

tsr_status tsr_bench_on_rank_0(const tsr_world *world, const char *kind, const char **file,
                               tsr_status (*measure)(const void *options, tsr_device *device), const void *options) {
    tsr_device *device = NULL;
    int shared;
    TSR_TRY(tsr_agree(world->comm, tsr_text_file_resolve(file)));
    TSR_TRY(tsr_device_choose(world, kind, &device, &shared));
    const tsr_status status = tsr_agree(world->comm, world->rank == 0 ? measure(options, device) : TSR_OK);
    device->ops->close(device);
    return status;
}

tsr_status tsr_bench_start_blas(const tsr_device *device) {
    return device->ops->kind == TSR_DEVICE_CPU ? tsr_blas_start(tsr_cpu_threads(tsr_cpu_cores())) : TSR_OK;
}

void tsr_bench_json_number(FILE *file, double value) {
    if (isfinite(value)) fprintf(file, "%.6g", value);
    else fprintf(file, "null");
}

/* ---- the command ----------------------------------------------------------------------------- */

#define WHAT "use tessera bench gemm, multiply, memory, accuracy or speeds"

static const tsr_bench *find_bench(const char *name) {
    for (size_t i = 0; i < BENCHES; i++)
        if (strcmp(name, benches[i]->name) == 0) return benches[i];
    return NULL;
}

static tsr_status find(int argc, char **argv, const tsr_bench **found) {
    char meant[160];
    if (argc < 2) return tsr_fail(TSR_ERR_USAGE, "bench: what is to be measured is missing: " WHAT);
    *found = find_bench(argv[1]);
    if (*found) return TSR_OK;
    if (argv[1][0] == '-')
        return tsr_fail(TSR_ERR_USAGE,
                        "bench: option '%s' before what is to be measured: " WHAT
                        ", then options (tessera bench --help explains them)",
                        argv[1]);
    tsr_nearest nearest = {.wanted = argv[1]};
    for (size_t i = 0; i < BENCHES; i++) tsr_nearest_offer(&nearest, benches[i]->name);
    return tsr_fail(TSR_ERR_USAGE, "bench: cannot measure '%s'%s (" WHAT ")", argv[1],
                    tsr_did_you_mean(&nearest, "", meant, sizeof meant));
}

static tsr_status run(const tsr_world *world, int argc, char **argv) {
    const tsr_bench *bench = NULL;
    char name[64];
    TSR_TRY(tsr_agree(world->comm, find(argc, argv, &bench)));
    snprintf(name, sizeof name, "tessera bench %s", bench->name);
    argv[1] = name;
    return bench->run(world, argc - 1, argv + 1);
}

/* One of them, or all. */
static void help(const char *part) {
    const tsr_bench *one = part ? find_bench(part) : NULL;
    for (size_t i = 0; i < BENCHES; i++) {
        if (one && benches[i] != one) continue;
        if (!one && i > 0) printf("\n");
        benches[i]->help();
    }
}

static const tsr_options *find_part(size_t i, const char **name) {
    if (i >= BENCHES) return NULL;
    *name = benches[i]->name;
    return benches[i]->options;
}

const tsr_command tsr_cmd_bench = {
    .name = "bench",
    .what = "what this machine reaches: gemm, multiply, memory, accuracy, speeds",
    .run = run,
    .help = help,
    .part = find_part,
};
