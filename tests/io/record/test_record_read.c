/* What was written of a run is read back: from HDF5 and from JSON, with fields missing and fields unknown. */
#define _GNU_SOURCE
#include "io/record/record_read.h"

#include <math.h>

#include "io/hdf5/access/hdf5_attribute.h"
#include "io/hdf5/access/hdf5_library.h"
#include "io/hdf5/output/record_hdf5.h"
#include "tests/io/scratch.h"

#define RANKS 3

static tsr_rank_record ranks[RANKS];

/* Every field has a value of its own. */
static tsr_run_record sample(void) {
    double next = 1.25;
    for (int i = 0; i < RANKS; i++) {
        tsr_rank_record *r = &ranks[i];
        *r = (tsr_rank_record){.rank = i,
                               .row = i - 1,
                               .col = 2 * i,
                               .depth = 7 - i,
                               .tiles = (1LL << 60) + i,
                               .fallbacks = 5 + i,
                               .few = 3 + i,
                               .exact_blocks = {11 + i, 12 + i, 13 + i, 14 + i},
                               .exact_left = 15 + i,
                               .overflows = (1LL << 40) + i,
                               .cores = 16 + i,
                               .threads = 8 + i,
                               .io_threads = 4 + i};
        snprintf(r->host, sizeof r->host, "nod\xc3\xa9%d", i);
        snprintf(r->device, sizeof r->device, "A device #%d", i);
        double *reals[] = {&r->flops, &r->kernel_seconds, &r->wall_seconds, &r->host_peak_bytes, &r->device_bytes};
        for (size_t f = 0; f < sizeof reals / sizeof *reals; f++) *reals[f] = next++;
        for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
            r->lane_seconds[lane] = next++;
            r->lane_bytes[lane] = next++;
        }
        tsr_kernels_add(r->kernels, "simt", 0.75 * r->flops); /* not the chosen one */
        tsr_kernels_add(r->kernels, "split3", 0.25 * r->flops);
    }
    tsr_run_record run = {.command = "tessera multiply \"a b\" \\ \n\x01 \xc3\xa9 end",
                          .started = "2026-01-02T03:04:05Z",
                          .transpose_a = true,
                          .transpose_b = true,
                          .conjugate_a = true,
                          .conjugate_b = true,
                          .alpha = 1.5,
                          .beta = -2.5,
                          .alpha_imag = 0.5,
                          .beta_imag = -0.25,
                          .gram = true,
                          .triangle = TSR_TRIANGLE_LOWER,
                          .m = 1LL << 55,
                          .n = 4,
                          .k = 5,
                          .grid = {3, 4, 6},
                          .ranks = RANKS,
                          .super_blocks = {8, 9},
                          .panel = 11,
                          .kernel = "split3",
                          .accuracy = "ieee",
                          .input = "f16",
                          .type = "f32",
                          .transport = "nccl",
                          .schedule = "summa",
                          .io = "direct",
                          .versions = "tessera 0.1.0, HDF5",
                          .seconds = 12.5,
                          .redistribute_seconds = 0.25,
                          .redistribute_bytes = 3e6,
                          .setup_seconds = 0.75,
                          .gflops = 1e-300,
                          .check = "PASSED: 1",
                          .rank_records = ranks,
                          .warnings = "one\ntwo"};
    tsr_source_record *const sources[] = {&run.a, &run.b, &run.c0, &run.c};
    for (int i = 0; i < 4; i++) {
        snprintf(sources[i]->name, sizeof sources[i]->name, "dir/%d.h5:/M[0:1,2:3]", i);
        snprintf(sources[i]->type, sizeof sources[i]->type, "big-endian f%d", i);
        sources[i]->rows = 100 + i;
        sources[i]->cols = 200 + i;
    }
    for (int part = 0; part < TSR_STARTUP_COUNT; part++) run.startup_seconds[part] = next++;
    for (int lane = 0; lane < TSR_LANE_COUNT; lane++) {
        run.predicted_lane_seconds[lane] = next++;
        run.expected_rate[lane] = 1e9 * (double)(1 << lane);
    }
    run.predicted_seconds = next++;
    run.kernel_measured = true;
    run.planned_device_bytes = next++;
    run.planned_host_bytes = next++;
    return run;
}

/* The JSON of a record: all there is of it. */
static char *as_json(const tsr_run_record *run) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    CHECK_OK(tsr_record_write_json(run, to));
    fclose(to);
    return text;
}

