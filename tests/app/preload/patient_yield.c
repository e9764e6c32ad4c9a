/* Preloaded into programs of MPI that share cores with other tests: sched_yield for MPI's waits. A rank that waits
 * polls and yields until its message is there, and so takes a core from those who compute. Where somebody computes on
 * its own core each yield lasts a time slice, and a call of the library waits a hundred times. So a thread that yields
 * again and again, or whose yield took long, sleeps shortly instead: who wakes up gets the core at once. */
#define _GNU_SOURCE /* syscall */
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOW_NANOSECONDS 1000000
#define NAPS 500
#define SOON_NANOSECONDS 50000 /* from one yield to the next of a thread that does nothing else */
#define PATIENCE 100           /* such yields in a row */
#define NAP_NANOSECONDS 100000

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int sched_yield(void) {
    static _Thread_local int naps, in_a_row;
    static _Thread_local long long last;
    const long long before = now();
    in_a_row = before - last < SOON_NANOSECONDS ? in_a_row + 1 : 0;
    if (naps > 0 || in_a_row > PATIENCE) {
        if (naps > 0) naps--;
        nanosleep(&(struct timespec){.tv_nsec = in_a_row > PATIENCE ? NAP_NANOSECONDS : 1}, NULL);
        last = now();
        return 0;
    }
    const int result = (int)syscall(SYS_sched_yield);
    last = now();
    if (last - before > SLOW_NANOSECONDS) naps = NAPS;
    return result;
}
