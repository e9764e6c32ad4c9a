/* Products of residues, alone and beside those of sums, levels of blocks and meetings, in the model of sm_90, against
 * plain loops. */
#include "kernels/gemm/residues/winograd.h"
#include "tests/kernels/gemm/hopper/residues_model.h"

/* Over memory that holds anything. */
static void launch_and_check(made_residues *made, const tsr_residue_args &args, const Aligned<int8_t> &result,
                             const Aligned<unsigned> &workspace, bool late) {
    memset(result.at, UNTOUCHED, result.bytes);
    memset(workspace.at, 0xff, workspace.bytes);
    next_launch(late);
    CHECK(tsr_residue_products_hopper(nullptr, &args, result.at) == TSR_OK, "%s, TSR_MODEL_SEED=%llu: %s", made->c.what,
          (unsigned long long)hopper_test::seed, tsr_message());
    check_residues(made, result.at);
}

static void check_products(const residue_case &c) {
    made_residues made = make_residues(c, MADE_RESIDUES);
    const Aligned<int8_t> a(made.a, made.bytes_a), b(made.b, made.bytes_b);
    const Aligned<int8_t> result(made.bytes_c + RESIDUE_GUARD);
    const Aligned<unsigned> workspace(tsr_residue_workspace(c.m, c.n));
    const tsr_residue_args args = on_device(made, a, b, workspace);
    for (const bool late : ways()) launch_and_check(&made, args, result, workspace, late);
    free_residues(&made);
}

/* The same beside products of sums, once. */
static void check_sums_beside(const residue_case &c, bool late) {
    made_residues made = make_residues(c, MADE_RESIDUES);
    made_sums host = make_sums(&made);
    const Aligned<int8_t> a(made.a, made.bytes_a), b(made.b, made.bytes_b);
    const Aligned<int8_t> of_a(host.of_a, host.bytes), of_b(host.of_b, host.bytes);
    const Aligned<int8_t> result(made.bytes_c + RESIDUE_GUARD);
    const Aligned<int8_t> columns(host.bytes_columns + RESIDUE_GUARD), rows(host.bytes_rows + RESIDUE_GUARD);
    const Aligned<unsigned> workspace(tsr_residue_workspace(c.m, c.n));
    const tsr_residue_sums sums = {
        of_a.at, of_b.at, columns.at, rows.at, made_lines(&made, c.m), made_lines(&made, c.n)};
    tsr_residue_args args = on_device(made, a, b, workspace);
    args.sums = &sums;
    memset(columns.at, UNTOUCHED, columns.bytes);
    memset(rows.at, UNTOUCHED, rows.bytes);
    launch_and_check(&made, args, result, workspace, late);
    CHECK(check_sums(&made, &host, columns.at, rows.at) > 0 || c.wanted < 100, "%s: no sums", c.what);
    free_sums(&host);
    free_residues(&made);
}

/* The check of `exact` as these products serve it: right ones agree, and what is wrong shows where it must. */
static void check_agreement() {
    enum Wrong { NOTHING, IN_A, IN_B, IN_SUMS_OF_A, IN_SUMS_OF_B, WRONGS };
    const residue_case c = {.what = "agreement", .planes = 2, .m = 140, .n = 150, .k = 130, .wanted = 200};
    for (int wrong = NOTHING; wrong < WRONGS; wrong++) {
        Product product(c);
        const tsr_residue_args &args = product.made.args;
        /* of the second plane, a bit of line 129, of sum 1, at element 128 of k */
        const Aligned<int8_t> *const flipped[WRONGS] = {nullptr, &product.a, &product.b, &product.of_a, &product.of_b};
        const int64_t lines[WRONGS] = {0, args.rows_a + 129, args.rows_b + 129, TSR_EXACT_SUMS + 1, TSR_EXACT_SUMS + 1};
        if (flipped[wrong]) flipped[wrong]->at[lines[wrong] * args.depth + 128] ^= 4;
        product.make(wrong % 2 != 0);
        const int in_columns = product.disagreeing_lines(true), in_rows = product.disagreeing_lines(false);
        CHECK((in_columns > 0) == (wrong == IN_A || wrong == IN_SUMS_OF_A) &&
                  (in_rows > 0) == (wrong == IN_B || wrong == IN_SUMS_OF_B),
              "wrong %d: %d columns and %d rows disagree", wrong, in_columns, in_rows);
    }
}

