/* What a run leaves behind (run_record.h): the list of fields, and JSON. */
#include "io/record/run_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/record/record_fields.h"
#include "io/text/json.h"

static const char *const lane_names[] = {
#define X(code, name) name,
    TSR_LANE_LIST(X)
#undef X
};

static const char *const startup_names[] = {
#define X(code, name) name,
    TSR_STARTUP_LIST(X)
#undef X
};

const char *const tsr_exact_kinds[TSR_EXACT_KINDS] = {"exact_level_0", "exact_level_1", "exact_level_2", "exact_loop"};

const char *tsr_lane_name(tsr_lane lane) { return lane_names[lane]; }

tsr_lane tsr_lane_find(const char *name) {
    int lane = 0;
    while (lane < TSR_LANE_COUNT && strcmp(name, lane_names[lane]) != 0) lane++;
    return (tsr_lane)lane;
}

const char *tsr_lane_bounds(tsr_lane lane) {
    static const char *const bounds[] = {[TSR_LANE_READ] = "reading A and B",
                                         [TSR_LANE_UPLOAD] = "the link from host to device",
                                         [TSR_LANE_EXCHANGE] = "the links between ranks",
                                         [TSR_LANE_PACK] = "the device's memory",
                                         [TSR_LANE_MULTIPLY] = "the devices' speed",
                                         [TSR_LANE_DOWNLOAD] = "the link from device to host",
                                         [TSR_LANE_WRITE] = "writing C",
                                         [TSR_LANE_COUNT] = ""};
    return bounds[lane];
}

const char *tsr_startup_name(tsr_startup part) { return startup_names[part]; }

/* ---- fields ---------------------------------------------------------------------------------- */

double tsr_rate(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0; }

void tsr_rank_record_fields(const tsr_rank_record *r, const tsr_field_sink *sink, void *to) {
    char name[40], kernels[TSR_KERNELS_CHARS];
    sink->integer(to, "rank", r->rank);
    sink->integer(to, "row", r->row);
    sink->integer(to, "col", r->col);
    sink->integer(to, "depth", r->depth);
    sink->text(to, "host", r->host, sizeof r->host);
    sink->text(to, "device", r->device, sizeof r->device);
    sink->text(to, "health", r->health, sizeof r->health);
    sink->integer(to, "cores", r->cores);
    sink->integer(to, "threads", r->threads);
    sink->integer(to, "io_threads", r->io_threads);
    sink->integer(to, "tiles", r->tiles);
    sink->integer(to, "fallbacks", r->fallbacks);
    sink->integer(to, "few", r->few);
    sink->real(to, "flops", r->flops);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        snprintf(name, sizeof name, "%s_seconds", lane_names[lane]);
        sink->real(to, name, r->lane_seconds[lane]);
        snprintf(name, sizeof name, "%s_bytes", lane_names[lane]);
        sink->real(to, name, r->lane_bytes[lane]);
        snprintf(name, sizeof name, "%s_GBps", lane_names[lane]);
        sink->real(to, name, tsr_rate(r->lane_bytes[lane], r->lane_seconds[lane]));
    }
    sink->real(to, "kernel_seconds", r->kernel_seconds);
    sink->real(to, "kernel_gflops", tsr_rate(r->flops, r->kernel_seconds));
    sink->real(to, "wall_seconds", r->wall_seconds);
    sink->real(to, "gflops", tsr_rate(r->flops, r->wall_seconds));
    sink->real(to, "host_peak_bytes", r->host_peak_bytes);
    sink->real(to, "device_bytes", r->device_bytes);
    sink->text(to, "kernels", tsr_kernels_format(r->kernels, kernels), sizeof kernels);
    sink->integer(to, "overflows", r->overflows);
    sink->integer(to, "rows_checked", r->rows_checked);
    sink->integer(to, "rows_unjudged", r->rows_unjudged);
    sink->integer(to, "rows_rounded", r->rows_rounded);
    sink->integer(to, "repaired", r->repaired);
    sink->real(to, "check_worst", r->check_worst);
    for (int i = 0; i < TSR_EXACT_KINDS; i++) sink->integer(to, tsr_exact_kinds[i], r->exact_blocks[i]);
    sink->integer(to, "exact_left", r->exact_left);
}

