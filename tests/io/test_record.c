/* The run's record as JSON and as lines: complete, valid, aligned; saved whole or not at all. */
#define _GNU_SOURCE
#include "io/run_record.h"

#include <math.h>

#include "tests/io/scratch.h"

static tsr_rank_record ranks[2];

static tsr_run_record sample(void) {
    for (int i = 0; i < 2; i++) {
        ranks[i] = (tsr_rank_record){.rank = i, .row = i ? -1 : 0, .col = i ? -1 : 0, .depth = i ? -1 : 0, .tiles = 7, .flops = 3e9, .kernel_seconds = 1.5,
                                     .wall_seconds = 3};
        snprintf(ranks[i].host, sizeof ranks[i].host, "node%d", i);
        snprintf(ranks[i].device, sizeof ranks[i].device, "%s", i ? "CPU with a long name" : "CPU");
        ranks[i].lane_seconds[TSR_LANE_READ] = 2;
        ranks[i].lane_bytes[TSR_LANE_READ] = 5e9;
    }
    tsr_run_record run = {.command = "tessera multiply \"a b\" \\ \n\x01 \xc3\xa9 \xff end", .started = "2026-01-02T03:04:05Z", .alpha = 1.5, .beta = NAN, .m = 3,
                          .n = 4, .k = 5, .grid = {1, 1, 1}, .ranks = 2, .super_blocks = {1, 2}, .panel = 5, .kernel = "blas", .type = "f32",
                          .transport = "host", .io = "direct", .versions = "tessera", .seconds = 2, .gflops = INFINITY, .check = "not run",
                          .rank_records = ranks, .warnings = "one\ntwo"};
    run.setup_seconds = 0.75;
    run.startup_seconds[TSR_STARTUP_MPI] = 0.5, run.startup_seconds[TSR_STARTUP_PLAN] = 0.25;
    snprintf(run.a.name, sizeof run.a.name, "a.h5:/A");
    run.a.rows = 3;
    return run;
}

static void expect(const char *text, const char *part) { CHECK(strstr(text, part), "'%s' is not in: %s", part, text); }

static void test_json(void) {
    tsr_run_record run = sample();
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    CHECK_OK(tsr_record_write_json(&run, to));
    fclose(to);
    expect(text, "{\n  \"command\": \"tessera multiply \\\"a b\\\" \\\\ \\u000a\\u0001 \xc3\xa9 \\ufffd end\",");
    expect(text, "\"beta\": null,");
    expect(text, "\"gflops\": null,");
    expect(text, "\"alpha\": 1.5,");
    expect(text, "\"a\": \"a.h5:/A\",\n  \"a_rows\": 3,");
    expect(text, "\"rank_count\": 2,");
    expect(text, "\"read_GBps\": 2.5,");
    expect(text, "\"kernel_gflops\": 2,");
    expect(text, "\"setup_seconds\": 0.75,\n  \"setup_mpi_seconds\": 0.5,\n  \"setup_device_seconds\": 0,");
    expect(text, "\"limit_seconds\": 2,\n  \"limit_share\": 1,\n  \"limit_rank\": 0,\n  \"limit_lane\": \"read\",\n  \"slowest_rank\": 0,\n  \"slowest_lane\": \"read\",");
    expect(text, "\"gflops\": 1,");
    expect(text, "\"check\": \"not run\",\n  \"warnings\": \"one\\u000atwo\"");
    CHECK(!strstr(text, "\"c0\""), "C0 was not used");
    CHECK(strcmp(text + bytes - 7, "\n  ]\n}\n") == 0, "ends with '%s'", text + bytes - 7);
    free(text);
    run.ranks = 0;
    to = open_memstream(&text, &bytes);
    CHECK_OK(tsr_record_write_json(&run, to));
    fclose(to);
    expect(text, "\"ranks\": []\n}\n");
    free(text);
}

static void test_failing_stream(void) {
    tsr_run_record run = sample();
    FILE *full = fopen("/dev/full", "w");
    if (!full) return;
    CHECK_FAILS(tsr_record_write_json(&run, full), TSR_ERR_IO, "No space left");
    fclose(full);
}

