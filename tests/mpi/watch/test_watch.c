/* Watches of four ranks on what passes for two nodes, whose ranks are not in the order of the job: they open and close
 * with nobody to blame, and a step that does not end is put on the rank that makes it. */
#include "mpi/watch/watch.h"

#include <stdatomic.h>
#include <unistd.h>

#include "tests/check.h"

static atomic_int stalls;
static char said[512];

static void stalled(void *context, const char *message) {
    (void)context;
    snprintf(said, sizeof said, "%s", message);
    atomic_fetch_add(&stalls, 1);
}

static const tsr_watch_options options = {.limits = {.quiet = 2.5, .file_named = 100, .file = 100, .slow = 100},
                                          .stalled = stalled};

static void work(tsr_signs *signs, int steps) {
    const tsr_step step = {.kind = TSR_STEP_MULTIPLY, .lane = TSR_LANE_MULTIPLY, .operand = TSR_OPERAND_C, .flops = 1};
    for (int i = 0; i < steps; i++) {
        tsr_signs_step(signs, &step);
        usleep(20000);
        tsr_signs_step_done(signs, &step, 0.02);
    }
}

int main(void) {
    tsr_world world;
    tsr_watch *watch;
    CHECK_OK(tsr_world_open(&world));
    CHECK(world.ranks == 4 && world.threads, "start it on 4 ranks, with MPI_THREAD_MULTIPLE");
    MPI_Comm node; /* ranks 2, 0 and 3, 1 */
    MPI_Comm_split(world.comm, world.rank % 2, -world.rank, &node);
    world.node = node;
    MPI_Comm_rank(node, &world.local_rank);
    world.local_ranks = 2;
    CHECK(world.local_rank == (world.rank < 2), "the first of each node has the higher number");

    tsr_watch *kept = NULL, *first = NULL;
    for (int i = 0; i < 40; i++) { /* also at once, and with ranks that are late; from the 20th on one is kept */
        tsr_world other = world;   /* as a call's: gone with it */
        other.kept_watch = i < 20 ? NULL : &kept;
        CHECK_OK(tsr_watch_open(&other, &options, &watch));
        if (i % 2) work(tsr_watch_signs(watch), (world.rank + i) % 4);
        tsr_watch_close(watch);
        if (i == 20) first = watch;
        CHECK(i < 20 ? !kept : kept == first, "another watch was made, or none was kept");
    }
    world.kept_watch = &kept;
    CHECK_OK(tsr_watch_open(&world, &options, &watch));
    work(tsr_watch_signs(watch), 150); /* longer than the limit */
    CHECK(atomic_load(&stalls) == 0, "a stall where there is none: %s", said);

    const tsr_step step = {.kind = TSR_STEP_PACK, .lane = TSR_LANE_PACK, .operand = TSR_OPERAND_B};
    if (world.rank == 1) tsr_signs_step(tsr_watch_signs(watch), &step); /* and no end */
    /* The first of its node finds it, and would end the job. It is not heard of afterwards. */
    for (int i = 0; i < 800 && atomic_load(&stalls) == 0 && world.rank == 3; i++) usleep(10000);
    if (world.rank == 3) {
        CHECK(atomic_load(&stalls) == 1, "nobody noticed");
        CHECK(strstr(said, "rank 1 on ") && strstr(said, "pack lane, pack of B"), "%s", said);
    }
    MPI_Barrier(world.comm);
    CHECK(world.local_rank == 0 || atomic_load(&stalls) == 0, "%s", said);
    tsr_watch_leave(watch);
    CHECK(!kept, "a watch was kept that saw a failure");
    CHECK_OK(tsr_watch_open(&world, &options, &watch)); /* a new one */
    work(tsr_watch_signs(watch), 10);
    tsr_watch_close(watch);
    CHECK(kept, "it was not kept");
    tsr_watch_end(kept);
    tsr_world_close(&world);
    return 0;
}
