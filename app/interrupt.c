/* Stop signals (interrupt.h). A handler can reach only static memory and async-signal-safe calls; that is what stands here. */
#include "app/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "app/progress.h"

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
/* Written before the handler is installed. */
static char temporary[TSR_FILE_CHARS];
static tsr_once *once;

/* Nodes do not know of each other: of all that are stopped, the one with rank 0 speaks. */
static void say(const char *text, size_t chars) {
    if ((once && !once->has_first_rank) || !tsr_once_begin(once)) return;
    ssize_t written = write(STDERR_FILENO, text, chars);
    (void)written;
    tsr_once_end(once);
}

static void stop(int number) {
    static const char text[] = "tessera: stopped on request; nothing under the output's name has changed, run the command again\n";
    (void)number;
    unlink(temporary);
    tsr_progress_wipe();
    say(text, sizeof text - 1);
    _exit(75);
}

static void handle(void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++) sigaction(stop_signals[i], &action, NULL);
}

void tsr_interrupt_guard(const tsr_world *world, const tsr_output *output) {
    once = world->once;
    memcpy(temporary, output->desc.name.file, sizeof temporary);
    handle(stop);
}

void tsr_interrupt_release(void) { handle(SIG_DFL); }
