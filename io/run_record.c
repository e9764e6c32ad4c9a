/* What a run leaves behind (run_record.h): the list of fields, JSON, and the lines on the terminal. */
#include "io/run_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/record_fields.h"

static const char *const lane_names[] = {
#define X(code, name) name,
    TSR_LANE_LIST(X)
#undef X
};

const char *tsr_lane_name(tsr_lane lane) { return lane_names[lane]; }

/* ---- fields ------------------------------------------------------------------------------------------------------- */

/* amount / seconds / 1e9; 0 where nothing was done */
static double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0; }

void tsr_rank_record_fields(const tsr_rank_record *r, const tsr_field_sink *sink, void *to) {
    char name[40];
    sink->integer(to, "rank", r->rank);
    sink->integer(to, "row", r->row);
    sink->integer(to, "col", r->col);
    sink->integer(to, "depth", r->depth);
    sink->text(to, "host", r->host, sizeof r->host);
    sink->text(to, "device", r->device, sizeof r->device);
    sink->integer(to, "tiles", r->tiles);
    sink->integer(to, "fallbacks", r->fallbacks);
    sink->real(to, "flops", r->flops);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        snprintf(name, sizeof name, "%s_seconds", lane_names[lane]);
        sink->real(to, name, r->lane_seconds[lane]);
        snprintf(name, sizeof name, "%s_bytes", lane_names[lane]);
        sink->real(to, name, r->lane_bytes[lane]);
        snprintf(name, sizeof name, "%s_GBps", lane_names[lane]);
        sink->real(to, name, rate(r->lane_bytes[lane], r->lane_seconds[lane]));
    }
    sink->real(to, "kernel_seconds", r->kernel_seconds);
    sink->real(to, "kernel_gflops", rate(r->flops, r->kernel_seconds));
    sink->real(to, "wall_seconds", r->wall_seconds);
    sink->real(to, "gflops", rate(r->flops, r->wall_seconds));
    sink->real(to, "host_peak_bytes", r->host_peak_bytes);
    sink->real(to, "device_bytes", r->device_bytes);
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

void tsr_run_record_fields(const tsr_run_record *r, const tsr_field_sink *sink, void *to) {
    sink->text(to, "command", r->command ? r->command : "", 0);
    sink->text(to, "started", r->started, 0);
    source_fields("a", &r->a, sink, to);
    source_fields("b", &r->b, sink, to);
    if (r->c0.name[0]) source_fields("c0", &r->c0, sink, to);
    source_fields("c", &r->c, sink, to);
    sink->integer(to, "transpose_a", r->transpose_a);
    sink->integer(to, "transpose_b", r->transpose_b);
    sink->real(to, "alpha", r->alpha);
    sink->real(to, "beta", r->beta);
    sink->integer(to, "m", r->m);
    sink->integer(to, "n", r->n);
    sink->integer(to, "k", r->k);
    sink->integer(to, "grid_m", r->grid[0]);
    sink->integer(to, "grid_n", r->grid[1]);
    sink->integer(to, "grid_k", r->grid[2]);
    sink->integer(to, "rank_count", r->ranks);
    sink->integer(to, "super_blocks_m", r->super_blocks[0]);
    sink->integer(to, "super_blocks_n", r->super_blocks[1]);
    sink->integer(to, "panel", r->panel);
    sink->text(to, "kernel", r->kernel, 0);
    sink->text(to, "accuracy", r->accuracy, 0);
    sink->text(to, "input", r->input, 0);
    sink->text(to, "type", r->type, 0);
    sink->text(to, "transport", r->transport, 0);
    sink->text(to, "io", r->io, 0);
    sink->text(to, "versions", r->versions, 0);
    sink->real(to, "seconds", r->seconds);
    sink->real(to, "setup_seconds", r->setup_seconds);
    sink->real(to, "gflops", r->gflops);
    sink->text(to, "check", r->check, 0);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    FILE *to;
    const char *indent;
    bool first;
} json_sink;

/* Bytes of the UTF-8 character at `text`; 0 when it is none. */
static int utf8_bytes(const unsigned char *text) {
    int bytes = text[0] < 0x80 ? 1 : text[0] >= 0xC2 && text[0] < 0xE0 ? 2 : (text[0] & 0xF0) == 0xE0 ? 3 : text[0] >= 0xF0 && text[0] < 0xF5 ? 4 : 0;
    for (int i = 1; i < bytes; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    if (bytes == 3 && ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F))) return 0;
    if (bytes == 4 && ((text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))) return 0;
    return bytes;
}

static void json_string(FILE *to, const char *value) {
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)value; *c;) {
        int bytes = utf8_bytes(c);
        if (*c == '"' || *c == '\\') fprintf(to, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7F) fprintf(to, "\\u%04x", *c);
        else if (bytes == 0) fputs("\\ufffd", to);
        else fwrite(c, 1, (size_t)bytes, to);
        c += bytes ? bytes : 1;
    }
    fputc('"', to);
}

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
    json_string(s->to, value);
}

