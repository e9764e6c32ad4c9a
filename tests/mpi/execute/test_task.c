/* Calls in threads: they run beside the caller, and their status and message come back to it. */
#include "mpi/execute/task.h"

#include <stdatomic.h>

#include "tests/check.h"

static atomic_int turn;

/* Ends only when the caller goes on meanwhile. */
static tsr_status answer(void *context) {
    turn = 1;
    while (turn != 2) continue;
    *(int *)context = 42;
    return TSR_OK;
}

static tsr_status fail(void *context) { return tsr_fail(TSR_ERR_LIMIT, "too much of %s", (const char *)context); }

/* ---- crews ----------------------------------------------------------------------------------- */

typedef struct {
    _Atomic int left, done[TSR_CREW_MOST];
} counting;

static void count(void *context, int number) {
    counting *c = context;
    while (atomic_fetch_sub(&c->left, 1) > 0) atomic_fetch_add(&c->done[number], 1);
}

/* All work is done once, by no more threads than may come, turn after turn. */
static void test_crew(void) {
    tsr_crew *crew;
    CHECK_OK(tsr_crew_open(&crew));
    for (int round = 0; round < 2000; round++) {
        const int threads = 1 + round % 5, work = round % 50;
        counting c = {.left = work};
        int sum = 0;
        tsr_crew_work(crew, threads, count, &c);
        for (int i = 0; i < TSR_CREW_MOST; i++) {
            CHECK(i < threads || c.done[i] == 0, "round %d: thread %d of %d worked", round, i, threads);
            sum += c.done[i];
        }
        CHECK(sum == work, "round %d: %d of %d were done", round, sum, work);
    }
    tsr_crew_close(crew);
    tsr_crew_close(NULL);
}

int main(void) {
    tsr_task first = {0};
    tsr_task second = {0};
    tsr_task never = {0};
    int result = 0;
    CHECK_OK(tsr_task_status(&never));
    CHECK(tsr_task_done(&never), "what never ran goes on");
    tsr_task_start(&first, answer, &result);
    while (turn != 1) continue;
    CHECK(result == 0, "%d before the call could end", result);
    CHECK(!tsr_task_done(&first), "done before the call could end");
    turn = 2;
    while (!tsr_task_done(&first)) continue;
    CHECK_OK(tsr_task_status(&first));
    CHECK(result == 42, "%d", result);

    tsr_task_start(&second, fail, "nothing");
    tsr_message_set("mine");
    tsr_task_wait(&second);
    CHECK(strcmp(tsr_message(), "mine") == 0, "waiting changed the message to '%s'", tsr_message());
    for (int again = 0; again < 2; again++) CHECK_FAILS(tsr_task_status(&second), TSR_ERR_LIMIT, "too much of nothing");
    tsr_task_wait(&second);
    test_crew();
    return 0;
}