/* Products of quarters, with sums or without. */
static void check_quarters(residue_case c, bool sums_too) {
    c.quartered = true;
    c.wanted = 200;
    made_residues made = make_residues(c, MADE_RESIDUES);
    made_sums host = make_sums(&made);
    const int apart = c.planes + 1, all = apart + c.planes;
    const auto twice = [&c, all](size_t bytes) { return bytes / (size_t)c.planes * (size_t)all + RESIDUE_GUARD; };
    const Aligned<int8_t> a(twice(made.bytes_a)), b(twice(made.bytes_b)), result(twice(made.bytes_c));
    const Aligned<int8_t> of_a(twice(host.bytes)), of_b(twice(host.bytes));
    const Aligned<int8_t> columns(twice(host.bytes_columns)), rows(twice(host.bytes_rows));
    const Aligned<unsigned> workspace(tsr_winograd_workspace(made.args.rows_a, made.args.rows_b));
    for (const Aligned<int8_t> *one : {&a, &b, &result, &of_a, &of_b, &columns, &rows})
        memset(one->at, UNTOUCHED, one->bytes);
    memcpy(a.at, made.a, made.bytes_a);
    memcpy(b.at, made.b, made.bytes_b);
    memcpy(of_a.at, host.of_a, host.bytes);
    memcpy(of_b.at, host.of_b, host.bytes);
    memset(workspace.at, 0xff, workspace.bytes);
    const tsr_residue_sums sums = {of_a.at, of_b.at, columns.at, rows.at, TSR_EXACT_SUMS, TSR_EXACT_SUMS};
    tsr_residue_args whole = on_device(made, a, b, workspace);
    tsr_residue_sums sums_of_quarters;
    whole.apart = apart;
    whole.sums = sums_too ? &sums : nullptr;
    const tsr_residue_args quarters = tsr_winograd_quarters(&whole, &sums_of_quarters, workspace.at);
    CHECK(tsr_winograd_spread(nullptr, &whole) == TSR_OK, "%s", tsr_message());
    next_launch(sums_too);
    CHECK(tsr_residue_products_hopper(nullptr, &quarters, result.at) == TSR_OK, "%s, TSR_MODEL_SEED=%llu: %s", c.what,
          (unsigned long long)hopper_test::seed, tsr_message());
    CHECK(tsr_winograd_gather(nullptr, &whole, result.at) == TSR_OK, "%s", tsr_message());
    for (const Aligned<int8_t> *one : {&result, &columns, &rows}) {
        const size_t made_bytes = one == &result ? made.bytes_c : one == &rows ? host.bytes_rows : host.bytes_columns;
        memset(one->at + made_bytes, UNTOUCHED, RESIDUE_GUARD);
    }
    check_residues(&made, result.at);
    if (sums_too) CHECK(check_sums(&made, &host, columns.at, rows.at) > 0, "%s: no sums", c.what);
    free_sums(&host);
    free_residues(&made);
}

static residues::Levels::Work sure_work(int64_t k, double allowed) {
    residues::Levels::Work w;
    w.k = k;
    w.of.allowed = allowed;
    w.by_allowed = 1 / allowed;
    return w;
}

/* What fp32 says surely holds for an element holds by the rules. Sums near to the least one that holds, and lines whose
 * figures are at the ends of fp32's range. */
