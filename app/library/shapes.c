/* Shapes of a product's matrices, as the person who named them sees them (shapes.h). */
#include "app/library/shapes.h"

#include <stdio.h>
#include <string.h>

#include "io/text/text.h"

#define NAME_CHARS 700

/* One matrix as the person who named it sees it; rows and cols before op. */
typedef struct {
    char name[NAME_CHARS];
    int64_t rows, cols;
    bool transposed;
} factor;

static factor see(tsr_order order, const tsr_store_desc *desc, bool transposed) {
    factor f = {.transposed = transposed};
    const bool swap = order == TSR_ORDER_COL;
    tsr_matrix_name_text(&desc->name, f.name, sizeof f.name);
    f.rows = swap ? desc->cols : desc->rows;
    f.cols = swap ? desc->rows : desc->cols;
    return f;
}

static int64_t op_rows(const factor *f) { return f->transposed ? f->cols : f->rows; }
static int64_t op_cols(const factor *f) { return f->transposed ? f->rows : f->cols; }

static void describe(const factor *f, char *text, size_t chars) {
    if (f->transposed)
        snprintf(text, chars, "'%s' (%lld x %lld) transposed is %lld x %lld", f->name, (long long)f->rows,
                 (long long)f->cols, (long long)f->cols, (long long)f->rows);
    else snprintf(text, chars, "'%s' is %lld x %lld", f->name, (long long)f->rows, (long long)f->cols);
}

/* ---- what would fit -------------------------------------------------------------------------- */

static void add_way(char *text, size_t chars, const char *way, int64_t rows, int64_t cols) {
    tsr_text_append(text, chars, "%s%s (%lld x %lld)", *text ? ", or " : "", way, (long long)rows, (long long)cols);
}

/* Which of the options to give instead of those that were. "" for no change. */
static const char *change_of(bool was_a, bool was_b, bool a, bool b) {
    if (was_a == a && was_b == b) return "";
    if (was_b == b) return a ? "--transpose-a" : "leaving out --transpose-a";
    if (was_a == a) return b ? "--transpose-b" : "leaving out --transpose-b";
    if (a != b) return a ? "--transpose-a instead of --transpose-b" : "--transpose-b instead of --transpose-a";
    return a ? "--transpose-a and --transpose-b" : "leaving out --transpose-a and --transpose-b";
}

/* The names as they stand or the other way round, with these options. c: NULL, or what the product must be like. */
static bool fits(const factor *a, const factor *b, const factor *c, bool swapped, bool transpose_a, bool transpose_b,
                 int64_t *rows, int64_t *cols) {
    factor first = swapped ? *b : *a, second = swapped ? *a : *b;
    first.transposed = transpose_a;
    second.transposed = transpose_b;
    *rows = op_rows(&first);
    *cols = op_cols(&second);
    return op_cols(&first) == op_rows(&second) && (!c || (c->rows == *rows && c->cols == *cols));
}

/* "": none. The options belong to the places on the command line, not to the matrices: --transpose-a is for whichever
 * name comes first. */
static void list_ways(const factor *a, const factor *b, const factor *c, char *text, size_t chars) {
    const bool was_a = a->transposed;
    const bool was_b = b->transposed;
    const bool instead = was_a || was_b;
    int64_t rows, cols;
    char way[120];
    text[0] = '\0';
    for (int change = 1; change < 4; change++) {
        const bool now_a = was_a != (change & 1), now_b = was_b != (change >> 1);
        if (change == 3 && (!instead || *text)) continue; /* what changes one option is simpler */
        if (!fits(a, b, c, false, now_a, now_b, &rows, &cols)) continue;
        snprintf(way, sizeof way, "%s fits", change_of(was_a, was_b, now_a, now_b));
        add_way(text, chars, way, rows, cols);
    }
    if (fits(a, b, c, true, was_a, was_b, &rows, &cols))
        add_way(text, chars, "with the two names swapped they fit", rows, cols);
    else if (was_a != was_b && fits(a, b, c, true, was_b, was_a, &rows, &cols)) {
        snprintf(way, sizeof way, "with the two names swapped, %s fits", change_of(was_a, was_b, was_b, was_a));
        add_way(text, chars, way, rows, cols);
    }
}

/* ---- the checks ------------------------------------------------------------------------------ */

static tsr_status no_product(const factor *a, const factor *b) {
    char first[NAME_CHARS + 120], second[NAME_CHARS + 120], ways[600];
    describe(a, first, sizeof first);
    describe(b, second, sizeof second);
    list_ways(a, b, NULL, ways, sizeof ways);
    if (!*ways)
        snprintf(ways, sizeof ways,
                 "neither another order nor a transpose fits; check the names, or select parts [r0:r1,c0:c1]");
    return tsr_fail(TSR_ERR_SHAPE, "%s and %s: the columns of the first must be the rows of the second; %s", first,
                    second, ways);
}

/* c: C or C0, as `what` says. */
static tsr_status check_result(const factor *a, const factor *b, const factor *c, const char *what) {
    char ways[600];
    if (c->rows == op_rows(a) && c->cols == op_cols(b)) return TSR_OK;
    list_ways(a, b, c, ways, sizeof ways);
    return tsr_fail(TSR_ERR_SHAPE, "%s '%s' is %lld x %lld but the product of '%s' and '%s' is %lld x %lld: %s", what,
                    c->name, (long long)c->rows, (long long)c->cols, a->name, b->name, (long long)op_rows(a),
                    (long long)op_cols(b), *ways ? ways : "they must be the same; check names, slices and transposes");
}

tsr_status tsr_shapes_check(tsr_order order, const tsr_store_desc *a, bool transpose_a, const tsr_store_desc *b,
                            bool transpose_b, const tsr_store_desc *c, const tsr_store_desc *c0) {
    const factor first = see(order, a, transpose_a), second = see(order, b, transpose_b);
    if (op_cols(&first) != op_rows(&second)) return no_product(&first, &second);
    const tsr_store_desc *results[] = {c, c0};
    for (int i = 0; i < 2; i++) {
        if (!results[i]) continue;
        const factor result = see(order, results[i], false);
        TSR_TRY(check_result(&first, &second, &result, i == 0 ? "C" : "C0"));
    }
    return TSR_OK;
}
