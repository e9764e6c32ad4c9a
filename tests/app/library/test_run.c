/* app/library as another program would use it: several runs in one process, which print nothing, tell the caller's
 * functions what happens, and come back with a status where something is wrong. Under mpirun, too. */
#define _GNU_SOURCE /* nftw */
#include "app/library/run.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/io/chunks/chunked.h"

enum { M = 60, K = 40, N = 50 };

static tsr_world world;

typedef struct {
    int stages, begun, ended;
    int made, planned, published;
    double share;
    bool stops; /* once the product is checked */
    bool checks;
    double checked; /* bytes, meanwhile */
} told;

static void stage(void *context, const char *name) {
    told *t = context;
    CHECK(name[0] != '\0', "a stage without a name");
    t->stages++;
    t->checks = strcmp(name, "check") == 0;
}
static void advance(void *context, double done, double under_way) {
    told *t = context;
    (void)under_way;
    if (t->checks) t->checked = done;
}
static bool stopped(void *context) {
    const told *t = context;
    return t->stops && t->checks;
}
static void begin(void *context, const char *what, double total, const char *unit) {
    CHECK(what && unit && total > 0, "%s", what);
    ((told *)context)->begun++;
}
static void end(void *context) { ((told *)context)->ended++; }
static void multiplied(void *context, double share) { ((told *)context)->share = share; }
static void output_made(void *context, const tsr_output *output) {
    (void)output;
    ((told *)context)->made++;
}
static tsr_status planned(void *context, const struct tsr_run *run) {
    CHECK(run != NULL, "no run");
    ((told *)context)->planned++;
    return TSR_OK;
}
static tsr_status published(void *context, const tsr_run_record *record, const tsr_output_spec *spec,
                            const tsr_output *output) {
    CHECK(record->m == M && record->n == N && record->k == K && record->ranks == world.ranks, "another product");
    CHECK(spec->rows == M && output->desc.cols == N, "another output");
    ((told *)context)->published++;
    return TSR_OK;
}

static tsr_run_calls calls_to(told *t) {
    return (tsr_run_calls){.context = t,
                           .progress = {.context = t, .begin = begin, .advance = advance, .end = end},
                           .stage = stage,
                           .stopped = stopped,
                           .multiplied = multiplied,
                           .planned = planned,
                           .output_made = output_made,
                           .published = published};
}

static void make_matrix(const char *file, int64_t rows, int64_t cols) {
    const tsr_output_spec spec = chunked_spec(file, "/X", rows, cols, 0, 0, PLAIN);
    double *data = calloc((size_t)(rows * cols), sizeof *data);
    tsr_output output;
    tsr_store *store;
    for (int64_t i = 0; i < rows * cols; i++) data[i] = (double)(i % 5) - 2;
    CHECK_OK(tsr_output_create(&spec, &output));
    CHECK_OK(tsr_output_open(&output, TSR_IO_AUTO, NULL, &store));
    CHECK_OK(store->ops->write(store, (tsr_rect){0, 0, rows, cols}, data, cols));
    CHECK_OK(store->ops->sync(store));
    tsr_store_close(store);
    CHECK_OK(tsr_output_publish(&output, NULL, "test"));
    free(data);
}

static tsr_matrix_name name_of(const char *file) {
    char text[700];
    tsr_matrix_name name;
    snprintf(text, sizeof text, "%s:/X", in_scratch(file));
    CHECK_OK(tsr_matrix_name_parse(text, &name));
    return name;
}

static tsr_run_options options_for(const char *b) {
    return (tsr_run_options){.product = {.a = name_of("a.h5"), .b = name_of(b), .alpha = {1, 0}},
                             .target = {.name = name_of("c.h5"), .force = true},
                             .engine = {.device = "cpu", .kernel = "auto", .transport = "auto"},
                             .limits = {.memory = {.percent = 10}, .host_memory = {.percent = 10}},
                             .trials = 5,
                             .command = "test",
                             .started = "now"};
}

static void test_runs(void) {
    const tsr_run_options good = options_for("b.h5"), bad = options_for("a.h5");
    for (int i = 0; i < 2; i++) { /* nothing is left of a run, whether it went well or not */
        told t = {0};
        const tsr_run_calls calls = calls_to(&t), none = {0};
        CHECK_OK(tsr_run_multiply(&world, &good, &calls));
        CHECK(t.published == (world.rank == 0) && t.made == 1 && t.share == 1, "%d %d %g", t.published, t.made,
              t.share);
        CHECK(t.stages >= 3 && t.begun >= 2 && t.begun == t.ended && t.planned == 0, "%d %d %d", t.stages, t.begun,
              t.ended);
        CHECK_OK(tsr_run_plan(&world, &good, &calls));
        CHECK(t.planned == 1 && t.made == 1, "%d %d", t.planned, t.made);
        CHECK_OK(tsr_run_multiply(&world, &good, &none));
        const tsr_status status = tsr_run_multiply(&world, &bad, &calls);
        CHECK(status == TSR_ERR_SHAPE && (world.rank != 0) == (tsr_message()[0] == '\0'), "%s", tsr_message());
    }
}

/* One rank is asked to stop while the product is checked: all end, and have not read what was left. */
static void test_stop(void) {
    const tsr_run_options options = options_for("b.h5");
    told t = {.stops = world.rank == world.ranks - 1};
    const tsr_run_calls calls = calls_to(&t);
    CHECK(tsr_run_multiply(&world, &options, &calls) == TSR_ERR_STOPPED, "%s", tsr_message());
    CHECK(t.checks && t.published == 0 && (!t.stops || t.checked == 0), "%g bytes were read", t.checked);
    CHECK(t.checked < 8.0 * (M * K + K * N + M * N), "%g bytes were read", t.checked);
    t = (told){0};
    CHECK_OK(tsr_run_multiply(&world, &options, &calls));
    CHECK(t.checked == 8.0 * (M * K + K * N + M * N) || world.ranks > 1, "%g bytes were read", t.checked);
}

int main(void) {
    struct stat said;
    CHECK_OK(tsr_world_open(&world));
    if (world.rank == 0) {
        scratch_make();
        make_matrix("a.h5", M, K);
        make_matrix("b.h5", K, N);
    }
    MPI_Bcast(scratch, (int)sizeof scratch, MPI_BYTE, 0, world.comm);
    char name[16];
    snprintf(name, sizeof name, "said%d", world.rank);
    const int terminal = dup(STDOUT_FILENO), to = open(in_scratch(name), O_RDWR | O_CREAT, 0600);
    CHECK(to >= 0 && dup2(to, STDOUT_FILENO) >= 0, "no file for what is said");
    test_runs();
    test_stop();
    fflush(stdout);
    CHECK(dup2(terminal, STDOUT_FILENO) >= 0, "dup2");
    CHECK(fstat(to, &said) == 0 && said.st_size == 0, "a run printed %lld bytes", (long long)said.st_size);
    MPI_Barrier(world.comm);
    if (world.rank == 0) scratch_remove();
    tsr_world_close(&world);
    return 0;
}