static void check_sure(int count) {
    int sure = 0, holding = 0;
    for (int i = 0; i < count; i++) {
        const auto below = [](int64_t limit) { return (int)(hopper_test::drawn(limit) - 1); };
        tsr_exact_proof line[2] = {};
        const bool wild = below(8) == 0;
        const int k = 1 + below(TSR_EXACT_RANGE);
        const residues::Levels::Work w = sure_work(k, tsr_exact_allowed(below(2) ? TSR_F64 : TSR_F32, k));
        for (tsr_exact_proof &one : line) {
            one.grain = below(14) - 4;
            one.unit = tsr_exact_power(one.grain);
            one.half = below(16) == 0 ? 0 : 0.5 * (1 + below(1 << 28));
            one.errors[1] = below(16) == 0 ? 0 : ldexp(1, wild ? below(400) - 250 : -below(60));
        }
        const double error = line[0].half * line[1].errors[1] + line[1].half * line[0].errors[1] +
                             0.25 * (double)w.k * line[0].errors[1] * line[1].errors[1];
        const double least = error / w.of.allowed / line[0].unit / line[1].unit;
        const int met = (int)fmin(1 << 28, floor(least) + below(4) - 1);
        const bool holds = tsr_exact_holds(line[0].half, line[0].errors[1], line[1].half, line[1].errors[1],
                                           line[0].unit * line[1].unit, w.k, w.of.allowed, met);
        const auto surely = [&](int own) {
            const residues::Levels::Bounds column = residues::Levels::bounds_of(w, line[1]);
            return residues::Levels::element_surely_holds(residues::Levels::row_bounds(w, line[0], 1), column.half,
                                                          column.error[1], own);
        };
        CHECK(holds || !surely(met), "a sum of %d surely holds where %.17g is the least", met, least);
        if (!(least > 1 && least < 1 << 27)) continue;
        holding++;
        sure += surely((int)(least * (1 + 1e-5)) + 1);
    }
    CHECK(holding > count / 20 && sure > holding - holding / 1000, "%d of %d sums that hold easily surely do", sure,
          holding);
}

static int level_counts[TSR_EXACT_LEVELS + 1], met_counts[3];
static int few_counts[2]; /* of blocks that need the last level: those of which many elements do, and of which few do */
static int sure_counts[2]; /* of a warp's elements of a block, at a level: not all are sure; all are */

/* Of the first such elements. */
static void count_sure(const made_residues &made) {
    const residues::Levels::Work w = sure_work(made.args.k, made.allowed);
    bool all[TSR_EXACT_LEVELS] = {true, true, true};
    for (int64_t row = 0; row < 16 && row < made.args.m; row++)
        for (int64_t col = 0; col < TSR_EXACT_BLOCK && col < made.args.n; col++) {
            const residues::Levels::Bounds column = residues::Levels::bounds_of(w, made.columns[col]);
            const int met = made_sum(&made, 0, row, col);
            for (int level = 0; level < TSR_EXACT_LEVELS; level++)
                all[level] &= residues::Levels::element_surely_holds(
                    residues::Levels::row_bounds(w, made.rows[row], level), column.half, column.error[level], met);
        }
    for (bool sure : all) sure_counts[sure]++;
}

/* By level: blocks that the first elements of k settled, and such that took all of k. */
static int early_counts[2][TSR_EXACT_LEVELS + 1];

/* first: see tsr_residue_args. all: of all blocks, else of half of them. */
static void check_needed(const residue_case &c, int64_t first, bool all) {
    made_residues made = make_residues(c, MADE_MAGNITUDES);
    const Aligned<int8_t> a(made.a, made.bytes_a), b(made.b, made.bytes_b);
    const Aligned<unsigned> needed(made.blocks * sizeof(unsigned)), left(made.left_bytes);
    const Aligned<tsr_exact_few> few(made.blocks * sizeof(tsr_exact_few));
    const Aligned<unsigned> workspace(tsr_residue_workspace(c.m, c.n));
    tsr_residue_args args = on_device(made, a, b, workspace);
    const Aligned<unsigned> asked(needed.bytes);
    for (size_t i = 0; i < made.blocks; i++) asked.at[i] = (unsigned)made_random(2);
    args.blocks = all ? nullptr : asked.at;
    args.wanted = 1;
    args.first = first;
    for (const bool late : ways()) {
        memcpy(needed.at, made.level, needed.bytes);
        memset(workspace.at, 0xff, workspace.bytes);
        memset(left.at, 0, left.bytes);
        memset(few.at, 0, few.bytes);
        next_launch(late);
        const tsr_residue_levels_args levels = {made.rows, made.columns, made.allowed, needed.at, left.at, few.at};
        CHECK(tsr_residue_levels_hopper(nullptr, &args, &levels) == TSR_OK, "%s, TSR_MODEL_SEED=%llu: %s", c.what,
              (unsigned long long)hopper_test::seed, tsr_message());
        check_levels(&made, args.blocks, {needed.at, left.at, few.at}, level_counts, few_counts);
        const int64_t across = args.rows_b / TSR_EXACT_BLOCK;
        int settled = 0, still_open = 0;
        for (int64_t row = 0; all && first > 0 && first < c.k && row < c.m; row += TSR_EXACT_BLOCK)
            for (int64_t col = 0; col < c.n; col += TSR_EXACT_BLOCK) {
                const int64_t at = row / TSR_EXACT_BLOCK * across + col / TSR_EXACT_BLOCK;
                const unsigned open = residues::early_places(&args).open[at];
                early_counts[open][needed.at[at]]++;
                (open ? still_open : settled)++;
                const bool is_known = c.n == 1 && c.k == 600 && first == 225;
                const bool is_open = c.rows == MADE_FEW ? at / across % 7 == 0 : at / across % 4 > 1;
                CHECK(!is_known || open == is_open, "%s: whether block %d is settled", c.what, (int)at);
            }
        CHECK(!c.apart || settled >= still_open, "%s: %d blocks are settled by the middle of k, %d not", c.what,
              settled, still_open);
    }
    count_sure(made);
    free_residues(&made);
}

