/* The progress display under a clock that the test moves, on streams and on a terminal of its own. */
#define _GNU_SOURCE
#include "app/progress.h"

#include <fcntl.h>
#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/check.h"

static double read_clock(void *context) { return *(double *)context; }

typedef struct {
    char *text;
    size_t chars;
    FILE *to;
    double now;
    tsr_progress progress;
} screen;

static void open_on(screen *s, tsr_progress_mode mode, double total, const char *terminal) {
    s->to = open_memstream(&s->text, &s->chars);
    CHECK(s->to != NULL, "no stream");
    s->now = 100;
    tsr_progress_open_with_clock(&s->progress, mode, "multiply", total, "FLOP", s->to, terminal, read_clock, &s->now);
}

static void open_screen(screen *s, tsr_progress_mode mode, double total) { open_on(s, mode, total, NULL); }

static void close_screen(screen *s) {
    tsr_progress_close(&s->progress);
    fclose(s->to);
}

static void at(screen *s, double now, double done, double under_way) {
    s->now = now;
    tsr_progress_update(&s->progress, done, under_way);
}

static int count(const char *text, char wanted) {
    int found = 0;
    for (; *text; text++) found += *text == wanted;
    return found;
}

/* ---- lines and bars on a stream -------------------------------------------------------------- */

static void test_plain(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_PLAIN, 400e9);
    at(&s, 129, 100e9 * 29 / 30, 0); /* too early */
    at(&s, 130, 100e9, 0);           /* 25 % in 30 s: 90 s left */
    at(&s, 131, 102e9, 0);
    at(&s, 159.9, 200e9, 0);
    for (int i = 160; i <= 200; i++) at(&s, i, 300e9 + (i - 160) * 1e9, 0);
    close_screen(&s);
    CHECK(count(s.text, '\n') == 3 && count(s.text, '\r') == 0, "%s", s.text);
    CHECK(strncmp(s.text, "multiply: 25.0 %, 3.33 GFLOP/s, 0:30 elapsed, 1:30 left\n", 56) == 0, "%s", s.text);
    CHECK(strstr(s.text, "multiply: 82.5 %, 1.00 GFLOP/s, 1:30 elapsed, "), "the rate is that of the last seconds: %s",
          s.text);
    free(s.text);
}

static void test_bar(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_BAR, 10e9);
    for (int i = 1; i <= 1000; i++) at(&s, 100 + i * 0.01, i * 1e7, 0);
    close_screen(&s);
    const int drawn = count(s.text, '%');
    CHECK(drawn >= 40 && drawn <= 50, "%d drawings in 10 s", drawn);
    CHECK(count(s.text, '\n') == 0, "lines: %s", s.text);
    CHECK(strstr(s.text, "###..") && strstr(s.text, "1.00 GFLOP/s, 0:05 elapsed, 0:05 left"), "%s", s.text);
    const char *last = s.text + s.chars - 1;
    CHECK(*last == '\r', "the cursor is not at the line's beginning");
    while (last > s.text && *--last == ' ') continue;
    CHECK(*last == '\r' && s.chars - (size_t)(last - s.text) > 50, "the bar is left on the screen: %s", last);
    free(s.text);
}

static void test_nothing(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_OFF, 100);
    at(&s, 1000, 50, 0);
    close_screen(&s);
    CHECK(s.chars == 0, "%s", s.text);
    free(s.text);
    open_screen(&s, TSR_PROGRESS_PLAIN, 0); /* nothing to do */
    at(&s, 1000, 0, 0);
    close_screen(&s);
    CHECK(s.chars == 0, "%s", s.text);
    free(s.text);
    open_screen(&s, TSR_PROGRESS_BAR, 100); /* over before half a second */
    for (int i = 1; i < 10; i++) at(&s, 100 + i * 0.05, i * 10, 0);
    close_screen(&s);
    CHECK(s.chars == 0, "%s", s.text);
    free(s.text);
    open_screen(&s, TSR_PROGRESS_AUTO, 10); /* no terminal */
    at(&s, 110, 5, 0);
    CHECK(fflush(s.to) == 0 && s.chars == 0, "a bar without a terminal: %s", s.text);
    at(&s, 5000, 20, 7); /* more than all */
    close_screen(&s);
    CHECK(strstr(s.text, "100.0 %") && strstr(s.text, "0:00 left"), "%s", s.text);
    free(s.text);
}

/* ---- what it estimates ----------------------------------------------------------------------- */

