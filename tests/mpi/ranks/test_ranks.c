/* Agreement, sharing, grids and the host transport on real ranks. */
#include "mpi/ranks/cores.h"
#include "mpi/ranks/rank_device.h"
#include "mpi/transport/transport.h"
#include "tests/check.h"

static void test_agreement(const tsr_world *w) {
    CHECK_OK(tsr_agree(w->comm, TSR_OK));
    int last = w->ranks - 1;
    tsr_message_set("");
    tsr_status mine = w->rank == last ? tsr_fail(TSR_ERR_IO, "planted on the last rank") : TSR_OK;
    CHECK(tsr_agree(w->comm, mine) == TSR_ERR_IO, "rank %d did not learn of the failure", w->rank);
    if (w->rank == 0) CHECK(strstr(tsr_message(), "planted"), "rank 0 has the message '%s'", tsr_message());
    else CHECK(*tsr_message() == '\0', "rank %d would print '%s', too", w->rank, tsr_message());
}

static void test_share(const tsr_world *w) {
    int64_t value = w->rank == 0 ? 42 : 0;
    CHECK_OK(tsr_share(w->comm, TSR_OK, &value, sizeof value));
    CHECK(value == 42, "rank %d got %lld", w->rank, (long long)value);
    tsr_status bad = w->rank == 0 ? tsr_fail(TSR_ERR_NOT_FOUND, "planted") : TSR_OK;
    CHECK(tsr_share(w->comm, bad, &value, sizeof value) == TSR_ERR_NOT_FOUND, "rank %d did not learn of it", w->rank);
}

/* Pieces and sums carry who made them and where they belong. */
static void test_transport(tsr_grid *grid, tsr_device *device, tsr_axis axis) {
    MPI_Comm comm = tsr_axis_comm(grid, axis);
    int ranks, rank;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    tsr_transport *t;
    CHECK_OK(tsr_transport_host.open(grid, device, &t));
    enum { COUNT = 1001 };
    double *all = malloc(sizeof *all * COUNT * (size_t)ranks), mine[COUNT];
    for (int i = 0; i < COUNT * ranks; i++) all[i] = i / COUNT == rank ? 1000.0 * rank + i % COUNT : -1;
    CHECK_OK(t->ops->all_gather(t, axis, all, COUNT * sizeof *all, NULL));
    for (int i = 0; i < COUNT * ranks; i++) /* NOLINTNEXTLINE(bugprone-integer-division): the rank it came from */
        CHECK(all[i] == 1000.0 * (i / COUNT) + i % COUNT, "element %d is %g", i, all[i]);
    for (int i = 0; i < COUNT * ranks; i++) all[i] = i + rank;
    CHECK_OK(t->ops->reduce_scatter(t, axis, all, mine, COUNT, TSR_F64, NULL));
    double others = ranks * (ranks - 1) / 2.0;
    for (int i = 0; i < COUNT; i++)
        CHECK(mine[i] == (double)(rank * COUNT + i) * ranks + others, "element %d of rank %d is %g", i, rank, mine[i]);
    /* from rank to rank, each adding its own */
    for (int i = 0; i < COUNT; i++) mine[i] = i;
    if (rank > 0) CHECK_OK(t->ops->receive(t, axis, rank - 1, mine, sizeof mine, NULL));
    for (int i = 0; i < COUNT; i++) {
        CHECK(mine[i] == i + rank * (rank - 1) / 2.0, "element %d handed to rank %d is %g", i, rank, mine[i]);
        mine[i] += rank;
    }
    if (rank + 1 < ranks) CHECK_OK(t->ops->send(t, axis, rank + 1, mine, sizeof mine, NULL));
    free(all);
    t->ops->close(t);
}

