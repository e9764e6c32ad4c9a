/* A timeline on a terminal (report.h): of each rank shown a line a lane, darker where it was busy for longer. */
#include <math.h>
#include <string.h>

#include "app/report/report.h"
#include "io/text/text.h"

#define COLUMNS 66

static void print_lane(const tsr_report_trace *t, int rank, int lane, FILE *to) {
    static const char shades[] = " .:-=+*#";
    double busy[COLUMNS] = {0};
    const double width = t->end / COLUMNS;
    bool any = false;
    for (int64_t i = 0; i < t->count && width > 0; i++) {
        const tsr_report_event *e = &t->events[i];
        if (e->rank != rank || e->lane != lane) continue;
        any = true;
        const double density = e->end > e->begin ? e->busy / (e->end - e->begin) : 0;
        for (int c = (int)fmax(0, e->begin / width); c < COLUMNS && c * width < e->end; c++)
            busy[c] += density * (fmin(e->end, (c + 1) * width) - fmax(e->begin, c * width));
    }
    if (!any) return;
    fprintf(to, "  %-10s|", tsr_lane_name((tsr_lane)lane));
    for (int c = 0; c < COLUMNS; c++) {
        const double share = fmin(1, busy[c] / width);
        fputc(shades[share > 0 ? 1 + (int)(share * (sizeof shades - 3)) : 0], to);
    }
    fputs("|\n", to);
}

void tsr_report_print_trace(const tsr_report_trace *t, FILE *to) {
    char text[32];
    fprintf(to, "\ntimeline    %lld steps of %d rank%s, 0 to %s\n", (long long)t->steps, t->ranks,
            t->ranks == 1 ? "" : "s", tsr_report_seconds(t->end * 1e-6, text));
    for (int i = 0; i < t->ranks; i++) {
        if (!t->rows[i].shown) continue;
        tsr_text_print(to, "", 2, t->rows[i].name);
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) print_lane(t, t->rows[i].rank, lane, to);
    }
}
