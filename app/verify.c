/* Freivalds' check (verify.h). T sign vectors X (n × T) go through at once: Y = op(B)·X, R = alpha·op(A)·Y, and each row of R is compared
 * with (C - beta·C0)·X. All sums in double; each matrix is read once, in bands of its stored rows over the ranks, and by the threads of a
 * rank in parts that add to other rows of the sums (verify_tiles.c). C is taken in blocks of rows when R (m × T) would be too large.
 * What is judged row by row is in verify_rows.c. */
#include "app/verify_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/fill.h"
#include "kernels/registry.h"
#include "mpi/task.h"

#define FALSE_ALARM 1e-9
#define TRIALS_MAX 64
#define BLOCK_BYTES ((size_t)256 << 20) /* of R */
#define WORKER_BYTES ((size_t)4 << 20) /* of rows of the matrices, that are worth a thread */
#define PIECE_ELEMENTS ((int64_t)1 << 27) /* 1 GiB of doubles in one MPI call */

/* ---- memory and sums over ranks ------------------------------------------------------------------------------ */

static tsr_status allocate(int64_t rows, int64_t cols, double **memory) {
    size_t bytes = 0;
    TSR_TRY(tsr_bytes_checked(rows, cols, sizeof **memory, &bytes));
    *memory = calloc(bytes / sizeof **memory + 1, sizeof **memory);
    if (!*memory) return tsr_fail(TSR_ERR_MEMORY, "no memory for %" PRId64 " x %d sums of the check: use fewer --trials, or free some", rows, (int)cols);
    return TSR_OK;
}

static tsr_status row_sums_allocate(int64_t rows, int trials, row_sums *s) {
    TSR_TRY(allocate(rows, trials, &s->sums));
    TSR_TRY(allocate(rows, 1, &s->norm));
    TSR_TRY(allocate(rows, 1, &s->largest));
    return allocate(rows, 1, &s->bad);
}

static void row_sums_clear(row_sums *s, int64_t rows, int trials) {
    memset(s->sums, 0, (size_t)(rows * trials) * sizeof *s->sums);
    memset(s->norm, 0, (size_t)rows * sizeof *s->norm);
    memset(s->largest, 0, (size_t)rows * sizeof *s->largest);
    memset(s->bad, 0, (size_t)rows * sizeof *s->bad);
}

static void row_sums_free(row_sums *s) {
    free(s->bad);
    free(s->largest);
    free(s->norm);
    free(s->sums);
}

static tsr_status reduce(const tsr_world *world, double *data, int64_t count, MPI_Op op) {
    for (int64_t at = 0; at < count; at += PIECE_ELEMENTS)
        TSR_TRY(TSR_MPI(MPI_Allreduce(MPI_IN_PLACE, data + at, (int)tsr_min(PIECE_ELEMENTS, count - at), MPI_DOUBLE, op, world->comm)));
    return TSR_OK;
}

/* ---- one pass over an operand --------------------------------------------------------------------------------- */

/* Other workers may mark the same column. */
static void mark(double *flag) {
    const double yes = 1;
    __atomic_store(flag, &yes, __ATOMIC_RELAXED);
}

/* Marks rows and columns of op(X) with a non-finite value and puts 0 in its place. bad_cols may be NULL. */
static void sanitize(double *values, tsr_rect rect, bool transpose, double *bad_rows, double *bad_cols) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            double *at = values + i * rect.cols + j;
            if (isfinite(*at)) continue;
            *at = 0;
            mark(bad_rows + (transpose ? rect.col + j : rect.row + i));
            if (bad_cols) mark(bad_cols + (transpose ? rect.row + i : rect.col + j));
        }
}

/* sums (rows of op × trials) += op(tile) · in (columns of op × trials) */
static void multiply_tile(const double *values, tsr_rect rect, bool transpose, const double *in, double *sums, int trials) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            int64_t row = transpose ? rect.col + j : rect.row + i, col = transpose ? rect.row + i : rect.col + j;
            tsr_verify_add_scaled(sums + row * trials, values[i * rect.cols + j], in + col * trials, trials);
        }
}

/* B: squares and largest of every row of op. */
static void measure_b(const double *values, tsr_rect rect, bool transpose, row_sums *y) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            double value = fabs(values[i * rect.cols + j]);
            int64_t row = transpose ? rect.col + j : rect.row + i;
            y->norm[row] += value * value;
            y->largest[row] = fmax(y->largest[row], value);
        }
}

