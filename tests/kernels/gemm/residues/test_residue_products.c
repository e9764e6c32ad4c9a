/* Products of residues, levels of blocks and meetings, against plain loops, by whatever the device at hand takes for
 * them. One source for the host emulation of CUDA and for a GPU. */
#include "kernels/gemm/residues/winograd.h"
#include "tests/kernels/device/device_under_test.h"
#include "tests/kernels/gemm/residues/made_residues.h"

static const residue_case products_cases[] = {
    {.what = "one tile", .planes = 1, .m = 256, .n = 256, .k = 128, .wanted = 200},
    {.what = "one element", .planes = 2, .m = 1, .n = 1, .k = 1, .wanted = 200},
    {.what = "ragged", .planes = 2, .m = 300, .n = 270, .k = 300, .wanted = 200},
    {.what = "last lines of both", .planes = 2, .m = 513, .n = 288, .k = 200, .wanted = 60},
    {.what = "few are wanted", .planes = 2, .m = 900, .n = 600, .k = 100, .wanted = 10},
    {.what = "many are wanted", .planes = 1, .m = 300, .n = 600, .k = 130, .wanted = 70},
    {.what = "nobody wants any", .planes = 1, .m = 300, .n = 300, .k = 100, .wanted = 0},
    {.what = "largest", .planes = 2, .m = 20, .n = 20, .k = 4096, .wanted = 200, .largest = true},
    {.what = "largest, all planes",
     .planes = TSR_EXACT_MODULI_MOST,
     .m = 9,
     .n = 8,
     .k = 128,
     .wanted = 200,
     .largest = true},
#ifndef TSR_EMULATE_CUDA
    {.what = "largest of all, all planes",
     .planes = TSR_EXACT_MODULI_MOST,
     .m = 40,
     .n = 30,
     .k = TSR_EXACT_RANGE,
     .wanted = 200,
     .largest = true},
    {.what = "all planes", .planes = TSR_EXACT_MODULI_MOST, .m = 700, .n = 600, .k = 500, .wanted = 200},
    {.what = "many tiles a worker", .planes = 3, .m = 3000, .n = 2500, .k = 400, .wanted = 200},
    {.what = "many tiles and last lines", .planes = 3, .m = 2817, .n = 3104, .k = 400, .wanted = 200},
    {.what = "last lines, some wanted", .planes = 3, .m = 3090, .n = 2570, .k = 400, .wanted = 15},
    {.what = "last lines of B alone", .planes = 2, .m = 2000, .n = 8193, .k = 100, .wanted = 97},
    {.what = "many tiles a worker, some wanted", .planes = 3, .m = 3000, .n = 3500, .k = 400, .wanted = 15},
    {.what = "a list of thousands", .planes = 1, .m = 12000, .n = 9000, .k = 20, .wanted = 30},
    {.what = "largest of all", .planes = 2, .m = 300, .n = 300, .k = TSR_EXACT_RANGE, .wanted = 200, .largest = true},
    {.what = "all of k", .planes = 2, .m = 500, .n = 300, .k = TSR_EXACT_RANGE - 77, .wanted = 200},
#endif
};
static const residue_case level_cases[] = {
    MADE_LEVEL_CASES,
    {.what = "levels of tall tiles", .planes = 1, .m = 1000, .n = 130, .k = 200, .wanted = 0},
    {.what = "levels, largest", .planes = 1, .m = 140, .n = 10, .k = 2000, .wanted = 10, .largest = true},
#ifndef TSR_EMULATE_CUDA
    {.what = "levels of many tiles", .planes = 1, .m = 4000, .n = 3000, .k = 1000, .wanted = 10},
#endif
};

/* The operands on the device, and room for the list. */
static tsr_residue_args upload(const device_under_test *under, const made_residues *made) {
    tsr_residue_args args = made->args;
    args.a = test_upload(under, made->a, made->bytes_a);
    args.b = test_upload(under, made->b, made->bytes_b);
    if (args.blocks) args.blocks = test_upload(under, made->level, made->blocks * sizeof *made->level);
    CHECK_OK(under->ops->allocate(under->device, tsr_residue_workspace(args.m, args.n), &args.workspace));
    return args;
}
static void release(const device_under_test *under, const tsr_residue_args *args) {
    under->ops->release(under->device, (void *)args->a);
    under->ops->release(under->device, (void *)args->b);
    under->ops->release(under->device, (void *)args->blocks);
    under->ops->release(under->device, args->workspace);
}