/* Steps of four seconds, looked at five times a second: the share never runs ahead of the step's end or falls, and the
 * time left counts down. */
static void test_large_steps(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_PLAIN, 100);
    double reached = 0, left = 0;
    for (int tick = 1; tick <= 500; tick++) {
        const double now = 0.2 * tick;
        const int steps = tick / 20; /* of 4 each */
        at(&s, 100 + now, 4.0 * steps, steps < 25 ? 4 : 0);
        CHECK(s.progress.reached >= reached && s.progress.reached <= fmin(100, 4.0 * (steps + 1)),
              "%g after %g, in the step from %g", s.progress.reached, reached, 4.0 * steps);
        if (tick < 20)
            CHECK(s.progress.left < 0 && s.progress.reached == 0, "nothing was measured yet, but %g s are left",
                  s.progress.left);
        if (tick > 20)
            CHECK(fabs(s.progress.reached - now) < 0.3, "%g of 100 after %g s of 100", s.progress.reached, now);
        if (tick > 20)
            CHECK(fabs(left - s.progress.left) < 0.5, "%g s left, a moment before %g", s.progress.left, left);
        if (tick > 20)
            CHECK(fabs(s.progress.left - (100 - now)) < 1, "%g s left after %g of 100", s.progress.left, now);
        reached = s.progress.reached;
        left = s.progress.left;
    }
    close_screen(&s);
    free(s.text);
}

/* Steps that take between two and six seconds. */
static void test_uneven_steps(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_PLAIN, 100);
    double end = 4;
    double left = -1;
    double done = 0;
    for (int tick = 1; done < 100; tick++) {
        const double now = 0.2 * tick;
        if (now >= end) {
            done += 4;
            end += fmod(done, 8) == 0 ? 6 : 2;
        }
        at(&s, 100 + now, done, 4);
        if (left >= 0 && done < 100)
            CHECK(fabs(left - s.progress.left) < fmax(0.6, left / 20), "%g s left, a moment before %g", s.progress.left,
                  left);
        left = s.progress.left;
    }
    CHECK(left == 0, "%g s left at the end", left);
    close_screen(&s);
    free(s.text);
}

/* What was slow at first, or gets slow, is noticed within seconds. */
static void test_changing_speed(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_PLAIN, 1000);
    for (int tick = 1; tick <= 300; tick++) at(&s, 100 + 0.2 * tick, 0.2 * tick, 0); /* 1 a second: 60 in 60 s */
    CHECK(fabs(s.progress.left - 940) < 20, "%g s left", s.progress.left);
    for (int tick = 1; tick <= 150; tick++) at(&s, 160 + 0.2 * tick, 60 + 2.0 * tick, 0); /* 10 a second: 360 in 90 s */
    CHECK(fabs(s.progress.left - 64) < 15, "%g s left", s.progress.left);
    for (int tick = 1; tick <= 300; tick++) at(&s, 190 + 0.2 * tick, 360, 0); /* it hangs */
    CHECK(s.progress.left > 200, "%g s left of a run that hangs", s.progress.left);
    tsr_progress_extend(&s.progress, 1000);
    at(&s, 251, 361, 0);
    CHECK(s.progress.total == 2000 && s.progress.reached == 361, "%g of %g", s.progress.reached, s.progress.total);
    close_screen(&s);
    free(s.text);
}

/* ---- any width ------------------------------------------------------------------------------- */

