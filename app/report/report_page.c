/* The page of a report (report.h): styles, data and scripts in one file. What files and names hold gets there as JSON
 * alone, in which nothing can end the element around it. */
#include <stdlib.h>
#include <string.h>

#include "app/report/page_files.h"
#include "app/report/report.h"
#include "io/text/json.h"
#include "io/text/text_file.h"

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct {
    FILE *to;
    int count;
} list;

static void put_lacking(void *context, const char *what) {
    list *l = context;
    if (l->count++ > 0) fputc(',', l->to);
    tsr_json_string(l->to, what);
}

static void put_text(FILE *to, const char *name, const char *text) {
    fprintf(to, ",\"%s\":", name);
    tsr_json_string(to, text);
}

static tsr_status put_record(const tsr_run_record *record, FILE *to) {
    char sentence[TSR_REPORT_SENTENCE];
    const tsr_run_bounds bounds = tsr_record_bounds(record);
    put_text(to, "sentence", tsr_report_sentence(record, sentence));
    put_text(to, "bound", tsr_lane_bounds(tsr_lane_find(bounds.limit_lane)));
    fputs(",\"lacks\":[", to);
    tsr_report_lacks(record, put_lacking, &(list){to, 0});
    fputs("],\"record\":", to);
    return tsr_record_write_json(record, to);
}

static tsr_status put_item(const tsr_report_item *item, const char *machine, FILE *to) {
    fprintf(to, "{\"kind\":\"%s\"", tsr_report_kind_name(item->kind));
    put_text(to, "name", item->name);
    if (item->has_record) TSR_TRY(put_record(&item->record.run, to));
    if (machine && item->has_record) {
        put_text(to, "machine", machine);
        fputs(",\"ceilings\":", to);
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++)
            fprintf(to, "%c\"%s\":%.17g", lane == 0 ? '{' : ',', tsr_lane_name((tsr_lane)lane), item->ceilings[lane]);
        fputc('}', to);
    }
    if (item->json) fprintf(to, ",\"data\":%s", item->json);
    fputc('}', to);
    return TSR_OK;
}

/* rank, lane, label, begin, length; where several were joined their number and busy time; bytes, flops, tile of C */
static void put_event(const tsr_report_event *e, FILE *to) {
    fprintf(to, "[%d,%d,%d,%.1f,%.1f,%.6g,%.6g,%lld,%.1f", e->rank, e->lane, e->label, e->begin, e->end - e->begin,
            e->bytes, e->flops, (long long)e->steps, e->busy);
    if (e->tile[0] >= 0)
        fprintf(to, ",%lld,%lld,%lld,%lld", (long long)e->tile[0], (long long)e->tile[1], (long long)e->tile[2],
                (long long)e->tile[3]);
    fputc(']', to);
}

static void put_trace(const tsr_report_trace *t, FILE *to) {
    bool first = true;
    fprintf(to, "{\"ranks\":%d,\"steps\":%lld,\"end\":%.1f", t->ranks, (long long)t->steps, t->end);
    put_text(to, "file", t->file ? t->file : "");
    put_text(to, "command", t->command ? t->command : "");
    fputs(",\"labels\":[", to);
    for (int i = 0; i < t->label_count; i++) put_lacking(&(list){to, i}, t->labels[i]);
    fputs("],\"rows\":[", to);
    for (int i = 0; i < t->ranks; i++) {
        const tsr_report_row *row = &t->rows[i];
        if (!row->shown) continue;
        fprintf(to, "%s{\"rank\":%d,\"end\":%.1f,\"steps\":%lld", first ? "" : ",", row->rank, row->end,
                (long long)row->steps);
        put_text(to, "name", row->name);
        fputc('}', to);
        first = false;
    }
    fputs("],\"events\":[", to);
    for (int64_t i = 0; i < t->count; i++) {
        if (i > 0) fputc(',', to);
        put_event(&t->events[i], to);
    }
    fputs("]}", to);
}

static tsr_status put_data(const tsr_report *report, FILE *to) {
    fputs("{\"program\":\"tessera " TSR_VERSION "\",\"lanes\":[", to);
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) put_lacking(&(list){to, lane}, tsr_lane_name((tsr_lane)lane));
    fputs("],\"items\":[", to);
    for (int i = 0; i < report->count; i++) {
        if (i > 0) fputc(',', to);
        TSR_TRY(put_item(&report->items[i], report->machine, to));
    }
    fputs("]", to);
    if (report->has_trace) {
        fputs(",\"trace\":", to);
        put_trace(&report->trace, to);
    }
    fputs("}", to);
    return TSR_OK;
}

/* JSON without blanks between its values, and as the text of an element: no character of it means anything to HTML. */
static void put_compact(const char *json, FILE *to) {
    bool text = false;
    for (const char *c = json; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&') {
            fprintf(to, "\\u%04x", *c);
            continue;
        }
        if (*c == '"') text = !text;
        else if (!text && strchr(" \t\r\n", *c)) continue;
        fputc(*c, to);
        if (text && *c == '\\' && c[1]) fputc(*++c, to);
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_escaped(const char *text, FILE *to) {
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", to);
        else if (*text == '>') fputs("&gt;", to);
        else if (*text == '&') fputs("&amp;", to);
        else fputc(*text, to);
    }
}

static void put_file(const unsigned char *file, FILE *to) { fputs((const char *)file, to); }

static void put_page(const tsr_report *report, const char *data, const char *words, FILE *to) {
    fputs(TSR_PAGE_HEAD
          "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>Tessera: ",
          to);
    if (report->count > 0) put_escaped(report->items[0].name, to);
    if (report->count > 1) fprintf(to, " and %d more", report->count - 1);
    fputs("</title>\n<style>\n", to);
    put_file(tsr_page_style_css, to);
    fputs("</style>\n</head>\n<body>\n<main id=\"page\"></main>\n<noscript><pre>", to);
    put_escaped(words, to);
    fputs("</pre></noscript>\n<script type=\"application/json\" id=\"data\">", to);
    put_compact(data, to);
    fputs("</script>\n<script>\n", to);
    for (int i = 0; tsr_page_scripts[i]; i++) put_file(tsr_page_scripts[i], to);
    fputs("</script>\n</body>\n</html>\n", to);
}

static tsr_status in_memory(tsr_status (*write)(const tsr_report *report, FILE *to), const tsr_report *report,
                            char **text) {
    size_t bytes = 0;
    FILE *to = open_memstream(text, &bytes);
    tsr_status status = to ? write(report, to) : TSR_ERR_MEMORY;
    if (to && fclose(to) != 0) status = TSR_ERR_MEMORY;
    return status == TSR_ERR_MEMORY ? tsr_fail(TSR_ERR_MEMORY, "no memory for the page; free some") : status;
}

tsr_status tsr_report_write_page(const tsr_report *report, const char *file) {
    char *data = NULL, *words = NULL;
    tsr_text_file to;
    tsr_status status = in_memory(put_data, report, &data);
    if (status == TSR_OK) status = in_memory(tsr_report_print, report, &words);
    if (status == TSR_OK) status = tsr_text_file_open("report", file, &to);
    if (status == TSR_OK) {
        put_page(report, data, words, to.to);
        status = tsr_text_file_close(&to, 0);
    }
    free(data);
    free(words);
    return status;
}
