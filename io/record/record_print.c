/* A run's record on the terminal (run_record.h): the summary within 80 columns, and the table of ranks. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io/record/run_record.h"
#include "io/text/text.h"
#include "kernels/base/base.h"

#define LABEL 12 /* columns of a label, before what belongs to it */

/* ---- lines within the width ------------------------------------------------------------------ */

/* "label       words" */
static void print_text(FILE *to, const char *label, const char *text) {
    char first[40];
    snprintf(first, sizeof first, "%-*s", LABEL, label);
    tsr_text_print(to, first, LABEL, text);
}

__attribute__((format(printf, 3, 4))) static void print_line(FILE *to, const char *label, const char *format, ...) {
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    print_text(to, label, text);
}

/* A name is never broken: where it is too long for the line, it has one of its own. */
static void print_name(FILE *to, const char *label, const char *name) {
    char shown[4 * sizeof((const tsr_source_record *)0)->name];
    if (!name || !*name) return;
    tsr_printable(name, shown, sizeof shown);
    if (LABEL + tsr_text_columns(shown) <= TSR_TEXT_COLUMNS) fprintf(to, "%-*s%s\n", LABEL, label, shown);
    else fprintf(to, "%s\n%s\n", label, shown);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* "12.3 GFLOP/s", or of TFLOP/s from a thousand on */
static const char *speed(double gflops, char text[40]) {
    if (gflops >= 1e3) snprintf(text, 40, "%.4g TFLOP/s", gflops / 1e3);
    else snprintf(text, 40, "%.4g GFLOP/s", gflops);
    return text;
}

/* ---- what ran -------------------------------------------------------------------------------- */

/* ^H: the adjoint. */
static const char *operation(bool transpose, bool conjugate) {
    if (conjugate) return transpose ? "^H" : "^*";
    return transpose ? "^T" : "";
}

/* As small symmetric products of a stack are, many at a time. */
static bool made_whole(const tsr_run_record *r) {
    double flops = 0;
    for (int i = 0; i < r->ranks; i++) flops += r->rank_records[i].flops;
    return r->products > 1 && flops >= 2.0 * (double)r->m * (double)r->n * (double)r->k * (double)r->products;
}

static void print_product(const tsr_run_record *r, FILE *to) {
    char text[512] = "C = ", number[TSR_COMPLEX_CHARS];
    if (r->alpha != 1 || r->alpha_imag != 0)
        tsr_text_append(text, sizeof text, "%s ", tsr_complex_text((tsr_complex){r->alpha, r->alpha_imag}, number));
    tsr_text_append(text, sizeof text, "A%s B%s", operation(r->transpose_a, r->conjugate_a),
                    operation(r->transpose_b, r->conjugate_b));
    if (r->c0.name[0] && (r->beta != 1 || r->beta_imag != 0))
        tsr_text_append(text, sizeof text, " + %s C0", tsr_complex_text((tsr_complex){r->beta, r->beta_imag}, number));
    else if (r->c0.name[0]) tsr_text_append(text, sizeof text, " + C0");
    tsr_text_append(text, sizeof text, ", %lld x %lld x %lld (m x n x k)", (long long)r->m, (long long)r->n,
                    (long long)r->k);
    if (r->gram)
        tsr_text_append(text, sizeof text, ", symmetric: %s multiplied", made_whole(r) ? "all of it" : "half of it");
    if (r->triangle != TSR_TRIANGLE_FULL)
        tsr_text_append(text, sizeof text, ", %s triangle", tsr_triangle_name(r->triangle));
    if (r->products > 1) tsr_text_append(text, sizeof text, ", %lld products", (long long)r->products);
    const tsr_source_record *const sources[] = {&r->a, &r->b, &r->c0, &r->c};
    static const char *const names[] = {"A", "B", "C0", "C"};
    for (int i = 0; i < 4; i++)
        if (sources[i]->name[0]) tsr_text_append(text, sizeof text, ", %s %s", names[i], sources[i]->type);
    print_text(to, "product", text);
}

/* "NVIDIA H200" of "NVIDIA H200 #0 (0000:18:00.0)", where all ranks have the same. */
static const char *device_of(const tsr_run_record *r, char name[96]) {
    for (int i = 0; i < r->ranks; i++) {
        char one[96];
        snprintf(one, sizeof one, "%s", r->rank_records[i].device);
        char *number = strstr(one, " #");
        if (number) *number = '\0';
        if (i > 0 && strcmp(one, name) != 0) return strcpy(name, "several kinds of devices");
        strcpy(name, one);
    }
    return name;
}

static void print_ranks_used(const tsr_run_record *r, FILE *to) {
    char device[96] = "";
    char idle[40] = "", teams[40] = "";
    const int used = r->grid[0] * r->grid[1] * r->grid[2] * r->teams;
    if (used < r->ranks) snprintf(idle, sizeof idle, " (%d idle)", r->ranks - used);
    if (r->teams > 1) snprintf(teams, sizeof teams, ", %d teams", r->teams);
    print_line(to, "on", "%d rank%s%s%s, grid %d x %d x %d, %s", r->ranks, r->ranks == 1 ? "" : "s", idle, teams,
               r->grid[0], r->grid[1], r->grid[2], device_of(r, device));
}

/* How `exact` made blocks of C. */
static void print_exact(const tsr_run_record *r, FILE *to) {
    int64_t blocks[TSR_EXACT_KINDS] = {0};
    int64_t all = 0;
    int64_t left = 0;
    for (int i = 0; i < r->ranks; i++)
        for (int kind = 0; kind < TSR_EXACT_KINDS; kind++) {
            blocks[kind] += r->rank_records[i].exact_blocks[kind];
            all += r->rank_records[i].exact_blocks[kind];
        }
    for (int i = 0; i < r->ranks; i++) left += r->rank_records[i].exact_left;
    if (all == 0) return;
    print_line(to, "", "blocks of C at levels 0, 1, 2: %lld, %lld, %lld; by a loop %lld, and %lld elements",
               (long long)blocks[0], (long long)blocks[1], (long long)blocks[2], (long long)blocks[3], (long long)left);
}

/* The kernels that ran and, where that is not only the chosen one, why. */
static void print_kernel(const tsr_run_record *r, FILE *to) {
    tsr_kernel_share shares[TSR_KERNELS_RAN];
    char names[256] = "";
    int64_t tiles = 0;
    int64_t fallbacks = 0;
    int64_t few = 0;
    double all = 0;
    tsr_record_kernels(r, shares);
    for (int i = 0; i < r->ranks; i++) {
        const tsr_rank_record *one = &r->rank_records[i];
        tiles += one->tiles;
        fallbacks += one->fallbacks;
        few += one->few;
    }
    for (int i = 0; i < TSR_KERNELS_RAN; i++) all += shares[i].flops;
    const bool chosen_alone = shares[0].flops == all && (all == 0 || strcmp(shares[0].name, r->kernel) == 0);
    for (int i = 0; i < TSR_KERNELS_RAN && shares[i].flops > 0; i++)
        tsr_text_append(names, sizeof names, "%s%s %.3g %%", i > 0 ? ", " : "", shares[i].name,
                        100 * shares[i].flops / all);
    print_line(to, "kernel", "%s (%s), sums in %s", chosen_alone ? r->kernel : names, r->accuracy, r->type);
    if (few > 0)
        print_line(to, "", "%lld of %lld products have sums of few elements (sparse, banded), not for %s",
                   (long long)few, (long long)tiles, r->kernel);
    if (fallbacks > few)
        print_line(to, "", "%lld of %lld products have values that %s %s", (long long)(fallbacks - few),
                   (long long)tiles, r->kernel, strcmp(r->kernel, "exact") == 0 ? "is slow for" : "cannot hold");
    if (!chosen_alone && fallbacks == 0)
        print_line(to, "", "%s was chosen, and leaves small and thin products to others", r->kernel);
    print_exact(r, to);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* One lane over the ranks that the grid does not leave idle: the busiest, the mean, and the mean rank's rate. */
static void print_lane(const tsr_run_record *r, tsr_lane lane, FILE *to) {
    const tsr_rank_record *most = NULL;
    double seconds = 0, amount = 0;
    int active = 0;
    char text[40];
    for (int i = 0; i < r->ranks; i++) {
        const tsr_rank_record *one = &r->rank_records[i];
        if (one->row < 0) continue;
        active++;
        seconds += one->lane_seconds[lane];
        amount += lane == TSR_LANE_MULTIPLY ? one->flops : one->lane_bytes[lane];
        if (!most || one->lane_seconds[lane] > most->lane_seconds[lane]) most = one;
    }
    fprintf(to, "%-10s", tsr_lane_name(lane));
    if (!most || !(most->lane_seconds[lane] > 0)) {
        fprintf(to, "%11s\n", "-");
        return;
    }
    fprintf(to, "%11.3f %6d %11.3f", most->lane_seconds[lane], most->rank, seconds / active);
    if (r->seconds > 0) fprintf(to, "%10.0f %%", 100 * most->lane_seconds[lane] / r->seconds);
    else fprintf(to, "%12s", "-");
    if (lane == TSR_LANE_MULTIPLY) fprintf(to, "  %s\n", speed(tsr_rate(amount, seconds), text));
    else fprintf(to, "  %.4g GB/s\n", tsr_rate(amount, seconds));
}

static void print_lanes(const tsr_run_record *r, FILE *to) {
    fprintf(to, "\n%-10s%11s %6s %11s%12s  %s\n", "lane", "busiest s", "rank", "mean s", "of the run",
            "rate of a rank");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) print_lane(r, (tsr_lane)lane, to);
    fputc('\n', to);
}

/* ---- what bounded it ------------------------------------------------------------------------- */

/* Below a half of the run no lane alone held it up. */
static void print_bounds(const tsr_run_record *r, FILE *to) {
    const tsr_run_bounds bounds = tsr_record_bounds(r);
    if (bounds.limit_rank < 0) return;
    const char *what =
        bounds.limit_share >= 0.5 ? tsr_lane_bounds(tsr_lane_find(bounds.limit_lane)) : "lanes waited for others";
    print_line(to, "bottleneck", "%s of rank %d, busy for %.0f %% of the run: %s", bounds.limit_lane, bounds.limit_rank,
               100 * bounds.limit_share, what);
    if (bounds.behind_seconds > 0)
        print_line(to, "slowest", "%s of rank %d, %.3f s: %.3f above the mean of all ranks", bounds.slowest_lane,
                   bounds.slowest_rank, bounds.slowest_seconds, bounds.behind_seconds);
}

/* Part of the exchange lane. */
static void print_redistribution(const tsr_run_record *r, FILE *to) {
    char text[32];
    if (!(r->redistribute_seconds > 0)) return;
    print_line(to, "exchange", "%.3f s of it redistributed matrices in memory: %s from rank to rank",
               r->redistribute_seconds, tsr_format_bytes(r->redistribute_bytes, text));
}

static void print_startup(const tsr_run_record *r, FILE *to) {
    char text[512] = "";
    tsr_text_append(text, sizeof text, "%.3f s:", r->setup_seconds);
    for (int part = 0; part < TSR_STARTUP_COUNT; part++)
        tsr_text_append(text, sizeof text, "%s %s %.3f", part ? "," : "", tsr_startup_name((tsr_startup)part),
                        r->startup_seconds[part]);
    print_text(to, "start-up", text);
}

static void print_time(const tsr_run_record *r, FILE *to) {
    char text[40];
    const double share = tsr_record_bounds(r).limit_share;
    if (share > 0)
        print_line(to, "time", "%.3f s, %s, %.0f %% of the limit", r->seconds, speed(r->gflops, text), 100 * share);
    else print_line(to, "time", "%.3f s, %s", r->seconds, speed(r->gflops, text));
}

/* ---- the table of ranks ---------------------------------------------------------------------- */

/* Width of a column of texts: the longest of them and of its heading. */
static int width_of(const tsr_run_record *record, size_t field, const char *heading) {
    size_t width = strlen(heading);
    for (int i = 0; i < record->ranks; i++) {
        size_t chars = strlen((const char *)&record->rank_records[i] + field);
        if (chars > width) width = chars;
    }
    return (int)width;
}

static void print_rank(const tsr_rank_record *r, int host, int device, FILE *to) {
    char place[40];
    if (r->row < 0) snprintf(place, sizeof place, "idle");
    else snprintf(place, sizeof place, "%d,%d,%d", r->row, r->col, r->depth);
    fprintf(to, "%5d  %-9s  %-*s  %-*s %7lld %10.4g", r->rank, place, host, r->host, device, r->device,
            (long long)r->tiles, r->flops / 1e9);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        const double seconds = r->lane_seconds[lane];
        if (lane == TSR_LANE_MULTIPLY) fprintf(to, " %10.3f %9.4g", seconds, tsr_rate(r->flops, seconds));
        else fprintf(to, " %10.3f %7.2f", seconds, tsr_rate(r->lane_bytes[lane], seconds));
    }
    fputc('\n', to);
}