static void test_save(void) {
    tsr_run_record run = sample();
    size_t bytes;
    scratch_make();
    CHECK_OK(tsr_record_save_json(&run, in_scratch("log.json")));
    char *text = slurp(in_scratch("log.json"), &bytes);
    expect(text, "\"kernel\": \"blas\"");
    free(text);
    CHECK(count_ending(scratch, ".tmp") == 0, "a temporary file is left");
    CHECK_FAILS(tsr_record_save_json(&run, in_scratch("missing/log.json")), TSR_ERR_IO, "cannot write the log");
    CHECK_OK(tsr_record_save_json(&run, "/dev/null"));
    CHECK_FAILS(tsr_record_save_json(&run, "/dev/full"), TSR_ERR_SPACE, "No space left");
    scratch_remove();
}

static void test_print(void) {
    tsr_run_record run = sample();
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    tsr_record_print(&run, to);
    fclose(to);
    char *line[6] = {text};
    for (int i = 1; i < 6; i++) {
        line[i] = strchr(line[i - 1], '\n') + 1;
        line[i][-1] = '\0';
    }
    CHECK(strlen(line[0]) == strlen(line[1]) && strlen(line[1]) == strlen(line[2]), "lines differ in length:\n%s\n%s\n%s", line[0], line[1], line[2]);
    expect(line[0], "rank");
    expect(line[1], "CPU");
    expect(line[2], "idle");
    expect(line[3], "start-up 0.750 s: mpi 0.500, device 0.000, transport 0.000, plan 0.250, allocation 0.000, files 0.000");
    expect(line[4], "limit 2.000 s, measured 2.000 s: bound by the read lane of rank 0, busy 100% of the run");
    CHECK(!strstr(line[4], "slowest"), "one active rank cannot be behind others: %s", line[4]);
    expect(line[5], "3x4x5");
    expect(line[5], "check not run");
    free(text);
}

static void check_bounds(const tsr_run_record *run, int limit_rank, const char *limit_lane, double share, int slowest_rank, const char *slowest_lane, double behind) {
    const tsr_run_bounds got = tsr_record_bounds(run);
    CHECK(got.limit_rank == limit_rank && strcmp(got.limit_lane, limit_lane) == 0, "bound by the %s lane of rank %d", got.limit_lane, got.limit_rank);
    CHECK(fabs(got.limit_share - share) < 1e-12, "share %g", got.limit_share);
    CHECK(got.slowest_rank == slowest_rank && strcmp(got.slowest_lane, slowest_lane) == 0, "slowest is the %s lane of rank %d", got.slowest_lane, got.slowest_rank);
    CHECK(fabs(got.behind_seconds - behind) < 1e-12, "%g s behind", got.behind_seconds);
}

/* The busiest lane of all bounds the run; the straggler is the one furthest from its peers, whatever it waits for in exchange. */
static void test_bounds(void) {
    tsr_rank_record three[3] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
    tsr_run_record run = {.ranks = 3, .seconds = 8, .rank_records = three};
    check_bounds(&run, -1, "none", 0, -1, "none", 0);
    for (int i = 0; i < 3; i++) three[i].lane_seconds[TSR_LANE_MULTIPLY] = 6, three[i].lane_seconds[TSR_LANE_READ] = 1;
    check_bounds(&run, 0, "multiply", 0.75, 0, "multiply", 0);
    three[1].lane_seconds[TSR_LANE_WRITE] = 3; /* mean 1 */
    three[2].lane_seconds[TSR_LANE_EXCHANGE] = 7;
    check_bounds(&run, 0, "multiply", 0.75, 1, "write", 2); /* rank 2 waited for the others */
    three[0].lane_seconds[TSR_LANE_EXCHANGE] = 6.5, three[1].lane_seconds[TSR_LANE_EXCHANGE] = 7.5;
    check_bounds(&run, 0, "exchange", 0.8125, 1, "write", 2);
    three[0].lane_seconds[TSR_LANE_EXCHANGE] = three[1].lane_seconds[TSR_LANE_EXCHANGE] = 0;
    three[2].row = -1; /* idle: neither it nor its zeros count */
    check_bounds(&run, 0, "multiply", 0.75, 1, "write", 1.5);
    run.seconds = 0;
    check_bounds(&run, 0, "multiply", 0, 1, "write", 1.5);
}

int main(void) {
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) CHECK(tsr_lane_name((tsr_lane)lane)[0], "lane %d", lane);
    test_json();
    test_failing_stream();
    test_save();
    test_print();
    test_bounds();
    return 0;
}
