/* Chrome trace JSON (trace_file.h): one event a line, so that a trace can be read and compared without a viewer. */
#include "io/record/trace_file.h"

#include <errno.h>
#include <math.h>

#include "io/text/json.h"

tsr_status tsr_trace_file_check(const char *file) { return tsr_text_file_check("trace", file); }

static void note_error(tsr_trace_file *t) {
    if (t->error == 0 && ferror(t->file.to)) t->error = errno ? errno : EIO;
}

static FILE *begin_event(tsr_trace_file *t) {
    note_error(t);
    errno = 0;
    fputs(t->first ? "\n" : ",\n", t->file.to);
    t->first = false;
    return t->file.to;
}

/* ": 12.345": nanoseconds as microseconds. */
static void print_time(FILE *to, const char *name, int64_t ns) {
    fprintf(to, ", \"%s\": %lld.%03d", name, (long long)(ns / 1000), (int)(ns % 1000));
}

static void print_row_name(tsr_trace_file *t, int rank, int row, const char *name) {
    fprintf(begin_event(t),
            "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": \"%s\"}}", rank,
            row, name);
    fprintf(
        begin_event(t),
        "{\"ph\": \"M\", \"name\": \"thread_sort_index\", \"pid\": %d, \"tid\": %d, \"args\": {\"sort_index\": %d}}",
        rank, row, row);
}

static void print_startup(tsr_trace_file *t, const double *seconds) {
    int64_t begin = 0;
    print_row_name(t, 0, TSR_LANE_COUNT, "start-up");
    for (int part = 0; part < TSR_STARTUP_COUNT; part++) {
        const int64_t took = llround(1e9 * seconds[part]);
        FILE *to = begin_event(t);
        fprintf(to, "{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"start-up\", \"pid\": 0, \"tid\": %d",
                tsr_startup_name((tsr_startup)part), TSR_LANE_COUNT);
        print_time(to, "ts", begin);
        print_time(to, "dur", took);
        fprintf(to, ", \"args\": {\"kind\": \"%s\", \"operand\": \"\", \"bytes\": 0, \"flops\": 0}}",
                tsr_startup_name((tsr_startup)part)); /* as every event of the kind has them */
        begin += took;
    }
}

tsr_status tsr_trace_file_open(const char *file, const char *command, const double *startup, tsr_trace_file *opened) {
    tsr_trace_file t = {.first = true};
    for (int part = 0; startup && part < TSR_STARTUP_COUNT; part++) t.begins_ns += llround(1e9 * startup[part]);
    TSR_TRY(tsr_text_file_open("trace", file, &t.file));
    errno = 0;
    fprintf(t.file.to, TSR_TRACE_HEAD ", \"otherData\": {\"format\": %d", TSR_RECORD_FORMAT);
    print_time(t.file.to, "run_begins", t.begins_ns);
    fputs(", \"command\": ", t.file.to);
    tsr_json_string(t.file.to, command);
    fputs("}, \"traceEvents\": [", t.file.to);
    if (startup) print_startup(&t, startup);
    note_error(&t);
    *opened = t;
    return TSR_OK;
}

static void print_counter(tsr_trace_file *t, int rank, const char *lane, const char *unit, int64_t at_ns,
                          double value) {
    FILE *to = begin_event(t);
    fprintf(to, "{\"ph\": \"C\", \"name\": \"%s %s\", \"pid\": %d", lane, unit, rank);
    print_time(to, "ts", t->begins_ns + at_ns);
    fprintf(to, ", \"args\": {\"%s\": %.6g}}", unit, value);
}

const char *tsr_trace_rank_name(const tsr_rank_record *rank, char text[TSR_TRACE_RANK_CHARS]) {
    snprintf(text, TSR_TRACE_RANK_CHARS, "rank %d on %s: %s", rank->rank, rank->host,
             rank->row < 0 ? "idle" : rank->device);
    return text;
}

void tsr_trace_file_rank(tsr_trace_file *t, const tsr_rank_record *rank) {
    char name[TSR_TRACE_RANK_CHARS];
    const bool idle = rank->row < 0;
    FILE *to = begin_event(t);
    fprintf(to, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": ", rank->rank);
    tsr_json_string(to, tsr_trace_rank_name(rank, name));
    fputs("}}", to);
    fprintf(begin_event(t),
            "{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": %d, \"args\": {\"sort_index\": %d}}",
            rank->rank, rank->rank);
    for (int lane = 0; lane < TSR_LANE_COUNT && !idle; lane++)
        print_row_name(t, rank->rank, lane, tsr_lane_name((tsr_lane)lane));
    if (!idle && rank->device_bytes > 0)
        print_counter(t, rank->rank, "device memory", "GB", 0, rank->device_bytes / 1e9);
    if (!idle && rank->host_peak_bytes > 0)
        print_counter(t, rank->rank, "host memory", "GB", 0, rank->host_peak_bytes / 1e9);
    note_error(t);
}

void tsr_trace_file_line(tsr_trace_file *t, const tsr_trace_line *line) {
    if (t->error) return;
    const int64_t took = line->end_ns - line->begin_ns;
    const bool counts_flops = line->flops > 0;
    const char *lane = tsr_lane_name(line->lane), *unit = counts_flops ? "TFLOP/s" : "GB/s";
    const double amount = counts_flops ? line->flops / 1e12 : line->bytes / 1e9;
    FILE *to = begin_event(t);
    fprintf(to, "{\"ph\": \"X\", \"name\": \"%s %s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d", line->kind,
            line->operand, line->category, line->rank, (int)line->lane);
    print_time(to, "ts", t->begins_ns + line->begin_ns);
    print_time(to, "dur", took);
    fprintf(to, ", \"args\": {\"kind\": \"%s\", \"operand\": \"%s\", \"bytes\": %.17g, \"flops\": %.17g", line->kind,
            line->operand, line->bytes, line->flops);
    if (!tsr_rect_empty(line->tile))
        fprintf(to, ", \"row\": %lld, \"col\": %lld, \"rows\": %lld, \"cols\": %lld", (long long)line->tile.row,
                (long long)line->tile.col, (long long)line->tile.rows, (long long)line->tile.cols);
    if (line->kernel) fprintf(to, ", \"kernel\": \"%s\"", line->kernel);
    fputs("}}", to);
    if (took > 0 && amount > 0) {
        print_counter(t, line->rank, lane, unit, line->begin_ns, amount / ((double)took / 1e9));
        print_counter(t, line->rank, lane, unit, line->end_ns, 0);
    }
    note_error(t);
}

static void print_arrow_end(tsr_trace_file *t, const char *phase, const tsr_trace_line *line) {
    FILE *to = begin_event(t);
    fprintf(to, "{\"ph\": %s, \"name\": \"data\", \"cat\": \"data\", \"id\": %lld, \"pid\": %d, \"tid\": %d", phase,
            (long long)t->arrows, line->rank, (int)line->lane);
    print_time(to, "ts", t->begins_ns + line->begin_ns);
    fputs("}", to);
}

void tsr_trace_file_arrow(tsr_trace_file *t, const tsr_trace_line *from, const tsr_trace_line *to) {
    if (t->error) return;
    t->arrows++;
    print_arrow_end(t, "\"s\"", from);
    print_arrow_end(t, "\"f\", \"bp\": \"e\"", to);
    note_error(t);
}

tsr_status tsr_trace_file_close(tsr_trace_file *t, bool complete) {
    errno = 0;
    fputs("\n]}\n", t->file.to);
    note_error(t);
    return tsr_text_file_close(&t->file, t->error ? t->error : complete ? 0 : ECANCELED);
}
