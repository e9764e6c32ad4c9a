/* Preloaded into ranks that share cores with other tests: sched_yield for MPI's waits. A rank that waits yields until
 * its message is there. Where somebody computes on its core each yield lasts a time slice, and a call of the library
 * waits a hundred times. So a thread whose yield took that long sleeps shortly instead for a while: who wakes up gets
 * the core at once. */
#define _GNU_SOURCE /* syscall */
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOW_NANOSECONDS 1000000
#define NAPS 500

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int sched_yield(void) {
    static _Thread_local int naps;
    if (naps > 0) {
        naps--;
        nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
        return 0;
    }
    const long long before = now();
    const int result = (int)syscall(SYS_sched_yield);
    if (now() - before > SLOW_NANOSECONDS) naps = NAPS;
    return result;
}
