/* The progress display (progress.h): decides when something is shown and how it reads. */
#include "app/progress.h"

#include <string.h>
#include <unistd.h>

#define BAR_EVERY_SECONDS 0.2
#define LINE_EVERY_SECONDS 30.0
#define BAR_CHARS 30

tsr_status tsr_progress_parse(const char *name, tsr_progress_mode *mode) {
    static const char *const names[] = {"auto", "bar", "plain", "off"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) return *mode = (tsr_progress_mode)i, TSR_OK;
    return tsr_fail(TSR_ERR_USAGE, "unknown --progress '%s': use auto, bar, plain or off", name);
}

static double monotonic(void *context) {
    (void)context;
    return tsr_now_seconds();
}

void tsr_progress_open(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total, const char *unit, FILE *to) {
    tsr_progress_open_with_clock(progress, mode, what, total, unit, to, monotonic, NULL);
}

void tsr_progress_open_with_clock(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total, const char *unit, FILE *to,
                                  double (*clock)(void *), void *clock_context) {
    if (mode == TSR_PROGRESS_AUTO) mode = isatty(fileno(to)) ? TSR_PROGRESS_BAR : TSR_PROGRESS_PLAIN;
    double now = clock(clock_context);
    *progress = (tsr_progress){.to = to, .mode = mode, .what = what, .unit = unit, .total = total, .clock = clock,
                               .clock_context = clock_context, .started = now, .shown = now};
    pthread_mutex_init(&progress->lock, NULL);
}

/* 75 → "1:15", 3700 → "1:01:40" */
static void format_duration(double seconds, char *text, size_t chars) {
    int64_t whole = seconds < 1e9 ? (int64_t)(seconds + 0.5) : 1000000000;
    int hours = (int)(whole / 3600), minutes = (int)(whole / 60 % 60), rest = (int)(whole % 60);
    if (hours > 0) snprintf(text, chars, "%d:%02d:%02d", hours, minutes, rest);
    else snprintf(text, chars, "%d:%02d", minutes, rest);
}

static void show(tsr_progress *progress, double done, double now) {
    double share = done / progress->total, elapsed = now - progress->started;
    double rate = elapsed > 0 ? done / elapsed : 0;
    char left[32] = "?", bar[BAR_CHARS + 1];
    if (rate > 0) format_duration((progress->total - done) / rate, left, sizeof left);
    if (progress->mode == TSR_PROGRESS_PLAIN) {
        fprintf(progress->to, "%s: %.1f %%, %.2f G%s/s, %s left\n", progress->what, 100 * share, rate / 1e9, progress->unit, left);
    } else {
        memset(bar, '.', BAR_CHARS);
        memset(bar, '#', (size_t)(share * BAR_CHARS));
        bar[BAR_CHARS] = '\0';
        fprintf(progress->to, "\r%s [%s] %5.1f %%, %.2f G%s/s, %s left ", progress->what, bar, 100 * share, rate / 1e9, progress->unit, left);
        progress->drawn = true;
    }
    fflush(progress->to);
}

void tsr_progress_update(tsr_progress *progress, double done) {
    if (progress->mode == TSR_PROGRESS_OFF || !(progress->total > 0)) return;
    if (done > progress->total) done = progress->total;
    if (done < 0) done = 0;
    double every = progress->mode == TSR_PROGRESS_BAR ? BAR_EVERY_SECONDS : LINE_EVERY_SECONDS;
    pthread_mutex_lock(&progress->lock);
    double now = progress->clock(progress->clock_context);
    if (now - progress->shown >= every) {
        progress->shown = now;
        show(progress, done, now);
    }
    pthread_mutex_unlock(&progress->lock);
}

void tsr_progress_close(tsr_progress *progress) {
    if (progress->drawn) fputc('\n', progress->to);
    pthread_mutex_destroy(&progress->lock);
}
