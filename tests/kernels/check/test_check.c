/* The check of products (kernels/check) with every kernel of one device, TSR_TEST_DEVICE: right products of many kinds
 * of data pass; products that are wrong in C, or were made of a wrong A or B, do not. Each case is a block of C made in
 * launches: strips of rows, panels of k, or a batch. Exit code 77: there is no such device.
 * Usage: test_check [CASES [EDGE]]   of each kernel (100, in the emulation 2), with sides up to EDGE (96, 24). */
#include <math.h>
#include <string.h>

#include "kernels/base/half.h"
#include "kernels/check/check.h"
#include "tests/check.h"

static uint64_t state;
static uint64_t draw(void) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
static double uniform(void) { return (double)(draw() >> 11) * 0x1p-53; }
static double normal(void) { return sqrt(-2 * log(1 - uniform())) * cos(2 * 3.14159265358979323846 * uniform()); }

/* ---- matrices -------------------------------------------------------------------------------- */

typedef struct {
    tsr_dtype type;
    size_t bytes; /* of all */
    int64_t rows, cols;
    void *host, *data;
} matrix;

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
} setup;

static double get(const matrix *x, int64_t at) {
    switch (x->type) {
    case TSR_F16: return tsr_half_decode(((const uint16_t *)x->host)[at]);
    case TSR_BF16: return tsr_bf16_decode(((const uint16_t *)x->host)[at]);
    case TSR_F32: return ((const float *)x->host)[at];
    default: return ((const double *)x->host)[at];
    }
}
static void put(matrix *x, int64_t at, double value) {
    switch (x->type) {
    case TSR_F16: ((uint16_t *)x->host)[at] = tsr_half_encode(value); break;
    case TSR_BF16: ((uint16_t *)x->host)[at] = tsr_bf16_encode(value); break;
    case TSR_F32: ((float *)x->host)[at] = (float)value; break;
    default: ((double *)x->host)[at] = value; break;
    }
}

static matrix matrix_open(const setup *s, tsr_dtype type, int64_t rows, int64_t cols) {
    matrix x = {.type = type, .rows = rows, .cols = cols, .bytes = (size_t)(rows * cols) * tsr_dtype_bytes(type)};
    x.host = calloc(1, x.bytes + 1);
    CHECK(x.host, "no memory");
    CHECK_OK(s->ops->allocate(s->device, x.bytes + 1, &x.data));
    return x;
}
static void matrix_close(const setup *s, matrix *x) {
    s->ops->release(s->device, x->data);
    free(x->host);
}
static void upload(const setup *s, const matrix *x) {
    CHECK_OK(s->ops->upload(s->device, x->data, x->host, x->bytes, s->stream));
    CHECK_OK(s->ops->stream_wait(s->device, s->stream));
}
static void download(const setup *s, const matrix *x) {
    CHECK_OK(s->ops->download(s->device, x->host, x->data, x->bytes, s->stream));
    CHECK_OK(s->ops->stream_wait(s->device, s->stream));
}

/* ---- data ------------------------------------------------------------------------------------ */

typedef enum { NORMAL, UNIFORM, INTEGERS, WIDE, SPARSE, TINY, LARGE, COLUMNS, GRADED, SPLIT, DATA_COUNT } data_kind;

static double element(data_kind kind, bool first, int64_t row, int64_t col, int64_t k) {
    const int64_t l = first ? col : row; /* along k */
    switch (kind) {
    case UNIFORM: return uniform();
    case INTEGERS: return (double)(below(9) - 4);
    case WIDE: return normal() * exp(normal());
    case SPARSE: return below(20) == 0 ? normal() : 0;
    case TINY: return normal() * (first ? 1e-3 : 1e-2);
    case LARGE: return normal() * (first ? 1e3 : 10);
    case COLUMNS: return normal() * (first ? 1 : ldexp(1, (int)(col % 12)));
    case GRADED: return normal() * ldexp(1, (int)((first ? -1 : 1) * (l * 8 / k)));
    case SPLIT: return first && l >= k / 2 ? -uniform() : uniform(); /* sums go far, and come back */
    default: return normal();
    }
}

static void fill(const setup *s, matrix *x, data_kind kind, bool first, int64_t k) {
    const int64_t rows = first ? x->rows : k; /* of B: matrices of a batch lie one below the other */
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) put(x, i * x->cols + j, element(kind, first, i % rows, j, k));
    upload(s, x);
}

/* ---- one block of C -------------------------------------------------------------------------- */

