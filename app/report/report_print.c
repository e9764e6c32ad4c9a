/* A report on a terminal (report.h): runs, and several of them beside each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/report.h"
#include "io/text/text.h"

#define LABEL 12           /* columns of a label, as in tsr_record_print */
#define BAR 36             /* columns of a bar */
#define MACHINE_CHARS 4400 /* a sentence with the name of a file */

void tsr_report_words(FILE *to, const char *label, const char *text) {
    char first[40];
    snprintf(first, sizeof first, "%-*s", LABEL, label);
    tsr_text_print(to, first, LABEL, text);
}

void tsr_report_bar(FILE *to, double value, double most, int columns) {
    const double share = value > 0 && most > 0 ? fmin(1, value / most) : 0;
    const int full = (int)lround(share * columns);
    for (int i = 0; i < full; i++) fputc('#', to);
    for (int i = full; i < columns; i++) fputc('.', to);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void add_lacking(void *context, const char *what) {
    char *text = context;
    tsr_text_append(text, 640, "%s%s", *text ? "; " : "", what);
}

/* The busiest rank's seconds of a lane; what it moved there (multiply: flops) goes to *amount. */
static double busiest_of(const tsr_run_record *r, int lane, double *amount) {
    double most = 0;
    *amount = 0;
    for (int i = 0; i < r->ranks; i++) {
        const tsr_rank_record *rank = &r->rank_records[i];
        if (rank->row < 0 || !(rank->lane_seconds[lane] > most)) continue;
        most = rank->lane_seconds[lane];
        *amount = lane == TSR_LANE_MULTIPLY ? rank->flops : rank->lane_bytes[lane];
    }
    return most;
}
static double busiest(const tsr_run_record *r, int lane) {
    double amount;
    return busiest_of(r, lane, &amount);
}

/* Beside them what the plan predicted, or what a machine file would have them take. */
static void print_lane_bars(const tsr_report_item *item, const char *machine, FILE *to) {
    const tsr_run_record *r = &item->record.run;
    char text[MACHINE_CHARS], seconds[32];
    snprintf(text, sizeof text, "busy on the busiest rank, beside what %s%s",
             machine ? "its bytes and flops take at the rates of " : "the plan predicted", machine ? machine : "");
    tsr_report_words(to, "lanes", text);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        double amount;
        const double busy = busiest_of(r, lane, &amount);
        const double beside = machine ? amount / item->ceilings[lane] : r->predicted_lane_seconds[lane];
        if (!(busy > 0)) continue;
        fprintf(to, "  %-10s", tsr_lane_name((tsr_lane)lane));
        tsr_report_bar(to, busy, r->seconds, BAR);
        fprintf(to, " %12s", tsr_report_seconds(busy, seconds));
        if (machine || r->predicted_seconds > 0) fprintf(to, " %12s", tsr_report_seconds(beside, seconds));
        fputc('\n', to);
    }
    fprintf(to, "  %-10s%*s %12s", "all", BAR, "", tsr_report_seconds(r->seconds, seconds));
    if (!machine && r->predicted_seconds > 0) fprintf(to, " %12s", tsr_report_seconds(r->predicted_seconds, seconds));
    fputs("\n\n", to);
}

static void print_memory(const tsr_run_record *r, FILE *to) {
    char planned[32], used[32], text[200];
    double device = 0;
    double host = 0;
    for (int i = 0; i < r->ranks; i++) {
        device = fmax(device, r->rank_records[i].device_bytes);
        host = fmax(host, r->rank_records[i].host_peak_bytes);
    }
    if (device > 0 || r->planned_device_bytes > 0) {
        snprintf(text, sizeof text, "%s planned, %s allocated, at most on a rank",
                 tsr_format_bytes(r->planned_device_bytes, planned), tsr_format_bytes(device, used));
        tsr_report_words(to, "device", text);
    }
    if (host > 0 || r->planned_host_bytes > 0) {
        snprintf(text, sizeof text, "%s planned, %s at its peak with all that the process holds",
                 tsr_format_bytes(r->planned_host_bytes, planned), tsr_format_bytes(host, used));
        tsr_report_words(to, "host", text);
    }
}

static int by_wall(const void *a, const void *b) {
    const tsr_rank_record *x = *(const tsr_rank_record *const *)a, *y = *(const tsr_rank_record *const *)b;
    return (x->wall_seconds > y->wall_seconds) - (x->wall_seconds < y->wall_seconds);
}

