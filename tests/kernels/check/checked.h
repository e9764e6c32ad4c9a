/* A block of C, made in launches that the check of products follows (kernels/check): with any kernel, from any data,
 * and with something changed in one of its launches. */
#ifndef TSR_TESTS_KERNELS_CHECK_CHECKED_H
#define TSR_TESTS_KERNELS_CHECK_CHECKED_H

#include <math.h>
#include <string.h>

#include "kernels/base/half.h"
#include "kernels/check/check.h"
#include "tests/check.h"
#include "tests/splitmix64.h"

static uint64_t state;
static uint64_t draw(void) { return splitmix64(&state); }
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

/* Those of docs/accuracy.md, FALLING being its `graded`, and others. */
typedef enum {
    NORMAL,
    UNIFORM,
    WIDE,
    CANCELLING,
    FALLING,
    SPARSE,
    BANDED,
    INTEGERS,
    TINY,
    LARGE,
    COLUMNS,
    GRADED,
    SPLIT,
    ROWS, /* of sizes far apart */
    DATA_COUNT
} data_kind;

/* Of A (`first`), or of B: rows × cols. */
static double element(data_kind kind, bool first, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    const int64_t k = first ? cols : rows;
    const int64_t l = first ? col : row; /* along k */
    const int64_t falling = 16 * (first ? row : col) / (first ? rows : cols);
    switch (kind) {
    case UNIFORM: return uniform();
    case INTEGERS: return (double)(below(9) - 4);
    case WIDE: return normal() * exp(normal());
    case SPARSE: return below(first ? 100 : 20) == 0 ? normal() : 0;
    case FALLING: return normal() * ldexp(1, (int)((first ? -16 : 16) * l / k - falling - 8));
    case BANDED: return llabs(row * cols / rows - col) <= 24 ? normal() : 0;
    case ROWS: return normal() * (first ? ldexp(1, (int)(row * 37 % 25) - 12) : 1);
    case TINY: return normal() * (first ? 1e-3 : 1e-2);
    case LARGE: return normal() * (first ? 1e3 : 10);
    case COLUMNS: return normal() * (first ? 1 : ldexp(1, (int)(col % 12)));
    case GRADED: return normal() * ldexp(1, (int)((first ? -1 : 1) * (l * 8 / k)));
    case SPLIT: return first && l >= k / 2 ? -uniform() : uniform(); /* sums go far, and come back */
    default: return normal();
    }
}

/* The second half of every sum takes away the first but for about 2^-12 of it. */
static void cancel(matrix *x, bool first, int64_t rows) {
    const int64_t half = (first ? x->cols : rows) / 2;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            if (first && j >= half && j < 2 * half) put(x, i * x->cols + j, get(x, i * x->cols + j - half));
            if (!first && i % rows >= half && i % rows < 2 * half)
                put(x, i * x->cols + j, -get(x, (i - half) * x->cols + j) * (1 + 0x1p-12 * normal()));
        }
}

static void fill(const setup *s, matrix *x, data_kind kind, bool first, int64_t k, int64_t batch) {
    const int64_t rows = first ? x->rows / batch : k; /* matrices of a batch lie one below the other */
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) put(x, i * x->cols + j, element(kind, first, i % rows, j, rows, x->cols));
    if (kind == CANCELLING) cancel(x, first, rows);
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

static tsr_check_args check_args(const product *p, const block *x) {
    return (tsr_check_args){.kernel = p->kernel,
                            .width = p->n,
                            .rows = p->batch * p->m,
                            .depth = p->batch * p->k,
                            .k = p->k,
                            .seed = draw(),
                            .workspace = x->room,
                            .counts = x->counts};
}

/* `adds_up`: nothing is multiplied, and the check's sums are made alone. */
static void launch(const setup *s, const product *p, block *x, int64_t row, int64_t l, const spoiling *spoil,
                   bool adds_up) {
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
    tsr_check_args args = check_args(p, x);
    args.gemm = &g;
    args.kernel = tsr_gemm_making(p->kernel, p->batch, rows, p->n, depth);
    args.opens = row == 0 && l == 0;
    args.closes = l + depth == p->k && !adds_up;
    args.row = row;
    args.place_row = row;
    matrix *operand = spoil->what == 'A' ? &x->a : spoil->what == 'B' ? &x->b : NULL;
    const double before = operand ? set(s, operand, spoil->at, spoil->value) : 0;
    if (!adds_up) CHECK_OK(tsr_gemm_launch(p->kernel, s->device, s->stream, &g));
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
            launch(s, p, x, row, l, number == spoil->launch ? spoil : &nothing, false);
    CHECK_OK(s->ops->download(s->device, &counts, x->counts, sizeof counts, s->stream));
    download(s, &x->c);
    return counts;
}

/* `file`, on the device: what became of C, alpha times the product, judged in two strips. */
static tsr_check_counts compare(const setup *s, const product *p, block *x, const matrix *file, double alpha) {
    static const spoiling nothing = {0};
    tsr_check_counts counts;
    const int64_t rows = p->batch * p->m, first = below(rows + 1);
    CHECK_OK(s->ops->fill_bytes(s->device, x->counts, 0, sizeof counts, s->stream));
    for (int64_t l = 0; l < p->k; l += p->panel)
        for (int64_t row = 0; row < p->m; row += p->strip) launch(s, p, x, row, l, &nothing, true);
    for (int i = 0; i < 2; i++) {
        const tsr_check_args args = check_args(p, x);
        tsr_check_strip strip = {.type = file->type, .cols = p->n, .ld = p->n, .alpha = alpha};
        strip.row = i == 0 ? 0 : first;
        strip.rows = i == 0 ? first : rows - first;
        strip.data = (const char *)file->data + (size_t)(strip.row * p->n) * tsr_dtype_bytes(file->type);
        CHECK_OK(tsr_check_find(s->ops->kind)->judge(s->device, s->stream, &args, &strip));
    }
    CHECK_OK(s->ops->download(s->device, &counts, x->counts, sizeof counts, s->stream));
    CHECK_OK(s->ops->stream_wait(s->device, s->stream));
    return counts;
}

#endif
