/* The check of products (kernels/check) with every kernel of one device, TSR_TEST_DEVICE: right products of many kinds
 * of data pass; products that are wrong in C, or were made of a wrong A or B, by a bit or more, do not. Each case is a
 * block of C made in launches: strips of rows, panels of k, or a batch. Exit code 77: there is no such device.
 * Usage: test_check [CASES [EDGE]]   of each kernel (100, in the emulation 2), with sides up to EDGE (96, 24). */
#include "tests/kernels/check/checked.h"

/* ---- cases ----------------------------------------------------------------------------------- */

static product random_product(const tsr_gemm_kernel *kernel, int64_t edge) {
    product p = {.kernel = kernel,
                 .kind = (data_kind)below(DATA_COUNT),
                 .m = 1 + below(edge),
                 .n = 1 + below(edge),
                 .k = 1 + below(edge),
                 .batch = 1};
    if (below(8) == 0) p.k *= 1 + below(12);
    p.m = tsr_round_up(p.m, kernel->multiple);
    p.n = tsr_round_up(p.n, kernel->multiple);
    p.k = tsr_round_up(p.k, kernel->multiple);
    p.panel = p.k;
    p.strip = p.m;
    if (below(4) == 0) {
        p.batch = 2 + below(4);
        p.common_b = below(2) == 0;
    } else {
        p.panel = tsr_round_up(tsr_ceil_div(p.k, 1 + below(3)), kernel->multiple);
        p.strip = tsr_round_up(tsr_ceil_div(p.m, 1 + below(2)), kernel->multiple);
    }
    return p;
}

/* The largest change of an element of C over its row's typical one; rows with a typical one of 0 do not count. */
static double largest_change(const matrix *c, const double *clean) {
    double largest = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        double squares = 0, change = 0;
        for (int64_t j = 0; j < c->cols; j++) {
            squares += clean[i * c->cols + j] * clean[i * c->cols + j];
            change = fmax(change, fabs(get(c, i * c->cols + j) - clean[i * c->cols + j]));
        }
        if (squares > 0) largest = fmax(largest, change / sqrt(squares / (double)c->cols));
    }
    return largest;
}

/* With one bit of it changed. */
static double flipped(const matrix *x, int64_t at) {
    const size_t bytes = tsr_dtype_bytes(x->type);
    const int64_t bit = below(8 * (int64_t)bytes);
    uint8_t element[8], *there = (uint8_t *)x->host + (size_t)at * bytes;
    memcpy(element, there, bytes);
    there[bit / 8] ^= (uint8_t)(1 << bit % 8);
    const double value = get(x, at);
    memcpy(there, element, bytes);
    return value;
}

static spoiling random_spoiling(const product *p, const block *x) {
    const int strips = (int)tsr_ceil_div(p->m, p->strip), panels = (int)tsr_ceil_div(p->k, p->panel);
    spoiling s = {.what = "ABC"[below(3)], .launch = (int)below(strips * panels)};
    const int64_t row0 = s.launch % strips * p->strip, l0 = s.launch / strips * p->panel;
    const int64_t row = row0 + below(tsr_min(p->strip, p->m - row0)), l = l0 + below(tsr_min(p->panel, p->k - l0));
    const int64_t one = below(p->batch), col = below(p->n);
    s.at = (one * p->m + row) * p->n + col;
    if (s.what == 'A') s.at = (one * p->m + row) * p->k + l;
    if (s.what == 'B') s.at = ((p->common_b ? 0 : one) * p->k + l) * p->n + col;
    const matrix *of = s.what == 'A' ? &x->a : s.what == 'B' ? &x->b : &x->c;
    const double was = get(of, s.at);
    s.value = below(8) == 0 ? NAN : was == 0 ? 1 : below(2) ? -was : was * (1 + 4 * (uniform() - 0.5));
    if (below(2)) s.value = flipped(of, s.at);
    return s;
}

typedef struct {
    int64_t right, found, small, missed;
    double worst;
    int64_t found_file;
    double worst_file; /* of the bounds of right files */
} tally;

static const char *describe(const product *p) {
    static char text[200];
    snprintf(text, sizeof text, "%s %s: data %d, %lld x %lld x %lld, batch %lld, panel %lld, strip %lld",
             p->kernel->name, tsr_dtype_name(p->kernel->input), (int)p->kind, (long long)p->m, (long long)p->n,
             (long long)p->k, (long long)p->batch, (long long)p->panel, (long long)p->strip);
    return text;
}

