/* What `tessera bench multiply` shows: each repetition, the lanes of the fastest, what bounds it, the kernel alone,
 * and the peer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/bench_multiply.h"

#define BEST 3 /* repetitions that count */

typedef struct {
    double seconds;
    const char *lane;
    int rank;
} limit;

/* The busiest lane of all ranks, the multiply lane at the rate of the kernel alone where that is known. The exchange
 * lane does not count: its seconds are also those in which it waits for the slowest peer. */
static limit limit_of(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks) {
    limit found = {0, "none", -1};
    const double rate = b->alone.gflops / (b->job.plan.p * b->job.plan.q * b->job.plan.r) * 1e9;
    for (int i = 0; i < b->world->ranks; i++)
        for (int lane = 0; lane < TSR_LANE_COUNT && ranks[i].row >= 0; lane++) {
            const double seconds =
                lane == TSR_LANE_MULTIPLY && isfinite(rate) ? ranks[i].flops / rate : ranks[i].lane_seconds[lane];
            if (lane == TSR_LANE_EXCHANGE) continue;
            if (seconds > found.seconds) found = (limit){seconds, tsr_lane_name((tsr_lane)lane), ranks[i].rank};
        }
    return found;
}

/* Seconds of the BEST fastest repetitions, in ascending order; returns how many there are. */
static int best_of(const tsr_bench_multiply_run *b, double best[BEST]) {
    const int count = (int)tsr_min(BEST, b->o->repeat);
    double *sorted = malloc((size_t)b->o->repeat * sizeof *sorted);
    if (!sorted) {
        best[0] = b->seconds[b->fastest];
        return 1;
    }
    memcpy(sorted, b->seconds, (size_t)b->o->repeat * sizeof *sorted);
    qsort(sorted, (size_t)b->o->repeat, sizeof *sorted, tsr_bench_by_size);
    memcpy(best, sorted, (size_t)count * sizeof *best);
    free(sorted);
    return count;
}

static void fill_record(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks, tsr_run_record *record) {
    const tsr_bench_multiply_options *o = b->o;
    const double seconds = b->seconds[b->fastest];
    *record = (tsr_run_record){.command = o->command,
                               .alpha = 1,
                               .transpose_b = o->gram,
                               .gram = o->gram,
                               .m = o->shape.m,
                               .n = o->shape.n,
                               .k = o->shape.k,
                               .seconds = seconds,
                               .gflops = tsr_bench_flops(o) / seconds / 1e9,
                               .rank_records = ranks};
    tsr_run_describe_engine(&b->job, record);
    tsr_source_record *const sources[] = {&record->a, &record->b, &record->c};
    for (int i = 0; i < 3; i++) {
        tsr_source_record *s = sources[i];
        s->rows = i == 1 && !o->gram ? o->shape.k : o->shape.m;
        s->cols = i == 0 || (i == 1 && o->gram) ? o->shape.k : o->shape.n;
        snprintf(s->name, sizeof s->name, "%s", i < 2 ? tsr_fill_name(o->fill) : o->memory ? "memory" : "device");
        snprintf(s->type, sizeof s->type, "%s", tsr_dtype_name(i < 2 ? o->type : b->data.type));
    }
    snprintf(record->io, sizeof record->io, "%s", o->memory ? "memory" : "device");
    snprintf(record->check, sizeof record->check, "%s", b->check);
    tsr_run_format_checked(&b->job, ranks, record->product_check, sizeof record->product_check);
}

/* ---- terminal -------------------------------------------------------------------------------- */

static void print_alone(const tsr_bench_multiply_run *b) {
    const tsr_bench_alone *alone = &b->alone;
    const double gflops = tsr_bench_flops(b->o) / b->seconds[b->fastest] / 1e9;
    if (alone->why[0]) printf("not measured alone: %s\n", alone->why);
    if (isfinite(alone->gflops))
        printf("kernel %s alone, %" PRId64 "x%" PRId64 "x%" PRId64
               " on every rank at once: %.4g TFLOP/s in all, %.4g on the slowest; the run reached %.1f%% of it\n",
               b->job.kernel->name, alone->m, alone->n, alone->k, alone->gflops / 1e3, alone->slowest / 1e3,
               100 * gflops / alone->gflops);
    if (isfinite(alone->making_seconds))
        printf("making A and B alone: %.4f s of every repetition's work\n", alone->making_seconds);
}

/* Both at work on the same GPUs, or a ratio says nothing. */
static bool peer_compares(const tsr_bench_multiply_run *b) { return b->peer.devices == b->world->ranks; }

static void print_peer(const tsr_bench_multiply_run *b) {
    const tsr_bench_multiply_options *o = b->o;
    const double ours = b->seconds[b->fastest];
    printf("%s on %d GPU%s, best of %" PRId64 ":\n", o->peer, b->peer.devices, b->peer.devices == 1 ? "" : "s",
           o->repeat);
    for (int i = 0; i < o->block_count; i++)
        if (peer_compares(b))
            printf("  block %5" PRId64 " %10.4f s %9.4g TFLOP/s, tessera %.2f times as fast\n", o->blocks[i],
                   b->peer.best[i], tsr_bench_flops(o) / b->peer.best[i] / 1e12, b->peer.best[i] / ours);
        else
            printf("  block %5" PRId64 " %10.4f s %9.4g TFLOP/s\n", o->blocks[i], b->peer.best[i],
                   tsr_bench_flops(o) / b->peer.best[i] / 1e12);
    if (!peer_compares(b))
        printf("  not compared: %d ranks, and it had %d GPUs; set CUDA_VISIBLE_DEVICES to as many as there are ranks\n",
               b->world->ranks, b->peer.devices);
    printf("  check %s\n", b->peer.check);
}

