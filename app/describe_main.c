/* The program `tessera-describe`, which tessera starts to look into files (io/describe/describe.h). HDF5 can crash
 * on what it finds there, or never come back: so this process is small, has no part in MPI, and limits itself before
 * it opens anything. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/describe/describe.h"
#include "io/describe/describe_wire.h"

#define ADDRESSES ((rlim_t)2 << 30) /* bytes */

/* No more than was allowed before. */
static void limit(int what, rlim_t most) {
    struct rlimit now;
    if (getrlimit(what, &now) != 0) return;
    if (now.rlim_cur == RLIM_INFINITY || now.rlim_cur > most) now.rlim_cur = most;
    setrlimit(what, &now);
}

/* Each question has its own seconds. */
static void limit_cpu(uint32_t seconds) {
    static rlim_t given; /* by whoever started the job */
    struct rlimit now;
    struct rusage used;
    if (getrlimit(RLIMIT_CPU, &now) != 0 || getrusage(RUSAGE_SELF, &used) != 0) return;
    if (given == 0) given = now.rlim_cur;
    const rlim_t wanted = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + seconds + 1;
    now.rlim_cur = given == RLIM_INFINITY || given > wanted ? wanted : given;
    setrlimit(RLIMIT_CPU, &now);
}

static void limit_all(void) {
    limit(RLIMIT_CORE, 0);
#if !defined __SANITIZE_ADDRESS__
    limit(RLIMIT_AS, ADDRESSES); /* AddressSanitizer takes terabytes of them */
#endif
    limit_cpu((uint32_t)TSR_DESCRIBE_SECONDS);
}

/* Files that the job has open are none of its business: their locks end when the job closes them. */
static void close_others(void) {
#ifdef SYS_close_range
    syscall(SYS_close_range, 3U, ~0U, 0U);
#endif
}

/* Signals that end the job are the job's to answer; it takes this process with it. */
static void leave_signals_to_the_job(void) {
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_IGN);
}

int main(int argc, char **argv) {
    (void)argv;
    limit_all();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_signals_to_the_job();
    if (argc > 1 || isatty(STDIN_FILENO)) {
        fprintf(stderr, "tessera-describe is started by tessera, which asks it what files hold: use tessera info\n");
        return 2;
    }
    close_others();
    return tsr_status_exit_code(tsr_describe_serve(STDIN_FILENO, limit_cpu));
}