static void check_products(const device_under_test *under, residue_case c) {
    made_residues made = make_residues(c, MADE_RESIDUES);
    const tsr_residue_args args = upload(under, &made);
    const size_t bytes = made.bytes_c + RESIDUE_GUARD;
    int8_t *result = made_room(bytes);
    memset(result, UNTOUCHED, bytes);
    int8_t *on_device = test_upload(under, result, bytes);
    CHECK_OK(tsr_residue_products(under->device, under->stream, &args, on_device));
    test_download(under, result, on_device, bytes);
    check_residues(&made, result);
    free(result);
    release(under, &args);
    free_residues(&made);
}

/* The same beside products of sums. */
static void check_sums_beside(const device_under_test *under, residue_case c) {
    made_residues made = make_residues(c, MADE_RESIDUES);
    made_sums host = make_sums(&made);
    tsr_residue_args args = upload(under, &made);
    int8_t *result = made_room(made.bytes_c + RESIDUE_GUARD);
    memset(result, UNTOUCHED, made.bytes_c + RESIDUE_GUARD);
    int8_t *on_device = test_upload(under, result, made.bytes_c + RESIDUE_GUARD);
    int8_t *of_a = test_upload(under, host.of_a, host.bytes), *of_b = test_upload(under, host.of_b, host.bytes);
    int8_t *columns = test_upload(under, host.columns, host.bytes_columns + RESIDUE_GUARD);
    int8_t *rows = test_upload(under, host.rows, host.bytes_rows + RESIDUE_GUARD);
    const tsr_residue_sums sums = {of_a, of_b, columns, rows, made_lines(&made, c.m), made_lines(&made, c.n)};
    args.sums = &sums;
    CHECK_OK(tsr_residue_products(under->device, under->stream, &args, on_device));
    test_download(under, result, on_device, made.bytes_c + RESIDUE_GUARD);
    test_download(under, host.columns, columns, host.bytes_columns + RESIDUE_GUARD);
    test_download(under, host.rows, rows, host.bytes_rows + RESIDUE_GUARD);
    check_residues(&made, result);
    CHECK(check_sums(&made, &host, host.columns, host.rows) > 0 || c.wanted < 100, "%s: no sums", c.what);
    under->ops->release(under->device, of_a);
    under->ops->release(under->device, of_b);
    free(result);
    free_sums(&host);
    release(under, &args);
    free_residues(&made);
}

/* ---- quarters -------------------------------------------------------------------------------- */

/* Planes and as many behind them, `apart` from the first; what is between and behind is UNTOUCHED. */
static int8_t *upload_twice(const device_under_test *under, const int8_t *from, size_t bytes, int planes, int apart) {
    const size_t all = bytes / (size_t)planes * (size_t)(apart + planes) + RESIDUE_GUARD;
    int8_t *host = made_room(all);
    memset(host, UNTOUCHED, all);
    if (from) memcpy(host, from, bytes);
    int8_t *on_device = test_upload(under, host, all);
    free(host);
    return on_device;
}

/* The first planes, of which the guard is whatever is behind them. */
static void download_planes(const device_under_test *under, int8_t *to, int8_t *from, size_t bytes) {
    CHECK_OK(under->ops->download(under->device, to, from, bytes, under->stream));
    CHECK_OK(under->ops->stream_wait(under->device, under->stream));
    memset(to + bytes, UNTOUCHED, RESIDUE_GUARD);
}

static void multiply_quarters(const device_under_test *under, const tsr_residue_args *whole, int8_t *c) {
    tsr_residue_sums sums;
    void *workspace;
    CHECK_OK(under->ops->allocate(under->device, tsr_winograd_workspace(whole->rows_a, whole->rows_b), &workspace));
    const tsr_residue_args quarters = tsr_winograd_quarters(whole, &sums, workspace);
    CHECK_OK(tsr_winograd_spread(under->stream, whole));
    CHECK_OK(tsr_residue_products(under->device, under->stream, &quarters, c));
    CHECK_OK(tsr_winograd_gather(under->stream, whole, c));
    CHECK_OK(under->ops->stream_wait(under->device, under->stream));
    under->ops->release(under->device, workspace);
}