static void check_met(const residue_case &c) {
    made_residues made = make_residues(c, MADE_PATTERNS);
    const Aligned<int8_t> a(made.a, made.bytes_a), b(made.b, made.bytes_b);
    const Aligned<unsigned> workspace(tsr_residue_workspace(c.m, c.n)), left(made.left_bytes);
    const tsr_residue_args args = on_device(made, a, b, workspace);
    make_left(&made);
    for (const bool late : ways()) {
        memcpy(left.at, made.left, left.bytes);
        next_launch(late);
        CHECK(tsr_residue_meetings_hopper(nullptr, &args, left.at) == TSR_OK, "%s, TSR_MODEL_SEED=%llu: %s", c.what,
              (unsigned long long)hopper_test::seed, tsr_message());
        check_meetings(&made, left.at, met_counts);
    }
    free_residues(&made);
}

/* Products and meetings whose lists were made in one launch. */
static void check_listed() {
    const residue_case c = {.what = "listed", .planes = 1, .m = 600, .n = 530, .k = 150, .wanted = 40};
    made_residues made = make_residues(c, MADE_PATTERNS);
    const Aligned<int8_t> a(made.a, made.bytes_a), b(made.b, made.bytes_b), result(made.bytes_c + RESIDUE_GUARD);
    const size_t room = tsr_residue_workspace(c.m, c.n);
    const Aligned<unsigned> workspaces[TSR_RESIDUE_LISTS] = {Aligned<unsigned>(room), Aligned<unsigned>(room),
                                                             Aligned<unsigned>(room)};
    tsr_residue_args args[TSR_RESIDUE_LISTS];
    for (int i = 0; i < TSR_RESIDUE_LISTS; i++) {
        args[i] = on_device(made, a, b, workspaces[i]);
        memset(workspaces[i].at, 0xff, room);
    }
    const tsr_residue_args *meetings = args + TSR_RESIDUE_LISTS - 1;
    next_launch(false);
    CHECK(tsr_residue_list_hopper(nullptr, args, meetings) == TSR_OK, "%s", tsr_message());
    for (tsr_residue_args &one : args) one.listed = true;
    for (const tsr_residue_args *one = args; one < meetings; one++) {
        memset(result.at, UNTOUCHED, result.bytes);
        next_launch(one > args);
        CHECK(tsr_residue_products_hopper(nullptr, one, result.at) == TSR_OK, "%s", tsr_message());
        check_residues(&made, result.at);
    }
    make_left(&made);
    const Aligned<unsigned> left(made.left, made.left_bytes);
    next_launch(true);
    CHECK(tsr_residue_meetings_hopper(nullptr, meetings, left.at) == TSR_OK, "%s", tsr_message());
    check_meetings(&made, left.at, met_counts);
    free_residues(&made);
}

