/* Shapes of a product's matrices, as the person who named them sees them (shapes.h). */
#include "app/shapes.h"

#include <stdio.h>
#include <string.h>

#include "io/text.h"

#define NAME_CHARS 700

/* One matrix of the product; rows and cols after op. */
typedef struct {
    char name[NAME_CHARS];
    int64_t rows, cols;
    bool transposed;
} factor;

static factor see(tsr_order order, const tsr_store_desc *desc, bool transposed) {
    factor f = {.transposed = transposed};
    bool swap = (order == TSR_ORDER_COL) != transposed;
    tsr_matrix_name_text(&desc->name, f.name, sizeof f.name);
    f.rows = swap ? desc->cols : desc->rows, f.cols = swap ? desc->rows : desc->cols;
    return f;
}

static void describe(const factor *f, char *text, size_t chars) {
    if (f->transposed)
        snprintf(text, chars, "'%s' (%lld x %lld) transposed is %lld x %lld", f->name, (long long)f->cols,
                 (long long)f->rows, (long long)f->rows, (long long)f->cols);
    else
        snprintf(text, chars, "'%s' is %lld x %lld", f->name, (long long)f->rows, (long long)f->cols);
}

static void add_way(char *text, size_t chars, const char *way, int64_t rows, int64_t cols) {
    tsr_text_append(text, chars, "%s%s fits (%lld x %lld)", *text ? ", " : "", way, (long long)rows, (long long)cols);
}

static tsr_status no_product(const factor *a, const factor *b) {
    char first[NAME_CHARS + 120], second[NAME_CHARS + 120], ways[300] = "";
    describe(a, first, sizeof first);
    describe(b, second, sizeof second);
    if (a->cols == b->cols)
        add_way(ways, sizeof ways, b->transposed ? "no --transpose-b" : "--transpose-b", a->rows, b->rows);
    if (a->rows == b->rows)
        add_way(ways, sizeof ways, a->transposed ? "no --transpose-a" : "--transpose-a", a->cols, b->cols);
    if (b->cols == a->rows) add_way(ways, sizeof ways, "B·A", b->rows, a->cols);
    if (!*ways)
        snprintf(ways, sizeof ways,
                 "neither another order nor a transpose fits; check the names, or select parts [r0:r1,c0:c1]");
    return tsr_fail(TSR_ERR_SHAPE, "%s and %s: the columns of the first must be the rows of the second; %s", first,
                    second, ways);
}

/* c: C or C0, as `what` says. */
static tsr_status check_result(const factor *a, const factor *b, const factor *c, const char *what) {
    if (c->rows == a->rows && c->cols == b->cols) return TSR_OK;
    bool other_order = b->cols == a->rows && c->rows == b->rows && c->cols == a->cols;
    return tsr_fail(TSR_ERR_SHAPE, "%s '%s' is %lld x %lld but the product of '%s' and '%s' is %lld x %lld: %s", what,
                    c->name, (long long)c->rows, (long long)c->cols, a->name, b->name, (long long)a->rows,
                    (long long)b->cols,
                    other_order ? "B·A fits" : "they must be the same; check names, slices and transposes");
}

tsr_status tsr_shapes_check(tsr_order order, const tsr_store_desc *a, bool transpose_a, const tsr_store_desc *b,
                            bool transpose_b, const tsr_store_desc *c, const tsr_store_desc *c0) {
    const factor first = see(order, a, transpose_a), second = see(order, b, transpose_b);
    if (first.cols != second.rows) return no_product(&first, &second);
    const tsr_store_desc *results[] = {c, c0};
    for (int i = 0; i < 2; i++) {
        if (!results[i]) continue;
        const factor result = see(order, results[i], false);
        TSR_TRY(check_result(&first, &second, &result, i == 0 ? "C" : "C0"));
    }
    return TSR_OK;
}