static void test_grids(const tsr_world *w, tsr_device *device) {
    for (int p = 1; p <= w->ranks; p++)
        for (int q = 1; p * q <= w->ranks; q++) {
            int r = w->ranks / (p * q);
            tsr_grid grid;
            CHECK_OK(tsr_grid_open(w, p, q, r, &grid));
            CHECK(grid.active == (w->rank < p * q * r), "rank %d of %d x %d x %d", w->rank, p, q, r);
            if (grid.active) {
                CHECK((grid.row * q + grid.col) * r + grid.depth == w->rank, "rank %d is at %d, %d, %d", w->rank,
                      grid.row, grid.col, grid.depth);
                for (int axis = 0; axis < TSR_AXIS_COUNT; axis++) test_transport(&grid, device, (tsr_axis)axis);
            }
            tsr_grid_close(&grid);
        }
}

/* A grid stays for the next run with the same sides, once. */
static void test_kept_grid(const tsr_world *w) {
    tsr_grid kept = {.p = 0}, first, again, other;
    tsr_world keeps = *w;
    int same = MPI_UNEQUAL;
    keeps.kept_grid = &kept;
    CHECK_OK(tsr_grid_open(&keeps, w->ranks, 1, 1, &first));
    CHECK_OK(tsr_grid_close(&first));
    CHECK(kept.p == w->ranks, "a grid of %d rows stayed", kept.p);
    CHECK_OK(tsr_grid_open(&keeps, w->ranks, 1, 1, &again));
    CHECK(kept.p == 0 && again.ranks == first.ranks && again.row == w->rank, "another grid was made");
    CHECK_OK(tsr_grid_open(&keeps, w->ranks, 1, 1, &other)); /* while that is in use */
    CHECK(other.ranks != again.ranks, "a grid was handed out twice");
    CHECK_OK(tsr_grid_close(&again));
    CHECK_OK(tsr_grid_close(&other));
    CHECK_OK(tsr_grid_open(&keeps, 1, w->ranks, 1, &other)); /* of another shape, even of one rank */
    CHECK_OK(TSR_MPI(MPI_Comm_compare(other.across_cols, w->comm, &same)));
    CHECK(same == MPI_CONGRUENT && other.col == w->rank, "a grid of one row has %d", other.row);
    CHECK_OK(tsr_grid_close(&other));
    CHECK_OK(tsr_grid_end(&kept));
    CHECK(kept.p == 0, "it stayed");
    CHECK_OK(tsr_grid_end(&kept));
}

/* Waits that leave the core to others do what MPI's do. */
static void test_waits(const tsr_world *w) {
    int values[3] = {w->rank, 1, -w->rank};
    CHECK_OK(tsr_reduce_all(w->comm, values, 3, MPI_INT, MPI_MAX));
    CHECK(values[0] == w->ranks - 1 && values[1] == 1 && values[2] == 0, "%d, %d, %d", values[0], values[1], values[2]);
    CHECK_OK(tsr_meet(w->comm));
}

static void test_choice(const tsr_world *w, tsr_device *device) {
    tsr_device_facts facts;
    const tsr_transport_ops *ops = NULL;
    CHECK_OK(device->ops->facts(device, &facts));
    CHECK_OK(tsr_transport_choose(w, "auto", &facts, 1, &ops));
    CHECK(ops == &tsr_transport_host, "the CPU exchanges through %s", ops->name);
    CHECK(tsr_transport_choose(w, "cuda-aware", &facts, 1, &ops) == TSR_ERR_UNSUPPORTED, "the CPU took cuda-aware");
    if (w->rank == 0) CHECK(strstr(tsr_message(), "not a GPU"), "message was: %s", tsr_message());
    CHECK(tsr_transport_choose(w, "pigeon", &facts, 1, &ops) == TSR_ERR_USAGE, "an unknown transport was taken");
    if (w->rank == 0) CHECK(strstr(tsr_message(), "host"), "message was: %s", tsr_message());
}

/* A GPU where one is, in its own thread; given up, whether it has come or not; and what is no device is refused on
 * every rank. */
