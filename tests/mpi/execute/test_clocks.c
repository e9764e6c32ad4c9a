/* Clocks let a step go exactly when what it waits for was reached, and stop wakes whoever waits. */
#include "mpi/execute/clocks.h"
#include "tests/check.h"

static void *wait_for_five(void *context) {
    tsr_step step = {.slots = {{0, 5, -1}, {1, 0, 3}, {-1, 0, -1}}};
    return tsr_clocks_wait(context, &step) ? context : NULL;
}

int main(void) {
    tsr_clocks clocks;
    CHECK_OK(tsr_clocks_open(2, &clocks));
    tsr_step step = {.slots = {{0, 5, -1}, {1, 0, 3}, {-1, 0, -1}}};
    CHECK(!tsr_clocks_ready(&clocks, &step), "ready at clock 0");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_five, &clocks) == 0, "no thread");
    tsr_step moves = {.slots = {{0, 0, 5}, {-1, 0, -1}, {-1, 0, -1}}};
    tsr_clocks_advance(&clocks, &moves);
    void *went = NULL;
    pthread_join(thread, &went);
    CHECK(went == &clocks, "the waiter was told to stop");
    CHECK(tsr_clocks_ready(&clocks, &step), "not ready at clock 5");
    tsr_clocks_advance(&clocks, &step);
    CHECK(clocks.clock[0] == 5 && clocks.clock[1] == 3, "clocks are %lld and %lld", (long long)clocks.clock[0],
          (long long)clocks.clock[1]);
    tsr_step never = {.slots = {{0, 100, -1}, {-1, 0, -1}, {-1, 0, -1}}};
    tsr_clocks_stop(&clocks);
    CHECK(!tsr_clocks_wait(&clocks, &never), "a stopped clock let a step go");
    tsr_clocks_close(&clocks);
    return 0;
}
