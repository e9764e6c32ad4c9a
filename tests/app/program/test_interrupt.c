/* Handlers of crashes: they end the process as the crash would have. */
#include "app/interrupt.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/progress.h"
#include "tests/check.h"

void tsr_progress_wipe(void) {}

/* How a child ends that watches `times` and crashes. What it says is nobody's concern here. */
static int crash_after(int times, int number) {
    int ended = 0;
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        tsr_world world;
        memset(&world, 0, sizeof world);
        world.ranks = world.local_ranks = 1;
        close(STDERR_FILENO);
        signal(number, SIG_DFL); /* sanitizers have their own */
        for (int i = 0; i < times; i++) tsr_interrupt_watch(&world);
        raise(number);
        _exit(0);
    }
    pid_t done = 0;
    for (int i = 0; i < 1000 && (done = waitpid(child, &ended, WNOHANG)) == 0; i++) usleep(10000);
    if (done == 0) { /* in a handler that comes back to itself, with most signals blocked */
        kill(child, SIGKILL);
        done = waitpid(child, &ended, 0);
    }
    CHECK(done == child, "waitpid");
    return WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
}

int main(void) {
    const int numbers[] = {SIGSEGV, SIGABRT, SIGSYS};
    for (int times = 0; times < 4; times++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            const int ended = crash_after(times, numbers[i]);
            CHECK(ended == numbers[i], "signal %d after %d watches: ended by %d", numbers[i], times, ended);
        }
    return 0;
}