/* A: |op(A)| times the rows' norms and largest values of op(B). */
static void measure_a(const double *values, tsr_rect rect, bool transpose, const row_sums *y, row_sums *r) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            double value = fabs(values[i * rect.cols + j]);
            int64_t row = transpose ? rect.col + j : rect.row + i, col = transpose ? rect.row + i : rect.col + j;
            r->norm[row] += value * y->norm[col];
            r->largest[row] += value * y->largest[col];
        }
}

/* The sums of squares overflow or underflow where the norm does not: then √count · largest stands in, which is never less. */
static void finish_norms(row_sums *y, int64_t rows, int64_t count) {
    for (int64_t l = 0; l < rows; l++) {
        bool usable = isfinite(y->norm[l]) && (y->norm[l] > 1e-280 || y->largest[l] == 0);
        y->norm[l] = usable ? sqrt(y->norm[l]) : sqrt((double)count) * y->largest[l];
    }
}

/* What a worker does of a pass. */
typedef struct {
    verifier *v;
    int index;               /* of v->workers */
    int64_t first, rows;     /* A and C: the block of rows */
    row_facts *facts;        /* C: of the block, shared */
    tsr_verify_result found; /* C: in this worker's rows */
} share;

/* What was found in other rows. */
static void merge(tsr_verify_result *into, const tsr_verify_result *from) {
    if (from->worst_row >= 0 && (into->worst_row < 0 || from->worst_ratio > into->worst_ratio))
        into->worst_row = from->worst_row, into->worst_ratio = from->worst_ratio;
    into->rows_failed += from->rows_failed;
    into->rows_skipped += from->rows_skipped;
    into->largest_bound = fmax(into->largest_bound, from->largest_bound);
}

/* Local. Calls pass(share) for each worker, all but the first in threads of their own, and adds to v->found what they find. `facts` for C alone. */
static tsr_status work_together(verifier *v, tsr_status (*pass)(void *share), int64_t first, int64_t rows, row_facts *facts) {
    share shares[TSR_VERIFY_THREADS_MAX];
    tsr_task tasks[TSR_VERIFY_THREADS_MAX];
    for (int i = 0; i < v->workers; i++) shares[i] = (share){v, i, first, rows, facts, .found = {.worst_row = -1}};
    for (int i = 1; i < v->workers; i++) tsr_task_start(&tasks[i], pass, &shares[i]);
    tsr_status status = pass(&shares[0]);
    for (int i = 1; i < v->workers; i++) {
        tsr_task_wait(&tasks[i]);
        if (status == TSR_OK) status = tsr_task_status(&tasks[i]);
    }
    for (int i = 0; i < v->workers; i++) merge(&v->found, &shares[i].found);
    return status;
}

/* Local. A worker's part of Y. */
static tsr_status pass_b(void *context) {
    const share *s = context;
    verifier *v = s->v;
    const tsr_verify_args *a = v->args;
    tsr_tiles t = {0};
    tsr_rect rect, all = {0, 0, a->transpose_b ? v->n : v->k, a->transpose_b ? v->k : v->n};
    tsr_status status = tsr_tiles_open(v, a->b, all, a->transpose_b, s->index, a->buffer_bytes, &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        sanitize(t.values, rect, a->transpose_b, v->y.bad, v->column_bad);
        multiply_tile(t.values, rect, a->transpose_b, v->signs, v->y.sums, v->trials);
        measure_b(t.values, rect, a->transpose_b, &v->y);
    }
done:
    tsr_tiles_close(&t);
    return status;
}

/* Local. A worker's part of the block's rows of R. */
static tsr_status pass_a(void *context) {
    const share *s = context;
    verifier *v = s->v;
    const tsr_verify_args *a = v->args;
    tsr_tiles t = {0};
    tsr_rect rect, part = {s->first, 0, s->rows, v->k};
    if (a->transpose_a) part = (tsr_rect){0, s->first, v->k, s->rows};
    tsr_status status = tsr_tiles_open(v, a->a, part, a->transpose_a, s->index, a->buffer_bytes, &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        sanitize(t.values, rect, a->transpose_a, v->r.bad, NULL);
        multiply_tile(t.values, rect, a->transpose_a, v->y.sums, v->r.sums, v->trials);
        measure_a(t.values, rect, a->transpose_a, &v->y, &v->r);
    }
done:
    tsr_tiles_close(&t);
    return status;
}

