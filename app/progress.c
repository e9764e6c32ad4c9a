/* The progress display (progress.h): estimates rate and time left, decides when and where something is shown, and how
 * it reads. */
#include "app/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST_BAR_SECONDS 0.5
#define BAR_EVERY_SECONDS 0.2
#define LINE_EVERY_SECONDS 30.0
#define WINDOW_SECONDS 10.0 /* the rate is that of these */
#define MARK_EVERY_SECONDS 0.5
/* The time left follows a new rate within about these; sooner where little has passed, or is left. */
#define SMOOTH_SECONDS 5.0
#define BAR_LEAST 10
#define BAR_MOST 40
#define COLUMNS_USUAL 80

tsr_status tsr_progress_parse(const char *name, tsr_progress_mode *mode) {
    static const char *const names[] = {"auto", "bar", "plain", "off"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *mode = (tsr_progress_mode)i;
            return TSR_OK;
        }
    return tsr_fail(TSR_ERR_USAGE, "unknown --progress '%s': use auto, bar, plain or off", name);
}

/* ---- the terminal ---------------------------------------------------------------------------- */

/* For the handler of stop signals; `wiped`: it has been there, and what other threads still draw would stay. */
static volatile sig_atomic_t shown_on = -1, shown_columns, wiped;

/* Name, parent and group of a process, as far as /proc says. */
static bool look_up(pid_t process, char command[17], int *parent, int *group) {
    char name[40];
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)process);
    FILE *stat = fopen(name, "re");
    if (!stat) return false;
    const bool found = fscanf(stat, "%*d (%16[^)]) %*c %d %d", command, parent, group) == 3;
    fclose(stat);
    return found;
}

/* A background job leaves the terminal to others. Ranks are in groups of their own: there the job's is that of their
 * launcher, the parent of a group's first process. A shell, in the foreground while its job is not, is none. */
static bool in_foreground(int terminal) {
    static const char *const launchers[] = {"mpi", "orte", "prte", "hydra"}; /* mpirun, mpiexec, mpirun.openmpi, ... */
    const pid_t front = tcgetpgrp(terminal);
    char command[17];
    int launcher, of_launcher, group;
    if (front < 0) return errno == ENOTTY; /* a terminal that controls no jobs here; else one that has hung up */
    if (front == getpgrp()) return true;
    if (!look_up(getpgrp(), command, &launcher, &group) || !look_up(launcher, command, &of_launcher, &group) ||
        group != front)
        return false;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (strncmp(command, launchers[i], strlen(launchers[i])) == 0) return true;
    return false;
}

static int columns_of(int terminal) {
    struct winsize size = {0};
    return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS_USUAL;
}

/* A group in the background may write where the terminal does not forbid it (stty tostop): a blocked signal neither
 * stops it nor fails the write. */
