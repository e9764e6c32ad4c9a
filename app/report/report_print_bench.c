/* What bench and plan measured and predicted, on a terminal (report.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/report.h"
#include "io/text/json_read.h"
#include "io/text/text.h"

#define ROWS_MOST 4096

/* The numbers and texts of the outermost object, and those of each object in its list or object `rows`. */
typedef struct {
    const char *rows;
    tsr_found_fields head, *row; /* owned: count of them */
    int count;
    bool inside, failed;
} found;

static void take(tsr_found_fields *to, const tsr_json_value *v) {
    if (v->kind == TSR_JSON_TEXT) tsr_found_text(to, v->name, v->text);
    else if (v->kind == TSR_JSON_NUMBER)
        tsr_found_number(to, v->name, strtoll(v->text, NULL, 10), strtod(v->text, NULL));
}

static void add_row(found *f, const char *name) {
    tsr_found_fields *rows = f->count < ROWS_MOST ? realloc(f->row, ((size_t)f->count + 1) * sizeof *rows) : NULL;
    f->failed |= !rows;
    if (!rows) return;
    f->row = rows;
    f->row[f->count++] = (tsr_found_fields){0};
    if (*name) tsr_found_text(&f->row[f->count - 1], "name", name);
}

static void read_value(void *context, const tsr_json_value *v) {
    found *f = context;
    const bool begins = v->kind == TSR_JSON_ARRAY || v->kind == TSR_JSON_OBJECT,
               list = begins || v->kind == TSR_JSON_END;
    if (v->depth == 1 && list) f->inside = begins && strcmp(v->name, f->rows) == 0;
    else if (v->depth == 1) take(&f->head, v);
    else if (!f->inside || f->failed) return;
    else if (v->depth == 2 && v->kind == TSR_JSON_OBJECT) add_row(f, v->name);
    else if (v->depth == 3 && !list && f->count > 0) take(&f->row[f->count - 1], v);
}

static const tsr_found_field *find(const tsr_found_fields *fields, const char *name) {
    for (int i = 0; i < fields->count; i++)
        if (strcmp(fields->fields[i].name, name) == 0) return &fields->fields[i];
    return NULL;
}

static double number_of(const tsr_found_fields *fields, const char *name) {
    const tsr_found_field *field = find(fields, name);
    return field && !field->text ? field->real : NAN;
}

/* Without control characters. */
static const char *text_of(const tsr_found_fields *fields, const char *name, char *text, size_t chars) {
    const tsr_found_field *field = find(fields, name);
    return tsr_printable(field && field->text ? field->text : "", text, chars);
}

