/* From fields found by name to a record (record_read.h); the mirror of run_record.c, which writes them. */
#include "io/record/record_read.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/base/base.h"

/* ---- fields found ---------------------------------------------------------------------------- */

static tsr_found_field *add(tsr_found_fields *found, const char *name) {
    if (found->count == found->room) {
        int room = found->room ? 2 * found->room : 64;
        tsr_found_field *fields = realloc(found->fields, (size_t)room * sizeof *fields);
        if (!fields) {
            found->failed = true;
            return NULL;
        }
        found->fields = fields;
        found->room = room;
    }
    if (strlen(name) >= sizeof found->fields->name) return NULL; /* none of ours */
    tsr_found_field *field = &found->fields[found->count++];
    *field = (tsr_found_field){.text = NULL};
    strcpy(field->name, name);
    return field;
}

void tsr_found_number(tsr_found_fields *found, const char *name, int64_t integer, double real) {
    tsr_found_field *field = add(found, name);
    if (field) {
        field->integer = integer;
        field->real = real;
    }
}

void tsr_found_text(tsr_found_fields *found, const char *name, const char *text) {
    tsr_found_field *field = add(found, name);
    if (!field) return;
    field->text = strdup(text);
    if (!field->text) found->failed = true;
}

void tsr_found_clear(tsr_found_fields *found) {
    for (int i = 0; i < found->count; i++) free(found->fields[i].text);
    free(found->fields);
    *found = (tsr_found_fields){0};
}

static const tsr_found_field *find(const tsr_found_fields *found, const char *name) {
    for (int i = 0; i < found->count; i++)
        if (strcmp(found->fields[i].name, name) == 0) return &found->fields[i];
    return NULL;
}

/* ---- into a record --------------------------------------------------------------------------- */

static void take_real(const tsr_found_fields *found, const char *name, double *to) {
    const tsr_found_field *field = find(found, name);
    if (field && !field->text) *to = field->real;
}

static void take_long(const tsr_found_fields *found, const char *name, int64_t *to) {
    const tsr_found_field *field = find(found, name);
    if (field && !field->text) *to = field->integer;
}

static void take_int(const tsr_found_fields *found, const char *name, int *to) {
    int64_t value = *to;
    take_long(found, name, &value);
    *to = (int)value;
}

static void take_bool(const tsr_found_fields *found, const char *name, bool *to) {
    int64_t value = *to;
    take_long(found, name, &value);
    *to = value != 0;
}

/* To be shown: without control characters. */
static void take_text(const tsr_found_fields *found, const char *name, char *to, size_t chars) {
    const tsr_found_field *field = find(found, name);
    if (field && field->text) tsr_printable(field->text, to, chars);
}

/* A copy the caller owns; "" when the field is not there. */
static char *copy_text(const tsr_found_fields *found, const char *name) {
    const tsr_found_field *field = find(found, name);
    return strdup(field && field->text ? field->text : "");
}

static void take_rank(const tsr_found_fields *found, tsr_rank_record *r) {
    char name[48], kernels[TSR_KERNELS_CHARS] = "";
    take_int(found, "rank", &r->rank);
    take_int(found, "row", &r->row);
    take_int(found, "col", &r->col);
    take_int(found, "depth", &r->depth);
    take_text(found, "host", r->host, sizeof r->host);
    take_text(found, "device", r->device, sizeof r->device);
    take_text(found, "health", r->health, sizeof r->health);
    take_int(found, "cores", &r->cores);
    take_int(found, "threads", &r->threads);
    take_int(found, "io_threads", &r->io_threads);
    take_long(found, "tiles", &r->tiles);
    take_long(found, "fallbacks", &r->fallbacks);
    take_long(found, "few", &r->few);
    take_real(found, "flops", &r->flops);
    take_text(found, "kernels", kernels, sizeof kernels);
    tsr_kernels_parse(kernels, r->flops, r->kernels);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        snprintf(name, sizeof name, "%s_seconds", tsr_lane_name((tsr_lane)lane));
        take_real(found, name, &r->lane_seconds[lane]);
        snprintf(name, sizeof name, "%s_bytes", tsr_lane_name((tsr_lane)lane));
        take_real(found, name, &r->lane_bytes[lane]);
    }
    take_real(found, "kernel_seconds", &r->kernel_seconds);
    take_real(found, "wall_seconds", &r->wall_seconds);
    take_real(found, "host_peak_bytes", &r->host_peak_bytes);
    take_real(found, "device_bytes", &r->device_bytes);
    take_long(found, "overflows", &r->overflows);
    take_long(found, "rows_checked", &r->rows_checked);
    take_long(found, "rows_unjudged", &r->rows_unjudged);
    take_long(found, "rows_rounded", &r->rows_rounded);
    take_long(found, "repaired", &r->repaired);
    take_real(found, "check_worst", &r->check_worst);
    for (int i = 0; i < TSR_EXACT_KINDS; i++) take_long(found, tsr_exact_kinds[i], &r->exact_blocks[i]);
    take_long(found, "exact_left", &r->exact_left);
}

static void take_source(const tsr_found_fields *found, const char *prefix, tsr_source_record *source) {
    char name[16];
    take_text(found, prefix, source->name, sizeof source->name);
    snprintf(name, sizeof name, "%s_rows", prefix);
    take_long(found, name, &source->rows);
    snprintf(name, sizeof name, "%s_cols", prefix);
    take_long(found, name, &source->cols);
    snprintf(name, sizeof name, "%s_type", prefix);
    take_text(found, name, source->type, sizeof source->type);
}

