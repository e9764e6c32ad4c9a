/* The run's record as JSON and as lines: complete, valid, aligned, within 80 columns; saved whole or not at all. */
#define _GNU_SOURCE
#include "io/record/run_record.h"
#include "io/text/text.h"

#include <math.h>

#include "tests/io/scratch.h"

static tsr_rank_record ranks[2];

static tsr_run_record sample(void) {
    for (int i = 0; i < 2; i++) {
        ranks[i] = (tsr_rank_record){.rank = i,
                                     .row = i ? -1 : 0,
                                     .col = i ? -1 : 0,
                                     .depth = i ? -1 : 0,
                                     .tiles = 7,
                                     .flops = 3e9,
                                     .kernel_seconds = 1.5,
                                     .wall_seconds = 3,
                                     .overflows = 2 + i};
        snprintf(ranks[i].host, sizeof ranks[i].host, "node%d", i);
        snprintf(ranks[i].health, sizeof ranks[i].health, "%s", i ? "doubtful: hot" : "good: cool");
        snprintf(ranks[i].device, sizeof ranks[i].device, "%s", i ? "CPU with a long name" : "CPU");
        ranks[i].lane_seconds[TSR_LANE_READ] = 2;
        ranks[i].lane_bytes[TSR_LANE_READ] = 5e9;
    }
    tsr_run_record run = {.command = "tessera multiply \"a b\" \\ \n\x01 \xc3\xa9 \xff end",
                          .started = "2026-01-02T03:04:05Z",
                          .alpha = 1.5,
                          .beta = NAN,
                          .m = 3,
                          .n = 4,
                          .k = 5,
                          .products = 1,
                          .teams = 1,
                          .grid = {1, 1, 1},
                          .ranks = 2,
                          .super_blocks = {1, 2},
                          .panel = 5,
                          .kernel = "blas",
                          .type = "f32",
                          .transport = "host",
                          .schedule = "summa",
                          .io = "direct",
                          .versions = "tessera",
                          .seconds = 2,
                          .gflops = INFINITY,
                          .check = "not run",
                          .product_check = "PASSED: 1",
                          .rank_records = ranks,
                          .warnings = "one\ntwo"};
    run.setup_seconds = 0.75;
    run.startup_seconds[TSR_STARTUP_MPI] = 0.5;
    run.startup_seconds[TSR_STARTUP_PLAN] = 0.25;
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
    expect(text, "{\n  \"format\": 2,\n  \"command\": \"tessera multiply \\\"a b\\\" \\\\ \\u000a\\u0001 \xc3\xa9 "
                 "\\ufffd end\",");
    expect(text, "\"beta\": null,");
    expect(text, "\"gflops\": null,");
    expect(text, "\"alpha\": 1.5,");
    expect(text, "\"a\": \"a.h5:/A\",\n  \"a_rows\": 3,");
    expect(text, "\"rank_count\": 2,");
    expect(text, "\"read_GBps\": 2.5,");
    expect(text, "\"kernel_gflops\": 2,");
    expect(text, "\"setup_seconds\": 0.75,\n  \"setup_mpi_seconds\": 0.5,\n  \"setup_device_seconds\": 0,");
    expect(text, "\"limit_seconds\": 2,\n  \"limit_share\": 1,\n  \"limit_rank\": 0,\n  \"limit_lane\": \"read\",\n  "
                 "\"slowest_rank\": 0,\n  \"slowest_lane\": \"read\",");
    expect(text, "\"gflops\": 1,");
    expect(text, "\"check\": \"not run\",\n  \"check_seconds\": 0,\n  \"product_check\": \"PASSED: 1\",\n  "
                 "\"warnings\": \"one\\u000atwo\",\n"
                 "  \"overflows\": 5");
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

/* The text of one of the two printers; free it. */
static char *printed(const tsr_run_record *run, const char *log, bool ranks_too) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    if (ranks_too) tsr_record_print_ranks(run, to);
    else tsr_record_print(run, log, to);
    fclose(to);
    CHECK(bytes > 0 && text[bytes - 1] == '\n', "ends without a newline: %s", text);
    return text;
}

