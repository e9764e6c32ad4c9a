/* Which ranks of a node were killed, as the others see it, and which are waited for. */
#include "mpi/ranks/abort.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/files/namespaces.h"
#include "tests/check.h"

/* How long this process waits for others when it ends. */
static double waits(tsr_once *once) {
    const double start = tsr_now_seconds();
    tsr_once_await_others(once);
    return tsr_now_seconds() - start;
}

/* Two ranks besides this process's, which is number 0: one has ended, one has a number that init has. */
static void test_waiting(tsr_once *once, pid_t dead) {
    once->rank[1].process = dead;
    once->rank[2].process = 1;
    for (int i = 0; i < once->ranks; i++) {
        atomic_store(&once->rank[i].leaves, i == 1);
        once->rank[i].numbering = tsr_pid_namespace();
    }
    CHECK(tsr_once_files(once) == &once->rank[0].files && !tsr_once_files(NULL), "another's files are counted");
    CHECK(waits(once) < 0.5 && atomic_load(&once->rank[0].left), "waited for one that ended, and one that works");
    atomic_store(&once->rank[2].files, 1);
    CHECK(waits(once) > 0.5, "one that has a file is not waited for");
    atomic_store(&once->rank[2].left, true);
    CHECK(waits(once) < 0.5, "waited for one that is through");
    atomic_store(&once->rank[2].files, 0);
    atomic_store(&once->rank[2].left, false);
    atomic_store(&once->rank[2].leaves, true);
    CHECK(waits(once) > 0.5, "one that leaves is not waited for");
    tsr_once_await_others(NULL);
}

int main(void) {
    const pid_t dead = fork();
    if (dead == 0) _exit(0);
    CHECK(dead > 0 && waitpid(dead, NULL, 0) == dead, "fork");
    tsr_once *once = calloc(1, sizeof *once + 3 * sizeof once->rank[0]);
    CHECK(once != NULL, "no memory");
    once->ranks = 3;
    for (int i = 0; i < once->ranks; i++) {
        once->rank[i].numbering = tsr_pid_namespace();
        once->rank[i].process = getpid();
    }
    once->rank[2].numbering++; /* in another container, by the same number */
    CHECK(!tsr_once_lost(once) && !tsr_once_lost(NULL), "all live");
    tsr_once_leave(once);
    CHECK(atomic_load(&once->rank[0].leaves) && !atomic_load(&once->rank[2].leaves), "another's flag is set");
    once->rank[2].process = dead;
    CHECK(!tsr_once_lost(once), "nobody knows of other containers");
    once->rank[2].numbering--;
    CHECK(tsr_once_lost(once), "one was killed");
    atomic_store(&once->rank[2].leaves, true);
    CHECK(!tsr_once_lost(once), "it ended by itself");
    test_waiting(once, dead);
    free(once);
    return 0;
}
