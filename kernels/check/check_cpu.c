/* The CPU's check: rows times three vectors, in double, by the threads that BLAS has. What is not finite in B is looked
 * for where a sum shows it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/check/check_rules.h"
#include "kernels/pack/pack_cpu.h"

enum { PIECE = 1024, LANES = 8, THREADS_MAX = 64, ROWS_AT_A_TIME = 16 };
#define ELEMENTS_A_THREAD ((int64_t)1 << 20) /* fewer are not worth a thread */

/* rows × cols of a matrix, or of each of `batch`. */
typedef struct {
    const char *data;
    tsr_dtype type;
    int64_t rows, cols, ld;
    int64_t batch, stride;
    bool tf32;
} matrix;

static void to_doubles(const matrix *m, int64_t first, double *to, int64_t n) {
    const char *from = m->data + (size_t)first * tsr_dtype_bytes(m->type);
    tsr_cpu_convert((tsr_element){m->type, false}, from, TSR_F64, to, n);
}

/* ---- rows times vectors ---------------------------------------------------------------------- */

/* What a row does with its sums so far, `piece` by piece: of x[0], x[1] and squares. */
typedef struct {
    const matrix *of;
    const double *vectors;          /* TSR_CHECK_VECTORS × vector_ld */
    int64_t vector_ld, vector_step; /* from the vectors of a product to the next one's */
    double scale;                   /* of the matrix */
    bool careful;                   /* columns whose scale is 0 are skipped, as they may hold NaN or Inf */
    double *sums;                   /* rows × TSR_CHECK_SUMS */
    bool add;                       /* to what is there */
    _Atomic int64_t next;
} product;

static void add_piece(const double *restrict row, const double *restrict x, int64_t ld, int64_t n,
                      double sum[TSR_CHECK_VECTORS]) {
    double part[TSR_CHECK_VECTORS][LANES] = {{0}};
    const double *restrict y = x + ld, *restrict scales = y + ld;
    for (int64_t j = 0; j < n / LANES * LANES; j += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double e = row[j + lane];
            part[0][lane] += e * x[j + lane];
            part[1][lane] += e * y[j + lane];
            part[2][lane] += e * scales[j + lane] * (e * scales[j + lane]);
        }
    for (int64_t j = n / LANES * LANES; j < n; j++) {
        part[0][0] += row[j] * x[j];
        part[1][0] += row[j] * y[j];
        part[2][0] += row[j] * scales[j] * (row[j] * scales[j]);
    }
    for (int v = 0; v < TSR_CHECK_VECTORS; v++)
        for (int lane = 0; lane < LANES; lane++) sum[v] += part[v][lane];
}

static void multiply_row(const product *p, int64_t row) {
    const matrix *m = p->of;
    const int64_t one = row / m->rows;
    const int64_t from = one * m->stride + row % m->rows * m->ld;
    const double *vectors = p->vectors + one * p->vector_step;
    double *to = p->sums + TSR_CHECK_SUMS * row;
    double sum[TSR_CHECK_VECTORS] = {0};
    double largest = 0;
    double piece[PIECE];
    if (p->add) {
        memcpy(sum, to, sizeof sum);
        largest = to[3];
    }
    for (int64_t j = 0; j < m->cols; j += PIECE) {
        const int64_t n = tsr_min(PIECE, m->cols - j);
        to_doubles(m, from + j, piece, n);
        for (int64_t i = 0; m->tf32 && i < n; i++) piece[i] = (double)tsr_check_tf32((float)piece[i]);
        for (int64_t i = 0; i < n; i++) piece[i] *= p->scale;
        for (int64_t i = 0; p->careful && i < n; i++)
            if (vectors[2 * p->vector_ld + j + i] == 0) piece[i] = 0;
        add_piece(piece, vectors + j, p->vector_ld, n, sum);
        largest = fmax(largest, fmax(fabs(sum[0]), fabs(sum[1])));
    }
    memcpy(to, sum, sizeof sum);
    to[3] = largest;
}

static void *multiply_rows(void *context) {
    product *p = context;
    const int64_t rows = p->of->batch * p->of->rows;
    for (int64_t first; (first = atomic_fetch_add(&p->next, ROWS_AT_A_TIME)) < rows;)
        for (int64_t row = first; row < tsr_min(rows, first + ROWS_AT_A_TIME); row++) multiply_row(p, row);
    return NULL;
}