/* Characters of the line that begins at `line`. */
static int columns(const char *line) {
    int count = 0;
    for (; *line && *line != '\n'; line++) count += ((unsigned char)*line & 0xc0) != 0x80;
    return count;
}

/* No line is wider than 80 columns but those that hold nothing but `name` or `log`. */
static void check_width(const char *text, const char *name, const char *log) {
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t bytes = strcspn(line, "\n");
        const bool file = (bytes == strlen(name) && strncmp(line, name, bytes) == 0) ||
                          (bytes == strlen(log) && strncmp(line, log, bytes) == 0);
        CHECK(file || columns(line) <= 80, "%d columns: %.*s", columns(line), (int)bytes, line);
        CHECK(bytes == 0 || line[bytes - 1] != ' ', "ends with a space: '%.*s'", (int)bytes, line);
    }
}

/* Values as wide as they come: every lane busy for days, devices and types with long names. */
static tsr_run_record wide(tsr_rank_record *many, int count) {
    tsr_run_record run = sample();
    for (int i = 0; i < count; i++) {
        many[i] = (tsr_rank_record){
            .rank = i, .row = i / 64, .col = i % 64, .tiles = 123456789 + i, .fallbacks = 12345678, .flops = 9.87e17};
        snprintf(many[i].host, sizeof many[i].host, "a-host-with-a-long-name-%d.cluster.example.org", i);
        snprintf(many[i].device, sizeof many[i].device,
                 "NVIDIA H200 with a name that fills the room there is for it #%d (0000:18:00.0)", i);
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
            many[i].lane_seconds[lane] = 123456.7 + i * lane;
            many[i].lane_bytes[lane] = 9.9e18;
        }
    }
    run.rank_records = many;
    run.ranks = count;
    run.grid[0] = count;
    run.seconds = 234567.891;
    run.gflops = 1.23456e7;
    run.setup_seconds = 12345.678;
    run.m = run.n = run.k = 1000000000000;
    run.alpha = -1.234567e-101;
    run.beta = -9.87654e101;
    run.transpose_a = run.transpose_b = true;
    for (int part = 0; part < TSR_STARTUP_COUNT; part++) run.startup_seconds[part] = 12345.678;
    snprintf(run.c0.name, sizeof run.c0.name, "c0.h5:/C0");
    snprintf(run.a.type, sizeof run.a.type, "f64 big-endian and more of it");
    run.b = run.c = run.a;
    snprintf(run.c0.type, sizeof run.c0.type, "%s", run.a.type);
    snprintf(
        run.check, sizeof run.check,
        "PASSED: every row within its rounding bound (largest |r|/bound 0.00239, largest bound 3.71); a larger error "
        "passes with probability at most 9.54e-07; 1234567 of 1234567890 rows hold NaN or Inf and were checked only "
        "for where these are");
    return run;
}

static void test_widths(void) {
    static const int counts[] = {1, 2, 3, 4096};
    tsr_rank_record *many = calloc(4096, sizeof *many);
    CHECK(many, "no memory");
    for (int i = 0; i < 4; i++) {
        tsr_run_record run = wide(many, counts[i]);
        for (int chars = 1; chars <= 200; chars += chars < 60 || chars > 90 ? 20 : 1) {
            char log[256] = "";
            for (int c = 0; c < chars; c++) {
                const bool space = c % 10 == 4 && c + 1 < chars; /* spaces in a path are its own */
                strcat(log, space ? " " : c == 7 ? "\xc3\xa9" : "x");
            }
            snprintf(run.c.name, sizeof run.c.name, "%s:/C", log);
            char *text = printed(&run, log, false);
            check_width(text, run.c.name, log);
            expect(text, run.c.name);
            expect(text, log);
            for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
                char start[40];
                snprintf(start, sizeof start, "\n%s  ", tsr_lane_name((tsr_lane)lane));
                expect(text, start);
            }
            free(text);
        }
    }
    free(many);
}