static void put_on_terminal(int terminal, const char *text, size_t chars) {
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    const ssize_t written = write(terminal, text, chars);
    (void)written;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void put(const tsr_progress *progress, const char *text, size_t chars) {
    if (progress->terminal >= 0) {
        put_on_terminal(progress->terminal, text, chars);
        return;
    }
    fwrite(text, 1, chars, progress->to);
    fflush(progress->to);
}

/* Writes over the bar that is there, and leaves the cursor where the line begins, and whatever else is said. */
static void put_bar(tsr_progress *progress, const char *text) {
    char line[512];
    if (wiped) return;
    const int columns = (int)strlen(text),
              room = progress->terminal < 0 ? COLUMNS_USUAL : columns_of(progress->terminal);
    const int before = progress->columns < room ? progress->columns : room - 1,
              clear = before > columns ? before - columns : 0;
    const int chars = snprintf(line, sizeof line, "\r%s%*s\r", text, clear, "");
    put(progress, line, (size_t)(chars < (int)sizeof line ? chars : (int)sizeof line - 1));
    progress->columns = columns;
    shown_columns = columns;
    shown_on = columns > 0 ? progress->terminal : -1;
}

void tsr_progress_wipe(void) {
    const int terminal = shown_on, columns = shown_columns;
    char line[512];
    wiped = 1;
    if (terminal < 0 || columns <= 0 || columns > (int)sizeof line - 2) return;
    line[0] = line[columns + 1] = '\r';
    for (int i = 1; i <= columns; i++) line[i] = ' ';
    put_on_terminal(terminal, line, (size_t)columns + 2);
}

/* ---- opening --------------------------------------------------------------------------------- */

static double monotonic(void *context) {
    (void)context;
    return tsr_now_seconds();
}

void tsr_progress_open(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total, const char *unit,
                       FILE *to) {
    tsr_progress_open_with_clock(progress, mode, what, total, unit, to, "/dev/tty", monotonic, NULL);
}

/* Opened anew, so that it can be written to without waiting and nobody else's terminal changes. */
static int open_terminal(FILE *to, bool to_terminal, const char *terminal) {
    char name[256];
    if (to_terminal && ttyname_r(fileno(to), name, sizeof name) == 0) terminal = name;
    const int opened = terminal ? open(terminal, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    return opened < 0 && to_terminal ? fcntl(fileno(to), F_DUPFD_CLOEXEC, 0)
                                     : opened; /* somebody else's, as after su */
}

void tsr_progress_open_with_clock(tsr_progress *progress, tsr_progress_mode mode, const char *what, double total,
                                  const char *unit, FILE *to, const char *terminal, double (*clock)(void *),
                                  void *clock_context) {
    const double now = clock(clock_context);
    const bool to_terminal = isatty(fileno(to)), bar = mode == TSR_PROGRESS_AUTO || mode == TSR_PROGRESS_BAR;
    *progress = (tsr_progress){.to = to,
                               .to_terminal = to_terminal,
                               .terminal = bar ? open_terminal(to, to_terminal, terminal) : -1,
                               .mode = mode,
                               .what = what,
                               .unit = unit,
                               .total = total,
                               .clock = clock,
                               .clock_context = clock_context,
                               .started = now,
                               .written = now,
                               .drawn = now + FIRST_BAR_SECONDS - BAR_EVERY_SECONDS,
                               .last = {now, 0},
                               .marks = {{now, 0}},
                               .marked = 1,
                               .left = -1,
                               .left_at = now};
    pthread_mutex_init(&progress->lock, NULL);
    wiped = 0;
}

/* ---- rate and time left ---------------------------------------------------------------------- */

/* From the advance that is WINDOW_SECONDS before the latest, or the first there is, to the latest. Where steps under
 * way take longer than that, to now and their end. */
static double rate_of(const tsr_progress *progress, double now, double under_way) {
    const int64_t first = progress->marked > TSR_PROGRESS_MARKS ? progress->marked - TSR_PROGRESS_MARKS : 0;
    tsr_progress_mark old = progress->marks[first % TSR_PROGRESS_MARKS];
    for (int64_t i = progress->marked - 1; i >= first; i--) {
        old = progress->marks[i % TSR_PROGRESS_MARKS];
        if (old.at <= progress->last.at - WINDOW_SECONDS) break;
    }
    if (progress->last.at <= old.at) return 0;
    const double rate = (progress->last.done - old.done) / (progress->last.at - old.at);
    return fmin(rate, (progress->last.done + under_way - old.done) / (now - old.at));
}

/* Notes what was done, and says what to show. */
static tsr_progress_view estimate(tsr_progress *progress, double done, double under_way, double now) {
    if (done > progress->last.done) {
        progress->last = (tsr_progress_mark){now, done};
        if (now - progress->marks[(progress->marked - 1) % TSR_PROGRESS_MARKS].at >= MARK_EVERY_SECONDS)
            progress->marks[progress->marked++ % TSR_PROGRESS_MARKS] = progress->last;
    }
    const double rate = rate_of(progress, now, under_way), since = now - progress->left_at;
    const double reached = progress->last.done + fmin(under_way, rate * (now - progress->last.at));
    progress->reached = fmin(progress->total, fmax(progress->reached, reached));
    if (rate > 0) {
        const double left = (progress->total - progress->reached) / rate, counted = fmax(0, progress->left - since);
        const double smooth = fmin(SMOOTH_SECONDS, fmin(left, now - progress->started) / 2 + 1e-3);
        progress->left = progress->left < 0 ? left : counted + (left - counted) * (1 - exp(-since / smooth));
        progress->left_at = now;
    }
    if (progress->last.done >= progress->total) progress->left = 0;
    return (tsr_progress_view){progress->what, progress->unit,          progress->reached / progress->total,
                               rate,           now - progress->started, progress->left};
}

/* ---- how it reads ---------------------------------------------------------------------------- */

/* 75 → "1:15", 3700 → "1:01:40", below 0 → "?" */
static void format_duration(double seconds, char text[32]) {
    const int64_t whole = seconds < 1e9 ? (int64_t)(seconds + 0.5) : 1000000000;
    const int hours = (int)(whole / 3600);
    const int minutes = (int)(whole / 60 % 60);
    const int rest = (int)(whole % 60);
    if (seconds < 0) snprintf(text, 32, "?");
    else if (hours > 0) snprintf(text, 32, "%d:%02d:%02d", hours, minutes, rest);
    else snprintf(text, 32, "%d:%02d", minutes, rest);
}

static void format_rate(const tsr_progress_view *view, char text[64]) {
    const bool tera = view->rate >= 1e12;
    snprintf(text, 64, "%.2f %c%s/s", view->rate / (tera ? 1e12 : 1e9), tera ? 'T' : 'G', view->unit);
}

void tsr_progress_format(const tsr_progress_view *view, int columns, char *text, size_t chars) {
    char left[32], elapsed[32], rate[64];
    char tries[5][256], bar[BAR_MOST + 1];
    const double percent = 100 * view->share;
    format_duration(view->left, left);
    format_duration(view->elapsed, elapsed);
    format_rate(view, rate);
    snprintf(tries[0], sizeof *tries, "%5.1f %%, %s, %s elapsed, %s left", percent, rate, elapsed, left);
    snprintf(tries[1], sizeof *tries, "%s %.1f %%, %s elapsed, %s left", view->what, percent, elapsed, left);
    snprintf(tries[2], sizeof *tries, "%.1f %%, %s elapsed, %s left", percent, elapsed, left);
    snprintf(tries[3], sizeof *tries, "%.1f %%, %s left", percent, left);
    snprintf(tries[4], sizeof *tries, "%.0f %%", percent);
    const int room = (columns < (int)chars ? columns : (int)chars) - 1;
    const int most = room - (int)strlen(tries[0]) - (int)strlen(view->what) - 4,
              wide = most < BAR_MOST ? most : BAR_MOST;
    if (wide >= BAR_LEAST) {
        const int full = (int)(view->share * wide);
        for (int i = 0; i < wide; i++) bar[i] = i < full ? '#' : '.';
        bar[wide] = '\0';
        snprintf(text, chars, "%s [%s] %s", view->what, bar, tries[0]);
        return;
    }
    text[0] = '\0';
    for (int i = 0; i < 5 && !text[0]; i++)
        if ((int)strlen(tries[i]) <= room) snprintf(text, chars, "%s", tries[i]);
}

static void write_line(tsr_progress *progress, const tsr_progress_view *view) {
    char left[32], elapsed[32], rate[64];
    format_duration(view->left, left);
    format_duration(view->elapsed, elapsed);
    format_rate(view, rate);
    fprintf(progress->to, "%s: %.1f %%, %s, %s elapsed, %s left\n", view->what, 100 * view->share, rate, elapsed, left);
    fflush(progress->to);
}

/* ---- showing --------------------------------------------------------------------------------- */

/* A bar that was asked for goes to the stream where there is no terminal. Without a word, a job in the background of
 * its terminal says lines, but not there. */
static void show(tsr_progress *progress, const tsr_progress_view *view, double now) {
    const bool has_terminal = progress->terminal >= 0, automatic = progress->mode == TSR_PROGRESS_AUTO;
    if (progress->mode == TSR_PROGRESS_BAR || (automatic && has_terminal)) {
        if (now - progress->drawn < BAR_EVERY_SECONDS) return;
        if (!has_terminal || in_foreground(progress->terminal)) {
            char text[256];
            tsr_progress_format(view, has_terminal ? columns_of(progress->terminal) : COLUMNS_USUAL, text, sizeof text);
            put_bar(progress, text);
            progress->drawn = progress->written = now;
            return;
        }
    }
    if (progress->mode == TSR_PROGRESS_BAR || (automatic && progress->to_terminal) ||
        now - progress->written < LINE_EVERY_SECONDS)
        return;
    progress->written = now;
    write_line(progress, view);
}

void tsr_progress_update(tsr_progress *progress, double done, double under_way) {
    if (progress->mode == TSR_PROGRESS_OFF) return;
    pthread_mutex_lock(&progress->lock);
    if (progress->total > 0) {
        const double now = progress->clock(progress->clock_context);
        const double most = fmin(fmax(done, 0), progress->total);
        const tsr_progress_view view = estimate(progress, most, fmin(fmax(under_way, 0), progress->total - most), now);
        show(progress, &view, now);
    }
    pthread_mutex_unlock(&progress->lock);
}

void tsr_progress_extend(tsr_progress *progress, double units) {
    pthread_mutex_lock(&progress->lock);
    progress->total += units;
    pthread_mutex_unlock(&progress->lock);
}

void tsr_progress_close(tsr_progress *progress) {
    if (progress->columns > 0) put_bar(progress, "");
    if (progress->terminal >= 0) close(progress->terminal);
    progress->terminal = -1;
    pthread_mutex_destroy(&progress->lock);
}

/* ---- for app/library ------------------------------------------------------------------------- */

static void begin(void *context, const char *what, double total, const char *unit) {
    tsr_progress_display *display = context;
    tsr_progress_open(&display->bar, display->mode, what, total, unit, stderr);
}

static void advance(void *context, double done, double under_way) {
    tsr_progress_update(&((tsr_progress_display *)context)->bar, done, under_way);
}

static void extend(void *context, double units) { tsr_progress_extend(&((tsr_progress_display *)context)->bar, units); }

static void end(void *context) { tsr_progress_close(&((tsr_progress_display *)context)->bar); }

tsr_listener tsr_progress_listener(tsr_progress_display *display) {
    return (tsr_listener){.context = display, .begin = begin, .advance = advance, .extend = extend, .end = end};
}