static tsr_status share_sums(const verifier *v, row_sums *s, int64_t rows, MPI_Op largest) {
    TSR_TRY(reduce(v->world, s->sums, rows * v->trials, MPI_SUM));
    TSR_TRY(reduce(v->world, s->norm, rows, MPI_SUM));
    TSR_TRY(reduce(v->world, s->largest, rows, largest));
    return reduce(v->world, s->bad, rows, MPI_MAX);
}

static double bytes_of(const tsr_store *store) {
    return (double)store->desc.rows * (double)store->desc.cols * (double)tsr_dtype_bytes(store->desc.element.dtype);
}

/* Collective. Y on every rank; a second time with columns left out when B is not finite everywhere. */
static tsr_status make_y(verifier *v) {
    if (v->k == 0) return TSR_OK;
    for (int reading = 0; reading < 2; reading++) {
        row_sums_clear(&v->y, v->k, v->trials);
        TSR_TRY(tsr_agree(v->world->comm, work_together(v, pass_b, 0, v->k, NULL)));
        TSR_TRY(reduce(v->world, v->column_bad, v->n, MPI_MAX));
        bool finite = true;
        v->summed = false;
        for (int64_t j = 0; j < v->n; j++) {
            if (!(v->column_bad[j] > 0)) {
                v->summed = true;
                continue;
            }
            finite = false;
            memset(v->signs + j * v->trials, 0, (size_t)v->trials * sizeof *v->signs);
        }
        if (finite) break;
        if (reading == 0) tsr_progress_extend(&v->progress->display, bytes_of(v->args->b));
    }
    TSR_TRY(share_sums(v, &v->y, v->k, MPI_MAX));
    finish_norms(&v->y, v->k, v->n);
    return TSR_OK;
}

/* ---- C ---------------------------------------------------------------------------------------------------------- */

/* The entries of one rectangle of C (and C0); rect is relative to the block that begins at row `first`. */
static void take_rect(const verifier *v, tsr_rect rect, const double *c, const double *c0, row_facts *facts) {
    for (int64_t i = 0; i < rect.rows; i++) {
        int64_t row = rect.row + i;
        bool row_bad = v->r.bad[row] > 0;
        row_facts *f = &facts[row];
        f->overflow = v->r.largest[row];
        for (int64_t j = 0; j < rect.cols; j++)
            tsr_verify_take_entry(v, f, v->r.sums + row * v->trials, row_bad, rect.col + j, c[i * rect.cols + j], c0 ? c0[i * rect.cols + j] : 0);
    }
}

/* Local. A worker's rows of C within the block. */
static tsr_status pass_c(void *context) {
    share *s = context;
    verifier *v = s->v;
    const tsr_verify_args *a = v->args;
    bool with_c0 = a->beta != 0;
    tsr_tiles c = {0}, c0 = {0};
    tsr_rect rect, part = {s->first, 0, s->rows, v->n};
    tsr_status status;
    TSR_TRY_DONE(tsr_tiles_open(v, a->c, part, false, s->index, a->buffer_bytes / (with_c0 ? 2 : 1), &c));
    if (with_c0) {
        size_t bytes = tsr_dtype_bytes(a->c0->desc.element.dtype), elements = (size_t)(c.strips.step_rows * c.strips.step_cols);
        c0 = (tsr_tiles){.store = a->c0,
                         .progress = v->progress,
                         .row0 = s->first,
                         .raw = malloc(elements * bytes),
                         .values = malloc(elements * sizeof(double))};
        if (!c0.raw || !c0.values) TSR_TRY_DONE(tsr_fail(TSR_ERR_MEMORY, "no memory for %zu elements of C0: give the check less host memory", elements));
    }
    tsr_span band = c.strips.rows;
    while (tsr_tiles_next(&c, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&c, rect));
        if (with_c0) TSR_TRY_DONE(tsr_tiles_load(&c0, rect));
        take_rect(v, rect, c.values, c0.values, s->facts);
    }
    for (int64_t i = band.start; i < band.start + band.count; i++)
        tsr_verify_judge_row(v, &s->facts[i], v->r.sums + i * v->trials, v->r.norm[i], s->first + i, &s->found);