void tsr_record_print_ranks(const tsr_run_record *record, FILE *to) {
    const int host = width_of(record, offsetof(tsr_rank_record, host), "host"),
              device = width_of(record, offsetof(tsr_rank_record, device), "device");
    fprintf(to, "%5s  %-9s  %-*s  %-*s %7s %10s", "rank", "row,col,k", host, "host", device, "device", "tiles",
            "GFLOP");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        fprintf(to, " %8s s %*s", tsr_lane_name((tsr_lane)lane), lane == TSR_LANE_MULTIPLY ? 9 : 7,
                lane == TSR_LANE_MULTIPLY ? "GFLOP/s" : "GB/s");
    fputc('\n', to);
    for (int i = 0; i < record->ranks; i++) print_rank(&record->rank_records[i], host, device, to);
}

/* What GPUs said of themselves: of the first that is in doubt, else of the first of which nothing is known, else of the
 * first. */
static void print_health(const tsr_run_record *r, FILE *to) {
    static const char *const kinds[] = {"doubtful", "not known", "good"};
    const tsr_rank_record *shown = NULL;
    int count = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds && !shown; kind++)
        for (int i = 0; i < r->ranks; i++) {
            if (strncmp(r->rank_records[i].health, kinds[kind], strlen(kinds[kind])) != 0) continue;
            if (count++ == 0) shown = &r->rank_records[i];
        }
    if (!shown) return;
    if (count == r->ranks) print_text(to, "GPU health", shown->health);
    else
        print_line(to, "GPU health", "of %d rank%s %s: rank %d, %s", count, count == 1 ? "" : "s", shown->health,
                   shown->rank, shown->host);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void tsr_record_print(const tsr_run_record *record, const char *log, FILE *to) {
    print_product(record, to);
    print_ranks_used(record, to);
    print_kernel(record, to);
    print_health(record, to);
    print_lanes(record, to);
    print_redistribution(record, to);
    print_bounds(record, to);
    print_startup(record, to);
    print_text(to, "products", record->product_check);
    char check[sizeof record->check + 32];
    snprintf(check, sizeof check, "%s", record->check);
    if (record->check_seconds > 0) tsr_text_append(check, sizeof check, ", in %.3g s", record->check_seconds);
    print_text(to, "check", check);
    if (record->digest[0]) print_text(to, "digest", record->digest);
    if (record->reproducible[0]) print_text(to, "same bytes", record->reproducible);
    print_name(to, "C", record->c.name);
    print_name(to, "log", log);
    print_time(record, to);
}
