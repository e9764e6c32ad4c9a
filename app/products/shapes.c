/* Shapes of a product's matrices, as the person who named them sees them (shapes.h). */
#include "app/products/shapes.h"

#include <stdio.h>
#include <string.h>

#include "io/text/text.h"

#define NAME_CHARS 700

/* One matrix as the person who named it sees it; rows and cols before op. */
typedef struct {
    char name[NAME_CHARS];
    int64_t rows, cols;
    bool transposed, adjoint; /* adjoint: transposed, and its elements conjugated */
} factor;

static factor see(tsr_order order, const tsr_store_desc *desc, tsr_operation operation) {
    factor f = {.transposed = operation != TSR_AS_IT_IS, .adjoint = operation == TSR_ADJOINT};
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

/* Which of the options to give instead of those that were, as words of them; one of them changes. An option that was
 * not given is called like the other one. */
static const char *change_of(const factor *a, const factor *b, bool now_a, bool now_b, char *text, size_t chars) {
    const bool was_a = a->transposed, was_b = b->transposed;
    const char *of_a = (was_a ? a : b)->adjoint ? "--adjoint-a" : "--transpose-a",
               *of_b = (was_b ? b : a)->adjoint ? "--adjoint-b" : "--transpose-b";
    if (was_a != now_a && was_b != now_b && now_a != now_b)
        snprintf(text, chars, "%s instead of %s", now_a ? of_a : of_b, now_a ? of_b : of_a);
    else if (was_a != now_a && was_b != now_b)
        snprintf(text, chars, "%s%s and %s", now_a ? "" : "leaving out ", of_a, of_b);
    else if (was_a != now_a) snprintf(text, chars, "%s%s", now_a ? "" : "leaving out ", of_a);
    else snprintf(text, chars, "%s%s", now_b ? "" : "leaving out ", of_b);
    return text;
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
    char change_text[80], way[120];
    text[0] = '\0';
    for (int change = 1; change < 4; change++) {
        const bool now_a = was_a != (change & 1), now_b = was_b != (change >> 1);
        if (change == 3 && (!instead || *text)) continue; /* what changes one option is simpler */
        if (!fits(a, b, c, false, now_a, now_b, &rows, &cols)) continue;
        snprintf(way, sizeof way, "%s fits", change_of(a, b, now_a, now_b, change_text, sizeof change_text));
        add_way(text, chars, way, rows, cols);
    }
    if (fits(a, b, c, true, was_a, was_b, &rows, &cols))
        add_way(text, chars, "with the two names swapped they fit", rows, cols);
    else if (was_a != was_b && fits(a, b, c, true, was_b, was_a, &rows, &cols)) {
        snprintf(way, sizeof way, "with the two names swapped, %s fits",
                 change_of(a, b, was_b, was_a, change_text, sizeof change_text));
        add_way(text, chars, way, rows, cols);
    }
}

const char *tsr_seen_text(tsr_order order, tsr_shape stored, char text[TSR_SHAPE_CHARS]) {
    tsr_shape seen = stored;
    for (int d = 0; d < stored.dimensions && order == TSR_ORDER_COL; d++)
        seen.size[d] = stored.size[stored.dimensions - 1 - d];
    return tsr_shape_text(&seen, " x ", text, TSR_SHAPE_CHARS);
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

/* "'A.h5:/X' (3 x 20 x 30)", transposed where that counts. */
static void name_array(tsr_order order, const tsr_store_desc *desc, tsr_operation operation, char *text, size_t chars) {
    char name[NAME_CHARS], shape[TSR_SHAPE_CHARS];
    snprintf(text, chars, "'%s' (%s%s)", tsr_matrix_name_text(&desc->name, name, sizeof name),
             tsr_seen_text(order, tsr_store_shape(desc), shape),
             desc->matrix_dimensions == 1  ? ", a vector"
             : operation == TSR_ADJOINT    ? ", its matrices transposed and conjugated"
             : operation == TSR_TRANSPOSED ? ", its matrices transposed"
                                           : "");
}

/* Two arrays that make no product; `why` names both sides' numbers. */
static tsr_status no_stack(tsr_order order, const tsr_store_desc *a, tsr_operation of_a, const tsr_store_desc *b,
                           tsr_operation of_b, const char *why) {
    char first[NAME_CHARS + TSR_SHAPE_CHARS + 40], second[sizeof first];
    name_array(order, a, of_a, first, sizeof first);
    name_array(order, b, of_b, second, sizeof second);
    return tsr_fail(TSR_ERR_SHAPE, "%s and %s: %s", first, second, why);
}

/* One matrix on each side: who says so says what would fit. */
static bool plain(const tsr_store_desc *desc) { return desc->matrix_dimensions == 2 && desc->stack_dimensions == 0; }

/* The size of dimension d of a stack among `dimensions`, counted from the last; what is missing is 1. */
static int64_t stack_size(const tsr_store_desc *desc, int dimensions, int d) {
    const int own = d - (dimensions - desc->stack_dimensions);
    return own < 0 ? 1 : desc->stack[own];
}

/* Sizes must be the same, or one of them 1. False where they are not, with *at the dimension. */
static bool broadcast(const tsr_store_desc *a, const tsr_store_desc *b, tsr_products *shape, int *at) {
    const int dimensions = a->stack_dimensions > b->stack_dimensions ? a->stack_dimensions : b->stack_dimensions;
    shape->stack_dimensions = dimensions;
    shape->count = 1;
    for (int d = 0; d < dimensions; d++) {
        const int64_t of_a = stack_size(a, dimensions, d), of_b = stack_size(b, dimensions, d);
        *at = d;
        if (of_a != of_b && of_a != 1 && of_b != 1) return false;
        shape->stack[d] = of_a == 1 ? of_b : of_a;
        if (__builtin_mul_overflow(shape->count, shape->stack[d], &shape->count)) return false;
    }
    return true;
}

tsr_status tsr_shapes_multiply(tsr_order order, const tsr_store_desc *a, tsr_operation of_a, const tsr_store_desc *b,
                               tsr_operation of_b, tsr_products *shape) {
    const bool swap = order == TSR_ORDER_COL;
    const tsr_store_desc *left = swap ? b : a, *right = swap ? a : b;
    char why[200];
    int at = 0;
    tsr_products found = {.transpose_left = (swap ? of_b : of_a) != TSR_AS_IT_IS,
                          .transpose_right = (swap ? of_a : of_b) != TSR_AS_IT_IS,
                          .row_dropped = left->matrix_dimensions == 1,
                          .col_dropped = right->matrix_dimensions == 1};
    if (a->matrix_dimensions == 0 || b->matrix_dimensions == 0)
        return no_stack(order, a, TSR_AS_IT_IS, b, TSR_AS_IT_IS,
                        "a number is no matrix; scale a product by one with --alpha");
    if (found.row_dropped) found.transpose_left = left->rows != 1;
    if (found.col_dropped) found.transpose_right = right->cols != 1;
    const int64_t inner = found.transpose_left ? left->rows : left->cols;
    const int64_t other = found.transpose_right ? right->cols : right->rows;
    if (inner != other && plain(a) && plain(b)) {
        const factor first = see(order, a, of_a), second = see(order, b, of_b);
        return no_product(&first, &second);
    }
    if (inner != other) {
        snprintf(why, sizeof why,
                 "the columns of the first, or the length of a vector, must be the rows of the second, and %lld is not "
                 "%lld; check names, slices and transposes",
                 (long long)(swap ? other : inner), (long long)(swap ? inner : other));
        return no_stack(order, a, of_a, b, of_b, why);
    }
    if (!broadcast(a, b, &found, &at)) {
        snprintf(why, sizeof why,
                 "%lld matrices along one dimension and %lld along the same one of the other do not go together; they "
                 "must be as many, or 1",
                 (long long)stack_size(a, found.stack_dimensions, at),
                 (long long)stack_size(b, found.stack_dimensions, at));
        return no_stack(order, a, TSR_AS_IT_IS, b, TSR_AS_IT_IS, why);
    }
    *shape = found;
    return TSR_OK;
}

static tsr_status wrong_matrix(const factor *a, const factor *b, const factor *c, const char *what) {
    char ways[600];
    list_ways(a, b, c, ways, sizeof ways);
    return tsr_fail(TSR_ERR_SHAPE, "%s '%s' is %lld x %lld but the product of '%s' and '%s' is %lld x %lld: %s", what,
                    c->name, (long long)c->rows, (long long)c->cols, a->name, b->name, (long long)op_rows(a),
                    (long long)op_cols(b), *ways ? ways : "they must be the same; check names, slices and transposes");
}

/* The shape of C as it is stored. */
static tsr_shape shape_of(const tsr_products *product, int64_t rows, int64_t cols) {
    tsr_shape shape = {.dimensions = product->stack_dimensions};
    memcpy(shape.size, product->stack, (size_t)product->stack_dimensions * sizeof *product->stack);
    if (!product->row_dropped) shape.size[shape.dimensions++] = rows;
    if (!product->col_dropped) shape.size[shape.dimensions++] = cols;
    return shape;
}

tsr_status tsr_shapes_result(tsr_order order, const tsr_store_desc *a, tsr_operation of_a, const tsr_store_desc *b,
                             tsr_operation of_b, const tsr_products *shape, const char *what, tsr_store_desc *c) {
    const bool swap = order == TSR_ORDER_COL;
    const tsr_store_desc *left = swap ? b : a, *right = swap ? a : b;
    const int64_t rows = shape->transpose_left ? left->cols : left->rows;
    const int64_t cols = shape->transpose_right ? right->rows : right->cols;
    const tsr_shape wanted = shape_of(shape, rows, cols), is = tsr_store_shape(c);
    char name[NAME_CHARS + TSR_SHAPE_CHARS + 40], text[TSR_SHAPE_CHARS];
    if (!tsr_shape_same(&wanted, &is) && plain(a) && plain(b) && plain(c)) {
        const factor first = see(order, a, of_a), second = see(order, b, of_b);
        const factor third = see(order, c, TSR_AS_IT_IS);
        return wrong_matrix(&first, &second, &third, what);
    }
    if (!tsr_shape_same(&wanted, &is)) {
        name_array(order, c, TSR_AS_IT_IS, name, sizeof name);
        return tsr_fail(TSR_ERR_SHAPE, "%s %s must have the product's shape, %s; check names, slices and transposes",
                        what, name, tsr_seen_text(order, wanted, text));
    }
    if (wanted.dimensions > shape->stack_dimensions && c->matrix_dimensions == 2 &&
        (shape->row_dropped || shape->col_dropped))
        tsr_store_split_rows(c, shape->col_dropped);
    if (c->rows == rows) return TSR_OK;
    if (c->dataset_dimensions != 1) {
        name_array(order, c, TSR_AS_IT_IS, name, sizeof name);
        return tsr_fail(TSR_ERR_SHAPE,
                        "%s %s lies across its dataset's %s, and the product along them: copy it into a vector", what,
                        name, c->rows == 1 ? "columns" : "rows");
    }
    tsr_store_turn_vector(c);
    return TSR_OK;
}

int64_t tsr_shapes_matrix(const tsr_products *shape, const tsr_store_desc *operand, int64_t product) {
    int64_t matrix = 0, step = 1; /* step: matrices of the operand from one index to the next */
    for (int d = shape->stack_dimensions - 1; d >= 0; d--) {
        const int64_t size = stack_size(operand, shape->stack_dimensions, d);
        if (size > 1) matrix += product % shape->stack[d] * step;
        step *= size;
        product /= tsr_max(1, shape->stack[d]);
    }
    return matrix;
}