done:
    tsr_tiles_close(&c0);
    tsr_tiles_close(&c);
    return status;
}

/* Local. This rank's rows of C within the block. */
static tsr_status judge_block(verifier *v, int64_t first, int64_t rows) {
    row_facts *facts = calloc((size_t)rows + 1, sizeof *facts);
    if (!facts) return tsr_fail(TSR_ERR_MEMORY, "no memory for facts about %" PRId64 " rows: free some", rows);
    tsr_status status = work_together(v, pass_c, first, rows, facts);
    free(facts);
    return status;
}

/* ---- the whole check -------------------------------------------------------------------------------------------- */

static void scale(double *values, int64_t count, double factor) {
    for (int64_t i = 0; i < count; i++) values[i] *= factor;
}

/* Collective. One block of rows of C. */
static tsr_status check_block(verifier *v, int64_t first, int64_t rows) {
    row_sums_clear(&v->r, rows, v->trials);
    if (v->k > 0) {
        TSR_TRY(tsr_agree(v->world->comm, work_together(v, pass_a, first, rows, NULL)));
        TSR_TRY(share_sums(v, &v->r, rows, MPI_SUM));
        scale(v->r.sums, rows * v->trials, v->args->alpha);
    }
    return tsr_agree(v->world->comm, judge_block(v, first, rows));
}

/* Collective. Every rank gets the sum of what the ranks found. */
static tsr_status combine(const tsr_world *world, tsr_verify_result *mine) {
    tsr_verify_result *all = malloc((size_t)world->ranks * sizeof *all);
    tsr_status status = all ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for the results of %d ranks: free some", world->ranks);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, world->comm)));
    *mine = all[0];
    for (int i = 1; i < world->ranks; i++) merge(mine, &all[i]);
done:
    free(all);
    return status;
}

/* n × trials: a bit of a random number decides; each number gives 32. */
static void make_signs(verifier *v) {
    for (int64_t j = 0; j < v->n; j++) {
        uint32_t bits = 0;
        for (int t = 0; t < v->trials; t++, bits >>= 1) {
            if (t % 32 == 0) bits = (uint32_t)(tsr_fill_element(TSR_FILL_UNIFORM, v->args->seed, j, INT64_MAX - t) * 0x1p32);
            v->signs[j * v->trials + t] = bits & 1 ? 1 : -1;
        }
    }
}

static tsr_status check_shapes(const tsr_verify_args *a, verifier *v) {
    const tsr_store_desc *da = &a->a->desc, *db = &a->b->desc, *dc = &a->c->desc;
    v->m = a->transpose_a ? da->cols : da->rows;
    v->k = a->transpose_a ? da->rows : da->cols;
    v->n = a->transpose_b ? db->rows : db->cols;
    int64_t inner = a->transpose_b ? db->cols : db->rows;
    if (inner != v->k || dc->rows != v->m || dc->cols != v->n)
        return tsr_fail(TSR_ERR_SHAPE, "op(A) is %" PRId64 " x %" PRId64 ", op(B) %" PRId64 " x %" PRId64 " and C %" PRId64 " x %" PRId64 ": they are no product; check names, slices and transposes",
                        v->m, v->k, inner, v->n, dc->rows, dc->cols);
    if (a->beta != 0 && !a->c0) return tsr_fail(TSR_ERR_USAGE, "beta is %g but there is no C0: name it with --add, or leave beta out", a->beta);
    if (a->beta != 0 && (a->c0->desc.rows != v->m || a->c0->desc.cols != v->n))
        return tsr_fail(TSR_ERR_SHAPE, "C0 is %" PRId64 " x %" PRId64 " but the product is %" PRId64 " x %" PRId64 ": name a C0 of that shape", a->c0->desc.rows, a->c0->desc.cols, v->m, v->n);
    if (a->trials < 1 || a->trials > TRIALS_MAX) return tsr_fail(TSR_ERR_USAGE, "%d trials: use 1 to %d", a->trials, TRIALS_MAX);
    if (a->alpha == 0) v->k = 0; /* A and B play no part */
    return TSR_OK;
}

static int64_t block_of(int64_t m, int trials) { return tsr_max(1, tsr_min(m, (int64_t)(BLOCK_BYTES / sizeof(double)) / trials)); }

