/* tessera bench: finds what is to be measured and runs it; and what all of them use: the clock and the
 * JSON file. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench.h"
#include "io/nearest.h"
#include "io/text/text_file.h"
#include "kernels/gemm/cpu/blas.h"
#include "mpi/ranks/rank_device.h"

#define WARM_SECONDS 0.2  /* clocks and caches settle; at least one launch */
#define MOST_SECONDS 30.0 /* a measurement: slow ones repeat less often */
#define EACH_SECONDS 2e-3 /* between two events at least: quick launches follow each other as they would in a run */
#define MOST_LAUNCHES 200

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
