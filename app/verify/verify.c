/* Freivalds' check (verify.h): T sign vectors X (n × T) go through at once: Y = op(B)·D·X, R = alpha·op(A)·Y, and
 * each row of R is compared with (C - beta·C0)·D·X. All sums in double; each matrix is read once, in bands of its
 * stored rows over the ranks, and by the threads of a rank in parts that add to other rows of the sums
 * (verify_tiles.c). B is read again where its columns differ in size or hold NaN or Inf (verify_sums.c,
 * verify_scale.c). C is taken in blocks of rows when R (m × T) would be too large. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/verify/verify_private.h"
#include "kernels/fill/fill.h"

#define FALSE_ALARM 1e-9
#define TRIALS_MAX 64
#define BLOCK_BYTES ((size_t)256 << 20) /* of R */
#define WORKER_BYTES ((size_t)4 << 20)  /* of rows of the matrices, that are worth a thread */

/* ---- C --------------------------------------------------------------------------------------- */

/* The entries of one rectangle of C (and C0); rect is relative to the block. */
static void take_rect(verifier *v, tsr_rect rect, const double *c, const double *c0) {
    for (int64_t i = 0; i < rect.rows; i++) {
        const int64_t row = rect.row + i, at = tsr_infinite_find(&v->in_a, row);
        v->facts[row].taken = true;
        for (int64_t j = 0; j < rect.cols; j++)
            tsr_verify_take_entry(v, row, at, rect.col + j, c[i * rect.cols + j], c0 ? c0[i * rect.cols + j] : 0);
    }
}

/* Local. The half of C that holds nothing becomes the mirror of the other. half: for tiles of C. */
static tsr_status take_mirror(verifier *v, tsr_rect rect, tsr_tiles *half, double *c) {
    const bool lower = v->args->triangle == TSR_TRIANGLE_LOWER;
    const int64_t row0 = v->first + rect.row, col0 = rect.col;
    if (lower ? col0 + rect.cols - 1 <= row0 : col0 >= row0 + rect.rows - 1) return TSR_OK;
    TSR_TRY(tsr_tiles_read(half->store, (tsr_rect){col0, row0, rect.cols, rect.rows}, half->raw, half->values));
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            double *at = c + i * rect.cols + j;
            if (lower ? col0 + j <= row0 + i : col0 + j >= row0 + i) continue;
            if (*at != 0) v->facts[rect.row + i].wrong = true;
            *at = half->values[j * rect.rows + i];
        }
    return TSR_OK;
}

/* A second matrix in tiles like those of `like`. */
static tsr_status open_beside(verifier *v, tsr_store *store, const tsr_tiles *like, tsr_tiles *t) {
    const size_t elements = (size_t)(like->strips.step_rows * like->strips.step_cols);
    *t = (tsr_tiles){.store = store, .progress = v->progress, .row0 = v->first};
    t->raw = malloc(elements * tsr_dtype_bytes(store->desc.element.dtype) + 1);
    t->values = malloc(elements * sizeof(double) + 1);
    if (t->raw && t->values) return TSR_OK;
    return tsr_fail(TSR_ERR_MEMORY, "no memory for %zu elements of '%s': give the check less host memory", elements,
                    store->desc.name.file);
}

/* Local. A worker's rows of C within the block; context: how many the block has. */
static tsr_status pass_c(void *context) {
    const verify_share *s = context;
    verifier *v = s->v;
    const tsr_verify_args *a = v->args;
    const bool with_c0 = a->beta != 0, mirrors = a->triangle != TSR_TRIANGLE_FULL;
    const size_t budget = tsr_verify_tile_budget(v) / (with_c0 || mirrors ? 2 : 1);
    tsr_tiles c = {0}, beside = {0};
    tsr_rect rect, part = {v->first, 0, *(const int64_t *)s->context, v->n};
    tsr_status status;
    TSR_TRY_DONE(tsr_tiles_open(v, a->c, part, false, s->index, budget, &c));
    if (mirrors) tsr_tiles_square(&c);
    if (with_c0 || mirrors) TSR_TRY_DONE(open_beside(v, mirrors ? a->c : a->c0, &c, &beside));
    while (tsr_tiles_next(&c, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&c, rect));
        if (with_c0) TSR_TRY_DONE(tsr_tiles_load(&beside, rect));
        if (mirrors) TSR_TRY_DONE(take_mirror(v, rect, &beside, c.values));
        take_rect(v, rect, c.values, with_c0 ? beside.values : NULL);
    }