static void take_startup(const tsr_found_fields *found, tsr_run_record *r) {
    char name[48];
    take_real(found, "setup_seconds", &r->setup_seconds);
    for (int part = 0; part < TSR_STARTUP_COUNT; part++) {
        snprintf(name, sizeof name, "setup_%s_seconds", tsr_startup_name((tsr_startup)part));
        take_real(found, name, &r->startup_seconds[part]);
    }
}

static void take_prediction(const tsr_found_fields *found, tsr_run_record *r) {
    char name[48];
    take_real(found, "predicted_seconds", &r->predicted_seconds);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        const char *of = tsr_lane_name((tsr_lane)lane);
        snprintf(name, sizeof name, "predicted_%s_seconds", of);
        take_real(found, name, &r->predicted_lane_seconds[lane]);
        snprintf(name, sizeof name, "expected_%s_%s", of, lane == TSR_LANE_MULTIPLY ? "gflops" : "GBps");
        take_real(found, name, &r->expected_rate[lane]);
        r->expected_rate[lane] *= 1e9;
    }
    take_bool(found, "kernel_measured", &r->kernel_measured);
    take_real(found, "planned_device_bytes", &r->planned_device_bytes);
    take_real(found, "planned_host_bytes", &r->planned_host_bytes);
}

/* Full where nothing is said: so it was before there were halves. */
static void take_triangle(const tsr_found_fields *found, tsr_triangle *triangle) {
    char name[16] = "";
    take_text(found, "triangle", name, sizeof name);
    for (int i = TSR_TRIANGLE_LOWER; i <= TSR_TRIANGLE_UPPER; i++)
        if (strcmp(name, tsr_triangle_name((tsr_triangle)i)) == 0) *triangle = (tsr_triangle)i;
}

static void take_run(const tsr_found_fields *found, tsr_run_record *r) {
    take_text(found, "started", r->started, sizeof r->started);
    take_source(found, "a", &r->a);
    take_source(found, "b", &r->b);
    take_source(found, "c0", &r->c0);
    take_source(found, "c", &r->c);
    take_bool(found, "transpose_a", &r->transpose_a);
    take_bool(found, "transpose_b", &r->transpose_b);
    take_bool(found, "conjugate_a", &r->conjugate_a);
    take_bool(found, "conjugate_b", &r->conjugate_b);
    take_real(found, "alpha", &r->alpha);
    take_real(found, "alpha_imag", &r->alpha_imag);
    take_real(found, "beta", &r->beta);
    take_real(found, "beta_imag", &r->beta_imag);
    take_bool(found, "gram", &r->gram);
    take_triangle(found, &r->triangle);
    take_long(found, "m", &r->m);
    take_long(found, "n", &r->n);
    take_long(found, "k", &r->k);
    r->products = r->teams = 1; /* 0.1.0 says neither */
    take_long(found, "products", &r->products);
    take_int(found, "teams", &r->teams);
    take_int(found, "grid_m", &r->grid[0]);
    take_int(found, "grid_n", &r->grid[1]);
    take_int(found, "grid_k", &r->grid[2]);
    take_long(found, "super_blocks_m", &r->super_blocks[0]);
    take_long(found, "super_blocks_n", &r->super_blocks[1]);
    take_long(found, "panel", &r->panel);
    take_text(found, "kernel", r->kernel, sizeof r->kernel); /* 0.1.0 says there which one was chosen */
    take_text(found, "kernel_chosen", r->kernel, sizeof r->kernel);
    take_text(found, "accuracy", r->accuracy, sizeof r->accuracy);
    take_text(found, "input", r->input, sizeof r->input);
    take_text(found, "type", r->type, sizeof r->type);
    take_text(found, "transport", r->transport, sizeof r->transport);
    take_text(found, "schedule", r->schedule, sizeof r->schedule);
    take_text(found, "io", r->io, sizeof r->io);
    take_text(found, "versions", r->versions, sizeof r->versions);
    take_real(found, "seconds", &r->seconds);
    take_real(found, "redistribute_seconds", &r->redistribute_seconds);
    take_real(found, "redistribute_bytes", &r->redistribute_bytes);
    take_startup(found, r);
    take_prediction(found, r);
    take_real(found, "gflops", &r->gflops);
    take_text(found, "check", r->check, sizeof r->check);
    take_real(found, "check_seconds", &r->check_seconds);
    take_text(found, "product_check", r->product_check, sizeof r->product_check);
    take_text(found, "digest", r->digest, sizeof r->digest);
    take_text(found, "reproducible", r->reproducible, sizeof r->reproducible);
}

tsr_status tsr_record_take(const tsr_found_fields *run, const tsr_found_fields *ranks, int rank_count,
                           tsr_kept_record *record) {
    tsr_kept_record kept = {.command = copy_text(run, "command"),
                            .warnings = copy_text(run, "warnings"),
                            .ranks = calloc((size_t)rank_count + 1, sizeof *kept.ranks)};
    bool failed = run->failed || !kept.command || !kept.warnings || !kept.ranks;
    for (int i = 0; i < rank_count && !failed; i++) {
        failed = ranks[i].failed;
        take_rank(&ranks[i], &kept.ranks[i]);
    }
    if (failed) {
        tsr_record_free(&kept);
        return tsr_fail(TSR_ERR_MEMORY, "no memory for the record of a run of %d ranks; free some", rank_count);
    }
    take_run(run, &kept.run);
    kept.run.ranks = rank_count;
    kept.run.command = kept.command;
    kept.run.warnings = kept.warnings;
    kept.run.rank_records = kept.ranks;
    *record = kept;
    return TSR_OK;
}

void tsr_record_free(tsr_kept_record *record) {
    free(record->command);
    free(record->warnings);
    free(record->ranks);
    *record = (tsr_kept_record){.command = NULL};
}