static const residue_case products_cases[] = {
    {.what = "one tile", .planes = 1, .m = 256, .n = 256, .k = 128, .wanted = 200},
    {.what = "one element", .planes = 2, .m = 1, .n = 1, .k = 1, .wanted = 200},
    {.what = "one panel less than stages", .planes = 3, .m = 130, .n = 70, .k = 300, .wanted = 200},
    {.what = "as many panels as stages", .planes = 1, .m = 300, .n = 257, .k = 512, .wanted = 200},
    {.what = "one step of the last panel", .planes = 2, .m = 270, .n = 200, .k = 160, .wanted = 200},
    {.what = "an element more", .planes = 2, .m = 270, .n = 200, .k = 161, .wanted = 200},
    {.what = "tiles in all directions", .planes = 2, .m = 600, .n = 560, .k = 700, .wanted = 200},
    {.what = "all planes", .planes = TSR_EXACT_MODULI_MOST, .m = 100, .n = 100, .k = 200, .wanted = 200},
    {.what = "a band and more", .planes = 1, .m = 9 * 256 - 5, .n = 300, .k = 100, .wanted = 200},
    {.what = "nobody wants any", .planes = 2, .m = 600, .n = 600, .k = 300, .wanted = 0},
    {.what = "few are wanted", .planes = 2, .m = 1000, .n = 700, .k = 200, .wanted = 10},
    {.what = "many are wanted", .planes = 2, .m = 500, .n = 600, .k = 200, .wanted = 70},
    {.what = "a list of all", .planes = 1, .m = 9 * 256 - 100, .n = 256, .k = 130, .wanted = 100},
    {.what = "last lines of both", .planes = 2, .m = 520, .n = 780, .k = 130, .wanted = 200},
    {.what = "eight last lines of both", .planes = 2, .m = 264, .n = 520, .k = 170, .wanted = 200},
    {.what = "as many last lines as come beside", .planes = 2, .m = 288, .n = 544, .k = 300, .wanted = 200},
    {.what = "one more", .planes = 1, .m = 289, .n = 545, .k = 100, .wanted = 200},
    {.what = "last lines of A, few tiles", .planes = 3, .m = 270, .n = 200, .k = 140, .wanted = 200},
    {.what = "last lines of B, few tiles", .planes = 2, .m = 100, .n = 1025, .k = 140, .wanted = 100},
    {.what = "last lines that few want", .planes = 2, .m = 1040, .n = 790, .k = 100, .wanted = 10},
    {.what = "last lines that many want", .planes = 2, .m = 530, .n = 1041, .k = 100, .wanted = 70},
    {.what = "largest", .planes = 1, .m = 20, .n = 20, .k = TSR_EXACT_RANGE, .wanted = 200, .largest = true},
};
static const residue_case sums_cases[] = {
    {.what = "one tile, and one again for sums", .planes = 1, .m = 256, .n = 256, .k = 128, .wanted = 200},
    {.what = "sums of one element", .planes = 2, .m = 1, .n = 1, .k = 1, .wanted = 200},
    {.what = "sums, one panel less than stages", .planes = 3, .m = 130, .n = 70, .k = 300, .wanted = 200},
    {.what = "sums of all planes", .planes = TSR_EXACT_MODULI_MOST, .m = 100, .n = 100, .k = 100, .wanted = 200},
    {.what = "sums, one step of the last panel", .planes = 2, .m = 100, .n = 600, .k = 160, .wanted = 200},
    {.what = "sums, an element more", .planes = 2, .m = 100, .n = 600, .k = 161, .wanted = 200},
    {.what = "sums in some tiles of many", .planes = 2, .m = 1100, .n = 1300, .k = 130, .wanted = 200},
    {.what = "sums, many panels", .planes = 2, .m = 600, .n = 200, .k = 1100, .wanted = 200},
    {.what = "two chunks of 64 sums of A", .planes = 1, .m = 8300, .n = 20, .k = 20, .wanted = 30},
    {.what = "two chunks of 64 sums of B", .planes = 1, .m = 20, .n = 8400, .k = 20, .wanted = 200},
    {.what = "64 sums, whole panels", .planes = 2, .m = 270, .n = 4300, .k = 100, .wanted = 200},
    {.what = "64 sums and last lines", .planes = 1, .m = 4360, .n = 270, .k = 200, .wanted = 200},
    {.what = "64 sums and last lines that few want", .planes = 1, .m = 4360, .n = 530, .k = 100, .wanted = 5},
    {.what = "sums that nobody wants", .planes = 2, .m = 600, .n = 600, .k = 100, .wanted = 0},
    {.what = "sums that few want", .planes = 2, .m = 1400, .n = 1300, .k = 100, .wanted = 3},
    {.what = "sums that many want", .planes = 2, .m = 500, .n = 600, .k = 200, .wanted = 70},
    {.what = "sums and last lines", .planes = 2, .m = 1030, .n = 1290, .k = 130, .wanted = 200},
    {.what = "sums and last lines that few want", .planes = 2, .m = 1030, .n = 1290, .k = 100, .wanted = 5},
    {.what = "sums, last lines of B", .planes = 1, .m = 600, .n = 270, .k = 200, .wanted = 80},
    {.what = "sums, largest", .planes = 2, .m = 20, .n = 20, .k = 3000, .wanted = 200, .largest = true},
};
static const residue_case quarters_cases[] = {
    {.what = "quarters", .planes = 1, .m = 300, .n = 270, .k = 200, .wanted = 200},
    {.what = "an upper half alone", .planes = 2, .m = 100, .n = 500, .k = 300, .wanted = 200},
    {.what = "quarters of several tiles", .planes = 1, .m = 1100, .n = 600, .k = 500, .wanted = 200},
    {.what = "all planes in quarters", .planes = TSR_EXACT_MODULI_MOST, .m = 100, .n = 100, .k = 100, .wanted = 200},
};
static const residue_case level_cases[] = {
    MADE_LEVEL_CASES,
    {.what = "levels of tall tiles", .planes = 1, .m = 600, .n = 130, .k = 500, .wanted = 0},
    {.what = "levels, largest", .planes = 1, .m = 140, .n = 10, .k = 4000, .wanted = 10, .largest = true},
    {.what = "levels, sides of two tiles",
     .planes = 1,
     .m = 400,
     .n = 140,
     .k = 600,
     .wanted = 0,
     .quartered = true,
     .rows = MADE_ALIKE},
};