static void fill_from(const setup *s, matrix *file, const matrix *c, double alpha) {
    for (int64_t i = 0; i < c->rows * c->cols; i++) put(file, i, alpha * get(c, i));
    upload(s, file);
}

/* Of a file of C: each type and a factor; one element that is wrong by more than a hundredth of its row's typical one,
 * or by what the type's rounding makes of a row, is found. */
static void try_file(const setup *s, const product *p, block *x, tally *t) {
    static const tsr_dtype types[] = {TSR_F16, TSR_BF16, TSR_F32, TSR_F64};
    double largest = 0;
    for (int64_t i = 0; i < x->c.rows * x->c.cols; i++) largest = fmax(largest, fabs(get(&x->c, i)));
    const tsr_dtype out = types[largest > 1e4 ? 1 + below(3) : below(4)]; /* f16 reaches to 65504 */
    const double alpha = tsr_dtype_bytes(out) > tsr_dtype_bytes(p->kernel->type) || below(2) ? 1 : 3 * (uniform() - 2);
    CHECK(tsr_check_can_judge(p->kernel->type, out, alpha), "%s cannot be judged", tsr_dtype_name(out));
    matrix file = matrix_open(s, out, x->c.rows, x->c.cols);
    fill_from(s, &file, &x->c, alpha);
    tsr_check_counts counts = compare(s, p, x, &file, alpha);
    double worst;
    memcpy(&worst, &counts.worst_bits, sizeof worst);
    CHECK(counts.doubtful == 0 && counts.unjudged == 0 && counts.judged == (uint64_t)x->c.rows,
          "%s as %s times %g: %llu doubtful, %llu unjudged, off by %g", describe(p), tsr_dtype_name(out), alpha,
          (unsigned long long)counts.doubtful, (unsigned long long)counts.unjudged, worst);
    t->worst_file = fmax(t->worst_file, worst);
    const int64_t row = below(file.rows), at = row * p->n + below(p->n);
    double squares = 0;
    for (int64_t j = 0; j < p->n; j++) squares += get(&file, row * p->n + j) * get(&file, row * p->n + j);
    const int bits = tsr_dtype_facts_of(out)->mantissa_bits, most = 1 << (tsr_dtype_facts_of(out)->exponent_bits - 1);
    const double unit = ldexp(1, -bits - 1), step = ldexp(1, 2 - most - bits);
    const double typical = sqrt(squares / (double)p->n);
    const double least = fmax(2 * TSR_CHECK_FINDS, 24 * unit * sqrt((double)p->n));
    const bool tiny = least * typical < 24 * step * sqrt((double)p->n); /* rounded to steps of the smallest numbers */
    /* Nor where the first panel says little of columns' sizes. */
    const bool uneven = p->kind == COLUMNS || p->kind == WIDE || p->kind == FALLING || p->kind == CANCELLING ||
                        p->kind == SPARSE || p->kind == BANDED || p->panel < 16;
    const bool known = p->kernel->accuracy != TSR_ACCURACY_TF32 || p->kernel->rounds_tf32;
    const double was = get(&file, at);
    set(s, &file, at, was + (below(2) ? 1 : -1) * least * (1 + uniform()) * typical);
    if (!tiny && !uneven && known && fabs(get(&file, at) - was) > 0.9 * least * typical) {
        counts = compare(s, p, x, &file, alpha);
        CHECK(counts.doubtful == 1, "%s as %s times %g: an element wrong by %g of a typical one: %llu doubtful",
              describe(p), tsr_dtype_name(out), alpha, fabs(get(&file, at) - was) / typical,
              (unsigned long long)counts.doubtful);
        t->found_file++;
    }
    matrix_close(s, &file);
}