/* What a thread cannot be started for, the others do. */
static void multiply(product *p) {
    pthread_t ids[THREADS_MAX];
    const int64_t elements = p->of->batch * p->of->rows * p->of->cols;
    const int64_t worth = tsr_min(THREADS_MAX, elements / ELEMENTS_A_THREAD);
    const int most = worth > 1 ? (int)tsr_min(worth, tsr_cpu_threads(tsr_cpu_cores())) : 1;
    int started = 0;
    atomic_store(&p->next, 0);
    while (started < most - 1 && pthread_create(&ids[started], NULL, multiply_rows, p) == 0) started++;
    multiply_rows(p);
    for (int i = 0; i < started; i++) pthread_join(ids[i], NULL);
}

/* ---- signs ----------------------------------------------------------------------------------- */

static double element_of(const matrix *m, int64_t row, int64_t col) {
    double value;
    to_doubles(m, row * m->ld + col, &value, 1);
    return value;
}

/* The largest finite elements of columns, of rows spread over the first matrix. */
static void find_tops(const matrix *m, int64_t width, double *tops) {
    const int64_t step = tsr_max(1, m->rows / TSR_CHECK_SAMPLED);
    double row[PIECE];
    for (int64_t j = 0; j < width; j++) tops[j] = 0;
    for (int64_t l = 0; l < m->rows; l += step)
        for (int64_t j0 = 0; j0 < width; j0 += PIECE) {
            const int64_t n = tsr_min(PIECE, width - j0);
            to_doubles(m, l * m->ld + j0, row, n);
            for (int64_t j = 0; j < n; j++) {
                const double size = fabs(row[j]);
                if (size <= DBL_MAX && size > tops[j0 + j]) tops[j0 + j] = size;
            }
        }
}

static double scale_of(tsr_dtype type, int64_t exponent) {
    return tsr_check_scale(exponent, tsr_dtype_bytes(type) == sizeof(double) ? TSR_CHECK_DOUBLE : TSR_CHECK_FLOAT);
}

/* Of a block: signs and scales of columns of B, and the scale of A. */
static void open_block(const tsr_check_args *args, const matrix *a, const matrix *b, const tsr_check_space *s) {
    double *scales = s->signs + 2 * s->ld;
    double *of_a = s->partial;
    double top = 0;
    int64_t least = INT64_MAX, most = INT64_MIN;
    int64_t exponents = 0, seen = 0;
    find_tops(b, s->width, scales);
    find_tops(a, a->cols, of_a);
    for (int64_t l = 0; l < a->cols; l++) top = fmax(top, of_a[l]);
    for (int64_t j = 0; j < s->width; j++)
        if (scales[j] > 0) {
            const int64_t exponent = tsr_check_exponent(scales[j]);
            least = tsr_min(least, exponent);
            most = tsr_max(most, exponent);
            exponents += exponent;
            seen++;
        }
    const int64_t usual = seen > 0 ? exponents / seen : 0;
    const bool alike = seen == 0 || tsr_check_alike(least, most);
    *s->facts =
        (tsr_check_facts){.of_a = top > 0 ? scale_of(a->type, tsr_check_exponent(top)) : 1, .smallest = INFINITY};
    for (int64_t j = 0; j < s->width; j++) {
        const double scale = scale_of(b->type, scales[j] > 0 && !alike ? tsr_check_exponent(scales[j]) : usual);
        const uint64_t draw = tsr_check_draw(args->seed, j);
        s->signs[j] = scale * tsr_check_sign(draw, 0);
        s->signs[s->ld + j] = scale * tsr_check_sign(draw, 1);
        scales[j] = TSR_CHECK_ROOT * scale;
        s->facts->squares += scales[j] * scales[j];
        s->facts->smallest = fmin(s->facts->smallest, scale);
    }
}

/* Columns of B that hold NaN or Inf, in the rows whose sums show it. */
static void leave_out(const tsr_check_args *args, const matrix *b, const tsr_check_space *s) {
    for (int64_t row = 0; row < b->batch * b->rows; row++) {
        if (isfinite(s->sums[TSR_CHECK_SUMS * row]) && isfinite(s->sums[TSR_CHECK_SUMS * row + 1])) continue;
        matrix one = *b;
        one.data += (size_t)(row / b->rows * b->stride) * tsr_dtype_bytes(b->type);
        for (int64_t j = 0; j < b->cols; j++) {
            if (isfinite(element_of(&one, row % b->rows, j))) continue;
            if (s->signs[2 * s->ld + j] != 0 && !args->opens) s->facts->spoiled = 1;
            for (int v = 0; v < TSR_CHECK_VECTORS; v++) s->signs[v * s->ld + j] = 0;
            s->facts->left_out = 1;
        }
    }
}

/* ---- a launch -------------------------------------------------------------------------------- */