typedef struct {
    const tsr_gemm_kernel *kernel;
    data_kind kind;
    int64_t m, n, k;
    int64_t batch, panel, strip;
    bool common_b;
} product;

/* What is done to a launch before it is checked: the matrix (NULL: none), its element, and by how much. */
typedef struct {
    char what; /* 'A', 'B': as the kernel reads them; 'C': what it made; 0: nothing */
    int launch;
    int64_t at;
    double value;
} spoiling;

typedef struct {
    matrix a, b, c;
    void *workspace, *room;
    tsr_check_counts *counts;
} block;

static block block_open(const setup *s, const product *p) {
    const tsr_gemm_kernel *kernel = p->kernel;
    block x = {.a = matrix_open(s, kernel->input, p->batch * p->m, p->k),
               .b = matrix_open(s, kernel->input, (p->common_b ? 1 : p->batch) * p->k, p->n),
               .c = matrix_open(s, kernel->type, p->batch * p->m, p->n)};
    const size_t bytes = kernel->workspace_bytes ? kernel->workspace_bytes(p->m, p->n, p->k) : 0;
    CHECK_OK(s->ops->allocate(s->device, bytes + 1, &x.workspace));
    CHECK_OK(s->ops->allocate(s->device, tsr_check_bytes(p->batch * p->m, p->n, p->batch * p->k), &x.room));
    CHECK_OK(s->ops->allocate(s->device, sizeof *x.counts, (void **)&x.counts));
    return x;
}
static void block_close(const setup *s, block *x) {
    matrix_close(s, &x->a);
    matrix_close(s, &x->b);
    matrix_close(s, &x->c);
    s->ops->release(s->device, x->workspace);
    s->ops->release(s->device, x->room);
    s->ops->release(s->device, x->counts);
}

static double set(const setup *s, matrix *x, int64_t at, double value) {
    const double before = get(x, at);
    put(x, at, value);
    upload(s, x);
    return before;
}

static void launch(const setup *s, const product *p, block *x, int64_t row, int64_t l, const spoiling *spoil) {
    const size_t in = tsr_dtype_bytes(p->kernel->input), out = tsr_dtype_bytes(p->kernel->type);
    const int64_t rows = tsr_min(p->strip, p->m - row), depth = tsr_min(p->panel, p->k - l);
    const tsr_gemm_args g = {.m = rows,
                             .n = p->n,
                             .k = depth,
                             .a = (char *)x->a.data + (size_t)(row * p->k + l) * in,
                             .lda = p->k,
                             .b = (char *)x->b.data + (size_t)(l * p->n) * in,
                             .ldb = p->n,
                             .c = (char *)x->c.data + (size_t)(row * p->n) * out,
                             .ldc = p->n,
                             .accumulate = l > 0,
                             .batch = p->batch,
                             .stride_a = p->m * p->k,
                             .stride_b = p->common_b ? 0 : p->k * p->n,
                             .stride_c = p->m * p->n,
                             .workspace = x->workspace};
    const tsr_check_args args = {.gemm = &g,
                                 .kernel = tsr_gemm_making(p->kernel, p->batch, rows, p->n, depth),
                                 .opens = row == 0 && l == 0,
                                 .closes = l + depth == p->k,
                                 .width = p->n,
                                 .row = row,
                                 .rows = p->batch * p->m,
                                 .depth = p->batch * p->k,
                                 .k = p->k,
                                 .seed = draw(),
                                 .place_row = row,
                                 .workspace = x->room,
                                 .counts = x->counts};
    matrix *operand = spoil->what == 'A' ? &x->a : spoil->what == 'B' ? &x->b : NULL;
    const double before = operand ? set(s, operand, spoil->at, spoil->value) : 0;
    CHECK_OK(tsr_gemm_launch(p->kernel, s->device, s->stream, &g));
    if (operand) set(s, operand, spoil->at, before);
    if (spoil->what == 'C') {
        download(s, &x->c);
        set(s, &x->c, spoil->at, spoil->value);
    }
    CHECK_OK(tsr_check_find(s->ops->kind)->follow(s->device, s->stream, &args));
}

