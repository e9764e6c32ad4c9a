/* libtessera as a stranger uses it: nothing but <tessera.h>, MPI, and the shared library. On any number of ranks.
 * With the arguments `abort FILE` it multiplies FILE, of which one rank cannot read its part. */
#define _GNU_SOURCE
#include "tests/app/library/tessera_check.h"

#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { M = 60, K = 40, N = 50 };

static int rank, ranks;
static char folder[200];
static tessera_context *tessera;

/* ---- files ----------------------------------------------------------------------------------- */

/* In one of eight buffers used in turn. */
static const char *in(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static double element(int i) { return i % 7 - 3; }

static void make(const char *name, int elements) {
    FILE *to = fopen(in(name), "wb");
    for (int i = 0; i < elements; i++) {
        const double value = element(i);
        fwrite(&value, sizeof value, 1, to);
    }
    CHECK(fclose(to) == 0, "%s", name);
}

/* What begins as HDF5 files do. */
static void make_signature(const char *name) {
    FILE *to = fopen(in(name), "wb");
    fputs("\211HDF\r\n\032\n", to);
    for (int i = 0; i < 1000; i++) fputc(0, to);
    CHECK(fclose(to) == 0, "%s", name);
}

static bool there(const char *name) { return access(in(name), F_OK) == 0; }

static void check_product(const char *name, double factor) {
    static double c[M * N];
    FILE *from = fopen(in(name), "rb");
    CHECK(from && fread(c, sizeof c, 1, from) == 1 && fgetc(from) == EOF, "%s", name);
    fclose(from);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int l = 0; l < K; l++) sum += element(i * K + l) * element(l * N + j);
            CHECK(c[i * N + j] == factor * sum, "C[%d, %d] = %g, not %g", i, j, c[i * N + j], factor * sum);
        }
}

static int multiply(tessera_context *t, const char *c, const tessera_multiply_options *options,
                    tessera_record **record) {
    char a[600], b[600], to[600];
    snprintf(a, sizeof a, "%s:f64:%dx%d", in("a.bin"), M, K);
    snprintf(b, sizeof b, "%s:f64:%dx%d", in("b.bin"), K, N);
    snprintf(to, sizeof to, "%s:f64", in(c));
    return tessera_multiply(t, a, b, to, options, record);
}

static void remove_everywhere(const char *name) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(in(name));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_product(void) {
    tessera_record *record = NULL;
    double number = 0;
    CHECK_OK(multiply(tessera, "c.bin", NULL, &record));
    check_product("c.bin", 1);
    CHECK_OK(tessera_record_number(record, "n", &number));
    CHECK(number == N, "%g", number);
    CHECK_OK(tessera_record_number(record, "rank_count", &number));
    CHECK(number == ranks, "%g", number);
    CHECK_OK(tessera_record_number(record, "seconds", &number));
    CHECK(number > 0 && number < 60, "%g", number);
    CHECK_FAILS(tessera_record_number(record, "secs", &number), TESSERA_ERR_NOT_FOUND, "'secs'");
    CHECK(tessera_record_json(record)[0] == '{' &&
              strstr(tessera_record_json(record), "\"command\": \"tessera multiply"),
          "%s", tessera_record_json(record));
    CHECK(tessera_record_warnings(record)[0] == '\0', "%s", tessera_record_warnings(record));
    tessera_record_free(record);
    /* again, in the same process; C exists by now */
    CHECK_FAILS(multiply(tessera, "c.bin", NULL, &record), TESSERA_ERR_EXISTS, "c.bin");
    CHECK(!record, "a record of a failure");
    tessera_multiply_options options = tessera_multiply_defaults();
    options.force = 1;
    options.alpha[0] = -2;
    options.trials = 5;
    options.report = in("absent/run.html");
    CHECK_FAILS(multiply(tessera, "c.bin", &options, NULL), TESSERA_ERR_IO, "cannot write the report");
    options.report = options.log = in("log.json");
    CHECK_FAILS(multiply(tessera, "c.bin", &options, NULL), TESSERA_ERR_USAGE, "--report");
    check_product("c.bin", 1);
    options.log = in("log.json");
    options.trace = in("trace.json");
    options.report = in("run.html");
    CHECK_OK(multiply(tessera, "c.bin", &options, &record));
    check_product("c.bin", -2);
    CHECK(strstr(tessera_record_json(record), "\"check\": \"PASSED"), "%s", tessera_record_json(record));
    CHECK(there("log.json") && there("trace.json") && there("run.html"), "no log, no trace, no page");
    tessera_record_free(record);
    remove_everywhere("c.bin");
}