done:
    tsr_tiles_close(&beside);
    tsr_tiles_close(&c);
    return status;
}

/* ---- the whole check ------------------------------------------------------------------------- */

/* Collective. One block of rows of C. */
static tsr_status check_block(verifier *v, int64_t first, int64_t rows) {
    v->first = first;
    memset(v->facts, 0, (size_t)rows * sizeof *v->facts);
    TSR_TRY(tsr_sums_of_a(v, rows));
    TSR_TRY(tsr_infinite_meet(v, rows));
    TSR_TRY(tsr_verify_together(v, pass_c, &rows));
    TSR_TRY(tsr_entries_work_out(v));
    for (int64_t i = 0; i < rows; i++)
        if (v->facts[i].taken) tsr_verify_judge_row(v, i);
    tsr_infinite_end_block(v);
    return TSR_OK;
}

/* What was found in other rows. */
static void merge(tsr_verify_result *into, const tsr_verify_result *from) {
    if (from->worst_row >= 0 && (into->worst_row < 0 || from->worst_ratio > into->worst_ratio)) {
        into->worst_row = from->worst_row;
        into->worst_ratio = from->worst_ratio;
    }
    into->rows_failed += from->rows_failed;
    into->rows_unjudged += from->rows_unjudged;
    into->largest_bound = fmax(into->largest_bound, from->largest_bound);
}

/* Collective. Every rank gets the sum of what the ranks found. */
static tsr_status combine(const tsr_world *world, tsr_verify_result *mine) {
    tsr_verify_result *all = malloc((size_t)world->ranks * sizeof *all);
    tsr_status status =
        all ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for the results of %d ranks: free some", world->ranks);
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
            if (t % 32 == 0)
                bits = (uint32_t)(tsr_fill_element(TSR_FILL_UNIFORM, v->args->seed, j, INT64_MAX - t) * 0x1p32);
            v->signs[j * v->trials + t] = bits & 1 ? 1 : -1;
        }
        if (v->parts->real_c && j % 2 == 1) memset(v->signs + j * v->trials, 0, (size_t)v->trials * sizeof *v->signs);
    }
    tsr_sums_turn(v);
}

static tsr_status check_shapes(const tsr_verify_args *a, verifier *v) {
    const tsr_store_desc *da = &a->a->desc;
    const tsr_store_desc *db = &a->b->desc;
    const tsr_store_desc *dc = &a->c->desc;
    v->m = a->transpose_a ? da->cols : da->rows;
    v->k = a->transpose_a ? da->rows : da->cols;
    v->n = a->transpose_b ? db->rows : db->cols;
    int64_t inner = a->transpose_b ? db->cols : db->rows;
    if (inner != v->k || dc->rows != v->m || dc->cols != v->n)
        return tsr_fail(TSR_ERR_SHAPE,
                        "op(A) is %" PRId64 " x %" PRId64 ", op(B) %" PRId64 " x %" PRId64 " and C %" PRId64
                        " x %" PRId64 ": they are no product; check names, slices and transposes",
                        v->m, v->k, inner, v->n, dc->rows, dc->cols);
    if (a->beta != 0 && !a->c0)
        return tsr_fail(TSR_ERR_USAGE, "beta is %g but there is no C0: name it with --add, or leave beta out", a->beta);
    if (a->beta != 0 && (a->c0->desc.rows != v->m || a->c0->desc.cols != v->n))
        return tsr_fail(TSR_ERR_SHAPE,
                        "C0 is %" PRId64 " x %" PRId64 " but the product is %" PRId64 " x %" PRId64
                        ": name a C0 of that shape",
                        a->c0->desc.rows, a->c0->desc.cols, v->m, v->n);
    if (a->triangle != TSR_TRIANGLE_FULL && a->beta != 0)
        return tsr_fail(TSR_ERR_USAGE, "--triangle %s: a Gram matrix has no C0; leave out one of them",
                        tsr_triangle_name(a->triangle));
    if (a->triangle != TSR_TRIANGLE_FULL && v->m != v->n)
        return tsr_fail(TSR_ERR_SHAPE, "--triangle %s: the product is %" PRId64 " x %" PRId64 ", and not symmetric",
                        tsr_triangle_name(a->triangle), v->m, v->n);
    if (a->trials < 1 || a->trials > TRIALS_MAX)
        return tsr_fail(TSR_ERR_USAGE, "%d trials: use 1 to %d", a->trials, TRIALS_MAX);
    if (a->alpha == 0) v->k = 0; /* A and B play no part */
    return TSR_OK;
}