static void source_fields(const char *prefix, const tsr_source_record *source, const tsr_field_sink *sink, void *to) {
    char name[16];
    snprintf(name, sizeof name, "%s", prefix);
    sink->text(to, name, source->name, 0);
    snprintf(name, sizeof name, "%s_rows", prefix);
    sink->integer(to, name, source->rows);
    snprintf(name, sizeof name, "%s_cols", prefix);
    sink->integer(to, name, source->cols);
    snprintf(name, sizeof name, "%s_type", prefix);
    sink->text(to, name, source->type, 0);
}

static void startup_fields(const tsr_run_record *r, const tsr_field_sink *sink, void *to) {
    char name[40];
    sink->real(to, "setup_seconds", r->setup_seconds);
    for (int part = 0; part < TSR_STARTUP_COUNT; part++) {
        snprintf(name, sizeof name, "setup_%s_seconds", startup_names[part]);
        sink->real(to, name, r->startup_seconds[part]);
    }
}

static void prediction_fields(const tsr_run_record *r, const tsr_field_sink *sink, void *to) {
    char name[40];
    sink->real(to, "predicted_seconds", r->predicted_seconds);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        snprintf(name, sizeof name, "predicted_%s_seconds", lane_names[lane]);
        sink->real(to, name, r->predicted_lane_seconds[lane]);
        snprintf(name, sizeof name, "expected_%s_%s", lane_names[lane], lane == TSR_LANE_MULTIPLY ? "gflops" : "GBps");
        sink->real(to, name, r->expected_rate[lane] / 1e9);
    }
    sink->integer(to, "kernel_measured", r->kernel_measured);
    sink->real(to, "planned_device_bytes", r->planned_device_bytes);
    sink->real(to, "planned_host_bytes", r->planned_host_bytes);
}

static void bounds_fields(const tsr_run_record *r, const tsr_field_sink *sink, void *to) {
    const tsr_run_bounds bounds = tsr_record_bounds(r);
    sink->real(to, "limit_seconds", bounds.limit_seconds);
    sink->real(to, "limit_share", bounds.limit_share);
    sink->integer(to, "limit_rank", bounds.limit_rank);
    sink->text(to, "limit_lane", bounds.limit_lane, 0);
    sink->integer(to, "slowest_rank", bounds.slowest_rank);
    sink->text(to, "slowest_lane", bounds.slowest_lane, 0);
    sink->real(to, "slowest_seconds", bounds.slowest_seconds);
    sink->real(to, "slowest_behind_seconds", bounds.behind_seconds);
}

/* `kernel` made most of the flops, `kernel_chosen` was to make all, `kernels` lists those that ran, with their
 * shares. */
static void kernel_fields(const tsr_run_record *r, const tsr_field_sink *sink, void *to) {
    tsr_kernel_share shares[TSR_KERNELS_RAN];
    char text[TSR_KERNELS_CHARS];
    tsr_record_kernels(r, shares);
    sink->text(to, "kernel", shares[0].flops > 0 ? shares[0].name : r->kernel, 0);
    sink->text(to, "kernel_chosen", r->kernel, 0);
    sink->text(to, "kernels", tsr_kernels_format(shares, text), 0);
}

