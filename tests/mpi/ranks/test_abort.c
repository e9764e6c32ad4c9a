/* Which ranks of a node were killed, as the others see it. */
#include "mpi/ranks/abort.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/files/namespaces.h"
#include "tests/check.h"

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
    free(once);
    return 0;
}
