/* What a report says of a run in words (report.h): the same on the page and in the terminal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/report.h"
#include "io/text/text.h"

const char *tsr_report_seconds(double seconds, char text[32]) {
    if (!isfinite(seconds)) snprintf(text, 32, "unknown seconds");
    else if (seconds >= 3600)
        snprintf(text, 32, "%.0f h %.0f min", floor(seconds / 3600), floor(fmod(seconds, 3600) / 60));
    else if (seconds >= 120) snprintf(text, 32, "%.0f min %.0f s", floor(seconds / 60), floor(fmod(seconds, 60)));
    else if (seconds >= 1) snprintf(text, 32, "%.3g s", seconds);
    else if (seconds >= 1e-3) snprintf(text, 32, "%.3g ms", seconds * 1e3);
    else snprintf(text, 32, "%.3g us", seconds * 1e6);
    return text;
}

const char *tsr_report_speed(double gflops, char text[32]) {
    if (!isfinite(gflops)) snprintf(text, 32, "unknown speed");
    else if (gflops >= 1e6) snprintf(text, 32, "%.3g PFLOP/s", gflops / 1e6);
    else if (gflops >= 1e3) snprintf(text, 32, "%.3g TFLOP/s", gflops / 1e3);
    else snprintf(text, 32, "%.3g GFLOP/s", gflops);
    return text;
}

const char *tsr_report_device(const tsr_rank_record *rank, char text[96]) {
    snprintf(text, 96, "%s", rank->device);
    char *number = strstr(text, " #");
    if (number) *number = '\0';
    return text;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

/* "A 24 x 16 matrix times a 16 x 20 one", as they were multiplied: after a transposition. */
static void say_product(const tsr_run_record *r, char *text, size_t chars) {
    if (r->products != 1) tsr_text_append(text, chars, "%lld products of ", (long long)r->products);
    tsr_text_append(text, chars, "%s %lld x %lld ", r->products != 1 ? "a" : "A", (long long)r->m, (long long)r->k);
    tsr_text_append(text, chars, "matrix");
    if (r->gram) tsr_text_append(text, chars, " times its own transpose");
    else tsr_text_append(text, chars, " times a %lld x %lld one", (long long)r->k, (long long)r->n);
}

static int compare_hosts(const void *a, const void *b) {
    return strcmp((*(const tsr_rank_record *const *)a)->host, (*(const tsr_rank_record *const *)b)->host);
}

/* Different hosts of the ranks; 0 without memory. */
static int count_hosts(const tsr_run_record *r) {
    const tsr_rank_record **order = malloc(((size_t)r->ranks + 1) * sizeof *order);
    int hosts = 0;
    if (!order) return 0;
    for (int i = 0; i < r->ranks; i++) order[i] = &r->rank_records[i];
    qsort(order, (size_t)r->ranks, sizeof *order, compare_hosts);
    for (int i = 0; i < r->ranks; i++) hosts += i == 0 || strcmp(order[i]->host, order[i - 1]->host) != 0;
    free(order);
    return hosts;
}

/* "2 NVIDIA H200 GPUs", "512 GPUs of 64 nodes", "one AMD EPYC", "4 ranks of an AMD EPYC" */
static void say_devices(const tsr_run_record *r, char *text, size_t chars) {
    char first[96] = "", other[96];
    bool same = true;
    const bool gpus = r->ranks > 0 && strstr(r->rank_records[0].device, " #");
    const int hosts = count_hosts(r);
    for (int i = 0; i < r->ranks; i++) {
        if (i == 0) tsr_report_device(&r->rank_records[i], first);
        same = same && strcmp(tsr_report_device(&r->rank_records[i], other), first) == 0;
    }
    if (r->ranks == 0) tsr_text_append(text, chars, "ranks that the record does not list");
    else if (gpus)
        tsr_text_append(text, chars, "%d %s GPU%s", r->ranks, same ? first : "different", r->ranks == 1 ? "" : "s");
    else
        tsr_text_append(text, chars, "%d rank%s (%s)", r->ranks, r->ranks == 1 ? "" : "s",
                        same ? first : "different CPUs");
    if (hosts > 1) tsr_text_append(text, chars, " of %d nodes", hosts);
}

static void say_limit(const tsr_run_record *r, char *text, size_t chars) {
    const tsr_run_bounds bounds = tsr_record_bounds(r);
    if (bounds.limit_rank < 0 || !(bounds.limit_share > 0)) return;
    const double percent = 100 * bounds.limit_share;
    if (bounds.limit_share >= 0.5)
        tsr_text_append(text, chars, ": %.0f %% of the limit, which is %s", percent,
                        tsr_lane_bounds(tsr_lane_find(bounds.limit_lane)));
    else
        tsr_text_append(text, chars, ": %.0f %% of the limit, as lanes waited for each other; the busiest was %s",
                        percent, bounds.limit_lane);
}

const char *tsr_report_sentence(const tsr_run_record *record, char text[TSR_REPORT_SENTENCE]) {
    char part[32];
    text[0] = '\0';
    say_product(record, text, TSR_REPORT_SENTENCE);
    tsr_text_append(text, TSR_REPORT_SENTENCE, " took %s on ", tsr_report_seconds(record->seconds, part));
    say_devices(record, text, TSR_REPORT_SENTENCE);
    tsr_text_append(text, TSR_REPORT_SENTENCE, ", at %s", tsr_report_speed(record->gflops, part));
    say_limit(record, text, TSR_REPORT_SENTENCE);
    tsr_text_append(text, TSR_REPORT_SENTENCE, ".");
    return text;
}

/* ---- what is not there ----------------------------------------------------------------------- */

void tsr_report_lacks(const tsr_run_record *record, void (*each)(void *context, const char *what), void *context) {
    const bool ranks = record->ranks > 0;
    const struct {
        bool lacks;
        const char *what;
    } parts[] = {
        {!*record->command, "the command"},
        {!*record->started, "when it began"},
        {!*record->schedule, "the schedule"},
        {!(record->setup_seconds > 0), "the start-up"},
        {!(record->predicted_seconds > 0), "what the plan predicted, and the rates it counted on"},
        {!(record->planned_host_bytes > 0 || record->planned_device_bytes > 0), "the memory that was planned"},
        {!ranks, "the ranks"},
        {ranks && record->rank_records[0].cores == 0, "each rank's cores and threads"},
        {ranks && record->rank_records[0].host_peak_bytes == 0, "the memory that was used"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].lacks) each(context, parts[i].what);
}