static void try_product(const setup *s, const product *p, tally *t) {
    block x = block_open(s, p);
    fill(s, &x.a, p->kind, true, p->k, p->batch);
    fill(s, &x.b, p->kind, false, p->k, p->batch);
    const spoiling nothing = {.launch = -1};
    const tsr_check_counts right = make(s, p, &x, &nothing);
    double worst;
    memcpy(&worst, &right.worst_bits, sizeof worst);
    CHECK(right.doubtful == 0 && right.unjudged == 0 && right.judged == (uint64_t)(p->batch * p->m),
          "%s: %llu doubtful, %llu unjudged, off by %g", describe(p), (unsigned long long)right.doubtful,
          (unsigned long long)right.unjudged, worst);
    t->worst = fmax(t->worst, worst);
    t->right++;
    double *clean = calloc((size_t)(x.c.rows * x.c.cols), sizeof *clean);
    for (int64_t i = 0; i < x.c.rows * x.c.cols; i++) clean[i] = get(&x.c, i);
    try_file(s, p, &x, t);
    const spoiling spoil = random_spoiling(p, &x);
    const tsr_check_counts wrong = make(s, p, &x, &spoil);
    const double change = isnan(spoil.value) && largest_change(&x.c, clean) == 0 ? 1 : largest_change(&x.c, clean);
    /* Not where a row's elements are of many sizes, nor where its sums cancel to what rounding may leave, nor with a
     * kernel of which it is not known how it rounds operands. */
    const bool uneven = p->kind == COLUMNS || p->kind == WIDE || p->kind == FALLING || p->kind == CANCELLING;
    const bool counts = !uneven && (p->kernel->accuracy != TSR_ACCURACY_TF32 || p->kernel->rounds_tf32);
    if (wrong.doubtful > 0) t->found++;
    else if (change <= TSR_CHECK_FINDS || !counts) t->small++;
    else {
        t->missed++;
        printf("missed: %s: %c changed to %g, an element of C by %g of a typical one\n", describe(p), spoil.what,
               spoil.value, change);
    }
    free(clean);
    block_close(s, &x);
}

/* The emulation runs a fiber a thread: few and small ones. */
#ifdef TSR_EMULATE_CUDA
enum { CASES = 2, EDGE = 24, TURNS = 1, LATE = 2, SIDE = 32 };
#else
enum { CASES = 100, EDGE = 96, TURNS = 6, LATE = 4, SIDE = 64 };
#endif

/* ---- NaN and Inf ----------------------------------------------------------------------------- */

/* NaN in a column of B, and Inf in a row of A: all other rows and columns are judged, and errors there are found. */
static void test_not_finite(const setup *s, const tsr_gemm_kernel *kernel) {
    for (int turn = 0; turn < TURNS; turn++) {
        const int64_t side = SIDE;
        product p = {.kernel = kernel, .m = side, .n = side, .k = side, .batch = 1, .panel = side, .strip = side};
        block x = block_open(s, &p);
        fill(s, &x.a, NORMAL, true, p.k, 1);
        fill(s, &x.b, NORMAL, false, p.k, 1);
        set(s, &x.b, below(side) * side + 5, turn % 2 ? NAN : INFINITY);
        set(s, &x.a, 7 * side + below(side), turn % 3 ? NAN : -INFINITY);
        spoiling spoil = {.launch = -1};
        tsr_check_counts counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 0 && counts.unjudged == 1 && counts.judged == (uint64_t)side - 1,
              "%s: %llu doubtful, %llu unjudged, %llu judged", kernel->name, (unsigned long long)counts.doubtful,
              (unsigned long long)counts.unjudged, (unsigned long long)counts.judged);
        spoil = (spoiling){.what = 'C', .at = 12 * side + 9, .value = 100};
        counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 1 && counts.place[0].row == 0, "%s: an error beside NaN was not found", kernel->name);
        block_close(s, &x);
    }
}

/* Where no column is left no row is judged: the sums are 0, and so is what they are compared with. */
static void test_nothing_finite(const setup *s, const tsr_gemm_kernel *kernel) {
    product p = {.kernel = kernel, .m = SIDE, .n = SIDE, .k = SIDE, .batch = 1, .panel = SIDE, .strip = SIDE};
    block x = block_open(s, &p);
    fill(s, &x.a, NORMAL, true, p.k, 1);
    fill(s, &x.b, NORMAL, false, p.k, 1);
    for (int64_t j = 0; j < SIDE; j++) put(&x.b, 3 * SIDE + j, NAN);
    upload(s, &x.b);
    spoiling spoil = {.launch = -1};
    const tsr_check_counts counts = make(s, &p, &x, &spoil);
    CHECK(counts.doubtful == 0 && counts.unjudged == (uint64_t)SIDE && counts.judged == 0,
          "%s: %llu doubtful, %llu unjudged, %llu judged", kernel->name, (unsigned long long)counts.doubtful,
          (unsigned long long)counts.unjudged, (unsigned long long)counts.judged);
    block_close(s, &x);
}

