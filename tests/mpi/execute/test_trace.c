/* A trace's way into its file: more events than one message carries, from every rank, in order and whole; ranks
 * without events; and what happens when the file cannot be written. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "mpi/execute/trace/trace.h"
#include "tests/io/scratch.h"

#define STEPS 20000 /* more than two pieces */

static tsr_trace *make(int rank, int64_t room, int64_t steps) {
    tsr_trace *trace;
    CHECK_OK(tsr_trace_open(room, &trace));
    double start = tsr_now_seconds();
    tsr_trace_start(trace);
    for (int64_t i = 0; i < steps; i++) {
        tsr_step step = {.kind = i % 2 ? TSR_STEP_MULTIPLY : TSR_STEP_PACK,
                         .lane = i % 2 ? TSR_LANE_MULTIPLY : TSR_LANE_PACK,
                         .operand = TSR_OPERAND_B,
                         .lane_bytes = (double)(i + rank),
                         .flops = i % 2 ? 7 : 0};
        tsr_trace_step(trace, &step, NULL, start + 1 + 1e-3 * (double)i, start + 1 + 1e-3 * (double)(i + 1));
    }
    return trace;
}

static int64_t count(const char *text, const char *part) {
    int64_t found = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) found++;
    return found;
}

static void check_file(const char *file, int ranks, int idle) {
    char part[128];
    size_t bytes;
    char *text = slurp(file, &bytes);
    CHECK(text[0] == '{' && strcmp(text + bytes - 3, "]}\n") == 0, "the file does not end where it should");
    CHECK(count(text, "\"ph\": \"X\"") == (int64_t)STEPS * (ranks - idle), "%lld events",
          (long long)count(text, "\"ph\": \"X\""));
    CHECK(count(text, "\"process_name\"") == ranks && count(text, "\"thread_name\"") == TSR_LANE_COUNT * (ranks - idle),
          "names of ranks or lanes are missing");
    CHECK(count(text, "\"name\": \"pack B\"") == STEPS / 2 * (ranks - idle) &&
              count(text, "\"name\": \"multiply C\"") == STEPS / 2 * (ranks - idle),
          "kinds or operands differ");
    for (int rank = 0; rank < ranks - idle; rank++) { /* the last event came through with its rank's bytes */
        snprintf(part, sizeof part, "\"operand\": \"C\", \"bytes\": %d, \"flops\": 7}", STEPS - 1 + rank);
        CHECK(count(text, part) >= 1, "'%s' is missing", part);
        snprintf(part, sizeof part, "\"cat\": \"step\", \"pid\": %d, \"tid\": %d, \"ts\"", rank, TSR_LANE_MULTIPLY);
        CHECK(count(text, part) == STEPS / 2, "'%s': %lld", part, (long long)count(text, part));
    }
    free(text);
}

/* The same failure on every rank, nothing left, and an earlier file unharmed. */
static void check_refusals(const tsr_world *world, const tsr_trace *trace, const tsr_rank_record *records,
                           const char *file) {
    struct stat before = {0}, after = {0};
    bool first = world->rank == 0;
    char missing[600];
    snprintf(missing, sizeof missing, "%s/no/such/trace.json", scratch);
    CHECK_FAILS(tsr_trace_save(trace, world->comm, records, NULL, missing, "x"), TSR_ERR_IO,
                first ? "cannot write the trace" : "");
    CHECK_FAILS(tsr_trace_save(trace, world->comm, records, NULL, "/dev/full", "x"), TSR_ERR_SPACE,
                first ? "No space left" : "");
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    if (first) CHECK(stat(file, &before) == 0, "no trace '%s'", file);
    if (first) setrlimit(RLIMIT_FSIZE, &small);
    CHECK_FAILS(tsr_trace_save(trace, world->comm, records, NULL, file, "x"), TSR_ERR_SPACE,
                first ? "File too large" : "");
    setrlimit(RLIMIT_FSIZE, &limit);
    if (first)
        CHECK(stat(file, &after) == 0 && after.st_size == before.st_size && after.st_ino == before.st_ino,
              "the earlier trace changed");
    if (first) CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
    tsr_trace *small_one = make(world->rank, 1, 5);
    CHECK_FAILS(tsr_trace_save(small_one, world->comm, records, NULL, file, "x"), TSR_ERR_LIMIT,
                first ? "room for 2 events" : "");
    tsr_trace_close(small_one);
}