/* All launches; of one of them, counted from 0, what the kernel reads or made is spoiled. */
static tsr_check_counts make(const setup *s, const product *p, block *x, const spoiling *spoil) {
    static const spoiling nothing = {0};
    tsr_check_counts counts;
    int number = 0;
    CHECK_OK(s->ops->fill_bytes(s->device, x->counts, 0, sizeof counts, s->stream));
    for (int64_t l = 0; l < p->k; l += p->panel)
        for (int64_t row = 0; row < p->m; row += p->strip, number++)
            launch(s, p, x, row, l, number == spoil->launch ? spoil : &nothing);
    CHECK_OK(s->ops->download(s->device, &counts, x->counts, sizeof counts, s->stream));
    download(s, &x->c);
    return counts;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static product random_product(const tsr_gemm_kernel *kernel, int64_t edge) {
    product p = {.kernel = kernel,
                 .kind = (data_kind)below(DATA_COUNT),
                 .m = 1 + below(edge),
                 .n = 1 + below(edge),
                 .k = 1 + below(edge),
                 .batch = 1};
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
    return s;
}

typedef struct {
    int64_t right, found, small, missed;
    double worst;
} tally;

static const char *describe(const product *p) {
    static char text[200];
    snprintf(text, sizeof text, "%s %s: data %d, %lld x %lld x %lld, batch %lld, panel %lld, strip %lld",
             p->kernel->name, tsr_dtype_name(p->kernel->input), (int)p->kind, (long long)p->m, (long long)p->n,
             (long long)p->k, (long long)p->batch, (long long)p->panel, (long long)p->strip);
    return text;
}

static void try_product(const setup *s, const product *p, tally *t) {
    block x = block_open(s, p);
    fill(s, &x.a, p->kind, true, p->k);
    fill(s, &x.b, p->kind, false, p->k);
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
    const spoiling spoil = random_spoiling(p, &x);
    const tsr_check_counts wrong = make(s, p, &x, &spoil);
    const double change = isnan(spoil.value) && largest_change(&x.c, clean) == 0 ? 1 : largest_change(&x.c, clean);
    /* Not where a row has no typical element, nor with a kernel of which it is not known how it rounds operands. */
    const bool counts =
        p->kind != COLUMNS && p->kind != WIDE && (p->kernel->accuracy != TSR_ACCURACY_TF32 || p->kernel->rounds_tf32);
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
enum { CASES = 2, EDGE = 24, TURNS = 1, SIDE = 32 };
#else
enum { CASES = 100, EDGE = 96, TURNS = 6, SIDE = 64 };
#endif

/* ---- NaN and Inf ----------------------------------------------------------------------------- */

/* NaN in a column of B, and Inf in a row of A: all other rows and columns are judged, and errors there are found. */
static void test_not_finite(const setup *s, const tsr_gemm_kernel *kernel) {
    for (int turn = 0; turn < TURNS; turn++) {
        const int64_t side = SIDE;
        product p = {.kernel = kernel, .m = side, .n = side, .k = side, .batch = 1, .panel = side, .strip = side};
        block x = block_open(s, &p);
        fill(s, &x.a, NORMAL, true, p.k);
        fill(s, &x.b, NORMAL, false, p.k);
        set(s, &x.b, below(side) * side + 5, turn % 2 ? NAN : INFINITY);
        set(s, &x.a, 7 * side + below(side), turn % 3 ? NAN : -INFINITY);
        spoiling spoil = {.launch = -1};
        tsr_check_counts counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 0 && counts.unjudged == 1 && counts.judged == (uint64_t)side - 1,
              "%s: %llu doubtful, %llu unjudged, %llu judged", kernel->name, (unsigned long long)counts.doubtful,
              (unsigned long long)counts.unjudged, (unsigned long long)counts.judged);
        spoil = (spoiling){.what = 'C', .at = 20 * side + 9, .value = 100};
        counts = make(s, &p, &x, &spoil);
        CHECK(counts.doubtful == 1 && counts.place[0].row == 0, "%s: an error beside NaN was not found", kernel->name);
        block_close(s, &x);
    }
}

int main(int argc, char **argv) {
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
        test_not_finite(&s, kernel);
        printf(
            "%-12s %-4s %lld right (off by %.2g of the bound at most), %lld wrong: %lld found, %lld of them small and "
            "not found, %lld missed\n",
            kernel->name, tsr_dtype_name(kernel->input), (long long)t.right, t.worst, (long long)t.right,
            (long long)t.found, (long long)t.small, (long long)t.missed);
        missed += (int)t.missed;
        found += (int)t.found;
    }
    CHECK(missed == 0, "%d wrong products were not found", missed);
    CHECK(found > 0, "nothing was found: the test tries nothing");
    s.ops->stream_destroy(s.device, s.stream);
    s.ops->close(s.device);
    return 0;
}