void tsr_run_record_fields(const tsr_run_record *r, const tsr_field_sink *sink, void *to) {
    sink->text(to, "command", r->command ? r->command : "", 0);
    sink->text(to, "started", r->started, 0);
    source_fields("a", &r->a, sink, to);
    source_fields("b", &r->b, sink, to);
    if (r->c0.name[0]) source_fields("c0", &r->c0, sink, to);
    source_fields("c", &r->c, sink, to);
    sink->integer(to, "transpose_a", r->transpose_a);
    sink->integer(to, "transpose_b", r->transpose_b);
    if (r->conjugate_a) sink->integer(to, "conjugate_a", 1);
    if (r->conjugate_b) sink->integer(to, "conjugate_b", 1);
    sink->real(to, "alpha", r->alpha);
    if (r->alpha_imag != 0) sink->real(to, "alpha_imag", r->alpha_imag);
    sink->real(to, "beta", r->beta);
    if (r->beta_imag != 0) sink->real(to, "beta_imag", r->beta_imag);
    sink->integer(to, "gram", r->gram);
    sink->text(to, "triangle", tsr_triangle_name(r->triangle), 0);
    sink->integer(to, "m", r->m);
    sink->integer(to, "n", r->n);
    sink->integer(to, "k", r->k);
    sink->integer(to, "products", r->products);
    sink->integer(to, "teams", r->teams);
    sink->integer(to, "grid_m", r->grid[0]);
    sink->integer(to, "grid_n", r->grid[1]);
    sink->integer(to, "grid_k", r->grid[2]);
    sink->integer(to, "rank_count", r->ranks);
    sink->integer(to, "super_blocks_m", r->super_blocks[0]);
    sink->integer(to, "super_blocks_n", r->super_blocks[1]);
    sink->integer(to, "panel", r->panel);
    kernel_fields(r, sink, to);
    sink->text(to, "accuracy", r->accuracy, 0);
    sink->text(to, "input", r->input, 0);
    sink->text(to, "type", r->type, 0);
    sink->text(to, "transport", r->transport, 0);
    sink->text(to, "schedule", r->schedule, 0);
    sink->text(to, "io", r->io, 0);
    sink->text(to, "versions", r->versions, 0);
    sink->real(to, "seconds", r->seconds);
    if (r->redistribute_seconds > 0) {
        sink->real(to, "redistribute_seconds", r->redistribute_seconds);
        sink->real(to, "redistribute_bytes", r->redistribute_bytes);
    }
    startup_fields(r, sink, to);
    prediction_fields(r, sink, to);
    sink->real(to, "gflops", r->gflops);
    bounds_fields(r, sink, to);
    sink->text(to, "check", r->check, 0);
    sink->real(to, "check_seconds", r->check_seconds);
    sink->text(to, "product_check", r->product_check, 0);
    sink->text(to, "warnings", r->warnings ? r->warnings : "", 0);
    int64_t overflows = 0;
    for (int i = 0; i < r->ranks; i++) overflows += r->rank_records[i].overflows;
    sink->integer(to, "overflows", overflows);
    if (r->digest[0]) sink->text(to, "digest", r->digest, 0);
    if (r->reproducible[0]) sink->text(to, "reproducible", r->reproducible, 0);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

typedef struct {
    FILE *to;
    const char *indent;
    bool first;
} json_sink;

static void json_name(json_sink *s, const char *name) {
    fprintf(s->to, "%s\n%s\"%s\": ", s->first ? "" : ",", s->indent, name);
    s->first = false;
}

static void json_integer(void *to, const char *name, int64_t value) {
    json_sink *s = to;
    json_name(s, name);
    fprintf(s->to, "%lld", (long long)value);
}

static void json_real(void *to, const char *name, double value) {
    json_sink *s = to;
    json_name(s, name);
    if (isfinite(value)) fprintf(s->to, "%.17g", value);
    else fputs("null", s->to);
}

static void json_text(void *to, const char *name, const char *value, size_t chars) {
    json_sink *s = to;
    (void)chars;
    json_name(s, name);
    tsr_json_string(s->to, value);
}

static const tsr_field_sink json_fields = {json_integer, json_real, json_text};

void tsr_record_write_members(const void *context, FILE *to) {
    const tsr_run_record *record = context;
    json_sink run = {to, "  ", false};
    tsr_run_record_fields(record, &json_fields, &run);
    json_name(&run, "ranks");
    fputc('[', to);
    for (int i = 0; i < record->ranks; i++) {
        json_sink rank = {to, "      ", true};
        fprintf(to, "%s\n    {", i ? "," : "");
        tsr_rank_record_fields(&record->rank_records[i], &json_fields, &rank);
        fputs("\n    }", to);
    }
    fputs(record->ranks > 0 ? "\n  ]" : "]", to);
}

tsr_status tsr_record_write_json(const tsr_run_record *record, FILE *to) {
    fprintf(to, "{\n  \"format\": %d", TSR_RECORD_FORMAT);
    tsr_record_write_members(record, to);
    fputs("\n}\n", to);
    if (fflush(to) != 0 || ferror(to))
        return tsr_fail(TSR_ERR_IO, "writing the run's JSON failed: %s", strerror(errno));
    return TSR_OK;
}