void tsr_bench_multiply_print(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks) {
    const tsr_bench_multiply_options *o = b->o;
    const double flops = tsr_bench_flops(o), seconds = b->seconds[b->fastest];
    const limit bound = limit_of(b, ranks);
    double best[BEST];
    tsr_run_record record;
    fill_record(b, ranks, &record);
    printf("multiply %s, %s data %s\n", tsr_dtype_name(o->type), tsr_fill_name(o->fill),
           o->memory ? "in host memory, C too" : "made on the device, C left there");
    for (int64_t i = 0; i < o->repeat; i++)
        printf("repetition %3" PRId64 " %10.4f s %9.4g TFLOP/s\n", i + 1, b->seconds[i], flops / b->seconds[i] / 1e12);
    const int count = best_of(b, best);
    printf("best %d:", count);
    for (int i = 0; i < count; i++) printf(" %.4g", flops / best[i] / 1e12);
    printf(" TFLOP/s; the first reached %.0f%% of the best. The best in full:\n", 100 * seconds / b->seconds[0]);
    if (o->ranks) {
        tsr_record_print_ranks(&record, stdout);
        putchar('\n');
    }
    tsr_record_print(&record, NULL, stdout);
    print_alone(b);
    printf("limit with the kernel's rate alone %.4f s, the %s lane of rank %d: %.1f%% of the run\n", bound.seconds,
           bound.lane, bound.rank, 100 * bound.seconds / seconds);
    if (o->peer) print_peer(b);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_peer(const tsr_bench_multiply_run *b, FILE *file) {
    const tsr_bench_multiply_options *o = b->o;
    const double fastest = b->peer.best[b->peer.fastest];
    fprintf(file, " \"peer\": {\"name\": \"%s\", \"devices\": %d, \"blocks\": [", o->peer, b->peer.devices);
    for (int i = 0; i < o->block_count; i++)
        fprintf(file, "%s{\"block\": %" PRId64 ", \"seconds\": %.9g, \"tflops\": %.6g}", i > 0 ? ", " : "",
                o->blocks[i], b->peer.best[i], tsr_bench_flops(o) / b->peer.best[i] / 1e12);
    fprintf(file, "], \"block\": %" PRId64 ", \"tflops\": %.6g, \"ratio\": ", o->blocks[b->peer.fastest],
            tsr_bench_flops(o) / fastest / 1e12);
    tsr_bench_json_number(file, peer_compares(b) ? fastest / b->seconds[b->fastest] : NAN);
    fprintf(file, ", \"check\": ");
    tsr_json_string(file, b->peer.check);
    fprintf(file, "},\n");
}

static void json_alone(const tsr_bench_multiply_run *b, FILE *file) {
    const tsr_bench_alone *alone = &b->alone;
    const double gflops = tsr_bench_flops(b->o) / b->seconds[b->fastest] / 1e9;
    fprintf(file, " \"alone\": {\"m\": %" PRId64 ", \"n\": %" PRId64 ", \"k\": %" PRId64, alone->m, alone->n, alone->k);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"tflops", alone->gflops / 1e3},
                   {"slowest_tflops", alone->slowest / 1e3},
                   {"ratio", gflops / alone->gflops},
                   {"making_seconds", alone->making_seconds}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        fprintf(file, ", \"%s\": ", numbers[i].name);
        tsr_bench_json_number(file, numbers[i].value);
    }
    fprintf(file, ", \"not_measured\": ");
    tsr_json_string(file, alone->why);
    fprintf(file, "},\n");
}

void tsr_bench_multiply_json(const tsr_bench_multiply_run *b, const tsr_rank_record *ranks, FILE *file) {
    const tsr_bench_multiply_options *o = b->o;
    const double flops = tsr_bench_flops(o), seconds = b->seconds[b->fastest];
    const limit bound = limit_of(b, ranks);
    double best[BEST];
    tsr_run_record record;
    fill_record(b, ranks, &record);
    fprintf(file, "{\"format\": %d, \"version\": \"%s\", \"device\": ", TSR_RECORD_FORMAT, TSR_VERSION);
    tsr_json_string(file, b->job.facts.name);
    fprintf(file, ", \"data\": \"%s\", \"distribution\": \"%s\", \"operands\": \"%s\",\n \"seconds\": [",
            o->memory ? "memory" : "device", tsr_fill_name(o->fill), tsr_dtype_name(o->type));
    for (int64_t i = 0; i < o->repeat; i++) fprintf(file, "%s%.9g", i > 0 ? ", " : "", b->seconds[i]);
    const int count = best_of(b, best);
    fprintf(file, "], \"best_seconds\": [");
    for (int i = 0; i < count; i++) fprintf(file, "%s%.9g", i > 0 ? ", " : "", best[i]);
    fprintf(file, "], \"tflops\": %.6g, \"first_share\": %.6g,\n", flops / seconds / 1e12, seconds / b->seconds[0]);
    json_alone(b, file);
    fprintf(file, " \"limit\": {\"seconds\": %.9g, \"lane\": \"%s\", \"rank\": %d, \"share\": %.6g},\n", bound.seconds,
            bound.lane, bound.rank, bound.seconds / seconds);
    if (o->peer) json_peer(b, file);
    fprintf(file, " \"record\": ");
    (void)tsr_record_write_json(&record, file); /* what fails shows when the file is closed */
    fprintf(file, "}\n");
}