static void test_print(void) {
    tsr_run_record run = sample();
    snprintf(run.c.name, sizeof run.c.name, "c.h5:/C");
    snprintf(run.c.type, sizeof run.c.type, "f32");
    run.alpha = 0.5;
    run.transpose_b = true;
    run.gflops = 1234.5;
    run.check[0] = 0;
    snprintf(run.check, sizeof run.check, "not run");
    snprintf(run.accuracy, sizeof run.accuracy, "ieee");
    ranks[0].lane_seconds[TSR_LANE_MULTIPLY] = 1.5;
    char *text = printed(&run, "run.json", false);
    expect(text, "product     C = 0.5 A B^T, 3 x 4 x 5 (m x n x k), A , C f32\n");
    expect(text, "on          2 ranks (1 idle), grid 1 x 1 x 1, several kinds of devices\n");
    expect(text, "kernel      blas (ieee), sums in f32\n");
    expect(text, "GPU health  of 1 rank doubtful: hot: rank 1, node1\n");
    expect(text, "read            2.000      0       2.000       100 %  2.5 GB/s\n");
    expect(text, "multiply        1.500      0       1.500        75 %  2 GFLOP/s\n");
    expect(text, "write               -\n");
    expect(text, "bottleneck  read of rank 0, busy for 100 % of the run: reading A and B\n");
    CHECK(!strstr(text, "slowest"), "one active rank cannot be behind others: %s", text);
    expect(text, "start-up    0.750 s: mpi 0.500, device 0.000, transport 0.000, plan 0.250,\n"
                 "            allocation 0.000, files 0.000\n");
    expect(text, "check       not run\nC           c.h5:/C\nlog         run.json\n"
                 "time        2.000 s, 1.234 TFLOP/s, 100 % of the limit\n");
    check_width(text, "", "");
    free(text);
    run.seconds = 8;
    run.gflops = 0.5;
    ranks[1] = ranks[0];
    ranks[1].rank = 1;
    ranks[1].fallbacks = 3;
    ranks[1].lane_seconds[TSR_LANE_WRITE] = 1;
    text = printed(&run, NULL, false);
    expect(text, "GPU health  good: cool\n");
    expect(text, "bottleneck  read of rank 0, busy for 25 % of the run: lanes waited for others\n");
    expect(text, "slowest     write of rank 1, 1.000 s: 0.500 above the mean of all ranks\n");
    expect(text, "            3 of 14 products have values that blas cannot hold\n");
    expect(text, "time        8.000 s, 0.5 GFLOP/s, 25 % of the limit\n");
    CHECK(!strstr(text, "\nlog"), "no log was written: %s", text);
    free(text);
}