/* Products of quarters, and those of sums, are those of the whole; where the condition says so. */
static void check_quarters(const device_under_test *under, residue_case c, bool sums_too) {
    c.quartered = true;
    c.wanted = 200;
    made_residues made = make_residues(c, MADE_RESIDUES);
    made_sums host = make_sums(&made);
    tsr_residue_args args = made.args;
    const unsigned words[] = {4, 2};
    unsigned *word = test_upload(under, words, sizeof words);
    int8_t *result = made_room(made.bytes_c + RESIDUE_GUARD);
    args.apart = c.planes + 1;
    int8_t *a = upload_twice(under, made.a, made.bytes_a, c.planes, args.apart);
    int8_t *b = upload_twice(under, made.b, made.bytes_b, c.planes, args.apart);
    int8_t *on_device = upload_twice(under, NULL, made.bytes_c, c.planes, args.apart);
    const tsr_residue_sums sums = {.of_a = upload_twice(under, host.of_a, host.bytes, c.planes, args.apart),
                                   .of_b = upload_twice(under, host.of_b, host.bytes, c.planes, args.apart),
                                   .columns = upload_twice(under, NULL, host.bytes_columns, c.planes, args.apart),
                                   .rows = upload_twice(under, NULL, host.bytes_rows, c.planes, args.apart),
                                   .lines_a = made_lines(&made, c.m),
                                   .lines_b = made_lines(&made, c.n)};
    args.a = a;
    args.b = b;
    args.sums = sums_too ? &sums : NULL;
    for (int differs = 0; differs < 2; differs++) {
        args.condition = (tsr_residue_condition){word + differs, 4, false}; /* the first word is 4 */
        multiply_quarters(under, &args, on_device);
        download_planes(under, result, on_device, made.bytes_c);
        for (size_t i = 0; differs == 0 && i < made.bytes_c; i++)
            CHECK(result[i] == UNTOUCHED, "%s: byte %zu was made, though nothing was wanted", c.what, i);
    }
    check_residues(&made, result);
    if (sums_too) {
        download_planes(under, host.columns, sums.columns, host.bytes_columns);
        download_planes(under, host.rows, sums.rows, host.bytes_rows);
        CHECK(check_sums(&made, &host, host.columns, host.rows) > 0, "%s: no sums", c.what);
    }
    void *const all[] = {a, b, on_device, (void *)sums.of_a, (void *)sums.of_b, sums.columns, sums.rows, word};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) under->ops->release(under->device, all[i]);
    free(result);
    free_sums(&host);
    free_residues(&made);
}

static void check_no_quarters(const device_under_test *under) {
    const tsr_residue_args right = {.planes = 2, .rows_a = 512, .rows_b = 512, .depth = 256, .apart = 2};
    for (int which = 0; which < 4; which++) {
        tsr_residue_args args = right;
        if (which == 0) args.apart = 1;
        if (which == 1) args.rows_a = 768;
        if (which == 2) args.rows_b = 256;
        if (which == 3) args.depth = 384;
        CHECK(tsr_winograd_spread(under->stream, &args) == TSR_ERR_SHAPE &&
                  tsr_winograd_gather(under->stream, &args, NULL) == TSR_ERR_SHAPE,
              "%d is refused", which);
    }
}

static const residue_case quarters_cases[] = {
    {.what = "one element, in quarters", .planes = 2, .m = 1, .n = 1, .k = 1, .wanted = 200},
    {.what = "quarters", .planes = 1, .m = 300, .n = 270, .k = 200, .wanted = 200},
    {.what = "an upper half alone", .planes = 2, .m = 100, .n = 500, .k = 300, .wanted = 200},
    {.what = "all planes in quarters", .planes = TSR_EXACT_MODULI_MOST, .m = 9, .n = 8, .k = 128, .wanted = 200},
    {.what = "largest, in quarters", .planes = 2, .m = 20, .n = 20, .k = 4096, .wanted = 200, .largest = true},
#ifndef TSR_EMULATE_CUDA
    {.what = "many tiles in quarters", .planes = 3, .m = 3000, .n = 2500, .k = 700, .wanted = 200},
    {.what = "large quarters",
     .planes = TSR_EXACT_MODULI_MOST,
     .m = 1400,
     .n = 700,
     .k = 1000,
     .wanted = 200,
     .largest = true},
    {.what = "all of k in quarters", .planes = 2, .m = 600, .n = 300, .k = TSR_EXACT_RANGE, .wanted = 200},
#endif
};

/* ---- levels and meetings --------------------------------------------------------------------- */

