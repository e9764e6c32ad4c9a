/* Chrome trace JSON (trace_file.h): one event a line, so that a trace can be read and compared without a viewer. */
#include "io/record/trace_file.h"

#include <errno.h>

#include "io/text/json.h"

tsr_status tsr_trace_file_check(const char *file) { return tsr_text_file_check("trace", file); }

static void note_error(tsr_trace_file *t) {
    if (t->error == 0 && ferror(t->file.to)) t->error = errno ? errno : EIO;
}

static FILE *begin_event(tsr_trace_file *t) {
    errno = 0;
    fputs(t->first ? "\n" : ",\n", t->file.to);
    t->first = false;
    return t->file.to;
}

tsr_status tsr_trace_file_open(const char *file, const char *command, tsr_trace_file *opened) {
    tsr_trace_file t = {.first = true};
    TSR_TRY(tsr_text_file_open("trace", file, &t.file));
    errno = 0;
    fprintf(t.file.to,
            "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"format\": %d, \"command\": ", TSR_RECORD_FORMAT);
    tsr_json_string(t.file.to, command);
    fputs("}, \"traceEvents\": [", t.file.to);
    note_error(&t);
    *opened = t;
    return TSR_OK;
}

void tsr_trace_file_rank(tsr_trace_file *t, const tsr_rank_record *rank) {
    char name[256];
    bool idle = rank->row < 0;
    snprintf(name, sizeof name, "rank %d on %s: %s", rank->rank, rank->host, idle ? "idle" : rank->device);
    FILE *to = begin_event(t);
    fprintf(to, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": ", rank->rank);
    tsr_json_string(to, name);
    fputs("}}", to);
    fprintf(begin_event(t),
            "{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": %d, \"args\": {\"sort_index\": %d}}",
            rank->rank, rank->rank);
    for (int lane = 0; lane < TSR_LANE_COUNT && !idle; lane++) {
        fprintf(begin_event(t),
                "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": \"%s\"}}",
                rank->rank, lane, tsr_lane_name((tsr_lane)lane));
        fprintf(begin_event(t),
                "{\"ph\": \"M\", \"name\": \"thread_sort_index\", \"pid\": %d, \"tid\": %d, \"args\": {\"sort_index\": "
                "%d}}",
                rank->rank, lane, lane);
    }
    note_error(t);
}

void tsr_trace_file_line(tsr_trace_file *t, const tsr_trace_line *line) {
    if (t->error) return;
    int64_t took = line->end_ns - line->begin_ns;
    fprintf(begin_event(t),
            "{\"ph\": \"X\", \"name\": \"%s %s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03d, "
            "\"dur\": %lld.%03d, "
            "\"args\": {\"kind\": \"%s\", \"operand\": \"%s\", \"bytes\": %.17g, \"flops\": %.17g}}",
            line->kind, line->operand, line->category, line->rank, (int)line->lane, (long long)(line->begin_ns / 1000),
            (int)(line->begin_ns % 1000), (long long)(took / 1000), (int)(took % 1000), line->kind, line->operand,
            line->bytes, line->flops);
    note_error(t);
}

tsr_status tsr_trace_file_close(tsr_trace_file *t, bool complete) {
    errno = 0;
    fputs("\n]}\n", t->file.to);
    note_error(t);
    return tsr_text_file_close(&t->file, t->error ? t->error : complete ? 0 : ECANCELED);
}
