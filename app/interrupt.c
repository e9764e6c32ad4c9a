/* Stop signals (interrupt.h). A handler can reach only static memory and async-signal-safe calls; that is what
 * stands here. */
#include "app/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/progress.h"

#define UNCHANGED "; nothing under the output's name has changed, run the command again"
#define IN_PLACE "; the output is whole and in place"

static const struct {
    int number;
    const char *name;
} stop_signals[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"},
                    {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"}};
#define STOP_SIGNALS (sizeof stop_signals / sizeof *stop_signals)

/* Read by the handler: set before it can run, or before the flag that says so. */
static _Atomic(const tsr_run_log *) log_to_end;
static atomic_bool guarded; /* the following three are set */
static char temporary[TSR_FILE_CHARS], target[TSR_FILE_CHARS];
static ino_t made; /* the temporary file */
static tsr_once *once;
static atomic_flag stopping = ATOMIC_FLAG_INIT;

/* Nodes do not know of each other: of all that are stopped, the one with rank 0 speaks. */
static void say(const char *text, size_t chars) {
    if ((once && !once->has_first_rank) || !tsr_once_begin(once)) return;
    ssize_t written = write(STDERR_FILENO, text, chars);
    (void)written;
    tsr_once_end(once);
}

/* Whether the output is in place already: the rename that publishes and the removal of what would be renamed cannot
 * both succeed. A file that is gone was removed by another rank, or has its final name. */
static bool is_published(void) {
    struct stat st;
    if (!atomic_load(&guarded) || unlink(temporary) == 0) return false;
    return stat(target, &st) == 0 && st.st_ino == made;
}

static void stop(int number) {
    static const char stopped[] = "tessera: stopped on request" UNCHANGED "\n",
                      late[] = "tessera: stopped on request" IN_PLACE "\n";
    const tsr_run_log *log = atomic_load(&log_to_end);
    if (log && atomic_load(&log->finished)) return; /* the run ends anyway, as it says */
    const bool in_place = is_published();
    while (atomic_flag_test_and_set(&stopping)) pause(); /* another thread is at it, and ends the process */
    const char *message[] = {"stopped on request (", "?", in_place ? ")" IN_PLACE : ")" UNCHANGED};
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        if (stop_signals[i].number == number) message[1] = stop_signals[i].name;
    if (log) tsr_run_log_stop(log, message);
    tsr_progress_wipe();
    say(in_place ? late : stopped, (in_place ? sizeof late : sizeof stopped) - 1);
    _exit(tsr_status_exit_code(TSR_ERR_STOPPED));
}

static bool ignored[STOP_SIGNALS]; /* when the program began */

void tsr_interrupt_note_ignored(void) {
    struct sigaction before;
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        ignored[i] = sigaction(stop_signals[i].number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
}

void tsr_interrupt_keep_ignored(void) {
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        if (ignored[i]) signal(stop_signals[i].number, SIG_IGN);
}

/* Another stop signal waits until the handler is through. */
static void handle(void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    for (size_t i = 0; i < STOP_SIGNALS; i++) sigaddset(&action.sa_mask, stop_signals[i].number);
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        if (!ignored[i]) sigaction(stop_signals[i].number, &action, NULL);
}

void tsr_interrupt_log(const tsr_world *world, const tsr_run_log *log) {
    once = world->once;
    atomic_store(&log_to_end, log);
    handle(stop);
}

void tsr_interrupt_guard(const tsr_world *world, const tsr_output *output) {
    struct stat st;
    once = world->once;
    memcpy(temporary, output->desc.name.file, sizeof temporary);
    memcpy(target, output->target, sizeof target);
    made = stat(temporary, &st) == 0 ? st.st_ino : 0;
    atomic_store(&guarded, true);
    handle(stop);
}

void tsr_interrupt_release(void) {
    handle(SIG_DFL);
    atomic_store(&guarded, false);
    atomic_store(&log_to_end, NULL);
}
