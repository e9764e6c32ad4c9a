/* Where NaN and Inf must stand in a product (verify_private.h). A row of op(A), or a column of op(B), that holds NaN
 * makes its row or column of C NaN; one that holds Inf makes every entry there Inf or NaN, which the values that meet
 * the infinities decide. So infinities are listed, and of each row of op(B) and column of op(A) that meets one a code
 * is kept for every element: its sign, or that it is zero. Lists and codes have room for a part of the check's
 * buffer; what is beyond it is not judged. */
#include <stdlib.h>

#include "app/verify/verify_private.h"

enum { CODE_ZERO = 1, CODE_POSITIVE, CODE_NEGATIVE, CODE_NOTHING };

static size_t list_most(const verifier *v) { return tsr_verify_list_budget(v) / sizeof(infinity); }

/* Other workers may mark the same column. */
static void mark(unsigned char *kind, unsigned char what) { __atomic_fetch_or(kind, what, __ATOMIC_RELAXED); }

/* Room is made as it is needed: most matrices have no infinities. */
static bool append(infinities *list, infinity entry) {
    if (list->count == list->room) {
        const int64_t room = tsr_min(list->most, tsr_max(64, 2 * list->room));
        infinity *more = room > list->count ? realloc(list->entries, (size_t)room * sizeof *more) : NULL;
        if (!more) return false;
        list->entries = more;
        list->room = room;
    }
    list->entries[list->count++] = entry;
    return true;
}

static void note(verifier *v, bool of_a, int64_t line, int64_t l, double value) {
    unsigned char *kind = of_a ? v->r.kind : v->column_kind;
    mark(&kind[line], isnan(value) ? TSR_HOLDS_NAN : TSR_HOLDS_INF);
    if (isnan(value) || !v->listing) return;
    infinities *list = of_a ? &v->in_a : &v->in_b;
    pthread_mutex_lock(&v->lock);
    list->most = (int64_t)list_most(v);
    if (!append(list, (infinity){line, 2 * l + (value < 0)})) mark(&kind[line], TSR_HOLDS_MANY);
    pthread_mutex_unlock(&v->lock);
}

void tsr_infinite_take(verifier *v, bool of_a, double *values, tsr_rect rect, bool transpose) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            double *at = values + i * rect.cols + j;
            if (fabs(*at) < v->operand_limit) continue;
            const int64_t row = transpose ? rect.col + j : rect.row + i, col = transpose ? rect.row + i : rect.col + j;
            note(v, of_a, of_a ? row : col, of_a ? col : row, *at);
            *at = 0;
        }
}