int64_t tsr_verify_block(int64_t m, int trials) {
    return tsr_max(1, tsr_min(m, (int64_t)(BLOCK_BYTES / sizeof(double)) / trials));
}

/* As verifier_open, tsr_sums_of_b, tsr_scale_columns and tsr_infinite_share allocate them. */
double tsr_verify_bytes(int64_t m, int64_t n, int64_t k, int trials) {
    const double block = (double)tsr_verify_block(m, trials), rows = (double)k + block; /* of sums */
    const double sums = ((double)n + rows) * trials * sizeof(double);
    const double own = rows * (2 * sizeof(double) + 2 * sizeof(int32_t) + 1) + block * sizeof(row_facts);
    const double columns = (double)n * (2 * sizeof(int64_t) + 6 * sizeof(int32_t) + 1);
    const double scales = (double)k * (2 * sizeof(int64_t) + 4 * sizeof(int32_t)) + (double)m * sizeof(int32_t);
    return sums + own + columns + scales;
}

/* |x| from which on the kernel takes x for Inf: rounded to the type of the operands. */
static double operand_limit(const tsr_verify_args *a) {
    if (tsr_dtype_wider(a->type) == a->type) return INFINITY;
    switch (a->accuracy) {
    case TSR_ACCURACY_BF16: return 0x1.ffp127;
    case TSR_ACCURACY_TF32: return 0x1.ffep127;
    default: return tsr_dtype_overflow(a->type);
    }
}

/* Two parts that a double holds may have a magnitude that none does. */
static void take_alpha(verifier *v) {
    const tsr_complex alpha = v->parts->alpha;
    v->alpha = frexp(v->args->alpha, &v->alpha_exponent);
    if (!v->parts->turned) return;
    const double re = tsr_times_power(alpha.re, -v->alpha_exponent), im = tsr_times_power(alpha.im, -v->alpha_exponent);
    v->alpha = hypot(re, im);
    v->unit = (tsr_complex){re / v->alpha, im / v->alpha};
}

static tsr_status verifier_open(const tsr_world *world, const tsr_verify_args *args, const verify_parts *parts,
                                verifier *v) {
    *v = (verifier){.world = world, .args = args, .parts = parts, .trials = args->trials, .found = {.worst_row = -1}};
    TSR_TRY(check_shapes(args, v));
    take_alpha(v);
    v->lambda = sqrt(2 * log(2 * fmax(1, (double)v->m) * v->trials / FALSE_ALARM));
    v->operand_limit = operand_limit(args);
    v->block = tsr_verify_block(v->m, v->trials);
    v->open_left = args->bands_only ? 0 : (int64_t)(tsr_verify_share(v) / (double)tsr_max(1, v->k));
    v->workers =
        (int)tsr_max(1, tsr_min(tsr_min(TSR_VERIFY_THREADS_MAX, args->threads > 0 ? args->threads : world->cores),
                                (int64_t)(args->buffer_bytes / WORKER_BYTES)));
    if (strcmp(args->c->ops->name, "mpio") == 0)
        v->workers = 1; /* MPI may grant this thread alone the right to call it */
    TSR_TRY(tsr_verify_allocate(v->n, v->trials, sizeof *v->signs, &v->signs));
    if (parts->turned) TSR_TRY(tsr_verify_allocate(v->n, v->trials, sizeof *v->turned, &v->turned));
    TSR_TRY(tsr_verify_allocate(v->n, 1, sizeof *v->shift, &v->shift));
    TSR_TRY(tsr_verify_allocate(v->n, 1, sizeof *v->column_top, &v->column_top));
    TSR_TRY(tsr_verify_allocate(v->n, 1, sizeof *v->column_kind, &v->column_kind));
    TSR_TRY(tsr_verify_allocate(v->block, 1, sizeof *v->facts, &v->facts));
    TSR_TRY(tsr_sums_allocate(v->k, v->trials, &v->y));
    TSR_TRY(tsr_sums_allocate(v->block, v->trials, &v->r));
    for (int64_t j = 0; j < v->n; j++) v->column_top[j] = TSR_EXPONENT_NONE;
    make_signs(v);
    return TSR_OK;
}