/* ---- the steps themselves, handed over ------------------------------------------------------- */

typedef struct {
    int ranks, idle, unwanted; /* the one whose steps are not wanted, -1: none */
    int64_t steps[8];
    double flops;
    bool fails;
} taker;

static tsr_status take_ranks(void *context, const tsr_rank_record *ranks, const tsr_trace_extent *extents, int count,
                             bool *wanted) {
    taker *t = context;
    char name[TSR_TRACE_RANK_CHARS];
    CHECK(count == t->ranks, "%d ranks", count);
    for (int i = 0; i < count; i++) {
        const bool idle = t->idle && i == count - 1;
        CHECK(strncmp(tsr_trace_rank_name(&ranks[i], name), "rank ", 5) == 0 && name[5] == '0' + i &&
                  (strstr(name, "idle") != NULL) == idle,
              "'%s'", name);
        CHECK(extents[i].steps[TSR_LANE_PACK] == (idle ? 0 : STEPS / 2) &&
                  extents[i].steps[TSR_LANE_MULTIPLY] == (idle ? 0 : STEPS / 2) &&
                  (extents[i].end_ns > 20000000000 || idle),
              "rank %d: %lld ns", i, (long long)extents[i].end_ns);
        wanted[i] = i != t->unwanted;
    }
    return t->fails ? tsr_fail(TSR_ERR_MEMORY, "no memory for a test") : TSR_OK;
}

static void take_step(void *context, const tsr_trace_line *line) {
    taker *t = context;
    const int64_t number = t->steps[line->rank]++;
    CHECK(line->bytes == (double)(number + line->rank) &&
              line->lane == (number % 2 ? TSR_LANE_MULTIPLY : TSR_LANE_PACK),
          "step %lld of rank %d: %g bytes", (long long)number, line->rank, line->bytes);
    t->flops += line->flops;
}

static void check_told(const tsr_world *world, const tsr_trace *trace, const tsr_rank_record *records, int idle) {
    for (int unwanted = -1; unwanted < world->ranks; unwanted++) {
        taker t = {.ranks = world->ranks, .idle = idle, .unwanted = unwanted};
        const tsr_trace_sink sink = {&t, take_ranks, take_step};
        CHECK_OK(tsr_trace_tell(trace, world->comm, records, &sink));
        for (int i = 0; i < world->ranks && world->rank == 0; i++)
            CHECK(t.steps[i] == (i == unwanted || (idle && i == world->ranks - 1) ? 0 : STEPS),
                  "without %d: %lld steps of %d", unwanted, (long long)t.steps[i], i);
    }
    taker t = {.ranks = world->ranks, .idle = idle, .unwanted = -1, .fails = true};
    const tsr_trace_sink sink = {&t, take_ranks, take_step};
    CHECK_FAILS(tsr_trace_tell(trace, world->comm, records, &sink), TSR_ERR_MEMORY,
                world->rank == 0 ? "for a test" : "");
    CHECK(t.steps[0] == 0, "steps came after a failure");
}

int main(void) {
    tsr_world world;
    CHECK_OK(tsr_world_open(&world));
    tsr_rank_record *records = calloc((size_t)world.ranks, sizeof *records);
    CHECK(records, "no memory");
    int idle = world.ranks > 2 ? 1 : 0; /* the last rank of three has nothing to tell */
    for (int i = 0; i < world.ranks; i++) {
        records[i].rank = i;
        records[i].row = idle && i == world.ranks - 1 ? -1 : i;
        snprintf(records[i].host, sizeof records[i].host, "a \"host\"");
    }
    tsr_trace *trace = records[world.rank].row < 0 ? NULL : make(world.rank, STEPS, STEPS);
    scratch_make();
    char file[600];
    snprintf(file, sizeof file, "%s/trace.json", scratch);
    CHECK_OK(tsr_trace_save(trace, world.comm, records, NULL, file, "tessera multiply \"a b\""));
    if (world.rank == 0) check_file(file, world.ranks, idle);
    check_refusals(&world, trace, records, file);
    check_told(&world, trace, records, idle);
    CHECK_FAILS(tsr_trace_open(INT64_MAX / 64, &trace), TSR_ERR_MEMORY, "--panel");
    CHECK(tsr_trace_bytes(1000000) >= 80e6, "an event takes 80 bytes");
    scratch_remove();
    free(records);
    tsr_world_close(&world);
    return 0;
}