/* Every row by itself, as `verify` judges them: an error of one in the small one of rows 2^30 apart is found. */
static void test_rows(const setup *s, const tsr_gemm_kernel *kernel) {
    const int64_t side = SIDE;
    const int apart = tsr_dtype_bytes(kernel->input) == 2 ? 6 : 30;
    product p = {.kernel = kernel, .m = side, .n = side, .k = side, .batch = 1, .panel = side, .strip = side};
    block x = block_open(s, &p);
    fill(s, &x.a, NORMAL, true, p.k, 1);
    fill(s, &x.b, NORMAL, false, p.k, 1);
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < side; j++)
            put(&x.a, i * side + j, ldexp(get(&x.a, i * side + j), i == 5 ? -apart : i == 6 ? apart : 0));
    upload(s, &x.a);
    spoiling spoil = {.launch = -1};
    tsr_check_counts counts = make(s, &p, &x, &spoil);
    CHECK(counts.doubtful == 0 && counts.unjudged == 0, "%s: %llu doubtful", kernel->name,
          (unsigned long long)counts.doubtful);
    for (int64_t row = 4; row < 7; row++) {
        const double was = get(&x.c, row * side + 3);
        spoil = (spoiling){.what = 'C',
                           .at = row * side + 3,
                           .value = was + ldexp(8, row == 5   ? -apart
                                                   : row == 6 ? apart
                                                              : 0)};
        counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 1, "%s: an error in row %lld was not found", kernel->name, (long long)row);
    }
    block_close(s, &x);
}

/* NaN or Inf in B behind the first panel: none of the block's rows is judged, and none is called wrong. In the first
 * one the column is left out of all panels. */
static void test_late(const setup *s, const tsr_gemm_kernel *kernel) {
    const int64_t side = SIDE;
    for (int turn = 0; turn < LATE; turn++) {
        product p = {.kernel = kernel, .m = side, .n = side, .k = 2 * side, .batch = 1, .panel = side, .strip = side};
        block x = block_open(s, &p);
        fill(s, &x.a, NORMAL, true, p.k, 1);
        fill(s, &x.b, NORMAL, false, p.k, 1);
        const bool late = turn % 2;
        set(s, &x.b, ((late ? side : 0) + below(side)) * side + 5, turn / 2 ? NAN : -INFINITY);
        spoiling spoil = {.launch = -1};
        tsr_check_counts counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 0 && counts.unjudged == (late ? (uint64_t)side : 0),
              "%s: %llu doubtful, %llu unjudged", kernel->name, (unsigned long long)counts.doubtful,
              (unsigned long long)counts.unjudged);
        spoil = (spoiling){.what = 'C', .launch = 1, .at = 3 * side + 9, .value = 1000};
        counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == (late ? 0 : 1), "%s: an error beside what is not finite: %llu", kernel->name,
              (unsigned long long)counts.doubtful);
        block_close(s, &x);
    }
}

/* Rows that are added up in several pieces, along k and along C's columns, with loads of 16 bytes and without: a wrong
 * element of A, B or C in any piece is found. */