/* first: see tsr_residue_args. */
static void check_needed(const device_under_test *under, residue_case c, int64_t first, int *counts,
                         int few_counts[2]) {
    made_residues made = make_residues(c, MADE_MAGNITUDES);
    tsr_residue_args args = upload(under, &made);
    const size_t bytes = made.blocks * sizeof(unsigned);
    unsigned *needed = made_room(bytes);
    tsr_exact_few *few = made_room(made.blocks * sizeof *few);
    tsr_exact_few *few_on_device = test_upload(under, few, made.blocks * sizeof *few);
    unsigned *on_device = test_upload(under, made.level, bytes), *left = test_upload(under, made.left, made.left_bytes);
    tsr_exact_proof *rows = test_upload(under, made.rows, (size_t)c.m * sizeof *rows);
    tsr_exact_proof *columns = test_upload(under, made.columns, (size_t)c.n * sizeof *columns);
    const unsigned *blocks = args.blocks;
    args.blocks = NULL;
    args.first = first;
    const tsr_residue_levels_args levels = {rows, columns, made.allowed, on_device, left, few_on_device};
    CHECK_OK(tsr_residue_levels(under->device, under->stream, &args, &levels));
    test_download(under, needed, on_device, bytes);
    test_download(under, made.left, left, made.left_bytes);
    test_download(under, few, few_on_device, made.blocks * sizeof *few);
    check_levels(&made, NULL, (made_levels){needed, made.left, few}, counts, few_counts);
    args.blocks = blocks;
    under->ops->release(under->device, rows);
    under->ops->release(under->device, columns);
    free(needed);
    free(few);
    release(under, &args);
    free_residues(&made);
}

static void check_met(const device_under_test *under, residue_case c, int *counts) {
    made_residues made = make_residues(c, MADE_PATTERNS);
    const tsr_residue_args args = upload(under, &made);
    unsigned *result = made_room(made.left_bytes);
    make_left(&made);
    unsigned *left = test_upload(under, made.left, made.left_bytes);
    CHECK_OK(tsr_residue_meetings(under->device, under->stream, &args, left));
    test_download(under, result, left, made.left_bytes);
    check_meetings(&made, result, counts);
    free(result);
    release(under, &args);
    free_residues(&made);
}

static void check_refused(const device_under_test *under) {
    made_residues made = make_residues(products_cases[0], MADE_RESIDUES);
    const tsr_residue_sums many[] = {{.lines_a = TSR_EXACT_SUMS + 1}, {.lines_b = TSR_EXACT_SUMS + 1}};
    for (int which = 0; which < 9; which++) {
        tsr_residue_args args = made.args;
        if (which == 0) args.planes = 0;
        if (which == 1) args.planes = TSR_EXACT_MODULI_MOST + 1;
        if (which == 2) args.m = 257;
        if (which == 3) args.rows_b = 128;
        if (which == 4) args.k = 129;
        if (which == 5) args.k = 0;
        if (which >= 7) args.sums = &many[which - 7];
        if (which == 6) args.k = args.depth = TSR_EXACT_RANGE + TSR_EXACT_DEPTH;
        CHECK(tsr_residue_products(under->device, under->stream, &args, NULL) == TSR_ERR_SHAPE, "%d is refused", which);
    }
    free_residues(&made);
}

int main(void) {
    int counts[TSR_EXACT_LEVELS + 1] = {0}, few_counts[2] = {0};
    int met[3] = {0};
    device_under_test under = test_open();
    for (size_t i = 0; i < sizeof products_cases / sizeof *products_cases; i++) {
        check_products(&under, products_cases[i]);
        check_sums_beside(&under, products_cases[i]);
    }
    for (size_t i = 0; i < sizeof level_cases / sizeof *level_cases; i++)
        for (int eighths = 0; eighths <= 6; eighths += 3)
            check_needed(&under, level_cases[i], eighths * level_cases[i].k / 8, counts, few_counts);
    for (int level = 0; level <= TSR_EXACT_LEVELS; level++)
        CHECK(counts[level] > 0, "no block needs level %d: the cases do not try it", level);
    CHECK(few_counts[0] > 0 && few_counts[1] > 0, "the last level is needed by few of %d blocks, by many of %d",
          few_counts[1], few_counts[0]);
    for (size_t i = 0; i < sizeof level_cases / sizeof *level_cases; i++) check_met(&under, level_cases[i], met);
    CHECK(met[0] > 0 && met[1] > 0 && met[2] > 0, "the cases do not try all: %d, %d, %d", met[0], met[1], met[2]);
    for (size_t i = 0; i < sizeof quarters_cases / sizeof *quarters_cases; i++)
        for (int sums = 0; sums < 2; sums++) check_quarters(&under, quarters_cases[i], sums);
    check_refused(&under);
    check_no_quarters(&under);
    test_close(&under);
    return 0;
}