static void test_plan(void) {
    char a[600], *text = NULL;
    snprintf(a, sizeof a, "%s:f64:%dx%d", in("a.bin"), M, K);
    tessera_multiply_options options = tessera_multiply_defaults();
    options.gram = 1;
    CHECK_OK(tessera_plan(tessera, a, NULL, in("c.h5"), &options, &text));
    CHECK((rank == 0) == (text != NULL) && !there("c.h5"), "%s", text ? text : "none");
    CHECK(!text || strstr(text, "kernel "), "%s", text);
    tessera_free(text);
}

static void test_refusals(void) {
    char a[600];
    snprintf(a, sizeof a, "%s:f64:%dx%d", in("a.bin"), M, K);
    CHECK_FAILS(tessera_multiply(tessera, a, a, in("c.h5"), NULL, NULL), TESSERA_ERR_SHAPE, "a.bin");
    CHECK_FAILS(tessera_multiply(tessera, in("absent.h5"), a, in("c.h5"), NULL, NULL), TESSERA_ERR_NOT_FOUND, "absent");
    CHECK_FAILS(tessera_multiply(tessera, a, NULL, in("c.h5"), NULL, NULL), TESSERA_ERR_USAGE, "two matrices");
    CHECK_FAILS(tessera_multiply(tessera, a, a, NULL, NULL, NULL), TESSERA_ERR_USAGE, "where the product goes");
    CHECK_FAILS(tessera_multiply(NULL, a, a, a, NULL, NULL), TESSERA_ERR_USAGE, "no context");
    static const struct {
        const char *words;
        tessera_multiply_options options;
    } wrong[] = {{"its size is 0", {.size = 0}},
                 {"unknown --device 'tpu'", {.size = sizeof wrong[0].options, .device = "tpu"}},
                 {"--threads -1", {.size = sizeof wrong[0].options, .threads = -1}},
                 {"--trials 65", {.size = sizeof wrong[0].options, .trials = 65}},
                 {"--io-threads 33", {.size = sizeof wrong[0].options, .io_threads = 33}},
                 {"--panel -4", {.size = sizeof wrong[0].options, .panel = -4}},
                 {"--grid '2y2'", {.size = sizeof wrong[0].options, .grid = "2y2"}},
                 {"--memory '0'", {.size = sizeof wrong[0].options, .memory = "0"}},
                 {"--force is 2", {.size = sizeof wrong[0].options, .force = 2}},
                 {"--stall-timeout -1", {.size = sizeof wrong[0].options, .has_stall = 1, .stall_seconds = -1}},
                 {"--triangle half", {.size = sizeof wrong[0].options, .triangle = "half"}},
                 {"give that with --add", {.size = sizeof wrong[0].options, .has_beta = 1, .beta = {1, 0}}},
                 {"--log -", {.size = sizeof wrong[0].options, .log = "-"}},
                 {"--shuffle saves nothing", {.size = sizeof wrong[0].options, .shuffle = 1}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FAILS(multiply(tessera, "c.bin", &wrong[i].options, NULL), TESSERA_ERR_USAGE, wrong[i].words);
    CHECK(!there("c.bin") && !there("c.h5"), "a refused call wrote C");
}

/* Structs of another size: of an older header, and of newer ones. */
static void test_sizes(void) {
    struct {
        tessera_multiply_options options;
        char more[16];
    } newer = {tessera_multiply_defaults(), {0}};
    newer.options.size = sizeof newer;
    newer.options.force = 1;
    CHECK_OK(multiply(tessera, "c.bin", &newer.options, NULL));
    newer.more[3] = 1;
    CHECK_FAILS(multiply(tessera, "c.bin", &newer.options, NULL), TESSERA_ERR_UNSUPPORTED, "install a newer one");
    tessera_multiply_options older = tessera_multiply_defaults();
    older.size = offsetof(tessera_multiply_options, device);
    older.force = 1;
    older.device = "nobody reads this";
    CHECK_OK(multiply(tessera, "c.bin", &older, NULL));
    remove_everywhere("c.bin");
}

/* ---- progress and cancel --------------------------------------------------------------------- */

typedef struct {
    int calls, cancels_at;
    bool multiplied;
    pthread_t thread;
} seen;

static int progress(void *context, const tessera_progress *at) {
    seen *s = context;
    CHECK(at->size == sizeof *at && at->stage && at->unit && at->done <= at->total + 1 && at->seconds >= 0, "progress");
    CHECK(pthread_equal(pthread_self(), s->thread), "another thread");
    if (strcmp(at->stage, "multiply") == 0 && at->total > 0) s->multiplied = true;
    return s->cancels_at && ++s->calls >= s->cancels_at;
}

/* Takes two seconds and more, unless it is cancelled by one rank, the last. */
static void test_cancel(void) {
    enum { EDGE = 1000 };
    char x[600];
    seen s = {.thread = pthread_self(), .cancels_at = rank == ranks - 1 ? 3 : 0};
    if (rank == 0) make("x.bin", EDGE * EDGE);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(x, sizeof x, "%s:f64:%dx%d", in("x.bin"), EDGE, EDGE);
    tessera_multiply_options options = tessera_multiply_defaults();
    options.kernel = "reference";
    options.panel = 8;
    options.progress = progress;
    options.progress_context = &s;
    const double start = MPI_Wtime();
    CHECK_FAILS(tessera_multiply(tessera, x, x, in("c.h5"), &options, NULL), TESSERA_ERR_STOPPED, "cancelled");
    const double seconds = MPI_Wtime() - start;
    CHECK(!there("c.h5") && s.multiplied, "C is there, or nothing was multiplied");
    CHECK(seconds < 2, "%g s until it stopped", seconds);
    s = (seen){.thread = pthread_self()};
    options.panel = 0;
    options.kernel = NULL;
    CHECK_OK(multiply(tessera, "c.bin", &options, NULL)); /* nothing is left of it */
    tessera_cancel(tessera);                              /* nothing is under way */
    options.force = 1;
    CHECK_OK(multiply(tessera, "c.bin", &options, NULL));
    remove_everywhere("c.bin");
}

/* On rank 0: the unfinished r.bin, opened and locked as by another job; -1 elsewhere. */
static int hold_unfinished(void) {
    int held = -1;
    glob_t found;
    if (rank == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        CHECK(glob(in(".r.bin.tessera-*.tmp"), 0, NULL, &found) == 0 && found.gl_pathc == 1, "no unfinished file");
        held = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
        CHECK(held >= 0 && fcntl(held, F_OFD_SETLK, &lock) == 0, "%s is locked", found.gl_pathv[0]);
        globfree(&found);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return held;
}

static bool same(const char *one, const char *other) {
    FILE *files[2] = {fopen(in(one), "rb"), fopen(in(other), "rb")};
    int a, b;
    CHECK(files[0] && files[1], "%s, %s", one, other);
    do {
        a = fgetc(files[0]);
        b = fgetc(files[1]);
    } while (a == b && a != EOF);
    fclose(files[0]);
    fclose(files[1]);
    return a == b;
}

/* What one call leaves unfinished the next one ends, and a third finds C whole. A second job is refused meanwhile: one
 * that holds the lock of the unfinished file stands for it. After test_cancel, which makes x.bin. */
static void test_resume(void) {
    enum { EDGE = 1000 };
    char x[600], out[600], whole[600];
    tessera_record *record = NULL;
    seen s = {.thread = pthread_self(), .cancels_at = rank == ranks - 1 ? 3 : 0};
    tessera_multiply_options options = tessera_multiply_defaults();
    snprintf(x, sizeof x, "%s:f64:%dx%d", in("x.bin"), EDGE, EDGE);
    snprintf(out, sizeof out, "%s:f64", in("r.bin"));
    snprintf(whole, sizeof whole, "%s:f64", in("whole.bin"));
    options.resume = 1;
    options.kernel = "reference";
    options.panel = 8;
    options.progress = progress;
    options.progress_context = &s;
    CHECK_FAILS(tessera_multiply(tessera, x, x, out, &options, NULL), TESSERA_ERR_STOPPED, "of C is kept");
    CHECK(!there("r.bin") && s.multiplied, "C is there, or nothing was multiplied");
    options.progress = NULL;
    options.alpha[0] = 3;
    CHECK_FAILS(tessera_multiply(tessera, x, x, out, &options, &record), TESSERA_ERR_EXISTS, "alpha");
    options.alpha[0] = 1;
    const int held = hold_unfinished();
    CHECK_FAILS(tessera_multiply(tessera, x, x, out, &options, &record), TESSERA_ERR_EXISTS, "another job");
    if (held >= 0) close(held);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(tessera_multiply(tessera, x, x, out, &options, &record));
    CHECK(record && there("r.bin"), "no record, or no C");
    tessera_record_free(record);
    CHECK_OK(tessera_multiply(tessera, x, x, out, &options, &record));
    CHECK(!record, "a record of a call that did nothing");
    options = tessera_multiply_defaults();
    CHECK_OK(tessera_multiply(tessera, x, x, whole, &options, NULL));
    if (rank == 0) CHECK(same("r.bin", "whole.bin"), "C is another one");
    remove_everywhere("r.bin");
    remove_everywhere("whole.bin");
}

/* ---- other communicators --------------------------------------------------------------------- */

static void test_parts(void) {
    MPI_Comm part;
    tessera_context *t;
    char name[32];
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    CHECK_OK(tessera_open_fortran(MPI_Comm_c2f(part), NULL, &t));
    snprintf(name, sizeof name, "part%d.bin", rank % 2);
    CHECK_OK(multiply(t, name, NULL, NULL));
    check_product(name, 1);
    tessera_close(t);
    MPI_Comm_free(&part);
    CHECK_OK(tessera_open(MPI_COMM_SELF, NULL, &t));
    snprintf(name, sizeof name, "self%d.bin", rank);
    CHECK_OK(multiply(t, name, NULL, NULL));
    check_product(name, 1);
    tessera_close(t);
    tessera_close(NULL);
    CHECK_FAILS(tessera_open(MPI_COMM_NULL, NULL, &t), TESSERA_ERR_USAGE, "MPI_COMM_NULL");
    CHECK(!t, "a context of no ranks");
    tessera_open_options options = {.size = sizeof options, .describe = in("absent-describe")};
    CHECK_OK(tessera_open(MPI_COMM_WORLD, &options, &t));
    CHECK_FAILS(tessera_multiply(t, in("d.h5"), in("d.h5"), in("c.h5"), NULL, NULL), TESSERA_ERR_IO, "absent-describe");
    tessera_close(t);
}

/* ---- what a call must leave alone ------------------------------------------------------------ */

typedef struct {
    struct sigaction actions[32];
    sigset_t mask;
    cpu_set_t cores;
    MPI_Errhandler handlers[2];
    char *variable;
} process_state;

static process_state look(void) {
    process_state p;
    memset(&p, 0, sizeof p);
    for (int s = 1; s < 32; s++) sigaction(s, NULL, &p.actions[s]);
    pthread_sigmask(SIG_BLOCK, NULL, &p.mask);
    sched_getaffinity(0, sizeof p.cores, &p.cores);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &p.handlers[0]);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &p.handlers[1]);
    p.variable = getenv("OPENBLAS_NUM_THREADS");
    return p;
}

static void compare(const process_state *a, const process_state *b) {
    for (int s = 1; s < 32; s++)
        CHECK(a->actions[s].sa_handler == b->actions[s].sa_handler && a->actions[s].sa_flags == b->actions[s].sa_flags,
              "signal %d", s);
    CHECK(memcmp(&a->mask, &b->mask, sizeof a->mask) == 0, "blocked signals");
    CHECK(CPU_EQUAL(&a->cores, &b->cores), "cores");
    CHECK(a->handlers[0] == b->handlers[0] && a->handlers[1] == b->handlers[1], "error handlers");
    CHECK((a->variable == NULL) == (b->variable == NULL), "environment");
}

/* ---- a rank that fails alone ------------------------------------------------------------------ */

static void aborted(void *context, int exit_code, const char *message) {
    printf("%s: rank %d: %d, %s\n", (const char *)context, rank, exit_code, message);
    fflush(stdout);
    sleep(1);
    _exit(42);
}

static int run_abort(const char *file, bool own) {
    tessera_open_options options = {
        .size = sizeof options, .abort_job = own ? aborted : NULL, .abort_context = "aborted"};
    CHECK_OK(tessera_open(MPI_COMM_WORLD, &options, &tessera));
    tessera_multiply_options how = tessera_multiply_defaults();
    char c[600];
    snprintf(c, sizeof c, "%s.c.h5", file);
    how.grid = "1x2";
    const int status = tessera_multiply(tessera, file, file, c, &how, NULL);
    fprintf(stderr, "returned %d\n", status);
    return 0;
}

int main(int argc, char **argv) {
    int provided;
    tessera_context *none;
    CHECK_FAILS(tessera_open(MPI_COMM_WORLD, NULL, &none), TESSERA_ERR_MPI, "MPI has not started");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 3) return run_abort(argv[2], strcmp(argv[1], "abort") == 0);
    snprintf(folder, sizeof folder, "/tmp/tessera-test-XXXXXX");
    if (rank == 0) CHECK(mkdtemp(folder), "%s", folder);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        make("a.bin", M * K);
        make("b.bin", K * N);
        make_signature("d.h5");
    }
    char name[16];
    snprintf(name, sizeof name, "said%d", rank);
    const int kept[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    const int to = open(in(name), O_RDWR | O_CREAT, 0600);
    const process_state before = look();
    CHECK(to >= 0 && dup2(to, STDOUT_FILENO) >= 0, "no file for what is said");
    if (!getenv("TSR_TEST_SHOW")) dup2(to, STDERR_FILENO);
    CHECK_OK(tessera_open(MPI_COMM_WORLD, NULL, &tessera));
    test_product();
    test_plan();
    test_refusals();
    test_sizes();
    test_cancel();
    test_resume();
    test_parts();
    tessera_close(tessera);
    const process_state after = look();
    compare(&before, &after);
    struct stat said;
    fflush(NULL);
    dup2(kept[0], STDOUT_FILENO);
    dup2(kept[1], STDERR_FILENO);
    CHECK(fstat(to, &said) == 0 && said.st_size == 0, "%lld bytes were printed", (long long)said.st_size);
    CHECK(strcmp(tessera_version(), TSR_TEST_VERSION) == 0, "%s", tessera_version());
    MPI_Barrier(MPI_COMM_WORLD);
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (rank == 0) CHECK(system(command) == 0, "%s", command);
    MPI_Finalize();
    return 0;
}