/* The slowest, the median and the fastest of the ranks at work. */
static tsr_status print_ranks(const tsr_run_record *r, FILE *to) {
    static const char *const names[] = {"slowest", "median", "fastest"};
    bool first = true;
    const tsr_rank_record **order = malloc(((size_t)r->ranks + 1) * sizeof *order);
    int count = 0;
    if (!order) return tsr_fail(TSR_ERR_MEMORY, "no memory for %d ranks; free some", r->ranks);
    for (int i = 0; i < r->ranks; i++)
        if (r->rank_records[i].row >= 0) order[count++] = &r->rank_records[i];
    qsort(order, (size_t)count, sizeof *order, by_wall);
    const int at[] = {count - 1, count / 2, 0};
    for (int i = 0; i < 3 && count > 1; i++) {
        const tsr_rank_record *one = order[at[i]];
        char seconds[32], speed[32], text[240];
        if (count == 2 && i == 1) continue;
        snprintf(text, sizeof text, "%s: rank %d on %s, %s, %s", names[i], one->rank, one->host,
                 tsr_report_seconds(one->wall_seconds, seconds),
                 tsr_report_speed(tsr_rate(one->flops, one->wall_seconds), speed));
        tsr_report_words(to, first ? "ranks" : "", text);
        first = false;
    }
    free(order);
    return TSR_OK;
}

static tsr_status print_run(const tsr_report_item *item, const char *machine, FILE *to) {
    const tsr_run_record *r = &item->record.run;
    char sentence[TSR_REPORT_SENTENCE], lacking[640] = "";
    tsr_text_print(to, "", 0, tsr_report_sentence(r, sentence));
    fputc('\n', to);
    print_lane_bars(item, machine, to);
    print_memory(r, to);
    TSR_TRY(print_ranks(r, to));
    tsr_record_print(r, NULL, to);
    tsr_report_words(to, "versions", r->versions);
    if (*r->command) tsr_report_words(to, "command", r->command);
    tsr_report_lacks(r, add_lacking, lacking);
    if (*lacking) tsr_report_words(to, "not said", lacking);
    return TSR_OK;
}

/* ---- several runs ---------------------------------------------------------------------------- */

static void print_difference(double first, double other, FILE *to) {
    if (first > 0 && other > 0) fprintf(to, " %+7.1f %%", 100 * (other / first - 1));
    else fprintf(to, " %9s", "-");
}

/* What became slower, where: each beside the first. */
static void print_comparison(const tsr_report *report, FILE *to) {
    const tsr_run_record *first = NULL;
    char text[32];
    for (int i = 0; i < report->count; i++) {
        const tsr_report_item *item = &report->items[i];
        const tsr_run_record *r = &item->record.run;
        if (!item->has_record) continue;
        if (!first) fprintf(to, "runs, each beside the first\n");
        fprintf(to, "  %d  ", i + 1);
        tsr_text_put(to, item->name);
        fprintf(to, "\n     %-10s %12s", "all", tsr_report_seconds(r->seconds, text));
        if (first) print_difference(first->seconds, r->seconds, to);
        fprintf(to, "  %s\n", tsr_report_speed(r->gflops, text));
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
            const double seconds = busiest(r, lane);
            if (!(seconds > 0) && !(first && busiest(first, lane) > 0)) continue;
            fprintf(to, "     %-10s %12s", tsr_lane_name((tsr_lane)lane), tsr_report_seconds(seconds, text));
            if (first) print_difference(busiest(first, lane), seconds, to);
            fputc('\n', to);
        }
        if (!first) first = r;
    }
    fputc('\n', to);
}

tsr_status tsr_report_print(const tsr_report *report, FILE *to) {
    int runs = 0;
    for (int i = 0; i < report->count; i++) runs += report->items[i].has_record;
    if (runs > 1) print_comparison(report, to);
    for (int i = 0; i < report->count; i++) {
        const tsr_report_item *item = &report->items[i];
        if (i > 0) fputs("\n", to);
        tsr_text_put(to, item->name);
        fputs("\n\n", to);
        if (item->has_record) TSR_TRY(print_run(item, report->machine, to));
        if (item->json) TSR_TRY(tsr_report_print_json(item, to));
    }
    if (report->has_trace) tsr_report_print_trace(&report->trace, to);
    return TSR_OK;
}
