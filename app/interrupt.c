/* Stop signals and crashes (interrupt.h). A handler can reach only static memory and async-signal-safe calls; that is
 * what stands here. */
#include "app/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/progress.h"
#include "io/files/unfinished.h"

#define UNCHANGED "; nothing under the output's name has changed, run the command again"
#define DRAIN_SECONDS 15
#define LOST "a rank of this job was killed, perhaps because memory ran out"
#define IN_PLACE "; the output is whole and in place"

typedef struct {
    int number;
    const char *name;
} signal_name;

/* Those that end a process, but for SIGKILL, crashes, and SIGPIPE and SIGXFSZ, which are errors of a write here. */
static const signal_name stop_signals[] = {
    {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},       {SIGHUP, "SIGHUP"},      {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
    {SIGXCPU, "SIGXCPU"}, {SIGQUIT, "SIGQUIT"},     {SIGALRM, "SIGALRM"},    {SIGPROF, "SIGPROF"}, {SIGIO, "SIGIO"},
    {SIGPWR, "SIGPWR"},   {SIGVTALRM, "SIGVTALRM"}, {SIGSTKFLT, "SIGSTKFLT"}};
static const signal_name crashes[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
                                      {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"}};
#define COUNT(list) (sizeof(list) / sizeof *(list))
#define SIGNALS 65 /* numbers 1 to 64 */

static const char *name_of(const signal_name *list, size_t count, int number) {
    for (size_t i = 0; i < count; i++)
        if (list[i].number == number) return list[i].name;
    return NULL;
}

static bool is_real_time(int number) { return number >= SIGRTMIN && number <= SIGRTMAX; }

static bool is_stop(int number) {
    return is_real_time(number) || name_of(stop_signals, COUNT(stop_signals), number) != NULL;
}

/* ---- the handlers ---------------------------------------------------------------------------- */

/* Read by the handlers: set before they can run. */
static _Atomic(const tsr_run_log *) log_to_end;
static tsr_once *once;
static bool near_first; /* rank 0 of the job is on this node */
static bool spread;     /* others are on other nodes */
static char who[96];    /* "rank 1 on HOST: " */
static atomic_bool drains, asked;
static atomic_bool ending;
static pthread_t ender;

static void say(const char *const *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const ssize_t written = write(STDERR_FILENO, parts[i], strlen(parts[i]));
        (void)written;
    }
}

/* One handler ends the process. Other threads that come to one, or to tsr_interrupt_wait, wait for that. False: this
 * thread was at it, and crashed. */
static bool begin_end(void) {
    if (!atomic_exchange(&ending, true)) {
        ender = pthread_self();
        return true;
    }
    while (!pthread_equal(ender, pthread_self())) pause();
    return false;
}

/* A launcher stops the others where a rank was killed, which is no request. Nodes do not know of each other. Of ranks
 * that are stopped together those near rank 0 remove the output's file first, and whoever removed it speaks: a rank of
 * another node that was stopped alone, or failed (multiply.c), too. */
static void stop(int number) {
    const tsr_run_log *log = atomic_load(&log_to_end);
    if (atomic_load(&drains) && number != SIGALRM) { /* a launcher may send several */
        if (!atomic_exchange(&asked, true)) alarm(DRAIN_SECONDS);
        return;
    }
    if (log && atomic_load(&log->finished)) return; /* the run ends anyway, as it says */
    (void)begin_end();                              /* no stop signal comes while one is handled */
    tsr_progress_wipe(); /* now, as a launcher leaves little time, and again, as a thread may be drawing */
    tsr_once_leave(once);
    const bool lost = tsr_once_lost(once);
    const tsr_status failed = once ? (tsr_status)atomic_load(&once->failed) : TSR_OK;
    const bool first = tsr_once_begin(once);
    if (spread && !near_first) poll(NULL, 0, 300);
    const tsr_unfinished_end end = tsr_unfinished_remove();
    const char *const result = end == TSR_IN_PLACE ? IN_PLACE : UNCHANGED;
    const char *const text_result = end == TSR_IN_PLACE ? ")" IN_PLACE : ")" UNCHANGED;
    const char *name = name_of(stop_signals, COUNT(stop_signals), number);
    const char *const text[] = {lost ? LOST " (" : "stopped on request (", name ? name : "a real-time signal",
                                text_result};
    const char *const failure[] = {"another rank ended the job: standard error says why", "", ""};
    const char *const line[] = {lost ? "tessera: error: " LOST : "tessera: stopped on request", result, "\n"};
    if (log && failed != TSR_OK) tsr_run_log_stop(log, failed, failure);
    else if (log) tsr_run_log_stop(log, TSR_ERR_STOPPED, text);
    tsr_progress_wipe();
    if (first && (!spread || end == TSR_REMOVED || (near_first && end != TSR_GONE))) say(line, COUNT(line));
    if (first) tsr_once_end(once);
    tsr_once_await_others(once);
    _exit(tsr_status_exit_code(TSR_ERR_STOPPED));
}

static struct sigaction crash_before[COUNT(crashes)];

static void say_crash(int number) {
    const bool first = tsr_once_begin(once);
    const char *result = tsr_unfinished_remove() == TSR_IN_PLACE ? IN_PLACE : UNCHANGED;
    const char *const line[] = {"tessera: error: ",
                                who,
                                "ended by ",
                                name_of(crashes, COUNT(crashes), number),
                                ", a mistake in the program or its libraries, or a file cut short while in use",
                                result,
                                "\n"};
    tsr_progress_wipe();
    if (first) {
        say(line, COUNT(line));
        tsr_once_end(once);
    }
    tsr_once_await_others(once);
}

/* Then it goes on as it would have without this. */
static void crash(int number) {
    if (begin_end()) say_crash(number);
    for (size_t i = 0; i < COUNT(crashes); i++) sigaction(crashes[i].number, &crash_before[i], NULL);
    raise(number);
}

static int final_code;

/* Open MPI 4's own thread may come to an event after MPI_Finalize has freed and unloaded what handles it. Code that
 * stays loaded does not help: it finds its lists freed. */
static void crash_at_end(int number) {
    (void)number;
    static const char *const line[] = {"tessera: warning: MPI crashed while it ended; the result of the run stands\n"};
    say(line, COUNT(line));
    _exit(final_code);
}

/* ---- installing them ------------------------------------------------------------------------- */

static bool ignored[SIGNALS]; /* when the program began */

void tsr_interrupt_note_ignored(void) {
    struct sigaction before;
    for (int i = 1; i < SIGNALS; i++)
        ignored[i] = is_stop(i) && sigaction(i, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
}

void tsr_interrupt_keep_ignored(void) {
    for (int i = 1; i < SIGNALS; i++)
        if (ignored[i]) signal(i, SIG_IGN);
}

/* What a library handles for itself stays with it: a profiler's SIGPROF, say. The first six are never that. */
static bool may_take(int number) {
    struct sigaction now;
    if (ignored[number]) return false;
    for (size_t i = 0; i < 6; i++)
        if (stop_signals[i].number == number) return true;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

/* Another stop signal waits until the handler is through. */
void tsr_interrupt_watch(const tsr_world *world) {
    struct sigaction action;
    once = world->once;
    near_first = once ? once->has_first_rank : world->rank == 0;
    spread = world->ranks > (once ? world->local_ranks : 1);
    tsr_unfinished_count_in(tsr_once_files(once));
    if (world->ranks > 1) snprintf(who, sizeof who, "rank %d on %s: ", world->rank, world->host);
    memset(&action, 0, sizeof action);
    for (int i = 1; i < SIGNALS; i++)
        if (is_stop(i)) sigaddset(&action.sa_mask, i);
    action.sa_handler = stop;
    for (int i = 1; i < SIGNALS; i++)
        if (is_stop(i) && may_take(i)) sigaction(i, &action, NULL);
    action.sa_handler = crash;
    for (size_t i = 0; i < COUNT(crashes); i++) {
        struct sigaction before;
        const bool taken = sigaction(crashes[i].number, &action, &before) == 0;
        if (taken && before.sa_handler != crash) crash_before[i] = before; /* it is where a watch goes on */
    }
    if (may_take(SIGPIPE)) signal(SIGPIPE, SIG_IGN);
}

void tsr_interrupt_log(const tsr_run_log *log) { atomic_store(&log_to_end, log); }

void tsr_interrupt_guard(const tsr_output *output, bool kept) {
    tsr_unfinished_output(output->desc.name.file, output->target, kept);
}

void tsr_interrupt_drain(bool drain) { atomic_store(&drains, drain); }

bool tsr_interrupt_asked(void) { return atomic_load(&asked); }

void tsr_interrupt_wait(void) {
    while (atomic_load(&ending)) pause();
}

void tsr_interrupt_release(void) {
    struct sigaction now;
    tsr_interrupt_wait();
    for (int i = 1; i < SIGNALS; i++)
        if (is_stop(i) && sigaction(i, NULL, &now) == 0 && now.sa_handler == stop) signal(i, SIG_DFL);
    for (size_t i = 0; i < COUNT(crashes); i++)
        if (sigaction(crashes[i].number, NULL, &now) == 0 && now.sa_handler == crash)
            sigaction(crashes[i].number, &crash_before[i], NULL);
    tsr_unfinished_forget();
    tsr_unfinished_count_in(NULL);
    atomic_store(&log_to_end, NULL);
}

void tsr_interrupt_finish(int exit_code) {
    struct sigaction action;
    fflush(NULL);
    final_code = exit_code;
    memset(&action, 0, sizeof action);
    action.sa_handler = crash_at_end;
    for (size_t i = 0; i < COUNT(crashes); i++) sigaction(crashes[i].number, &action, NULL);
}

static bool is_in_place(void) { return tsr_unfinished_remove() == TSR_IN_PLACE; }

const tsr_guard tsr_interrupt_guards = {.watch = tsr_interrupt_watch,
                                        .log = tsr_interrupt_log,
                                        .output = tsr_interrupt_guard,
                                        .wait = tsr_interrupt_wait,
                                        .release = tsr_interrupt_release,
                                        .drain = tsr_interrupt_drain,
                                        .asked = tsr_interrupt_asked,
                                        .is_in_place = is_in_place};