static void same(const tsr_run_record *got, const tsr_run_record *want, const char *from) {
    char *a = as_json(got), *b = as_json(want);
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    CHECK(strcmp(a, b) == 0, "%s: read '%.60s' instead of '%.60s'", from, a + at, b + at);
    CHECK(got->ranks == want->ranks, "%s: %d ranks", from, got->ranks);
    free(a);
    free(b);
}

static void write_hdf5(const char *name, const tsr_run_record *run) {
    hid_t file = H5Fcreate(in_scratch(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(file >= 0, "cannot make %s", name);
    CHECK_OK(tsr_record_write_hdf5(run, file, "/C.run"));
    CHECK_OK(tsr_record_write_hdf5(run, file, "/deep/D.run"));
    CHECK(H5Fclose(file) >= 0, "close");
}

static void test_hdf5(void) {
    tsr_run_record run = sample();
    tsr_kept_record kept;
    write_hdf5("r.h5", &run);
    CHECK_OK(tsr_record_read_hdf5(in_scratch("r.h5"), "/C.run", &kept));
    same(&kept.run, &run, "HDF5");
    tsr_record_free(&kept);
    run.alpha = NAN;
    run.gflops = INFINITY;
    run.ranks = 0;
    run.warnings = NULL;
    write_hdf5("r.h5", &run);
    CHECK_OK(tsr_record_read_hdf5(in_scratch("r.h5"), "/deep/D.run", &kept));
    CHECK(isnan(kept.run.alpha) && isinf(kept.run.gflops) && kept.run.ranks == 0 && strcmp(kept.warnings, "") == 0,
          "%g %g", kept.run.alpha, kept.run.gflops);
    tsr_record_free(&kept);
    tsr_record_free(&kept);
}

static void test_json(void) {
    tsr_run_record run = sample();
    tsr_kept_record kept;
    char *text = as_json(&run);
    FILE *to = fopen(in_scratch("r.json"), "w");
    CHECK(to && fputs(text, to) >= 0 && fclose(to) == 0, "cannot write");
    free(text);
    CHECK_OK(tsr_record_read_json(in_scratch("r.json"), &kept));
    same(&kept.run, &run, "JSON");
    tsr_record_free(&kept);
    CHECK_FAILS(tsr_record_read_json(in_scratch("absent.json"), &kept), TSR_ERR_IO, "absent.json");
}

static void test_missing_and_unknown(void) {
    static const char *const left_out[] = {"setup_seconds", "a_type",      "warnings",
                                           "accuracy",      "transpose_a", "kernel_chosen"};
    tsr_run_record run = sample();
    tsr_kept_record kept;
    double extra = 3;
    write_hdf5("m.h5", &run);
    hid_t file = H5Fopen(in_scratch("m.h5"), H5F_ACC_RDWR, H5P_DEFAULT), group = H5Gopen2(file, "/C.run", H5P_DEFAULT);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        CHECK(H5Adelete(group, left_out[i]) >= 0, "%s", left_out[i]);
    CHECK_OK(tsr_h5_write_number(group, "from_the_future", H5T_NATIVE_DOUBLE, &extra));
    CHECK_OK(tsr_h5_write_text(group, "a_name_that_is_longer_than_all_of_our_own_names_are_and_will_be", "x"));
    CHECK_OK(tsr_h5_write_text(group, "m", "not a number"));
    /* a table of two columns, one of them unknown */
    struct row {
        int32_t rank;
        double unknown, wall_seconds;
    } rows[2] = {{0, 1, 2}, {1, 3, 4}};
    hsize_t count = 2;
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof *rows), space = H5Screate_simple(1, &count, NULL);
    H5Tinsert(type, "rank", offsetof(struct row, rank), H5T_NATIVE_INT32);
    H5Tinsert(type, "unknown", offsetof(struct row, unknown), H5T_NATIVE_DOUBLE);
    H5Tinsert(type, "wall_seconds", offsetof(struct row, wall_seconds), H5T_NATIVE_DOUBLE);
    CHECK(H5Ldelete(group, "ranks", H5P_DEFAULT) >= 0, "delete");
    hid_t table = H5Dcreate2(group, "ranks", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(table >= 0 && H5Dwrite(table, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0, "table");
    H5Dclose(table);
    H5Sclose(space);
    H5Tclose(type);
    H5Gclose(group);
    H5Fclose(file);
    CHECK_OK(tsr_record_read_hdf5(in_scratch("m.h5"), "/C.run", &kept));
    CHECK(kept.run.setup_seconds == 0 && !*kept.run.a.type && !*kept.run.accuracy && !kept.run.transpose_a &&
              kept.run.m == 0 && !*kept.warnings,
          "what is not there");
    CHECK(kept.run.transpose_b && kept.run.n == 4 && strcmp(kept.run.kernel, "simt") == 0, "what is there: %s",
          kept.run.kernel); /* as 0.1.0, which had no kernel_chosen */
    CHECK(kept.run.ranks == 2 && kept.ranks[1].wall_seconds == 4 && kept.ranks[1].flops == 0, "%d ranks",
          kept.run.ranks);
    tsr_record_free(&kept);
}

static int listed;
static void count(void *context, const char *path) {
    static const char *const expected[] = {"/C.run", "/deep/D.run"};
    (void)context;
    CHECK(listed < 2 && strcmp(path, expected[listed]) == 0, "'%s'", path);
    listed++;
}

static void test_which(void) {
    tsr_run_record run = sample();
    tsr_kept_record kept;
    write_hdf5("w.h5", &run);
    hid_t file = H5Fopen(in_scratch("w.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t empty = H5Gcreate2(file, "/empty.run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          other = H5Gcreate2(file, "/run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(empty);
    H5Gclose(other);
    H5Fclose(file);
    CHECK_OK(tsr_record_list_hdf5(in_scratch("w.h5"), count, NULL));
    CHECK(listed == 2, "%d records", listed);
    CHECK_FAILS(tsr_record_read_hdf5(in_scratch("w.h5"), "/empty.run", &kept), TSR_ERR_NOT_FOUND,
                "not the record of a run");
    CHECK_FAILS(tsr_record_read_hdf5(in_scratch("w.h5"), "/C.run/ranks", &kept), TSR_ERR_NOT_FOUND,
                "not the record of a run");
    CHECK_FAILS(tsr_record_read_hdf5(in_scratch("w.h5"), "/D.run", &kept), TSR_ERR_NOT_FOUND, "no '/D.run'");
}

/* What is JSON but no log, or a log that says less. */
static void test_other_json(void) {
    static const struct {
        const char *text;
        tsr_status status;
        const char *what;
    } cases[] = {{"{\"traceEvents\": []}", TSR_ERR_NOT_FOUND, "not the log"},
                 {"[{\"command\": 1, \"rank_count\": 2, \"seconds\": 3}]", TSR_ERR_NOT_FOUND, "not the log"},
                 {"{\"command\": \"x\", \"rank_count\": 1}", TSR_ERR_NOT_FOUND, "not the log"},
                 {"{\"command\": \"x\", \"rank_count\": 1, \"seconds\": 2, \"distribution\": \"normal\"}",
                  TSR_ERR_NOT_FOUND, "not the log"},
                 {"{\"command\": \"x\", \"rank_count\": 1, \"seconds\": 2, \"ranks\": [{\"rank\": 0}", TSR_ERR_FORMAT,
                  "line 1"}};
    tsr_kept_record kept;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *to = fopen(in_scratch("o.json"), "w");
        CHECK(to && fputs(cases[i].text, to) >= 0 && fclose(to) == 0, "cannot write");
        CHECK_FAILS(tsr_record_read_json(in_scratch("o.json"), &kept), cases[i].status, cases[i].what);
    }
    FILE *to = fopen(in_scratch("o.json"), "w");
    fputs("{\"status\": \"done\", \"command\": \"x\", \"rank_count\": 1, \"seconds\": null, \"new\": {\"m\": 3, "
          "\"list\": [1, [2]]}, \"transpose_a\": true, \"ranks\": [{\"rank\": 0, \"tiles\": 9, \"more\": {\"flops\": "
          "3}}, {}]}",
          to);
    fclose(to);
    CHECK_OK(tsr_record_read_json(in_scratch("o.json"), &kept));
    CHECK(isnan(kept.run.seconds) && kept.run.m == 0 && kept.run.transpose_a && kept.run.ranks == 2 &&
              kept.ranks[0].tiles == 9 && kept.ranks[0].flops == 0,
          "%g", kept.run.seconds);
    tsr_record_free(&kept);
}

int main(void) {
    scratch_make();
    tsr_h5_enter();
    tsr_h5_leave();
    test_hdf5();
    test_json();
    test_missing_and_unknown();
    test_which();
    test_other_json();
    scratch_remove();
    return 0;
}