static void verifier_close(verifier *v) {
    free(v->open);
    free(v->codes_a);
    free(v->codes_b);
    free(v->slot_a);
    free(v->slot_b);
    free(v->in_a.entries);
    free(v->in_b.entries);
    tsr_sums_free(&v->r);
    tsr_sums_free(&v->y);
    free(v->facts);
    free(v->column_kind);
    free(v->column_top);
    free(v->shift);
    free(v->turned);
    free(v->signs);
}

static double bytes_of(const tsr_store *store) {
    return (double)store->desc.rows * (double)store->desc.cols * (double)tsr_dtype_bytes(store->desc.element.dtype);
}

/* Everything is read once, unless tsr_verify_again says otherwise. */
static void begin_progress(const verifier *v, verify_progress *progress) {
    const tsr_verify_args *a = v->args;
    const double operands = v->k > 0 ? bytes_of(a->a) + bytes_of(a->b) : 0, added = a->beta != 0 ? bytes_of(a->c0) : 0;
    *progress = (verify_progress){.listener = a->progress, .args = a, .ranks = v->world->ranks};
    tsr_listener_begin(a->progress, "verify", operands + added + bytes_of(a->c), "B");
}

/* Collective. */
static tsr_status check_all(verifier *v) {
    tsr_status status = v->k > 0 ? tsr_sums_of_b(v) : TSR_OK;
    for (int64_t row = 0; status == TSR_OK && row < v->m && v->n > 0; row += v->block)
        status = check_block(v, row, tsr_min(v->block, v->m - row));
    return status;
}

static tsr_status verify_reals(const tsr_world *world, const tsr_verify_args *args, const verify_parts *parts,
                               tsr_verify_result *result) {
    verifier v;
    verify_progress progress;
    tsr_status status = tsr_agree(world->comm, verifier_open(world, args, parts, &v));
    if (status == TSR_OK) {
        pthread_mutex_init(&v.lock, NULL);
        v.progress = &progress;
        begin_progress(&v, &progress);
        status = check_all(&v);
        tsr_listener_end(args->progress);
        pthread_mutex_destroy(&v.lock);
    }
    if (status == TSR_OK) status = combine(world, &v.found);
    v.found.passed = v.found.rows_failed == 0;
    v.found.rows = v.m;
    v.found.failure_probability = ldexp(1, -args->trials);
    verifier_close(&v);
    if (status == TSR_OK) *result = v.found;
    return status;
}

tsr_status tsr_verify_product(const tsr_world *world, const tsr_verify_args *args, tsr_verify_result *result) {
    verify_parts parts;
    tsr_verify_args reals = *args;
    tsr_status status = tsr_agree(world->comm, tsr_verify_parts_open(&reals, &parts));
    if (status == TSR_OK) status = verify_reals(world, &reals, &parts, result);
    if (status == TSR_OK && parts.rows > 1) { /* of C are judged as so many each */
        result->rows /= parts.rows;
        result->rows_failed = tsr_ceil_div(result->rows_failed, parts.rows);
        result->rows_unjudged = tsr_ceil_div(result->rows_unjudged, parts.rows);
        result->worst_row /= parts.rows;
    }
    tsr_verify_parts_close(&parts);
    return status;
}

void tsr_verify_format(const tsr_verify_result *result, char *text, size_t chars) {
    const tsr_verify_result *r = result;
    char unjudged[96] = "";
    if (!r->passed) {
        if (r->rows_unjudged > 0)
            snprintf(unjudged, sizeof unjudged, "; %" PRId64 " rows not judged", r->rows_unjudged);
        snprintf(text, chars,
                 "FAILED: %" PRId64 " of %" PRId64 " rows outside their rounding bound, worst row %" PRId64
                 "%s%s (|r|/bound %.3g, largest bound %.3g)%s",
                 r->rows_failed, r->rows, r->worst_row, *r->worst_matrix ? " of matrix " : "", r->worst_matrix,
                 r->worst_ratio, r->largest_bound, unjudged);
        return;
    }
    if (r->rows_unjudged > 0)
        snprintf(unjudged, sizeof unjudged, "INCOMPLETE, %" PRId64 " rows not judged: every other", r->rows_unjudged);
    else snprintf(unjudged, sizeof unjudged, "PASSED: every");
    snprintf(text, chars,
             "%s row within its rounding bound (largest |r|/bound %.3g, largest bound %.3g); a larger error passes "
             "with probability at most %.3g",
             unjudged, r->worst_ratio, r->largest_bound, r->failure_probability);
}