/* What ran instead of what was chosen, and why. */
static void test_kernels(void) {
    tsr_run_record run = sample();
    tsr_kernel_share shares[TSR_KERNELS_RAN] = {0}, back[TSR_KERNELS_RAN];
    char text[TSR_KERNELS_CHARS];
    CHECK(strcmp(tsr_kernels_format(shares, text), "") == 0, "nothing ran: %s", text);
    tsr_kernels_add(shares, "tiled", 1);
    tsr_kernels_add(shares, "split3", 4);
    tsr_kernels_add(shares, "tiled", 1);
    tsr_kernels_move(shares, "split3", "simt", 3);
    tsr_kernels_move(shares, "split3", "simt", 0);
    CHECK(strcmp(tsr_kernels_format(shares, text), "simt 0.5, tiled 0.3333, split3 0.1667") == 0, "%s", text);
    tsr_kernels_parse(text, 6, back);
    for (int i = 0; i < TSR_KERNELS_RAN; i++)
        CHECK(strcmp(back[i].name, shares[i].name) == 0 && fabs(back[i].flops - shares[i].flops) < 1e-3, "%d: %s %g", i,
              back[i].name, back[i].flops);
    tsr_kernels_move(shares, "split3", "simt", 1);
    CHECK(strcmp(tsr_kernels_format(shares, text), "simt 0.6667, tiled 0.3333") == 0, "%s", text);
    memset(shares, 0, sizeof shares);
    tsr_kernels_add(shares, "split3", 0.1);
    tsr_kernels_add(shares, "split3", 0.2);
    tsr_kernels_move(shares, "split3", "simt", 0.3);
    CHECK(strcmp(tsr_kernels_format(shares, text), "simt 1") == 0, "a residue of rounding: %s", text);
    tsr_kernels_add(shares, "split3", 1e-3);
    tsr_kernels_move(shares, "split3", "simt", 1e-3 * (1 - 1e-6));
    CHECK(strstr(tsr_kernels_format(shares, text), "split3"), "what is left is more than rounding: %s", text);
    tsr_kernels_parse("", 1, back);
    CHECK(!back[0].name[0] && back[0].flops == 0, "nothing is %s", back[0].name);

    snprintf(run.accuracy, sizeof run.accuracy, "ieee");
    snprintf(run.kernel, sizeof run.kernel, "split3");
    for (int i = 0; i < run.ranks; i++) {
        memset(ranks[i].kernels, 0, sizeof ranks[i].kernels);
        ranks[i].fallbacks = ranks[i].few = 0;
    }
    tsr_kernels_add(ranks[0].kernels, "split3", 3e9);
    tsr_kernels_add(ranks[1].kernels, "split3", 3e9);
    char *printed_text = printed(&run, NULL, false);
    expect(printed_text, "kernel      split3 (ieee)");
    free(printed_text);
    tsr_kernels_move(ranks[1].kernels, "split3", "simt", 3e9);
    printed_text = printed(&run, NULL, false);
    expect(printed_text, "kernel      split3 50 %, simt 50 % (ieee)");
    expect(printed_text, "split3 was chosen, and leaves small and thin products to others\n");
    free(printed_text);
    ranks[1].fallbacks = ranks[1].few = 5;
    ranks[0].fallbacks = 2;
    printed_text = printed(&run, NULL, false);
    expect(printed_text, "5 of 14 products have sums of few elements (sparse, banded), not for\n            split3\n");
    expect(printed_text, "            2 of 14 products have values that split3 cannot hold\n");
    CHECK(!strstr(printed_text, "small and thin"), "another reason was found: %s", printed_text);
    check_width(printed_text, "", "");
    free(printed_text);
    snprintf(run.kernel, sizeof run.kernel, "exact");
    printed_text = printed(&run, NULL, false);
    expect(printed_text, "            2 of 14 products have values that exact is slow for\n");
    check_width(printed_text, "", "");
    free(printed_text);
}

/* Numbers of a damaged record are cut where they do not fit. */
static void test_damaged(void) {
    tsr_run_record run = sample();
    for (int part = 0; part < TSR_STARTUP_COUNT; part++) run.startup_seconds[part] = 1e300;
    run.setup_seconds = run.alpha = run.beta = run.seconds = run.gflops = -1e300;
    run.m = run.n = run.k = INT64_MIN;
    tsr_source_record *const sources[] = {&run.a, &run.b, &run.c0, &run.c};
    for (int i = 0; i < 4; i++) {
        memset(sources[i]->name, 'n', sizeof sources[i]->name - 1);
        memset(sources[i]->type, 't', sizeof sources[i]->type - 1);
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < TSR_KERNELS_RAN; k++) {
            memset(ranks[i].kernels[k].name, 'a' + k, sizeof ranks[i].kernels[k].name - 1);
            ranks[i].kernels[k].flops = 1e300;
        }
    char *text = printed(&run, NULL, false);
    expect(text, "\nstart-up    -1");
    char type[sizeof run.c.type + 2] = " ";
    memset(type + 1, 't', sizeof run.c.type - 1);
    type[sizeof run.c.type] = '\n';
    expect(text, type);
    free(text);
}

/* As tsr_text_print prints it; the caller frees it. */
static char *wrapped(const char *first, int indent, const char *words) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    tsr_text_print(to, first, indent, words);
    fclose(to);
    return text;
}