static double most_of(const found *f, const char *name) {
    double most = 0;
    for (int i = 0; i < f->count; i++) most = fmax(most, number_of(&f->row[i], name));
    return most;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void print_shape(const found *f, FILE *to) {
    char type[16], device[96], text[256];
    const char *on = text_of(&f->head, "device", device, sizeof device);
    snprintf(text, sizeof text, "%.0f x %.0f x %.0f (m x n x k) of %s%s%s", number_of(&f->head, "m"),
             number_of(&f->head, "n"), number_of(&f->head, "k"), text_of(&f->head, "type", type, sizeof type),
             *on ? " on " : "", on);
    tsr_report_words(to, "product", text);
}

static void print_gemm(const found *f, FILE *to) {
    char name[64], speed[32], why[200];
    const double most = most_of(f, "gflops");
    print_shape(f, to);
    for (int i = 0; i < f->count; i++) {
        const tsr_found_fields *row = &f->row[i];
        fprintf(to, "  %-14s ", text_of(row, "kernel", name, 15));
        if (find(row, "cannot_run")) {
            tsr_text_print(to, "", 17, text_of(row, "cannot_run", why, sizeof why));
            continue;
        }
        tsr_report_bar(to, number_of(row, "gflops"), most, 30);
        fprintf(to, " %14s", tsr_report_speed(number_of(row, "gflops"), speed));
        if (isfinite(number_of(row, "error"))) fprintf(to, "  error %.1e", number_of(row, "error"));
        fputc('\n', to);
    }
}

static void print_memory(const found *f, FILE *to) {
    char name[64], device[96];
    const double most = most_of(f, "gbs");
    tsr_report_words(to, "memory of", text_of(&f->head, "device", device, sizeof device));
    for (int i = 0; i < f->count; i++) {
        fprintf(to, "  %-26s ", text_of(&f->row[i], "kernel", name, 27));
        tsr_report_bar(to, number_of(&f->row[i], "gbs"), most, 32);
        fprintf(to, " %10.4g GB/s\n", number_of(&f->row[i], "gbs"));
    }
}

static void print_accuracy(const found *f, FILE *to) {
    char name[64], input[32];
    fprintf(to, "  %-14s %-14s %10s %12s %12s\n", "input", "kernel", "k", "error / eps", "bound / eps");
    for (int i = 0; i < f->count; i++)
        fprintf(to, "  %-14s %-14s %10.0f %12.4g %12.4g\n", text_of(&f->row[i], "input", input, 15),
                text_of(&f->row[i], "kernel", name, 15), number_of(&f->row[i], "k"),
                number_of(&f->row[i], "component_max"), number_of(&f->row[i], "bound"));
}

static void print_plan(const found *f, FILE *to) {
    char name[64], seconds[32], text[256], machine[96];
    const double most = most_of(f, "seconds");
    print_shape(f, to);
    snprintf(text, sizeof text, "%.0f GPUs of %s", number_of(&f->head, "ranks"),
             text_of(&f->head, "machine", machine, sizeof machine));
    tsr_report_words(to, "on", text);
    for (int i = 0; i < f->count; i++) {
        fprintf(to, "  %-10s ", text_of(&f->row[i], "name", name, 11));
        tsr_report_bar(to, number_of(&f->row[i], "seconds"), most, 44);
        fprintf(to, " %14s\n", tsr_report_seconds(number_of(&f->row[i], "seconds"), seconds));
    }
    snprintf(text, sizeof text, "%s, bounded by %s, %.1f %% of all GPUs' multiplication rate",
             tsr_report_seconds(number_of(&f->head, "seconds"), seconds),
             text_of(&f->head, "bounded_by", name, sizeof name), 100 * number_of(&f->head, "efficiency"));
    tsr_report_words(to, "predicted", text);
}

static void print_multiply(const found *f, FILE *to) {
    char text[128], data[32];
    snprintf(text, sizeof text, "%.4g TFLOP/s at best, operands of the %s", number_of(&f->head, "tflops"),
             text_of(&f->head, "data", data, sizeof data));
    tsr_report_words(to, "bench", text);
}

tsr_status tsr_report_print_json(const tsr_report_item *item, FILE *to) {
    static const struct {
        const char *rows;
        void (*print)(const found *f, FILE *to);
    } kinds[TSR_REPORT_KINDS] = {[TSR_REPORT_GEMM] = {"kernels", print_gemm},
                                 [TSR_REPORT_MEMORY] = {"kernels", print_memory},
                                 [TSR_REPORT_ACCURACY] = {"results", print_accuracy},
                                 [TSR_REPORT_MULTIPLY] = {"", print_multiply},
                                 [TSR_REPORT_PLAN] = {"lanes", print_plan}};
    found f = {.rows = kinds[item->kind].rows};
    FILE *from = fmemopen(item->json, strlen(item->json), "r");
    tsr_status status = from ? tsr_json_read(from, item->name, read_value, &f) : TSR_OK;
    if (from) fclose(from);
    f.failed |= !from || f.head.failed;
    for (int i = 0; i < f.count; i++) f.failed |= f.row[i].failed;
    if (status == TSR_OK && f.failed)
        status = tsr_fail(TSR_ERR_MEMORY, "no memory for '%s', or more than %d rows in it", item->name, ROWS_MOST);
    if (status == TSR_OK && kinds[item->kind].print) kinds[item->kind].print(&f, to);
    for (int i = 0; i < f.count; i++) tsr_found_clear(&f.row[i]);
    free(f.row);
    tsr_found_clear(&f.head);
    return status;
}