static void check_fixed() {
    for (const residue_case &c : products_cases) check_products(c);
    for (const residue_case &c : sums_cases) check_sums_beside(c, (&c - sums_cases) % 2 != 0);
    for (const residue_case &c : quarters_cases)
        for (int sums = 0; sums < 2; sums++) check_quarters(c, sums == 1);
    check_agreement();
    check_sure(300000);
    for (const residue_case &c : level_cases) {
        check_needed(c, 0, true);
        for (const bool all : {false, true}) check_needed(c, 3 * c.k / 8, all);
        check_met(c);
    }
    check_listed();
    for (int level = 0; level <= TSR_EXACT_LEVELS; level++)
        CHECK(level_counts[level] > 0, "no block needs level %d: the cases do not try it", level);
    for (int level = 0; level < TSR_EXACT_LEVELS; level++)
        CHECK(early_counts[0][level] > 0 && early_counts[1][level] > 0,
              "of blocks of level %d %d were settled early, and %d not", level, early_counts[0][level],
              early_counts[1][level]);
    CHECK(few_counts[0] > 0 && few_counts[1] > 0, "the last level is needed by few of %d blocks, by many of %d",
          few_counts[1], few_counts[0]);
    CHECK(early_counts[0][TSR_EXACT_LOOP] == 0, "no block is left to the loop early");
    CHECK(sure_counts[0] > 0 && sure_counts[1] > 0, "elements are sure %d times, %d times not", sure_counts[1],
          sure_counts[0]);
    CHECK(met_counts[0] > 0 && met_counts[1] > 0 && met_counts[2] > 0, "the cases do not try all: %d, %d, %d",
          met_counts[0], met_counts[1], met_counts[2]);
}

static void check_random() {
    using hopper_test::drawn;
    made_state = hopper_test::seed;
    residue_case c = {.what = "random", .planes = (int)drawn(4), .m = drawn(500), .n = drawn(500), .k = drawn(700)};
    c.wanted = (int)drawn(130);
    check_products(c);
    check_sums_beside(c, drawn(2) == 1);
    check_quarters(c, drawn(2) == 1);
    c.planes = 1;
    c.what = "levels, random";
    const made_rows kinds[] = {MADE_UNLIKE, MADE_UNLIKE, MADE_ALIKE, MADE_BUT_ONE, MADE_FEW};
    c.rows = kinds[drawn(5) - 1];
    check_needed(c, drawn(c.k), drawn(2) == 1);
    c.rows = MADE_UNLIKE;
    if (c.wanted > 100) c.wanted = 100;
    c.what = "meetings, random";
    check_met(c);
}

int main() {
    hopper_test::run(check_fixed, check_random);
    return 0;
}