/* As verifier_open and pass_c allocate them. */
double tsr_verify_bytes(int64_t m, int64_t n, int64_t k, int trials) {
    double block = (double)block_of(m, trials), doubles = ((double)n + (double)k + block) * trials + (double)n + 3 * ((double)k + block);
    return doubles * sizeof(double) + block * sizeof(row_facts);
}

static tsr_status verifier_open(const tsr_world *world, const tsr_verify_args *args, verifier *v) {
    *v = (verifier){.world = world, .args = args, .trials = args->trials, .summed = true, .found = {.worst_row = -1}};
    TSR_TRY(check_shapes(args, v));
    v->lambda = sqrt(2 * log(2 * fmax(1, (double)v->m) * v->trials / FALSE_ALARM));
    v->block = block_of(v->m, v->trials);
    v->workers = (int)tsr_max(1, tsr_min(tsr_min(TSR_VERIFY_THREADS_MAX, args->threads > 0 ? args->threads : world->cores), (int64_t)(args->buffer_bytes / WORKER_BYTES)));
    if (strcmp(args->c->ops->name, "mpio") == 0) v->workers = 1; /* MPI may grant this thread alone the right to call it */
    TSR_TRY(allocate(v->n, v->trials, &v->signs));
    TSR_TRY(allocate(v->n, 1, &v->column_bad));
    TSR_TRY(row_sums_allocate(v->k, v->trials, &v->y));
    TSR_TRY(row_sums_allocate(v->block, v->trials, &v->r));
    make_signs(v);
    return TSR_OK;
}

static void verifier_close(verifier *v) {
    row_sums_free(&v->r);
    row_sums_free(&v->y);
    free(v->column_bad);
    free(v->signs);
}

/* Everything is read once, unless B holds NaN or Inf. */
static void show_progress(const verifier *v, verify_progress *progress) {
    const tsr_verify_args *a = v->args;
    const double operands = v->k > 0 ? bytes_of(a->a) + bytes_of(a->b) : 0, added = a->beta != 0 ? bytes_of(a->c0) : 0;
    *progress = (verify_progress){.ranks = v->world->ranks};
    tsr_progress_open(&progress->display, v->world->rank == 0 ? a->progress : TSR_PROGRESS_OFF, "verify",
                      operands + added + bytes_of(a->c), "B", stderr);
}

/* Collective. */
static tsr_status check_all(verifier *v) {
    tsr_status status = make_y(v);
    for (int64_t row = 0; status == TSR_OK && row < v->m && v->n > 0; row += v->block)
        status = check_block(v, row, tsr_min(v->block, v->m - row));
    return status;
}

tsr_status tsr_verify_product(const tsr_world *world, const tsr_verify_args *args, tsr_verify_result *result) {
    verifier v;
    verify_progress progress;
    tsr_status status = tsr_agree(world->comm, verifier_open(world, args, &v));
    if (status == TSR_OK) {
        v.progress = &progress;
        show_progress(&v, &progress);
        status = check_all(&v);
        tsr_progress_close(&progress.display);
    }
    if (status == TSR_OK) status = combine(world, &v.found);
    v.found.passed = v.found.rows_failed == 0;
    v.found.rows = v.m;
    v.found.failure_probability = ldexp(1, -args->trials);
    verifier_close(&v);
    if (status == TSR_OK) *result = v.found;
    return status;
}

void tsr_verify_format(const tsr_verify_result *result, char *text, size_t chars) {
    char skipped[160] = "";
    if (result->rows_skipped > 0)
        snprintf(skipped, sizeof skipped, "; %" PRId64 " of %" PRId64 " rows hold NaN or Inf and were checked only for where these are", result->rows_skipped, result->rows);
    if (result->passed)
        snprintf(text, chars, "PASSED: every row within its rounding bound (largest |r|/bound %.3g, largest bound %.3g); a larger error passes with probability at most %.3g%s",
                 result->worst_ratio, result->largest_bound, result->failure_probability, skipped);
    else
        snprintf(text, chars, "FAILED: %" PRId64 " of %" PRId64 " rows outside their rounding bound, worst row %" PRId64 " (|r|/bound %.3g, largest bound %.3g)%s",
                 result->rows_failed, result->rows, result->worst_row, result->worst_ratio, result->largest_bound, skipped);
}