static int by_line(const void *a, const void *b) {
    const infinity *x = a, *y = b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* ---- the same on every rank ------------------------------------------------------------------ */

/* Collective. What all ranks listed together, as far as a list has room; the rest is marked. */
static tsr_status share_list(verifier *v, infinities *list, unsigned char *kind) {
    int64_t kept = list->count;
    infinities all = {0};
    TSR_TRY(tsr_verify_gather(v->world, list->entries, sizeof *list->entries,
                              tsr_min((int64_t)list_most(v), INT32_MAX / 2), &kept, &all.entries, &all.count));
    for (int64_t e = kept; e < list->count; e++) kind[list->entries[e].line] |= TSR_HOLDS_MANY;
    if (all.count == 0) return TSR_OK;
    qsort(all.entries, (size_t)all.count, sizeof *all.entries, by_line);
    free(list->entries);
    *list = all;
    return TSR_OK;
}

/* Entries of lines that are NaN or not judged are not needed. */
static void prune(infinities *list, const unsigned char *kind) {
    int64_t kept = 0;
    for (int64_t e = 0; e < list->count; e++)
        if (kind[list->entries[e].line] == TSR_HOLDS_INF) list->entries[kept++] = list->entries[e];
    list->count = kept;
}

/* Each l of the list gets a slot, as far as codes have room and the work for them is a small part of the product's. */
static tsr_status give_slots(verifier *v, infinities *list, unsigned char *kind, int64_t line_codes, int32_t **slots,
                             int64_t *used) {
    const double room = (double)tsr_verify_list_budget(v) / (double)tsr_max(1, line_codes);
    const double work = fmax(tsr_verify_share(v), 16 * (double)v->m * (double)v->n);
    const int64_t most = (int64_t)fmin(room, INT32_MAX / 2), entries = (int64_t)(work / (double)tsr_max(1, line_codes));
    TSR_TRY(tsr_verify_allocate(v->k, 1, sizeof **slots, slots));
    for (int64_t l = 0; l < v->k; l++) (*slots)[l] = -1;
    *used = 0;
    for (int64_t e = 0; e < list->count; e++) {
        int32_t *slot = &(*slots)[list->entries[e].at / 2];
        if (*slot < 0 && *used < most && e < entries) *slot = (int32_t)(*used)++;
        if (*slot < 0 || e >= entries) kind[list->entries[e].line] |= TSR_HOLDS_MANY;
    }
    prune(list, kind);
    return TSR_OK;
}

tsr_status tsr_infinite_share(verifier *v, bool of_a, int64_t lines) {
    infinities *list = of_a ? &v->in_a : &v->in_b;
    unsigned char *kind = of_a ? v->r.kind : v->column_kind;
    TSR_TRY(share_list(v, list, kind));
    TSR_TRY(tsr_verify_reduce(v->world, kind, lines, MPI_UNSIGNED_CHAR, MPI_BOR));
    prune(list, kind);
    if (list->count == 0) return TSR_OK;
    if (of_a) return tsr_agree(v->world->comm, give_slots(v, list, kind, v->n, &v->slot_a, &v->slots_a));
    tsr_status status = give_slots(v, list, kind, v->block, &v->slot_b, &v->slots_b);
    if (status == TSR_OK) status = tsr_verify_allocate(v->block, v->slots_b, 1, &v->codes_a);
    return tsr_agree(v->world->comm, status);
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* As the kernel takes it: what its type cannot hold is zero. */
static unsigned char code_of(const verifier *v, double value) {
    if (fabs(value) <= tsr_dtype_tiny(v->args->type)) return CODE_ZERO;
    return value > 0 ? CODE_POSITIVE : value < 0 ? CODE_NEGATIVE : CODE_ZERO;
}

void tsr_infinite_code_a(verifier *v, const double *values, tsr_rect rect, bool transpose) {
    for (int64_t i = 0; i < rect.rows; i++)
        for (int64_t j = 0; j < rect.cols; j++) {
            const int64_t row = transpose ? rect.col + j : rect.row + i, col = transpose ? rect.row + i : rect.col + j;
            const int32_t slot = v->slot_b[col];
            if (slot >= 0) v->codes_a[row * v->slots_b + slot] = code_of(v, values[i * rect.cols + j]);
        }
}

/* Whether op(B) has no element at (l, j). */
static bool is_nowhere(const verifier *v, int64_t l, int64_t j) {
    return v->parts->nowhere != NOWHERE && (j + (v->parts->nowhere == ODD_SUMS ? l : 0)) % 2 == 1;
}

/* Local. A worker's part of op(B)'s rows that meet an Inf of A. */
static tsr_status pass_codes(void *context) {
    const verify_share *s = context;
    verifier *v = s->v;
    const bool transpose = v->args->transpose_b;
    tsr_tiles t = {0};
    tsr_rect rect, all = {0, 0, transpose ? v->n : v->k, transpose ? v->k : v->n};
    tsr_status status = tsr_tiles_open(v, v->args->b, all, transpose, s->index, tsr_verify_tile_budget(v), &t);
    while (status == TSR_OK && tsr_tiles_next(&t, &rect)) {
        TSR_TRY_DONE(tsr_tiles_load(&t, rect));
        for (int64_t i = 0; i < rect.rows; i++)
            for (int64_t j = 0; j < rect.cols; j++) {
                const int64_t l = transpose ? rect.col + j : rect.row + i,
                              col = transpose ? rect.row + i : rect.col + j;
                if (v->slot_a[l] >= 0)
                    v->codes_b[v->slot_a[l] * v->n + col] =
                        is_nowhere(v, l, col) ? CODE_NOTHING : code_of(v, t.values[i * rect.cols + j]);
            }
    }
done:
    tsr_tiles_close(&t);
    return status;
}

tsr_status tsr_infinite_meet(verifier *v, int64_t rows) {
    if (v->slots_b > 0) TSR_TRY(tsr_verify_reduce(v->world, v->codes_a, rows * v->slots_b, MPI_UNSIGNED_CHAR, MPI_MAX));
    if (v->slots_a == 0) return TSR_OK;
    TSR_TRY(tsr_agree(v->world->comm, tsr_verify_allocate(v->slots_a, v->n, 1, &v->codes_b)));
    tsr_verify_again(v, v->args->b);
    TSR_TRY(tsr_verify_together(v, pass_codes, NULL));
    return tsr_verify_reduce(v->world, v->codes_b, v->slots_a * v->n, MPI_UNSIGNED_CHAR, MPI_MAX);
}

/* ---- what they say --------------------------------------------------------------------------- */

int64_t tsr_infinite_find(const infinities *list, int64_t line) {
    int64_t low = 0, high = list->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list->entries[middle].line < line) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ±Inf times a value with this code. */
static int term(bool negative, unsigned char code) {
    if (code == CODE_NOTHING) return 0;
    if (code == CODE_ZERO) return NONE;
    return negative == (code == CODE_NEGATIVE) ? PLUS : MINUS;
}

int tsr_infinite_terms(const verifier *v, int64_t row, int64_t at, int64_t j) {
    int terms = (v->r.kind[row] | v->column_kind[j]) & TSR_HOLDS_NAN ? NONE : 0;
    for (; terms < (PLUS | MINUS) && at < v->in_a.count && v->in_a.entries[at].line == row; at++) {
        const int64_t l = v->in_a.entries[at].at;
        terms |= term(l & 1, v->codes_b[v->slot_a[l / 2] * v->n + j]);
    }
    if (terms >= (PLUS | MINUS) || !(v->column_kind[j] & TSR_HOLDS_INF)) return terms;
    for (at = tsr_infinite_find(&v->in_b, j); at < v->in_b.count && v->in_b.entries[at].line == j; at++) {
        const int64_t l = v->in_b.entries[at].at;
        terms |= term(l & 1, v->codes_a[row * v->slots_b + v->slot_b[l / 2]]);
    }
    return terms;
}

void tsr_infinite_end_block(verifier *v) {
    free(v->codes_b);
    free(v->slot_a);
    v->codes_b = NULL;
    v->slot_a = NULL;
    v->slots_a = 0;
    v->in_a.count = 0;
    if (v->codes_a) memset(v->codes_a, 0, (size_t)(v->block * v->slots_b));
}