static void test_widths(void) {
    static const tsr_progress_view views[] = {{"multiply", "FLOP", 0, 0, 0, -1},
                                              {"place chunks", "B", 0.5, 3.3e9, 83, 70},
                                              {"multiply", "FLOP", 1, 12345.67e12, 1e7, 1e7},
                                              {"multiply", "FLOP", 0.999, 1e20, 1e12, 1e12}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        for (int columns = 0; columns <= 300; columns++) {
            char text[256];
            tsr_progress_format(&views[i], columns, text, sizeof text);
            const int used = (int)strlen(text);
            CHECK(used < columns || used == 0, "%d of %d columns: %s", used, columns, text);
            CHECK(columns < 6 || strchr(text, '%'), "no share in %d columns: '%s'", columns, text);
            CHECK(columns < 20 || i > 1 || strstr(text, "left"), "no time left in %d columns: '%s'", columns, text);
            CHECK(columns < 80 || i > 1 || (strstr(text, "...") && strstr(text, "elapsed") && strstr(text, "/s")),
                  "not all of it in %d columns: '%s'", columns, text);
        }
}

/* What arrives at a terminal; its keeper reads without waiting. */
typedef struct {
    int keeper, end; /* end: kept open, so that the terminal lives on */
    char name[128], got[1 << 16];
    size_t bytes;
} terminal;

static void open_terminal(terminal *t, int columns) {
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    t->bytes = 0;
    t->keeper = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    CHECK(t->keeper >= 0 && grantpt(t->keeper) == 0 && unlockpt(t->keeper) == 0 &&
              ptsname_r(t->keeper, t->name, sizeof t->name) == 0,
          "no terminal");
    t->end = open(t->name, O_RDWR | O_NOCTTY);
    CHECK(t->end >= 0 && ioctl(t->keeper, TIOCSWINSZ, &size) == 0, "no terminal");
}

static const char *take(terminal *t) {
    ssize_t got;
    while ((got = read(t->keeper, t->got + t->bytes, sizeof t->got - 1 - t->bytes)) > 0) t->bytes += (size_t)got;
    t->got[t->bytes] = '\0';
    return t->got;
}

static void test_terminal(void) {
    static const int widths[] = {0, 20, 40, 80, 200};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        static terminal t;
        screen s;
        open_terminal(&t, widths[i]);
        open_on(&s, TSR_PROGRESS_AUTO, 100, t.name);
        for (int tick = 1; tick <= 200; tick++) {
            at(&s, 100 + tick * 0.5, tick * 0.5, 0);
            take(&t);
        }
        tsr_progress_wipe(); /* as a handler would; the bar goes once more when it closes */
        close_screen(&s);
        const char *got = take(&t);
        const size_t limit = widths[i] ? (size_t)widths[i] : 80;
        CHECK(s.chars == 0, "the stream got: %s", s.text);
        CHECK(count(got, '%') >= 199 && strstr(got, "99.0 %") && strstr(got, " left"), "%d drawings: %s",
              count(got, '%'), got);
        for (const char *line = got; *line; line += *line == '\r') {
            const size_t chars = strcspn(line, "\r");
            CHECK(chars < limit, "%zu characters in %zu columns: %.*s", chars, limit, (int)chars, line);
            line += chars;
        }
        const char *last = got + t.bytes - 1;
        while (last > got && (*last == ' ' || *last == '\r')) last--;
        CHECK(got + t.bytes - last > 10 && strspn(last + 1, " \r") == strlen(last + 1), "the bar is left: %s", last);
        free(s.text);
        close(t.end);
        close(t.keeper);
    }
}

/* A terminal that nobody reads from must not hold the run up; one that gets narrower gets shorter bars. */
static void test_slow_and_resized(void) {
    static terminal t;
    screen s;
    open_terminal(&t, 200);
    open_on(&s, TSR_PROGRESS_BAR, 1e6, t.name);
    for (int tick = 1; tick <= 2000; tick++) at(&s, 100 + tick, tick, 0);
    take(&t);
    t.bytes = 0;
    const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    CHECK(ioctl(t.keeper, TIOCSWINSZ, &narrow) == 0, "not resized");
    at(&s, 3000, 2001, 0);
    const char *got = take(&t);
    CHECK(strchr(got, '%') && strlen(got) <= 31, "%zu: '%s'", strlen(got), got); /* two returns */
    close_screen(&s);
    free(s.text);
    close(t.end);
    close(t.keeper);
}

static void *update_often(void *screen_) {
    screen *s = screen_;
    for (int i = 0; i < 10000; i++) tsr_progress_update(&s->progress, i, 0);
    return NULL;
}

static void test_threads(void) {
    screen s;
    pthread_t threads[4];
    open_screen(&s, TSR_PROGRESS_PLAIN, 10000);
    s.now = 200;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, update_often, &s);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    close_screen(&s);
    CHECK(count(s.text, '\n') == 1, "%s", s.text);
    free(s.text);
}

int main(void) {
    tsr_progress_mode mode = TSR_PROGRESS_AUTO;
    CHECK_OK(tsr_progress_parse("plain", &mode));
    CHECK(mode == TSR_PROGRESS_PLAIN, "%d", (int)mode);
    CHECK_FAILS(tsr_progress_parse("loud", &mode), TSR_ERR_USAGE, "auto, bar, plain or off");
    test_plain();
    test_bar();
    test_nothing();
    test_large_steps();
    test_uneven_steps();
    test_changing_speed();
    test_widths();
    test_terminal();
    test_slow_and_resized();
    test_threads();
    return 0;
}