/* B·signs, row by row, to the thin vectors. */
static void multiply_b(const tsr_check_args *args, const matrix *b, const tsr_check_space *s) {
    const int64_t depth = b->batch * b->rows;
    const tsr_check_space there = {.facts = s->facts, .signs = s->signs, .sums = s->partial, .ld = s->ld};
    product p = {.of = b, .vectors = s->signs, .vector_ld = s->ld, .scale = 1, .sums = s->partial};
    p.careful = s->facts->left_out;
    multiply(&p);
    bool finite = true;
    for (int64_t row = 0; row < depth && finite; row++)
        finite = isfinite(s->partial[TSR_CHECK_SUMS * row]) && isfinite(s->partial[TSR_CHECK_SUMS * row + 1]);
    if (!finite) {
        leave_out(args, b, &there);
        p.careful = true;
        multiply(&p);
    }
    for (int64_t row = 0; row < depth; row++) {
        const double *sum = s->partial + TSR_CHECK_SUMS * row;
        s->thin[row] = sum[0];
        s->thin[s->depth + row] = sum[1];
        s->thin[2 * s->depth + row] = sqrt(sum[2]);
    }
}

static void note_row(const tsr_check_args *args, tsr_row_verdict verdict, double ratio) {
    tsr_check_counts *counts = args->counts;
    double worst;
    memcpy(&worst, &counts->worst_bits, sizeof worst);
    if (ratio > worst) memcpy(&counts->worst_bits, &ratio, sizeof ratio);
    counts->judged += verdict != TSR_ROW_UNJUDGED;
    counts->unjudged += verdict == TSR_ROW_UNJUDGED;
    if (verdict == TSR_ROW_WRONG || verdict == TSR_ROW_DOUBTFUL)
        tsr_check_note_doubtful(counts, verdict == TSR_ROW_WRONG, args->place_row, args->place_col);
}

/* Rows of the block from `first` on. */
static void judge_rows(const tsr_check_args *args, const matrix *c, int64_t first, const tsr_check_noise *noise,
                       const tsr_check_space *s) {
    product p = {
        .of = c, .vectors = s->signs, .vector_ld = s->ld, .scale = s->facts->of_a, .careful = s->facts->left_out};
    p.sums = s->partial;
    multiply(&p);
    for (int64_t row = 0; row < c->batch * c->rows; row++) {
        const double *sum = s->sums + TSR_CHECK_SUMS * (first + row), *of_c = s->partial + TSR_CHECK_SUMS * row;
        double ratio;
        const tsr_row_verdict verdict = tsr_check_row(sum, of_c, of_c[2], c->cols, args->k, s->facts, noise, &ratio);
        note_row(args, verdict, ratio);
    }
}

static tsr_status follow(tsr_device *device, tsr_stream *stream, const tsr_check_args *args) {
    (void)device;
    (void)stream;
    const tsr_gemm_args *g = args->gemm;
    const int64_t batch = tsr_max(1, g->batch), of_b = batch > 1 && g->stride_b != 0 ? batch : 1;
    const bool tf32 = args->kernel->rounds_tf32;
    const matrix a = {g->a, args->kernel->input, g->m, g->k, g->lda, batch, batch > 1 ? g->stride_a : 0, tf32};
    const matrix b = {g->b, args->kernel->input, g->k, g->n, g->ldb, of_b, of_b > 1 ? g->stride_b : 0, tf32};
    const matrix c = {g->c, args->kernel->type, g->m, g->n, g->ldc, batch, batch > 1 ? g->stride_c : 0, false};
    const tsr_check_space s = tsr_check_space_of(args);
    if (batch * g->m == 0 || g->n == 0) return TSR_OK;
    if (args->opens) open_block(args, &a, &b, &s);
    multiply_b(args, &b, &s);
    product p = {.of = &a, .vectors = s.thin, .vector_ld = s.depth, .vector_step = of_b > 1 ? g->k : 0};
    p.scale = s.facts->of_a;
    p.sums = s.sums + TSR_CHECK_SUMS * args->row;
    p.add = g->accumulate;
    multiply(&p);
    const tsr_check_noise noise = tsr_check_noise_of(args->kernel, args->k);
    if (args->closes) judge_rows(args, &c, args->row, &noise, &s);
    return TSR_OK;
}

static tsr_status judge(tsr_device *device, tsr_stream *stream, const tsr_check_args *args,
                        const tsr_check_strip *strip) {
    (void)device;
    (void)stream;
    const matrix c = {strip->data, strip->type, strip->rows, strip->cols, strip->ld, 1, 0, false};
    const tsr_check_space s = tsr_check_space_of(args);
    const tsr_check_noise noise = tsr_check_noise_of_strip(args->kernel, args->k, strip);
    if (strip->cols > 0) judge_rows(args, &c, strip->row, &noise, &s);
    return TSR_OK;
}

const tsr_check_ops tsr_check_cpu = {.device = TSR_DEVICE_CPU, .follow = follow, .judge = judge};