static void test_opening(const tsr_world *w) {
    static const char *const kinds[] = {"auto", "cuda", "cpu", "abacus"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tsr_device_opening opening;
        tsr_device *device;
        int shared;
        tsr_device_begin(w, kinds[i], &opening);
        tsr_device_give_up(&opening);
        CHECK(opening.device == NULL && !opening.task.running, "'%s' is still open", kinds[i]);
        tsr_device_begin(w, kinds[i], &opening);
        if (i == 3) {
            CHECK(tsr_device_end(w, &opening, &device, &shared) == TSR_ERR_USAGE, "an abacus was opened");
            if (w->rank == 0) CHECK(strstr(tsr_message(), "abacus"), "message was: %s", tsr_message());
        } else if (i != 1) {
            CHECK_OK(tsr_device_end(w, &opening, &device, &shared));
            device->ops->close(device);
        } else {
            tsr_device_give_up(&opening);
        }
    }
}

/* A rank's warning is rank 0's to say, with that rank's advice, and with none it is not said. */
static void test_few_cores(const tsr_world *w) {
    const int last = w->ranks - 1;
    tsr_warnings warnings = {.to = w->rank == 0 ? tmpfile() : NULL};
    char expected[64];
    CHECK(w->rank != 0 || warnings.to, "no file for warnings");
    tsr_world bound = *w;
    bound.warnings = &warnings;
    bound.launcher = (tsr_launcher){.bound = true, .unbind = w->rank == last ? "the option of the last" : ""};
    bound.cores = w->rank == last ? TSR_CORES_FOR_GPU : 1;
    CHECK_OK(tsr_world_near_gpu(&bound, -1));
    CHECK(!*warnings.text, "cores enough, or no advice: '%s'", warnings.text);
    bound.cores = w->rank == last ? 2 : 1;
    CHECK_OK(tsr_world_near_gpu(&bound, -1));
    snprintf(expected, sizeof expected, "rank %d is bound to 2 cores,", last);
    if (w->rank == 0)
        CHECK(strstr(warnings.text, expected) && strstr(warnings.text, "start it with the option of the last"),
              "warned: '%s'", warnings.text);
    else CHECK(!*warnings.text, "rank %d warned: '%s'", w->rank, warnings.text);
    if (warnings.to) fclose(warnings.to);
}

/* The warning of NCCL when it is missing on the given rank; -1: on none, `ranks`: on all. */
static void check_missing(const tsr_world *w, int where, const char *expected) {
    tsr_warnings warnings = {.to = w->rank == 0 ? tmpfile() : NULL};
    CHECK(w->rank != 0 || warnings.to, "no file for warnings");
    tsr_world warned = *w;
    warned.warnings = &warnings;
    CHECK_OK(tsr_transport_warn_of_missing(&warned, w->rank == where || where == w->ranks, "the reason of this rank"));
    CHECK(w->rank == 0 && *expected ? strstr(warnings.text, expected) == warnings.text : !*warnings.text,
          "missing on %d: rank %d says '%s'", where, w->rank, warnings.text);
    if (warnings.to) fclose(warnings.to);
}

static void test_missing(const tsr_world *w) {
    check_missing(w, -1, "");
    check_missing(w, 0, "the reason of this rank. Panels");
    check_missing(w, w->ranks, "the reason of this rank. Panels");
    if (w->ranks > 1) check_missing(w, w->ranks - 1, "NCCL cannot be loaded on another rank. Panels");
}

int main(void) {
    tsr_world world;
    tsr_device *device;
    int shared;
    CHECK_OK(tsr_world_open(&world));
    CHECK_OK(tsr_device_choose(&world, "cpu", &device, &shared));
    test_opening(&world);
    test_agreement(&world);
    test_share(&world);
    test_grids(&world, device);
    test_kept_grid(&world);
    test_waits(&world);
    test_choice(&world, device);
    test_few_cores(&world);
    test_missing(&world);
    device->ops->close(device);
    tsr_world_close(&world);
    return 0;
}
