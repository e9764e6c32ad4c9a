/* The progress display under a clock that the test moves. */
#include "app/progress.h"
#include "tests/check.h"

static double read_clock(void *context) { return *(double *)context; }

typedef struct {
    char *text;
    size_t chars;
    FILE *to;
    double now;
    tsr_progress progress;
} screen;

static void open_screen(screen *s, tsr_progress_mode mode, double total) {
    s->to = open_memstream(&s->text, &s->chars);
    CHECK(s->to != NULL, "no stream");
    s->now = 100;
    tsr_progress_open_with_clock(&s->progress, mode, "multiply", total, "flop", s->to, read_clock, &s->now);
}

static void close_screen(screen *s) {
    tsr_progress_close(&s->progress);
    fclose(s->to);
}

static void at(screen *s, double now, double done) {
    s->now = now;
    tsr_progress_update(&s->progress, done);
}

static int lines(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

static void test_plain(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_PLAIN, 400e9);
    at(&s, 129, 90e9);  /* too early */
    at(&s, 130, 100e9); /* 25 % in 30 s: 90 s left */
    at(&s, 131, 200e9);
    at(&s, 159.9, 200e9);
    at(&s, 170, 300e9); /* 75 % in 70 s: 23 s left */
    close_screen(&s);
    CHECK(strcmp(s.text, "multiply: 25.0 %, 3.33 Gflop/s, 1:30 left\nmultiply: 75.0 %, 4.29 Gflop/s, 0:23 left\n") == 0, "%s", s.text);
    free(s.text);
}

static void test_bar(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_BAR, 10e9);
    for (int i = 1; i <= 1000; i++) at(&s, 100 + i * 0.01, i * 1e7);
    close_screen(&s);
    int drawn = 0;
    for (const char *c = s.text; *c; c++) drawn += *c == '\r';
    CHECK(drawn >= 40 && drawn <= 51, "%d drawings in 10 s", drawn);
    CHECK(lines(s.text) == 1, "%d lines", lines(s.text));
    CHECK(strstr(s.text, "[###############...............]  50.") != NULL, "%s", s.text);
    free(s.text);
}

static void test_quiet(void) {
    screen s;
    open_screen(&s, TSR_PROGRESS_OFF, 100);
    at(&s, 1000, 50);
    close_screen(&s);
    CHECK(s.chars == 0, "%s", s.text);
    free(s.text);
    open_screen(&s, TSR_PROGRESS_PLAIN, 0); /* nothing to do */
    at(&s, 1000, 0);
    close_screen(&s);
    CHECK(s.chars == 0, "%s", s.text);
    free(s.text);
    open_screen(&s, TSR_PROGRESS_AUTO, 10); /* no terminal */
    CHECK(s.progress.mode == TSR_PROGRESS_PLAIN, "%d", (int)s.progress.mode);
    at(&s, 5000, 20); /* more than all */
    close_screen(&s);
    CHECK(strstr(s.text, "100.0 %") && strstr(s.text, "0:00 left"), "%s", s.text);
    free(s.text);
}

static void *update_often(void *screen_) {
    screen *s = screen_;
    for (int i = 0; i < 10000; i++) tsr_progress_update(&s->progress, i);
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
    CHECK(lines(s.text) == 1, "%s", s.text);
    free(s.text);
}

int main(void) {
    tsr_progress_mode mode = TSR_PROGRESS_AUTO;
    CHECK_OK(tsr_progress_parse("plain", &mode));
    CHECK(mode == TSR_PROGRESS_PLAIN, "%d", (int)mode);
    CHECK_FAILS(tsr_progress_parse("loud", &mode), TSR_ERR_USAGE, "auto, bar, plain or off");
    test_plain();
    test_bar();
    test_quiet();
    test_threads();
    return 0;
}