static void test_long(const setup *s, const tsr_gemm_kernel *kernel) {
    const product shapes[] = {{.kernel = kernel, .m = 5, .n = 12, .k = 2064, .batch = 1, .panel = 1043, .strip = 5},
                              {.kernel = kernel, .m = 5, .n = 2064, .k = 12, .batch = 1, .panel = 12, .strip = 3},
                              {.kernel = kernel, .m = 5, .n = 1031, .k = 9, .batch = 1, .panel = 9, .strip = 5}};
    if (kernel->multiple > 1) return;
    for (int i = 0; i < 3; i++) {
        const product *p = &shapes[i];
        block x = block_open(s, p);
        fill(s, &x.a, NORMAL, true, p->k, 1);
        fill(s, &x.b, NORMAL, false, p->k, 1);
        spoiling spoil = {.launch = -1};
        tsr_check_counts counts = make(s, p, &x, &spoil);
        CHECK(counts.doubtful == 0 && counts.unjudged == 0 && counts.judged == 5, "%s: %llu doubtful of a long row",
              kernel->name, (unsigned long long)counts.doubtful);
        for (int turn = TURNS > 1 ? 0 : 3; turn < 4; turn++) {
            const int64_t k0 = turn % 2 ? p->panel - 1 : 0, col = turn / 2 ? p->n - 1 : 0;
            spoil = (spoiling){.what = 'C', .at = 2 * p->n + col, .value = 1e4};
            spoil.launch = (int)(tsr_ceil_div(p->k, p->panel) * tsr_ceil_div(p->m, p->strip)) - (p->strip < p->m) - 1;
            counts = make(s, p, &x, &spoil);
            CHECK(counts.doubtful == 1, "%s: a wrong element %lld of a long row of C was not found", kernel->name,
                  (long long)col);
            spoil = (spoiling){.what = 'A', .at = 2 * p->k + k0, .value = 1e3};
            counts = make(s, p, &x, &spoil);
            CHECK(counts.doubtful == 1, "%s: a wrong element %lld of a long row of A was not found", kernel->name,
                  (long long)k0);
            spoil = (spoiling){.what = 'B', .at = k0 * p->n + col, .value = 1e3};
            counts = make(s, p, &x, &spoil);
            CHECK(counts.doubtful >= (uint64_t)p->strip, "%s: a wrong element of B was not found", kernel->name);
        }
        block_close(s, &x);
    }
}

/* Kernels whose sums err to one side, along a k so long that this is most of what they err: right rows pass. */
static void test_deep(const setup *s, const tsr_gemm_kernel *kernel) {
    const product p = {.kernel = kernel, .m = 256, .n = 128, .k = 16384, .batch = 1, .panel = 16384, .strip = 256};
    if (TURNS == 1 || kernel->device == TSR_DEVICE_CPU || kernel->accuracy == TSR_ACCURACY_IEEE) return;
    block x = block_open(s, &p);
    fill(s, &x.a, NORMAL, true, p.k, 1);
    fill(s, &x.b, NORMAL, false, p.k, 1);
    const spoiling nothing = {.launch = -1};
    const tsr_check_counts counts = make(s, &p, &x, &nothing);
    double worst;
    memcpy(&worst, &counts.worst_bits, sizeof worst);
    CHECK(counts.doubtful == 0, "%s: %llu doubtful of k = %lld, off by %g", kernel->name,
          (unsigned long long)counts.doubtful, (long long)p.k, worst);
    block_close(s, &x);
}

/* Inf and NaN that no operand brings are wrong. */
static void test_made_infinite(const setup *s, const tsr_gemm_kernel *kernel) {
    const int64_t side = SIDE;
    product p = {.kernel = kernel, .m = side, .n = side, .k = side, .batch = 1, .panel = side, .strip = side};
    block x = block_open(s, &p);
    fill(s, &x.a, NORMAL, true, p.k, 1);
    fill(s, &x.b, NORMAL, false, p.k, 1);
    for (int turn = 0; turn < 3; turn++) {
        const spoiling spoil = {.what = 'C',
                                .at = 9 * side + 3 * turn,
                                .value = turn == 0   ? NAN
                                         : turn == 1 ? INFINITY
                                                     : -INFINITY};
        const tsr_check_counts counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 1 && counts.wrong == 1, "%s: %g was not found", kernel->name, spoil.value);
    }
    block_close(s, &x);
}

/* Where a column of B was left out, no row of a file is judged; and what is rounded to nothing is right: operands that
 * are so small that C underflows, where both scales are as large as they get. */