static const tsr_field_sink json_fields = {json_integer, json_real, json_text};

tsr_status tsr_record_write_json(const tsr_run_record *record, FILE *to) {
    json_sink run = {to, "  ", true};
    fputc('{', to);
    tsr_run_record_fields(record, &json_fields, &run);
    json_name(&run, "ranks");
    fputc('[', to);
    for (int i = 0; i < record->ranks; i++) {
        json_sink rank = {to, "      ", true};
        fprintf(to, "%s\n    {", i ? "," : "");
        tsr_rank_record_fields(&record->rank_records[i], &json_fields, &rank);
        fputs("\n    }", to);
    }
    fputs(record->ranks > 0 ? "\n  ]\n}\n" : "]\n}\n", to);
    if (fflush(to) != 0 || ferror(to)) return tsr_fail(TSR_ERR_IO, "writing the run's JSON failed: %s", strerror(errno));
    return TSR_OK;
}

static tsr_status save_failed(const char *file, int error) {
    bool space = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return tsr_fail(space ? TSR_ERR_SPACE : TSR_ERR_IO, "cannot write the log '%s': %s; choose another place", file, strerror(error));
}

/* Where the record is written before it gets its name; *special: a pipe or a terminal, which has nothing to rename. */
static tsr_status temporary_name(const char *file, char *name, size_t chars, bool *special) {
    struct stat st;
    *special = stat(file, &st) == 0 && !S_ISREG(st.st_mode);
    int wanted = *special ? snprintf(name, chars, "%s", file) : snprintf(name, chars, "%s.tessera-%ld.tmp", file, (long)getpid());
    return wanted < (int)chars ? TSR_OK : save_failed(file, ENAMETOOLONG);
}

tsr_status tsr_record_check_json(const char *file) {
    char name[1200];
    bool special;
    TSR_TRY(temporary_name(file, name, sizeof name, &special));
    if (special) return TSR_OK;
    FILE *to = fopen(name, "we");
    if (!to) return save_failed(file, errno);
    fclose(to);
    unlink(name);
    return TSR_OK;
}

tsr_status tsr_record_save_json(const tsr_run_record *record, const char *file) {
    char name[1200];
    bool special;
    TSR_TRY(temporary_name(file, name, sizeof name, &special));
    FILE *to = fopen(name, "we");
    if (!to) return save_failed(file, errno);
    errno = 0;
    bool ok = tsr_record_write_json(record, to) == TSR_OK && (special || fsync(fileno(to)) == 0);
    int error = errno;
    if (fclose(to) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && !special && rename(name, file) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok && !special) unlink(name);
    return ok ? TSR_OK : save_failed(file, error);
}

/* ---- terminal ------------------------------------------------------------------------------------------------------- */

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
    fprintf(to, "%5d  %-9s  %-*s  %-*s %7lld %10.4g", r->rank, place, host, r->host, device, r->device, (long long)r->tiles, r->flops / 1e9);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        if (lane == TSR_LANE_MULTIPLY || lane == TSR_LANE_PACK) continue;
        fprintf(to, " %10.3f %6.2f", r->lane_seconds[lane], rate(r->lane_bytes[lane], r->lane_seconds[lane]));
    }
    fprintf(to, " %10.3f %9.1f\n", r->kernel_seconds, rate(r->flops, r->kernel_seconds));
}

void tsr_record_print(const tsr_run_record *record, FILE *to) {
    int host = width_of(record, offsetof(tsr_rank_record, host), "host");
    int device = width_of(record, offsetof(tsr_rank_record, device), "device");
    fprintf(to, "%5s  %-9s  %-*s  %-*s %7s %10s", "rank", "row,col,k", host, "host", device, "device", "tiles", "GFLOP");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
        if (lane != TSR_LANE_MULTIPLY && lane != TSR_LANE_PACK) fprintf(to, " %8s s %6s", lane_names[lane], "GB/s");
    fprintf(to, " %8s s %9s\n", "kernel", "GFLOP/s");
    for (int i = 0; i < record->ranks; i++) print_rank(&record->rank_records[i], host, device, to);
    int64_t tiles = 0, fallbacks = 0;
    for (int i = 0; i < record->ranks; i++) tiles += record->rank_records[i].tiles, fallbacks += record->rank_records[i].fallbacks;
    if (fallbacks > 0)
        fprintf(to, "kernel %s could not hold the values of %lld of %lld products: simt made them\n", record->kernel, (long long)fallbacks, (long long)tiles);
    fprintf(to, "%lldx%lldx%lld (m x n x k) %s on %d rank%s, grid %dx%dx%d, kernel %s (%s): %.3f s, %.1f GFLOP/s, check %s\n", (long long)record->m,
            (long long)record->n, (long long)record->k, record->type, record->ranks, record->ranks == 1 ? "" : "s", record->grid[0],
            record->grid[1], record->grid[2], record->kernel, record->accuracy, record->seconds, record->gflops, record->check);
}