/* Blanks stay but where a line is broken; a word that is too long has its line; columns are characters. */
static void test_wrapping(void) {
    char word[82], expected[300];
    memset(word, 'w', sizeof word - 1);
    word[81] = '\0';
    snprintf(expected, sizeof expected, "x  y\n  %s\n  z\n", word);
    char *text = wrapped("", 2, "x  y   ");
    CHECK(strcmp(text, "x  y\n") == 0, "'%s'", text);
    free(text);
    char words[200];
    snprintf(words, sizeof words, "x  y %s z", word);
    text = wrapped("", 2, words);
    CHECK(strcmp(text, expected) == 0, "'%s'", text);
    free(text);
    snprintf(words, sizeof words, "%.70s \u00b7\u00b7 last", word); /* 4 + 70 + 1 + 2 columns */
    snprintf(expected, sizeof expected, "say %.70s \u00b7\u00b7\n    last\n", word);
    text = wrapped("say ", 4, words);
    CHECK(strcmp(text, expected) == 0, "'%s'", text);
    free(text);
    text = wrapped("label ", 6, "");
    CHECK(strcmp(text, "label \n") == 0, "'%s'", text);
    free(text);
}

static void test_text(void) {
    char text[8] = "ab";
    tsr_text_append(text, sizeof text, "%d", 12);
    CHECK(strcmp(text, "ab12") == 0, "'%s'", text);
    for (int i = 0; i < 3; i++) {
        tsr_text_append(text, sizeof text, "%s", "xyzuvw");
        CHECK(strcmp(text, "ab12xyz") == 0, "'%s'", text);
    }
    CHECK(strcmp(tsr_text_skip_blanks("   a b"), "a b") == 0 && *tsr_text_skip_blanks("  ") == '\0', "blanks");
}

static void test_table(void) {
    tsr_run_record run = sample();
    char *text = printed(&run, NULL, true);
    char *line[3] = {text};
    for (int i = 1; i < 3; i++) {
        line[i] = strchr(line[i - 1], '\n') + 1;
        line[i][-1] = '\0';
    }
    line[2][strcspn(line[2], "\n")] = '\0';
    CHECK(strlen(line[0]) == strlen(line[1]) && strlen(line[1]) == strlen(line[2]),
          "lines differ in length:\n%s\n%s\n%s", line[0], line[1], line[2]);
    expect(line[0], "rank");
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) expect(line[0], tsr_lane_name((tsr_lane)lane));
    expect(line[1], "CPU");
    expect(line[2], "idle");
    free(text);
}

static void check_bounds(const tsr_run_record *run, int limit_rank, const char *limit_lane, double share,
                         int slowest_rank, const char *slowest_lane, double behind) {
    const tsr_run_bounds got = tsr_record_bounds(run);
    CHECK(got.limit_rank == limit_rank && strcmp(got.limit_lane, limit_lane) == 0, "bound by the %s lane of rank %d",
          got.limit_lane, got.limit_rank);
    CHECK(fabs(got.limit_share - share) < 1e-12, "share %g", got.limit_share);
    CHECK(got.slowest_rank == slowest_rank && strcmp(got.slowest_lane, slowest_lane) == 0,
          "slowest is the %s lane of rank %d", got.slowest_lane, got.slowest_rank);
    CHECK(fabs(got.behind_seconds - behind) < 1e-12, "%g s behind", got.behind_seconds);
}

/* The busiest lane of all bounds the run; the straggler is the one furthest from its peers, whatever it waits for in
 * exchange. */
static void test_bounds(void) {
    tsr_rank_record three[3] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
    tsr_run_record run = {.ranks = 3, .seconds = 8, .rank_records = three};
    check_bounds(&run, -1, "none", 0, -1, "none", 0);
    for (int i = 0; i < 3; i++) {
        three[i].lane_seconds[TSR_LANE_MULTIPLY] = 6;
        three[i].lane_seconds[TSR_LANE_READ] = 1;
    }
    check_bounds(&run, 0, "multiply", 0.75, 0, "multiply", 0);
    three[1].lane_seconds[TSR_LANE_WRITE] = 3; /* mean 1 */
    three[2].lane_seconds[TSR_LANE_EXCHANGE] = 7;
    check_bounds(&run, 0, "multiply", 0.75, 1, "write", 2); /* rank 2 waited for the others */
    three[0].lane_seconds[TSR_LANE_EXCHANGE] = 6.5;
    three[1].lane_seconds[TSR_LANE_EXCHANGE] = 7.5;
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
    test_print();
    test_widths();
    test_kernels();
    test_damaged();
    test_text();
    test_wrapping();
    test_table();
    test_bounds();
    return 0;
}