static void test_files(const setup *s, const tsr_gemm_kernel *kernel) {
    const int64_t side = SIDE;
    product p = {.kernel = kernel, .m = side, .n = side, .k = side, .batch = 1, .panel = side, .strip = side};
    block x = block_open(s, &p);
    const spoiling nothing = {.launch = -1};
    fill(s, &x.a, NORMAL, true, p.k, 1);
    fill(s, &x.b, NORMAL, false, p.k, 1);
    set(s, &x.b, 7 * side + 5, NAN);
    make(s, &p, &x, &nothing);
    tsr_check_counts counts = compare(s, &p, &x, &x.c, 1);
    CHECK(counts.judged == 0 && counts.unjudged == (uint64_t)side, "%s: rows beside NaN were judged", kernel->name);
    CHECK(!tsr_check_can_judge(TSR_F32, TSR_F64, 2) && !tsr_check_can_judge(TSR_F32, TSR_C64, 1) &&
              !tsr_check_can_judge(TSR_F32, TSR_F32, 0x1p21) && !tsr_check_can_judge(TSR_F64, TSR_F32, -0x1p-21) &&
              !tsr_check_can_judge(TSR_F32, TSR_F32, 0),
          "what sums in float cannot hold would be judged");
    for (int i = 0; i < 2 && tsr_dtype_bytes(kernel->input) >= 4; i++) {
        matrix *operand = i == 0 ? &x.a : &x.b;
        fill(s, operand, NORMAL, i == 0, p.k, 1);
        for (int64_t at = 0; at < side * side; at++)
            put(operand, at, get(operand, at) * (kernel->input == TSR_F32 ? 1e-30 : 1e-290));
        upload(s, operand);
    }
    if (tsr_dtype_bytes(kernel->input) >= 4) {
        counts = make(s, &p, &x, &nothing);
        CHECK(counts.doubtful == 0, "%s: %llu rows that underflowed are doubtful", kernel->name,
              (unsigned long long)counts.doubtful);
        counts = compare(s, &p, &x, &x.c, 1);
        CHECK(counts.doubtful == 0, "%s: %llu rows of a file that underflowed are doubtful", kernel->name,
              (unsigned long long)counts.doubtful);
    }
    block_close(s, &x);
}

static void test_special(const setup *s, const tsr_gemm_kernel *kernel) {
    test_rows(s, kernel);
    test_files(s, kernel);
    test_late(s, kernel);
    test_long(s, kernel);
    test_deep(s, kernel);
    test_made_infinite(s, kernel);
}

int main(int argc, char **argv) {
    bool special[2] = {false};
    const int64_t cases = argc > 1 ? atoll(argv[1]) : CASES, edge = argc > 2 ? atoll(argv[2]) : EDGE;
    setup s;
    CHECK_OK(tsr_device_find(TSR_TEST_DEVICE, &s.ops));
    if (s.ops->open(0, &s.device) != TSR_OK) {
        printf("skipped: %s\n", tsr_message());
        return 77;
    }
    CHECK_OK(s.ops->stream_create(s.device, &s.stream));
    tsr_device_facts facts;
    CHECK_OK(s.ops->facts(s.device, &facts));
    int count, missed = 0, found = 0;
    const tsr_gemm_kernel *const *kernels = tsr_gemm_kernels(&count);
    for (int i = 0; i < count; i++) {
        const tsr_gemm_kernel *kernel = kernels[i];
        if (kernel->device != s.ops->kind || !tsr_gemm_runs_on(kernel, facts.arch)) continue;
        if (kernel->prepare) CHECK_OK(kernel->prepare(1));
        tally t = {0};
        state = (uint64_t)i * 1000;
        for (int64_t one = 0; one < cases; one++) {
            const product p = random_product(kernel, edge);
            try_product(&s, &p, &t);
        }
        bool *tried = &special[kernel->type == TSR_F64];
        test_not_finite(&s, kernel);
        test_nothing_finite(&s, kernel);
        if (TURNS > 1 || !*tried) test_special(&s, kernel); /* in the emulation once of each type: the rules are one */
        *tried = true;
        printf(
            "%-12s %-4s %lld right (off by %.2g of the bound at most), %lld wrong: %lld found, %lld of them small and "
            "not found, %lld missed; files: off by %.2g of the bound at most, %lld wrong ones found\n",
            kernel->name, tsr_dtype_name(kernel->input), (long long)t.right, t.worst, (long long)t.right,
            (long long)t.found, (long long)t.small, (long long)t.missed, t.worst_file, (long long)t.found_file);
        missed += (int)t.missed;
        found += (int)t.found;
    }
    CHECK(missed == 0, "%d wrong products were not found", missed);
    CHECK(found > 0, "nothing was found: the test tries nothing");
    s.ops->stream_destroy(s.device, s.stream);
    s.ops->close(s.device);
    return 0;
}
